/** One chat's live state: the event stream, folded into a signal. */

import { signal } from "@preact/signals";
import { socketUrl } from "./api";
import { EventSocket } from "./socket";
import { emptyConversation, reduce, reduceAll } from "./stream";
import type { Message, StreamEvent } from "./wire";

export type Connection = "connecting" | "open" | "reconnecting";

export class Conversation {
  readonly state = signal(emptyConversation);
  readonly connection = signal<Connection>("connecting");
  private readonly socket: EventSocket<StreamEvent>;

  constructor(readonly chatId: string) {
    this.socket = new EventSocket<StreamEvent>(socketUrl(`/chats/${chatId}/stream`), {
      onOpen: () => {
        this.connection.value = "open";
        this.state.value = reduce(this.state.value, { type: "connected" });
      },
      onEvents: (events) => {
        this.state.value = reduceAll(this.state.value, events);
      },
      onLost: () => {
        this.connection.value = "reconnecting";
      },
    });
  }

  /** Shows at once what the server stored for our own request. */
  posted(messages: readonly Message[]): void {
    this.state.value = reduce(this.state.value, { type: "posted", messages });
  }

  close(): void {
    this.socket.close();
  }
}
