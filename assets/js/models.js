// Models tab: a click on a name opens its card, one on a heading sorts.
(() => {
  "use strict";
  const models = (element, open, arrange) => {
    element.addEventListener("click", (event) => {
      const found = event.target.closest("[data-card], [data-sort], [data-metric]");
      if (!found) return;
      const { card, sort, metric } = found.dataset;
      if (card) open({ name: card });
      else arrange({ by: sort || "", metric: metric || "" });
      if (card && matchMedia("(max-width: 860px)").matches) document.querySelector("#cv-models-head")?.scrollIntoView({ block: "start" });
    });
  };
  Object.assign(window.condviz, { models });
})();
