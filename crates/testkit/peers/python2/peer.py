"""A peer in the tests of our MCP server: the official Python SDK 2.x, which speaks 2026-07-28.

usage: peer.py --url URL | peer.py --stdio COMMAND [ARG ..]

Prints one line per check and ends with 1 when one failed.
"""

import sys
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientExtension, ResultClaim
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

DEADLINE_S = 1500
CHECK_DEADLINE_S = 240
# A call that nobody cancels takes longer than a cancelled one may.
SLOW_S = 100
CANCEL_DEADLINE_S = 80
VERSION = "2026-07-28"
INVALID_PARAMS = -32602
TASKS = "io.modelcontextprotocol/tasks"

# What a person would fill in, by the name of the field.
FORM = {
    "username": "testuser",
    "email": "test@example.com",
    "name": "Alice",
    "confirm": True,
    "context": "the tests",
}


def filled(schema):
    """The form of this schema, filled in."""
    return {name: FORM[name] for name in schema["properties"]}


class Answers:
    """What the client's side answers, and what it heard."""

    def __init__(self):
        self.action = "accept"
        self.log = []

    async def elicit(self, context, params):
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        return types.ElicitResult(action="accept", content=filled(params.requested_schema))

    async def sample(self, context, params):
        text = types.TextContent(type="text", text="said by the model")
        return types.CreateMessageResult(role="assistant", content=text, model="test-model")

    async def list_roots(self, context):
        root = types.Root(uri="file:///test/root", name="Test Root")
        return types.ListRootsResult(roots=[root])

    async def hear(self, params):
        self.log.append(params.data)


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class UpdateTask(types.Request[TaskParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: TaskParams
    name_param = "taskId"


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams
    name_param = "taskId"


class CreatedTask(types.Result):
    result_type: Literal["task"]
    task_id: str
    status: str


class TaskState(types.Result):
    result_type: Literal["complete"]
    task_id: str
    status: str
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class Acknowledged(types.Result):
    result_type: Literal["complete"]


async def task_at(session, task_id, *statuses):
    """The task, once it has one of these statuses."""
    while True:
        request = GetTask(params=TaskParams(task_id=task_id))
        state = await session.send_request(request, TaskState)
        if state.status in statuses:
            return state
        await anyio.sleep(0.05)


class Tasks(ClientExtension):
    """The tasks extension: waits for a task, answers what it asks, gives its result."""

    identifier = TASKS

    def __init__(self):
        self.seen = []

    def claims(self):
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.resolve)]

    async def resolve(self, created, context):
        self.seen.append(created.task_id)
        ends = ("completed", "failed", "cancelled")
        state = await task_at(context.session, created.task_id, "input_required", *ends)
        while state.status == "input_required":
            responses = {
                key: {"action": "accept", "content": filled(ask["params"]["requestedSchema"])}
                for key, ask in state.input_requests.items()
            }
            params = TaskParams(task_id=created.task_id, input_responses=responses)
            await context.session.send_request(UpdateTask(params=params), Acknowledged)
            await anyio.sleep(0.05)
            state = await task_at(context.session, created.task_id, "input_required", *ends)
        assert state.status == "completed", state
        return types.CallToolResult.model_validate(state.result)


def text_of(result):
    return result.content[0].text


async def all_of(list_page, items):
    """Every page of a list."""
    found, cursor = [], None
    while True:
        page = await list_page(cursor=cursor)
        found += getattr(page, items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def refused(code, call):
    """The call must be answered with this error."""
    try:
        await call
    except MCPError as error:
        assert error.code == code, error
        return
    raise AssertionError(f"not refused with {code}")


async def lists(client, answers):
    tools = [tool.name for tool in await all_of(client.list_tools, "tools")]
    assert {"test_simple_text", "slow_compute", "confirm_delete"} <= set(tools), tools
    prompts = [prompt.name for prompt in await all_of(client.list_prompts, "prompts")]
    assert "test_simple_prompt" in prompts, prompts
    resources = [item.uri for item in await all_of(client.list_resources, "resources")]
    assert "test://static-text" in resources, resources
    templates = await all_of(client.list_resource_templates, "resource_templates")
    assert "test://template/{id}/data" in [item.uri_template for item in templates], templates


async def calls(client, answers):
    result = await client.call_tool("test_simple_text", {})
    assert text_of(result) == "This is a simple text response for testing.", result
    result = await client.call_tool("test_multiple_content_types", {})
    assert [block.type for block in result.content] == ["text", "image", "resource"], result


async def header_parameter(client, answers):
    # The SDK repeats the argument in a header; one that is no plain text goes there encoded.
    for region in ("eu-west", "Zürich", " spaced "):
        result = await client.call_tool("test_header_parameter", {"region": region})
        assert text_of(result) == f"region: {region}", result


async def errors(client, answers):
    result = await client.call_tool("test_error_handling", {})
    assert result.is_error and "intentionally" in text_of(result), result
    result = await client.call_tool("greet", {"name": 5})
    assert result.is_error and "name" in text_of(result), result
    await refused(INVALID_PARAMS, client.call_tool("no_such_tool", {}))


async def structured(client, answers):
    # The SDK itself holds the content against the schema.
    result = await client.call_tool("test_structured_content", {"a": 1, "b": 2})
    assert result.structured_content == {"sum": 3}, result
    result = await client.call_tool("test_bare_value", {"a": 1, "b": 2})
    assert result.structured_content == 3, result


async def resources(client, answers):
    result = await client.read_resource("test://static-text")
    assert result.contents[0].text.startswith("This is the content"), result
    result = await client.read_resource("test://template/7/data")
    assert '"id":"7"' in result.contents[0].text, result
    await refused(INVALID_PARAMS, client.read_resource("test://nothing-here"))


async def prompts(client, answers):
    result = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    assert "arg1='one', arg2='two'" in result.messages[0].content.text, result
    result = await client.get_prompt("test_input_required_result_prompt")
    assert result.messages[0].content.text.startswith("Use this context"), result
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await client.complete(reference, {"name": "arg1", "value": "par"})
    assert result.completion.values == ["paris", "park", "party"], result


async def progress(client, answers):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=hear)
    # The SDK may hand on what it heard after the answer.
    while len(heard) < 3:
        await anyio.sleep(0.02)
    assert heard == [(0, 100), (50, 100), (100, 100)], heard


