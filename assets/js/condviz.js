// Lists of models, for tabs that are still to be rebuilt.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const showStates = () => {
    for (const label of $$(".cv-picker [data-model]")) {
      // A variant such as csr@hidden stands where its model stands.
      const name = label.dataset.model;
      label.dataset.phase = condviz.states()[name] || condviz.states()[name.split("@")[0]] || "ready";
    }
  };

  window.addEventListener("condviz-states", showStates);

  // ---- model picker ----------------------------------------------------------------------------------------------
  const picker = (element, props, watch, changed) => {
    const boxes = () => $$("input[data-name]", element);
    const sync = () => {
      for (const box of boxes()) box.checked = (props.value || []).includes(box.dataset.name);
      showStates();
    };
    const commit = () => {
      props.value = boxes().filter((box) => box.checked).map((box) => box.dataset.name);
      // One turn later the list is written anew, and the value has reached the component that the event sends.
      setTimeout(() => {
        showStates();
        changed();
      }, 0);
    };
    element.addEventListener("change", (event) => event.target.matches("input[data-name]") && commit());
    element.addEventListener("click", (event) => {
      const all = event.target.closest("[data-all]");
      if (!all) return;
      for (const box of boxes()) box.checked = all.dataset.all === "1";
      commit();
    });
    watch("value", sync);
    sync();
  };

  Object.assign(window.condviz, { picker });
})();
