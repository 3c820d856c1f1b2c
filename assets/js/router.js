// Router tab: one word lit in every strip, held by a click, moved by arrows; layers and heads follow it.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const output = () => document.querySelector("#cv-router-output");
  let held = null; // { text, word } while a click holds a word
  let lit = null;

  const place = (chip) => {
    const strips = chip.closest(".cv-strips[data-text]");
    return strips && { text: strips.dataset.text, word: chip.dataset.w };
  };
  const same = (a, b) => Boolean(a && b && a.text === b.text && a.word === b.word);
  const chipsOf = ({ text, word }) =>
    $$(`.cv-strips[data-text="${text}"] .cv-tok[data-w="${word}"]`, output());

  // ---- readout: the word's value, rank and share in every strip --------------------------------------------------------
  let hint = "";
  const readout = (chips) => {
    const line = output().querySelector(".cv-readout");
    if (!line) return;
    if (!chips.length) {
      line.textContent = hint;
      return;
    }
    const word = document.createElement("b");
    word.textContent = chips[0].firstElementChild.textContent;
    word.dir = "auto";
    line.replaceChildren(word);
    for (const chip of chips) {
      const row = chip.closest(".cv-toks");
      if (!row.dataset.short) continue;
      const part = document.createElement("span");
      part.textContent = `${row.dataset.short} ${chip.dataset.said}`;
      line.append(part);
    }
  };

  const show = (target) => {
    lit = target;
    const chips = target ? chipsOf(target) : [];
    for (const chip of $$(".cv-tok.is-lit, .cv-tok.is-held", output())) {
      chip.classList.remove("is-lit", "is-held");
      chip.setAttribute("aria-pressed", "false");
    }
    for (const chip of chips) {
      chip.classList.add("is-lit");
      chip.classList.toggle("is-held", same(held, target));
      chip.setAttribute("aria-pressed", String(same(held, target)));
    }
    readout(chips);
    paintHeads();
  };

  const hold = (target) => {
    held = same(held, target) ? null : target;
    show(held || target);
  };

  // ---- keyboard ----------------------------------------------------------------------------------------------------
  const focus = (chip) => {
    const strips = chip.closest(".cv-strips");
    for (const other of $$('.cv-tok[tabindex="0"]', strips)) other.tabIndex = -1;
    chip.tabIndex = 0;
    chip.focus();
    if (held) held = place(chip);
    show(held || place(chip));
  };

  const move = (chip, key) => {
    const row = $$(".cv-tok", chip.closest(".cv-toks"));
    const rtl = getComputedStyle(chip.closest(".cv-toks")).direction === "rtl";
    const step = { ArrowRight: rtl ? -1 : 1, ArrowLeft: rtl ? 1 : -1 }[key];
    let next = null;
    if (step) next = row[row.indexOf(chip) + step];
    else if (key === "Home") next = row[0];
    else if (key === "End") next = row[row.length - 1];
    else {
      const column = chipsOf(place(chip));
      next = column[column.indexOf(chip) + (key === "ArrowDown" ? 1 : -1)];
    }
    if (next) focus(next);
  };

  const onKey = (event) => {
    if (event.key === "Escape" && held) {
      held = null;
      show(null);
      return;
    }
    const chip = event.target.closest(".cv-tok");
    if (chip && ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
      event.preventDefault();
      move(chip, event.key);
      return;
    }
    const cell = event.target.closest(".cv-head");
    if (cell && event.key.startsWith("Arrow")) {
      event.preventDefault();
      const at = (layer, head) => output().querySelector(`.cv-head[data-layer="${layer}"][data-head="${head}"]`);
      const [layer, head] = [Number(cell.dataset.layer), Number(cell.dataset.head)];
      const next = {
        ArrowRight: at(layer, head + 1), ArrowLeft: at(layer, head - 1),
        ArrowUp: at(layer + 1, head), ArrowDown: at(layer - 1, head),
      }[event.key];
      if (next) {
        next.focus();
        choose(next);
      }
    }
  };

  // ---- layers and heads --------------------------------------------------------------------------------------------------
  let read = {};
  const heads = () => {
    const part = output() && output().querySelector(".cv-heads");
    if (!part) return null;
    // A new result is written into the old element, so what was read from it is kept only as long as its text is the same.
    if (read.text !== part.dataset.values) read = { text: part.dataset.values, values: JSON.parse(part.dataset.values) };
    const source = (part.querySelector("input[name=cv-heads]:checked") || part.querySelector("input[name=cv-heads]")).value;
    return { part, values: read.values[source], limit: Number(part.dataset.limit) };
  };

  const tint = (node, value, limit) => {
    node.dataset.sign = value / limit < 0.004 ? "zero" : "use";
    node.style.setProperty("--t", Math.min(1, value / limit).toFixed(3));
  };

  const paintHeads = () => {
    const found = heads();
    if (!found) return;
    const { part, values, limit } = found;
    const text = part.querySelector(".cv-strips").dataset.text;
    const word = lit && lit.text === text ? Number(lit.word) : -1;
    for (const cell of $$(".cv-head", part)) {
      const row = values[cell.dataset.layer][cell.dataset.head];
      const value = word >= 0 && word < row.length ? row[word] : Math.max(0, ...row);
      tint(cell, value, limit);
      cell.textContent = value.toFixed(2).replace(/^0/, "");
      cell.setAttribute("aria-label", `Layer ${Number(cell.dataset.layer) + 1}, head ${Number(cell.dataset.head) + 1}: ${value.toFixed(3)}`);
    }
  };

  const choose = (cell) => {
    const { part, values, limit } = heads();
    for (const other of $$(".cv-head", part)) {
      other.tabIndex = other === cell ? 0 : -1;
      other.setAttribute("aria-pressed", String(other === cell));
    }
    const row = values[cell.dataset.layer][cell.dataset.head];
    const chips = $$(".cv-strips .cv-tok", part);
    chips.forEach((chip, i) => {
      tint(chip, row[i], limit);
      const said = row[i].toFixed(3).replace(/^0/, "");
      chip.querySelector("small").textContent = said;
      chip.dataset.said = said;
      chip.setAttribute("aria-label", `${chip.firstElementChild.textContent}: ${said}`);
    });
    const best = row.indexOf(Math.max(...row));
    const said = part.querySelector(".cv-heads-said");
    said.textContent = `Layer ${Number(cell.dataset.layer) + 1}, head ${Number(cell.dataset.head) + 1}. ` +
      (chips[best] ? `Strongest word: ${chips[best].firstElementChild.textContent} (${row[best].toFixed(3)}).` : "");
  };

  const startHeads = () => {
    const found = heads();
    if (!found) return;
    // The most pointed head of the last layer first: that is where one routed layer sits.
    const peak = (cell) => Math.max(0, ...found.values[cell.dataset.layer][cell.dataset.head]);
    const cells = $$(`.cv-head[data-layer="${found.values.length - 1}"]`, found.part);
    choose(cells.reduce((best, cell) => (peak(cell) > peak(best) ? cell : best), cells[0]));
    paintHeads();
  };

  // ---- the address -------------------------------------------------------------------------------------------------------
  const OWN = ["t", "rs1", "rs2", "rc", "rm", "rd"];
  const setAddress = (query) => {
    const kept = new URLSearchParams(location.search);
    for (const key of OWN) kept.delete(key);
    const next = [query, kept.toString()].filter(Boolean).join("&");
    if (`?${next}` !== location.search) history.replaceState(history.state, "", next ? `?${next}` : location.pathname);
  };
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.('#cv-tabs button[role="tab"]');
    if (!tab) return;
    const result = output() && output().querySelector("[data-query]");
    setAddress(tab.textContent.trim() === "Router" && result ? result.dataset.query : "");
  });

  // ---- wiring ------------------------------------------------------------------------------------------------------------
  const start = (root) => {
    root.dataset.cvReady = "1";
    root.addEventListener("pointerover", (event) => {
      const chip = event.target.closest(".cv-tok");
      if (chip && !held) show(place(chip));
    });
    root.addEventListener("pointerout", (event) => {
      if (!held && event.target.closest(".cv-tok")) show(null);
    });
    root.addEventListener("focusin", (event) => {
      const chip = event.target.closest(".cv-tok");
      if (chip && !held) show(place(chip));
    });
    root.addEventListener("click", (event) => {
      const chip = event.target.closest(".cv-tok");
      if (chip && place(chip)) {
        focusWithoutMoving(chip);
        hold(place(chip));
      }
      const cell = event.target.closest(".cv-head");
      if (cell) choose(cell);
      const copy = event.target.closest("[data-copy]");
      if (copy) window.condviz.hand(copy.closest("#cv-router-result"), copy.dataset.copy);
    });
    root.addEventListener("change", (event) => event.target.name === "cv-heads" && startHeads());
    document.addEventListener("keydown", (event) => root.contains(event.target) && onKey(event));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && held && !root.contains(event.target)) onKey(event);
      const field = event.target.closest?.("#cv-router-sentence1, #cv-router-sentence2");
      if (field && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        document.querySelector("#cv-router-run").click();
      }
    }, true);
  };

  const focusWithoutMoving = (chip) => {
    for (const other of $$('.cv-tok[tabindex="0"]', chip.closest(".cv-strips"))) other.tabIndex = -1;
    chip.tabIndex = 0;
  };

  const router = (element, watch, send) => {
    const after = () => {
      for (const strips of $$(".cv-strips", element)) {
        const first = strips.querySelector(".cv-tok");
        if (first) first.tabIndex = 0;
      }
      for (const select of $$("select[data-set]", element)) select.value = select.dataset.value;
      if (element.querySelector(".cv-heads")) startHeads();
      const line = element.querySelector(".cv-readout");
      if (line) {
        hint = line.textContent;
        held = null;
        lit = null;
        const result = element.querySelector("[data-query]");
        if (result) setAddress(result.dataset.query);
      }
      if (held) show(held);
    };
    element.addEventListener("change", (event) => {
      const select = event.target.closest("select[data-set]");
      if (select) send({ [select.dataset.set]: Number(select.value) });
      if (event.target.name === "cv-units") send({ units: event.target.value === "tokens" ? 1 : 0 });
    });
    const root = element.closest("#cv-router-output");
    if (root && !root.dataset.cvReady) start(root);
    watch("value", after);
    after();
  };

  window.condviz.router = router;
})();