async def logging(client, answers):
    await client.call_tool("test_logging_tool", {})
    while len(answers.log) < 3:
        await anyio.sleep(0.02)
    meta = {types.LOG_LEVEL_META_KEY: "error"}
    await client.call_tool("test_logging_tool", {}, meta=meta)
    assert len(answers.log) == 3, answers.log


async def elicitation(client, answers):
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "accept" in text_of(result) and "testuser" in text_of(result), result
    answers.action = "decline"
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    answers.action = "accept"
    assert "decline" in text_of(result), result


async def several_inputs(client, answers):
    result = await client.call_tool("test_input_required_result_multiple_inputs", {})
    assert text_of(result) == "said by the model Alice works in 1 folders.", result
    result = await client.call_tool("test_sampling", {"prompt": "Say it"})
    assert text_of(result) == "LLM response: said by the model", result


async def plan_that_asks(client, answers):
    result = await client.call_tool("confirm_delete", {"filename": "peer.txt"})
    assert text_of(result) == "Deleted peer.txt.", result
    answers.action = "decline"
    result = await client.call_tool("confirm_delete", {"filename": "peer.txt"})
    answers.action = "accept"
    assert text_of(result) == "Kept peer.txt.", result


async def until(events, wanted):
    async for event in events:
        if event == wanted:
            return
    raise AssertionError(f"the stream ended before {wanted}")


async def changes(client, answers):
    async with client.listen(
        tools_list_changed=True, resource_subscriptions=["test://watched-resource"]
    ) as events:
        await client.call_tool("test_trigger_tool_change", {})
        await until(events, ToolsListChanged())
        await client.call_tool("test_touch_resource", {})
        await until(events, ResourceUpdated("test://watched-resource"))


async def cancel(client, answers):
    async def under_way():
        result = await client.call_tool("calls_under_way", {})
        return result.structured_content["count"]

    before = await under_way()
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "slow_compute", {"seconds": SLOW_S})
        while await under_way() == before:
            await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    with anyio.fail_after(CANCEL_DEADLINE_S):
        while await under_way() > before:
            await anyio.sleep(0.02)
    assert text_of(await client.call_tool("greet", {"name": "again"})) == "Hello, again!"


async def task(client, tasks):
    result = await client.call_tool("slow_compute", {"seconds": 1.5, "label": "peer"})
    assert text_of(result) == "Computed peer for 1.5 s.", result
    assert len(tasks.seen) == 1, tasks.seen


async def task_that_asks(client, tasks):
    result = await client.call_tool("confirm_delete", {"filename": "peer.txt"})
    assert text_of(result) == "Deleted peer.txt.", result
    result = await client.call_tool("multi_input", {})
    assert text_of(result) == "Alice before Alice.", result


async def task_that_fails(client, tasks):
    result = await client.call_tool("failing_job", {})
    assert result.is_error and "fails by design" in text_of(result), result


async def task_is_cancelled(client, tasks):
    session = client.session
    created = await session.call_tool("slow_compute", {"seconds": SLOW_S}, allow_claimed=True)
    assert isinstance(created, CreatedTask), created
    params = TaskParams(task_id=created.task_id)
    await session.send_request(CancelTask(params=params), Acknowledged)
    await task_at(session, created.task_id, "cancelled")


CHECKS = [
    lists,
    calls,
    header_parameter,
    errors,
    structured,
    resources,
    prompts,
    progress,
    logging,
    elicitation,
    several_inputs,
    plan_that_asks,
    changes,
    cancel,
]
# With a client that takes tasks: to others the same calls are answered at their end.
TASK_CHECKS = [task, task_that_asks, task_that_fails, task_is_cancelled]


async def checked(checks, client, what):
    failed = 0
    for check in checks:
        try:
            with anyio.fail_after(CHECK_DEADLINE_S):
                await check(client, what)
            print(f"ok {check.__name__}")
        except Exception as error:
            failed += 1
            print(f"FAILED {check.__name__}: {error!r}")
    return failed


def target(words):
    if words[0] == "--url":
        return words[1]
    return StdioServerParameters(command=words[1], args=words[2:])


async def run(words):
    answers, tasks = Answers(), Tasks()
    client = Client(
        target(words),
        sampling_callback=answers.sample,
        elicitation_callback=answers.elicit,
        list_roots_callback=answers.list_roots,
        logging_callback=answers.hear,
        log_level="info",
    )
    async with client:
        assert client.protocol_version == VERSION, client.protocol_version
        assert client.server_info.name == "waypost", client.server_info
        print("ok discovery")
        failed = await checked(CHECKS, client, answers)
    client = Client(target(words), elicitation_callback=answers.elicit, extensions=[tasks])
    async with client:
        assert TASKS in (client.server_capabilities.extensions or {}), client.server_capabilities
        failed += await checked(TASK_CHECKS, client, tasks)
    return failed


async def main(words):
    with anyio.fail_after(DEADLINE_S):
        return await run(words)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in ("--url", "--stdio"):
        sys.exit(__doc__)
    sys.exit(1 if anyio.run(main, arguments) else 0)
