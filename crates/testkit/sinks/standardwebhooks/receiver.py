"""A webhook receiver that verifies with the `standardwebhooks` package.

`receiver.py SECRET` listens on a free port and says where. `POST /events` takes a delivery, unless it
was told to be unwell; `POST /mood` with `{"mood": ..}` changes that; `GET /taken` tells what it took
and what was wrong.

Moods: `well`, `failing` (500), `busy` (429 with Retry-After), `hanging` (no answer), `mute` (takes
it, and closes the connection without an answer).
"""

import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

HANG_SECONDS = 5


class Desk:
    """What all requests share."""

    def __init__(self, secret):
        self.webhook = Webhook(secret)
        self.lock = threading.Lock()
        self.mood = "well"
        self.tries = 0
        self.taken = []
        self.faults = []


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    desk = None

    def log_message(self, *_):
        """Nothing: what matters is in the answers."""

    def do_GET(self):
        with self.desk.lock:
            told = {name: getattr(self.desk, name) for name in ("mood", "tries", "taken", "faults")}
            self.answer(200, json.dumps(told).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path == "/mood":
            with self.desk.lock:
                self.desk.mood, self.desk.tries = json.loads(body)["mood"], 0
            self.answer(200, b"{}")
            return
        with self.desk.lock:
            self.desk.tries += 1
            mood = self.desk.mood
            try:
                event = self.desk.webhook.verify(body, dict(self.headers))
            except WebhookVerificationError as error:
                self.desk.faults.append(f"{error}: {dict(self.headers)}")
                self.answer(400, b"")
                return
            if mood in ("well", "mute"):
                self.desk.taken.append({"id": self.headers["webhook-id"], "event": event})
        if mood == "well":
            self.answer(204, None)
        elif mood == "failing":
            self.answer(500, b"")
        elif mood == "busy":
            self.answer(429, b"", {"Retry-After": "1"})
        else:
            if mood == "hanging":
                threading.Event().wait(HANG_SECONDS)
            self.close_connection = True

    def answer(self, status, body, headers=None):
        """Sends an answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body:
            self.wfile.write(body)


def main():
    """Serves until it is told to stop."""
    Handler.desk = Desk(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    host, port = server.server_address[:2]
    print(f"receiver listening on http://{host}:{port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
