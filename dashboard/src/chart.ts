// A plot over time with its legend, its marks and its table.

import uPlot from "uplot";
import { byId, element, mark, say } from "./dom.ts";
import type { EventKind, OperatorEvent } from "./documents.ts";
import { clock } from "./format.ts";

/** A line or an area of a plot. */
export interface Series {
  name: string;
  /** The name of its column in the history. */
  column: string;
  /** Its colour, a custom property of the page. */
  colour: string;
  /** Drawn on top of the areas before it. */
  area?: boolean;
  dash?: boolean;
}

export interface Plot {
  title: string;
  /** What is on the vertical axis. */
  unit: string;
  series: Series[];
  show: (value: number | null | undefined) => string;
  /** The least upper end of the vertical axis. */
  reach?: number;
}

/** How an event is named in a plot; those that are not here are not drawn. */
const MARKS: Partial<Record<EventKind, string>> = {
  started: "start",
  reloaded: "reload",
  "reload-refused": "refused",
  "upstream-down": "down",
  "upstream-up": "up",
  "promise-missed": "missed",
  "promise-kept": "kept",
};

const HEIGHT = 190;
/** Rows of a plot's table. */
const ROWS = 60;

const colour = (name: string): string => getComputedStyle(document.body).getPropertyValue(name).trim();

/** All plots move together: the cross-hair, and the part of time that is shown. */
export interface Shown {
  from: number;
  until: number;
}

export class Chart {
  readonly figure: HTMLElement;
  private readonly frame: HTMLElement;
  private readonly values: HTMLElement[] = [];
  private readonly details: HTMLDetailsElement;
  private plot: uPlot | undefined;
  private data: { times: number[]; figures: (number | null)[][] } = { times: [], figures: [] };
  private events: readonly OperatorEvent[] = [];
  private shown: Shown = { from: 0, until: 1 };

  constructor(
    readonly what: Plot,
    private readonly zoomed: (shown: Shown) => void,
  ) {
    this.frame = element("div", { class: "plot", role: "img", tabindex: "0" });
    const legend = element("ul", { class: "legend" });
    for (const series of what.series) {
      const value = element("b", {}, "–");
      this.values.push(value);
      const kind = series.area ? "key area" : series.dash ? "key dashed" : "key";
      const key = element("i", { class: `${kind} ${series.colour.slice(2)}` });
      legend.append(element("li", {}, key, `${series.name} `, value));
    }
    const body = element("div", { class: "data", tabindex: "0", role: "region", "aria-label": `${what.title}: table` });
    this.details = element("details", {}, element("summary", {}, "Table"), body);
    this.details.addEventListener("toggle", () => this.fillTable());
    const caption = element("figcaption", {}, element("h3", {}, what.title), element("span", { class: "unit" }, what.unit));
    this.figure = element("figure", {}, caption, legend, this.frame, this.details);
    this.frame.addEventListener("keydown", (event) => this.move(event));
  }

  /** Draws these figures. */
  show(data: { times: number[]; figures: (number | null)[][] }, shown: Shown, events: readonly OperatorEvent[]): void {
    Object.assign(this, { data, shown, events });
    if (!this.plot) this.begin();
    this.plot?.setData(this.drawn(), false);
    this.plot?.setScale("x", { min: shown.from, max: shown.until });
    this.tellValues(this.plot?.cursor.idx);
    this.describe();
    if (this.details.open) this.fillTable();
  }

