/** The bell: be told when a chat is done, also while this page is closed. */

import { useEffect } from "preact/hooks";
import { notifyBusy, notifyProblem, notifyState, readNotifyState, setNotify } from "../notify";
import { Icon } from "./icons";

const TITLES = {
  unknown: "",
  off: "Tell me when a chat is done, also while this page is closed",
  on: "This browser is told when a chat is done; click to stop that",
  denied: "This browser does not allow notifications of this page; its settings change that",
};

export function NotifyButton() {
  useEffect(() => void readNotifyState(), []);
  const state = notifyState.value;
  if (state === null || state === "unknown") return null;
  return (
    <button
      type="button"
      class="button small ghost"
      data-testid="notify"
      data-state={state}
      aria-pressed={state === "on"}
      aria-label="Notifications"
      title={notifyProblem.value ?? TITLES[state]}
      disabled={state === "denied" || notifyBusy.value}
      onClick={() => void setNotify(state !== "on")}
    >
      <Icon name={state === "on" ? "bell" : "mute"} />
    </button>
  );
}
