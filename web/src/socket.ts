/** A WebSocket of JSON arrays that comes back by itself. */

import { backoffMs } from "./backoff";

export interface SocketHandlers<T> {
  onOpen(): void;
  onEvents(events: T[]): void;
  /** The connection was lost or refused; the next try follows by itself. */
  onLost(everOpened: boolean): void;
}

export class EventSocket<T> {
  private socket: WebSocket | null = null;
  private timer: number | undefined;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly handlers: SocketHandlers<T>,
  ) {
    this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.close();
  }

  private connect(): void {
    const socket = new WebSocket(this.url);
    let opened = false;
    this.socket = socket;
    socket.onopen = () => {
      opened = true;
      // A page that left before the handshake ended closes only now: closing
      // earlier makes the browser log an error.
      if (this.closed) return socket.close();
      this.handlers.onOpen();
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (this.closed) return;
      this.failures = 0;
      this.handlers.onEvents(JSON.parse(event.data) as T[]);
    };
    socket.onclose = () => {
      if (this.closed) return;
      this.failures += 1;
      this.handlers.onLost(opened);
      this.timer = window.setTimeout(() => this.connect(), backoffMs(this.failures));
    };
  }
}
