import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { EventSocket, HANDSHAKE_MS } from "../src/socket";

const SILENCE_MS = 25_000;
const LONGEST_BACKOFF_MS = 500;

class FakeSocket {
  static readonly OPEN = 1;
  static made: FakeSocket[] = [];
  readyState = 0;
  closed = false;
  onopen: () => void = () => {};
  onmessage: (event: { data: string }) => void = () => {};
  onclose: () => void = () => {};

  constructor() {
    FakeSocket.made.push(this);
  }

  open() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  close() {
    this.closed = true;
  }
}

const realSocket = globalThis.WebSocket;
let log: string[] = [];
let socket: EventSocket<number>;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
  FakeSocket.made = [];
  log = [];
  socket = new EventSocket<number>("ws://x", SILENCE_MS, {
    onOpen: () => log.push("open"),
    onEvents: (events) => log.push(`events ${events.join()}`),
    onLost: (everOpened) => log.push(`lost ${everOpened}`),
  });
});

afterEach(() => {
  socket.close();
  mock.timers.reset();
  globalThis.WebSocket = realSocket;
});

const made = (index: number): FakeSocket => {
  const found = FakeSocket.made[index];
  assert.ok(found);
  return found;
};

test("silence after opening is a loss: the socket is closed and another one follows", () => {
  made(0).open();
  mock.timers.tick(SILENCE_MS);

  assert.deepEqual(log, ["open", "lost true"]);
  assert.equal(made(0).closed, true);
  mock.timers.tick(LONGEST_BACKOFF_MS);
  made(1).open();
  assert.deepEqual(log, ["open", "lost true", "open"]);
});

test("empty frames keep the connection and are no events", () => {
  made(0).open();
  for (let frame = 0; frame < 5; frame += 1) {
    mock.timers.tick(SILENCE_MS - 1);
    made(0).onmessage({ data: "[]" });
  }
  made(0).onmessage({ data: "[1,2]" });

  assert.deepEqual(log, ["open", "events 1,2"]);
});

test("a handshake without an answer is a loss", () => {
  mock.timers.tick(HANDSHAKE_MS);

  assert.deepEqual(log, ["lost false"]);
});

test("what a socket given up still says is ignored", () => {
  made(0).open();
  mock.timers.tick(SILENCE_MS);
  made(0).onmessage({ data: "[1]" });
  made(0).onclose();

  assert.deepEqual(log, ["open", "lost true"]);
});

test("a closed socket neither reports nor returns", () => {
  made(0).open();
  socket.close();
  made(0).onclose();
  mock.timers.tick(10 * SILENCE_MS);

  assert.deepEqual(log, ["open"]);
  assert.equal(FakeSocket.made.length, 1);
});
