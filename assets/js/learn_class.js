// Class mode of the Learn tab. Code and a random number for this browser live as long as its tab of the browser.
(() => {
  "use strict";
  const EVERY_MS = 4000;
  const KEY = "condviz-class";
  const box = () => document.querySelector("#cv-learn-class .cv-class");
  const bets = () => document.querySelector("#cv-learn-picture [data-figure=bets]");
  const read = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) || {}; } catch { return {}; } };
  let mine = read();
  let early;
  let send = (asked) => { early = asked; };  // bets can be drawn, and buttons pressed, before this part is connected
  let waiting;

  const keep = (state) => {
    mine = { ...mine, ...state };
    try { sessionStorage.setItem(KEY, JSON.stringify(mine)); } catch { /* private mode: lost on reload */ }
  };
  const act = (name, code = mine.code || "") => {
    if (!bets()) return;
    if (!mine.person) {
      keep({ person: Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("") });
    }
    const { lesson, step } = document.querySelector("#cv-learn-top [data-step]").dataset;
    // At once: a figure that is drawn before the answer comes must not join again.
    if (name === "leave") keep({ code: "" });
    send({ act: name, code, person: mine.person, lesson, step, made: bets().made || [] });
  };
  const look = () => { if (mine.code) act("look"); };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#cv-learn-class [data-room]");
    if (button?.type === "button" && event.detail < 2) act(button.dataset.room);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches?.(".cv-class-join")) return;
    event.preventDefault();
    act("join", event.target.elements.code.value);
    event.target.scrollIntoView({ block: "center" });  // what is wrong with the code is told below, where a phone has its bar
  });
  document.addEventListener("condviz-bet", look);

  const draw = window.condviz.lessonFigures.bets;
  window.condviz.lessonFigures.bets = (root) => { draw(root); look(); };
  window.condviz.learnClass = (element, trigger, watch) => {
    send = trigger;
    if (early) send(early);
    early = undefined;
    watch("value", () => setTimeout(() => {
      const { code, teacher, left } = box()?.dataset ?? {};
      if (code || left) keep({ code: code || "" });
      clearInterval(waiting);
      // Only the teacher's page asks by itself: thirty others would keep the server busy.
      if (teacher === "true") waiting = setInterval(() => { if (!document.hidden) look(); }, EVERY_MS);
    }, 0));
  };
})();
