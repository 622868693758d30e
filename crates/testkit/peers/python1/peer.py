"""A peer in the tests of our MCP server: the official Python SDK 1.x, which speaks up to 2025-11-25.

usage: peer.py --url URL | peer.py --stdio COMMAND [ARG ..]

Prints one line per check and ends with 1 when one failed.
"""

import sys
from contextlib import AsyncExitStack

import anyio
import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

DEADLINE_S = 1500
CHECK_DEADLINE_S = 240
# A call that nobody cancels takes longer than a cancelled one may.
SLOW_S = 100
CANCEL_DEADLINE_S = 80
VERSION = "2025-11-25"
INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002

# What a person would fill in, by the name of the field.
FORM = {"username": "testuser", "email": "test@example.com", "name": "Alice", "confirm": True}


class Answers:
    """What the client's side answers, and what it heard."""

    def __init__(self):
        self.action = "accept"
        self.log = []

    async def elicit(self, context, params):
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        fields = params.requestedSchema["properties"]
        return types.ElicitResult(action="accept", content={name: FORM[name] for name in fields})

    async def sample(self, context, params):
        text = types.TextContent(type="text", text="said by the model")
        return types.CreateMessageResult(role="assistant", content=text, model="test-model")

    async def list_roots(self, context):
        root = types.Root(uri="file:///test/root", name="Test Root")
        return types.ListRootsResult(roots=[root])

    async def hear(self, params):
        self.log.append(params.data)


def text_of(result):
    return result.content[0].text


async def all_of(list_page, items):
    """Every page of a list."""
    found, cursor = [], None
    while True:
        page = await list_page(params=types.PaginatedRequestParams(cursor=cursor))
        found += getattr(page, items)
        cursor = page.nextCursor
        if cursor is None:
            return found


async def refused(code, call):
    """The call must be answered with this error."""
    try:
        await call
    except McpError as error:
        assert error.error.code == code, error.error
        return
    raise AssertionError(f"not refused with {code}")


async def lists(session, answers):
    tools = {tool.name: tool for tool in await all_of(session.list_tools, "tools")}
    assert {"test_simple_text", "slow_compute", "confirm_delete"} <= set(tools), sorted(tools)
    # Before 2026-07-28 an output schema describes an object.
    schemas = [tool.outputSchema for tool in tools.values() if tool.outputSchema]
    assert schemas and all(schema["type"] == "object" for schema in schemas), schemas
    prompts = [prompt.name for prompt in await all_of(session.list_prompts, "prompts")]
    assert "test_simple_prompt" in prompts, prompts
    resources = [str(item.uri) for item in await all_of(session.list_resources, "resources")]
    assert "test://static-text" in resources, resources
    templates = await all_of(session.list_resource_templates, "resourceTemplates")
    assert "test://template/{id}/data" in [item.uriTemplate for item in templates], templates


async def calls(session, answers):
    result = await session.call_tool("test_simple_text", {})
    assert text_of(result) == "This is a simple text response for testing.", result
    result = await session.call_tool("test_multiple_content_types", {})
    assert [block.type for block in result.content] == ["text", "image", "resource"], result


async def errors(session, answers):
    result = await session.call_tool("test_error_handling", {})
    assert result.isError and "intentionally" in text_of(result), result
    result = await session.call_tool("greet", {"name": 5})
    assert result.isError and "name" in text_of(result), result
    await refused(INVALID_PARAMS, session.call_tool("no_such_tool", {}))


async def structured(session, answers):
    # The SDK itself holds the content against the schema.
    result = await session.call_tool("test_structured_content", {"a": 1, "b": 2})
    assert result.structuredContent == {"sum": 3}, result
    result = await session.call_tool("test_bare_value", {"a": 1, "b": 2})
    assert result.structuredContent == {"result": 3}, result


async def resources(session, answers):
    result = await session.read_resource(AnyUrl("test://static-text"))
    assert result.contents[0].text.startswith("This is the content"), result
    result = await session.read_resource(AnyUrl("test://template/7/data"))
    assert '"id":"7"' in result.contents[0].text, result
    await refused(RESOURCE_NOT_FOUND, session.read_resource(AnyUrl("test://nothing-here")))


