// The Map tab: clicks on legend, list and tables; hovering a row marks its point. Figures are in plotly_panel.js.
(() => {
  "use strict";
  const map = (element, send) => {
    const group = condviz.join("map", { element });
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (button?.dataset.act === "value") {  // to what is chosen, and back to the whole map
        const on = button.getAttribute("aria-pressed") === "true";
        group.send("follow", on ? 0 : Number(button.querySelector(".cv-num").textContent));
      }
      if (button) send({ ...button.dataset });
    });
    element.addEventListener("mouseover", (event) => {
      const row = event.target.closest("[data-act=open]");
      if (row) group.send("mark", row.dataset.id);
    });
  };
  Object.assign(window.condviz, { map });
})();
