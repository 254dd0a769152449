"""A textarea in Chromium, on a page that posts its value here."""

import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from common import put, take_clear

PAGE = b"""<!doctype html><meta charset=utf-8><title>page</title>
<textarea id=t autofocus style="width:95vw;height:90vh" autocomplete=off spellcheck=false></textarea>
<script>
let sending = false, dirty = false;
async function send() {
  dirty = true;
  if (sending) return;
  sending = true;
  while (dirty) { dirty = false; await fetch('/value', {method: 'POST', body: t.value}); }
  sending = false;
}
async function listen() {
  for (;;) {
    const answer = await fetch('/clear', {method: 'POST'});
    if ((await answer.text()) === 'clear') { t.value = ''; await fetch('/cleared', {method: 'POST'}); }
  }
}
t.addEventListener('input', send);
// A tab would leave the field.
t.addEventListener('keydown', event => {
  if (event.key === 'Tab') { event.preventDefault(); document.execCommand('insertText', false, '\\t'); }
});
window.addEventListener('load', () => { t.focus(); send(); listen(); });
</script>"""


class Handler(BaseHTTPRequestHandler):
    """Serves the page and takes its values."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The page."""
        self.answer(PAGE, "text/html")

    def do_POST(self) -> None:
        """A value, or the question whether to clear."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/value":
            put(body.decode("utf-8", errors="surrogatepass"))
        elif self.path == "/cleared":
            put("")
        elif self.path == "/clear":
            end = time.monotonic() + 30
            while time.monotonic() < end:
                if take_clear():
                    self.answer(b"clear", "text/plain")
                    return
                time.sleep(0.01)
        self.answer(b"", "text/plain")

    def answer(self, body: bytes, kind: str) -> None:
        """Send a body."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call([*sys.argv[2:], f"--app=http://127.0.0.1:{server.server_port}/"]))
