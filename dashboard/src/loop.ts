// A promise's loop: its plots, its terms, what it has learned, and its last decisions by reason.

import { Chart, type Plot, type Shown, place } from "./chart.ts";
import { REJECTIONS, type ClassDocument, type OperatorEvent, type PlantDocument, type StatusDocument } from "./documents.ts";
import { byId, element, say } from "./dom.ts";
import { count, digits, percent, time } from "./format.ts";
import { type History, classKey } from "./history.ts";

/** Colours of levels, from the highest down. */
const LEVELS = ["--l0", "--l1", "--l2", "--l3", "--l4"];
/** The least that a plot shows (s). */
const LEAST = 60;
const REASONS = ["--c1", "--c3", "--c4", "--c6", "--c7", "--c5", "--cm"];

const plain = (value: number | null | undefined): string =>
  value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(2);
const perSecond = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : `${digits(value)}/s`;

export class Loop {
  private charts: Chart[] = [];
  private drawnFor = "";
  private zoom: Shown | undefined;
  private seconds = 300;
  private latest: { status: StatusDocument; history: History; events: readonly OperatorEvent[] } | undefined;

  constructor() {
    for (const choice of document.querySelectorAll<HTMLInputElement>("#span input")) {
      choice.addEventListener("change", () => {
        this.seconds = Number(choice.value);
        this.zoom = undefined;
        this.draw();
      });
    }
    const colours = matchMedia("(prefers-color-scheme: dark)");
    colours.addEventListener("change", () => this.charts.forEach((chart) => chart.redraw()));
    new ResizeObserver(() => this.charts.forEach((chart) => chart.fit())).observe(place());
  }

  show(status: StatusDocument, one: ClassDocument, history: History, events: readonly OperatorEvent[]): void {
    const plant = status.upstreams.find((plant) => plant.name === one.upstream);
    byId("detail").hidden = false;
    say(byId("loop"), `${one.site} / ${one.class}${plant ? ` on ${plant.name}` : ""}`);
    const plots = plotsOf(one, plant, history);
    const drawnFor = JSON.stringify(plots.map((plot) => [plot.title, plot.series.map((series) => series.column)]));
    if (drawnFor !== this.drawnFor) {
      this.charts.forEach((chart) => chart.end());
      this.charts = plots.map((plot) => new Chart(plot, (shown) => this.zoomTo(shown)));
      place().replaceChildren(...this.charts.map((chart) => chart.figure));
      this.drawnFor = drawnFor;
    }
    this.latest = { status, history, events };
    this.draw();
    byId("terms").replaceChildren(...terms(status, one, plant));
  }

  /** Draws the plots, and nothing else: the part of time that they show may change with each frame. */
  private draw(): void {
    if (!this.latest) return;
    const { status, history, events } = this.latest;
    const now = status.unix_seconds;
    // A page that was just opened has a minute for what it has seen so far.
    const from = Math.max(now - this.seconds, Math.min(history.first(), now - LEAST));
    const shown = this.zoom ?? { from, until: now };
    for (const chart of this.charts) {
      chart.show(history.since(shown.from, chart.what.series.map((series) => series.column)), shown, events);
    }
  }

  /** Shows a part of time; the last minutes again if it is empty. */
  private zoomTo(shown: Shown): void {
    this.zoom = shown.until > shown.from ? shown : undefined;
    this.draw();
  }
}

