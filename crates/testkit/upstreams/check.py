"""A client in the tests of our gateway: the official Python SDK 2.x, in the era that it is told.

usage: check.py legacy|modern URL FOLDER NAME[=ADDRESS]..

Every NAME is an upstream of the server at URL that has the tools of this folder's servers, and
ADDRESS is where it can be called directly; `files` is the one that serves the files of FOLDER.
Prints one line per check and ends with 1 when one failed.
"""

import re
import sys
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client, MCPError

DEADLINE_S = 1500
# On a busy machine a check may take many times as long as alone, where each takes a few seconds.
CHECK_DEADLINE_S = 600
FACT_DEADLINE_S = 180
LIST_DEADLINE_S = 240
PAUSE_S = 0.1
VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
MODES = {"legacy": "legacy", "modern": "auto"}
# Servers of both eras whose tool asks in one way only: in the result, which a client with a
# handshake cannot take. They are spoken to as their caller would, so it is refused as without us.
ASK_IN_RESULTS = ["python2", "python2_pipe", "fastmcp"]
# Where upstreams can be called directly, by name. One over a pipe is the same program as the one
# over HTTP.
ADDRESSES = {}


class Answers:
    """What the client's side answers."""

    def __init__(self):
        self.action = "accept"

    async def elicit(self, context, params):
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        assert list(params.requested_schema["properties"]) == ["name"], params
        return types.ElicitResult(action="accept", content={"name": "Alice"})


def text_of(result):
    return result.content[0].text


def connected(era, url, answers):
    return Client(url, mode=MODES[era], elicitation_callback=answers.elicit, cache=None)


async def refusal(client, tool):
    """The code of the error that a call is refused with, and what its message says first."""
    try:
        result = await client.call_tool(tool, {})
    except MCPError as error:
        return error.error.code, error.error.message.split(":")[0]
    raise AssertionError(f"not refused: {result}")


