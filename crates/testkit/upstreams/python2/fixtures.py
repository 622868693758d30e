"""An upstream in the tests of our gateway: what the official conformance suite wants a server to have.

Made with the official Python SDK 2.x.

usage: fixtures.py both | fixtures.py handshake

`both` serves 2026-07-28 and the versions with a handshake at one address, `handshake` only the latter.
Prints where it listens, and ends when its standard input does.
"""

import base64
import json
import os
import socket
import sys
import threading
from functools import partial
from typing import Annotated

import anyio
import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import UserMessage
from pydantic import Field
from starlette.responses import JSONResponse

PAUSE_S = 0.05
MODERN = b"2026-07-28"
MISSING_CAPABILITY = -32021
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer("python_fixtures")
# What a tool says is its content and nothing else.
tool = partial(server.tool, structured_output=False)
# How often each list was changed. It is a part of the list, so each change is one.
changed = {"tools": 0, "prompts": 0}


def text(words):
    return types.TextContent(type="text", text=words)


def image():
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri, mime_type, words):
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=contents)


def blocks(*content):
    return types.CallToolResult(content=list(content))


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


STRING = {"type": "string"}
NAME = schema(name=STRING)


@tool()
def test_simple_text() -> str:
    """Answers a text."""
    return "This is a simple text response for testing."


@tool()
def test_image_content() -> types.CallToolResult:
    """Answers a picture."""
    return blocks(image())


