"""A model in the tests of our gateway: it speaks as OpenAI does and writes one plan, from what it is shown.

usage: drafter.py TOOL

The plan calls the tool and answers one number of its result. Where that number is, the model reads
in the tool's line of the prompt: without a shape there it has no plan. It prints where it listens,
and ends when its standard input does.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def card_of(messages, tool):
    """What the prompt says of the tool."""
    for line in "\n".join(str(message.get("content")) for message in messages).splitlines():
        if line.startswith("{") and f'"{tool}"' in line:
            return json.loads(line)
    raise LookupError(f"the prompt has no tool {tool}")


def number_in(shape):
    """The member of an object of this shape that is a number."""
    for name, member in shape["properties"].items():
        if member.get("type") in ("integer", "number"):
            return name
    raise LookupError(f"no number in {shape}")


def plan_for(card):
    member = number_in(card["output"])
    call = {
        "id": "look",
        "type": "tool_call",
        "toolId": card["toolId"],
        "arguments": {"article": {"jsonPath": "$.promptInput.article"}},
        "saveAs": "found",
        "nextStepId": "answer",
    }
    answer = {"id": "answer", "type": "final_response", "message": "In stock: {{ context.found.%s }}" % member}
    parameters = {"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]}
    return {
        "planId": "stock/look",
        "description": "Says how many pieces of an article are in stock.",
        "parameters": parameters,
        "steps": [call, answer],
    }


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            text = json.dumps(plan_for(card_of(asked["messages"], sys.argv[1])))
        except (LookupError, KeyError) as error:
            text = f"I cannot write this plan: {error!r}"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "r", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body = json.dumps(reply | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=end_with_parent, daemon=True).start()
    print(f"listening on http://127.0.0.1:{model.server_port}/v1", flush=True)
    model.serve_forever()
