// The Learn tab: links between steps, keys, controls of figures; what a figure does in the browser alone is in
// condviz.lessonFigures[NAME](root), called whenever its markup has changed.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const figures = {};
  let follow = () => {};
  let early;
  let compute = (asked) => { early = asked; };  // a picture can stand before the part that asks for its figures
  let moved = false;
  let fresh = false;
  let waiting;
  let late;

  const step = () => document.querySelector("#cv-learn-top [data-step]");
  // What was set in a step is there again when one comes back to it, in the same tab.
  const KEPT = "condviz-lessons";
  const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
  const placeIn = (query) => {
    const asked = new URLSearchParams(query);
    return asked.has("lesson") && !asked.has("view") ? `${asked.get("lesson")} ${asked.get("step") ?? 1}` : "";
  };
  const isOwn = (query) => /[?&]p\./.test(query);
  const keep = (query) => {
    const asked = placeIn(query);
    if (asked) sessionStorage.setItem(KEPT, JSON.stringify({ ...kept(), [asked]: isOwn(query) ? query : undefined }));
  };
  const withOwn = (query) => isOwn(query) ? query : kept()[placeIn(query)] ?? query;
  const go = (query) => {
    moved = fresh = true;
    clearTimeout(waiting);
    follow({ query: withOwn(query) });
  };
  const ask = (query, quiet) => compute({ query, quiet });
  const values = (form) => {
    const { lesson, step: number } = step().dataset;
    const query = new URLSearchParams({ lesson, step: number });
    for (const field of $$("[name]", form)) {
      // An empty value would be left out, and the lesson's own come back.
      query.set(`p.${field.name}`, field.type === "checkbox" ? field.checked : field.value || " ");
    }
    return `?${query}`;
  };
  const change = (form, delay) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (!form.isConnected) return;
      fresh = true;
      document.querySelector("#cv-learn-picture section")?.classList.add("cv-dimmed");
      ask(values(form), false);
    }, delay);
  };

  // A note says what there is to find: it opens once something was done in its step.
  const acted = new Set();
  const place = () => { const { lesson, step: number } = step().dataset; return `${lesson} ${number}`; };
  const tell = () => {
    const parts = "#cv-learn-top form, #cv-learn-picture .cv-step-picture :is(button, input, summary, [data-arrow])";
    const open = acted.has(place()) || isOwn(location.search) || !document.querySelector(parts);
    for (const after of $$("#cv-learn-picture .cv-step-after")) after.open = open;
  };
  const acts = { click: "button, summary", input: "*", pointerdown: "[data-arrow]", keydown: "[data-arrow]" };
  for (const [type, parts] of Object.entries(acts)) {
    document.addEventListener(type, (event) => {
      const part = event.target.closest?.(`:is(.cv-step-form, .cv-step-picture, .cv-step-after) :is(${parts})`);
      if (!part || event.key === "Tab") return;
      acted.add(place());
      if (!part.matches(".cv-step-after *")) tell();  // that summary opens by itself
    });
  }

  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest?.(":is(#cv-learn-top, #cv-learn-picture, #cv-learn-foot) a[data-go]");
    if (event.target.closest?.("[data-print]")) print();
    // A part of the picture that sets a control.
    const part = event.target.closest?.("#cv-learn-picture [data-set]");
    const field = part && document.querySelector(`#cv-learn-top [name="${part.dataset.set}"]`);
    if (field) {
      field.value = part.dataset.value;
      change(field.form, 0);
    }
    if (!link) return;
    event.preventDefault();
    go(`?${condviz.queryOf(link.getAttribute("href"))}`);
  });
  document.addEventListener("keydown", (event) => {
    const turn = { ArrowRight: "[data-next]", ArrowLeft: "[data-back]" }[event.key];
    if (!turn || !step() || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest?.("textarea, input, select, [data-arrows], dialog")) return;
    document.querySelector(`#cv-learn-foot ${turn}`)?.click();
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.(".cv-step-form");
    if (!form) return;
    const shown = event.target.closest("label")?.querySelector("output");
    if (shown) shown.textContent = event.target.value;
    if (!event.target.matches("textarea")) change(form, 120);
    else if (form.hasAttribute("data-follow")) change(form, 600);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches?.(".cv-step-form")) return;
    event.preventDefault();
    change(event.target, 0);
  });
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.(".cv-control-text textarea");
    if (!field || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    change(field.form, 0);
  });

  // Text and picture of a step can part: on a busy server a figure that was asked for before its step was left comes
  // in over the new one, and gradio may drop one of the updates of an answer, or that to the address.
  const settle = (delay = 1000) => {
    clearTimeout(late);
    late = setTimeout(() => {
      const link = condviz.queryOf(document.querySelector("#cv-learn-picture section")?.dataset.link);
      const shown = new URLSearchParams(link);
      const address = new URLSearchParams(location.search);
      const { lesson, step: number } = step()?.dataset ?? {};
      let query;
      if (lesson && (shown.get("lesson") !== lesson || shown.get("step") !== number)) query = `?lesson=${lesson}&step=${number}`;
      else if (!lesson && shown.has("step")) query = `?${link}`;
      else if (address.has("lesson") && !shown.has("lesson")) query = location.search;
      if (!query) return;
      follow({ query: withOwn(query) });
      settle(4000);
    }, delay);
  };

  const learn = (element, onGo, onAsk, watch) => {
    [follow, compute] = [onGo, onAsk];
    if (early) compute(early);
    early = undefined;
    watch("value", () => {
      // gradio writes new markup into old elements, whose state would stay.
      for (const form of $$("form", element)) form.reset();
      for (const part of $$("details", element)) part.open = false;
      for (const root of $$(".cv-sheet [data-figure=plane]", element)) figures.plane(root);
      settle();
      if (!moved) return;
      moved = false;
      element.querySelector(".cv-step-title, h2")?.focus({ preventScroll: true });
      document.querySelector("#cv-page").scrollIntoView({ block: "start" });
    });
  };
  const learnPicture = (element, watch) => {
    const show = () => {
      const place = element.querySelector("section");
      place?.classList.remove("cv-dimmed");
      if (fresh) {  // a choice or an opened answer belonged to what was asked before
        for (const choice of $$(".cv-choice input", element)) choice.checked = false;
        for (const part of $$("details", element)) part.open = false;
      }
      fresh = false;
      for (const after of $$(".cv-step-after", element)) after.hidden = false;
      if (step()) tell();
      if (place) keep(`?${condviz.queryOf(place.dataset.link)}`);
      for (const root of $$("[data-figure]", element)) figures[root.dataset.figure]?.(root);
      if (place?.dataset.asks === "true") ask(`?${condviz.queryOf(place.dataset.link)}`, true);
      settle();
    };
    watch("value", () => setTimeout(show, 0));
    show();
  };

  const lessonChanged = () => change(document.querySelector(".cv-step-form"), 300);
  Object.assign(window.condviz, { learn, learnPicture, lessonChanged, lessonFigures: figures });
})();
