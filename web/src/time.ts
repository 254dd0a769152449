/** Pure: times as a glance needs them. */

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
