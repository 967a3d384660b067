// Before the page's own script: the stream gives one snapshot of the gateway, and then those that `playSeconds` makes of it.
(() => {
  const Real = window.EventSource;
  let first;
  let seconds = 0;
  let page;
  window.EventSource = class extends EventTarget {
    constructor(address) {
      super();
      page = this;
      this.readyState = 1;
      const real = new Real(address);
      const pass = (event) => this.dispatchEvent(new MessageEvent(event.type, { data: event.data }));
      real.addEventListener("journal", pass);
      real.addEventListener("message", (event) => {
        first = event.data;
        real.close();
        pass(event);
      });
    }
  };
  // Loads that wander, so that no plot is a line.
  const wave = (at, row, share) => Math.round(share * (1 + Math.sin(at / 40 + row)));
  window.playSeconds = async (count) => {
    for (let played = 0; played < count; played += 1) {
      seconds += 1;
      const status = JSON.parse(first);
      status.at_seconds += seconds;
      status.unix_seconds += seconds;
      for (const plant of status.upstreams) plant.utilization.measured = wave(seconds, 1, 40) / 100;
      status.classes.forEach((one, row) => {
        one.arrivals += 200 * seconds;
        one.request_rate_per_second = wave(seconds, row, 100);
        one.levels.forEach((level, index) => (level.served += wave(seconds, row + index, 50) * seconds));
        one.reasons.overload = wave(seconds, row, 5) * seconds;
        Object.assign(one.recent, { arrivals: 200, response_p50_seconds: wave(seconds, row, 50) / 1000, response_p95_seconds: 0.1, response_p99_seconds: 0.2 });
      });
      page.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(status) }));
      if (played % 20 === 0) await new Promise((after) => setTimeout(after));
    }
    return seconds;
  };
  // Frames a second while the hour is moved to and fro by the keys of a plot, once a frame, beside a snapshot a second.
  window.pan = async (span) => {
    const plot = document.querySelector(".plot");
    const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true }));
    press("+");
    const begun = performance.now();
    let frames = 0;
    let longest = 0;
    let before = begun;
    let next = begun + 1000;
    for (let now = begun; now - begun < span; ) {
      press(Math.floor(frames / 4) % 2 === 0 ? "ArrowLeft" : "ArrowRight");
      now = await new Promise((shown) => requestAnimationFrame(shown));
      longest = Math.max(longest, now - before);
      before = now;
      frames += 1;
      if (now > next) {
        await window.playSeconds(1);
        next += 1000;
      }
    }
    press("Escape");
    return { perSecond: (1000 * frames) / (before - begun), longest };
  };
})();
