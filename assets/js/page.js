// What every page shares and Python cannot reach: address and history, theme, sections, copying, tour, present mode.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const storeIn = (kind) => ({
    get: (key) => { try { return window[kind].getItem(`condviz-${key}`); } catch { return null; } },
    set: (key, value) => { try { window[kind].setItem(`condviz-${key}`, value); } catch { /* private mode: not kept */ } },
  });
  const [store, tabStore] = [storeIn("localStorage"), storeIn("sessionStorage")];
  const when = (selector, act) => {
    const found = document.querySelector(selector);
    if (found) return act(found);
    const observer = new MutationObserver(() => {
      const late = document.querySelector(selector);
      if (late) { observer.disconnect(); act(late); }
    });
    observer.observe(document.documentElement, { childList: true, subtree: true });
  };

  // ---- address: that of the result, and what is chosen in it on top ------------------------------------------------------
  // `open` lists the open sections; a result names its further keys in data-keys, a section their values in data-noted.
  const params = () => new URLSearchParams(location.search);
  /** Return the query string of a relative link. */
  const queryOf = (link) => link?.split("?")[1] ?? "";
  let shown, example;  // query of what the page shows, and of what it showed first
  let keys = [];  // further keys of its address
  let last = location.search;
  const set = (query, push) => {
    last = query.size ? `?${query}` : "";
    if (last !== location.search) history[push ? "pushState" : "replaceState"]({ ...(push ? {} : history.state), condviz: true }, "", location.pathname + last);  // gradio sets <base>, which "?" alone would follow
  };
  /** Return a link with those keys of the address that it lacks. */
  const merge = (link, kept = ["open", "__theme", ...keys]) => {
    const next = new URLSearchParams(link);
    const own = new Set(next.keys());
    for (const [key, value] of params()) if (kept.includes(key) && !own.has(key)) next.append(key, value);
    return next;
  };
  /** Keep in the address what was chosen: {key: value or values}; an empty one is left out. */
  const note = (chosen) => {
    const next = pending || shown === undefined ? params() : merge(shown);
    for (const [key, values] of Object.entries(chosen)) {
      next.delete(key);
      for (const value of [values].flat()) if (value) next.append(key, value);
    }
    set(next);
  };
  const readNote = (element) => {
    const chosen = {};
    for (const [key, value] of new URLSearchParams(element.dataset.noted)) (chosen[key] ||= []).push(value);
    note(chosen);
  };

  // The first result after a link, or after Back, is that of the address: it keeps what the address says about it.
  const OWN = new Set(["open", "__theme"]);
  let pending, stateful, wanted;
  let again = false;  // something is computed; what comes next may be the same as before
  // What is typed until the answer to a link has filled in the form, it would overwrite; what is opened until its result
  // is there, it would fold.
  const HOLD = { form: [".cv-form textarea", "readOnly"], sections: [".cv-section", "inert"] };
  const FOLD_MS = 500;
  const HOLD_MS = 15000;  // at most: a server that has gone does not answer
  const held = new Set();
  let letGo;
  const hold = (on, parts = Object.keys(HOLD)) => {
    for (const part of parts) {
      held[on ? "add" : "delete"](part);
      const [selector, property] = HOLD[part];
      for (const element of $$(selector)) element[property] = on;
    }
    document.documentElement.classList.toggle("cv-waiting", held.has("form"));
  };
  const opened = () => (params().get("open") || "").split(".").filter(Boolean);
  const expect = () => {
    pending = true;
    stateful = [...params().keys()].some((key) => !OWN.has(key));
    hold(stateful);
    clearTimeout(letGo);
    if (stateful) letGo = setTimeout(hold, HOLD_MS, false);
    wanted = opened();
    unfolded.clear();
    folded.clear();
  };
  // The parts of an answer are drawn one after the other: it may fold a section after its result has come, or so long
  // before it that the address has lost the section.
  const [unfolded, folded, byHand] = [new Set(), new Set(), new Set()];
  const openWanted = () => {
    unfolded.clear();
    for (const part of wanted.splice(0)) {
      unfolded.add(part);
      const found = `.cv-section#cv-${view()}-${CSS.escape(part)} > button.label-wrap, #cv-page details[data-fold="${CSS.escape(part)}"]`;
      when(found, (head) => setTimeout(() => (head.matches("details") ? (head.open = true) : openSection(head.parentElement, false))));
    }
  };
  const readLink = (element) => {
    const link = queryOf(element.dataset.link);
    if (element.parentElement?.closest(".cv-dimmed")) return void (again = true);
    const before = shown;
    const fresh = before !== link || again || element.dataset.asked;
    if (before === link) again = false;
    // What a page shows first is its own example: only what a visitor asked for changes the address.
    const first = before === undefined && !element.dataset.asked;
    const answers = pending && fresh && (!first || !stateful);
    shown = link;
    if (fresh && !pending && before !== undefined) {  // what was open is of the answer before, which folded it: it is asked anew
      wanted = [...new Set([...opened(), ...folded])];
      folded.clear();
      openWanted();
    }
    keys = (element.dataset.keys || "").split(" ");
    if (first) example = link;
    // Where the server keeps what was uploaded for it: for Back, Forward and reload, in no address that could be copied.
    const keepOwn = () => history.replaceState({ ...history.state, own: element.dataset.own }, "");
    if (before === link && !answers) return void keepOwn();
    if (answers) {
      pending = false;
      hold(false);
      openWanted();
    } else if (!first) typed = false;
    if (first) return;
    // A new result forgets what was chosen in the one before; the sections that it folds leave the address as they fold.
    const kept = answers || element.dataset.keep ? undefined : ["open", "__theme"];
    set(merge(link, kept), before !== undefined && !answers && !element.dataset.replace);
    keepOwn();
  };
  const withOwn = () => {
    const query = params();
    for (const [key, value] of new URLSearchParams(history.state?.own)) query.set(key, value);
    return query;
  };

  // What was typed and not asked for yet is asked for when its page is opened again: view -> box -> key of its address.
  const BOXES = {
    words: { sentence: "s1", sentence2: "s2", conditions: "c" }, search: { query: "q", conditions: "c" },
    map: { sentences: "s", conditions: "c" },
  };
  const MOST_TYPED = 4000;  // characters; more no address takes
  let typed = false;
  document.addEventListener("input", (event) => { typed ||= event.target.matches?.("#cv-page textarea"); }, true);
  const addTyped = (query) => {
    const boxes = Object.entries(BOXES[view()] ?? {}).map(([box, key]) => [key, document.querySelector(`#cv-${view()}-${box} textarea`)?.value]);
    if (!typed || boxes.some(([, text]) => text?.length > MOST_TYPED)) return;
    for (const [key, text] of boxes) {
      if (text === undefined) continue;
      query.delete(key);
      for (const line of key === "c" ? text.split("\n") : [text]) if (line.trim()) query.append(key, line.trim());
      if (key === "s") query.set("from", "texts");
    }
  };

  // ---- from page to page: each opens again as it was left in this sitting, and some texts go along ------------------------
  const view = () => document.querySelector("[data-page]")?.dataset.page;
  const left = () => { try { return JSON.parse(sessionStorage.getItem("condviz-left")) || {}; } catch { return {}; } };
  // Loaded again, or gone back to, a page asks for what was uploaded to it, which its address does not tell.
  const asked = new URLSearchParams(left()[location.pathname.split("/").pop() || "compare"]);
  const secret = [...asked].filter(([, value]) => value.startsWith("upload-")).map(([key]) => key);
  const open = (query) => `${[...query].filter(([key]) => !secret.includes(key)).sort()}`;
  const lacks = secret.length && !`${params()}`.includes("=upload-") && open(asked) === open(params());
  const own = history.state?.own;
  if ((lacks || own) && ["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type)) location.replace(`${location.pathname}?${own ? withOwn() : asked}`);
  const leave = () => {
    const query = params();
    // For this sitting alone: where the server keeps what was uploaded, which no copied link tells.
    for (const { dataset } of $$("[data-own]")) for (const [key, value] of new URLSearchParams(dataset.own)) query.set(key, value);
    addTyped(query);
    const pages = { ...left(), [view()]: `${query}` };
    if (GIVER[view()]) pages.taken = { ...pages.taken, [view()]: `${textsOf(GIVER[view()])}` };
    try { sessionStorage.setItem("condviz-left", JSON.stringify(pages)); } catch { /* private mode */ }
  };
  // The two views of a pair hand it to each other.
  const GIVER = { compare: "words", words: "compare" };
  /** Return the pair that a page was left with; none where it showed its own example, or one sentence. */
  const textsOf = (page) => {
    const texts = new URLSearchParams([...new URLSearchParams(left()[page])].filter(([key]) => ["s1", "s2", "c"].includes(key)));
    return texts.has("s1") && texts.has("s2") ? texts : new URLSearchParams();
  };
  const lead = () => {
    const [theme, carried] = [params().get("__theme"), textsOf("compare")];
    for (const link of $$("[data-to]")) {
      const to = link.dataset.to;
      const given = GIVER[to] ? textsOf(GIVER[to]) : "";
      const anew = ![left().taken?.[to] ?? "", `${textsOf(to)}`, ""].includes(`${given}`);  // the page has not had it
      const query = new URLSearchParams(link.hasAttribute("aria-current") ? "" : anew ? given : left()[to]);
      query.delete("__theme");
      if (theme) query.set("__theme", theme);
      link.href = link.getAttribute("href").split("?")[0] + (query.size ? `?${query}` : "");
    }
    for (const link of $$("[data-carried]")) {
      const texts = [...carried].filter(([key]) => key !== "s2" || view() === "words");
      link.hidden = !carried.size;
      link.href = `${view()}?${new URLSearchParams(texts)}`;
    }
  };
  window.addEventListener("pagehide", leave);
  document.addEventListener("click", (event) => {  // a link takes along what the page shows by now
    if (event.target.closest?.("[data-to]")) { leave(); lead(); }
  }, true);
  // The server forgets a page that was left: one that a browser kept would only look alive.
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());

  // ---- folded sections: the open ones are part of the address ------------------------------------------------------------
  const name = (part) => part.dataset.fold || part.id.split("-").slice(2).join("-");
  const head = (section) => section.querySelector("button.label-wrap");
  const isOpen = (part) => part.open ?? head(part)?.classList.contains("open") ?? false;
  const openSection = (section, scroll = true) => {
    if (!isOpen(section)) head(section)?.click();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (scroll) section.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
  };
  const noteOpen = () => {
    const parts = $$(".cv-section, #cv-page details[data-fold]").filter((part) => part.offsetParent && isOpen(part));
    note({ open: parts.map(name).join(".") });
  };
  document.addEventListener("click", (event) => {
    const jump = event.target.closest?.("[data-open]");
    if (jump) {
      event.preventDefault();
      const section = document.getElementById(jump.dataset.open);
      if (section) openSection(section);
    }
  });
  // Once the section is open: in a busy browser that takes longer than any pause that one would choose.
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest?.(".cv-section > button.label-wrap");
    if (!pressed) return;
    const part = name(pressed.parentElement);
    if (event.isTrusted) {
      byHand.add(part);
      for (const set of [unfolded, folded]) set.delete(part);
    }
    const toggled = new MutationObserver(() => { toggled.disconnect(); noteOpen(); });
    toggled.observe(pressed, { attributeFilter: ["class"] });
  }, true);
  // What a new result folds is noted in its own entry of the history: the one before keeps what was open.
  new MutationObserver((changes) => {
    if (pending) return;
    const heads = changes.map(({ target }) => target).filter((target) => target.matches(".cv-section > button.label-wrap"));
    for (const { parentElement: part } of heads) {
      if (byHand.delete(name(part)) || isOpen(part)) continue;
      if (unfolded.delete(name(part))) openSection(part, false);
      else folded.add(name(part));
    }
    if (heads.length) setTimeout(noteOpen, FOLD_MS);
  }).observe(document.documentElement, { subtree: true, attributeFilter: ["class"] });
  document.addEventListener("toggle", (event) => event.target.matches?.("#cv-page details[data-fold]") && noteOpen(), true);
  expect();
  setTimeout(() => { if (wanted.length && !stateful) openWanted(); }, 1500);

  // ---- copying and saving: [data-copy="name"] beside a text [data-export="name"] ---------------------------------------
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
  /** Return the address of a result with what is chosen in it. */
  const whole = (link) => {
    const query = queryOf(link) === shown ? merge(shown) : new URLSearchParams(queryOf(link));
    return new URL(link.split("?")[0] + (query.size ? `?${query}` : ""), document.baseURI).href;
  };
  const hand = async (element, name) => {
    const area = element.querySelector(`[data-export="${name}"]`);
    let payload = area.value ?? area.innerText;
    if (name === "csv") {
      // The mark at the start tells spreadsheets that the file is UTF-8.
      save(["\ufeff", payload], "text/csv;charset=utf-8", area.dataset.file);
      say(element, `Saved ${area.dataset.file}`);
      return;
    }
    if (name === "link") payload = whole(payload);
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
  // To the answer, from further down; who sees it already stays.
  const rise = () => {
    const page = document.querySelector("#cv-page");
    if (page.getBoundingClientRect().top < 0) page.scrollIntoView({ block: "start" });
  };
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
        if (node.matches(".cv-dimmed")) again = true;
        if (held.size && node.matches("#cv-page :is(.cv-dimmed, .cv-notice)")) hold(false, node.matches(ERROR) ? undefined : ["form"]);
        if (held.size) hold(true, [...held]);
        if (node.dataset.link !== undefined) readLink(node);
        $$("[data-link]", node).forEach(readLink);
        [...(node.matches("[data-noted]") ? [node] : []), ...$$("[data-noted]", node)].forEach(readNote);
        if (document.activeElement?.matches("textarea, input")) continue;
        reveal(node.matches(ERROR) ? node : node.querySelector(ERROR));
      }
    }
  }).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-link", "data-noted", "data-asked"] });
  document.addEventListener("click", (event) => event.target.closest?.("button.primary") && $$(ERROR).forEach(reveal));

  const MOVE_MS = 800;  // between what a step of the tour says and what it moves
  // ---- header: theme, present mode, tour; Back and Forward ----------------------------------------------------------------
  const header = (element, navigate) => {
    document.title = `${element.querySelector("[data-page]").dataset.title} · CondViz`;
    const unknown = params().get("t") || params().get("tab");
    if (unknown) {
      element.querySelector("bdi").textContent = unknown.slice(0, 40);
      element.querySelector("#cv-page-notice").hidden = false;
    }
    lead();
    element.querySelector(".cv-nav [aria-current]").scrollIntoView({ block: "nearest", inline: "center" });  // on a phone
    $$("[data-link]").forEach(readLink);
    // Within the page; without state in the address, its own example comes back.
    window.addEventListener("popstate", () => {
      last = location.search;
      expect();
      navigate({ query: !stateful && example ? `?${example}` : `?${withOwn()}` });
    });
    theme(element.querySelector("[data-theme-toggle]"));
    present(element);
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

  const present = (element) => {
    const buttons = $$("[data-present]", element);
    const leave = element.querySelector("[data-leave]");
    const [code, image] = [leave.querySelector("[data-code]"), leave.querySelector("img")];
    const showCode = (on) => {
      code.setAttribute("aria-pressed", String(on));
      image.hidden = !on;
      const link = location.href.length > 1000 ? location.origin + location.pathname : location.href;
      if (on) image.src = new URL(`cv-static/qr.svg?to=${encodeURIComponent(link)}`, document.baseURI).href;
    };
    const toggle = () => {
      const on = document.documentElement.classList.toggle("cv-present");
      tabStore.set("present", on ? "on" : "");
      buttons[0].setAttribute("aria-pressed", String(on));
      leave.hidden = !on;
      showCode(false);
      window.dispatchEvent(new Event("resize"));
    };
    for (const button of buttons) button.addEventListener("click", toggle);
    if (tabStore.get("present")) toggle();  // from page to page, until it is left
    code.addEventListener("click", () => showCode(image.hidden));
    document.addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      if ((key !== "p" && (key !== "escape" || leave.hidden)) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("textarea, input, select, [contenteditable], dialog")) return;
      if (key === "escape" && !image.hidden) showCode(false);
      else toggle();
    });
  };

  // The tour goes through three pages, and moves something real on each.
  const tour = (element) => {
    const dialog = element.querySelector("dialog.cv-tour");
    const welcome = element.querySelector(".cv-welcome");
    const steps = $$("section", dialog);
    const [back, next] = ["[data-back]", "[data-next]"].map((selector) => dialog.querySelector(selector));
    let at = 0;
    const show = (index) => {
      at = index;
      const { toPage, do: part, look } = steps[at].dataset;
      store.set("tour-at", toPage && toPage !== view() ? String(at) : "");
      if (toPage && toPage !== view()) return void element.querySelector(`[data-to="${toPage}"]`).click();
      const [moves, own] = [steps[at].querySelector("[data-moves]"), typed || [...params().keys()].some((key) => !OWN.has(key))];
      if (moves) moves.hidden = own;  // a pair of one's own stays, and so does what is being typed
      if (part && !(moves && own)) when(part, () => setTimeout(() => document.querySelector(part)?.click(), MOVE_MS));
      // On a phone the tour lies over the lower half.
      if (look && matchMedia("(max-width: 560px)").matches) when(look, () => setTimeout(() => document.querySelector(look).scrollIntoView(), MOVE_MS));
      if (!dialog.open) dialog.show();
      steps.forEach((step, position) => { step.hidden = position !== at; });
      dialog.querySelector("[data-step]").textContent = String(at + 1);
      back.disabled = at === 0;
      next.textContent = at === steps.length - 1 ? "Done" : "Next";
    };
    const done = () => { store.set("tour", "seen"); welcome.hidden = true; };
    element.addEventListener("click", (event) => {
      if (event.target.closest("[data-tour]")) { done(); show(0); }
      if (event.target.closest("[data-no-tour]")) done();
    });
    back.addEventListener("click", () => show(at - 1));
    next.addEventListener("click", () => (at === steps.length - 1 ? dialog.close() : show(at + 1)));
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
    document.addEventListener("keydown", (event) => event.key === "Escape" && dialog.open && dialog.close());
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") next.click();
      if (event.key === "ArrowLeft" && at) show(at - 1);
    });
    if (store.get("tour-at")) setTimeout(() => show(Number(store.get("tour-at"))), 0);
    // Where the tour begins: in other views it would lie over what somebody came for.
    welcome.hidden = view() !== "compare" || store.get("tour") === "seen" || location.search.length > 1;
  };

  // What is fired while the answer before is on its way waits, and gradio (6.31) then fires the first again, not what was
  // fired last. So all that a component fires under a name is one object, which says what was fired last.
  const latest = (trigger) => {
    const fired = {};
    return (name, data = {}) => {
      const kept = (fired[name] ||= {});
      for (const key of Object.keys(kept)) delete kept[key];
      trigger(name, Object.assign(kept, data));
    };
  };

  window.condviz = { header, latest, lead, note, params, queryOf, rise, save };
})();
