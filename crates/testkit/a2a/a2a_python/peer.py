"""A peer in the tests of our A2A server: the official Python SDK 1.3.

usage: peer.py URL GUARDED

URL is a server with the test agent. It is talked to by every interface of its card that this peer
speaks: JSON-RPC and HTTP with JSON, of 1.0 and, where the card has it, of 0.3, and gRPC of 1.0.
GUARDED is a server that takes every kind of credential; the signature of its card is checked.
Prints one line per check and ends with 1 when one failed.
"""

import asyncio
import http.server
import json
import os
import sys
import threading
import traceback
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_data_parts, get_message_text, new_text_message
from a2a.types import (
    AgentCard,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    PushNotificationNotSupportedError,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskNotCancelableError,
    TaskNotFoundError,
    TaskPushNotificationConfig,
    TaskState,
    UnsupportedOperationError,
)
from a2a.utils.errors import A2AError
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from jwt.api_jwk import PyJWK

DEADLINE_S = 1500
CHECK_DEADLINE_S = 240
BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
COMPLETED = TaskState.TASK_STATE_COMPLETED
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED
NO_TASK = "run_00000000000000000000000000000001"
# The kinds of schemes of a server that takes every kind of credential.
KINDS = {
    "api_key_security_scheme",
    "http_auth_security_scheme",
    "oauth2_security_scheme",
    "open_id_connect_security_scheme",
}


