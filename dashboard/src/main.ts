// The dashboard: takes the stream of snapshots, and shows the last one and the hour before it.

import { type ClassDocument, type JournalDocument, type OperatorEvent, type PromiseRow, REJECTIONS, type StatusDocument } from "./documents.ts";
import { Rows, byId, element, mark, say } from "./dom.ts";
import { clock, count, digits, moment, percent, span, time } from "./format.ts";
import { History, classKey } from "./history.ts";
import { Loop } from "./loop.ts";
import "./what_if.ts";

const WORDS: Record<PromiseRow["state"], string> = { kept: "kept", idle: "idle", "at-risk": "at risk", missed: "missed" };
const KINDS: Record<OperatorEvent["kind"], string> = {
  started: "start",
  reloaded: "reload",
  "reload-refused": "reload refused",
  "upstream-down": "upstream down",
  "upstream-up": "upstream up",
  "promise-missed": "promise missed",
  "promise-kept": "promise kept",
  "rejections-began": "rejections",
  "rejections-ended": "no rejections",
};
/** The share of failed requests from which on the headline says so, as `plimsoll top` does. */
const FAILING = 0.05;
/** Events on the page. */
const MOST_EVENTS = 500;

const history = new History();
const loop = new Loop();
let latest: StatusDocument | undefined;
/** What is shown while the page is paused. */
let held: StatusDocument | undefined;
let events: OperatorEvent[] = [];
let started = 0;
/** The class whose loop is open, and the row that opened it. */
let chosen: { site: string; class: string } | undefined;
let chosenRow = "";

const rowKey = (row: PromiseRow): string => `${row.kind} ${row.site} ${row.class} ${row.upstream}`;
const cell = (label: string, ...attributes: [string, string][]): HTMLElement =>
  element("td", { role: "cell", "data-label": label, ...Object.fromEntries(attributes) });

const promises = new Rows<PromiseRow>(
  byId("rows").querySelector("tbody") as HTMLElement,
  rowKey,
  (row) => {
    const open = element("button", { type: "button", class: "open", "aria-controls": "detail" });
    open.addEventListener("click", () => choose(row));
    const who = cell("Site and class");
    who.append(open);
    const made = element("tr", { role: "row" }, cell("State"), who, cell("Promise"), cell("Now"), cell("Margin", ["class", "number"]), cell("Since"), cell("What the loop does", ["class", "sentence"]));
    made.firstElementChild?.append(element("span", { class: "state" }));
    return made;
  },
  (made, row) => {
    const cells = made.children;
    mark(made, "data-state", row.state);
    const state = cells[0]?.firstElementChild;
    if (state) say(state, WORDS[row.state]);
    const open = cells[1]?.firstElementChild as HTMLElement;
    say(open, row.class === "all" ? row.site : `${row.site} / ${row.class}`);
    mark(open, "aria-expanded", String(chosenRow === rowKey(row)));
    if (cells[2]) say(cells[2], row.kind === "load-line" ? `${row.guarantee} (${row.upstream})` : row.guarantee);
    if (cells[3]) say(cells[3], row.now);
    if (cells[4]) say(cells[4], percent(row.margin));
    const since = row.since_unix_seconds;
    const now = (held ?? latest)?.unix_seconds ?? since;
    if (cells[5]) say(cells[5], `${moment(since)}, ${span(now - since)}`);
    if (cells[6]) say(cells[6], row.sentence);
  },
);

