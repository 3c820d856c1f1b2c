// Models tab: a click on a name opens its card, one on a heading sorts.
(() => {
  "use strict";
  const models = (element, open, arrange) => {
    element.addEventListener("click", (event) => {
      const found = event.target.closest("[data-card], [data-sort], [data-metric]");
      if (!found) return;
      const { card, sort, metric } = found.dataset;
      if (!card) {
        arrange({ by: sort || "", metric: metric || "" });
        return;
      }
      open({ name: card });
      const head = document.querySelector("#cv-models-head");
      const { top, bottom } = head.getBoundingClientRect();
      if (top < 0 || bottom > innerHeight) head.scrollIntoView({ block: "start" });
    });
  };
  Object.assign(window.condviz, { models });
})();
