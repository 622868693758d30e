"""Holds the fakes of the model providers to the vendors' own SDKs.

usage: check.py URL

Prints one line per check and ends with 1 when one failed. What the SDKs do not understand, our
fakes may not say: the SDKs of OpenAI and Anthropic validate every answer against their types here.
"""

import json
import sys

import anthropic
import httpx2
import openai
from google import genai
from google.genai import errors, types

KEY = "test-key-0123456789"
DEADLINE_S = 120
HELLO = "Hello there, dear friend."
BEFORE_CALLS = "One moment, please."
CITIES = [{"city": "Paris"}, {"city": "Rome"}]
QUESTION = "How is the weather in Paris and Rome?"
ANSWER = "It said: mild, mild."
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
ROUTE = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": ["allow", "refuse"]},
        "note": {"type": "string"},
        "allowed_tool_types": {
            "type": "array",
            "items": {"type": "string", "enum": ["calendar", "maps"]},
        },
    },
    "required": ["decision", "note", "allowed_tool_types"],
    "additionalProperties": False,
}
ROUTED = {"decision": "allow", "note": "text", "allowed_tool_types": ["calendar"]}


def raised(kind, call):
    """The error of this kind that a call ends with."""
    try:
        got = call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {got!r}")


class OpenAi:
    """Chat completions, as the SDK `openai` reads them."""

    MODEL = "gpt-6.1-terra--"
    TOOL = {
        "type": "function",
        "function": {"name": "get_weather", "description": "x", "parameters": PARAMETERS},
    }

    def __init__(self, url, key=KEY):
        self.client = openai.OpenAI(
            base_url=f"{url}/v1",
            api_key=key,
            max_retries=0,
            timeout=DEADLINE_S,
            _strict_response_validation=True,
        )

    def ask(self, act, messages=None, **more):
        messages = messages or [{"role": "user", "content": "Hi"}]
        model = self.MODEL + act
        return self.client.chat.completions.create(model=model, messages=messages, **more)

    def stream(self, act, messages=None, **more):
        """A stream put together by the SDK's own accumulator."""
        messages = messages or [{"role": "user", "content": "Hi"}]
        model = self.MODEL + act
        more["stream_options"] = {"include_usage": True}
        with self.client.chat.completions.stream(model=model, messages=messages, **more) as stream:
            events = [event.type for event in stream]
            return stream.get_final_completion(), events

    def says(self):
        completion = self.ask("says")
        assert completion.choices[0].message.content == HELLO, completion
        assert completion.choices[0].finish_reason == "stop", completion
        usage = completion.usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (12, 5), usage
        assert usage.prompt_tokens_details.cached_tokens == 4, usage

    def streams(self):
        completion, events = self.stream("says")
        assert completion.choices[0].message.content == HELLO, completion
        assert completion.usage.total_tokens == 17, completion
        assert events.count("content.delta") > 1, events
        chunks = list(self.ask("says", stream=True))
        assert all(chunk.usage is None and chunk.choices for chunk in chunks), chunks
        assert chunks[-1].choices[0].finish_reason == "stop", chunks[-1]

    def calls(self):
        for ask in (self.ask, lambda *a, **more: self.stream(*a, **more)[0]):
            more = {"tools": [self.TOOL], "reasoning_effort": "none"}
            messages = [{"role": "user", "content": QUESTION}]
            completion = ask("calls", messages, **more)
            message = completion.choices[0].message
            assert completion.choices[0].finish_reason == "tool_calls", completion
            assert message.content == BEFORE_CALLS, message
            calls = message.tool_calls
            assert [call.function.name for call in calls] == ["get_weather"] * 2, calls
            assert [json.loads(call.function.arguments) for call in calls] == CITIES, calls
            messages.append(message.to_dict())
            for call in calls:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "mild"})
            completion = ask("calls", messages, **more)
            assert completion.choices[0].message.content == ANSWER, completion
            error = raised(openai.BadRequestError, lambda: ask("calls", messages[:-1], **more))
            assert "did not have response messages" in error.message, error.message
        thinking = {"tools": [self.TOOL], "reasoning_effort": "low"}
        error = raised(openai.BadRequestError, lambda: self.ask("calls", **thinking))
        assert "reasoning_effort" in error.message, error.message

    def fills(self):
        schema = {"name": "route", "strict": True, "schema": ROUTE}
        form = {"type": "json_schema", "json_schema": schema}
        for ask in (self.ask, lambda *a, **more: self.stream(*a, **more)[0]):
            completion = ask("fills", response_format=form)
            assert json.loads(completion.choices[0].message.content) == ROUTED, completion
        schema["schema"] = {**ROUTE, "additionalProperties": True}
        raised(openai.BadRequestError, lambda: self.ask("fills", response_format=form))

    def ends(self):
        message = self.ask("refuses").choices[0].message
        assert (message.refusal, message.content) == ("I will not.", None), message
        assert self.stream("refuses")[0].choices[0].message.refusal == "I will not."
        assert self.ask("stops").choices[0].finish_reason == "length"
        error = raised(openai.LengthFinishReasonError, lambda: self.stream("stops"))
        assert error.completion.choices[0].message.content == HELLO, error.completion

    def fails(self):
        limited = raised(openai.RateLimitError, lambda: self.ask("rate-limited"))
        assert limited.code == "rate_limit_exceeded", limited.code
        assert limited.response.headers["retry-after"] == "7"
        poor = raised(openai.RateLimitError, lambda: self.ask("no-money", stream=True))
        assert poor.code == "insufficient_quota", poor.code
        overloaded = raised(openai.InternalServerError, lambda: self.ask("overloaded"))
        assert overloaded.status_code == 503
        long = raised(openai.BadRequestError, lambda: self.ask("too-long"))
        assert long.code == "context_length_exceeded", long.code
        unknown = raised(openai.NotFoundError, lambda: self.ask("nobody"))
        assert unknown.code == "model_not_found", unknown.code

    def breaks(self):
        raised(openai.APIConnectionError, lambda: list(self.ask("dropped", stream=True)))
        error = raised(openai.APIError, lambda: list(self.ask("error", stream=True)))
        assert error.type == "server_error", error
        raised(json.JSONDecodeError, lambda: list(self.ask("nonsense", stream=True)))
        chunks = list(self.ask("cut", stream=True))
        assert all(chunk.choices[0].finish_reason is None for chunk in chunks), chunks

    def refuses_a_wrong_key(self, url):
        other = OpenAi(url, "sk-wrong")
        error = raised(openai.AuthenticationError, lambda: other.ask("says"))
        assert error.code == "invalid_api_key", error.code


