/** Pure: what a tool call does, in words for people. */

import type { JsonObject, ToolCallPart } from "./wire";

const LONGEST_QUOTE = 60;
const MOST_ACTIONS = 3;

/** One sentence for the card's head, without a full stop. */
export function describeCall(call: ToolCallPart): string {
  const args = callArguments(call);
  if (call.tool_name === "computer") return describeComputer(args);
  const describe = TOOLS[call.tool_name];
  if (describe) return describe(args);
  return mcpName(call.tool_name);
}

/** The arguments, or as much as can be read of those still being written. */
export function callArguments(call: ToolCallPart): JsonObject {
  if (call.args) return call.args;
  try {
    const parsed: unknown = JSON.parse(call.args_delta ?? "");
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every action of a computer call, one sentence each. */
export function computerActions(args: JsonObject): string[] {
  return Array.isArray(args.actions) ? args.actions.filter(isObject).map(describeAction) : [];
}

function describeComputer(args: JsonObject): string {
  const actions = computerActions(args);
  if (actions.length === 0) return "Use the computer";
  const shown = actions
    .slice(0, MOST_ACTIONS)
    .map((text, at) => (at === 0 ? text : decapitalise(text)));
  const rest = actions.length - shown.length;
  return shown.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

const decapitalise = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

export function quote(value: unknown, longest = LONGEST_QUOTE): string {
  const text = String(value ?? "")
    .replace(/\s*\n\s*/g, " ⏎ ")
    .trim();
  return text.length > longest ? `“${text.slice(0, longest).trimEnd()}…”` : `“${text}”`;
}

const point = (value: unknown) => (Array.isArray(value) ? `(${value.join(", ")})` : "");
const at = (value: unknown) => (Array.isArray(value) ? ` at ${point(value)}` : "");
const holding = (value: unknown) => (value ? ` with ${String(value)}` : "");
const seconds = (ms: unknown) => `${Number((Number(ms ?? 1000) / 1000).toFixed(2))} s`;
const click = (verb: string) => (action: JsonObject) =>
  verb + at(action.coordinate) + holding(action.modifiers);

const TIMES = ["", "Click", "Double-click", "Triple-click"];

const ACTIONS: Record<string, (action: JsonObject) => string> = {
  screenshot: () => "Look at the screen",
  zoom: (action) => {
    const region = Array.isArray(action.region) ? action.region : [];
    return `Zoom into (${region.slice(0, 2).join(", ")}) to (${region.slice(2).join(", ")})`;
  },
  cursor_position: () => "Find the pointer",
  mouse_move: (action) => `Move to ${point(action.coordinate)}`,
  left_click: click("Click"),
  right_click: click("Right-click"),
  middle_click: click("Middle-click"),
  back_click: click("Click back"),
  forward_click: click("Click forward"),
  double_click: click("Double-click"),
  triple_click: click("Triple-click"),
  click: (action) =>
    click(`${TIMES[Number(action.count ?? 1)] ?? "Click"} ${String(action.button ?? "left")}`)(
      action,
    ),
  left_mouse_down: click("Hold the mouse button"),
  left_mouse_up: click("Release the mouse button"),
  left_click_drag: (action) => {
    const from = action.start_coordinate ? ` from ${point(action.start_coordinate)}` : "";
    return `Drag${from} to ${point(action.coordinate)}${holding(action.modifiers)}`;
  },
  drag: (action) => {
    const path = Array.isArray(action.path) ? action.path : [];
    return `Drag from ${point(path[0])} to ${point(path[path.length - 1])}${holding(action.modifiers)}`;
  },
  scroll: (action) =>
    `Scroll ${String(action.scroll_direction ?? "down")} ${Number(action.scroll_amount ?? 3)}` +
    at(action.coordinate) +
    holding(action.modifiers),
  key: (action) => `Press ${String(action.text)}`,
  hold_key: (action) => `Hold ${String(action.text)} for ${seconds(action.duration_ms)}`,
  key_down: (action) => `Hold down ${String(action.text)}`,
  key_up: (action) => `Release ${String(action.text)}`,
  type: (action) => `Type ${quote(action.text)}`,
  wait: (action) => `Wait ${seconds(action.duration_ms)}`,
};

function describeAction(action: JsonObject): string {
  const name = String(action.action ?? "");
  return ACTIONS[name]?.(action) ?? name.replaceAll("_", " ");
}

const path = (args: JsonObject) => String(args.path ?? "a file");

const TOOLS: Record<string, (args: JsonObject) => string> = {
  execute: (args) => `Run ${quote(args.command ?? "a command", 90)}`,
  process_output: () => "Read a process’s output",
  process_list: () => "List processes",
  process_signal: (args) => `Send ${String(args.signal ?? "a signal")} to a process`,
  read_file: (args) => `Read ${path(args)}`,
  write_file: (args) => `Write ${path(args)}`,
  edit_files: () => "Edit files",
  attach_file: (args) => `Attach ${path(args)}`,
  spawn_agent: (args) => `Start a sub-agent: ${quote(args.title ?? args.prompt)}`,
  spawn_computer_use_agent: (args) => `Start a desktop agent: ${quote(args.title ?? args.prompt)}`,
  wait_agent: () => "Wait for a sub-agent",
  message_agent: (args) => `Tell a sub-agent ${quote(args.message)}`,
  close_agent: () => "Stop a sub-agent",
  interrupt_agent: () => "Interrupt a sub-agent",
  list_agents: () => "List sub-agents",
  web_search: (args) => (args.query ? `Search the web for ${quote(args.query)}` : "Search the web"),
  ask_user_question: () => "Ask a question",
  propose_plan: () => "Propose a plan",
  advisor: () => "Ask the advisor",
  chat_summarized: (args) =>
    args.source === "manual"
      ? "Summarise the conversation, as you asked"
      : "Summarise the conversation to save space",
  chat_cleared: () => "Forget the conversation",
};

function mcpName(name: string): string {
  const [server, tool] = name.split("__", 2);
  const words = (text: string) => text.replaceAll(/[_-]+/g, " ");
  return tool ? `${words(tool)} (${server})` : words(name);
}
