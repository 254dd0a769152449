/** One turn: what a person said, or what the assistant said and did. */

import { fileUrl } from "../api";
import { fullTime } from "../time";
import type { Block, Turn } from "../turns";
import type { FilePart } from "../wire";
import { Markdown } from "./Markdown";
import { Screenshot } from "./Screenshot";
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
    </article>
  );
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
          <summary>{block.streaming ? "Thinking…" : "Thought"}</summary>
          <Markdown text={block.text} />
        </details>
      );
    case "file":
      return <FileView file={block.file} />;
    case "tool":
      return <ToolCard block={block} isCurrent={isCurrent} />;
  }
}

function FileView({ file }: { file: FilePart }) {
  const name = file.name ?? "file";
  if (!file.file_id) return <span class="file">{name}</span>;
  if (file.media_type.startsWith("image/"))
    return <Screenshot fileId={file.file_id} label={name} />;
  return (
    <a class="file" href={fileUrl(file.file_id)} download={name}>
      {name}
    </a>
  );
}
