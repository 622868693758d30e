"""A service in the tests of our REST providers: the server of Chroma, a database for embeddings.

usage: server.py FOLDER

Keeps its data in FOLDER, prints where it listens, and ends when its standard input does. It serves
its own OpenAPI document at `/openapi.json`.
"""

import http.client
import os
import socket
import sys
import threading
import time

import chromadb_rust_bindings

POLL_S = 0.05
ANSWER_S = 10


def listening_ports():
    """The ports that this process listens on: the server is not told which one to take."""
    for name in os.listdir("/dev/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    yield one.getsockname()[1]
        except OSError:
            pass  # No socket, or gone since.


def answers(port):
    # The server first tries a port that it does not keep.
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        connection.request("GET", "/api/v2/heartbeat")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def tell_and_end_with_parent(out):
    found = None
    while found is None:
        time.sleep(POLL_S)
        found = next(filter(answers, list(listening_ports())), None)
    print(f"listening on http://127.0.0.1:{found}", file=out, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = os.fdopen(os.dup(1), "w")
    # What the server itself prints belongs to the log.
    os.dup2(2, 1)
    threading.Thread(target=tell_and_end_with_parent, args=[out], daemon=True).start()
    words = ["chroma", "run", "--host", "127.0.0.1", "--port", "0", "--path", sys.argv[1]]
    chromadb_rust_bindings.cli(words)
