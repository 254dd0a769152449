/** Pure: calls that wait for a person's word. */

import type { ConversationState } from "./stream";
import type { ToolCallPart } from "./wire";

/** Calls that the vendor wants allowed first and that nobody answered yet; none unless the chat waits. */
export function pendingApprovals(state: ConversationState): ToolCallPart[] {
  if (state.status !== "requires_action") return [];
  const parts = state.messages.flatMap((message) => message.content);
  const answered = new Set(
    parts.flatMap((part) => (part.type === "tool-result" ? [part.tool_call_id] : [])),
  );
  return parts.filter(
    (part): part is ToolCallPart =>
      part.type === "tool-call" &&
      (part.needs_approval?.length ?? 0) > 0 &&
      part.approved !== true &&
      !answered.has(part.tool_call_id),
  );
}
