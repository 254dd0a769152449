/** The page's frame: list, conversation and desktop side by side, or one at a time when narrow. */

import { unauthorised } from "../api";
import { conversation, desktopShown, me, offline, pane } from "../state";
import { Blocked } from "./Blocked";
import { ChatList } from "./ChatList";
import { ChatPane } from "./ChatPane";
import { ContextDialog } from "./ContextDialog";
import { DesktopPanel } from "./DesktopPanel";
import { ImageDialog } from "./ImageDialog";
import { McpDialog } from "./McpDialog";
import { Tabs } from "./Tabs";

export function App() {
  if (unauthorised.value) return <Blocked why="login" />;
  if (offline.value) return <Blocked why="offline" />;
  if (me.value === null) return <div class="blank" aria-busy="true" />;
  return (
    <div
      class="app"
      data-pane={pane.value}
      data-desktop={desktopShown.value ? "shown" : "hidden"}
      data-stale={conversation.value?.connection.value === "reconnecting"}
    >
      <ChatList />
      <ChatPane />
      <DesktopPanel />
      <Tabs />
      <ImageDialog />
      <ContextDialog />
      <McpDialog />
    </div>
  );
}
