"""A caller in the tests of our A2A client: agents of others, reached through our server.

usage: check.py URL NAME ..

URL is our server, and each NAME is an agent behind it that does what the first words of a message
say. Prints one line per check and ends with 1 when one failed.
"""

import http.client
import json
import sys
import time
import traceback
from urllib.parse import quote, urlsplit

CONNECT_DEADLINE_S = 300
CALL_DEADLINE_S = 300
POLL_S = 0.2
# How long a call is waited for, on a busy machine too.
WAIT_S = 120
# How long a call that does not end is waited for before it is cancelled, and then its agent.
LEFT_S = [2, 10, 60]
HEARD_S = 20


class House:
    """Our server."""

    def __init__(self, url):
        self.place = urlsplit(url)

    def ask(self, method, path, body=None):
        """Status and JSON of one request."""
        host, port = self.place.hostname, self.place.port
        connection = http.client.HTTPConnection(host, port, timeout=CALL_DEADLINE_S)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def call(self, tool, text, wait=WAIT_S):
        path = f"/api/v1/tools/{quote(tool)}/call?wait={wait}"
        return self.ask("POST", path, {"arguments": {"text": text}})

    def result(self, tool, text):
        """What a call gives that asks for nothing."""
        status, answer = self.call(tool, text)
        assert status == 200, (status, answer)
        return answer["result"]


def until(what, look, is_so):
    """Looks again and again."""
    begun = time.monotonic()
    while not is_so(seen := look()):
        late = time.monotonic() - begun > CALL_DEADLINE_S
        assert not late, f"waited {CALL_DEADLINE_S} s for {what}: {seen}"
        time.sleep(POLL_S)


def is_cancelled(answer):
    return answer["run"]["status"] == "cancelled"


def texts(result):
    return [block["text"] for block in result["content"] if block["type"] == "text"]


def connected(house, name):
    """The agent's skills are tools, and one more sends anything."""
    begun = time.monotonic()
    while True:
        status, tool = house.ask("GET", f"/api/v1/tools/{name}.echo")
        if status == 200:
            break
        told = house.ask("GET", f"/api/v1/upstreams/{name}")
        late = time.monotonic() - begun > CONNECT_DEADLINE_S
        assert not late, f"no tools within {CONNECT_DEADLINE_S} s: {told}"
        time.sleep(POLL_S)
    assert "Repeats what you say" in tool["description"], tool
    status, _ = house.ask("GET", f"/api/v1/tools/{name}.send")
    assert status == 200, status


def send(house, name):
    assert texts(house.result(f"{name}.send", "hello")) == ["You said: hello"]
    assert texts(house.result(f"{name}.echo", "hello")) == ["You said: hello"]
    said = texts(house.result(f"{name}.send", "tck-message-response"))
    assert said == ["You said: tck-message-response"], said


def artifacts(house, name):
    made = house.result(f"{name}.send", "tck-artifact-data")
    assert made["structuredContent"] == {"key": "value", "count": 42}, made
    made = house.result(f"{name}.send", "tck-stream-chunked")
    assert texts(made) == ["chunk-1", "chunk-2"], made


def long_task(house, name):
    begun = time.monotonic()
    done = house.result(f"{name}.send", "tck-long-running")
    assert texts(done) == ["done after a while"], done
    assert time.monotonic() - begun > 2, "it was not waited for"


def answered(house, answer, reply):
    """The run after its ask was answered."""
    ask = answer["ask"]
    body = {"action": "accept", "content": {"reply": reply}}
    status, done = house.ask("POST", f"/api/v1/asks/{ask['id']}?wait={WAIT_S}", body)
    assert status in (200, 202), (status, done)
    return done["run"]


def question(house, name):
    status, answer = house.call(f"{name}.send", "tck-input-required")
    assert status == 202 and "Which colour?" in json.dumps(answer["ask"]), (status, answer)
    run = answered(house, answer, "blue")
    assert run["status"] == "completed", run
    assert texts(run["answer"]) == ["You said: blue"], run


def several_questions(house, name):
    status, answer = house.call(f"{name}.send", "tck-multi-turn")
    assert status == 202, (status, answer)
    for reply in ["first", "second"]:
        run = answered(house, answer, reply)
        assert run["status"] == "waiting", run
        answer = {"ask": run["asks"][0]}
        assert f"And after {reply}?" in json.dumps(answer), answer
    run = answered(house, answer, "done")
    assert run["status"] == "completed", run


def failures(house, name):
    for text, why in [("tck-task-failure", "it failed"), ("tck-reject-task", "rejected")]:
        status, answer = house.call(f"{name}.send", text)
        assert status == 502 and answer["code"] == "tool_failed", (status, answer)
        assert why in json.dumps(answer), answer


def cancelled(house, name):
    """A run that is cancelled cancels its task."""

    def count():
        return int(texts(house.result(f"{name}.send", "how many were cancelled"))[0])

    before = count()
    for left in LEFT_S:
        status, answer = house.call(f"{name}.send", "tck-cancel", wait=left)
        assert status == 202 and "ask" not in answer, (status, answer)
        run = answer["run"]["id"]
        status, over = house.ask("POST", f"/api/v1/runs/{run}/cancel")
        assert status in (200, 202), (status, over)
        until("the run to end", lambda: house.ask("GET", f"/api/v1/runs/{run}")[1], is_cancelled)
        begun = time.monotonic()
        while time.monotonic() - begun < HEARD_S:
            if count() > before:
                return
            time.sleep(POLL_S)
        # On a busy machine the agent may not have heard of the call before it was cancelled.
    raise AssertionError(f"the agent was not asked, though it was called for {LEFT_S} s")


CHECKS = [
    connected, send, artifacts, long_task, question, several_questions, failures, cancelled,
]


def main(url, names):
    house = House(url)
    failed = 0
    for name in names:
        for check in CHECKS:
            try:
                check(house, name)
                print(f"ok {name}: {check.__name__}")
            except Exception as error:  # One check does not end the others.
                failed += 1
                print(f"FAILED {name}: {check.__name__}: {error!r}")
                traceback.print_exc()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
