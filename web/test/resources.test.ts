import assert from "node:assert/strict";
import { test } from "node:test";
import {
  contextLabel,
  describeDiff,
  diffLines,
  kindLabel,
  sizeLabel,
  sortResources,
} from "../src/resources";
import type { ContextResource } from "../src/wire";

const resource = (kind: string, source: string): ContextResource => ({
  kind,
  source,
  status: "ok",
  size_bytes: 1,
});

test("the header tells of a pin, of a change, of a reason for none, and else of nothing", () => {
  assert.equal(contextLabel(null), null);
  assert.equal(contextLabel({ pinned: true, dirty: false }), "instructions");
  assert.equal(contextLabel({ pinned: true, dirty: true }), "instructions changed");
  assert.equal(contextLabel({ pinned: false, dirty: false, error: "late" }), "no instructions");
});

test("instructions come before skills, unknown kinds last, each by place", () => {
  const list = [
    resource("hook", "/a"),
    resource("skill", "/s/b"),
    resource("skill", "/s/a"),
    resource("instruction_file", "/z"),
  ];

  assert.deepEqual(
    sortResources(list).map(({ source }) => source),
    ["/z", "/s/a", "/s/b", "/a"],
  );
  assert.equal(kindLabel("hook"), "hook");
});

test("sizes are told in the unit that fits", () => {
  assert.deepEqual([0, 1023, 1536, 3 * 1024 * 1024].map(sizeLabel), [
    "0 B",
    "1023 B",
    "1.5 KiB",
    "3.0 MiB",
  ]);
});

test("a diff's lines are told apart, its heads are no removed or added lines", () => {
  const lines = diffLines("--- a\n+++ a\n@@ -1 +1 @@\n same\n-old\n+new\n");

  assert.deepEqual(
    lines.map(({ kind }) => kind),
    ["place", "place", "place", "same", "removed", "added"],
  );
});

test("a difference is told in one sentence", () => {
  const one = resource("skill", "/s");
  const changed = { before: one, after: one, diff: "" };

  assert.equal(
    describeDiff({ added: [one, one], removed: [one], modified: [changed] }),
    "2 added, 1 changed, 1 removed",
  );
  assert.match(describeDiff({ added: [], removed: [], modified: [] }), /Nothing/);
});
