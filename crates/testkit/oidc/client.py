"""A client of our MCP server that logs in at an issuer: the official Python SDK, 1.x or 2.x.

usage: client.py URL ISSUER

Prints one line per check and ends with 1 when one failed.
"""

import importlib
import json
import sys
import urllib.parse
import urllib.request
from contextlib import asynccontextmanager

import anyio
import mcp
from anyio import to_thread
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

IS_MODERN = hasattr(mcp, "Client")
httpx = importlib.import_module("httpx2" if IS_MODERN else "httpx")

DEADLINE_S = 900
CHECK_DEADLINE_S = 240
REDIRECT = "http://127.0.0.1:9/callback"
TOOL = "desk__greet"
GREETING = "Hello from the desk."
CLIENT = {
    "redirect_uris": [AnyUrl(REDIRECT)],
    "grant_types": ["authorization_code"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}


class Storage:
    """What the SDK keeps of one login, in memory."""

    def __init__(self, client):
        self.client = client
        self.tokens = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Person:
    """Opens the pages that the client is led to, and permits something else each time."""

    def __init__(self, issuer, permits):
        self.issuer = issuer
        self.permits = list(permits)
        self.back = {}

    async def open(self, page):
        query = {"page": page, "login": "ann", "permits": self.permits.pop(0)}
        url = f"{self.issuer}/person?{urllib.parse.urlencode(query)}"
        answer = await to_thread.run_sync(read, url)
        back = urllib.parse.urlsplit(answer["to"]).query
        self.back = dict(urllib.parse.parse_qsl(back))

    async def come_back(self):
        back = self.back
        if IS_MODERN:
            from mcp.client.auth import AuthorizationCodeResult

            return AuthorizationCodeResult(
                code=back["code"], state=back.get("state"), iss=back.get("iss")
            )
        return back["code"], back.get("state")


def read(url):
    with urllib.request.urlopen(url, timeout=CHECK_DEADLINE_S) as response:
        return json.load(response)


class Login:
    """A login at the issuer: who the client is, and what a person permits at each page."""

    def __init__(self, words, permits, client=None):
        self.url, issuer = words
        self.person = Person(issuer, permits)
        self.storage = Storage(client)
        self.auth = OAuthClientProvider(
            server_url=self.url,
            client_metadata=OAuthClientMetadata(client_name="a test", **CLIENT),
            storage=self.storage,
            redirect_handler=self.person.open,
            callback_handler=self.person.come_back,
        )

    def pages_left(self):
        return len(self.person.permits)


@asynccontextmanager
async def connected(login):
    timeout = httpx.Timeout(CHECK_DEADLINE_S)
    async with httpx.AsyncClient(auth=login.auth, timeout=timeout) as http:
        transport = streamable_http_client(login.url, http_client=http)
        if IS_MODERN:
            async with mcp.Client(transport) as client:
                yield client
        else:
            async with transport as streams:
                async with mcp.ClientSession(streams[0], streams[1]) as session:
                    await session.initialize()
                    yield session


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def greeted(client):
    result = await client.call_tool(TOOL, {})
    assert result.content[0].text == GREETING, result


async def logs_in_lists_and_calls(words):
    login = Login(words, ["read use"])
    async with connected(login) as client:
        assert TOOL in await names(client)
        await greeted(client)
    assert login.pages_left() == 0 and login.storage.client is not None


async def is_known_already(words):
    client = OAuthClientInformationFull(client_id="known", **CLIENT)
    login = Login(words, ["read use"], client)
    async with connected(login) as client:
        await greeted(client)
    assert login.pages_left() == 0
    assert login.storage.client.client_id == "known", login.storage.client


async def steps_up(words):
    login = Login(words, ["read", "read use"])
    async with connected(login) as client:
        assert await names(client) == [], "who may only read can call nothing"
        assert login.pages_left() == 1
        await greeted(client)
    assert login.pages_left() == 0
    assert "use" in login.storage.tokens.scope.split(), login.storage.tokens


CHECKS = [logs_in_lists_and_calls, is_known_already, steps_up]


async def main(words):
    failed = 0
    with anyio.fail_after(DEADLINE_S):
        for check in CHECKS:
            try:
                with anyio.fail_after(CHECK_DEADLINE_S):
                    await check(words)
                print(f"ok {check.__name__}")
            except Exception as error:
                failed += 1
                print(f"FAILED {check.__name__}: {error!r}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(1 if anyio.run(main, sys.argv[1:]) else 0)
