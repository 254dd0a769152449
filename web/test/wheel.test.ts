import assert from "node:assert/strict";
import { test } from "node:test";
import { Notches } from "../src/wheel";

/** Movements in pixels, 10 ms apart, and the notches that each gives. */
const turns: [number[], number[]][] = [
  [[100], [1]],
  [[-120], [-1]],
  [
    [60, 60, 60, 60, 60],
    [0, 1, 0, 1, 1],
  ],
  [
    [90, -20],
    [0, 0],
  ],
  [
    [90, -100],
    [0, -1],
  ],
  [[500], [5]],
  [[1e6], [20]],
];

for (const [pixels, notches] of turns) {
  test(`${pixels.join(", ")} px are ${notches.join(", ")} notches`, () => {
    const axis = new Notches();
    assert.deepEqual(
      pixels.map((px, at) => axis.add(px, 1_000 + 10 * at)),
      notches,
    );
  });
}

test("what is left is forgotten after a pause", () => {
  const axis = new Notches();
  assert.equal(axis.add(90, 1_000), 0);
  assert.equal(axis.add(90, 2_000), 0);
  assert.equal(axis.add(90, 2_100), 1);
});
