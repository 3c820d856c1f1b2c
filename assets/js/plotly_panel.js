// One plotly figure that keeps zoom and selection over updates and is linked with others. Python: condviz/ui/plotly_panel.py.
(() => {
  "use strict";
  const { css, decode, forPresent, resolve, template, webgl, saveImage, savePage } = window.condviz.figure;
  const SVG_LIMIT = 5000; // more is not fluid without WebGL
  const SHARP_LIMIT = 1500; // up to here SVG is fluid everywhere, and sharper
  const MOST_NAMED = 40;
  const NAMES = [[30, 1], [30, -1], [14, 1], [14, -1]]; // characters, and the side: the first that finds room
  const ANIMATION_MS = 1100;
  const REST_MS = 1000;
  const COARSE = matchMedia("(pointer: coarse)").matches;
  const STILL = matchMedia("(prefers-reduced-motion: reduce)");

  // ---- the library: fetched once, when the first figure is shown ------------------------------------------------
  let library = null;
  const load = (src) => {
    library ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = src;
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => { library = null; reject(new Error("plotly.min.js did not arrive")); };
      document.head.append(script);
    });
    return library;
  };

  /** Resolve once the page has come to rest, or somebody turns to the figure: until plotly has started, nothing answers. */
  const rest = (element) => new Promise((resolve) => {
    for (const turn of ["pointerenter", "focusin"]) element.addEventListener(turn, resolve, { once: true });
    setTimeout(() => (window.requestIdleCallback ?? setTimeout)(resolve), REST_MS);
  });

  // ---- groups of linked views ----------------------------------------------------------------------------------------
  const groups = new Map();
  const join = (group, member) => {
    if (!group) return { send: () => {} };
    const members = groups.get(group) ?? new Set();
    groups.set(group, members.add(member));
    const send = (what, value) => {
      for (const other of members) {
        if (!other.element.isConnected) members.delete(other);
        else if (other !== member) other[what]?.(value);
      }
    };
    return { send };
  };

  /** Some points of a trace as a trace of its own that is seen and not touched. */
  const part = (trace, points) => {
    const pick = (value) => {
      if (!value?.bdata && !Array.isArray(value) && !ArrayBuffer.isView(value)) return value;
      const all = decode(value);
      return points.map((i) => all[i]);
    };
    const { color, symbol, ...marker } = trace.marker ?? {};
    const size = 1.25 * (typeof marker.size === "number" ? marker.size : 8);
    return {
      type: trace.type, mode: "markers", x: pick(trace.x), y: pick(trace.y), hoverinfo: "skip", showlegend: false,
      marker: { ...marker, color: pick(color), symbol: pick(symbol), size, opacity: 1, line: { color: css("--cv-ink"), width: 1 } },
    };
  };

  class Panel {
    constructor(element, props, trigger) {
      Object.assign(this, { element, props, trigger, selected: null, marked: null, drawn: null, share: 1, pinned: false, quiet: 0 });
      this.root = element.querySelector(".cv-figure");
      this.settings = JSON.parse(this.root.dataset.settings);
      this.plot = element.querySelector(".cv-figure-plot");
      this.still = element.querySelector(".cv-figure-still");  // the first figure, until the library is here
      this.note = element.querySelector(".cv-figure-message");
      this.tip = element.querySelector(".cv-figure-tip");
      this.ring = element.querySelector(".cv-figure-ring");
      this.bus = join(this.settings.link, {
        element, select: (ids) => this.select(ids), mark: (id) => this.mark(id), zoom: (ranges) => this.zoom(ranges),
        fit: () => this.fit(), follow: (count) => { this.following = count; },
      });
      this.plot.style.height = `${this.settings.height}px`;
      this.tools();
      const anew = new MutationObserver(() => this.drawn && this.draw());
      for (const part of [document.body, document.documentElement]) anew.observe(part, { attributes: true, attributeFilter: ["class"] });
      new ResizeObserver(() => this.drawn && element.offsetWidth && window.Plotly.Plots.resize(this.plot)).observe(this.plot);
      this.message();
      if (this.still) this.rest = rest(element);
      this.draw();
    }

    // ---- drawing
    /** What a page gives when the panel has appeared stands only until another figure has come, in whatever order. */
    get asked() { return this.props.figure || this.props.fallback; }

    async draw() {
      if (!this.asked) return;
      this.root.dataset.ready = "false";
      await this.rest;
      if (!this.drawn && !this.still) this.say("Drawing …", "info");
      let plotly;
      try {
        plotly = await load(this.settings.plotly);
      } catch {
        this.say("The drawing library could not be loaded. Check the connection to this server and reload the page.", "error");
        return;
      }
      const figure = resolve(JSON.parse(this.asked));
      if (!this.fits(figure)) return;
      const first = !this.drawn;
      if (this.drawn !== this.asked) this.arrange(figure);
      this.drawn = this.asked;
      figure.layout.template = template();
      figure.layout = forPresent(figure.layout);
      this.keepZoom(figure.layout);
      figure.layout.dragmode = this.dragmode ?? (COARSE ? false : figure.layout.dragmode ?? "pan");
      this.figure = figure;
      this.labels = figure.layout.annotations ?? [];
      await this.paint();
      this.still?.remove();
      if (first) {
        this.listen();
        this.message();
      }
      this.placeRing();
      this.root.dataset.ready = "true";
      this.root.dataset.renderer = figure.data.some((trace) => /gl$|3d$/.test(trace.type)) ? "webgl" : "svg";
      this.tell();
      if (this.fresh && this.settings.play && !STILL.matches && this.places.size <= SVG_LIMIT && this.ends.some(Boolean)) this.play();
    }

    /** Draw the data, and what is selected once more on top of it: in front of all others, which turn grey. */
    async paint() {
      const { data, layout } = this.figure;
      layout.annotations = this.labels;  // those of points that a zoom to them has named have gone
      data.forEach((trace, i) => {
        trace.selectedpoints = this.positions(i);
        trace.unselected = { marker: { color: css("--cv-cat-other"), opacity: 0.25 } };
      });
      this.raised = data.flatMap((trace, i) => (trace.selectedpoints?.length ? [{ of: i, points: trace.selectedpoints }] : []));
      const config = { displayModeBar: false, doubleClick: "reset", responsive: false };
      const drawn = [...data, ...this.raised.map(({ of, points }) => part(data[of], points))];
      await this.quietly(() => window.Plotly.react(this.plot, drawn, layout, config));
    }

    /** Plotly keeps only what a mouse has zoomed; ranges set by buttons or by a linked figure have to be carried over. */
    keepZoom(layout) {
      layout.uirevision ??= "kept";
      const same = this.revision === layout.uirevision;
      this.fresh = !same;
      this.revision = layout.uirevision;
      this.zoomed = same && this.zoomed;
      if (!this.zoomed) return;
      for (const [name, axis] of Object.entries(this.plot._fullLayout)) {
        if (/^[xy]axis\d*$/.test(name)) layout[name] = { ...layout[name], range: [...axis.range], autorange: false };
      }
    }

    /** Choose what can be drawn on this machine; false if nothing can. */
    fits(figure) {
      const count = figure.data.reduce((sum, trace) => sum + (trace.ids?.length ?? 0), 0);
      const toSvg = () => { for (const trace of figure.data) if (trace.type === "scattergl") trace.type = "scatter"; };
      if (count <= SHARP_LIMIT) toSvg();
      if (webgl()) return true;
      if (figure.data.some((trace) => trace.type.endsWith("3d"))) {
        this.say("A figure in three dimensions needs WebGL, which this browser does not offer.", "error");
        return false;
      }
      if (count > SVG_LIMIT) {
        this.say(`These ${count.toLocaleString("en")} points need WebGL, which this browser does not offer. Switch on hardware acceleration, or show at most ${SVG_LIMIT.toLocaleString("en")} points.`, "error");
        return false;
      }
      toSvg();
      return true;
    }

    /** Index the points of new data by id; what is selected stays selected where it still exists. */
    arrange(figure) {
      this.places = new Map();
      this.ids = figure.data.map((trace) => [...decode(trace.ids)].map(String));
      this.ids.forEach((ids, trace) => ids.forEach((id, point) => this.places.set(id, [trace, point])));
      this.ends = figure.data.map((trace) => trace.meta?.from && {
        from: [decode(trace.meta.from.x), decode(trace.meta.from.y)], to: [decode(trace.x), decode(trace.y)],
      });
      if (this.selected) this.selected = this.selected.filter((id) => this.places.has(id));
      if (this.selected && !this.selected.length) this.selected = null;
      if (!this.places.has(this.marked)) this.marked = null;
      this.share = 1;
      this.root.dataset.share = "1.00";
      const slider = this.root.querySelector(".cv-figure-morph");
      slider.hidden = !this.ends.some(Boolean);
      slider.querySelector("input").value = 1;
    }

    positions(trace) {
      if (!this.selected || !this.ids?.[trace]?.length) return null;
      const chosen = new Set(this.selected);
      return this.ids[trace].flatMap((id, i) => (chosen.has(id) ? [i] : []));
    }

    // ---- events of the figure
    listen() {
      const points = (event) => event.points.map((point) => String(point.id)).filter((id) => this.places.has(id));
      this.plot.on("plotly_selected", (event) => event && !this.quiet && this.choose(points(event)));
      this.plot.on("plotly_deselect", () => !this.quiet && this.choose(null));
      this.plot.on("plotly_click", (event) => {
        const [id] = points(event);
        if (id === undefined) return this.trigger("click", { x: event.points[0].x, y: event.points[0].y, id: null });
        this.mark(id);
        this.bus.send("mark", id);
        this.showTip(event, true);
        this.trigger("click", { id });
      });
      this.plot.on("plotly_hover", (event) => {
        if (!this.pinned) this.showTip(event, false);
        const [id] = points(event);
        if (id !== undefined) this.bus.send("mark", id);
      });
      this.plot.on("plotly_unhover", () => { if (!this.pinned) this.tip.hidden = true; });
      this.element.addEventListener("mouseleave", () => { if (!this.pinned) this.tip.hidden = true; });
      document.addEventListener("pointerdown", (event) => this.element.isConnected && !this.tip.contains(event.target) && this.unpin(), true);
      this.plot.on("plotly_relayouting", () => this.placeRing());
      this.plot.on("plotly_afterplot", () => this.placeRing());
      this.plot.on("plotly_webglcontextlost", () => this.say("The browser took the graphics memory away. Reload the page to draw the figure again.", "error"));
      this.plot.on("plotly_relayout", (change) => {
        const keys = Object.keys(change).filter((key) => /axis\d*\.(range|autorange)/.test(key));
        if (keys.length) this.zoomed = !keys.some((key) => key.endsWith("autorange"));
        if (this.quiet || !keys.length) return;
        const { xaxis, yaxis } = this.plot._fullLayout;
        const ranges = { x: [...xaxis.range], y: [...yaxis.range] };
        if (this.settings.link_zoom) this.bus.send("zoom", ranges);
        this.trigger("relayout", ranges);
      });
      this.plot.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.magnify(event.deltaY < 0 ? 0.8 : 1.25);
      }, { passive: false });
      this.element.addEventListener("keydown", (event) => {
        if (event.target.matches("input, textarea")) return;
        const actions = { Escape: () => this.release(), "+": () => this.magnify(0.8), "-": () => this.magnify(1.25), 0: () => this.magnify(0) };
        if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        actions[event.key]();
      });
    }

    choose(ids) {
      const chosen = ids?.length ? ids : null;
      this.select(chosen);
      this.bus.send("select", chosen);
      this.trigger("select", { ids: chosen ?? [] });
    }

    release() {
      this.unpin();
      this.mark(null);
      this.bus.send("mark", null);
      if (this.selected) this.choose(null);
    }

    // ---- what other views and Python ask for
    async select(ids) {
      this.selected = ids?.length ? ids.map(String) : null;
      this.unpin();
      this.tell();
      if (!this.drawn || !this.plot.data) return;
      this.keepZoom(this.figure.layout);
      this.figure.layout.dragmode = this.dragmode;
      this.figure.layout.selections = [];
      this.figure.layout.selectionrevision = this.selected;  // else plotly keeps the points and the frame of a lasso
      await this.paint();
      // Another choice may still be on its way: the one to zoom to is known by its size.
      const [follows, followed] = [this.following === (this.selected?.length ?? 0), this.followed];
      if (follows) this.following = undefined;
      this.followed = follows && Boolean(this.selected);
      if (this.followed) await this.fit();
      else if (followed) await this.magnify(0);
    }

    /** Plotly answers changes of ours with the events of a reader's action; those must not be taken for one. */
    async quietly(change) {
      this.quiet += 1;
      try {
        await change();
      } finally {
        this.quiet -= 1;
      }
    }

    mark(id) {
      this.marked = id === null ? null : String(id);  // of points that may still have to be drawn
      this.placeRing();
    }

    async zoom(ranges) {
      if (!this.drawn || !this.plot._fullLayout?.xaxis) return;
      await this.quietly(() => window.Plotly.relayout(this.plot, { "xaxis.range": ranges.x, "yaxis.range": ranges.y }));
    }

    /** Zoom about the middle by a factor; 0 goes back to the whole picture. */
    async magnify(factor) {
      const layout = this.plot._fullLayout;
      if (!layout?.xaxis) return;
      const scaled = (axis) => {
        const middle = (axis.range[0] + axis.range[1]) / 2;
        return axis.range.map((end) => middle + (end - middle) * factor);
      };
      const change = factor
        ? { "xaxis.range": scaled(layout.xaxis), "yaxis.range": scaled(layout.yaxis) }
        : { ...this.home(), annotations: this.labels };
      await window.Plotly.relayout(this.plot, change);
      if (!factor) this.zoomed = false;
    }

    /** Zoom to the selected points: linked figures have them elsewhere, so each to its own. */
    async fit() {
      const spots = (this.selected ?? []).map((id) => this.places?.get(id)).filter(Boolean);
      if (!spots.length || !this.plot._fullLayout?.xaxis) return;
      const [x, y] = ["x", "y"].map((letter) => {
        const at = spots.map(([trace, point]) => this.plot._fullData[trace][letter][point]);
        const [low, high] = [Math.min(...at), Math.max(...at)];
        const edge = 0.1 * (high - low || 1);
        return [low - edge, high + edge];
      });
      await this.zoom({ x, y });
      if (spots.length <= MOST_NAMED) await this.quietly(() => window.Plotly.relayout(this.plot, { annotations: this.names(spots) }));
    }

    /** Return the beginning of the text of each point as a label beside it, where there is no other label nor point. */
    names(spots) {
      const { xaxis, yaxis } = this.plot._fullLayout;
      const points = spots.map(([trace, place]) => {
        const { x, y } = this.plot._fullData[trace];
        return { trace, place, x: x[place], y: y[place], at: xaxis.d2p(x[place]), up: yaxis.d2p(y[place]) };
      });
      const taken = points.map(({ at, up }) => ({ left: at - 7, right: at + 7, up }));
      const named = [];
      for (const { trace, place, x, y, at, up } of points) {
        const words = (this.read(this.plot._fullData[trace].text?.[place]) ?? "").split("\n")[0];
        for (const [most, side] of NAMES) {
          const text = words.length > most ? `${words.slice(0, most).trimEnd()}…` : words;
          const ends = [at + side * 10, at + side * (10 + 6.5 * text.length)].sort((one, other) => one - other);
          const box = { left: ends[0], right: ends[1], up };
          const free = taken.every((one) => Math.abs(one.up - up) > 15 || one.right < box.left || one.left > box.right);
          if (!text || !free || box.left < 0 || box.right > xaxis._length) continue;
          taken.push(box);
          const shown = text.replace(/[&<]/g, (mark) => ({ "&": "&amp;", "<": "&lt;" })[mark]);
          named.push({ x, y, text: shown, showarrow: false, xshift: side * 9, xanchor: side > 0 ? "left" : "right", font: { size: 12 } });
          break;
        }
      }
      return named;
    }

    home() {
      const { xaxis, yaxis } = JSON.parse(this.asked).layout;
      const whole = (name, axis) => (axis?.range ? { [`${name}.range`]: axis.range } : { [`${name}.autorange`]: true });
      return { ...whole("xaxis", xaxis), ...whole("yaxis", yaxis) };
    }

    placeRing() {
      const place = this.places?.get(this.marked);
      this.root.dataset.marked = place ? this.marked : "";
      const trace = place && this.plot._fullData?.[place[0]];
      const layout = this.plot._fullLayout;
      this.ring.hidden = true;
      if (!trace?.xaxis || trace.visible !== true) return;
      const [x, y] = ["x", "y"].map((letter) => {
        const axis = layout[trace[`${letter}axis`].replace(letter, `${letter}axis`)];
        const at = axis.d2p(trace[letter][place[1]]);
        return at >= 0 && at <= axis._length ? axis._offset + at : NaN;
      });
      this.ring.style.transform = `translate(${x}px, ${y}px)`;
      this.ring.hidden = Number.isNaN(x + y);
    }

    // ---- reading
    /** A number stands for one of the texts that the figure sends once. */
    read(text) { return typeof text === "number" ? this.plot._fullLayout.meta.texts[text] : text; }

    showTip(event, pin) {
      const point = event.points[0];
      const words = this.read(point.text ?? point.data.text?.[point.pointNumber]);
      if (!words || point.data.hoverinfo !== "none") return;
      const labels = [].concat(point.customdata ?? []).map((text) => this.read(text));
      const line = document.createElement("p");
      line.textContent = words;
      line.dir = "auto";
      this.tip.replaceChildren(line, ...labels.filter(Boolean).map((label) => {
        const badge = document.createElement("span");
        badge.className = "cv-badge";
        badge.textContent = label;
        return badge;
      }));
      this.pinned = pin;
      this.tip.dataset.pinned = String(pin);
      this.tip.hidden = false;
      const box = this.plot.getBoundingClientRect();
      const x = (event.event?.clientX ?? box.left) - box.left;
      const y = (event.event?.clientY ?? box.top) - box.top;
      const left = Math.max(4, Math.min(x + 14, box.width - this.tip.offsetWidth - 4));
      const below = y + 18 + this.tip.offsetHeight < box.height;
      this.tip.style.transform = `translate(${left}px, ${below ? y + 18 : Math.max(4, y - this.tip.offsetHeight - 12)}px)`;
    }

    unpin() {
      this.pinned = false;
      this.tip.hidden = true;
    }

    tell() {
      const chosen = this.selected ? this.selected.filter((id) => this.places?.has(id)).length : 0;
      this.root.dataset.selected = String(chosen);
      const all = (this.places?.size ?? 0).toLocaleString("en");
      const line = this.root.querySelector(".cv-figure-count");
      line.textContent = !this.places?.size ? "" : chosen ? `${chosen.toLocaleString("en")} / ${all} points` : `${all} points`;
      for (const tool of ["fit", "clear"]) this.root.querySelector(`[data-tool=${tool}]`).hidden = !chosen;
    }

    message() {
      const { text = "", tone = "info", share = 0 } = this.props.message || {};
      this.say(text, tone);
      this.note.style.setProperty("--share", share);
    }

    say(text, tone) {
      this.note.textContent = text;
      this.note.hidden = !text;
      this.note.dataset.tone = tone;
      this.note.setAttribute("role", tone === "error" ? "alert" : "status");
      this.root.dataset.tone = text ? tone : "";
    }

    // ---- morph: points travel from where they were to where they are
    morph(share) {
      this.share = share;
      const moving = this.ends.flatMap((end, i) => (end ? [i] : []));
      const between = (end, axis) => Float32Array.from(end.to[axis], (to, i) => end.from[axis][i] + share * (to - end.from[axis][i]));
      const at = (axis) => moving.map((i) => between(this.ends[i], axis));
      const [x, y] = [at(0), at(1)];
      const raised = this.raised.flatMap(({ of, points }, i) => (this.ends[of] ? [{ of: moving.indexOf(of), points, at: this.figure.data.length + i }] : []));
      const all = (own) => [...own, ...raised.map((one) => one.points.map((i) => own[one.of][i]))];
      window.Plotly.restyle(this.plot, { x: all(x), y: all(y) }, [...moving, ...raised.map((one) => one.at)]);
      this.root.dataset.share = share.toFixed(2);
      this.root.querySelector(".cv-figure-morph input").value = share;
    }

    play() {
      cancelAnimationFrame(this.frame);
      if (STILL.matches) return this.morph(this.share > 0.5 ? 0 : 1);
      const start = performance.now();
      const step = (now) => {
        const t = Math.min(1, Math.max(0, (now - start) / ANIMATION_MS));
        this.morph(t * t * (3 - 2 * t));
        if (t < 1 && this.element.isConnected) this.frame = requestAnimationFrame(step);
      };
      this.frame = requestAnimationFrame(step);
    }

    // ---- buttons
    tools() {
      const actions = {
        pan: () => this.tool("pan"), lasso: () => this.tool("lasso"), select: () => this.tool("select"), clear: () => this.release(),
        fit: () => { this.fit(); this.bus.send("fit"); },
        in: () => this.magnify(0.8), out: () => this.magnify(1.25), reset: () => this.magnify(0), play: () => this.play(),
        png: () => this.save("png"), svg: () => this.save("svg"), html: () => this.saveHtml(),
      };
      this.root.addEventListener("click", (event) => actions[event.target.closest("[data-tool]")?.dataset.tool]?.());
      this.root.querySelector(".cv-figure-morph input").addEventListener("input", (event) => {
        cancelAnimationFrame(this.frame);
        this.morph(Number(event.target.value));
      });
      this.tool(COARSE ? "" : this.settings.tool, false);
    }

    tool(name, redraw = true) {
      this.dragmode = name || false;
      for (const button of this.root.querySelectorAll("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.tool === name));
      if (redraw && this.drawn) window.Plotly.relayout(this.plot, { dragmode: this.dragmode });
    }

    save(format) {
      if (this.drawn) saveImage(this.plot, format, this.settings.filename);
    }

    saveHtml() {
      if (this.drawn) savePage(this.asked, this.plot, this.settings);
    }
  }

  const panel = (element, props, watch, trigger) => {
    const made = new Panel(element, props, trigger);
    watch("figure", () => made.draw());
    watch("fallback", () => made.draw());
    watch("message", () => made.message());
    const everywhere = (what, value) => {
      made[what](value);
      made.bus.send(what, value);
    };
    watch("selection", () => everywhere("select", props.selection?.ids ?? null));
    watch("marked", () => everywhere("mark", props.marked?.id ?? null));
    if (!made.asked) trigger("ready", {});
    return made;
  };

  Object.assign(window.condviz, { panel, join });
})();
