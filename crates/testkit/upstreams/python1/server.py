"""An upstream in the tests of our gateway: the official Python SDK 1.x, which speaks up to 2025-11-25.

usage: server.py http | server.py stdio

Over HTTP it prints where it listens, and ends when its standard input does.
"""

import os
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import anyio
import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(readOnlyHint=True)
HANG_S = 600

server = FastMCP("python1")
written_texts = []
# Over a pipe, several processes of one project serve as one: they count together. A process that
# was ended counts no more.
PLACE = sha256(f"{os.getcwd()} {sys.argv[1:]}".encode()).hexdigest()[:16]
UNDER_WAY = Path(tempfile.gettempdir(), f"waypost-python1-{PLACE}")


class Name(BaseModel):
    name: str


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
async def ask(ctx: Context) -> str:
    """Asks a person for a name."""
    result = await ctx.elicit("What is your name?", Name)
    return f"Hello, {result.data.name}!" if result.action == "accept" else f"no name: {result.action}"


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
    UNDER_WAY.mkdir(exist_ok=True)
    mark = UNDER_WAY / f"{os.getpid()}-{ctx.request_id}"
    mark.touch()
    try:
        await anyio.sleep(HANG_S)
    finally:
        mark.unlink()
        with suppress(OSError):
            UNDER_WAY.rmdir()
    return "at last"


@server.tool(annotations=READS)
def under_way() -> str:
    """Says how many calls hang."""
    marks = UNDER_WAY.iterdir() if UNDER_WAY.is_dir() else []
    return str(sum(1 for mark in marks if Path("/proc", mark.name.split("-")[0]).is_dir()))


@server.tool(annotations=READS)
def fail() -> str:
    """Fails by design."""
    raise ValueError("this tool fails by design")


@server.resource("note://python1/one")
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
