"""Records the data folder of a release: all that can be stored, killed in the middle of work.

    python3 crates/testkit/record/record.py PROGRAM FOLDER

PROGRAM is the release's `waypost`, FOLDER is `crates/testkit/data/<release>`, which is written anew:
`project` as it is beside this file, `data` and `expected.json`. Python's standard library only."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
import standin  # noqa: E402

HUB_PORT = 28086
PUBLIC = "http://127.0.0.1:1"
HOOK_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BANNER = "waypost listening on "
LIMIT_S = 60
# So many that the session gets a snapshot.
ITEMS = list(range(100))
PROJECT = pathlib.Path(__file__).resolve().parent / "project"
INLINE = {
    "planId": "inline",
    "description": "comes with its request",
    "parameters": {"type": "object"},
    "steps": [
        {"id": "ask", "type": "human_in_the_loop", "message": "?", "nextStepIdOnInput": "end"},
        {"id": "end", "type": "final_response", "message": "inline {{ context.human_input }}"},
    ],
}


def stored_plan(word):
    """A plan that is stored over HTTP; its answer tells which version of it ran."""
    steps = [dict(INLINE["steps"][0]), dict(INLINE["steps"][1])]
    steps[1]["message"] = word + " {{ context.human_input }}"
    return INLINE | {"planId": "stored/word", "description": "stored", "steps": steps}


def hub_of(release):
    """A loopback address of its own: tokens are bound to it, and nothing else listens there."""
    major, minor, patch = map(int, release.split("."))
    return f"127.{100 + major}.{minor}.{patch + 1}"


class Waypost:
    """The program under record, as a process with a client."""

    def __init__(self, program, project, data, log):
        command = [program, "up", project, "--data", data, "--port", "0", "--log", "json"]
        folder = pathlib.Path(data).parent
        around = {k: v for k, v in os.environ.items() if not k.startswith(("WAYPOST_", "OTEL_"))}
        around["XDG_CONFIG_HOME"] = str(folder / "none")
        self.process = subprocess.Popen(
            command, cwd=folder, env=around, stdout=subprocess.PIPE, stderr=log, text=True
        )
        for line in self.process.stdout:
            if BANNER in line:
                self.url = line.split(BANNER)[1].split()[0].rstrip("/")
                break
        else:
            raise SystemExit("it ended before it listened")
        wait("readiness", lambda: self.send("GET", "/readyz")[0] == 200)

    def send(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("content-type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        with contextlib.suppress(ValueError):
            return status, json.loads(text)
        return status, text

    def ask(self, expected, method, path, body=None, headers=None):
        status, answer = self.send(method, path, body, headers)
        if status != expected:
            raise SystemExit(f"{method} {path} {body}: {status} {json.dumps(answer)[:1500]}")
        return answer

    def start(self, session, plan, given=None, expected=202, headers=None, wait_s=30):
        body = {"planId": plan, "session": session, "input": given or {}}
        path = f"/api/v1/runs?wait={wait_s}"
        return self.ask(expected, "POST", path, body, headers)["run"]

    def all(self, path):
        items, cursor = [], ""
        while True:
            page = self.ask(200, "GET", f"{path}limit=200{cursor}")
            items += page["items"]
            if not page["nextCursor"]:
                return items
            cursor = f"&cursor={urllib.parse.quote(page['nextCursor'])}"

    def sink(self):
        return self.ask(200, "GET", "/api/v1/sinks")["items"][0]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(LIMIT_S)
        self.process.stdout.close()


def wait(what, look):
    begun = time.monotonic()
    while not look():
        if time.monotonic() - begun > LIMIT_S:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.02)


def log_in(waypost, upstream):
    """Somebody logs in at an upstream; their browser comes back to us, wherever we listen."""
    path = f"/api/v1/upstreams/{upstream}"
    wait(f"{upstream} to want a login", lambda: waypost.ask(200, "GET", path)["state"] == "login")
    page = waypost.ask(200, "POST", f"{path}/login")["url"]
    opener = urllib.request.build_opener(Stays)
    try:
        opener.open(page)
    except urllib.error.HTTPError as error:
        back = error.headers["location"]
    assert back.startswith(PUBLIC), back
    waypost.ask(200, "GET", back.removeprefix(PUBLIC))
    wait(f"{upstream} to be ready", lambda: waypost.ask(200, "GET", path)["state"] == "ready")


class Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def tell_and_remove(waypost):
    """What is told while the receiver is well; then old sessions and old runs are removed."""
    waypost.start("removed", "old/sum", {"a": 1, "b": 1}, 200)
    gone = [waypost.start("trimmed", "old/sum", {"a": n, "b": 1}, 200)["id"] for n in range(3)]
    waypost.start("trimmed", "old/question")
    wait("the sink to take all", lambda: waypost.sink()["lag"] == 0)
    time.sleep(0.5)
    removed = waypost.ask(200, "POST", "/api/v1/sessions/prune", {"olderThanMs": 1})
    assert removed["sessions"] == 1 and removed["runs"] == 3, removed
    return {"session": "removed", "runs": gone}


def store(waypost):
    """Definitions that are stored over HTTP."""
    path = "/api/v1/plans/stored%2Fword"
    waypost.ask(201, "PUT", path, stored_plan("first"))
    waypost.start("stored", "stored/word")
    waypost.ask(200, "PUT", path, stored_plan("second"))
    agent = {"refName": "keeper", "llmConfigRef": "rules", "enabledTools": ["math::add"]}
    waypost.ask(201, "PUT", "/api/v1/agents/keeper", agent)
    shelf = {"providerType": "MCP", "baseUrl": "${WAYPOST_PROVIDER_SHELF}", "trusted": True}
    waypost.ask(201, "PUT", "/api/v1/providers/shelf", shelf | {"prefix": "shelf_"})


def wait_for_people(waypost):
    """Runs that are over, and runs that wait for somebody or for a time."""
    waypost.start("completed", "old/sum", {"a": 2, "b": 3}, 200)
    waypost.start("failed", "old/fails", expected=200)
    run = waypost.start("cancelled", "old/question")
    waypost.ask(200, "POST", f"/api/v1/runs/{run['id']}/cancel")
    waypost.start("clarify", "old/question")
    waypost.ask(201, "POST", "/api/v1/sessions/clarify/fork", {})
    waypost.start("fill", "old/form")
    waypost.start("approve", "old/approval", {"run": "approve"})
    waypost.start("fix", "old/broken")
    waypost.start("wants", "old/wants")
    waypost.start("far", "old/far")
    run = waypost.start("paused", "old/question")
    waypost.ask(200, "POST", f"/api/v1/runs/{run['id']}/pause")
    waypost.start("large", "old/large", {"note": {"text": "n" * 20_000}})
    run = waypost.start("branches", "old/branches")
    left = next(ask for ask in run["asks"] if ask["step"] == "left")
    waypost.ask(200, "POST", f"/api/v1/asks/{left['id']}", {"answer": "one"})
    waypost.start("long", "old/long", {"items": ITEMS})
    waypost.start("outer", "old/outer", {"items": [1, 2]})
    body = {"plan": INLINE, "session": "inline", "input": {}}
    waypost.ask(202, "POST", "/api/v1/runs", body)
    waypost.ask(201, "POST", "/sessions", {"sessionId": "door"})
    waypost.ask(202, "POST", "/sessions/door/execute-plan", {"planId": "old/form"})
    waypost.ask(200, "POST", "/api/v1/tools/hub_write/call", {"arguments": {}})
    for case, reason in (("T-1", "Missing ISIN"), ("T-2", "LEI not found in registry")):
        waypost.ask(200, "POST", "/trade/failures", {"tradeId": case, "reason": reason})


def keyed(waypost):
    """A request under a key: what came of it is told again to whoever repeats it."""
    body = {"planId": "old/sum", "session": "keyed", "input": {"a": 20, "b": 22}}
    key = "the-key-of-a-request"
    run = waypost.ask(200, "POST", "/api/v1/runs", body, {"Idempotency-Key": key})["run"]
    return {"key": key, "body": body, "run": run["id"], "answer": run["answer"]}


def talk(waypost):
    """Threads with an agent: one that goes on, one that asks, one that waits for an approval."""
    say = lambda thread, words, status: waypost.ask(
        status, "POST", "/run", {"thread_id": thread, "user_request": words}
    )
    say("talk", "add 1", 200)
    say("talk", "add 2", 200)
    say("talk-question", "ask me", 202)
    say("talk-approval", "order talk-approval", 202)


def want_a_login(waypost):
    """A server whose tools are known, and which wants somebody to log in again."""
    log_in(waypost, "gate")
    waypost.ask(204, "DELETE", "/api/v1/upstreams/gate/login")
    waypost.start("authorize", "old/login")
    waypost.ask(202, "POST", "/run", {"thread_id": "talk-login", "user_request": "add there"})


def be_in_the_middle(waypost, servers):
    """Calls and turns that are under way, and times that run; all begun at once."""
    ready = lambda: waypost.ask(200, "GET", "/api/v1/upstreams/hub")["state"] == "ready"
    wait("the hub", ready)
    servers["SHOP_URL"].hangs = servers["HUB_URL"].hangs = True
    begin = lambda name: waypost.start(name, f"old/{name}", {"run": name}, wait_s=0)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(begin, ("look", "order", "keep", "write", "silent", "busy", "soon")))
    held = lambda: [servers[name].held for name in ("SHOP_URL", "HUB_URL", "MODEL_URL")]
    wait("everything to be under way", lambda: held() == [3, 1, 1])
    wait("a busy model", lambda: "busy--says" in servers["MODEL_URL"].seen)
    thread = "/api/v1/sessions/talk-login?space=thread"
    wait("a thread", lambda: waypost.ask(200, "GET", thread)["status"] == "waiting")
    # Whatever is on its way to the disk arrives there.
    time.sleep(1)


def events_after(database, place):
    """The ids of the events that a sink at this place has not taken: those that are sure to go."""
    told = ("run.started", "run.ended", "ask.opened")
    rows = database.execute(
        "SELECT lower(hex(s.id)), j.body FROM journal j JOIN sessions s ON s.pk = j.session"
        " WHERE j.row > ? ORDER BY j.row", (place,))
    events = [(session, event) for session, body in rows for event in json.loads(body)]
    return [f"ses_{session}.{event['seq']}" for session, event in events if event["type"] in told]


def calls_under_way(database):
    """The calls that were sent and did not come back, by the key of their session."""
    rows = database.execute(
        "SELECT s.key, j.body FROM journal j JOIN sessions s ON s.pk = j.session ORDER BY j.row")
    calls = {}
    for key, body in rows:
        for event in json.loads(body):
            call = event["data"].get("call")
            if event["type"] == "call.started":
                calls[call] = key
            elif event["type"] in ("call.finished", "call.failed", "call.wants"):
                calls.pop(call, None)
    return {key: call for call, key in calls.items()}


def main(program, folder):
    folder = pathlib.Path(folder).resolve()
    program = pathlib.Path(program).resolve()
    servers = {
        "SHOP_URL": standin.Server(standin.Shop),
        "HUB_URL": standin.hub(hub_of(folder.name), HUB_PORT),
        "MODEL_URL": standin.Server(standin.Model),
        "HOOK_URL": standin.Server(standin.Hook),
    }
    variables = {name: server.url for name, server in servers.items()}
    variables |= {"HOOK_SECRET": HOOK_SECRET}
    variables |= {"WAYPOST_PROVIDER_SHELF": variables["HUB_URL"] + "/open"}
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        shutil.copytree(PROJECT, place / "project")
        lines = "".join(f"{name}={value}\n" for name, value in variables.items())
        (place / "project" / ".env").write_text(lines)
        noted = record(program, place, servers)
        keep(place / "data", folder, noted)


def record(program, place, servers):
    with open(place / "server.log", "w") as log, contextlib.ExitStack() as ends:

        def start():
            waypost = Waypost(str(program), str(place / "project"), str(place / "data"), log)
            ends.callback(waypost.process.kill)
            return waypost

        try:
            waypost = start()
            log_in(waypost, "hub")
            removed = tell_and_remove(waypost)
            standin.Hook.fails = True
            store(waypost)
            wait_for_people(waypost)
            repeated = keyed(waypost)
            talk(waypost)
            want_a_login(waypost)
            waypost.end(signal.SIGTERM)
            waypost = start()
            be_in_the_middle(waypost, servers)
            sessions = waypost.all("/api/v1/sessions?")
            asks = waypost.all("/api/v1/asks?status=open&")
            waypost.end(signal.SIGKILL)
        except BaseException:
            print((place / "server.log").read_text()[-6_000:], file=sys.stderr)
            raise
    return {
        "hub": {"address": servers["HUB_URL"].url.removeprefix("http://"),
                "refresh": servers["HUB_URL"].pairs[0][1], "callback": f"{PUBLIC}/oauth/callback"},
        "sessions": [{name: one.get(name) for name in ("id", "space", "key", "status", "run")}
                     for one in sessions],
        "asks": [{"id": ask["id"], "kind": ask["kind"], "session": ask["session"]["key"]}
                 for ask in asks],
        "removed": removed,
        "keyed": repeated,
        "delivered": servers["HOOK_URL"].seen,
    }


def keep(data, folder, noted):
    """Keeps the folder as the kill left it, but for what every start makes anew."""
    target = folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROJECT, folder / "project")
    shutil.copytree(data, target, ignore=shutil.ignore_patterns("*-shm", "lock"))
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(place) / "data"
        shutil.copytree(data, copy)
        with contextlib.closing(sqlite3.connect(copy / "waypost.db")) as database:
            found = database.execute("SELECT cursor FROM consumers WHERE name LIKE '%hook%'")
            noted["rest"] = events_after(database, found.fetchone()[0])
            noted["calls"] = calls_under_way(database)
            blobs = database.execute(
                "SELECT DISTINCT hash FROM blob_holds WHERE kind = 'session' ORDER BY hash")
            noted["blobs"] = [row[0] for row in blobs]
            if not database.execute("SELECT 1 FROM snapshots").fetchone():
                raise SystemExit("no session got a snapshot; raise ITEMS")
    text = json.dumps(noted, indent=1, sort_keys=True)
    (folder / "expected.json").write_text(text + "\n")
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{len(noted['sessions'])} sessions, {len(noted['asks'])} open asks, {size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
