// The Train tab: buttons of runs, one of which asks twice; focus outlives an update, and a log stays at its end.
(() => {
  "use strict";
  const ASK_MS = 4000;

  const ask = (button) => {
    if (!button.dataset.confirm || button.dataset.asked) return false;
    const label = button.textContent;
    button.dataset.asked = "1";
    button.textContent = button.dataset.confirm;
    setTimeout(() => {
      delete button.dataset.asked;
      button.textContent = label;
    }, ASK_MS);
    return true;
  };

  const train = (element, watch, send) => {
    let focused = null;
    let pressed = null;
    let focusedRun = null;  // the training that was brought into view last
    let place = null;  // of a log that somebody scrolled back; null stays at its end
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (!button || ask(button)) return;
      const { act, run } = button.dataset;
      send({ act, run });
    });
    // An update may put a new button in the place of the one that is being pressed: then there is no click.
    element.addEventListener("pointerdown", (event) => { pressed = event.target.closest("[data-act]"); });
    element.addEventListener("pointerup", (event) => {
      const { act, run } = pressed?.dataset ?? {};
      const button = event.target.closest("[data-act]");
      if (act && !pressed.isConnected && button?.dataset.act === act && button.dataset.run === run) button.click();
    });
    element.addEventListener("focusin", (event) => {
      const button = event.target.closest("[data-act]");
      focused = button && `[data-act="${CSS.escape(button.dataset.act)}"][data-run="${CSS.escape(button.dataset.run)}"]`;
    });
    element.addEventListener("focusout", (event) => { if (event.relatedTarget) focused = null; });
    element.addEventListener("scroll", ({ target }) => {
      if (!target.matches(".cv-train-log")) return;
      place = target.scrollTop + target.clientHeight > target.scrollHeight - 8 ? null : target.scrollTop;
    }, true);
    const scroll = () => {
      const log = element.querySelector(".cv-train-log");
      if (log) log.scrollTop = place ?? log.scrollHeight;
    };
    watch("value", () => {
      const fresh = element.querySelector("[data-focus]");
      if (fresh && fresh.dataset.run !== focusedRun) {
        focusedRun = fresh.dataset.run;
        fresh.scrollIntoView({ block: "start", behavior: "smooth" });
      }
      scroll();
      if (focused && document.activeElement === document.body) element.querySelector(focused)?.focus();
    });
  };

  Object.assign(window.condviz, { train });
})();
