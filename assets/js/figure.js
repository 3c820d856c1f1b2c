// Figures as data: arrays and colours before plotly draws them, files afterwards. Used by plotly_panel.js.
(() => {
  "use strict";
  const PRESENT = 1.4; // as in page.css
  const css = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

  // ---- what a figure needs before plotly draws it --------------------------------------------------------------------
  const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
  const decode = (value) => {
    if (!value?.bdata) return value ?? [];
    const bytes = Uint8Array.from(atob(value.bdata), (c) => c.charCodeAt(0));
    return new ARRAYS[value.dtype](bytes.buffer);
  };
  const resolve = (value) => {
    if (typeof value === "string") return value.startsWith("var(--") ? css(value.slice(4, -1)) : value;
    if (Array.isArray(value)) return typeof value[0] === "number" && typeof value[1] !== "string" ? value : value.map(resolve);
    if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === "text" ? item : resolve(item)]));
  };
  const template = () => {
    const axis = {
      gridcolor: css("--cv-rule"), zerolinecolor: css("--cv-rule-strong"), linecolor: css("--cv-rule-strong"),
      tickcolor: css("--cv-rule-strong"), tickfont: { color: css("--cv-muted"), size: 13 }, automargin: true,
      title: { font: { size: 13 } },
    };
    const tip = { bgcolor: css("--cv-panel"), bordercolor: css("--cv-ink"), font: { color: css("--cv-ink"), size: 13 }, align: "left" };
    const layout = {
      font: { family: css("--cv-sans"), size: 13, color: css("--cv-ink") }, margin: { l: 8, r: 8, t: 8, b: 8 },
      paper_bgcolor: css("--cv-panel"), plot_bgcolor: css("--cv-panel"), hoverlabel: tip, xaxis: axis, yaxis: axis,
      legend: { font: { size: 13 }, itemsizing: "constant" }, modebar: { bgcolor: "rgba(0,0,0,0)" },
      scene: { xaxis: { ...axis, backgroundcolor: css("--cv-panel") }, yaxis: axis, zaxis: axis },
    };
    return { layout };
  };
  /** Type and margins of a layout as much larger as those of the page in present mode. */
  const enlarge = (value, key = "") => {
    if (Array.isArray(value)) return value.map((item) => enlarge(item));
    if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    const grows = (name) => (/font$/i.test(key) && name === "size") || key === "margin" || /^[xy]shift$/.test(name);
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, grows(name) ? PRESENT * item : enlarge(item, name)]));
  };
  const forPresent = (layout) => (document.documentElement.classList.contains("cv-present") ? enlarge(layout) : layout);
  const webgl = () => {
    const canvas = document.createElement("canvas");
    return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
  };

  // ---- files ---------------------------------------------------------------------------------------------------------
  const saveImage = (plot, format, filename) => {
    const { width, height } = plot.getBoundingClientRect();
    // What WebGL has drawn would be a bitmap inside an SVG. A picture also needs the legend that the page shows beside it.
    const vector = (trace) => (format === "svg" && trace.type === "scattergl" ? { ...trace, type: "scatter" } : trace);
    const data = plot.data.map(vector);
    const layout = { ...plot.layout, showlegend: data.length > 1 };
    window.Plotly.downloadImage({ data, layout }, { format, filename, width, height, scale: format === "png" ? 3 : 1 });
  };

  /** Save a page that holds the figure and the library, and needs nothing else. */
  const savePage = async (json, plot, settings) => {
    const source = await (await fetch(settings.plotly)).text();
    const figure = resolve(JSON.parse(json));
    Object.assign(figure.layout, { template: template(), showlegend: figure.data.length > 1 });
    // Plotly reads tips as markup; these are texts of the reader.
    const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    for (const [i, trace] of figure.data.entries()) {
      trace.type = plot.data[i].type;
      if (trace.hoverinfo === "none" && trace.text) Object.assign(trace, { hoverinfo: "text", hovertext: [].concat(trace.text).map(plain) });
    }
    const data = JSON.stringify(figure).replaceAll("<", "\\u003c");
    const page = `<!doctype html><meta charset="utf-8"><title>CondViz</title><div id="figure" style="height:95vh"></div>
<script>${source}<\/script><script>const figure = ${data}; Plotly.newPlot("figure", figure.data, figure.layout, { responsive: true });<\/script>`;
    window.condviz.save([page], "text/html", `${settings.filename}.html`);
  };

  window.condviz.figure = { css, forPresent, decode, resolve, template, webgl, saveImage, savePage };
})();