class Receiver:
    """A receiver of webhooks, on a thread of its own: headers and bodies of what it got."""

    def __init__(self):
        self.got = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append((self.headers, json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    async def until(self, state):
        """Waits until a state was told, in the words of either version."""
        while state not in [state_of(body) for _, body in self.got]:
            await asyncio.sleep(0.05)


def state_of(body):
    """The state that a notification tells: an update in 1.0, a whole task in 0.3."""
    status = body.get("statusUpdate", body).get("status", {})
    return str(status.get("state")).upper().replace("-", "_").removeprefix("TASK_STATE_")


def name_of(state):
    return TaskState.Name(state)


class Talk:
    """A client of one interface."""

    def __init__(self, card, http):
        self.card = card
        self.http = http
        interface = card.supported_interfaces[0]
        self.is_old = interface.protocol_version.startswith("0.")
        # There the client can do less than elsewhere.
        self.is_old_rest = self.is_old and interface.protocol_binding == "HTTP+JSON"

    def client(self, streaming=True, polling=False):
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=self.http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=BINDINGS,
        )
        return ClientFactory(config).create(self.card)

    async def events(self, text, task=None, **how):
        """All that is answered to a text."""
        message = new_text_message(text, role=Role.ROLE_USER)
        message.message_id = str(uuid.uuid4())
        if task is not None:
            message.task_id, message.context_id = task.id, task.context_id
        events = self.client(**how).send_message(SendMessageRequest(message=message))
        return [event async for event in events]

    async def task(self, text, task=None, polling=False):
        """The task that a text leads to, without a stream."""
        [event] = await self.events(text, task, streaming=False, polling=polling)
        assert event.HasField("task"), event
        return event.task

    async def got(self, task):
        return await self.client().get_task(GetTaskRequest(id=task.id))


def words(events):
    """Each event in a word."""
    told = []
    for event in events:
        kind = event.WhichOneof("payload")
        if kind == "task":
            told.append(f"task {name_of(event.task.status.state)}")
        elif kind == "status_update":
            told.append(name_of(event.status_update.status.state))
        elif kind == "artifact_update":
            told.append(f"artifact {get_artifact_text(event.artifact_update.artifact)}")
        else:
            told.append(kind)
    return told


async def fails(talk, error, work):
    """Awaits something that must fail with this error."""
    if talk.is_old_rest:
        error = A2AError  # There the client tells one only from the names of its own server.
    try:
        result = await work
    except error:
        return
    raise AssertionError(f"no {error}: {result}")


async def send(talk):
    task = await talk.task("tck-artifact-data")
    assert task.status.state == COMPLETED, task
    [data] = get_data_parts(task.artifacts[0].parts)
    assert data == {"key": "value", "count": 42}, data
    got = await talk.got(task)
    assert got.id == task.id and got.artifacts == task.artifacts, got
    [event] = await talk.events("tck-message-response", streaming=False)
    assert event.HasField("message") and get_message_text(event.message), event


async def stream(talk):
    events = await talk.events("tck-stream-chunked")
    told = words(events)
    assert told[0].startswith("task TASK_STATE_"), told
    assert told[-3:] == ["artifact chunk-1", "artifact chunk-2", "TASK_STATE_COMPLETED"], told
    task = await talk.got(events[0].task)
    assert get_artifact_text(task.artifacts[0], "") == "chunk-1chunk-2", task
    lone = await talk.events("tck-message-response")
    assert words(lone) == ["message"], lone


async def input_and_resume(talk):
    task = await talk.task("tck-input-required")
    assert task.status.state == INPUT_REQUIRED, task
    assert get_message_text(task.status.message), task
    done = await talk.task("this", task)
    assert (done.id, done.status.state) == (task.id, COMPLETED), done
    events = await talk.events("tck-input-required")
    assert words(events)[-1] == "TASK_STATE_INPUT_REQUIRED", words(events)
    told = words(await talk.events("that", events[0].task))
    assert told[-1] == "TASK_STATE_COMPLETED", told


async def reconnect(talk):
    message = new_text_message("tck-long-running", role=Role.ROLE_USER)
    message.message_id = str(uuid.uuid4())
    events = talk.client().send_message(SendMessageRequest(message=message))
    first = await anext(events)
    await events.aclose()
    assert first.HasField("task"), first
    again = talk.client().subscribe(SubscribeToTaskRequest(id=first.task.id))
    told = words([event async for event in again])
    assert told[0].startswith("task TASK_STATE_"), told
    assert told[-1] == "TASK_STATE_COMPLETED", told


async def cancel(talk):
    task = await talk.task("tck-cancel", polling=True)
    over = await talk.client().cancel_task(CancelTaskRequest(id=task.id))
    assert over.status.state == TaskState.TASK_STATE_CANCELED, over
    again = talk.client().cancel_task(CancelTaskRequest(id=task.id))
    await fails(talk, TaskNotCancelableError, again)


async def errors(talk):
    await fails(talk, TaskNotFoundError, talk.client().get_task(GetTaskRequest(id=NO_TASK)))
    done = await talk.task("tck-complete-task")
    await fails(talk, UnsupportedOperationError, talk.task("more", done))
    rejected = await talk.task("tck-reject-task")
    assert rejected.status.state == TaskState.TASK_STATE_REJECTED, rejected
    failed = await talk.task("tck-task-failure")
    assert failed.status.state == TaskState.TASK_STATE_FAILED, failed


async def lists(talk):
    if talk.is_old:
        return  # The client has no such method there.
    task = await talk.task("tck-artifact-data")
    await talk.task("tck-complete-task")
    client = talk.client()
    wanted = ListTasksRequest(context_id=task.context_id, include_artifacts=True)
    page = await client.list_tasks(wanted)
    assert [one.id for one in page.tasks] == [task.id] and page.total_size == 1, page
    assert page.tasks[0].artifacts == task.artifacts, page
    first = await client.list_tasks(ListTasksRequest(page_size=1))
    assert len(first.tasks) == 1 and first.next_page_token and first.total_size > 1, first
    more = ListTasksRequest(page_size=1, page_token=first.next_page_token)
    second = await client.list_tasks(more)
    assert second.tasks[0].id != first.tasks[0].id, second
    assert not first.tasks[0].artifacts, first


async def extended_card(talk):
    if talk.card.capabilities.extended_agent_card:
        card = await talk.client().get_extended_agent_card(GetExtendedAgentCardRequest())
        assert card.skills, card


async def push(talk):
    task = await talk.task("tck-input-required")
    if talk.card.capabilities.push_notifications:
        await pushed(talk, task)
        return
    config = TaskPushNotificationConfig(task_id=task.id, url="https://example.com/hook")
    created = talk.client().create_task_push_notification_config(config)
    await fails(talk, (PushNotificationNotSupportedError, UnsupportedOperationError), created)


async def pushed(talk, task):
    """A webhook is made, read, listed, notified and deleted."""
    receiver, client = Receiver(), talk.client()
    config = TaskPushNotificationConfig(
        task_id=task.id,
        id="mine",
        url=receiver.url,
        token="a-token",
        authentication=AuthenticationInfo(scheme="Bearer", credentials="a-credential"),
    )
    made = await client.create_task_push_notification_config(config)
    assert (made.id, made.url, made.task_id) == ("mine", receiver.url, task.id), made
    wanted = GetTaskPushNotificationConfigRequest(task_id=task.id, id="mine")
    got = await client.get_task_push_notification_config(wanted)
    assert got.url == receiver.url and not got.authentication.credentials, got
    if not talk.is_old_rest:
        every = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        listed = await client.list_task_push_notification_configs(every)
        assert [one.id for one in listed.configs] == ["mine"], listed
    await talk.task("this", task)
    await receiver.until("COMPLETED")
    headers, _ = receiver.got[-1]
    assert headers["authorization"] == "Bearer a-credential", headers
    assert headers["x-a2a-notification-token"] == "a-token", headers
    if not talk.is_old_rest:
        unwanted = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="mine")
        await client.delete_task_push_notification_config(unwanted)
        gone = client.get_task_push_notification_config(wanted)
        await fails(talk, TaskNotFoundError, gone)


