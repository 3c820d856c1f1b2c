// Links tab: a click on an answer, an example or a further question asks it; so does Enter, with what was typed.
(() => {
  "use strict";
  const links = (element, ask) => {
    element.addEventListener("click", (event) => {
      const found = event.target.closest("[data-entity], [data-ask]");
      if (!found) return;
      const { entity, ask: relation, direction } = found.dataset;
      ask({ entity: entity || "", relation: relation || "", direction: direction || "" });
      condviz.rise();
    });
  };
  // Left to itself, the menu takes its first name that contains what was typed: "ear" would ask about a bear, and an
  // emptied field about an ant. Leaving the field takes the text; a name is taken once an arrow key has gone to it.
  let pointed = false;
  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("#cv-links-entity input")) return;
    if (event.key === "Enter" && !pointed) {
      event.stopPropagation();
      event.target.blur();
    }
    pointed = ["ArrowDown", "ArrowUp"].includes(event.key);
  }, true);

  Object.assign(window.condviz, { links });
})();
