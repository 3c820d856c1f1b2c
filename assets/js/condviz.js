// Behaviour of the page that Python cannot reach: keyboard, copying, theme, address bar. Markup comes from Python, escaped.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  let states = {};

  const showStates = () => {
    for (const label of $$(".cv-picker [data-model]")) {
      // A variant such as csr@hidden stands where its model stands.
      const name = label.dataset.model;
      label.dataset.phase = states[name] || states[name.split("@")[0]] || "ready";
    }
  };

  // ---- result: cells, pickers, exports -------------------------------------------------------------------------
  const select = (element, cell) => {
    for (const other of $$(".cv-cell", element)) {
      other.setAttribute("aria-pressed", String(other === cell));
      other.tabIndex = other === cell ? 0 : -1;
    }
  };

  const move = (element, cell, key) => {
    const rows = $$("tr[data-model]", element).filter((row) => row.querySelector(".cv-cell"));
    const row = cell.closest("tr");
    const cells = $$(".cv-cell", row);
    let y = rows.indexOf(row);
    let x = cells.indexOf(cell);
    if (key === "ArrowRight") x += 1;
    else if (key === "ArrowLeft") x -= 1;
    else if (key === "ArrowDown") y += 1;
    else if (key === "ArrowUp") y -= 1;
    else if (key === "Home") x = 0;
    else if (key === "End") x = cells.length - 1;
    else return false;
    const next = rows[y] && $$(".cv-cell", rows[y])[x];
    if (!next) return false;
    for (const other of $$(".cv-cell", element)) other.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    return true;
  };

  const afterResult = (element) => {
    for (const picker of $$("select[data-value]", element)) picker.value = picker.dataset.value;
    if (!element.querySelector('.cv-cell[tabindex="0"]')) {
      const first = element.querySelector(".cv-cell");
      if (first) first.tabIndex = 0;
    }
    const result = element.querySelector("[data-query]");
    if (result) {
      const kept = new URLSearchParams(location.search);
      for (const key of ["s1", "s2", "c", "m", "d"]) kept.delete(key);
      const query = [result.dataset.query, kept.toString()].filter(Boolean).join("&");
      if (`?${query}` !== location.search) history.replaceState(history.state, "", `?${query}`);
    }
    document.documentElement.classList.remove("cv-opening");
  };

  const say = (element, message) => {
    const said = element.querySelector(".cv-said");
    if (said) said.textContent = message;
  };

  const offerText = (payload) => {
    let dialog = document.querySelector("dialog.cv-dialog");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "cv-dialog";
      const hint = document.createElement("p");
      hint.textContent = "This browser does not let the page copy. The text is selected: press Ctrl or Cmd + C, then Esc.";
      const area = document.createElement("textarea");
      area.readOnly = true;
      area.setAttribute("aria-label", "Text to copy");
      const close = document.createElement("button");
      close.type = "button";
      close.className = "cv-button";
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      dialog.append(hint, area, close);
      (document.querySelector(".gradio-container") || document.body).append(dialog);
    }
    const area = dialog.querySelector("textarea");
    area.value = payload;
    dialog.showModal();
    area.focus();
    area.select();
  };

  const save = (payload, name) => {
    const link = document.createElement("a");
    // The mark at the start tells spreadsheets that the file is UTF-8.
    link.href = URL.createObjectURL(new Blob(["\ufeff", payload], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const hand = async (element, name) => {
    const area = element.querySelector(`textarea[data-export="${name}"]`);
    let payload = area.value;
    if (name === "csv") {
      save(payload, "condviz.csv");
      say(element, "Saved condviz.csv");
      return;
    }
    if (name === "link") payload = `${location.origin}${location.pathname}?${payload}`;
    try {
      await navigator.clipboard.writeText(payload);
      say(element, { link: "Link copied", json: "JSON copied", python: "Python copied" }[name]);
    } catch {
      offerText(payload);
    }
  };

  const result = (element, watch, events) => {
    element.addEventListener("click", (event) => {
      const cell = event.target.closest(".cv-cell");
      if (cell) {
        select(element, cell);
        events.cell({ model: cell.dataset.model, column: Number(cell.dataset.column) });
      }
      const copy = event.target.closest("[data-copy]");
      if (copy) hand(element, copy.dataset.copy);
    });
    element.addEventListener("keydown", (event) => {
      const cell = event.target.closest(".cv-cell");
      if (cell && move(element, cell, event.key)) event.preventDefault();
    });
    element.addEventListener("change", (event) => {
      const changed = event.target.closest("[data-pick]");
      if (!changed) return;
      const picks = ["first", "second"].map((key) => element.querySelector(`[data-pick="${key}"]`));
      // Choosing what the other one has swaps the two: a condition against itself says nothing.
      for (const other of picks) if (other !== changed && other.value === changed.value) other.value = changed.dataset.value;
      const [first, second] = picks.map((select) => Number(select.value));
      events.pick({ first, second });
    });
    watch("value", () => afterResult(element));
    afterResult(element);
  };

  // ---- model picker ----------------------------------------------------------------------------------------------
  const picker = (element, props, watch, changed) => {
    const boxes = () => $$("input[data-name]", element);
    const sync = () => {
      for (const box of boxes()) box.checked = (props.value || []).includes(box.dataset.name);
      showStates();
    };
    const commit = () => {
      props.value = boxes().filter((box) => box.checked).map((box) => box.dataset.name);
      // One turn later the list is written anew, and the value has reached the component that the event sends.
      setTimeout(() => {
        showStates();
        changed();
      }, 0);
    };
    element.addEventListener("change", (event) => event.target.matches("input[data-name]") && commit());
    element.addEventListener("click", (event) => {
      const all = event.target.closest("[data-all]");
      if (!all) return;
      for (const box of boxes()) box.checked = all.dataset.all === "1";
      commit();
    });
    watch("value", sync);
    sync();
  };

  // ---- gallery, finder, models -------------------------------------------------------------------------------------
  const gallery = (element, watch, choose) => {
    element.addEventListener("click", (event) => {
      const card = event.target.closest("[data-example]");
      if (!card) return;
      choose({ id: card.dataset.example });
      const form = document.querySelector("#cv-compare");
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (form) form.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
    });
    element.addEventListener("change", (event) => {
      if (event.target.name !== "cv-grade") return;
      for (const cards of $$("[data-grade]", element)) cards.hidden = cards.dataset.grade !== event.target.value;
    });
  };

  const finder = (element, add) => {
    element.addEventListener("click", (event) => {
      const row = event.target.closest("[data-add]");
      if (row) add({ condition: row.dataset.add });
    });
  };

  const models = (element, open) => {
    element.addEventListener("click", (event) => {
      const row = event.target.closest("[data-card]");
      if (row) open({ name: row.dataset.card });
    });
  };

  const status = (element, watch) => {
    const read = () => {
      const line = element.querySelector("[data-states]");
      if (line) states = JSON.parse(line.dataset.states);
      showStates();
    };
    watch("value", read);
    read();
  };

  // ---- theme -------------------------------------------------------------------------------------------------------
  const store = {
    get: () => { try { return localStorage.getItem("condviz-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("condviz-theme", value); } catch { /* private mode: not kept */ } },
  };

  const header = (element) => {
    const button = element.querySelector("[data-theme-toggle]");
    const show = () => {
      const dark = document.body.classList.contains("dark");
      document.documentElement.style.colorScheme = dark ? "dark" : "light";
      button.setAttribute("aria-pressed", String(dark));
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    };
    const chosen = store.get();
    if (chosen && !new URLSearchParams(location.search).has("__theme")) {
      document.body.classList.toggle("dark", chosen === "dark");
    }
    button.addEventListener("click", () => {
      const dark = !document.body.classList.contains("dark");
      document.body.classList.toggle("dark", dark);
      store.set(dark ? "dark" : "light");
    });
    new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    show();
  };

  // ---- form: scoring after a pause, Enter, moving lines ---------------------------------------------------------------
  const FIELDS = "#cv-sentence1 textarea, #cv-sentence2 textarea, #cv-conditions textarea";
  const PAUSE_MS = 700;
  let timer = 0;
  const score = () => {
    clearTimeout(timer);
    timer = 0;
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

  document.addEventListener("input", (event) => {
    if (!event.target.matches?.(FIELDS)) return;
    clearTimeout(timer);
    timer = setTimeout(score, PAUSE_MS);
  });
  document.addEventListener("click", (event) => event.target.closest?.("#cv-run") && clearTimeout(timer), true);
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

  // An error below the edge of the window would be missed. Whoever is typing stays where they are. The same error again
  // changes nothing in the page, so it is shown when what caused it is asked for once more.
  const ERROR = ".cv-notice-error";
  const reveal = (error) => error?.checkVisibility() && error.scrollIntoView({ block: "nearest" });
  new MutationObserver((changes) => {
    if (document.activeElement?.matches("textarea, input")) return;
    for (const node of changes.flatMap((change) => [...change.addedNodes])) {
      reveal(node.matches?.(ERROR) ? node : node.querySelector?.(ERROR));
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("click", (event) => event.target.closest?.("button.primary") && $$(ERROR).forEach(reveal));

  // A link shows its own result, not the example of the first screen: dim that until the answer is there.
  if (["s1", "s2", "c"].some((key) => new URLSearchParams(location.search).has(key))) {
    document.documentElement.classList.add("cv-opening");
    setTimeout(() => document.documentElement.classList.remove("cv-opening"), 20000);
  }

  window.condviz = { result, picker, gallery, finder, models, status, header, hand };
})();
