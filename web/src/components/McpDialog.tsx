/** The MCP servers of a chat: its workspace's, and those of the deployment that it may choose among. */

import { useEffect, useRef } from "preact/hooks";
import { chatMcp, choose, choosing, closeMcp, mcpChatId, mcpProblem, openMcp } from "../mcp";
import type { ChatMcpServer } from "../wire";
import { Icon } from "./icons";

export function McpButton({ chatId }: { chatId: string }) {
  return (
    <button
      type="button"
      class="button small ghost"
      data-testid="mcp"
      aria-label="MCP servers"
      title="MCP servers of this chat"
      onClick={() => openMcp(chatId)}
    >
      <Icon name="tool" />
    </button>
  );
}

export function McpDialog() {
  const chatId = mcpChatId.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (chatId !== null) dialog.current?.showModal();
  }, [chatId]);
  if (chatId === null) return null;
  const close = () => dialog.current?.close();
  return (
    <dialog
      ref={dialog}
      class="context-dialog"
      aria-label="MCP servers"
      data-testid="mcp-dialog"
      onClose={closeMcp}
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      <header class="bar">
        <h2>MCP servers</h2>
        <button type="button" class="button small ghost" onClick={close}>
          <Icon name="close" /> Close
        </button>
      </header>
      <div class="context-body">
        {mcpProblem.value && (
          <p class="note error" role="alert">
            {mcpProblem.value}
          </p>
        )}
        <Servers />
      </div>
    </dialog>
  );
}

const AWAY = "The workspace is away, so its servers are not known.";
const NONE = "No servers: the workspace has no .mcp.json, and the deployment offers none.";

function Servers() {
  const told = chatMcp.value;
  if (told === null) return mcpProblem.value ? null : <p class="hint">Loading…</p>;
  return (
    <>
      {told.workspace === "away" && <p class="note warn">{AWAY}</p>}
      {told.servers.length === 0 && told.workspace !== "away" && <p class="hint">{NONE}</p>}
      {told.left_out && told.left_out.length > 0 && (
        <p class="note warn" data-testid="mcp-left-out">
          The model is not told of {told.left_out.length} tools, because a request takes 128:{" "}
          {told.left_out.join(", ")}. Take servers away that this chat does not need.
        </p>
      )}
      <Group title="From the workspace" servers={told.servers} origin="workspace" />
      <Group title="From this deployment" servers={told.servers} origin="deployment" />
    </>
  );
}

function Group(props: { title: string; servers: readonly ChatMcpServer[]; origin: string }) {
  const servers = props.servers.filter((server) => server.origin === props.origin);
  if (servers.length === 0) return null;
  return (
    <section>
      <h3>{props.title}</h3>
      <ul class="resources">
        {servers.map((server) => (
          <Server key={server.name} server={server} />
        ))}
      </ul>
    </section>
  );
}

function Server({ server }: { server: ChatMcpServer }) {
  const { state, tools, rejected, last_error: error, warnings = [] } = server.health;
  return (
    <li data-testid={`mcp-${server.name}`}>
      <div class="resource" data-status={state === "failed" ? "invalid" : "ok"}>
        <div class="resource-head">
          <span class="tag" data-mcp={state}>
            {state}
          </span>
          <strong>{server.display_name}</strong>
          <span class="resource-size">{tools.length} tools</span>
          {server.id && <Choice server={server} />}
        </div>
        {server.description && <p>{server.description}</p>}
        {error && <p class="resource-error">{error}</p>}
        {warnings.map((warning) => (
          <p key={warning} class="resource-error">
            {warning}
          </p>
        ))}
        {tools.length > 0 && (
          <details>
            <summary>Tools</summary>
            <p class="mcp-tools">
              {tools.map((tool) => (
                <code key={tool}>{tool}</code>
              ))}
            </p>
          </details>
        )}
        {rejected.map((left) => (
          <p key={left.tool} class="resource-error">
            {left.tool} is not offered: {left.reason}
          </p>
        ))}
      </div>
    </li>
  );
}

function Choice({ server }: { server: ChatMcpServer }) {
  const isForced = server.availability === "force_on";
  return (
    <label class="mcp-choice" title={isForced ? "Every chat has it" : undefined}>
      <input
        type="checkbox"
        checked={server.is_on}
        disabled={isForced || choosing.value || server.health.state === "disabled"}
        onChange={(event) => void choose(server, event.currentTarget.checked)}
      />
      in this chat
    </label>
  );
}
