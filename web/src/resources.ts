/** Pure: what a chat's context says to people. */

import type { ChatContext, ContextDiff, ContextResource } from "./wire";

/** The header's word for a chat's context; null where there is nothing to tell. */
export function contextLabel(context: ChatContext | null | undefined): string | null {
  if (!context) return null;
  if (context.dirty) return "instructions changed";
  return context.pinned ? "instructions" : "no instructions";
}

const KINDS: Record<string, string> = {
  instruction_file: "instructions",
  skill: "skill",
  mcp_config: "MCP configuration",
  mcp_server: "MCP server",
  plugin: "plugin",
};

export const kindLabel = (kind: string) => KINDS[kind] ?? kind;

export function sizeLabel(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Resources as they are listed: instructions, skills, the rest; by place within each. */
export function sortResources(resources: readonly ContextResource[]): ContextResource[] {
  const order = Object.keys(KINDS);
  const rank = (resource: ContextResource) => {
    const at = order.indexOf(resource.kind);
    return at < 0 ? order.length : at;
  };
  return [...resources].sort(
    (a, b) => rank(a) - rank(b) || (a.source < b.source ? -1 : a.source > b.source ? 1 : 0),
  );
}

export type DiffLineKind = "added" | "removed" | "place" | "same";

/** A unified diff's lines with what each is; the file names at its head are no lines of text. */
export function diffLines(diff: string): { text: string; kind: DiffLineKind }[] {
  const lines = diff.endsWith("\n") ? diff.slice(0, -1).split("\n") : diff.split("\n");
  return lines.map((text) => ({ text, kind: lineKind(text) }));
}

function lineKind(text: string): DiffLineKind {
  if (text.startsWith("@@") || text.startsWith("--- ") || text.startsWith("+++ ")) return "place";
  if (text.startsWith("+")) return "added";
  return text.startsWith("-") ? "removed" : "same";
}

/** One sentence for what a refresh would do. */
export function describeDiff(diff: ContextDiff): string {
  const parts = [
    [diff.added.length, "added"],
    [diff.modified.length, "changed"],
    [diff.removed.length, "removed"],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return told.length > 0 ? told.join(", ") : "Nothing a model would notice.";
}
