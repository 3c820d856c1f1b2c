// Links tab: the search of entities, rows that open, definitions on hover, the address. Markup comes from Python, escaped.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- search: a combobox whose list comes from the server ------------------------------------------------------------
  const PAUSE_MS = 120;

  class Search {
    constructor(element, props, server, choose) {
      Object.assign(this, { element, props, server, choose, at: -1, asked: 0, timer: 0 });
      this.field = element.querySelector("input");
      this.list = element.querySelector("[role=listbox]");
      this.field.addEventListener("input", () => {
        this.props.value = { id: "", text: this.field.value };
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.ask(this.field.value), PAUSE_MS);
      });
      this.field.addEventListener("focus", () => {
        this.field.select();
        this.ask("");
      });
      this.field.addEventListener("blur", () => this.close());
      this.field.addEventListener("keydown", (event) => this.key(event));
      // mousedown, not click: the field must not lose the focus before the choice is made.
      this.list.addEventListener("mousedown", (event) => {
        event.preventDefault();
        const option = event.target.closest("[role=option]");
        if (option) this.take(option);
      });
    }

    show() {
      this.field.value = this.props.value?.text ?? "";
    }

    async ask(text) {
      const turn = ++this.asked;
      let found = [];
      try {
        found = await this.server.find_entities({ graph: this.props.graph, text });
      } catch {
        return; // the button still works, and says what is wrong
      }
      // Answers may overtake each other, and the field may have been left meanwhile.
      if (turn === this.asked && document.activeElement === this.field) this.fill(found);
    }

    fill(found) {
      this.at = -1;
      this.list.replaceChildren(...found.map((entity, i) => {
        const option = document.createElement("li");
        option.id = `cv-links-option-${i}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.dataset.id = entity.id;
        option.dataset.text = entity.name;
        for (const [kind, content] of [["b", entity.label], ["small", entity.description]]) {
          const part = document.createElement(kind);
          part.textContent = content;
          part.dir = "auto";
          option.append(part);
        }
        return option;
      }));
      this.list.hidden = !found.length;
      this.field.setAttribute("aria-expanded", String(found.length > 0));
      this.field.removeAttribute("aria-activedescendant");
    }

    close() {
      this.asked += 1;
      clearTimeout(this.timer);
      this.fill([]);
    }

    move(step) {
      const options = $$("[role=option]", this.list);
      if (!options.length) return void this.ask(this.field.value);
      this.at = (this.at + step + options.length) % options.length;
      options.forEach((option, i) => option.setAttribute("aria-selected", String(i === this.at)));
      options[this.at].scrollIntoView({ block: "nearest" });
      this.field.setAttribute("aria-activedescendant", options[this.at].id);
    }

    take(option) {
      this.props.value = { id: option.dataset.id, text: option.dataset.text };
      this.commit();
    }

    commit() {
      this.close();
      this.show();
      // One turn later, so that the value has reached the component that the event sends.
      setTimeout(() => this.choose(), 0);
    }

    key(event) {
      if (event.isComposing) return;
      if (event.key === "ArrowDown") this.move(1);
      else if (event.key === "ArrowUp") this.move(this.at < 0 ? 0 : -1);
      else if (event.key === "Escape") this.close();
      else if (event.key === "Enter") {
        const option = $$("[role=option]", this.list)[this.at];
        if (option) this.take(option);
        else this.commit();
      } else return;
      event.preventDefault();
    }
  }

  const entitySearch = (element, props, watch, server, choose) => {
    const search = new Search(element, props, server, choose);
    watch("value", () => search.show());
    search.show();
  };

  // ---- definitions on hover ----------------------------------------------------------------------------------------------
  const tip = document.createElement("div");
  tip.className = "cv-links-tip";
  tip.setAttribute("role", "tooltip");
  tip.dir = "auto";
  tip.hidden = true;

  const explain = (target) => {
    const host = target?.closest?.("[data-definition]");
    if (!host) {
      tip.hidden = true;
      return;
    }
    tip.textContent = host.dataset.definition;
    host.closest("#cv-links-output").append(tip);
    tip.hidden = false;
    const box = host.getBoundingClientRect();
    const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
    const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.transform = `translate(${left}px, ${below ? box.bottom + 6 : box.top - tip.offsetHeight - 6}px)`;
  };

  // ---- the address: only while this tab is open and its query was asked for ----------------------------------------------
  const OWN = ["t", "lg", "lm", "le", "lr", "li", "lk"];
  const setAddress = (query) => {
    const kept = new URLSearchParams(location.search);
    for (const key of OWN) if (key !== "t" || query || kept.get("t") === "links") kept.delete(key);
    const next = [query, kept.toString()].filter(Boolean).join("&");
    if (`?${next}` !== location.search) history.replaceState(history.state, "", next ? `?${next}` : location.pathname);
  };
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.('#cv-tabs button[role="tab"]');
    if (!tab) return;
    const result = document.querySelector("#cv-links-result [data-query]");
    setAddress(tab.textContent.trim() === "Links" && result ? result.dataset.query : "");
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);

  const links = (element, watch, send) => {
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (button) send({ ...button.dataset });
      const copy = event.target.closest("[data-copy]");
      if (copy) window.condviz.hand(element, copy.dataset.copy);
    });
    for (const name of ["pointerover", "focusin"]) element.addEventListener(name, (event) => explain(event.target));
    for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, () => explain(null));
    const after = () => {
      explain(null);
      const result = element.querySelector("[data-query]");
      if (result && element.offsetParent) setAddress(result.dataset.query);
    };
    watch("value", after);
    after();
  };

  Object.assign(window.condviz, { entitySearch, links });
})();
