"use strict";
// Cross-hair, legend, data tables. The page is complete without. Values come from each chart's data, as text.
(() => {
  const make = (parent, name, classes, text) => {
    const element = document.createElement(name);
    if (classes) element.className = classes;
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };
  const draw = (parent, name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return parent.appendChild(element);
  };
  const number = (value) =>
    value !== 0 && (Math.abs(value) < 1e-6 || Math.abs(value) >= 1e15)
      ? value.toPrecision(4)
      : value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1e4 ? 21 : 4 }).replaceAll(",", "\u202f");
  const clock = (seconds) => {
    const parts = [];
    let rest = seconds;
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      const whole = Math.floor(rest / size + 1e-9);
      if (whole > 0) parts.push(whole + " " + unit);
      rest -= whole * size;
    }
    rest = Math.round(rest * 1000) / 1000;
    if (rest > 0 || !parts.length) parts.push(rest + " s");
    return parts.join(" ");
  };
  // The last index whose value is at most x; -1 where there is none.
  const before = (values, x) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.plot = figure.querySelector(".plot");
      this.frame = figure.querySelector(".frame");
      for (const key of ["x0", "x1", "y0", "y1"]) this[key] = +figure.dataset[key];
      this.isTime = figure.dataset.axis === "time";
      this.read(figure.querySelector(".data").textContent);
      this.describe();
      this.legend();
      this.listen();
      figure.querySelector("details").addEventListener("toggle", () => this.table(), { once: true });
    }

    read(text) {
      const [names, ...rows] = text.split("\n").map((line) => line.split("\t"));
      this.names = names;
      this.rows = rows;
      this.xs = rows.map((row) => +row[0]);
      this.series = names.slice(1).map((name, index) => {
        const group = this.frame.querySelector(`g[data-i="${index}"]`);
        const own = rows.filter((row) => row[index + 1] !== "");
        return {
          name, group, classes: group.getAttribute("class"), shown: true,
          xs: own.map((row) => +row[0]),
          ys: own.map((row) => (row[index + 1] === "-" ? null : +row[index + 1])),
        };
      });
    }

    // The SVG's title would pop up over the read-out.
    describe() {
      const title = this.frame.querySelector("title");
      this.frame.setAttribute("aria-label", title.textContent);
      this.frame.removeAttribute("aria-labelledby");
      this.frame.setAttribute("aria-describedby", this.frame.querySelector("desc").id);
      title.remove();
    }

    legend() {
      for (const button of this.figure.querySelectorAll(".legend button")) {
        const series = this.series[+button.dataset.i];
        button.disabled = false;
        button.setAttribute("aria-pressed", "true");
        // The first click leaves this series alone, more clicks add others to it; without any left all are there again.
        button.addEventListener("click", () => {
          const all = this.series.every((one) => one.shown);
          if (all) this.series.forEach((one) => (one.shown = one === series));
          else series.shown = !series.shown;
          if (!this.series.some((one) => one.shown)) this.series.forEach((one) => (one.shown = true));
          for (const other of this.figure.querySelectorAll(".legend button")) {
            const one = this.series[+other.dataset.i];
            other.setAttribute("aria-pressed", String(one.shown));
            one.group.classList.toggle("off", !one.shown);
          }
        });
      }
    }

    listen() {
      if (!this.xs.length) return;
      const move = (event) => {
        const box = this.frame.getBoundingClientRect();
        this.show(this.nearest(this.x0 + ((event.clientX - box.left) / box.width) * (this.x1 - this.x0)));
      };
      this.plot.addEventListener("pointermove", move);
      this.plot.addEventListener("pointerdown", move);
      for (const end of ["pointerleave", "blur"]) this.plot.addEventListener(end, () => hide());
      this.plot.tabIndex = 0;
      this.plot.addEventListener("keydown", (event) => {
        const last = this.xs.length - 1, at = this.at ?? -1;
        const to = { ArrowRight: at + 1, ArrowLeft: at < 0 ? last : at - 1, Home: 0, End: last }[event.key];
        if (event.key === "Escape") hide();
        if (to === undefined) return;
        event.preventDefault();
        this.show(Math.min(Math.max(to, 0), last));
      });
    }

    nearest(x) {
      const low = Math.max(before(this.xs, x), 0), high = Math.min(low + 1, this.xs.length - 1);
      return x - this.xs[low] <= this.xs[high] - x ? low : high;
    }

    // A series without a point at this x: a step's last value, a line's between its neighbours, else a gap.
    value(series, x) {
      const at = before(series.xs, x);
      if (at < 0) return null;
      if (series.xs[at] === x || series.classes.startsWith("step")) return series.ys[at];
      const [x0, x1, y0, y1] = [series.xs[at], series.xs[at + 1], series.ys[at], series.ys[at + 1]];
      const joined = /line|dashed/.test(series.classes) && x1 !== undefined && y0 !== null && y1 !== null;
      return joined ? y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) : null;
    }

    show(row) {
      hide();
      this.at = row;
      const x = this.xs[row];
      const readings = this.series.map((series) => [series, this.value(series, x)]);
      for (const chart of charts) if (chart.isTime && this.isTime || chart === this) chart.hair(x);
      this.dots(readings.filter(([series, y]) => y !== null && series.shown), x);
      this.tip(readings.filter(([series]) => series.shown), x);
    }

    hair(x) {
      const share = (x - this.x0) / (this.x1 - this.x0);
      if (!(share >= 0 && share <= 1)) return;
      const place = share * 100 + "%";
      this.drawn = [draw(this.frame, "line", { class: "hair", x1: place, x2: place, y2: "100%" })];
    }

    dots(readings, x) {
      for (const [series, y] of readings) {
        if (series.classes.startsWith("area")) continue;
        const cx = ((x - this.x0) / (this.x1 - this.x0)) * 100 + "%", cy = ((this.y1 - y) / (this.y1 - this.y0)) * 100 + "%";
        this.drawn.push(draw(this.frame, "circle", { class: series.classes, cx, cy, r: 4 }));
      }
    }

    tip(readings, x) {
      const tip = make(this.plot, "div", "tip");
      tip.setAttribute("role", "status");
      make(tip, "b", "", this.isTime ? clock(x) : this.names[0] + ": " + number(x));
      for (const [series, y] of readings) {
        const line = make(tip, "div", series.classes);
        make(line, "i");
        make(line, "span", "", series.name);
        make(line, "em", "", y === null ? "–" : number(y));
      }
      const frame = this.frame.getBoundingClientRect(), left = frame.left - this.plot.getBoundingClientRect().left;
      const place = left + ((x - this.x0) / (this.x1 - this.x0)) * frame.width;
      const over = place > this.plot.clientWidth / 2;
      tip.style.left = Math.max(0, over ? place - tip.offsetWidth - 12 : place + 12) + "px";
      this.drawn = [...(this.drawn ?? []), tip];
    }

    hide() {
      for (const element of this.drawn ?? []) element.remove();
      this.drawn = [];
    }

    table() {
      const text = this.figure.querySelector("pre.data");
      const box = document.createElement("div");
      box.className = "data";
      box.tabIndex = 0;
      const table = make(box, "table"), head = make(make(table, "thead"), "tr"), body = make(table, "tbody");
      for (const name of this.names) make(head, "th", "", name).scope = "col";
      for (const row of this.rows) {
        const line = make(body, "tr");
        for (const cell of row) make(line, "td", "", cell);
      }
      text.replaceWith(box);
    }
  }

  const charts = [];
  const hide = () => charts.forEach((chart) => chart.hide());
  for (const figure of document.querySelectorAll(".chart")) charts.push(new Chart(figure));
})();
