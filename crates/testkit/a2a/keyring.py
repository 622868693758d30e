"""A keyring of others in the tests of our A2A client: GNOME's, with libsecret's command.

usage: dbus-run-session -- keyring.py WAYPOST GUARDED ADMIN_KEY

WAYPOST is the built program. GUARDED is a server that asks for credentials: `desk::greet` is a
skill there, and ADMIN_KEY may create keys. Its keys are stored with `secret-tool`, and a server of
our own that has it for an agent finds them. Prints one line per check and ends with 1 when one
failed.
"""

import ctypes
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from urllib.parse import urlsplit

DEADLINE_S = 900
COMMAND_S = 120
POLL_S = 0.2
BANNER = "waypost listening on "
SKILLS = "https://waypost.dev/a2a/skills/v1"
GREETING = "Hello from the desk."
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def end_with_parent():
    ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def ask(url, method, path, body=None, key=None):
    """Status and JSON of one request."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=COMMAND_S + 30)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None


def until(what, look):
    """Looks again and again until there is something."""
    begun = time.monotonic()
    while not (seen := look()):
        assert time.monotonic() - begun < COMMAND_S, f"waited {COMMAND_S} s for {what}"
        time.sleep(POLL_S)
    return seen


class Session:
    """The keyring and the server, in a folder of their own; both end with it."""

    def __init__(self, waypost, guarded):
        self.waypost = waypost
        # The card names this machine so, and keys are shown to where the card is from.
        self.guarded = f"http://localhost:{urlsplit(guarded).port}"
        # Not in the target folder: the paths of sockets are short.
        self.folder = tempfile.mkdtemp(prefix="waypost-keyring-")
        self.running = []
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("WAYPOST_", "AGENTVAULT_", "ASSISTANT_MCP_", "XDG_"))
        }
        self.env["HOME"] = self.folder
        for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]:
            path = os.path.join(self.folder, name.lower())
            os.mkdir(path, 0o700)
            self.env[name] = path

    def start(self, *words, **how):
        process = subprocess.Popen(words, env=self.env, preexec_fn=end_with_parent, **how)
        self.running.append(process)
        return process

    def command(self, *words, given=None):
        """What a command prints; it must not fail."""
        done = subprocess.run(
            words, env=self.env, input=given, capture_output=True, text=True, timeout=COMMAND_S
        )
        assert done.returncode == 0, (words, done.returncode, done.stderr)
        return done.stdout

    def unlock(self):
        """Starts the keyring; a new one is unlocked with the password that it is given."""
        daemon = self.start(
            "gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets",
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )
        daemon.stdin.write(b"a password of this test")
        daemon.stdin.close()

        def is_there():
            assert daemon.poll() is None, f"the keyring ended with {daemon.returncode}"
            said = self.command(
                "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus",
                "/org/freedesktop/DBus", "org.freedesktop.DBus.NameHasOwner",
                "string:org.freedesktop.secrets",
            )
            return "boolean true" in said

        # Asked before it is there, the bus would start another one, which is locked.
        until("the keyring on the bus", is_there)

    def store(self, service, user, secret):
        label = f"--label={service} {user}"
        words = ["secret-tool", "store", label, "service", service, "username", user]
        self.command(*words, given=secret)

    def serve(self, names):
        """Starts a server with agents of these names, whose keys are under the same names."""
        project = os.path.join(self.folder, "project")
        os.mkdir(project)
        with open(os.path.join(project, "waypost.toml"), "w", encoding="utf-8") as file:
            for name in names:
                file.write(
                    f'[a2a.agents.{name}]\ncard = "{self.guarded}/agent-card.json"\n'
                    f'service = "{name}"\nkeyring = true\nallow_private = true\n'
                )
        log = open(os.path.join(self.folder, "log"), "wb")
        server = self.start(
            self.waypost, "up", "--port", "0", "--ephemeral", project,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
        )
        lines = []

        def listen():
            for line in server.stdout:
                lines.append(line)

        threading.Thread(target=listen, daemon=True).start()

        def address():
            assert server.poll() is None, f"waypost ended with {server.returncode}"
            found = [line for line in list(lines) if line.startswith(BANNER)]
            return found and found[0].removeprefix(BANNER).strip()

        return until("the address of waypost", address)

    def log(self):
        path = os.path.join(self.folder, "log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def end(self):
        """Ends what it started, the newest first, and removes what they wrote."""
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(COMMAND_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(COMMAND_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def greeted(url, name):
    """What the agent of this name answers."""
    arguments = {"data": {}, "metadata": {SKILLS: {"skill": "desk::greet"}}}
    path = f"/api/v1/tools/{name}.send/call?wait={COMMAND_S}"
    return ask(url, "POST", path, {"arguments": arguments})


def has_tool(url, name):
    return ask(url, "GET", f"/api/v1/tools/{name}.send")[0] == 200


def checked(session, admin_key):
    """Each check with its name, one after the other."""
    status, made = ask(
        session.guarded, "POST", "/api/v1/keys", {"name": "keyring", "roles": ["member"]}, admin_key
    )
    assert status in (200, 201), (status, made)
    identity, key = made["key"]["id"], made["text"]
    session.unlock()
    session.store("agentvault:keyed", "keyed", key)
    read = session.command(
        "secret-tool", "lookup", "service", "agentvault:keyed", "username", "keyed"
    )
    assert read.strip() == key, "the keyring gives another secret than it was given"
    yield "a key is stored"
    session.store("agentvault:oauth:paired", "clientId", identity)
    session.store("agentvault:oauth:paired", "clientSecret", key)
    yield "a client is stored"
    url = session.serve(["keyed", "paired", "missing"])
    until("the agent with a key", lambda: has_tool(url, "keyed"))
    status, answer = greeted(url, "keyed")
    assert status == 200 and GREETING in json.dumps(answer), (status, answer)
    yield "an agent is shown the key of the keyring"
    until("the agent with a client", lambda: has_tool(url, "paired"))
    status, answer = greeted(url, "paired")
    assert status == 200 and GREETING in json.dumps(answer), (status, answer)
    yield "an agent is shown a token for the client of the keyring"
    status, answer = greeted(url, "missing")
    assert status != 200 and GREETING not in json.dumps(answer), (status, answer)
    yield "an agent without an entry in the keyring cannot be called"
    assert key not in session.log(), "the key is in the log"
    yield "the key is not in the log"


def main(waypost, guarded, admin_key):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(DEADLINE_S)
    session = Session(waypost, guarded)
    failed = 0
    try:
        for name in checked(session, admin_key):
            print(f"ok {name}", flush=True)
    except BaseException as error:
        failed = 1
        print(f"FAILED: {error!r}", flush=True)
        traceback.print_exc()
        print(session.log(), file=sys.stderr)
    finally:
        signal.alarm(0)
        session.end()
    sys.exit(failed)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
