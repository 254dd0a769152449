/** Pure: times as a glance needs them. */

import type { RetryPayload } from "./wire";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "now", "5 min", "3 h", "2 d", or the date when it is more than a week ago. */
export function relativeTime(iso: string, now: number): string {
  const then = Date.parse(iso);
  const age = now - then;
  if (age < MINUTE) return "now";
  if (age < HOUR) return `${Math.floor(age / MINUTE)} min`;
  if (age < DAY) return `${Math.floor(age / HOUR)} h`;
  if (age < 7 * DAY) return `${Math.floor(age / DAY)} d`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export const fullTime = (iso: string) => new Date(iso).toLocaleString();

/** Whole seconds until the next try; never more than its delay, whatever the clocks say. */
export function secondsLeft(
  retry: Pick<RetryPayload, "retrying_at" | "delay_ms">,
  now: number,
): number {
  const left = Math.min(Date.parse(retry.retrying_at) - now, retry.delay_ms);
  return Math.max(0, Math.ceil(left / 1000));
}

/** "45 s", "2 min 5 s". */
export function duration(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