async def verifier(http, url):
    """Checks signatures of cards by the key set of this server."""
    key_set = f"{url}/.well-known/jwks.json"
    keys = (await http.get(key_set)).json()["keys"]
    known = {key["kid"]: PyJWK(key) for key in keys}

    def key_of(kid, jku):
        assert jku == key_set, jku
        return known[kid]

    return create_signature_verifier(key_of, ["ES256"])


async def guarded_signature(http, url):
    """The resolver finds a card with schemes signed, and reads each kind of scheme."""
    verify = await verifier(http, url)
    card = await A2ACardResolver(http, url).get_agent_card(signature_verifier=verify)
    kinds = {scheme.WhichOneof("scheme") for scheme in card.security_schemes.values()}
    assert kinds == KINDS, kinds


async def signature(http, url, card):
    """The card is signed by a key of the key set, and another card is not."""
    verify = await verifier(http, url)
    verify(card)
    changed = AgentCard()
    changed.CopyFrom(card)
    changed.name = "Another"
    try:
        verify(changed)
    except InvalidSignaturesError:
        return
    raise AssertionError("another card passes for the signed one")


CHECKS = [
    send, stream, input_and_resume, reconnect, cancel, errors, lists, extended_card, push,
]


def of_interface(card, interface):
    """The card as if it had only this interface."""
    one = AgentCard()
    one.CopyFrom(card)
    del one.supported_interfaces[:]
    one.supported_interfaces.append(interface)
    return one


async def all_checks(http, url, guarded):
    """The number of failures."""
    card = await A2ACardResolver(http, url).get_agent_card()
    interfaces = [one for one in card.supported_interfaces if one.protocol_binding in BINDINGS]
    spoken = {(one.protocol_binding, one.protocol_version) for one in interfaces}
    assert {("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0")} <= spoken, spoken
    failed = await passed("signature of a card with schemes", guarded_signature(http, guarded))
    if card.signatures:
        failed += await passed("signature", signature(http, url, card))
    for interface in interfaces:
        talk = Talk(of_interface(card, interface), http)
        way = f"{interface.protocol_binding} {interface.protocol_version}"
        for check in CHECKS:
            failed += await passed(f"{way}: {check.__name__}", check(talk))
    return failed


async def passed(name, check):
    """0 for a check that passed, 1 for one that failed; one does not end the others."""
    try:
        await asyncio.wait_for(check, CHECK_DEADLINE_S)
    except Exception as error:
        print(f"FAILED {name}: {error!r}")
        traceback.print_exc()
        return 1
    print(f"ok {name}")
    return 0


async def main(url, guarded):
    async with httpx.AsyncClient(timeout=CHECK_DEADLINE_S) as http:
        failed = await asyncio.wait_for(all_checks(http, url, guarded), DEADLINE_S)
    # What the SDK left running is nobody's business any more.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
