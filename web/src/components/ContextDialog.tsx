/** The instructions and skills that a chat works by, what changed since, and taking that. */

import { useEffect, useRef } from "preact/hooks";
import { findChat } from "../chats";
import {
  closeContext,
  contextProblem,
  difference,
  loadContext,
  openContext,
  refreshContext,
  refreshing,
  resources,
  shownChatId,
} from "../context";
import {
  contextLabel,
  describeDiff,
  diffLines,
  kindLabel,
  sizeLabel,
  sortResources,
} from "../resources";
import { chats } from "../state";
import { fullTime } from "../time";
import type { ChangedResource, Chat, ContextResource } from "../wire";
import { Icon } from "./icons";

/** The indicator in the conversation's header; opens the dialog. */
export function ContextButton({ chat }: { chat: Chat }) {
  const label = contextLabel(chat.context);
  if (label === null) return null;
  const dirty = chat.context?.dirty ?? false;
  return (
    <button
      type="button"
      class="button small ghost context-button"
      data-testid="context"
      data-dirty={dirty}
      aria-label={label}
      title={
        chat.context?.error ?? `${label}: the workspace’s instructions and skills in this chat`
      }
      onClick={() => openContext(chat.id)}
    >
      <Icon name="file" />
      {dirty && "changed"}
    </button>
  );
}

export function ContextDialog() {
  const chatId = shownChatId.value;
  const chat = chatId === null ? null : findChat(chats.value, chatId);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (chatId !== null) dialog.current?.showModal();
  }, [chatId]);
  const dirtySince = chat?.context?.dirty_since ?? null;
  useEffect(() => {
    // A push came while the dialog was open: what it shows is no longer so.
    if (chatId !== null) void loadContext(chatId);
  }, [dirtySince]);
  if (chatId === null || chat === null) return null;
  const close = () => dialog.current?.close();
  return (
    <dialog
      ref={dialog}
      class="context-dialog"
      aria-label="Instructions and skills"
      data-testid="context-dialog"
      onClose={closeContext}
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      <header class="bar">
        <h2>Instructions and skills</h2>
        <button type="button" class="button small ghost" onClick={close}>
          <Icon name="close" /> Close
        </button>
      </header>
      <div class="context-body">
        <Problems chat={chat} />
        {difference.value && dirtySince && <Changes chat={chat} since={dirtySince} />}
        <ResourceList />
      </div>
    </dialog>
  );
}

function Problems({ chat }: { chat: Chat }) {
  return (
    <>
      {chat.context?.error && <p class="note warn">{chat.context.error}</p>}
      {contextProblem.value && (
        <p class="note error" role="alert">
          {contextProblem.value}
        </p>
      )}
    </>
  );
}

function Changes({ chat, since }: { chat: Chat; since: string }) {
  const changes = difference.value;
  if (!changes) return null;
  return (
    <section class="context-changes" data-testid="context-changes">
      <div class="context-changed">
        <p>
          <strong title={fullTime(since)}>The workspace has changed</strong>:{" "}
          {describeDiff(changes)}
        </p>
        <button
          type="button"
          class="button small primary"
          data-testid="context-refresh"
          disabled={refreshing.value}
          onClick={() => void refreshContext(chat.id)}
        >
          {refreshing.value ? "Taking…" : "Use in this chat"}
        </button>
      </div>
      <p class="hint">Until then the chat goes on with what is listed below.</p>
      <ul class="resources">
        {changes.added.map((resource) => (
          <Row key={`+${resource.source}`} resource={resource} change="added" />
        ))}
        {changes.removed.map((resource) => (
          <Row key={`-${resource.source}`} resource={resource} change="removed" />
        ))}
        {changes.modified.map((changed) => (
          <li key={`~${changed.after.source}`}>
            <Summary resource={changed.after} change="changed" />
            <Diff changed={changed} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Diff({ changed }: { changed: ChangedResource }) {
  if (!changed.diff) return null;
  return (
    <details class="diff" open>
      <summary>What changed</summary>
      <pre data-testid="context-diff">
        {diffLines(changed.diff).map(({ text, kind }, at) => (
          <span key={at} data-line={kind}>
            {text}
            {"\n"}
          </span>
        ))}
        {changed.truncated && <span data-line="place">… more than can be shown</span>}
      </pre>
    </details>
  );
}

function ResourceList() {
  const list = resources.value;
  if (list === null) return contextProblem.value ? null : <p class="hint">Loading…</p>;
  if (list.length === 0) return <p class="hint">This chat has no instructions or skills.</p>;
  return (
    <section>
      <h3>In this chat</h3>
      <ul class="resources" data-testid="context-resources">
        {sortResources(list).map((resource) => (
          <Row key={resource.source} resource={resource} />
        ))}
      </ul>
    </section>
  );
}

function Row({ resource, change }: { resource: ContextResource; change?: string | undefined }) {
  return (
    <li>
      <Summary resource={resource} change={change} />
    </li>
  );
}

function Summary({ resource, change }: { resource: ContextResource; change?: string | undefined }) {
  return (
    <div class="resource" data-status={resource.status}>
      <div class="resource-head">
        {change && (
          <span class="tag" data-change={change}>
            {change}
          </span>
        )}
        <span class="tag">{kindLabel(resource.kind)}</span>
        <code title={resource.source}>{resource.source}</code>
        <span class="resource-size">{sizeLabel(resource.size_bytes)}</span>
      </div>
      {resource.description && <p>{resource.description}</p>}
      {resource.status !== "ok" && (
        <p class="resource-error">
          {resource.status}
          {resource.error && `: ${resource.error}`}
        </p>
      )}
    </div>
  );
}
