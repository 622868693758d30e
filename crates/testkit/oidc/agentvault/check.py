"""The AgentVault client asks a Waypost server for a token, and calls with it.

`check.py WAYPOST ADMIN_KEY`: its address, and a key that may create others. One line for each check
that passed; it ends with 1 at the first that did not.
"""

import asyncio
import json
import logging
import os
import sys
import urllib.parse
import urllib.request

from agentvault.client import AgentVaultClient
from agentvault.exceptions import A2AAuthenticationError, A2ARemoteAgentError
from agentvault.key_manager import KeyManager
from agentvault.models import AgentCard, Message, TextPart

LIMIT_SECONDS = 120
METHOD_NOT_FOUND = -32601
# Its credentials are in variables with this in their names.
SERVICE = "desk"


def check(what, holds, told=""):
    """One check."""
    if not holds:
        sys.exit(f"FAILED {what}: {told}")
    print(f"ok {what}")


def created_key(waypost, admin_key):
    """The id and the text of a new key."""
    body = {"name": "agentvault", "roles": ["member"]}
    headers = {"content-type": "application/json", "authorization": f"Bearer {admin_key}"}
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{waypost}/api/v1/keys", data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as response:
        made = json.load(response)
    return made["key"]["id"], made["text"]


def card(waypost):
    """What the server would say of itself: tasks are sent to `/rpc`, which speaks JSON-RPC."""
    # The client takes no other address of this machine.
    base = f"http://localhost:{urllib.parse.urlsplit(waypost).port}"
    return AgentCard.model_validate(
        {
            "schemaVersion": "1.0",
            "humanReadableId": "waypost/desk",
            "agentVersion": "1.0.0",
            "name": "desk",
            "description": "a desk",
            "url": f"{base}/rpc",
            "provider": {"name": "waypost"},
            "capabilities": {"a2aVersion": "1.0"},
            "authSchemes": [
                {
                    "scheme": "oauth2",
                    "tokenUrl": f"{base}/oauth/token",
                    "scopes": ["use"],
                    "service_identifier": SERVICE,
                }
            ],
        }
    )


async def outcome(agent, identity, secret):
    """What comes of a task that is sent with these credentials."""
    os.environ[f"AGENTVAULT_OAUTH_{SERVICE.upper()}_CLIENT_ID"] = identity
    os.environ[f"AGENTVAULT_OAUTH_{SERVICE.upper()}_CLIENT_SECRET"] = secret
    message = Message(role="user", parts=[TextPart(type="text", content="hello")])
    async with AgentVaultClient() as client:
        try:
            return await client.initiate_task(agent, message, KeyManager())
        except (A2AAuthenticationError, A2ARemoteAgentError) as error:
            return error


async def main(waypost, admin_key):
    # What it fails with is what is looked at.
    logging.disable(logging.CRITICAL)
    agent = card(waypost)
    identity, secret = created_key(waypost, admin_key)
    told = await outcome(agent, identity, secret)
    # There is no such method; without a good token this would be 401.
    code = getattr(told, "status_code", None)
    check("the token that it got opens `/rpc`", code == METHOD_NOT_FOUND, repr(told))
    other = secret[:-1] + ("b" if secret.endswith("a") else "a")
    told = await outcome(agent, identity, other)
    is_refused = isinstance(told, A2AAuthenticationError) and "401" in str(told)
    check("a wrong secret gets no token", is_refused, repr(told))
    agent.auth_schemes[0].scopes = ["everything"]
    told = await outcome(agent, identity, secret)
    is_refused = isinstance(told, A2AAuthenticationError) and "invalid_scope" in str(told)
    check("an unknown scope gets no token", is_refused, repr(told))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), LIMIT_SECONDS))
