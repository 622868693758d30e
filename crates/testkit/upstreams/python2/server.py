"""An upstream in the tests of our gateway: the official Python SDK 2.x, which speaks 2026-07-28.

usage: server.py http | server.py stdio

Over HTTP it prints where it listens, and ends when its standard input does.
"""

import os
import socket
import sys
import threading

import anyio
import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

READS = types.ToolAnnotations(read_only_hint=True)
HANG_S = 600

server = MCPServer("python2")
written_texts = []
under_way_calls = set()


class Sum(BaseModel):
    sum: int


@server.tool(annotations=READS)
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}!"


@server.tool(annotations=READS)
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool(annotations=READS)
async def count(steps: int, ctx: Context) -> str:
    """Tells its progress with each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.tool()
async def ask(ctx: Context) -> str | types.InputRequiredResult:
    """Asks a person for a name."""
    answer = (ctx.input_responses or {}).get("name")
    if answer is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
        form = types.ElicitRequest(params=params)
        return types.InputRequiredResult(input_requests={"name": form}, request_state="asked")
    assert ctx.request_state == "asked", ctx.request_state
    return f"Hello, {answer.content['name']}!" if answer.action == "accept" else f"no name: {answer.action}"


@server.tool()
def write(text: str) -> str:
    """Keeps a text."""
    written_texts.append(text)
    return f"{len(written_texts)} texts"


@server.tool(annotations=READS)
def written() -> str:
    """Says which texts were kept."""
    return ", ".join(written_texts)


@server.tool(annotations=READS)
async def hang(ctx: Context) -> str:
    """Answers after ten minutes."""
    under_way_calls.add(ctx.request_id)
    try:
        await anyio.sleep(HANG_S)
    finally:
        under_way_calls.discard(ctx.request_id)
    return "at last"


@server.tool(annotations=READS)
def under_way() -> str:
    """Says how many calls hang."""
    return str(len(under_way_calls))


@server.tool(annotations=READS)
def fail() -> str:
    """Fails by design."""
    raise ToolError("this tool fails by design")


@server.resource("note://python2/one")
def note() -> str:
    """A note."""
    return "the first note"


@server.prompt()
def say(word: str) -> str:
    """Says a word."""
    return f"Say {word}."


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


def serve_http():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    threading.Thread(target=end_with_parent, daemon=True).start()
    print(f"listening on http://127.0.0.1:{port}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    elif sys.argv[1:] == ["stdio"]:
        server.run()
    else:
        sys.exit(__doc__)
