"""What a recorded server talks to: a shop (REST), a hub that wants a login (MCP), a model that does
not answer, and a receiver of webhooks. Some can be told to hang, so that a kill meets a call that
is under way. The tests have servers of their own in place of these; names of tools, tokens and
answers are the same in both. Python's standard library only."""

import base64
import hashlib
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
CLIENT = "registered"
LARGE = "a large value, line by line\n" * 1_000


class Server(ThreadingHTTPServer):
    """One server with what it remembers; `hang` holds requests until the program ends."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, handler, host="127.0.0.1", port=0):
        super().__init__((host, port), handler)
        self.lock = threading.Lock()
        self.hangs = False
        self.held = 0
        self.seen = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        host, port = self.server_address
        return f"http://{host}:{port}"

    def hold(self):
        with self.lock:
            self.held += 1
        time.sleep(3_600)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def say(self, status, value=None, headers=()):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if value is not None:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Shop(Handler):
    """Writes down every request, as the tests' receiver does; `/large` has a large answer."""

    def take(self):
        data = self.body()
        if self.path == "/large":
            return self.say(200, {"text": LARGE})
        with self.server.lock:
            number = len(self.server.seen) + 1
            self.server.seen.append((self.command, self.headers.get("idempotency-key"), data))
        if self.server.hangs:
            self.server.hold()
        return self.say(200, {"ok": True, "n": number})

    do_GET = do_POST = do_PUT = take


class Model(Handler):
    """Answers no chat: one that is `busy` says when to come back, any other never answers."""

    def do_POST(self):
        asked = json.loads(self.body())
        with self.server.lock:
            self.server.seen.append(asked["model"])
        if asked["model"].startswith("busy"):
            error = {"error": {"message": "Too many requests", "type": "rate_limit_error"}}
            return self.say(429, error, [("retry-after", "100")])
        return self.server.hold()


class Hook(Handler):
    """Takes events until it `fails`."""

    fails = False

    def do_POST(self):
        event = json.loads(self.body())
        if Hook.fails:
            return self.say(503)
        with self.server.lock:
            self.server.seen.append(event["id"])
        return self.say(204)


class Hub(Handler):
    """An MCP server behind a login, and the authorization server that vouches for its clients."""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        base = self.server.url
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            resource = {"resource": f"{base}/mcp", "authorization_servers": [base]}
            return self.say(200, resource | {"scopes_supported": ["read"]})
        if url.path == "/.well-known/oauth-authorization-server":
            return self.say(200, self.metadata(base))
        if url.path == "/authorize":
            return self.authorize(dict(urllib.parse.parse_qsl(url.query)))
        return self.say(405 if url.path == "/mcp" else 404)

    def do_POST(self):
        data = self.body()
        if self.path == "/register":
            asked = json.loads(data)
            client = {"client_id": CLIENT, "redirect_uris": asked["redirect_uris"]}
            return self.say(201, client | {"token_endpoint_auth_method": "none"})
        if self.path == "/token":
            return self.token(dict(urllib.parse.parse_qsl(data.decode())))
        if self.path == "/revoke":
            token = dict(urllib.parse.parse_qsl(data.decode())).get("token")
            self.server.pairs = [pair for pair in self.server.pairs if token not in pair]
            return self.say(200)
        if self.path == "/open":
            return self.mcp(json.loads(data))
        shown = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if shown not in [access for access, _ in self.server.pairs]:
            place = f"{self.server.url}/.well-known/oauth-protected-resource/mcp"
            wanted = f'Bearer resource_metadata="{place}", scope="read"'
            return self.say(401, headers=[("www-authenticate", wanted)])
        return self.mcp(json.loads(data))

    def do_DELETE(self):
        self.say(204)

    @staticmethod
    def metadata(base):
        return {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "revocation_endpoint": f"{base}/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def authorize(self, asked):
        code = f"hunter-code-{len(self.server.codes) + 1}"
        self.server.codes[code] = asked["code_challenge"]
        back = {"code": code, "state": asked["state"], "iss": self.server.url}
        place = f"{asked['redirect_uri']}?{urllib.parse.urlencode(back)}"
        self.say(302, headers=[("location", place)])

    def token(self, sent):
        if sent["grant_type"] != "authorization_code":
            return self.say(400, {"error": "invalid_grant"})
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if self.server.codes.pop(sent["code"], None) != proof:
            return self.say(400, {"error": "invalid_grant"})
        self.server.given += 1
        number = self.server.given
        pair = (f"hunter-access-{number}", f"hunter-refresh-{number}")
        self.server.pairs.append(pair)
        tokens = {"access_token": pair[0], "refresh_token": pair[1], "token_type": "Bearer"}
        return self.say(200, tokens | {"expires_in": 3_600, "scope": "read"})

    def mcp(self, message):
        if "id" not in message or "method" not in message:
            return self.say(202)
        params = message.get("params") or {}
        if "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
            error = {"code": -32022, "message": "Unsupported protocol version"}
            error["data"] = {"supported": [MODERN], "requested": "2025-11-25"}
            return self.say(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        result = self.result(message["method"], params)
        if result is None:
            error = {"code": -32601, "message": f"Method not found: {message['method']}"}
            return self.say(404, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        result.setdefault("resultType", "complete")
        info = {"name": "upstream", "version": "1"}
        result["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
        if not message["method"].endswith("/call"):
            result |= {"ttlMs": 60_000, "cacheScope": "public"}
        return self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def result(self, method, params):
        if method == "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        if method == "tools/list":
            return {"tools": [listed(*tool) for tool in TOOLS]}
        return self.called(params) if method == "tools/call" else None

    def called(self, params):
        given = params.get("arguments") or {}
        if params["name"] == "add":
            total = given["a"] + given["b"]
            return text(str(total)) | {"structuredContent": {"sum": total}}
        if params["name"] == "write":
            if self.server.hangs:
                self.server.hold()
            return text("1")
        answer = (params.get("inputResponses") or {}).get("wanted")
        if answer is not None:
            return text(f"Hello, {answer['content']['name']}!")
        name = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        form = {"mode": "form", "message": "What is your name?", "requestedSchema": name}
        wanted = {"wanted": {"method": "elicitation/create", "params": form}}
        return {"resultType": "input_required", "inputRequests": wanted, "requestState": "state"}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def listed(name, description, reads):
    tool = {"name": name, "description": description, "inputSchema": {"type": "object"}}
    tool["annotations"] = {"readOnlyHint": reads}
    if name == "add":
        total = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
        tool["outputSchema"] = total
    return tool


TOOLS = [
    ("add", "Adds `a` and `b`.", True),
    ("write", "Counts that it was called.", False),
    ("ask", "Asks a person for a name.", False),
]


def hub(host, port):
    """The hub at the address that tokens are bound to."""
    server = Server(Hub, host, port)
    server.pairs, server.codes, server.given = [], {}, 0
    return server
