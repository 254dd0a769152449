/** One turn: what a person said, or what the assistant said and did. */

import { useState } from "preact/hooks";
import { duration, fullTime } from "../time";
import type { Block, Turn } from "../turns";
import { EditMessage } from "./EditMessage";
import { FileView } from "./FileView";
import { Icon } from "./icons";
import { Markdown } from "./Markdown";
import { ToolCard } from "./ToolCard";

export function TurnView({ turn, isLast }: { turn: Turn; isLast: boolean }) {
  if (turn.role === "user") return <UserTurn turn={turn} />;
  const lastTool = turn.blocks.findLast((block) => block.kind === "tool");
  return (
    <article class="turn" aria-label="Assistant">
      {turn.blocks.map((block) => (
        <BlockView key={block.key} block={block} isCurrent={isLast && block === lastTool} />
      ))}
    </article>
  );
}

function UserTurn({ turn }: { turn: Turn }) {
  const [editing, setEditing] = useState(false);
  const { messageId } = turn;
  const text = turn.blocks.map((block) => (block.kind === "text" ? block.text : "")).join("\n");
  if (editing && messageId !== null)
    return <EditMessage messageId={messageId} text={text} onEnd={() => setEditing(false)} />;
  // A file that goes with a message would be lost with it.
  const canEdit = messageId !== null && turn.blocks.every((block) => block.kind === "text");
  return (
    <article
      class="bubble"
      aria-label="You"
      data-testid="message-user"
      title={turn.createdAt ? fullTime(turn.createdAt) : undefined}
    >
      {turn.blocks.map((block) => {
        if (block.kind === "text") return <div key={block.key}>{block.text}</div>;
        return <BlockView key={block.key} block={block} isCurrent={false} />;
      })}
      {canEdit && (
        <button
          type="button"
          class="edit-message"
          aria-label="Edit message"
          title="Edit: what follows is asked anew"
          onClick={() => setEditing(true)}
          onKeyDown={(event) => {
            // Its character would be typed into the field that takes the button's place.
            if (event.key !== "Enter") return;
            event.preventDefault();
            setEditing(true);
          }}
        >
          <Icon name="edit" />
        </button>
      )}
    </article>
  );
}

function thought(block: Extract<Block, { kind: "reasoning" }>): string {
  if (block.streaming) return "Thinking…";
  return block.seconds === null ? "Thought" : `Thought for ${duration(block.seconds)}`;
}

function BlockView({ block, isCurrent }: { block: Block; isCurrent: boolean }) {
  switch (block.kind) {
    case "text":
      return (
        <div
          class={block.streaming ? "answer streaming" : "answer"}
          aria-busy={block.streaming}
          data-testid="message-assistant"
        >
          <Markdown text={block.text} />
        </div>
      );
    case "reasoning":
      return (
        <details class="reasoning" open={block.streaming}>
          <summary>{thought(block)}</summary>
          <Markdown text={block.text} />
        </details>
      );
    case "file":
      return <FileView file={block.file} />;
    case "sources":
      return (
        <p class="sources" data-testid="sources">
          Sources:{" "}
          {block.sources.map(({ url, title }) => (
            <a key={url} href={url} target="_blank" rel="noopener noreferrer">
              {title || new URL(url).hostname}
            </a>
          ))}
        </p>
      );
    case "tool":
      return <ToolCard block={block} isCurrent={isCurrent} />;
  }
}