async def all_of(list_page, items):
    """Every page of a list."""
    found, cursor = [], None
    while True:
        page = await list_page(cursor=cursor)
        found += getattr(page, items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def tool_names(client):
    return {tool.name for tool in await all_of(client.list_tools, "tools")}


async def lists(client, name, answers):
    tools = {tool.name: tool for tool in await all_of(client.list_tools, "tools")}
    wanted = ["greet", "add", "count", "ask", "write", "written", "hang", "under_way", "fail"]
    missing = [tool for tool in wanted if f"{name}.{tool}" not in tools]
    assert not missing, missing
    schema = tools[f"{name}.add"].input_schema
    assert {"a", "b"} <= set(schema["properties"]), schema
    assert tools[f"{name}.add"].output_schema["properties"]["sum"], tools[f"{name}.add"]


async def calls(client, name, answers):
    result = await client.call_tool(f"{name}.greet", {"name": "Ada"})
    assert text_of(result) == "Hello, Ada!" and not result.is_error, result
    result = await client.call_tool(f"{name}.add", {"a": 2, "b": 3})
    assert result.structured_content == {"sum": 5}, result


async def errors(client, name, answers):
    result = await client.call_tool(f"{name}.fail", {})
    assert result.is_error and "by design" in text_of(result), result
    result = await client.call_tool(f"{name}.add", {"a": "two", "b": 3})
    assert result.is_error and "a" in text_of(result), result
    try:
        result = await client.call_tool(f"{name}.no_such_tool", {})
    except MCPError as error:
        assert error.error.code == -32602, error
        return
    raise AssertionError(f"not refused: {result}")


async def progress(client, name, answers):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    result = await client.call_tool(f"{name}.count", {"steps": 3}, progress_callback=hear)
    assert text_of(result) == "counted to 3", result
    assert heard and heard[-1] == (3, 3) and heard == sorted(heard), heard


async def asked(client, name):
    """The SDK 1.x of TypeScript (`send` in `webStandardStreamableHttp.js`) asks on the stream that is
    opened with GET, and drops a question while there is no such stream; its tool then hangs until the
    call times out. Waypost opens the stream before the first call of a session, but the stream may be
    lost later, or the machine may be so busy that it is not answered within the two seconds that a
    call waits for it. Such a call is made once more, and that is printed."""
    result = await client.call_tool(f"{name}.ask", {})
    late = result.is_error and re.search("time(d )?out", text_of(result), re.IGNORECASE)
    if late and name.startswith("ts_legacy"):
        print(f"again {name}: a question was not heard")
        result = await client.call_tool(f"{name}.ask", {})
    return result


async def elicitation(client, name, answers):
    if client.protocol_version == VERSIONS["legacy"] and name in ASK_IN_RESULTS:
        async with connected("legacy", ADDRESSES[name.removesuffix("_pipe")], answers) as direct:
            expected = await refusal(direct, "ask")
        refused = await refusal(client, f"{name}.ask")
        assert refused == expected, (refused, expected)
        return
    result = await asked(client, name)
    assert text_of(result) == "Hello, Alice!", result
    answers.action = "decline"
    result = await asked(client, name)
    answers.action = "accept"
    assert text_of(result) == "no name: decline", result


async def write(client, name, answers):
    text = f"{client.protocol_version} was here"
    result = await client.call_tool(f"{name}.write", {"text": text})
    assert "texts" in text_of(result), result
    result = await client.call_tool(f"{name}.written", {})
    assert text_of(result).count(text) == 1, result


async def comes_true(what, holds):
    """Waits for a fact; in vain only for so long, and then says for which."""
    with anyio.move_on_after(FACT_DEADLINE_S):
        while not await holds():
            await anyio.sleep(PAUSE_S)
        return
    raise AssertionError(f"waited {FACT_DEADLINE_S} s in vain until {what}")


async def cancel(client, name, answers):
    async def under_way():
        return int(text_of(await client.call_tool(f"{name}.under_way", {})))

    async def hangs():
        return await under_way() > 0

    async def hangs_no_more():
        return await under_way() == 0

    async def hang():
        result = await client.call_tool(f"{name}.hang", {})
        raise AssertionError(f"it ended before it was cancelled: {result}")

    # Over a pipe the first call of a tool that finds others under way may get a process of its own.
    # The calls below must look into the process of the call that hangs, so none of them is a first.
    await comes_true("no call hangs that was cancelled before", hangs_no_more)
    async with anyio.create_task_group() as group:
        group.start_soon(hang)
        await comes_true("the call hangs", hangs)
        group.cancel_scope.cancel()
    await comes_true("the cancelled call hangs no more", hangs_no_more)


async def resource(client, name, answers):
    uris = [str(item.uri) for item in await all_of(client.list_resources, "resources")]
    uri = f"note://{name.removesuffix('_pipe')}/one"
    assert uri in uris, uris
    result = await client.read_resource(uri)
    assert result.contents[0].text == "the first note", result


async def prompt(client, name, answers):
    names = [item.name for item in await all_of(client.list_prompts, "prompts")]
    assert f"{name}.say" in names, names
    result = await client.get_prompt(f"{name}.say", {"word": "yes"})
    assert result.messages[0].content.text == "Say yes.", result


async def files(client, folder):
    """The npm filesystem server: what it writes is on the disk, and what it reads comes from there."""
    path = Path(folder) / f"{client.protocol_version}.txt"
    result = await client.call_tool("files.write_file", {"path": str(path), "content": "kept"})
    assert not result.is_error, result
    assert path.read_text() == "kept"
    result = await client.call_tool("files.read_text_file", {"path": str(path)})
    assert text_of(result) == "kept", result
    result = await client.call_tool("files.list_directory", {"path": str(folder)})
    assert path.name in text_of(result), result
    result = await client.call_tool("files.read_text_file", {"path": "/etc/hostname"})
    assert result.is_error and "denied" in text_of(result), result


async def own(client):
    result = await client.call_tool("math__add", {"a": 2, "b": 3})
    assert text_of(result) == "5", result


# The same for upstreams over a pipe, of which every call is a run: nobody should notice.
CHECKS = [lists, calls, errors, progress, elicitation, write, cancel, resource, prompt]


async def passes(what, check):
    try:
        with anyio.fail_after(CHECK_DEADLINE_S):
            await check
        print(f"ok {what}")
        return True
    except Exception as error:
        print(f"FAILED {what}: {error!r}")
        return False


async def everybody_is_listed(client, names):
    """Upstreams connect in the background; a list does not wait for them."""
    wanted = {f"{name}.greet" for name in names} | {"files.write_file"}
    with anyio.fail_after(LIST_DEADLINE_S):
        while not wanted <= await tool_names(client):
            await anyio.sleep(PAUSE_S)


async def run(era, url, folder, names):
    answers = Answers()
    async with connected(era, url, answers) as client:
        assert client.protocol_version == VERSIONS[era], client.protocol_version
        await everybody_is_listed(client, names)
        print("ok everybody is listed")
        good = [await passes("our own tool", own(client)), await passes("files", files(client, folder))]
        for name in names:
            for check in CHECKS:
                good.append(await passes(f"{name}: {check.__name__}", check(client, name, answers)))
    return all(good)


async def main(words):
    era, url, folder, *upstreams = words
    ADDRESSES.update(upstream.split("=", 1) for upstream in upstreams if "=" in upstream)
    with anyio.fail_after(DEADLINE_S):
        return await run(era, url, folder, [upstream.split("=")[0] for upstream in upstreams])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) < 4 or arguments[0] not in MODES:
        sys.exit(__doc__)
    sys.exit(0 if anyio.run(main, arguments) else 1)