class Anthropic:
    """Messages, as the SDK `anthropic` reads them."""

    MODEL = "claude-sonnet-5-5--"
    TOOL = {"name": "get_weather", "description": "x", "input_schema": PARAMETERS}

    def __init__(self, url, key=KEY):
        self.client = anthropic.Anthropic(
            base_url=url,
            api_key=key,
            max_retries=0,
            timeout=DEADLINE_S,
            _strict_response_validation=True,
        )

    def ask(self, act, messages=None, **more):
        messages = messages or [{"role": "user", "content": "Hi"}]
        model = self.MODEL + act
        return self.client.messages.create(
            model=model, max_tokens=1000, messages=messages, **more
        )

    def stream(self, act, messages=None, **more):
        """A stream put together by the SDK's own accumulator."""
        messages = messages or [{"role": "user", "content": "Hi"}]
        model = self.MODEL + act
        with self.client.messages.stream(
            model=model, max_tokens=1000, messages=messages, **more
        ) as stream:
            events = [event.type for event in stream]
            return stream.get_final_message(), events

    def both(self, *arguments, **more):
        yield self.ask(*arguments, **more)
        yield self.stream(*arguments, **more)[0]

    def says(self):
        for message in self.both("says", system="Be kind."):
            assert [block.text for block in message.content] == [HELLO], message
            assert message.stop_reason == "end_turn", message
            usage = message.usage
            counted = (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens)
            assert counted == (6, 4, 5), usage

    def streams(self):
        events = [event.type for event in self.ask("says", stream=True)]
        assert events[0] == "message_start" and events[-1] == "message_stop", events
        assert events.count("content_block_delta") > 1, events

    def calls(self):
        for act, kinds in (
            ("calls", ["text", "tool_use", "tool_use"]),
            ("thinks", ["thinking", "text", "tool_use", "tool_use"]),
        ):
            messages = [{"role": "user", "content": QUESTION}]
            for message in self.both(act, messages, tools=[self.TOOL]):
                assert [block.type for block in message.content] == kinds, message
                assert message.stop_reason == "tool_use", message
                calls = [block for block in message.content if block.type == "tool_use"]
                assert [call.input for call in calls] == CITIES, calls
                results = [
                    {"type": "tool_result", "tool_use_id": call.id, "content": "mild"}
                    for call in calls
                ]
                # As the SDK gives it back, thought and signature included.
                said = [block.to_dict() for block in message.content]
                after = [
                    *messages,
                    {"role": "assistant", "content": said},
                    {"role": "user", "content": results},
                ]
                for answer in self.both(act, after, tools=[self.TOOL]):
                    assert answer.content[0].text == ANSWER, answer
                after[-1] = {"role": "user", "content": results[:-1]}
                error = raised(
                    anthropic.BadRequestError, lambda: self.ask(act, after, tools=[self.TOOL])
                )
                assert "without `tool_result`" in error.api_message, error.api_message

    def fills(self):
        form = {"format": {"type": "json_schema", "schema": ROUTE}}
        for message in self.both("fills", output_config=form):
            assert json.loads(message.content[0].text) == ROUTED, message

    def ends(self):
        for message in self.both("refuses"):
            assert message.stop_reason == "refusal", message
            assert message.stop_details.explanation == "I will not.", message
        for message in self.both("stops"):
            assert message.stop_reason == "max_tokens", message

    def fails(self):
        limited = raised(anthropic.RateLimitError, lambda: self.ask("rate-limited"))
        assert limited.type == "rate_limit_error", limited.type
        assert limited.response.headers["retry-after"] == "7"
        overloaded = raised(anthropic.OverloadedError, lambda: self.ask("overloaded", stream=True))
        assert overloaded.type == "overloaded_error", overloaded.type
        for act, words in (("too-long", "too long"), ("no-money", "credit balance")):
            error = raised(anthropic.BadRequestError, lambda: self.ask(act))
            assert words in error.api_message, error.api_message
        unknown = raised(anthropic.NotFoundError, lambda: self.ask("nobody"))
        assert unknown.type == "not_found_error", unknown.type
        warm = raised(
            anthropic.BadRequestError, lambda: self.ask("says", extra_body={"temperature": 1.0})
        )
        assert warm.api_message == "temperature: Extra inputs are not permitted", warm.api_message

    def breaks(self):
        raised(httpx2.RemoteProtocolError, lambda: list(self.ask("dropped", stream=True)))
        error = raised(anthropic.APIStatusError, lambda: list(self.ask("error", stream=True)))
        assert error.type == "overloaded_error", error
        events = [event.type for event in self.ask("cut", stream=True)]
        assert "message_stop" not in events, events

    def refuses_a_wrong_key(self, url):
        other = Anthropic(url, "sk-wrong")
        error = raised(anthropic.AuthenticationError, lambda: other.ask("says"))
        assert error.type == "authentication_error", error.type


