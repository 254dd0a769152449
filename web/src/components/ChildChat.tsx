/** A sub-agent inside its parent's card: a link, and its latest steps while it works. */

import { useEffect, useState } from "preact/hooks";
import { findChat } from "../chats";
import { Conversation } from "../conversation";
import { readResult } from "../results";
import { describeCall } from "../sentences";
import { chatHref, chats } from "../state";
import { buildTurns, toolBlocks } from "../turns";
import { Icon } from "./icons";
import { Screenshot } from "./Screenshot";
import { StatusDot } from "./StatusDot";

const STEPS = 3;

export function ChildChat({ chatId, showSteps }: { chatId: string; showSteps: boolean }) {
  const chat = findChat(chats.value, chatId);
  return (
    <div class="child" data-testid="child-chat">
      <a class="child-link" href={chatHref(chatId)}>
        {chat ? <StatusDot status={chat.status} /> : <Icon name="agent" />}
        <span class="chat-title">{chat?.title || "Open the sub-agent’s chat"}</span>
        <Icon name="chevron" />
      </a>
      {showSteps && <LatestSteps chatId={chatId} />}
    </div>
  );
}

function LatestSteps({ chatId }: { chatId: string }) {
  const [child, setChild] = useState<Conversation | null>(null);
  useEffect(() => {
    const opened = new Conversation(chatId);
    setChild(opened);
    return () => opened.close();
  }, [chatId]);
  if (!child) return null;
  const steps = toolBlocks(buildTurns(child.state.value)).slice(-STEPS);
  if (steps.length === 0) return null;
  const image = steps
    .map((step) => (step.result ? readResult(step.result).imageFileId : null))
    .findLast((fileId) => fileId !== null);
  return (
    <div class="child-steps">
      <ol>
        {steps.map((step) => (
          <li key={step.key} data-state={step.state}>
            {describeCall(step.call)}
          </li>
        ))}
      </ol>
      {image && <Screenshot fileId={image} label="The sub-agent’s latest screenshot" />}
    </div>
  );
}
