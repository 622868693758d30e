"""A remote agent in the tests of our A2A client: the official Python SDK 1.3.

usage: agent.py

It prints where it listens, and ends when its standard input does. Its cards are at `/cards/NAME.json`,
each with one interface: `rpc`, `rest` and `grpc` of 1.0, `old-rpc` and `old-rest` of 0.3. gRPC has a
port of its own. It does what the first words of a message say.
"""

import asyncio
import os
import socket
import sys
import threading

import grpc
import uvicorn
from a2a.helpers import (
    get_message_text,
    new_data_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, a2a_pb2_grpc
from starlette.applications import Starlette

LONG_S = 3
ENDLESS_S = 3600
# The interfaces by the names of their cards: path, binding, version.
INTERFACES = {
    "rpc": ("/rpc", "JSONRPC", "1.0"),
    "rest": ("/rest", "HTTP+JSON", "1.0"),
    "old-rpc": ("/rpc", "JSONRPC", "0.3"),
    "old-rest": ("/rest", "HTTP+JSON", "0.3"),
    "grpc": ("", "GRPC", "1.0"),
}


class Agent(AgentExecutor):
    """Does what the words say."""

    def __init__(self):
        self.cancelled = 0

    async def execute(self, context, event_queue):
        text = get_message_text(context.message)
        if text.startswith("tck-message-response"):
            await event_queue.enqueue_event(new_text_message(f"You said: {text}"))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            begun = text
        else:
            begun = get_message_text(task.history[0])
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self.work(updater, begun, text, is_reply=context.current_task is not None)

    async def work(self, updater, begun, text, is_reply):
        def said(words):
            return updater.new_agent_message([new_text_part(words)])

        await updater.start_work()
        if begun.startswith("tck-input-required") and not is_reply:
            await updater.requires_input(said("Which colour?"))
        elif begun.startswith("tck-input-required"):
            await updater.complete(said(f"You said: {text}"))
        elif begun.startswith("tck-multi-turn") and text != "done":
            await updater.requires_input(said(f"And after {text}?"))
        elif begun.startswith("tck-artifact-data"):
            parts = [new_data_part({"key": "value", "count": 42})]
            await updater.add_artifact(parts, name="data", last_chunk=True)
            await updater.complete()
        elif begun.startswith("tck-stream-chunked"):
            first, second = [new_text_part("chunk-1")], [new_text_part("chunk-2")]
            await updater.add_artifact(first, artifact_id="chunked", append=False)
            await updater.add_artifact(second, artifact_id="chunked", append=True, last_chunk=True)
            await updater.complete()
        elif begun.startswith("tck-task-failure"):
            await updater.failed(said("it failed"))
        elif begun.startswith("tck-reject-task"):
            await updater.reject(said("rejected"))
        elif begun.startswith("tck-long-running"):
            await asyncio.sleep(LONG_S)
            await updater.complete(said("done after a while"))
        elif begun.startswith("tck-cancel"):
            await asyncio.sleep(ENDLESS_S)
        elif begun.startswith("how many were cancelled"):
            await updater.complete(said(str(self.cancelled)))
        else:
            await updater.complete(said(f"You said: {text}"))

    async def cancel(self, context, event_queue):
        self.cancelled += 1
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(base, grpc_place, name):
    path, binding, version = INTERFACES[name]
    url = grpc_place if binding == "GRPC" else base + path
    interface = AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
    skill = AgentSkill(id="echo", name="Echo", description="Repeats what you say", tags=["test"])
    return AgentCard(
        name=f"Python {name}",
        description="The official Python SDK",
        version="1.3",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )


def application(base, service, grpc_place):
    """All of it, to be served at this address, and by this service of gRPC at its own."""
    cards = {name: card(base, grpc_place, name) for name in INTERFACES}
    whole = AgentCard()
    whole.CopyFrom(cards["rpc"])
    for name in list(INTERFACES)[1:]:
        whole.supported_interfaces.extend(cards[name].supported_interfaces)
    handler = DefaultRequestHandler(
        agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=whole
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), service)
    routes = create_agent_card_routes(whole)
    for name, one in cards.items():
        routes += create_agent_card_routes(one, card_url=f"/cards/{name}.json")
    routes += create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
    routes += create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True)
    return Starlette(routes=routes)


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


async def serve():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    service = grpc.aio.server()
    grpc_place = f"127.0.0.1:{service.add_insecure_port('127.0.0.1:0')}"
    config = uvicorn.Config(application(base, service, grpc_place), log_level="warning")
    await service.start()
    print(f"agent listening on {base}", flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


def main():
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(serve())


if __name__ == "__main__":
    main()
