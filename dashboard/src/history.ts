// The last hour, in bounded memory: a column of numbers for each figure, a row a second.
//
// A column is as long as an hour and a quarter; when it is full, the last hour moves to its beginning. What is not known is
// NaN. A figure costs 18 kB, so that two hundred classes with a dozen figures each take 43 MB and no more.

import { type ClassDocument, REJECTIONS, type StatusDocument } from "./documents.ts";

const KEPT = 3600;
const LENGTH = KEPT + 900;

export const classKey = (one: { site: string; class: string }): string => `${one.site}/${one.class}`;

/** Counters of a class, to take differences of. */
interface Counted {
  served: number[];
  reasons: Record<string, number>;
}

export class History {
  private readonly times = new Float64Array(LENGTH);
  private readonly columns = new Map<string, Float32Array>();
  private readonly counted = new Map<string, Counted>();
  private end = 0;
  private last: { at: number; unix: number } | undefined;

  /** Adds a snapshot. One of a gateway or controller that began anew goes on in the same columns. */
  add(status: StatusDocument): void {
    const before = this.last;
    const passed = before ? status.at_seconds - before.at : 0;
    // No control period has ended since.
    if (before && passed === 0) return;
    const isSame = passed > 0;
    if (!isSame) this.counted.clear();
    if (this.end === LENGTH) this.forget();
    // A clock that is set back must not turn plots back.
    const unix = Math.max(status.unix_seconds, (before?.unix ?? 0) + 0.001);
    this.times[this.end] = unix;
    for (const column of this.columns.values()) column[this.end] = Number.NaN;
    for (const plant of status.upstreams) {
      const put = (name: string, value: number | null): void => this.put(`u ${plant.name} ${name}`, value ?? Number.NaN);
      put("measured", plant.utilization.measured);
      put("offered", plant.utilization.offered);
      put("set point", plant.utilization.set_point);
    }
    for (const one of status.classes) this.addClass(one, isSame ? passed : 0);
    this.last = { at: status.at_seconds, unix };
    this.end += 1;
  }

  private addClass(one: ClassDocument, passed: number): void {
    const key = classKey(one);
    const put = (name: string, value: number | null | undefined): void =>
      this.put(`c ${key} ${name}`, value ?? Number.NaN);
    put("level", one.service_level);
    put("queue", one.recent.arrivals > 0 ? one.queue_delay_seconds : null);
    put("p50", one.recent.response_p50_seconds);
    put("p95", one.recent.response_p95_seconds);
    put("p99", one.recent.response_p99_seconds);
    put("target", one.promise?.delay_seconds ?? one.deadline?.deadline_seconds);
    put("quota", one.promise?.quota);
    const before = this.counted.get(key);
    const served = one.levels.map((level) => level.served);
    if (before && passed > 0) {
      served.forEach((count, level) => put(`served ${level}`, rate(count, before.served[level], passed)));
      let rejected = 0;
      for (const reason of REJECTIONS) {
        const each = rate(one.reasons[reason] ?? 0, before.reasons[reason], passed);
        rejected += each;
        if (each > 0 || this.columns.has(`c ${key} reason ${reason}`)) put(`reason ${reason}`, each);
      }
      put("rejected", rejected);
    }
    this.counted.set(key, { served, reasons: one.reasons });
  }

  private put(name: string, value: number): void {
    let column = this.columns.get(name);
    if (!column) {
      column = new Float32Array(LENGTH).fill(Number.NaN);
      this.columns.set(name, column);
    }
    column[this.end] = value;
  }

  private forget(): void {
    const from = LENGTH - KEPT;
    this.times.copyWithin(0, from);
    for (const [name, column] of this.columns) {
      column.copyWithin(0, from);
      // A class that is gone for an hour leaves no column behind.
      if (column.subarray(0, KEPT).every(Number.isNaN)) this.columns.delete(name);
    }
    this.end = KEPT;
  }

  /** When the first snapshot that is kept was made (Unix time). */
  first(): number {
    return this.times[Math.max(0, this.end - KEPT)] ?? 0;
  }

  /** The seconds from `from` on (Unix time), and the figures of these names then. */
  since(from: number, names: string[]): { times: number[]; figures: (number | null)[][] } {
    let start = this.end;
    while (start > 0 && start > this.end - KEPT && (this.times[start - 1] ?? 0) >= from) start -= 1;
    const times = Array.from(this.times.subarray(start, this.end));
    const figures = names.map((name) => {
      const column = this.columns.get(name);
      if (!column) return times.map(() => null);
      return Array.from(column.subarray(start, this.end), (value) => (Number.isNaN(value) ? null : value));
    });
    return { times, figures };
  }

  /** The reasons for which requests of a class were turned away within the hour. */
  reasonsOf(key: string): string[] {
    return REJECTIONS.filter((reason) => this.columns.has(`c ${key} reason ${reason}`));
  }
}

function rate(now: number, before: number | undefined, seconds: number): number {
  return Math.max(0, now - (before ?? now)) / seconds;
}