const traffic = new Rows<ClassDocument>(
  byId("traffic").querySelector("tbody") as HTMLElement,
  classKey,
  (one) => {
    const open = element("button", { type: "button", class: "open", "aria-controls": "detail" }, classKey(one).replace("/", " / "));
    open.addEventListener("click", () => chooseClass(one));
    const who = cell("Site and class");
    who.append(open);
    const served = cell("Served by level");
    served.append(element("span", { class: "bar", "aria-hidden": "true" }), element("span", { class: "words" }));
    return element("tr", { role: "row" }, who, cell("Load", ["class", "number"]), served, cell("Rejected"), cell("Level", ["class", "number"]), cell("p50", ["class", "number"]), cell("p95", ["class", "number"]), cell("p99", ["class", "number"]));
  },
  (made, one) => {
    const { recent } = one;
    const put = (at: number, text: string): void => {
      const where = made.children[at];
      if (where) say(where, text);
    };
    const isChosen = chosen !== undefined && classKey(chosen) === classKey(one);
    mark(made.children[0]?.firstElementChild as Element, "aria-expanded", String(isChosen));
    put(1, `${digits(recent.seconds > 0 ? recent.arrivals / recent.seconds : one.request_rate_per_second)}/s`);
    showLevels(made.children[2] as HTMLElement, one);
    const why = Object.entries(recent.reasons).filter(([reason]) => one.recent.rejected > 0 && isRejection(reason));
    put(3, recent.rejected === 0 ? "none" : `${count(recent.rejected)} for ${why.map(([reason]) => reason).join(", ")}`);
    made.children[3]?.classList.toggle("rejection", recent.rejected > 0);
    put(4, `${one.service_level.toFixed(2)} of ${one.levels.length}`);
    put(5, time(recent.response_p50_seconds));
    put(6, time(recent.response_p95_seconds));
    put(7, time(recent.response_p99_seconds));
  },
);

/** A bar with a part for each level, from the highest, and the same in words. */
function showLevels(where: HTMLElement, one: ClassDocument): void {
  const { served, rejected } = one.recent;
  const all = served.reduce((sum, count) => sum + count, rejected);
  const [bar, words] = where.children as unknown as [HTMLElement, HTMLElement];
  const parts = one.levels
    .map((level, index) => ({ name: level.name, count: served[index] ?? 0, colour: `l${Math.min(one.levels.length - 1 - index, 4)}` }))
    .toReversed()
    .concat({ name: "rejected", count: rejected, colour: "c1" });
  while (bar.children.length < parts.length) bar.append(element("i"));
  parts.forEach((part, index) => {
    const piece = bar.children[index] as HTMLElement;
    piece.className = part.colour;
    piece.style.width = `${all > 0 ? (100 * part.count) / all : 0}%`;
  });
  const said = parts.filter((part) => part.count > 0).map((part) => `${percent(part.count / all)} ${part.name}`);
  // A request that failed was served at some level before.
  const failed = failedShare([one]);
  const failing = failed > 0 ? `; ${percent(failed)} failed by the server` : "";
  say(words, (said.join(", ") || "no requests") + failing);
  words.classList.toggle("rejection", failed > 0);
}

/** The share of the requests of the last seconds that the servers failed. One that started before may fail now. */
function failedShare(classes: ClassDocument[]): number {
  const sum = (count: (recent: ClassDocument["recent"]) => number): number => classes.reduce((all, one) => all + count(one.recent), 0);
  const all = sum((recent) => recent.served.reduce((sum, count) => sum + count, recent.rejected));
  return Math.min(sum((recent) => recent.failed) / Math.max(all, 1), 1);
}

const isRejection = (reason: string): boolean => REJECTIONS.includes(reason);

const happened = new Rows<OperatorEvent>(
  byId("events"),
  (event) => `${event.unix_seconds} ${event.number}`,
  (event) =>
    element(
      "li",
      { "data-kind": event.kind },
      element("time", { datetime: new Date(event.unix_seconds * 1000).toISOString() }, moment(event.unix_seconds)),
      element("b", {}, KINDS[event.kind]),
      element("span", {}, event.text),
    ),
  () => {},
);

function choose(row: PromiseRow): void {
  const status = held ?? latest;
  if (!status) return;
  const own = status.classes.filter((one) => isOf(row, one));
  const busiest = own.toSorted((a, b) => b.recent.arrivals - a.recent.arrivals)[0];
  if (!busiest) return;
  chosenRow = rowKey(row);
  chosen = busiest;
  reveal();
}

function isOf(row: PromiseRow, one: ClassDocument): boolean {
  if (row.kind === "load-line") return one.upstream === row.upstream;
  return one.site === row.site && (row.class === "all" || one.class === row.class);
}

function chooseClass(one: ClassDocument): void {
  chosen = one;
  chosenRow = "";
  reveal();
}

function reveal(): void {
  show();
  const heading = byId("loop");
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ behavior: "instant", block: "nearest" });
}

