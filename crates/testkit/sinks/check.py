"""Publishes through a Waypost server while a receiver that others wrote verifies what it is sent.

`check.py WAYPOST RECEIVER FILE`: the addresses of both, and the file of a sink beside the webhook.
One line for each check that passed; it ends with 1 at the first that did not.
"""

import json
import sys
import time
import urllib.request

LIMIT_SECONDS = 300
RUNS = 6
PARTS = 3
MOODS = ("well", "failing", "hanging", "busy", "mute")
TRIES = 2


def send(url, body=None):
    """The JSON that a GET, or a POST of this body, answers with."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=180) as response:
        return json.load(response)


def wait_for(what, look):
    """Looks until something is there."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"waited {LIMIT_SECONDS} s in vain for {what}")


def check(what, holds, told=""):
    """One check."""
    if not holds:
        sys.exit(f"not ok {what}: {told}")
    print(f"ok {what}")


def published(waypost, receiver):
    """Runs in every mood of the receiver; the ids of the runs."""
    runs = []
    for mood in MOODS:
        send(f"{receiver}/mood", {"mood": mood})
        for _ in range(RUNS):
            body = {"planId": "out/three", "session": f"s{len(runs) % 4}", "input": {"number": len(runs)}}
            run = send(f"{waypost}/api/v1/runs", body)["run"]
            check(f"run {len(runs)} while {mood}", run["status"] == "completed", run)
            runs.append(run["id"])
        wait_for(f"{TRIES} tries while {mood}", lambda: send(f"{receiver}/taken")["tries"] >= TRIES)
        send(f"{receiver}/mood", {"mood": "well"})
    return runs


def place(event_id):
    """The session of an event, and where it stands in it."""
    session, *numbers = event_id.split(".")
    return session, [int(number) for number in numbers]


def check_events(where, events, runs):
    """All is there, once under each id, and in the order of its session."""
    ids, last = {}, {}
    for event in events:
        before = ids.setdefault(event["id"], event)
        if before is not event:
            check(f"{where}: {event['id']} is the same again", before == event, event)
            continue
        session, numbers = place(event["id"])
        if numbers < last.get(session, []):
            sys.exit(f"not ok {where}: {event['id']} came after {last[session]}")
        last[session] = numbers
    told = {}
    for event in ids.values():
        if event["type"] == "Told":
            key = (event["data"]["number"], event["data"]["part"])
            told.setdefault(key, []).append(event["id"])
    wanted = {(number, part) for number in range(len(runs)) for part in range(1, PARTS + 1)}
    check(f"{where}: every event is there", set(told) == wanted, wanted - set(told))
    check(f"{where}: none has two ids", all(len(found) == 1 for found in told.values()), told)
    ends = {event["data"]["run"] for event in ids.values() if event["type"] == "waypost.run.completed.v1"}
    check(f"{where}: every run ended", ends >= set(runs), set(runs) - ends)
    check(f"{where}: all are CloudEvents", all(event["specversion"] == "1.0" for event in ids.values()))


def main():
    """Publishes, waits until all is out, and looks."""
    waypost, receiver, file = sys.argv[1:]
    runs = published(waypost, receiver)

    def is_out():
        sinks = send(f"{waypost}/api/v1/sinks")["items"]
        return all(sink["lag"] == 0 and sink["retrying"] == 0 for sink in sinks)

    wait_for("both sinks to have taken everything", is_out)
    state = send(f"{receiver}/taken")
    check("standardwebhooks verified every delivery", not state["faults"], state["faults"])
    check_events("the receiver", [taken["event"] for taken in state["taken"]], runs)
    same = all(taken["id"] == taken["event"]["id"] for taken in state["taken"])
    check("the id of a delivery is the event's", same)
    with open(file, encoding="utf-8") as lines:
        check_events("the file", [json.loads(line) for line in lines], runs)


if __name__ == "__main__":
    main()
