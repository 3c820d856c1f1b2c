// What every tab shares and Python cannot reach: address and history, theme, sections, copying, tour, present mode.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const store = {
    get: (key) => { try { return localStorage.getItem(`condviz-${key}`); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(`condviz-${key}`, value); } catch { /* private mode: not kept */ } },
  };
  const when = (selector, act) => {
    const found = document.querySelector(selector);
    if (found) return act(found);
    const observer = new MutationObserver(() => {
      const late = document.querySelector(selector);
      if (late) { observer.disconnect(); act(late); }
    });
    observer.observe(document.documentElement, { childList: true, subtree: true });
  };

  // ---- address: each tab has its link; the page keeps `open` (sections) and what belongs to gradio ----------------------
  const links = {};
  let ids = {};
  const params = () => new URLSearchParams(location.search);
  const activeTab = () => {
    const button = document.querySelector('#cv-tabs [role="tab"][aria-selected="true"]');
    return button ? ids[button.textContent.trim()] : undefined;
  };
  const write = (query, push, sections) => {
    const kept = params();
    const next = new URLSearchParams(query);
    // A new result closes the sections, unless it is the one that the link asked for.
    for (const key of sections ? ["open", "__theme"] : ["__theme"]) if (kept.has(key) && !next.has(key)) next.set(key, kept.get(key));
    const address = `?${next}`;
    if (address === location.search) return;
    history[push ? "pushState" : "replaceState"]({ condviz: true }, "", address);
  };
  const OWN = new Set(["t", "open", "__theme"]);
  const stateful = [...params().keys()].some((key) => !OWN.has(key));
  // The first result after a link is that link's own: it replaces the address instead of adding to the history.
  let settled = !stateful;
  let wanted = (params().get("open") || "").split(".").filter(Boolean);
  const openWanted = (tab) => {
    const found = wanted;
    wanted = [];
    for (const section of found) {
      when(`#cv-${CSS.escape(tab)}-${CSS.escape(section)} button.label-wrap`, (button) => setTimeout(() => openSection(button.parentElement, false), 100));
    }
  };
  const readLink = (element) => {
    const { tab, link } = element.dataset;
    const before = links[tab];
    links[tab] = link;
    if (before === link) return;
    // Sections of a link open once its own result is there, not over the example of the first screen.
    const awaited = wanted.length > 0;
    if (awaited && tab === (params().get("t") || "compare") && (before !== undefined || !stateful || element.dataset.asked)) openWanted(tab);
    const asked = params().get("t") || (params().has("s1") ? "compare" : "");
    // What a tab shows at first is its own example: only what a visitor asked for changes the address.
    if (before === undefined && !element.dataset.asked) return;
    if (activeTab() === tab) write(link, before !== undefined && asked === tab && settled && !element.dataset.replace, awaited || element.dataset.keep);
    settled = true;
  };
  const title = () => {
    const button = document.querySelector('#cv-tabs [role="tab"][aria-selected="true"]');
    if (button) document.title = `${button.textContent.trim()} · CondViz`;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.('#cv-tabs [role="tab"]');
    if (!button || !event.isTrusted) return;
    const tab = ids[button.textContent.trim()];
    if (!tab) return;
    const next = new URLSearchParams(links[tab] || `t=${tab}`);
    const theme = params().get("__theme");
    if (theme) next.set("__theme", theme);
    if (`?${next}` !== location.search) history.pushState({ condviz: true }, "", `?${next}`);
    setTimeout(title, 0);
  }, true);

  // ---- folded sections: an index on top of them, the open ones in the address -------------------------------------------
  const sections = () => $$(".cv-section").filter((section) => section.offsetParent);
  const name = (section) => section.id.split("-").slice(2).join("-");
  const head = (section) => section.querySelector("button.label-wrap");
  const isOpen = (section) => head(section)?.classList.contains("open") ?? false;
  const openSection = (section, scroll = true) => {
    if (!isOpen(section)) head(section)?.click();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (scroll) section.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
  };
  document.addEventListener("click", (event) => {
    const jump = event.target.closest?.("[data-open]");
    if (jump) {
      event.preventDefault();
      const section = document.getElementById(jump.dataset.open);
      if (section) openSection(section);
    }
    const section = event.target.closest?.(".cv-section > button.label-wrap")?.parentElement;
    if (!section) return;
    setTimeout(() => {
      const open = sections().filter(isOpen).map(name);
      const next = params();
      if (open.length) next.set("open", open.join(".")); else next.delete("open");
      history.replaceState(history.state, "", `?${next}`);
    }, 50);
  });
  setTimeout(() => { if (wanted.length && !stateful) openWanted(params().get("t") || "compare"); }, 1500);

  // ---- copying and saving: [data-copy="name"] beside a textarea[data-export="name"] ---------------------------------------
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
      save(payload, area.dataset.file || "condviz.csv");
      say(element, `Saved ${area.dataset.file || "condviz.csv"}`);
      return;
    }
    if (name === "link") payload = `${location.origin}${location.pathname}?${payload}`;
    try {
      await navigator.clipboard.writeText(payload);
      say(element, { link: "Link copied", json: "JSON copied", python: "Python copied" }[name] || "Copied");
    } catch {
      offerText(payload);
    }
  };
  document.addEventListener("click", (event) => {
    const copy = event.target.closest?.(".cv-exports [data-copy]");
    if (copy) hand(copy.closest(".cv-exports"), copy.dataset.copy);
  });

  // ---- what comes into the page: links of results, errors below the edge of the window ------------------------------------
  // An error below the edge would be missed. Whoever is typing stays where they are. The same error again changes nothing
  // in the page, so it is shown when what caused it is asked for once more.
  const ERROR = ".cv-notice-error";
  const reveal = (error) => error?.checkVisibility() && error.scrollIntoView({ block: "nearest" });
  new MutationObserver((changes) => {
    for (const change of changes) {
      // gradio changes markup in place where it can, so a new link may be a changed attribute.
      if (change.type === "attributes") readLink(change.target);
      for (const node of change.addedNodes) {
        if (node.nodeType !== 1) continue;
        if (node.dataset.link !== undefined) readLink(node);
        $$("[data-link]", node).forEach(readLink);
        if (document.activeElement?.matches("textarea, input")) continue;
        reveal(node.matches(ERROR) ? node : node.querySelector(ERROR));
      }
    }
  }).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-link"] });
  document.addEventListener("click", (event) => event.target.closest?.("button.primary") && $$(ERROR).forEach(reveal));

  // ---- header: theme, present mode, tour; Back and Forward ----------------------------------------------------------------
  const header = (element, navigate) => {
    ids = JSON.parse(element.querySelector("[data-tabs]").dataset.tabs);
    $$("[data-link]").forEach(readLink);
    window.addEventListener("popstate", () => navigate({ query: location.search }));
    when('#cv-tabs [role="tab"][aria-selected="true"]', (row) => {
      title();
      new MutationObserver(title).observe(row.parentElement, { attributes: true, subtree: true, attributeFilter: ["aria-selected"] });
    });
    theme(element.querySelector("[data-theme-toggle]"));
    present(element.querySelector("[data-present]"));
    tour(element);
    // On a phone, also one that has been turned, the notes at the end of the page are folded.
    const wide = matchMedia("(min-width: 861px)");
    const fold = () => { for (const part of $$("[data-wide-open]")) part.open = wide.matches; };
    when(".cv-footer", fold);
    wide.addEventListener("change", fold);
  };

  const theme = (button) => {
    const show = () => {
      const dark = document.body.classList.contains("dark");
      document.documentElement.style.colorScheme = dark ? "dark" : "light";
      button.setAttribute("aria-pressed", String(dark));
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    };
    const chosen = params().get("__theme") || store.get("theme");
    if (chosen === "dark" || chosen === "light") document.body.classList.toggle("dark", chosen === "dark");
    button.addEventListener("click", () => {
      const dark = document.body.classList.toggle("dark");
      store.set("theme", dark ? "dark" : "light");
      const next = params();
      if (next.has("__theme")) {
        next.set("__theme", dark ? "dark" : "light");
        history.replaceState(history.state, "", `?${next}`);
      }
    });
    new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    show();
  };

  const present = (button) => {
    const toggle = () => {
      const on = document.documentElement.classList.toggle("cv-present");
      button.setAttribute("aria-pressed", String(on));
      window.dispatchEvent(new Event("resize"));
    };
    button.addEventListener("click", toggle);
    document.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "p" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("textarea, input, select, [contenteditable], dialog")) return;
      toggle();
    });
  };

  const tour = (element) => {
    const dialog = element.querySelector("dialog.cv-tour");
    const welcome = element.querySelector(".cv-welcome");
    const steps = $$("section", dialog);
    const [back, next] = ["[data-back]", "[data-next]"].map((selector) => dialog.querySelector(selector));
    let at = 0;
    const show = (index) => {
      at = index;
      steps.forEach((step, position) => { step.hidden = position !== at; });
      dialog.querySelector("[data-step]").textContent = String(at + 1);
      back.disabled = at === 0;
      next.textContent = at === steps.length - 1 ? "Done" : "Next";
    };
    const done = () => { store.set("tour", "seen"); welcome.hidden = true; };
    element.addEventListener("click", (event) => {
      if (event.target.closest("[data-tour]")) { show(0); dialog.showModal(); done(); }
      if (event.target.closest("[data-no-tour]")) done();
    });
    back.addEventListener("click", () => show(at - 1));
    next.addEventListener("click", () => (at === steps.length - 1 ? dialog.close() : show(at + 1)));
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") next.click();
      if (event.key === "ArrowLeft" && at) show(at - 1);
    });
    welcome.hidden = store.get("tour") === "seen" || location.search.length > 1;
  };

  // ---- menus of models show whether a model is ready ------------------------------------------------------------------------
  let states = {};
  const status = (element, watch) => {
    const read = () => {
      const line = element.querySelector("[data-states]");
      if (line) states = JSON.parse(line.dataset.states);
      window.dispatchEvent(new CustomEvent("condviz-states", { detail: states }));
    };
    watch("value", read);
    read();
  };

  window.condviz = { header, status, hand, save, say, when, states: () => states };
})();