  /** Gives the plot the width that there is. */
  fit(): void {
    const width = this.frame.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  /** Draws anew, in the colours that are in force now. */
  redraw(): void {
    this.plot?.destroy();
    this.plot = undefined;
    this.show(this.data, this.shown, this.events);
  }

  end(): void {
    this.plot?.destroy();
    this.figure.remove();
  }

  /** Areas are drawn as sums, the highest first, each over the one before. */
  private drawn(): uPlot.AlignedData {
    const sums: (number | null)[][] = [];
    let below: (number | null)[] | undefined;
    this.what.series.forEach((series, index) => {
      const own = this.data.figures[index] ?? [];
      if (!series.area) {
        sums.push(own);
        return;
      }
      const base = below;
      below = own.map((value, at) => (value === null ? null : value + (base?.[at] ?? 0)));
      sums.push(below);
    });
    return [this.data.times, ...sums.reverse()] as uPlot.AlignedData;
  }

  private begin(): void {
    const axis = { stroke: colour("--soft"), font: "12px system-ui, sans-serif", ticks: { stroke: colour("--grid"), size: 4 } };
    const grid = { stroke: colour("--grid"), width: 1 };
    const series = this.what.series.map((one): uPlot.Series => {
      const own = colour(one.colour);
      const line: uPlot.Series = { label: one.name, stroke: own, width: one.area ? 1 : 1.75, points: { show: false } };
      if (one.area) line.fill = own;
      if (one.dash) line.dash = [6, 5];
      return line;
    });
    const reach = this.what.reach ?? 0;
    this.plot = new uPlot(
      {
        width: this.frame.clientWidth || 320,
        height: HEIGHT,
        legend: { show: false },
        padding: [16, 26, 0, 0],
        cursor: { sync: { key: "plots" }, drag: { x: true, y: false }, points: { show: false } },
        scales: {
          x: { time: true },
          y: { range: (_, __, most) => [0, Math.max(reach, Number.isFinite(most) ? most * 1.08 : 0) || 1] },
        },
        series: [{}, ...series.reverse()],
        axes: [
          { ...axis, grid: { show: false }, size: 30, space: 74, values: (_, marks) => marks.map((at) => clock(at)) },
          { ...axis, grid, size: 58, values: (_, marks) => marks.map((value) => this.what.show(value)) },
        ],
        hooks: {
          draw: [(plot) => this.drawMarks(plot)],
          setCursor: [(plot) => this.tellValues(plot.cursor.idx)],
          setSelect: [(plot) => this.zoom(plot)],
        },
      },
      this.drawn(),
      this.frame,
    );
    // A double click leads back; the page decides what that is.
    this.plot.over.addEventListener("dblclick", () => this.zoomed({ from: 0, until: 0 }));
  }

  private zoom(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [from, until] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomed({ from, until });
  }

  /** A dashed line and a word for each event. */
  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    let free = Number.NEGATIVE_INFINITY;
    for (const event of this.events) {
      const word = MARKS[event.kind];
      if (!word || event.unix_seconds < this.shown.from || event.unix_seconds > this.shown.until) continue;
      const x = Math.round(plot.valToPos(event.unix_seconds, "x", true));
      ctx.strokeStyle = ctx.fillStyle = colour(event.kind === "promise-missed" || event.kind === "upstream-down" ? "--bad" : "--soft");
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(word).width;
      const left = Math.min(x - width / 2, bbox.left + bbox.width - width);
      if (left > free) {
        ctx.fillText(word, left, bbox.top - 4 * ratio);
        free = left + width + 6 * ratio;
      }
    }
    ctx.restore();
  }

  /** The figures under the cross-hair; the latest ones while it is elsewhere. */
  private tellValues(index: number | null | undefined): void {
    this.values.forEach((value, series) => {
      const own = this.data.figures[series] ?? [];
      say(value, this.what.show(index === null || index === undefined ? own.at(-1) : own[index]));
    });
  }

  private describe(): void {
    const latest = this.what.series.map((series, index) => `${series.name} ${this.what.show(this.data.figures[index]?.at(-1))}`);
    mark(this.frame, "aria-label", `${this.what.title}, now: ${latest.join(", ")}. The arrow keys move the cross-hair.`);
  }

  /** The arrow keys move the cross-hair, and with Shift the part of time; + and - change how much of it is shown. */
  private move(event: KeyboardEvent): void {
    const { from, until } = this.shown;
    const tenth = (until - from) / 10;
    const parts: Record<string, Shown> = {
      ArrowLeft: { from: from - tenth, until: until - tenth },
      ArrowRight: { from: from + tenth, until: until + tenth },
      "+": { from: from + 2 * tenth, until: until - 2 * tenth },
      "-": { from: from - 2 * tenth, until: until + 2 * tenth },
      Escape: { from: 0, until: 0 },
    };
    const part = parts[event.key];
    if (part && (event.shiftKey || !event.key.startsWith("Arrow"))) {
      event.preventDefault();
      this.zoomed(part);
      return;
    }
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 };
    const step = steps[event.key];
    if (step === undefined || !this.plot) return;
    event.preventDefault();
    const last = this.data.times.length - 1;
    const at = Math.min(last, Math.max(0, (this.plot.cursor.idx ?? last) + step));
    const left = this.plot.valToPos(this.data.times[at] ?? 0, "x");
    this.plot.setCursor({ left, top: HEIGHT / 3 });
  }

  private fillTable(): void {
    const body = this.details.querySelector(".data");
    if (!this.details.open || !body) return;
    const { times, figures } = this.data;
    const each = Math.max(1, Math.ceil(times.length / ROWS));
    const head = element("tr", {}, element("th", { scope: "col" }, "Time"));
    for (const series of this.what.series) head.append(element("th", { scope: "col" }, series.name));
    const rows = element("tbody");
    for (let at = times.length - 1; at >= 0; at -= each) {
      const row = element("tr", {}, element("th", { scope: "row" }, clock(times[at] ?? 0)));
      for (const own of figures) row.append(element("td", {}, this.what.show(own[at])));
      rows.append(row);
    }
    body.replaceChildren(element("table", {}, element("thead", {}, head), rows));
  }
}

/** Where plots are. */
export const place = (): HTMLElement => byId("plots");
