// gradio 6.31's sign of loading goes on when it has gone: its springs for seconds, its clock, which nobody sees, for as long
// as the page is open. At sixty frames a second, the page of somebody who only reads would keep a machine busy.
(() => {
  const CLOCK = /\(performance\.now\(\)-\w+\(\w+\)\)\/1e3/;
  const MOTIONS = /\.tasks\.forEach\(/;
  const nextFrame = window.requestAnimationFrame.bind(window);
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  window.requestAnimationFrame = (step) => {
    const code = String(step);
    if (CLOCK.test(code)) return 0;
    return still.matches && MOTIONS.test(code) ? setTimeout(step, 30) : nextFrame(step);
  };
})();
