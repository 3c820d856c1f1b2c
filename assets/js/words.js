// The Words tab: a word is lit in every line, its values under all conditions beside it; layers and heads.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  let held = null;
  const tip = document.createElement("div");
  tip.className = "cv-word-tip";
  tip.setAttribute("role", "status");

  // ---- a word and its peers ---------------------------------------------------------------------------------------------
  const line = (word) => word.closest(".cv-line");
  const peers = (word) => $$(`.cv-line[data-place="${line(word).dataset.place}"] .cv-token[data-word="${word.dataset.word}"]`)
    .filter((other) => line(other).dataset.units === line(word).dataset.units);
  const place = (word) => {
    const box = word.getBoundingClientRect();
    const width = Math.min(tip.offsetWidth, innerWidth - 16);
    tip.style.left = `${scrollX + Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    const above = box.bottom + tip.offsetHeight + 12 > innerHeight && box.top > tip.offsetHeight + 12;
    tip.style.top = `${scrollY + (above ? box.top - tip.offsetHeight - 6 : box.bottom + 6)}px`;
  };
  const tell = (word) => {
    const [title, ...values] = word.dataset.said.split("\n");
    const name = document.createElement("b");
    name.textContent = word.firstElementChild.textContent;
    name.dir = "auto";
    const lines = (values.length ? values : [title]).map((text) => {
      const row = document.createElement("span");
      const at = text.lastIndexOf(": ");
      const condition = document.createElement("em");
      condition.textContent = at < 0 ? "" : text.slice(0, at);
      row.append(condition, at < 0 ? text : ` ${text.slice(at + 2)}`);
      return row;
    });
    tip.replaceChildren(name, ...(values.length ? [Object.assign(document.createElement("small"), { textContent: title })] : []), ...lines);
    (document.querySelector(".gradio-container") || document.body).append(tip);
    place(word);
  };
  const clear = () => {
    for (const word of $$(".cv-token.is-lit")) {
      word.classList.remove("is-lit", "is-held");
      word.setAttribute("aria-pressed", "false");
    }
    tip.remove();
  };
  const show = (word) => {
    clear();
    if (!word?.isConnected) return;
    for (const other of peers(word)) {
      other.removeAttribute("title");
      other.classList.add("is-lit");
      other.classList.toggle("is-held", held === word);
      other.setAttribute("aria-pressed", String(held === word));
    }
    tell(word);
  };
  const release = () => { held = null; clear(); };
  /** Keep the held word in the address: its position in the first sentence. */
  const noteWord = () => {
    const first = held && line(held).dataset.place === "0" && !line(held).dataset.units;
    condviz.note({ word: first ? String(Number(held.dataset.word) + 1) : "" });
  };
  const hold = (word) => {
    held = held === word ? null : word;
    show(word);
    noteWord();
  };
  const letGo = () => {
    const noted = held;
    release();
    if (noted) noteWord();
  };

  const token = (event) => event.target.closest?.(".cv-token");
  document.addEventListener("pointerover", (event) => { if (token(event) && !held && event.pointerType !== "touch") show(token(event)); });
  document.addEventListener("pointerout", (event) => { if (token(event) && !held) clear(); });
  document.addEventListener("focusin", (event) => { if (token(event) && !held && token(event).matches(":focus-visible")) show(token(event)); });
  document.addEventListener("focusout", (event) => { if (token(event) && !held) clear(); });
  document.addEventListener("click", (event) => {
    if (token(event)) hold(token(event));
    else if (held && event.isTrusted && !event.target.closest?.(".cv-word-tip")) letGo();
  });

  // ---- keyboard: one stop for each line, arrows inside ------------------------------------------------------------------
  const step = (word, key) => {
    const row = $$(".cv-token", line(word));
    const rtl = getComputedStyle(line(word)).direction === "rtl";
    const turn = { ArrowRight: rtl ? -1 : 1, ArrowLeft: rtl ? 1 : -1 }[key];
    if (turn) return row[row.indexOf(word) + turn];
    if (key === "Home") return row[0];
    if (key === "End") return row.at(-1);
    const column = peers(word).filter((other) => other.offsetParent);
    return column[column.indexOf(word) + (key === "ArrowDown" ? 1 : -1)];
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return held || tip.isConnected ? letGo() : undefined;
    const word = token(event);
    if (!word) return headKey(event);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      hold(word);
    } else if (/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key)) {
      event.preventDefault();
      const next = step(word, event.key);
      if (!next) return;
      for (const other of $$('.cv-token[tabindex="0"]', line(next))) other.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      if (held) {
        held = next;
        noteWord();
      }
      show(next);
    }
  });
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("#cv-words-sentence, #cv-words-sentence2, #cv-words-conditions");
    if (!field || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (field.id === "cv-words-conditions" && !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    document.querySelector(field.id === "cv-words-sentence2" ? "#cv-words-both" : "#cv-words-run").click();
  }, true);

  // ---- running text: the chosen condition and the held word are part of the address -------------------------------------
  const running = (element, watch) => {
    watch("value", () => {
      release();
      // A new result is written into the old elements, whose state would stay.
      for (const input of $$(".cv-conditions input", element)) input.checked = input.hasAttribute("checked");
      setTimeout(() => {
        const at = Number(condviz.params().get("word")) - 1;
        const word = element.querySelector(`:not(.cv-dimmed) > .cv-result .cv-token[data-word="${at}"]`);
        if (word) hold(word);
      }, 0);
    });
    element.addEventListener("change", (event) => {
      if (event.target.closest("[data-link]")) condviz.note({ at: event.target.value });
    });
  };

  // ---- layers and heads ----------------------------------------------------------------------------------------------------
  const table = (part) => {
    const source = part.querySelector("input:checked").value;
    return { rows: JSON.parse(part.dataset.values)[source], limit: Number(part.dataset.limit) };
  };
  const shade = (node, value, limit) => node.style.setProperty("--v", Math.min(1, value / limit).toFixed(3));
  const format = (value, digits) => value.toFixed(digits).replace(/^0/, "");
  const noteHead = (cell) => condviz.note({ head: cell ? `${Number(cell.dataset.layer) + 1}.${Number(cell.dataset.head) + 1}` : "" });
  const choose = (cell) => {
    const part = cell.closest(".cv-heads");
    const { rows, limit } = table(part);
    const row = rows[cell.dataset.layer][cell.dataset.head];
    for (const other of $$(".cv-head", part)) {
      other.tabIndex = other === cell ? 0 : -1;
      other.setAttribute("aria-pressed", String(other === cell));
    }
    $$(".cv-token", part).forEach((word, i) => {
      shade(word, row[i], limit);
      word.dataset.said = format(row[i], 3);
      word.setAttribute("aria-label", `${word.firstElementChild.textContent}: ${word.dataset.said}`);
      const shown = word.querySelector("i");
      if (shown) shown.textContent = row[i] >= 0.005 ? format(row[i], 2) : "";
    });
    const best = row.indexOf(Math.max(...row));
    const word = $$(".cv-token", part)[best];
    part.querySelector('[data-testid="heads-said"]').textContent =
      `Layer ${Number(cell.dataset.layer) + 1}, head ${Number(cell.dataset.head) + 1}: ` +
      (word ? `most on “${word.firstElementChild.textContent}” (${row[best].toFixed(3)}).` : "no words.");
  };
  const paint = (part) => {
    const { rows, limit } = table(part);
    const cells = $$(".cv-head", part);
    const peak = (cell) => Math.max(0, ...rows[cell.dataset.layer][cell.dataset.head]);
    for (const cell of cells) {
      shade(cell, peak(cell), limit);
      cell.textContent = format(peak(cell), 2);
    }
    const [layer, head] = (condviz.params().get("head") || "").split(".").map((number) => number - 1);
    const noted = cells.find((cell) => Number(cell.dataset.layer) === layer && Number(cell.dataset.head) === head);
    if (noted) return choose(noted);
    // The sharpest head of the last layer first: that is where one routed layer sits.
    const last = cells.filter((cell) => Number(cell.dataset.layer) === rows.length - 1);
    if (last.length) choose(last.reduce((best, cell) => (peak(cell) > peak(best) ? cell : best)));
  };
  const headKey = (event) => {
    const cell = event.target.closest?.(".cv-head");
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (!cell || !move) return;
    event.preventDefault();
    const at = [Number(cell.dataset.layer) + move[0], Number(cell.dataset.head) + move[1]];
    const next = cell.closest("table").querySelector(`[data-layer="${at[0]}"][data-head="${at[1]}"]`);
    if (!next) return;
    next.focus();
    choose(next);
    noteHead(next);
  };
  const heads = (element, watch) => {
    const start = () => {
      for (const part of $$(".cv-heads", element)) {
        const source = part.querySelector(`input[value="${CSS.escape(condviz.params().get("from") || "")}"]`);
        if (source) source.checked = true;
        paint(part);
      }
    };
    element.addEventListener("click", (event) => {
      const cell = event.target.closest(".cv-head");
      if (!cell) return;
      choose(cell);
      noteHead(cell);
    });
    element.addEventListener("change", (event) => {
      condviz.note({ from: event.target.value });
      noteHead(null);
      paint(event.target.closest(".cv-heads"));
    });
    watch("value", () => setTimeout(start, 0));
    start();
  };

  Object.assign(window.condviz, { running, heads });
})();
