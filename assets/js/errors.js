// The Errors tab: buttons in markup, reading by keyboard, tags and notes kept in this browser, files to save.
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- tags and notes: one entry of the browser's storage per table, by the number of the row ---------------------------
  const place = () => `condviz-remarks:${$(".cv-err-result[data-digest]")?.dataset.digest ?? ""}`;
  const remarks = () => {
    try { return JSON.parse(localStorage.getItem(place())) ?? {}; } catch { return {}; }
  };
  const say = (message) => {
    const said = $("#cv-err-save .cv-said");
    if (said) said.textContent = message;
  };
  const remember = (number, change) => {
    const all = remarks();
    const entry = { tags: [], note: "", ...all[number], ...change };
    if (entry.tags.length || entry.note) all[number] = entry;
    else delete all[number];
    try { localStorage.setItem(place(), JSON.stringify(all)); } catch { say("This browser keeps no tags: its storage is full or switched off."); }
    showRemarks();
  };
  const toggle = (number, name) => {
    const tags = remarks()[number]?.tags ?? [];
    remember(number, { tags: tags.includes(name) ? tags.filter((tag) => tag !== name) : [...tags, name] });
  };
  const showRemarks = () => {
    const detail = $("#cv-err-row .cv-err-row");
    if (!detail) return;
    const entry = remarks()[detail.dataset.number];
    for (const button of $$("[data-tag]", detail)) {
      button.setAttribute("aria-pressed", String((entry?.tags ?? []).includes(button.dataset.tag)));
    }
    const note = $("[data-note]", detail);
    if (document.activeElement !== note) note.value = entry?.note ?? "";
  };

  /** Buttons that carry what they stand for: the first of the names that a clicked button has goes to Python. */
  const errors = (element, names, send) => {
    element.addEventListener("click", (event) => {
      for (const name of names) {
        const button = event.target.closest(`button[data-${name}]`);
        if (!button || button.disabled) continue;
        // What was pressed far below changes what stands above.
        if (name === "filter") $("#cv-err-result")?.scrollIntoView({ block: "nearest" });
        return send({ name, value: button.dataset[name], remarks: name === "save" ? JSON.stringify(remarks()) : "" });
      }
    });
  };

  // A list, or a card, of which the top is shown.
  document.addEventListener("click", (event) => {
    event.target.closest(".cv-err-more")?.closest("#cv-err-slices, #cv-err-row")?.toggleAttribute("data-whole");
  });

  // ---- the reading pane ---------------------------------------------------------------------------------------------------
  let focus = false; // a row that was reached by keyboard keeps it
  const errorRow = (element, watch, send) => {
    const turn = (step) => {
      const button = $(`[data-turn="${step}"]`, element);
      if (button && !button.disabled) send({ step });
    };
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-turn]");
      if (button) turn(Number(button.dataset.turn));
      const tag = event.target.closest("[data-tag]");
      if (tag) toggle(tag.closest("[data-number]").dataset.number, tag.dataset.tag);
    });
    element.addEventListener("input", (event) => {
      if (event.target.matches("[data-note]")) remember(event.target.closest("[data-number]").dataset.number, { note: event.target.value });
    });
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const row = $(".cv-err-row", element);
      if (event.target.matches("[data-note]")) {
        if (event.key === "Escape") row.focus();
        return;
      }
      const step = { ArrowDown: 1, ArrowRight: 1, j: 1, ArrowUp: -1, ArrowLeft: -1, k: -1 }[event.key];
      if (step) {
        focus = true;
        turn(step);
      } else if (/^[1-9]$/.test(event.key)) {
        const name = $$("[data-tag]", element)[Number(event.key) - 1]?.dataset.tag;
        if (name) toggle(row.dataset.number, name);
      } else if (event.key === "n") {
        $("[data-note]", element)?.focus();
      } else return;
      event.preventDefault();
    });
    watch("value", () => {
      showRemarks();
      if (focus) $(".cv-err-row", element)?.focus({ preventScroll: true });
      focus = false;
    });
    showRemarks();
  };

  // ---- files: text from the page, saved by the browser --------------------------------------------------------------------
  const errorFile = (element, watch) => {
    watch("value", () => {
      const area = $("textarea[data-file]", element);
      if (!area) return;
      const name = area.dataset.file;
      const csv = name.endsWith(".csv");
      const parts = csv ? ["\ufeff", area.value] : [area.value]; // the mark tells spreadsheets UTF-8
      condviz.save(parts, `${csv ? "text/csv" : "text/html"};charset=utf-8`, name);
      area.remove();
      say(`Saved ${name}`);
    });
  };

  Object.assign(window.condviz, { errors, errorRow, errorFile });
})();
