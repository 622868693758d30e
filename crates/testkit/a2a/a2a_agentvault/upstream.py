"""A tool server of plain JSON-RPC that lists nothing, as AgentVault's MCP tool proxy calls them.

usage: upstream.py

The name of a method says how it is answered. Prints `upstream listening on URL` and serves until it
is ended.
"""

import http.server
import json
import time

# Longer than the proxy waits.
SLOW_S = 60
ERROR = {"code": -32011, "message": "no", "data": {"why": "disk"}}
FAILED = {"isError": True, "content": [{"type": "text", "text": "no such file"}]}
# The status and the members of each answer.
ANSWERS = {
    "plain": (200, {"result": {"stdout": "hi"}}),
    "tool_error": (200, {"result": FAILED}),
    "protocol": (200, {"error": ERROR}),
    "both": (200, {"error": ERROR, "result": {}}),
    "codeless": (200, {"error": {"message": "no"}}),
    "server_error": (500, {"error": ERROR}),
    "gone": (404, {"error": ERROR}),
    "neither": (200, {}),
    "result_text": (200, {"result": "text"}),
}
UNKNOWN = (200, {"error": {"code": -32601, "message": "no such method"}})
# What is no JSON object.
TEXTS = {"not_json": "<html>", "no_object": "[1]"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked["method"]
        if method == "slow":
            time.sleep(SLOW_S)
        if method == "lost":
            return self.answer(200, "{", missing=10)
        if method in TEXTS:
            return self.answer(200, TEXTS[method])
        status, members = ANSWERS.get(method, UNKNOWN)
        body = {"jsonrpc": "2.0", "id": asked.get("id"), **members}
        return self.answer(status, json.dumps(body))

    def answer(self, status, text, missing=0):
        """Sends an answer that ends before so many bytes of it."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text) + missing))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"upstream listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
