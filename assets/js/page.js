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

  // ---- address: each tab has its link; what is chosen in its result comes on top ----------------------------------------
  // `open` lists the open sections; a result names its further keys in data-keys, a section their values in data-noted.
  const links = {};  // tab -> link of what it shows
  const examples = {};  // tab -> link of what it showed first
  const keys = {};  // tab -> further keys of its address
  const addresses = {};  // tab -> its address when it was left
  let ids = {};
  let last = location.search;
  const params = () => new URLSearchParams(location.search);
  const tabButton = () => document.querySelector('#cv-tabs [role="tab"][aria-selected="true"]');
  const activeTab = () => ids[tabButton()?.textContent.trim()];
  /** Return the tab that the address asks for, by its id or by its label. */
  const asked = () => {
    const name = params().get("t") || Object.values(ids)[0] || "";
    return ids[name.charAt(0).toUpperCase() + name.slice(1)] || name;
  };
  const set = (query, push) => {
    last = `?${query}`;
    if (last !== location.search) history[push ? "pushState" : "replaceState"]({ condviz: true }, "", last);
  };
  /** Return a link with those keys of an address that it lacks and that belong to its tab. */
  const merge = (tab, link, address, kept = ["open", "__theme", ...(keys[tab] || [])]) => {
    const next = new URLSearchParams(link);
    const own = new Set(next.keys());
    for (const [key, value] of new URLSearchParams(address)) if (kept.includes(key) && !own.has(key)) next.append(key, value);
    return next;
  };
  /** Keep in the address of a tab what was chosen in it: {key: value or values}; an empty one is left out. */
  const note = (tab, chosen) => {
    const here = tab === activeTab();
    const address = here ? location.search : addresses[tab] || "";
    const next = (pending && tab === asked()) || !links[tab] ? new URLSearchParams(address) : merge(tab, links[tab], address);
    if (!next.has("t")) next.set("t", tab);
    for (const [key, values] of Object.entries(chosen)) {
      next.delete(key);
      for (const value of [values].flat()) if (value) next.append(key, value);
    }
    if (here) set(next); else addresses[tab] = `?${next}`;
  };
  const readNote = (element) => {
    const chosen = {};
    for (const [key, value] of new URLSearchParams(element.dataset.noted)) (chosen[key] ||= []).push(value);
    note(element.dataset.tab || tabOf(element.closest(".cv-section")), chosen);
  };

  // The first result after a link, or after Back, is that of the address: it keeps what the address says about it.
  const OWN = new Set(["t", "open", "__theme"]);
  let pending, stateful, wanted;
  const again = new Set();  // tabs that compute; what they show next may be the same as before
  const expect = () => {
    pending = true;
    stateful = [...params().keys()].some((key) => !OWN.has(key));
    wanted = (params().get("open") || "").split(".").filter(Boolean);
  };
  const openWanted = (tab) => {
    for (const part of wanted.splice(0)) {
      const found = `#cv-${CSS.escape(tab)}-${CSS.escape(part)} > button.label-wrap, .tabitem details[data-fold="${CSS.escape(part)}"]`;
      when(found, (head) => setTimeout(() => (head.matches("details") ? (head.open = true) : openSection(head.parentElement, false)), 200));
    }
  };
  const readLink = (element) => {
    const { tab, link } = element.dataset;
    if (!tab) return;
    if (element.parentElement?.closest(".cv-dimmed")) return void again.add(tab);
    const before = links[tab];
    const fresh = before !== link || again.delete(tab) || element.dataset.asked;
    // What a tab shows first is its own example: only what a visitor asked for changes the address.
    const example = before === undefined && !element.dataset.asked;
    const answers = pending && tab === asked() && fresh && (!example || !stateful);
    links[tab] = link;
    keys[tab] = (element.dataset.keys || "").split(" ");
    if (example) examples[tab] = link;
    if (before === link && !answers) return;
    if (answers) {
      pending = false;
      openWanted(tab);
    }
    if (example) return;
    if (activeTab() !== tab) return void delete addresses[tab];
    // A new result closes the sections and forgets what was chosen in the one before.
    const kept = answers || element.dataset.keep ? undefined : ["__theme"];
    set(merge(tab, link, location.search, kept), before !== undefined && asked() === tab && !answers && !element.dataset.replace);
  };
  const title = () => {
    if (tabButton()) document.title = `${tabButton().textContent.trim()} · CondViz`;
  };
  document.addEventListener("click", (event) => {
    // On a narrow screen some tabs are in a menu.
    const button = event.target.closest?.('#cv-tabs [role="tab"], #cv-tabs .overflow-dropdown button');
    const tab = button && event.isTrusted && ids[button.textContent.trim()];
    if (!tab) return;
    addresses[activeTab()] = location.search;
    const link = links[tab] === examples[tab] ? "" : links[tab];
    set(merge(tab, addresses[tab] || link || `t=${tab}`, location.search, ["__theme"]), true);
    setTimeout(title, 0);
  }, true);
  /** Open what the address asks for after Back or Forward. */
  const moved = (navigate) => {
    addresses[activeTab()] = last;
    last = location.search;
    expect();
    const tab = asked();
    if (addresses[tab] !== last) return navigate({ query: !stateful && examples[tab] ? `?${examples[tab]}` : last });
    // It still shows what it showed when it was left.
    pending = false;
    const button = document.querySelector(`#cv-tabs [role="tab"][data-tab-id="${CSS.escape(tab)}"]`);
    if (button) button.click(); else navigate({ query: `?t=${tab}` });
  };

  // ---- folded sections: the open ones are part of the address ------------------------------------------------------------
  const tabOf = (section) => section.id.split("-")[1];
  const name = (part) => part.dataset.fold || part.id.split("-").slice(2).join("-");
  const head = (section) => section.querySelector("button.label-wrap");
  const isOpen = (part) => part.open ?? head(part)?.classList.contains("open") ?? false;
  const openSection = (section, scroll = true) => {
    if (!isOpen(section)) head(section)?.click();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (scroll) section.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
  };
  const noteOpen = (tab) => {
    const parts = $$(".cv-section, .tabitem details[data-fold]").filter((part) => part.offsetParent && isOpen(part));
    note(tab, { open: parts.map(name).join(".") });
  };
  document.addEventListener("click", (event) => {
    const jump = event.target.closest?.("[data-open]");
    if (jump) {
      event.preventDefault();
      const section = document.getElementById(jump.dataset.open);
      if (section) openSection(section);
    }
    const section = event.target.closest?.(".cv-section > button.label-wrap")?.parentElement;
    if (section) setTimeout(() => noteOpen(tabOf(section)), 50);
  });
  document.addEventListener("toggle", (event) => event.target.matches?.(".tabitem details[data-fold]") && noteOpen(activeTab()), true);
  expect();
  setTimeout(() => { if (wanted.length && !stateful) openWanted(asked()); }, 1500);

  // ---- copying and saving: [data-copy="name"] beside a textarea[data-export="name"] ---------------------------------------
  const say = (element, message) => {
    const said = element.querySelector(".cv-said");
    if (said) said.textContent = message;
  };
  const offerText = (payload) => {
    const dialog = document.querySelector("dialog.cv-dialog");
    const area = dialog.querySelector("textarea");
    area.value = payload;
    dialog.showModal();
    area.focus();
    area.select();
  };
  const save = (parts, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  /** Return the link of a result with what is chosen in it. */
  const whole = (link) => {
    const tab = new URLSearchParams(link).get("t");
    return link === links[tab] && tab === activeTab() ? merge(tab, link, location.search) : link;
  };
  const hand = async (element, name) => {
    const area = element.querySelector(`textarea[data-export="${name}"]`);
    let payload = area.value;
    if (name === "csv") {
      // The mark at the start tells spreadsheets that the file is UTF-8.
      save(["\ufeff", payload], "text/csv;charset=utf-8", area.dataset.file);
      say(element, `Saved ${area.dataset.file}`);
      return;
    }
    if (name === "link") payload = `${location.origin}${location.pathname}?${whole(payload)}`;
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
      if (change.type === "attributes") (change.attributeName === "data-noted" ? readNote : readLink)(change.target);
      for (const node of change.addedNodes) {
        if (node.nodeType !== 1) continue;
        if (node.matches(".cv-dimmed")) again.add(activeTab());
        if (node.dataset.link !== undefined) readLink(node);
        $$("[data-link]", node).forEach(readLink);
        [...(node.matches("[data-noted]") ? [node] : []), ...$$("[data-noted]", node)].forEach(readNote);
        if (document.activeElement?.matches("textarea, input")) continue;
        reveal(node.matches(ERROR) ? node : node.querySelector(ERROR));
      }
    }
  }).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-link", "data-noted", "data-asked"] });
  document.addEventListener("click", (event) => event.target.closest?.("button.primary") && $$(ERROR).forEach(reveal));

  // ---- header: theme, present mode, tour; Back and Forward ----------------------------------------------------------------
  const header = (element, navigate) => {
    ids = JSON.parse(element.querySelector("[data-tabs]").dataset.tabs);
    $$("[data-link]").forEach(readLink);
    window.addEventListener("popstate", () => moved(navigate));
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
        set(next);
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

  window.condviz = { header, note, params, save };
})();
