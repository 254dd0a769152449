import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs } from "../src/backoff";
import { findChat, upsertChat } from "../src/chats";
import { relativeTime } from "../src/time";
import type { Chat } from "../src/wire";

function chat(id: string, minute: number, parent: string | null = null): Chat {
  const at = `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
  return {
    id,
    owner_id: "o",
    title: id,
    status: "waiting",
    parent_chat_id: parent,
    root_chat_id: parent ?? id,
    last_model_config_id: "m",
    archived: false,
    created_at: at,
    updated_at: at,
    children: [],
  };
}

const ids = (list: readonly Chat[]) => list.map(({ id }) => id);

test("a changed chat moves to the top and keeps its children", () => {
  const list = [chat("a", 1), chat("b", 2), chat("kid", 3, "a"), chat("a", 9)].reduce<Chat[]>(
    upsertChat,
    [],
  );

  assert.deepEqual(ids(list), ["a", "b"]);
  assert.deepEqual(ids(list[0]?.children ?? []), ["kid"]);
});

test("a sub-agent's chat is found below its root", () => {
  const list = [chat("a", 1), chat("kid", 3, "a")].reduce<Chat[]>(upsertChat, []);

  assert.equal(findChat(list, "kid")?.title, "kid");
  assert.equal(findChat(list, "none"), null);
});

test("the back-off doubles from half a second to fifteen", () => {
  const longest = [1, 2, 3, 6, 50].map((failures) => backoffMs(failures, () => 1));

  assert.deepEqual(longest, [500, 1000, 2000, 15_000, 15_000]);
  assert.equal(
    backoffMs(1, () => 0),
    250,
  );
});

test("ages are told in the largest fitting unit", () => {
  const then = "2026-01-01T00:00:00Z";
  const after = (minutes: number) => relativeTime(then, Date.parse(then) + minutes * 60_000);

  assert.deepEqual([0, 5, 60 * 3, 60 * 48].map(after), ["now", "5 min", "3 h", "2 d"]);
});

test("an answer that is older than what is known changes nothing", () => {
  const list = [chat("a", 5), chat("a", 3)].reduce<Chat[]>(upsertChat, []);
  assert.equal(findChat(list, "a")?.updated_at, "2026-01-01T00:05:00Z");
});
