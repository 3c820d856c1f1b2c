// The Map tab: buttons of its tables, hovering a row marks its point, files. Figures are in plotly_panel.js.
(() => {
  "use strict";
  const map = (element, send) => {
    const group = condviz.join("map", { element });
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      const row = button ?? event.target.closest("tr[data-id]");
      if (row) send(button ? { ...button.dataset } : { act: "open", id: row.dataset.id });
    });
    element.addEventListener("mouseover", (event) => {
      const row = event.target.closest("[data-id]");
      if (row) group.send("mark", row.dataset.id);
    });
  };

  const mapFile = (element, props, watch) => {
    watch("file", () => {
      const { name, content } = props.file ?? {};
      if (!name) return;
      const csv = name.endsWith(".csv");
      const link = document.createElement("a");
      // The mark at the start tells spreadsheets that the file is UTF-8.
      link.href = URL.createObjectURL(new Blob(csv ? ["\ufeff", content] : [content], { type: csv ? "text/csv" : "application/json" }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  };

  Object.assign(window.condviz, { map, mapFile });
})();
