/** A WebSocket of JSON arrays that comes back by itself. */

import { backoffMs } from "./backoff";

/** A server that is reached answers the handshake much sooner. */
export const HANDSHAKE_MS = 10_000;

export interface SocketHandlers<T> {
  onOpen(): void;
  onEvents(events: T[]): void;
  /** The connection was lost or refused; the next try follows by itself. */
  onLost(everOpened: boolean): void;
}

/** The server sends an empty array when there is nothing else: *silenceMs* without any is a loss. */
export class EventSocket<T> {
  private socket: WebSocket | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly silenceMs: number,
    private readonly handlers: SocketHandlers<T>,
  ) {
    this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.close();
  }

  private connect(): void {
    const socket = new WebSocket(this.url);
    let opened = false;
    this.socket = socket;
    const expect = (ms: number) => {
      clearTimeout(this.silence);
      this.silence = setTimeout(() => {
        // A close handshake with a dead server takes minutes: it is not waited for.
        this.lost(opened);
        socket.close();
      }, ms);
    };
    expect(HANDSHAKE_MS);
    socket.onopen = () => {
      opened = true;
      // A page that left before the handshake ended closes only now: closing
      // earlier makes the browser log an error.
      if (this.closed) return socket.close();
      if (this.socket !== socket) return;
      expect(this.silenceMs);
      this.handlers.onOpen();
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (this.closed || this.socket !== socket) return;
      this.failures = 0;
      expect(this.silenceMs);
      const events = JSON.parse(event.data) as T[];
      if (events.length > 0) this.handlers.onEvents(events);
    };
    socket.onclose = () => {
      if (this.socket === socket) this.lost(opened);
    };
  }

  private lost(everOpened: boolean): void {
    this.socket = null;
    clearTimeout(this.silence);
    if (this.closed) return;
    this.failures += 1;
    this.handlers.onLost(everOpened);
    this.retry = setTimeout(() => this.connect(), backoffMs(this.failures));
  }
}