class Gemini:
    """Contents, as the SDK `google-genai` reads them."""

    MODEL = "gemini-3.8-flash--"

    def __init__(self, url, key=KEY):
        options = types.HttpOptions(base_url=url, timeout=DEADLINE_S * 1000)
        self.client = genai.Client(api_key=key, http_options=options)

    def ask(self, act, contents="Hi", **config):
        config = types.GenerateContentConfig(**config)
        model = self.MODEL + act
        return self.client.models.generate_content(model=model, contents=contents, config=config)

    def chunks(self, act, contents="Hi", **config):
        config = types.GenerateContentConfig(**config)
        model = self.MODEL + act
        stream = self.client.models.generate_content_stream
        return list(stream(model=model, contents=contents, config=config))

    @staticmethod
    def parts(chunks):
        """All parts of a stream that say something."""
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
        return [part for part in parts if part.text != ""]

    def says(self):
        response = self.ask("says", system_instruction="Be kind.")
        assert response.text == HELLO, response
        assert response.candidates[0].finish_reason == types.FinishReason.STOP, response
        usage = response.usage_metadata
        counted = (usage.prompt_token_count, usage.cached_content_token_count)
        assert counted == (12, 4), usage
        assert (usage.candidates_token_count, usage.thoughts_token_count) == (3, 2), usage

    def streams(self):
        chunks = self.chunks("says")
        assert "".join(part.text for part in self.parts(chunks)) == HELLO, chunks
        reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
        assert len(chunks) > 2 and reasons[-1] == types.FinishReason.STOP, reasons
        assert all(reason is None for reason in reasons[:-1]), reasons

    def calls(self):
        declared = types.FunctionDeclaration(
            name="get_weather", description="x", parameters_json_schema=PARAMETERS
        )
        tools = [types.Tool(function_declarations=[declared])]
        off = types.AutomaticFunctionCallingConfig(disable=True)
        config = {"tools": tools, "automatic_function_calling": off}
        question = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        for said in (
            self.ask("calls", [question], **config).candidates[0].content,
            types.Content(
                role="model", parts=self.parts(self.chunks("calls", [question], **config))
            ),
        ):
            calls = [part.function_call for part in said.parts if part.function_call]
            assert [call.args for call in calls] == CITIES, calls
            assert [call.name for call in calls] == ["get_weather"] * 2, calls
            results = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=call.id, name=call.name, response={"output": "mild"}
                    )
                )
                for call in calls
            ]
            # As the SDK gives it back, signatures included.
            after = [question, said, types.Content(role="user", parts=results)]
            assert self.ask("calls", after, **config).text == ANSWER
            after[-1] = types.Content(role="user", parts=results[:-1])
            error = raised(errors.ClientError, lambda: self.ask("calls", after, **config))
            assert "number of function response parts" in error.message, error.message
            bare = [
                types.Part(function_call=part.function_call)
                for part in said.parts
                if part.function_call
            ]
            after = [
                question,
                types.Content(role="model", parts=bare),
                types.Content(role="user", parts=results),
            ]
            error = raised(errors.ClientError, lambda: self.ask("calls", after, **config))
            assert "thought_signature" in error.message, error.message

    def fills(self):
        config = {"response_mime_type": "application/json", "response_json_schema": ROUTE}
        assert json.loads(self.ask("fills", **config).text) == ROUTED
        text = "".join(part.text for part in self.parts(self.chunks("fills", **config)))
        assert json.loads(text) == ROUTED, text

    def ends(self):
        refused = self.ask("refuses").candidates[0]
        assert refused.finish_reason == types.FinishReason.SAFETY, refused
        stopped = self.chunks("stops")[-1].candidates[0]
        assert stopped.finish_reason == types.FinishReason.MAX_TOKENS, stopped

    def fails(self):
        for act, kind, code, status in (
            ("rate-limited", errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
            ("no-money", errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
            ("overloaded", errors.ServerError, 503, "UNAVAILABLE"),
            ("too-long", errors.ClientError, 400, "INVALID_ARGUMENT"),
            ("nobody", errors.ClientError, 404, "NOT_FOUND"),
        ):
            for ask in (self.ask, self.chunks):
                error = raised(kind, lambda: ask(act))
                assert (error.code, error.status) == (code, status), error

    def breaks(self):
        raised(Exception, lambda: self.chunks("dropped"))
        error = raised(errors.ServerError, lambda: self.chunks("error"))
        assert error.status == "UNAVAILABLE", error
        raised(errors.UnknownApiResponseError, lambda: self.chunks("nonsense"))
        reasons = [chunk.candidates[0].finish_reason for chunk in self.chunks("cut")]
        assert reasons and all(reason is None for reason in reasons), reasons

    def refuses_a_wrong_key(self, url):
        other = Gemini(url, "sk-wrong")
        error = raised(errors.ClientError, lambda: other.ask("says"))
        details = error.details["error"]["details"]
        assert details[0]["reason"] == "API_KEY_INVALID", details


CHECKS = ["says", "streams", "calls", "fills", "ends", "fails", "breaks"]


def checked(name, check, *arguments):
    try:
        check(*arguments)
        print(f"ok {name}")
        return 0
    except Exception as error:
        print(f"FAILED {name}: {error!r}")
        return 1


def main(url):
    failed = 0
    for provider in (OpenAi, Anthropic, Gemini):
        client = provider(url)
        for check in CHECKS:
            failed += checked(f"{provider.__name__} {check}", getattr(client, check))
        name = f"{provider.__name__} refuses_a_wrong_key"
        failed += checked(name, client.refuses_a_wrong_key, url)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