function plotsOf(one: ClassDocument, plant: PlantDocument | undefined, history: History): Plot[] {
  const key = classKey(one);
  const top = one.levels.length - 1;
  const plots: Plot[] = [];
  if (plant) {
    const column = (name: string): string => `u ${plant.name} ${name}`;
    plots.push({
      title: `Utilization of ${plant.name}`,
      unit: "part of its workers",
      show: plain,
      reach: 1,
      series: [
        { name: "measured", column: column("measured"), colour: "--c0" },
        { name: "offered", column: column("offered"), colour: "--c1" },
        { name: "set point", column: column("set point"), colour: "--cm", dash: true },
      ],
    });
  }
  plots.push({
    title: "Served by level",
    unit: "requests/s",
    show: perSecond,
    series: [
      ...one.levels.toReversed().map((level, from) => ({
        name: level.name,
        column: `c ${key} served ${top - from}`,
        colour: LEVELS[Math.min(from, LEVELS.length - 1)] ?? "--l4",
        area: true,
      })),
      { name: "rejected", column: `c ${key} rejected`, colour: "--c1", area: true },
    ],
  });
  plots.push({
    title: "Response times",
    unit: one.promise?.delay_seconds || one.deadline ? "against the target" : "by percentile",
    show: time,
    series: [
      { name: "p50", column: `c ${key} p50`, colour: "--c0" },
      { name: "p95", column: `c ${key} p95`, colour: "--c2" },
      { name: "p99", column: `c ${key} p99`, colour: "--c3" },
      { name: "in the queue", column: `c ${key} queue`, colour: "--c5" },
      { name: "target", column: `c ${key} target`, colour: "--ca", dash: true },
    ]
      .filter((series) => series.name !== "target" || one.promise?.delay_seconds || one.deadline)
      .filter((series) => series.name !== "in the queue" || one.queue_delay_seconds !== null),
  });
  const quota = one.promise?.quota != null;
  plots.push({
    title: quota ? "Level and quota" : "Service level",
    unit: quota ? `of ${one.levels.length} levels; workers` : `m, of ${one.levels.length}`,
    show: plain,
    reach: one.levels.length,
    series: [
      { name: "level", column: `c ${key} level`, colour: "--c0" },
      ...(quota ? [{ name: "quota", column: `c ${key} quota`, colour: "--c2" }] : []),
    ],
  });
  const reasons = history.reasonsOf(key);
  if (reasons.length > 0) {
    plots.push({
      title: "Rejections by reason",
      unit: "requests/s",
      show: perSecond,
      series: reasons.map((reason, index) => ({
        name: reason,
        column: `c ${key} reason ${reason}`,
        colour: REASONS[index % REASONS.length] ?? "--c1",
        area: true,
      })),
    });
  }
  return plots;
}

type Fact = [name: string, value: string];

function terms(status: StatusDocument, one: ClassDocument, plant: PlantDocument | undefined): HTMLElement[] {
  const blocks: HTMLElement[] = [];
  if (plant) {
    const { set_point, measured, model, offered } = plant.utilization;
    blocks.push(
      block("The loop of the load line", [
        ["mode", status.mode],
        ["set point", plain(set_point)],
        ["error: set point − measured", plain(set_point - measured)],
        ["utilization by the model", plain(model)],
        ["offered load", plain(offered)],
        ["bias that the integrator adds", plain(plant.bias)],
        ["set point reduced for delays by", percent(plant.set_point_reduction)],
        ["service level m", `${plain(plant.service_level)}`],
        ["workers", `${plant.workers}${plant.workers_found === false ? ", not yet found" : ""}`],
        ...served(plant),
        ...places(plant),
        ...processes(status),
        ["service time", time(plant.service_time_seconds)],
        ["turned away: come again after", `${time(plant.come_again.soonest_seconds)} to ${time(plant.come_again.latest_seconds)}`],
      ]),
    );
  }
  blocks.push(block("What it has learned", learned(status, one)));
  const promise = one.promise;
  if (promise) blocks.push(block("Its promise", promised(promise)));
  if (one.deadline) {
    blocks.push(
      block("Its deadline", [
        ["deadline", time(one.deadline.deadline_seconds)],
        ["in time, of those admitted", percent(one.deadline.in_time / 100)],
        ["admitted now from a chance of", percent(one.deadline.admitted_from / 100)],
        ["wait of a request that comes now", time(one.deadline.expected_wait_seconds)],
        ["late since the start", count(one.deadline.missed)],
      ]),
    );
  }
  blocks.push(decisions(one));
  return blocks;
}

/** What is in service. Inside a server nobody knows how many may be, and none waits but in its listen queue. */
function served(plant: PlantDocument): Fact[] {
  const { limit, limit_reason, in_service, waiting } = plant;
  if (limit === null || waiting === null) return [["in service", count(in_service)]];
  return [
    ["at most at once", `${limit}${limit_reason === null ? "" : ` (${limit_reason})`}`],
    ["in service, waiting", `${in_service}, ${waiting}`],
  ];
}