async def prompts(session, answers):
    result = await session.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    assert "arg1='one', arg2='two'" in result.messages[0].content.text, result
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await session.complete(reference, {"name": "arg1", "value": "par"})
    assert result.completion.values == ["paris", "park", "party"], result


async def progress(session, answers):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    await session.call_tool("test_tool_with_progress", {}, progress_callback=hear)
    assert heard == [(0, 100), (50, 100), (100, 100)], heard


async def logging(session, answers):
    await session.set_logging_level("info")
    await session.call_tool("test_tool_with_logging", {})
    assert len(answers.log) == 3, answers.log
    await session.set_logging_level("error")
    await session.call_tool("test_tool_with_logging", {})
    assert len(answers.log) == 3, answers.log


async def elicitation(session, answers):
    result = await session.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "accept" in text_of(result) and "testuser" in text_of(result), result
    answers.action = "decline"
    result = await session.call_tool("test_elicitation", {"message": "Who are you?"})
    answers.action = "accept"
    assert "decline" in text_of(result), result


async def several_inputs(session, answers):
    result = await session.call_tool("test_input_required_result_multiple_inputs", {})
    assert text_of(result) == "said by the model Alice works in 1 folders.", result
    result = await session.call_tool("test_sampling", {"prompt": "Say it"})
    assert text_of(result) == "LLM response: said by the model", result


async def plan_that_asks(session, answers):
    result = await session.call_tool("confirm_delete", {"filename": "peer.txt"})
    assert text_of(result) == "Deleted peer.txt.", result
    answers.action = "decline"
    result = await session.call_tool("confirm_delete", {"filename": "peer.txt"})
    answers.action = "accept"
    assert text_of(result) == "Kept peer.txt.", result


async def cancel(session, answers):
    async def under_way():
        result = await session.call_tool("calls_under_way", {})
        return result.structuredContent["count"]

    before = await under_way()
    sent = []

    async def slow():
        # The SDK tells nobody which id a request has; it is the next one.
        sent.append(session._request_id)
        try:
            await session.call_tool("slow_compute", {"seconds": SLOW_S})
        except McpError:
            pass

    async with anyio.create_task_group() as group:
        group.start_soon(slow)
        while not sent or await under_way() == before:
            await anyio.sleep(0.02)
        params = types.CancelledNotificationParams(requestId=sent[0], reason="no longer needed")
        notification = types.CancelledNotification(params=params)
        await session.send_notification(types.ClientNotification(notification))
        with anyio.fail_after(CANCEL_DEADLINE_S):
            while await under_way() > before:
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    assert text_of(await session.call_tool("greet", {"name": "again"})) == "Hello, again!"


CHECKS = [
    lists,
    calls,
    errors,
    structured,
    resources,
    prompts,
    progress,
    logging,
    elicitation,
    several_inputs,
    plan_that_asks,
    cancel,
]


async def run(words):
    answers, failed = Answers(), 0
    async with AsyncExitStack() as stack:
        if words[0] == "--url":
            streams = await stack.enter_async_context(streamable_http_client(words[1]))
        else:
            server = StdioServerParameters(command=words[1], args=words[2:])
            streams = await stack.enter_async_context(stdio_client(server))
        session = ClientSession(
            streams[0],
            streams[1],
            sampling_callback=answers.sample,
            elicitation_callback=answers.elicit,
            list_roots_callback=answers.list_roots,
            logging_callback=answers.hear,
        )
        session = await stack.enter_async_context(session)
        hello = await session.initialize()
        assert hello.protocolVersion == VERSION, hello
        assert hello.serverInfo.name == "waypost", hello
        print("ok handshake")
        for check in CHECKS:
            try:
                with anyio.fail_after(CHECK_DEADLINE_S):
                    await check(session, answers)
                print(f"ok {check.__name__}")
            except Exception as error:
                failed += 1
                print(f"FAILED {check.__name__}: {error!r}")
    return failed


async def main(words):
    with anyio.fail_after(DEADLINE_S):
        return await run(words)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in ("--url", "--stdio"):
        sys.exit(__doc__)
    sys.exit(1 if anyio.run(main, arguments) else 0)
