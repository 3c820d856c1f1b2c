// Errors tab: buttons in markup, rows by keyboard, tags and notes kept in this browser, files to save. Markup comes escaped.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const table = () => document.querySelector("#cv-err-table .cv-err-table");

  // ---- tags and notes: one entry of the browser's storage per dataset, by the number of the row ------------------------
  const place = () => `condviz-remarks:${table()?.dataset.digest ?? ""}`;
  const remarks = () => {
    try { return JSON.parse(localStorage.getItem(place())) ?? {}; } catch { return {}; }
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
    const all = remarks();
    for (const row of $$("#cv-err-table tr[data-number]")) {
      const entry = all[row.dataset.number];
      const chips = (entry?.tags ?? []).map((name) => {
        const chip = document.createElement("span");
        chip.className = "cv-chip";
        chip.textContent = name;
        return chip;
      });
      if (entry?.note) {
        const mark = document.createElement("span");
        mark.className = "cv-chip";
        mark.textContent = "note";
        mark.title = entry.note;
        chips.push(mark);
      }
      row.querySelector(".cv-err-tags")?.replaceChildren(...chips);
    }
    const detail = document.querySelector("#cv-err-detail .cv-err-detail");
    if (!detail) return;
    const entry = all[detail.dataset.number];
    for (const button of $$("[data-tag]", detail)) {
      button.setAttribute("aria-pressed", String((entry?.tags ?? []).includes(button.dataset.tag)));
    }
    const note = detail.querySelector("[data-note]");
    if (document.activeElement !== note) note.value = entry?.note ?? "";
  };

  // ---- events -----------------------------------------------------------------------------------------------------------
  const say = (message) => {
    const said = document.querySelector("#cv-err-rows-head .cv-said");
    if (said) said.textContent = message;
  };

  const copyLink = async () => {
    const link = `${location.origin}${location.pathname}?${table()?.dataset.query ?? ""}`;
    try {
      await navigator.clipboard.writeText(link);
      say("Link copied");
    } catch {
      say(link);
    }
  };

  const errors = (element, watch, send) => {
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (button) send({ ...button.dataset });
      const tag = event.target.closest("[data-tag]");
      if (tag) toggle(tag.closest("[data-number]").dataset.number, tag.dataset.tag);
      const kind = event.target.closest("[data-export]")?.dataset.export;
      if (kind === "link") copyLink();
      else if (kind) send({ act: "export", kind, remarks: JSON.stringify(remarks()) });
    });
    element.addEventListener("change", (event) => {
      const chosen = event.target.closest("[data-change]");
      if (chosen) send({ act: chosen.dataset.change, [chosen.dataset.change]: chosen.value });
    });
    element.addEventListener("input", (event) => {
      if (event.target.matches("[data-note]")) remember(event.target.closest("[data-number]").dataset.number, { note: event.target.value });
    });
    watch("value", showRemarks);
  };

  // ---- the table: one row is current; arrows move it, digits tag it, n writes a note --------------------------------------
  const OPEN_AFTER_MS = 180; // rows that are only passed over are not opened
  let timer = 0;
  let resume = 0; // which end to go on from after a page was turned by keyboard

  const errorRows = (element, watch, send) => {
    errors(element, watch, send);
    const rows = () => $$("tr[data-row]", element);
    const open = (row, focus) => {
      for (const other of rows()) {
        other.setAttribute("aria-selected", String(other === row));
        other.tabIndex = other === row ? 0 : -1;
      }
      if (focus) row.focus();
      clearTimeout(timer);
      timer = setTimeout(() => send({ act: "row", row: row.dataset.row }), focus ? OPEN_AFTER_MS : 0);
    };
    const turn = (step) => {
      const button = $$("[data-act=page]", element)[step < 0 ? 0 : 1];
      if (!button || button.disabled) return;
      resume = step;
      button.click();
    };
    const keys = (event) => {
      const row = event.target.closest("tr[data-row]");
      if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
      if (step) {
        const next = rows()[rows().indexOf(row) + step];
        if (next) open(next, true);
        else turn(step);
      } else if (event.key === "Enter") {
        open(row, false);
      } else if (/^[1-9]$/.test(event.key)) {
        const name = $$("#cv-err-detail [data-tag]")[Number(event.key) - 1]?.dataset.tag;
        if (name) toggle(row.dataset.number, name);
      } else if (event.key === "n") {
        document.querySelector("#cv-err-detail [data-note]")?.focus();
      } else return;
      event.preventDefault();
    };
    element.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-row]");
      if (row && !event.target.closest("button, a, select")) open(row, false);
    });
    element.addEventListener("keydown", keys);
    const refresh = () => {
      const all = rows();
      if (all.length && !all.some((row) => row.tabIndex === 0)) all[0].tabIndex = 0;
      if (resume && all.length) open(resume > 0 ? all[0] : all.at(-1), true);
      resume = 0;
      showRemarks();
      const query = table()?.dataset.query;
      if (query && element.offsetParent && `?${query}` !== location.search) history.replaceState(history.state, "", `?${query}`);
    };
    watch("value", refresh);
    refresh();
  };

  // Esc in the note goes back to the row.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches?.("#cv-err-detail [data-note]")) {
      document.querySelector('#cv-err-table tr[aria-selected="true"]')?.focus();
    }
  });

  // ---- files: text from the page, saved by the browser --------------------------------------------------------------------
  const errorFile = (element, watch) => {
    watch("value", () => {
      const area = element.querySelector("textarea[data-file]");
      if (!area) return;
      const name = area.dataset.file;
      const parts = name.endsWith(".csv") ? ["\ufeff", area.value] : [area.value]; // the mark tells spreadsheets UTF-8
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(parts, { type: name.endsWith(".csv") ? "text/csv;charset=utf-8" : "text/html;charset=utf-8" }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      area.remove();
      say(`Saved ${name}`);
    });
  };

  Object.assign(window.condviz, { errors, errorRows, errorFile });
})();
