// The Compare tab: scoring when typing pauses, Enter, moving lines of conditions, order of the bars.
(() => {
  "use strict";
  const FIELDS = "#cv-sentence1 textarea, #cv-sentence2 textarea, #cv-conditions textarea";
  const PAUSE_MS = 700;
  let timer = 0;
  const score = () => {
    clearTimeout(timer);
    const button = document.querySelector("#cv-auto");
    if (button) (button.matches("button") ? button : button.querySelector("button")).click();
  };
  const moveLine = (area, step) => {
    const lines = area.value.split("\n");
    const row = area.value.slice(0, area.selectionStart).split("\n").length - 1;
    const target = row + step;
    if (target < 0 || target >= lines.length) return;
    [lines[row], lines[target]] = [lines[target], lines[row]];
    area.value = lines.join("\n");
    const at = lines.slice(0, target).reduce((sum, line) => sum + line.length + 1, 0) + lines[target].length;
    area.setSelectionRange(at, at);
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // What stands there for other texts than were typed does not look current, also while an answer to them waits. Before
  // anything is typed it is left alone: the fields may not be there yet, or not be filled.
  let typing = false;
  const plain = (text) => text.normalize("NFC").trim().replace(/\s+/g, " ");
  const fade = () => {
    const link = document.querySelector("#cv-result [data-link]")?.dataset.link;
    if (!link || !typing) return;
    const query = new URLSearchParams(condviz.queryOf(link));
    const typed = [...document.querySelectorAll(FIELDS)].map((area) => plain(area.value));
    const scored = ["s1", "s2", "c"].map((key) => plain(query.getAll(key).join(" ")));
    typing = `${typed}` !== `${scored}`;
    document.querySelector("#cv-result").classList.toggle("cv-stale", typing);
  };
  document.addEventListener("input", (event) => {
    if (!event.target.matches?.(FIELDS)) return;
    typing = true;
    fade();
    clearTimeout(timer);
    timer = setTimeout(score, PAUSE_MS);
  });
  // What is scored now must not be followed by the score of what was typed before.
  document.addEventListener("click", (event) => event.target.closest?.("#cv-run, :is(#cv-tries, #cv-cards) [data-example], [data-add]") && clearTimeout(timer), true);
  document.addEventListener("focusin", (event) => event.target.matches?.(FIELDS) && (event.target.dir = "auto"));
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(FIELDS) || event.isComposing) return;
    const conditions = event.target.closest("#cv-conditions");
    if (event.key === "Enter" && !event.shiftKey && (!conditions || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      score();
    } else if (conditions && event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      moveLine(event.target, event.key === "ArrowUp" ? -1 : 1);
    }
  }, true);

  // ---- the order of the bars, kept from result to result and in the address -----------------------------------------------
  let sorted = condviz.params().has("sort");
  const bars = (element, watch) => {
    const show = () => {
      fade();
      const box = element.querySelector("[data-sort]");
      if (box) box.checked = sorted;
      if (box && sorted) condviz.note({ sort: "1" });
    };
    watch("value", () => setTimeout(show, 0));
    // The sentences under the bars are marked for the condition that the pointer is on.
    element.addEventListener("pointerover", (event) => {
      const row = event.target.closest(".cv-bars-row");
      if (!row) return;
      const pairs = [...element.querySelectorAll(".cv-bars-pair")];
      const chosen = [...row.parentElement.children].indexOf(row);
      pairs.forEach((pair, index) => { pair.hidden = index !== chosen; });
    });
    element.addEventListener("change", (event) => {
      sorted = event.target.checked;
      condviz.note({ sort: sorted ? "1" : "" });
    });
    show();
  };

  const examples = (element, choose) => {
    condviz.lead();
    element.addEventListener("click", (event) => {
      const card = event.target.closest("[data-example]");
      if (!card) return;
      choose({ id: card.dataset.example });
      condviz.rise();
    });
  };
  const finder = (element, add) => {
    element.addEventListener("click", (event) => {
      const row = event.target.closest("[data-add]");
      if (row) add({ condition: row.dataset.add });
    });
  };
  Object.assign(window.condviz, { bars, examples, finder });
})();
