/** How long to wait before connecting again. */

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/**
 * Milliseconds before try number *failures* (1 after the first failure): 0.5 s doubling to 15 s,
 * of which a random half is taken off, so that many pages do not return at the same instant.
 */
export function backoffMs(failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}
