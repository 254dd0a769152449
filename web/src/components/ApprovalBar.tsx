/** Asks the person to allow what the vendor will not do on its own, or to refuse it. */

import { api } from "../api";
import { pendingApprovals } from "../approvals";
import type { Conversation } from "../conversation";
import { describeCall } from "../sentences";
import { notice } from "../state";

export function ApprovalBar({ conversation }: { conversation: Conversation }) {
  const calls = pendingApprovals(conversation.state.value);
  if (calls.length === 0) return null;
  const answer = (approved: boolean) => {
    const results = calls.map((call) => ({
      tool_call_id: call.tool_call_id,
      output: { approved },
    }));
    api.answerTools(conversation.chatId, results).catch((error: unknown) => {
      notice.value = error instanceof Error ? error.message : String(error);
    });
  };
  return (
    <section class="note warn notice" role="alert" data-testid="approval">
      {calls.map((call) => (
        <p key={call.tool_call_id}>
          {describeCall(call)}: {call.needs_approval?.join("; ")}
        </p>
      ))}
      <button type="button" class="button small" onClick={() => answer(true)}>
        Allow
      </button>{" "}
      <button type="button" class="button small ghost" onClick={() => answer(false)}>
        Refuse
      </button>
    </section>
  );
}
