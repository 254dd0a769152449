import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./components/App";
import { openChat, start } from "./state";

render(<App />, document.body);
effect(() => {
  document.title = openChat.value?.title || "Chats";
});
void start();
