/** The latest tool calls of the open chat, under the picture that they change. */

import type { Conversation } from "../conversation";
import { describeCall } from "../sentences";
import { buildTurns, toolBlocks } from "../turns";

const STEPS = 12;

export function RecentSteps({ conversation }: { conversation: Conversation }) {
  const steps = toolBlocks(buildTurns(conversation.state.value)).slice(-STEPS).reverse();
  if (steps.length === 0) return null;
  return (
    <section class="steps" aria-label="Latest steps">
      <h3>Latest steps</h3>
      <ol>
        {steps.map((step) => (
          <li key={step.key} data-state={step.state}>
            {describeCall(step.call)}
          </li>
        ))}
      </ol>
    </section>
  );
}
