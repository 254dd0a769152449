import type { ChatStatus } from "../wire";

export const STATUS_WORDS: Record<ChatStatus, string> = {
  waiting: "waiting",
  running: "running",
  interrupting: "interrupting",
  requires_action: "requires action",
  error: "error",
};

export function StatusDot({ status }: { status: ChatStatus }) {
  return <span class="dot" data-status={status} role="img" aria-label={STATUS_WORDS[status]} />;
}
