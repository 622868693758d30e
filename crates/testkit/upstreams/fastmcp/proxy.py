"""What the benchmark of our gateway is read against: FastMCP as a proxy of one MCP server.

usage: proxy.py URL

Prints the address on which it listens, and ends when its standard input does.
"""

import os
import socket
import sys
import threading

import uvicorn
from fastmcp.server import create_proxy


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


def serve(url):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    threading.Thread(target=end_with_parent, daemon=True).start()
    print(f"127.0.0.1:{port}", flush=True)
    app = create_proxy(url, mode="legacy", name="proxy").http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    serve(sys.argv[1])