/** What a gateway reports to a server that decides itself of its places there. */
function places(plant: PlantDocument): Fact[] {
  const reported = plant.places;
  if (reported === null) return [];
  const reduction = reported.set_point_reduction;
  if (reduction === null) return [["places taken, as reported to the server", percent(reported.taken)]];
  return [
    ["places taken, as the gateway reports", percent(reported.taken)],
    ["line of levels reduced for them by", percent(reduction)],
  ];
}

/** The processes of a controller's server. */
function processes(status: StatusDocument): Fact[] {
  const own = status.controller;
  if (own === null) return [];
  return [
    ["processes attached, at most", `${count(own.attached)}, ${count(own.lanes)}`],
    ["processes found dead, their requests", `${count(own.deaths)}, ${count(own.returned_requests)}`],
    ["connections in the listen queue", own.listen_queue === null ? "–" : count(own.listen_queue)],
  ];
}

function learned(status: StatusDocument, one: ClassDocument): Fact[] {
  const { model } = one;
  return [
    ["a, a request", time(model.per_request_seconds)],
    ["b, 1000 bytes", time(model.per_byte_seconds === null ? null : 1000 * model.per_byte_seconds)],
    ["c, a rejection", time(status.rejection_cost_seconds)],
    ["confidence", percent(model.confidence)],
    ["learning", model.frozen ? "frozen: the last period taught nothing" : "yes"],
    ...one.levels.map((level): Fact => [`cost at ${level.name}`, time(level.cost_seconds)]),
    ["heavy clients", count(one.heavy_clients)],
  ];
}

function promised(promise: NonNullable<ClassDocument["promise"]>): Fact[] {
  const facts: Fact[] = [["mean response time", time(promise.mean_seconds)]];
  if (promise.delay_seconds !== null) facts.unshift(["target", time(promise.delay_seconds)]);
  if (promise.percentile !== null) facts.push(["percentile", String(promise.percentile)]);
  if (promise.quota !== null) facts.push(["quota", `${plain(promise.quota)} workers${promise.at_limit ? ", at its limit" : ""}`]);
  const { law } = promise;
  if (law !== null) {
    facts.push(["workers by the model", plain(law.predicted_workers)]);
    facts.push(["error: measured over promised, less 1", plain(law.error)]);
    facts.push(["gain: workers for each unit of error", plain(law.workers_per_error)]);
    facts.push(["integral", `${plain(law.integral_workers)} workers`]);
  }
  if (promise.late_share !== null) facts.push(["late", percent(promise.late_share)]);
  if (promise.lost_share !== null) facts.push(["failed or turned away", percent(promise.lost_share)]);
  if (promise.ratio !== null) facts.push(["ratio", `${plain(promise.ratio)}, reached ${plain(promise.ratio_reached)}`]);
  if (promise.weight !== null) facts.push(["weight", plain(promise.weight)]);
  return facts;
}

function block(title: string, facts: Fact[]): HTMLElement {
  const list = element("dl");
  for (const [name, value] of facts) list.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  return element("section", { class: "block" }, element("h3", {}, title), list);
}

function decisions(one: ClassDocument): HTMLElement {
  const rows = Object.entries(one.reasons).filter(([, all]) => all > 0);
  const body = element("tbody");
  for (const [reason, all] of rows) {
    const isRejection = REJECTIONS.includes(reason);
    const name = element("th", { scope: "row" }, reason);
    if (isRejection) name.className = "rejection";
    body.append(element("tr", {}, name, element("td", {}, count(one.recent.reasons[reason] ?? 0)), element("td", {}, count(all))));
  }
  const head = element("tr", {}, element("th", { scope: "col" }, "Reason"), element("th", { scope: "col" }, "Last 10 s"), element("th", { scope: "col" }, "Since the start"));
  const table = element("table", { class: "small" }, element("thead", {}, head), body);
  return element("section", { class: "block" }, element("h3", {}, "Its last decisions, by reason"), rows.length > 0 ? table : element("p", {}, "None yet."));
}
