// Figures of the Learn tab that live in the browser: bets, two arrows, and the switches of singular values.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const figures = window.condviz.lessonFigures;

  // ---- bets: kept in this browser, per lesson and step ------------------------------------------------------------------
  const key = () => {
    const { lesson, step } = document.querySelector("#cv-learn-top [data-step]").dataset;
    return `condviz-bets-${lesson}-${step}`;
  };
  const read = () => { try { return JSON.parse(localStorage.getItem(key())) || []; } catch { return []; } };
  const keep = (bets) => { try { localStorage.setItem(key(), JSON.stringify(bets)); } catch { /* private mode: not kept */ } };
  let open = { key: "", at: undefined };
  const bets = (root, at) => {
    open = { key: key(), at };
    const pairs = $$("[data-bet]", root);
    const made = root.made ??= read();
    const next = pairs.findIndex((_, i) => !made[i]);
    const shown = at ?? (next < 0 ? pairs.length - 1 : next);
    pairs.forEach((pair, i) => {
      pair.hidden = i !== shown;
      for (const button of $$("[data-choice]", pair)) {
        button.setAttribute("aria-pressed", String(made[i] === button.dataset.choice));
        button.disabled = Boolean(made[i]);
      }
      pair.querySelector(".cv-bet-reveal").hidden = !made[i];
      pair.querySelector("[data-you]").textContent = made[i] || "";
      const dot = root.querySelector(`[data-dot="${i}"]`);
      dot.dataset.state = !made[i] ? "" : !pair.dataset.answer ? "made" : made[i] === pair.dataset.answer ? "right" : "wrong";
      dot.setAttribute("aria-label", `Pair ${i + 1}${dot.dataset.state && `: ${dot.dataset.state}`}`);
      dot.setAttribute("aria-current", String(i === shown));
      dot.disabled = !made[i] && i !== next;
    });
    const rated = pairs.filter((pair) => pair.dataset.answer);
    const count = (test) => rated.filter((pair) => test(made[pairs.indexOf(pair)], pair.dataset)).length;
    const sum = root.querySelector(".cv-bet-sum");
    const done = next < 0;
    sum.hidden = !done || rated.length < 2;
    const after = root.parentElement.querySelector(".cv-step-after");
    if (after) after.hidden = !done;  // it tells what came out
    root.querySelector(".cv-bet-reset").hidden = !done;
    const missed = rated.filter(({ dataset }) => dataset.said !== dataset.answer).map((pair) => pairs.indexOf(pair) + 1);
    sum.textContent = `Right, out of ${rated.length}: you ${count((bet, { answer }) => bet === answer)}, the model ` +
      `${rated.length - missed.length}. You and the model agree on ${count((bet, { said }) => bet === said)}.` +
      (missed.length ? ` The model misses ${missed.length > 1 ? "pairs" : "pair"} ${missed.join(", ").replace(/, (\d+)$/, " and $1")}.` : "");
  };
  document.addEventListener("click", (event) => {
    const root = event.target.closest?.("#cv-learn-picture [data-figure=bets]");
    const button = event.target.closest?.("button");
    if (!root || !button) return;
    const at = Number(button.closest("[data-bet]")?.dataset.bet);
    if (button.dataset.choice) {
      root.made[at] = button.dataset.choice;
      keep(root.made);
      bets(root, at);
      (root.querySelector(`[data-bet="${at}"] [data-bet-next]`) || root.querySelector("[data-bet-reset]")).focus({ preventScroll: true });
      root.querySelector(".cv-bet-sum").scrollIntoView({ block: "nearest" });  // hidden until the last bet: no move
      document.dispatchEvent(new Event("condviz-bet"));
    } else if (button.dataset.dot) {
      bets(root, Number(button.dataset.dot));
    } else if (button.hasAttribute("data-bet-next")) {
      bets(root, at + 1);
      root.querySelector(`[data-bet="${at + 1}"] [data-choice]`).focus({ preventScroll: true });
    } else if (button.hasAttribute("data-bet-reset")) {
      root.made = [];
      keep([]);
      bets(root, 0);
    }
  });
  figures.bets = (root) => {
    delete root.made;
    bets(root, open.key === key() ? open.at : undefined);  // the live result comes while somebody is betting
  };

  // ---- two arrows -----------------------------------------------------------------------------------------------------------
  const DEGREE = Math.PI / 180;
  const minus = (text) => text.replace("-", "−");
  const turned = (degrees) => ((degrees + 540) % 360) - 180;
  const tip = ({ degrees, length }) => [100 * length * Math.cos(degrees * DEGREE), 100 * length * Math.sin(degrees * DEGREE)];
  const plane = (root) => {
    const say = (name, text) => { root.querySelector(`[data-${name}]`).textContent = minus(text); };
    const arrows = root.arrows;
    $$("[data-arrow]", root).forEach((node, i) => {
      const [x, y] = tip(arrows[i]);
      const line = node.querySelector("line");
      line.setAttribute("x2", x * 0.92);
      line.setAttribute("y2", -y * 0.92);
      node.querySelector("polygon").setAttribute("points", "0,0 -12,-5 -12,5");
      node.querySelector("polygon").setAttribute("transform", `translate(${x} ${-y}) rotate(${-arrows[i].degrees})`);
      const grip = node.querySelector("circle");
      grip.setAttribute("cx", x);
      grip.setAttribute("cy", -y);
      const name = node.querySelector("text");
      name.setAttribute("x", x * 1.04 + 8);
      name.setAttribute("y", -y * 1.04 - 6);
      node.setAttribute("aria-valuenow", Math.round(arrows[i].degrees));
    });
    const [a, b] = arrows.map((arrow) => tip(arrow).map((value) => value / 100));
    const dot = a[0] * b[0] + a[1] * b[1];
    const between = turned(arrows[1].degrees - arrows[0].degrees);
    const cosine = Math.cos(between * DEGREE);
    const [start, end] = arrows.map(({ degrees }) => tip({ degrees, length: 0.28 }));
    root.querySelector(".cv-plane-arc").setAttribute("d", `M${start[0]} ${-start[1]}A28 28 0 0 ${between > 0 ? 0 : 1} ${end[0]} ${-end[1]}`);
    say("cosine", cosine.toFixed(2));
    say("angle", `${Math.abs(Math.round(between))}°`);
    say("dot", `${a[0].toFixed(3)} × ${b[0].toFixed(3)} + ${a[1].toFixed(3)} × ${b[1].toFixed(3)} = ${dot.toFixed(3)}`.replace(/ -/g, " −"));
    say("divided", `${minus(dot.toFixed(3))} ÷ (${arrows[0].length.toFixed(2)} × ${arrows[1].length.toFixed(2)}) = ${minus(cosine.toFixed(2))}`);
    root.querySelector("[data-mark]").style.insetInlineStart = `${50 + 50 * cosine}%`;
    for (const goal of $$("[data-goal]", root)) {
      if (Math.abs(cosine - Number(goal.dataset.goal)) > 0.02) continue;
      goal.classList.add("is-done");
      goal.querySelector(".cv-plane-tick").textContent = "●";
      goal.querySelector(".cv-plane-done").textContent = ": done";
    }
  };
  const move = (root, event) => {
    const box = root.querySelector("svg").getBoundingClientRect();
    const scale = 220 / box.width;
    const x = (event.clientX - box.left) * scale - 110;
    const y = 110 - (event.clientY - box.top) * scale;
    const length = Math.round(Math.min(100, Math.max(20, Math.hypot(x, y)))) / 100;  // as it is printed
    root.arrows[root.held] = { degrees: Math.atan2(y, x) / DEGREE, length };
    plane(root);
  };
  document.addEventListener("pointerdown", (event) => {
    const arrow = event.target.closest?.("[data-arrow]");
    const root = arrow?.closest("[data-figure=plane]");
    if (!root?.arrows) return;
    event.preventDefault();
    arrow.focus({ preventScroll: true });
    root.held = Number(arrow.dataset.arrow);
    const drag = (moved) => move(root, moved);
    const drop = () => {
      document.removeEventListener("pointermove", drag);
      for (const name of ["pointerup", "pointercancel"]) document.removeEventListener(name, drop);
    };
    document.addEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, drop);
  });
  document.addEventListener("keydown", (event) => {
    const arrow = event.target.closest?.("[data-arrow]");
    const root = arrow?.closest("[data-figure=plane]");
    if (!root?.arrows) return;
    const held = root.arrows[Number(arrow.dataset.arrow)];
    const turn = { ArrowLeft: 5, ArrowRight: -5 }[event.key];
    const grow = { ArrowUp: 0.1, ArrowDown: -0.1 }[event.key];
    if (!turn && !grow) return;
    event.preventDefault();
    if (turn) held.degrees = turned(Math.round(held.degrees + (event.shiftKey ? turn / 5 : turn)));
    else held.length = Math.min(1, Math.max(0.2, held.length + grow));
    plane(root);
  });
  figures.plane = (root) => {
    const { first, second, lengths } = root.querySelector(".cv-plane").dataset;
    const sizes = lengths.split(" ").map(Number);
    root.arrows = [first, second].map((degrees, i) => ({ degrees: Number(degrees), length: sizes[i] }));
    for (const goal of $$("[data-goal]", root)) {
      goal.classList.remove("is-done");
      goal.querySelector(".cv-plane-tick").textContent = "○";
      goal.querySelector(".cv-plane-done").textContent = "";
    }
    plane(root);
  };

  // ---- singular values: a press edits the field, which asks the server -------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".cv-spectrum-bars button");
    const field = document.querySelector(".cv-step-form [name=off]");
    if (!button || !field) return;
    const off = new Set(field.value.split(/\D+/).filter(Boolean));
    const on = button.getAttribute("aria-pressed") === "true";
    if (on) off.add(button.dataset.value); else off.delete(button.dataset.value);
    button.setAttribute("aria-pressed", String(!on));
    field.value = [...off].map(Number).sort((a, b) => a - b).join(" ");
    window.condviz.lessonChanged();
  });
})();