function show(): void {
  const status = held ?? latest;
  if (!status) return;
  if (!chosen) {
    const worst = status.promises[0];
    const own = worst ? status.classes.filter((one) => isOf(worst, one)) : status.classes;
    chosen = own.toSorted((a, b) => b.recent.arrivals - a.recent.arrivals)[0];
    chosenRow = worst ? rowKey(worst) : "";
  }
  promises.show(status.promises);
  // What is exempt is shown where something is.
  traffic.show(status.classes.filter((one) => one.class !== "exempt" || one.arrivals > 0));
  happened.show(events.toReversed());
  // A controller simulates nothing.
  byId("what-if-part").hidden = status.controller !== null;
  verdict(status);
  const one = status.classes.find((one) => chosen && classKey(one) === classKey(chosen));
  if (one) loop.show(status, one, history, events);
  else byId("detail").hidden = true;
  say(byId("about"), `plimsoll ${status.version} at ${location.host}, control period ${time(status.period_seconds)}, since ${moment(started)}.${attached(status)} Times are this browser's.`);
}

/** The processes of a controller's server. */
function attached(status: StatusDocument): string {
  const own = status.controller;
  return own === null ? "" : ` A controller inside a server: ${own.attached} attached, of at most ${own.lanes} processes.`;
}

function verdict(status: StatusDocument): void {
  const number = (state: PromiseRow["state"]): number => status.promises.filter((row) => row.state === state).length;
  const all = status.promises.length;
  const [missed, risky] = [number("missed"), number("at-risk")];
  const idle = number("idle");
  const failed = failedShare(status.classes);
  const isFailing = failed >= FAILING;
  const state = missed > 0 || isFailing ? "missed" : risky > 0 ? "at-risk" : idle === all ? "idle" : "kept";
  let text = `${all - idle} of ${all} promises kept, ${idle} idle`;
  if (idle === 0) text = all === 1 ? "The promise is kept" : `All ${all} promises are kept`;
  if (idle === all) text = all === 0 ? "Nothing is promised yet" : "Idle: no requests to judge promises by";
  if (risky > 0) text = `${risky} of ${all} promises at risk`;
  if (missed > 0) text = `${missed} of ${all} promises missed`;
  if (isFailing) text = `The server fails ${percent(failed)} of requests; ${text.charAt(0).toLowerCase()}${text.slice(1)}`;
  if (status.mode !== "control") text += `; the controller is in mode ${status.mode}`;
  say(byId("verdict"), text);
  mark(byId("verdict"), "data-state", state);
  document.title = `${missed > 0 ? `(${missed} missed) ` : isFailing ? "(server fails) " : ""}Plimsoll`;
}

function take(journal: JournalDocument): void {
  if (journal.started_unix_seconds !== started) {
    started = journal.started_unix_seconds;
    events.push(...journal.events);
  } else {
    const last = events.at(-1)?.number ?? 0;
    events.push(...journal.events.filter((event) => event.number > last));
  }
  events = events.slice(-MOST_EVENTS);
}

function tellLink(text: string, isLive: boolean): void {
  say(byId("link"), text);
  mark(byId("link"), "data-live", String(isLive));
  document.body.classList.toggle("stale", !isLive);
}

const stream = new EventSource("/live");
stream.addEventListener("journal", (message: MessageEvent<string>) => take(JSON.parse(message.data) as JournalDocument));
stream.addEventListener("message", (message: MessageEvent<string>) => {
  latest = JSON.parse(message.data) as StatusDocument;
  history.add(latest);
  tellLink("live", true);
  if (!held && !document.hidden) show();
});
stream.addEventListener("error", () => {
  const since = latest ? ` since ${clock(latest.unix_seconds)}` : "";
  tellLink(`no answer${since}, trying again`, false);
  // A browser gives up after some answers, such as 503.
  if (stream.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !held) show();
});

const pause = byId("pause");
pause.addEventListener("click", () => {
  held = held ? undefined : latest;
  mark(pause, "aria-pressed", String(held !== undefined));
  say(pause, held ? `Paused at ${clock(held.unix_seconds)}` : "Pause");
  show();
});
