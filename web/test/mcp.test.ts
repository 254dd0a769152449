import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenIds } from "../src/mcp";
import type { ChatMcpServer } from "../src/wire";

const server = (id: string | undefined, is_on: boolean): ChatMcpServer => ({
  name: id ?? "local",
  origin: id === undefined ? "workspace" : "deployment",
  display_name: "",
  description: "",
  is_on,
  health: { state: "ready", tools: [], rejected: [] },
  ...(id === undefined ? {} : { id }),
});

test("choosing a server keeps the others and never names a workspace's", () => {
  const servers = [server(undefined, true), server("a", true), server("b", false)];
  assert.deepEqual(chosenIds(servers, "b", true), ["a", "b"]);
  assert.deepEqual(chosenIds(servers, "a", false), []);
});
