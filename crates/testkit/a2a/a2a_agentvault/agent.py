"""A remote agent in the tests of our A2A client: AgentVault's server SDK 0.1.1.

usage: agent.py

It prints where it listens, and ends when its standard input does. Its card is at
`/cards/vault.json`. It does what the first words of a message say.
"""

import asyncio
import datetime
import logging
import os
import socket
import sys
import threading
import uuid

import pydantic
import uvicorn
from agentvault.models import Artifact, Message, Task, TaskState, TextPart
from agentvault_server_sdk import (
    AgentServerError,
    BaseA2AAgent,
    TaskNotFoundError,
    create_a2a_router,
)
from agentvault_server_sdk.fastapi_integration import (
    agent_server_error_handler,
    generic_exception_handler,
    task_not_found_handler,
    validation_exception_handler,
)
from fastapi import FastAPI

LONG_S = 3
ENDLESS_S = 3600
OVER = {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED}


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def text_of(message):
    return "".join(part.content for part in message.parts if isinstance(part, TextPart))


class Agent(BaseA2AAgent):
    """Does what the words say."""

    def __init__(self):
        super().__init__(agent_metadata={"name": "AgentVault"})
        self.tasks = {}
        self.work = {}
        self.cancelled = 0

    def found(self, task_id):
        task = self.tasks.get(task_id)
        if task is None:
            raise TaskNotFoundError(task_id=task_id)
        return task

    async def handle_task_send(self, task_id, message):
        if task_id is None:
            task_id = str(uuid.uuid4())
            submitted, at = TaskState.SUBMITTED, now()
            task = Task(id=task_id, state=submitted, createdAt=at, updatedAt=at)
            self.tasks[task_id] = task
        else:
            task = self.found(task_id)
            if task.state != TaskState.INPUT_REQUIRED:
                raise AgentServerError(f"task {task_id} waits for nothing")
        task.messages.append(message)
        self.enter(task, TaskState.WORKING)
        self.work[task_id] = asyncio.create_task(self.done(task, text_of(message)))
        return task_id

    async def handle_task_get(self, task_id):
        return self.found(task_id)

    async def handle_task_cancel(self, task_id):
        task = self.found(task_id)
        if task.state in OVER:
            return False
        self.work[task_id].cancel()
        self.cancelled += 1
        self.enter(task, TaskState.CANCELED)
        return True

    async def handle_subscribe_request(self, task_id):
        raise AgentServerError(f"task {task_id} cannot be followed")
        yield

    def enter(self, task, state, words=None):
        """Another state, with what is said about it."""
        if words is not None:
            task.messages.append(Message(role="assistant", parts=[TextPart(content=words)]))
        task.state, task.updated_at = state, now()

    async def done(self, task, text):
        begun = text_of(task.messages[0])
        is_reply = len(task.messages) > 1
        if begun.startswith("tck-input-required") and not is_reply:
            self.enter(task, TaskState.INPUT_REQUIRED, "Which colour?")
        elif begun.startswith("tck-multi-turn") and text != "done":
            self.enter(task, TaskState.INPUT_REQUIRED, f"And after {text}?")
        elif begun.startswith("tck-artifact-data"):
            content = {"key": "value", "count": 42}
            made = Artifact(id="data", type="data", content=content, mediaType="application/json")
            task.artifacts.append(made)
            self.enter(task, TaskState.COMPLETED)
        elif begun.startswith("tck-stream-chunked"):
            for number in [1, 2]:
                made = Artifact(id=f"chunk-{number}", type="text", content=f"chunk-{number}")
                task.artifacts.append(made)
            self.enter(task, TaskState.COMPLETED)
        elif begun.startswith("tck-task-failure"):
            self.enter(task, TaskState.FAILED, "it failed")
        elif begun.startswith("tck-reject-task"):
            self.enter(task, TaskState.FAILED, "rejected")
        elif begun.startswith("tck-long-running"):
            await asyncio.sleep(LONG_S)
            self.enter(task, TaskState.COMPLETED, "done after a while")
        elif begun.startswith("tck-cancel"):
            await asyncio.sleep(ENDLESS_S)
        elif begun.startswith("how many were cancelled"):
            self.enter(task, TaskState.COMPLETED, str(self.cancelled))
        else:
            self.enter(task, TaskState.COMPLETED, f"You said: {text}")


def card(base):
    return {
        "schemaVersion": "1.0",
        "humanReadableId": "tests/agentvault",
        "agentVersion": "0.1.1",
        "name": "AgentVault",
        "description": "AgentVault's server SDK",
        # The SDK answers here, and elsewhere with a redirect.
        "url": f"{base}/a2a/",
        "provider": {"name": "tests"},
        "capabilities": {"a2aVersion": "1.0"},
        "authSchemes": [{"scheme": "none"}],
        "skills": [{"id": "echo", "name": "Echo", "description": "Repeats what you say"}],
    }


def application(base):
    """All of it, to be served at this address."""
    app = FastAPI()
    app.include_router(create_a2a_router(Agent(), prefix="/a2a"))
    for error, handler in [
        (TaskNotFoundError, task_not_found_handler),
        (AgentServerError, agent_server_error_handler),
        (ValueError, validation_exception_handler),
        (TypeError, validation_exception_handler),
        (pydantic.ValidationError, validation_exception_handler),
        (Exception, generic_exception_handler),
    ]:
        app.add_exception_handler(error, handler)

    @app.get("/cards/vault.json")
    async def shown():
        return card(base)

    return app


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


def main():
    logging.disable(logging.CRITICAL)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Clients of this protocol take no other name of this machine.
    base = f"http://localhost:{listener.getsockname()[1]}"
    threading.Thread(target=end_with_parent, daemon=True).start()
    server = uvicorn.Server(uvicorn.Config(application(base), log_level="critical"))
    print(f"agent listening on {base}", flush=True)
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
