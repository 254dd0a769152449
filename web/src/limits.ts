/** Pure: what the server would refuse, said before anything is sent. */

/** Characters (code points) of one message, as in chatd/wire.py. */
export const MOST_CHARACTERS = 200_000;

/** Why *text* cannot be sent, as a sentence; null when it can. */
export function lengthProblem(text: string): string | null {
  // A character is one or two UTF-16 units: only a long text is worth counting.
  if (text.length <= MOST_CHARACTERS) return null;
  const count = characters(text);
  if (count <= MOST_CHARACTERS) return null;
  const [has, most] = [count, MOST_CHARACTERS].map((number) => number.toLocaleString("en-US"));
  return `This message has ${has} characters, and at most ${most} can be sent. Shorten it or send it in parts.`;
}

function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
