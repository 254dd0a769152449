import assert from "node:assert/strict";
import { test } from "node:test";
import { isCleared, readNoteData, readPush } from "../src/push-message";

const told = { type: "show", title: "T", body: "B", path: "#/chats/1", tag: "t", at: 5 };

test("a push is read", () => assert.deepEqual(readPush(JSON.stringify(told)), told));

for (const text of ["", "nonsense", "null", "[]", '{"title": 1}']) {
  test(`something is shown for ${text || "nothing"}`, () => {
    const shown = readPush(text);
    assert.ok(shown.type === "show" && shown.title && shown.body);
  });
}

for (const path of ["https://evil.example/", "//evil.example", "/login", "javascript:1"]) {
  test(`${path} is not opened`, () => {
    const shown = readPush(JSON.stringify({ ...told, path }));
    assert.ok(shown.type === "show" && shown.path === "");
  });
}

const clear = { type: "clear", tag: "t", at: 5 } as const;

test("a clear is read", () => assert.deepEqual(readPush(JSON.stringify(clear)), clear));

test("a clear of nothing is shown: else it would take back everything", () =>
  assert.equal(readPush('{"type": "clear"}').type, "show"));

for (const [data, cleared] of [
  [{ path: "#/chats/1", at: 4 }, true],
  [{ path: "#/chats/1", at: 5 }, true],
  [{ path: "#/chats/1", at: 6 }, false],
  ["#/chats/1", true],
  [null, true],
] as const)
  test(`${JSON.stringify(data)} is ${cleared ? "" : "not "}taken back`, () =>
    assert.equal(isCleared(clear, data), cleared));

test("data of an older worker names no path", () =>
  assert.deepEqual(readNoteData("#/chats/1"), { path: "", at: 0 }));
