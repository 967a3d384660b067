// Figures as people read them.

/** A whole number. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** A time with three digits. */
export function time(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds === 0) return "0 ms";
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 1e-3) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds * 1e6)} µs`;
}

/** A plain number with three digits. */
export function digits(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return count(value);
  return value.toFixed(size >= 10 ? 1 : size >= 0.01 ? 2 : 4);
}

/** A part of one in percent; what is more than nothing does not read as nothing. */
export function percent(part: number | null | undefined): string {
  if (part === null || part === undefined || !Number.isFinite(part)) return "–";
  if (part > 0 && part < 0.001) return "< 0.1 %";
  if (part > 0.999 && part < 1) return "> 99.9 %";
  const size = Math.abs(part);
  return `${(100 * part).toFixed(size > 0 && size < 0.1 ? 1 : 0)} %`;
}

/** How long, in two units at most. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** The time of the day, as this browser's clock has it. */
export function clock(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The same, with the day if it is another. */
export function moment(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1000);
  if (at.toDateString() === new Date().toDateString()) return clock(unixSeconds);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(unixSeconds)}`;
}
