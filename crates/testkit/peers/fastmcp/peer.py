"""A peer in the tests of our MCP server: the client of FastMCP 4, in both eras one after the other.

usage: peer.py --url URL | peer.py --stdio COMMAND [ARG ..]

Prints one line per check and ends with 1 when one failed.
"""

import sys

import anyio
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from mcp import MCPError

DEADLINE_S = 1500
CHECK_DEADLINE_S = 240
VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
INVALID_PARAMS = -32602

# What a person would fill in, by the name of the field.
FORM = {"username": "testuser", "email": "test@example.com", "name": "Alice", "confirm": True}


class Answers:
    """What the client's side answers."""

    def __init__(self):
        self.action = "accept"

    async def elicit(self, message, response_type, params, context):
        if self.action != "accept":
            return ElicitResult(action=self.action)
        fields = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: FORM[name] for name in fields})

    async def sample(self, messages, params, context):
        return "said by the model"


def text_of(result):
    return result.content[0].text


async def lists(client, answers):
    tools = {tool.name for tool in await client.list_tools()}
    assert {"test_simple_text", "slow_compute", "confirm_delete"} <= tools, tools
    prompts = {prompt.name for prompt in await client.list_prompts()}
    assert "test_simple_prompt" in prompts, prompts
    resources = {str(item.uri) for item in await client.list_resources()}
    assert "test://static-text" in resources, resources


async def calls(client, answers):
    result = await client.call_tool("test_simple_text", {})
    assert text_of(result) == "This is a simple text response for testing.", result
    result = await client.call_tool("test_multiple_content_types", {})
    assert [block.type for block in result.content] == ["text", "image", "resource"], result


async def errors(client, answers):
    result = await client.call_tool("test_error_handling", {}, raise_on_error=False)
    assert result.is_error and "intentionally" in text_of(result), result
    try:
        await client.call_tool("no_such_tool", {})
    except MCPError as error:
        assert error.code == INVALID_PARAMS, error
        return
    raise AssertionError("an unknown tool is not refused")


async def structured(client, answers):
    result = await client.call_tool("test_structured_content", {"a": 1, "b": 2})
    assert result.structured_content == {"sum": 3}, result


async def resources(client, answers):
    contents = await client.read_resource("test://static-text")
    assert contents[0].text.startswith("This is the content"), contents


async def prompts(client, answers):
    words = {"arg1": "one", "arg2": "two"}
    result = await client.get_prompt("test_prompt_with_arguments", words)
    assert "arg1='one', arg2='two'" in result.messages[0].content.text, result


async def progress(client, answers):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    await client.call_tool("test_tool_with_progress", {}, progress_handler=hear)
    # The client may hand on what it heard after the answer.
    while len(heard) < 3:
        await anyio.sleep(0.02)
    assert heard == [(0, 100), (50, 100), (100, 100)], heard


async def elicitation(client, answers):
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "accept" in text_of(result) and "testuser" in text_of(result), result
    answers.action = "decline"
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    answers.action = "accept"
    assert "decline" in text_of(result), result


async def sampling(client, answers):
    result = await client.call_tool("test_sampling", {"prompt": "Say it"})
    assert text_of(result) == "LLM response: said by the model", result


async def plan_that_asks(client, answers):
    result = await client.call_tool("confirm_delete", {"filename": "peer.txt"})
    assert text_of(result) == "Deleted peer.txt.", result


CHECKS = [
    lists,
    calls,
    errors,
    structured,
    resources,
    prompts,
    progress,
    elicitation,
    sampling,
    plan_that_asks,
]


def target(words):
    if words[0] == "--url":
        return words[1]
    return StdioTransport(command=words[1], args=words[2:], keep_alive=False)


async def run(words):
    answers, failed = Answers(), 0
    for mode, version in VERSIONS.items():
        client = Client(
            target(words),
            mode=mode,
            elicitation_handler=answers.elicit,
            sampling_handler=answers.sample,
        )
        async with client:
            assert client.protocol_version == version, client.protocol_version
            print(f"ok {version}: hello")
            for check in CHECKS:
                what = f"{version}: {check.__name__}"
                try:
                    with anyio.fail_after(CHECK_DEADLINE_S):
                        await check(client, answers)
                    print(f"ok {what}")
                except Exception as error:
                    failed += 1
                    print(f"FAILED {what}: {error!r}")
    return failed


async def main(words):
    with anyio.fail_after(DEADLINE_S):
        return await run(words)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in ("--url", "--stdio"):
        sys.exit(__doc__)
    sys.exit(1 if anyio.run(main, arguments) else 0)
