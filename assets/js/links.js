// Links tab: a click on an answer, an example or a further question asks it.
(() => {
  "use strict";
  const links = (element, ask) => {
    element.addEventListener("click", (event) => {
      const found = event.target.closest("[data-entity], [data-ask]");
      if (!found) return;
      const { entity, ask: relation, direction } = found.dataset;
      ask({ entity: entity || "", relation: relation || "", direction: direction || "" });
      document.querySelector("#cv-tabs")?.scrollIntoView({ block: "start" });
    });
  };
  Object.assign(window.condviz, { links });
})();