@tool()
def test_audio_content() -> types.CallToolResult:
    """Answers a sound."""
    return blocks(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav"))


@tool()
def test_embedded_resource() -> types.CallToolResult:
    """Answers a resource inside its content."""
    words = "This is an embedded resource content."
    return blocks(embedded("test://embedded-resource", "text/plain", words))


@tool()
def test_multiple_content_types() -> types.CallToolResult:
    """Answers a text, a picture and a resource."""
    words = '{"test":"data","value":123}'
    mixed = embedded("test://mixed-content-resource", "application/json", words)
    return blocks(text("Multiple content types test:"), image(), mixed)


@tool()
def test_error_handling() -> str:
    """Fails, always."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Tells its progress."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"{progress} of 100")
        await anyio.sleep(PAUSE_S)
    return "Progress was told three times."


async def write_lines(ctx):
    for line in ("started", "at work", "done"):
        await ctx.log("info", f"Tool execution: {line}")
        await anyio.sleep(PAUSE_S)
    return "Three lines were logged."


@tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Writes three lines to the log of its client."""
    return await write_lines(ctx)


@tool()
async def test_logging_tool(ctx: Context) -> str:
    """Writes three lines to the log of its client."""
    return await write_lines(ctx)


@tool()
def test_header_parameter(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Takes an argument that stands in a header too."""
    return f"region: {region}"


# What only a client with a handshake can be asked, in the middle of a call.


@tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Hands a prompt to the model of its caller."""
    answer = await ctx.session.create_message(
        messages=[types.SamplingMessage(role="user", content=text(prompt))],
        max_tokens=100,
        related_request_id=ctx.request_context.request_id,
    )
    return f"LLM response: {answer.content.text}"


async def elicited(ctx, message, form):
    request_id = ctx.request_context.request_id
    answer = await ctx.session.elicit_form(message, form, related_request_id=request_id)
    return f"Answered: action={answer.action}, content={json.dumps(answer.content or {})}"


@tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks a person."""
    # The suite's answer does not fit this form; whether that matters is for this server to say.
    return await elicited(ctx, message, schema(response=STRING))


@tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default in each field."""
    form = schema(
        name={**STRING, "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await elicited(ctx, "Please fill in the form", {**form, "required": []})


def titled(word):
    names = ("First", "Second", "Third")
    return [{"const": f"value{at}", "title": f"{name} {word}"} for at, name in enumerate(names, 1)]


@tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with each kind of choice."""
    options = {**STRING, "enum": ["option1", "option2", "option3"]}
    names = ["Option One", "Option Two", "Option Three"]
    form = schema(
        untitledSingle=options,
        titledSingle={**STRING, "oneOf": titled("Option")},
        legacyEnum={**STRING, "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": options},
        titledMulti={"type": "array", "items": {"anyOf": titled("Choice")}},
    )
    return await elicited(ctx, "Please fill in the form", {**form, "required": []})


# What a stateless client answers with its next call.


def wants(state=None, **requests):
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def form(message, requested_schema):
    params = types.ElicitRequestFormParams(message=message, requested_schema=requested_schema)
    return types.ElicitRequest(params=params)


def turn(prompt, max_tokens):
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    params = types.CreateMessageRequestParams(messages=messages, max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


def given(ctx, key):
    return (ctx.input_responses or {}).get(key)


def filled(ctx, key, name):
    """What the client filled in, if it is a text."""
    answer = given(ctx, key)
    value = (getattr(answer, "content", None) or {}).get(name) if answer else None
    return value if isinstance(value, str) else None


def greet(ctx):
    name = filled(ctx, "user_name", "name")
    return f"Hello, {name}!" if name else wants(user_name=form("What is your name?", NAME))


@tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name and greets."""
    return greet(ctx)


@tool()
async def test_streaming_elicitation(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name and greets."""
    return greet(ctx)


@tool()
async def test_input_required_result_sampling(ctx: Context) -> str | types.InputRequiredResult:
    """Asks the model of its caller for the capital of France."""
    if given(ctx, "capital") is None:
        return wants(capital=turn("What is the capital of France?", 100))
    return f"The model says: {given(ctx, 'capital').content}"


@tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for the folders of its caller."""
    if given(ctx, "client_roots") is None:
        return wants(client_roots=types.ListRootsRequest())
    return f"{len(given(ctx, 'client_roots').roots)} folders"


def confirmed(ctx):
    if given(ctx, "confirm") is not None and ctx.request_state == "handed out":
        return "state-ok"
    return wants("handed out", confirm=form("Please confirm", schema(ok={"type": "boolean"})))


@tool()
async def test_input_required_result_request_state(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a confirmation and remembers it."""
    return confirmed(ctx)


@tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a confirmation and remembers it."""
    return confirmed(ctx)


@tool()
async def test_input_required_result_multiple_inputs(
    ctx: Context,
) -> str | types.InputRequiredResult:
    """Asks for a name, a greeting and the folders."""
    if {"user_name", "greeting", "client_roots"} <= set(ctx.input_responses or {}):
        return "All of it was given."
    return wants(
        "all",
        user_name=form("What is your name?", NAME),
        greeting=turn("Generate a greeting", 50),
        client_roots=types.ListRootsRequest(),
    )


@tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name, and after that for a colour."""
    state = json.loads(ctx.request_state) if ctx.request_state else {"round": 0}
    if state["round"] == 2:
        return f"{state['name']} likes {filled(ctx, 'step2', 'color')}."
    name = filled(ctx, "step1", "name")
    if state["round"] == 1 and name is not None:
        message = "Step 2: What is your favorite color?"
        step2 = form(message, schema(color=STRING))
        return wants(json.dumps({"round": 2, "name": name}), step2=step2)
    return wants(json.dumps({"round": 1}), step1=form("Step 1: What is your name?", NAME))


@tool()
async def test_input_required_result_capabilities(ctx: Context) -> str | types.InputRequiredResult:
    """Asks a person or a model, whichever there is."""
    if ctx.input_responses:
        return "Something was given."
    can, requests = ctx.client_capabilities, {}
    if can is not None and can.elicitation is not None:
        requests["user_name"] = form("What is your name?", NAME)
    if can is not None and can.sampling is not None:
        requests["turn"] = turn("Say anything", 10)
    return wants(**requests) if requests else "There is no one to ask."


@tool()
async def test_missing_capability(ctx: Context) -> str:
    """Needs the model of its caller."""
    can = ctx.client_capabilities
    if can is None or can.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=MISSING_CAPABILITY, message="It needs sampling", data=data)
    return "There is a model."


# What changes while clients look.


def here() -> str:
    return "here"


def set_changed_tool():
    description = f"Was changed {changed['tools']} times."
    server.add_tool(here, name="test_changed_tool", description=description, structured_output=False)


def set_changed_prompt():
    description = f"Was changed {changed['prompts']} times."
    prompt = Prompt.from_function(here, name="test_changed_prompt", description=description)
    server.add_prompt(prompt)


@tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Changes the list of tools."""
    changed["tools"] += 1
    server.remove_tool("test_changed_tool")
    set_changed_tool()
    await ctx.notify_tools_changed()
    return "changed"


@tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Changes the list of prompts."""
    changed["prompts"] += 1
    server.remove_prompt("test_changed_prompt")
    set_changed_prompt()
    await ctx.notify_prompts_changed()
    return "changed"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A resource that is watched."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """A resource for each id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """A text."""
    return [UserMessage(text("This is a simple prompt for testing."))]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A text of two arguments."""
    return [UserMessage(text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    """A resource."""
    words = "Embedded resource content for testing."
    asked = UserMessage(text("Please process the embedded resource above."))
    return [UserMessage(embedded(resourceUri, "text/plain", words)), asked]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A picture."""
    return [UserMessage(image()), UserMessage(text("Please analyze the image above."))]


@server.prompt()
async def test_input_required_result_prompt(
    ctx: Context,
) -> list[UserMessage] | types.InputRequiredResult:
    """Asks for its context."""
    context = filled(ctx, "user_context", "context")
    if context is None:
        message = "What context should the prompt use?"
        return wants(user_context=form(message, schema(context=STRING)))
    return [UserMessage(text(f"Use this context: {context}"))]


@server.completion()
async def complete(ref, argument, context):
    found = [word for word in ("paris", "park", "party") if word.startswith(argument.value)]
    return types.Completion(values=found, total=len(found), has_more=False)


async def acknowledge(ctx, params):
    return types.EmptyResult()


def add_requests_of_sessions():
    """What the SDK leaves to the server. Without a level to set it sends no line of a log."""
    # There is no public way to add them.
    add = server._lowlevel_server.add_request_handler
    add("logging/setLevel", types.SetLevelRequestParams, acknowledge)
    add("resources/subscribe", types.SubscribeRequestParams, acknowledge)
    add("resources/unsubscribe", types.UnsubscribeRequestParams, acknowledge)


def with_handshake_only(app):
    """Refuses what is stateless, as a server does that never heard of it."""

    async def answer(scope, receive, send):
        if scope["type"] == "http" and (b"mcp-protocol-version", MODERN) in scope["headers"]:
            error = {"code": -32000, "message": "Bad Request: Unsupported protocol version"}
            body = {"jsonrpc": "2.0", "id": None, "error": error}
            await JSONResponse(body, status_code=400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


def serve(eras):
    add_requests_of_sessions()
    set_changed_tool()
    set_changed_prompt()
    app = server.streamable_http_app()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    threading.Thread(target=end_with_parent, daemon=True).start()
    print(f"listening on http://127.0.0.1:{port}/mcp", flush=True)
    config = uvicorn.Config(app if eras == "both" else with_handshake_only(app), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] not in (["both"], ["handshake"]):
        sys.exit(__doc__)
    serve(sys.argv[1])
