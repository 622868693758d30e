"""A client in the tests of our REST providers, over REST and over MCP in the era that it is told.

usage: check_rest.py legacy|modern URL SERVICE

URL is our server, SERVICE is Chroma, which is behind it three times: `chroma` by the URL of its
document, `walled` and `allowed` by a file that names a loopback address as its server, the first
without `allow_private` and the second with it. Prints one line per check and ends with 1 when one
failed.
"""

import http.client
import json
import sys
from urllib.parse import urlsplit

import anyio
from mcp import Client

sys.dont_write_bytecode = True  # Of the import below: it would be left in the tree.
from check import LIST_DEADLINE_S, MODES, VERSIONS, all_of, passes, text_of, tool_names

DEADLINE_S = 1500
ANSWER_S = 180
TENANT = {"tenant": "default_tenant"}
REACHES = {"get": "reads"}
REPEATABLE = ["get", "put", "delete"]


def ask(url, method, path, body=None):
    """Status and JSON body of a request of ours."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=ANSWER_S)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


class OverRest:
    """Calls of tools over REST: what came out, or what the refusal says."""

    def __init__(self, url):
        self.url = url

    async def call(self, tool, arguments):
        path = f"/api/v1/tools/{tool}/call"
        body = {"arguments": arguments}
        status, answer = await anyio.to_thread.run_sync(ask, self.url, "POST", path, body)
        return (answer["result"], None) if status == 200 else (None, answer)

    async def failed(self, tool, arguments):
        result, problem = await self.call(tool, arguments)
        assert problem is not None and problem["code"] == "tool_failed", (result, problem)
        return json.dumps(problem)

    async def misfit(self, tool, arguments):
        result, problem = await self.call(tool, arguments)
        assert problem is not None and problem["code"] == "input_misfit", (result, problem)
        return problem["detail"]


class OverMcp:
    """The same over MCP, where a failure is a result that says so."""

    def __init__(self, client):
        self.client = client

    async def call(self, tool, arguments):
        result = await self.client.call_tool(tool, arguments)
        text = text_of(result)
        # Texts come as they are, all else as JSON.
        return (None, text) if result.is_error else (parsed(text), None)

    async def failed(self, tool, arguments):
        result, error = await self.call(tool, arguments)
        assert error is not None, result
        return error

    misfit = failed


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


async def works(way, tool, arguments):
    result, error = await way.call(tool, arguments)
    assert error is None, error
    return result


def operations(service):
    """The methods of all operations that the service describes, by their ids."""
    status, document = ask(service, "GET", "/openapi.json")
    assert status == 200 and document["openapi"].startswith("3."), document
    items = document["paths"].values()
    return {said["operationId"]: method for item in items for method, said in item.items()}


async def listed(client, url, service):
    """Every operation is a tool, and what it does to the world is shown."""
    methods = await anyio.to_thread.run_sync(operations, service)
    assert len(methods) > 30 and "post" in methods.values(), methods
    over_mcp = {tool.name: tool for tool in await all_of(client.list_tools, "tools")}
    for name, method in methods.items():
        path = f"/api/v1/tools/chroma.{name}"
        status, tool = await anyio.to_thread.run_sync(ask, url, "GET", path)
        assert status == 200, tool
        reach = REACHES.get(method, "writes")
        assert (tool["reach"], tool["idempotent"]) == (reach, method in REPEATABLE), tool
        annotations = over_mcp[f"chroma.{name}"].annotations
        assert annotations.read_only_hint == (reach == "reads"), (name, annotations)
    ours = [name for name in over_mcp if name.startswith("chroma.")]
    assert len(ours) == len(methods), sorted(ours)
    # Only what `include` names.
    assert {name for name in over_mcp if name.startswith("allowed.")} == {"allowed.version"}


async def reads(way, database):
    """Parts of the path and fields of the query."""
    first = await works(way, "chroma.list_databases", {**TENANT, "limit": 1, "offset": 0})
    assert [one["name"] for one in first] == ["default_database"], first
    second = await works(way, "chroma.list_databases", {**TENANT, "limit": 50, "offset": 1})
    assert database in [one["name"] for one in second], second
    assert "default_database" not in [one["name"] for one in second], second
    found = await works(way, "chroma.get_database", {**TENANT, "database": database})
    assert found["name"] == database, found
    assert isinstance(await works(way, "chroma.version", {}), str)


async def refusals(way, database):
    """An error's status and words come through; what does not fit is never sent."""
    told = await way.failed("chroma.get_database", {**TENANT, "database": "no such one"})
    assert "404 Not Found" in told and "no such one" in told, told
    told = await way.failed("chroma.create_database", {**TENANT, "name": "no/../name"})
    assert "400 Bad Request" in told and "no/../name" in told, told
    told = await way.failed("chroma.create_collection", {**TENANT, "database": database, "name": "birds"})
    assert "409 Conflict" in told and "already exists" in told, told
    told = await way.misfit("chroma.get_database", TENANT)
    assert '"database" is a required property' in told, told
    told = await way.misfit("chroma.list_databases", {**TENANT, "limit": "many"})
    assert "/limit" in told and "integer" in told, told
    told = await way.misfit("chroma.list_databases", {**TENANT, "limits": 1})
    assert "limits" in told, told


async def writes(way, database):
    """Bodies whose parts are arguments, bodies that are one argument, and what comes of them."""
    await works(way, "chroma.create_database", {**TENANT, "name": database})
    place = {**TENANT, "database": database}
    # An integer is a number as well: what is one of several may well be two of them.
    birds = {**place, "name": "birds", "metadata": {"legs": 2, "tame": False}}
    made = await works(way, "chroma.create_collection", birds)
    assert made["metadata"] == {"legs": 2, "tame": False}, made
    place = {**place, "collection_id": made["id"]}
    records = {
        "ids": ["owl", "robin"],
        "embeddings": [[1, 0, 0], [0, 1, 0]],
        "documents": ["flies at night", None],
        "metadatas": [{"eyes": 2}, None],
    }
    await works(way, "chroma.collection_add", {**place, **records})
    assert await works(way, "chroma.collection_count", place) == 2
    near = {"query_embeddings": [[0.9, 0.1, 0]], "n_results": 1, "where": {"eyes": {"$gt": 1}}}
    found = await works(way, "chroma.collection_query", {**place, "body": near, "limit": 5})
    assert found["ids"] == [["owl"]], found
    assert found["documents"] == [["flies at night"]], found
    renamed = {**place, "new_name": "night-birds"}
    await works(way, "chroma.update_collection", renamed)
    count = {**TENANT, "database": database}
    assert await works(way, "chroma.count_collections", count) == 1
    await works(way, "chroma.create_collection", {**count, "name": "birds"})
    assert await works(way, "chroma.count_collections", count) == 2


async def deletes(way, database):
    await works(way, "chroma.delete_database", {**TENANT, "database": database})
    told = await way.failed("chroma.get_database", {**TENANT, "database": database})
    assert "404 Not Found" in told, told


async def private(way, service):
    """An address that is not public, and that only the document names, wants the operator's word."""
    told = await way.failed("walled.version", {})
    assert "`127.0.0.1` is not a public address" in told and "allow_private" in told, told
    told = await way.failed("walled.create_database", {**TENANT, "name": "walled"})
    assert "is not a public address" in told, told
    path = "/api/v2/tenants/default_tenant/databases/walled"
    status, answer = await anyio.to_thread.run_sync(ask, service, "GET", path)
    assert status == 404, answer
    assert isinstance(await works(way, "allowed.version", {}), str)


async def everything_is_listed(client):
    """Documents are read in the background; a list does not wait for them."""
    wanted = {"chroma.version", "walled.version", "allowed.version"}
    with anyio.fail_after(LIST_DEADLINE_S):
        while not wanted <= await tool_names(client):
            await anyio.sleep(0.1)


async def run(era, url, service):
    async with Client(f"{url}/mcp", mode=MODES[era], cache=None) as client:
        assert client.protocol_version == VERSIONS[era], client.protocol_version
        await everything_is_listed(client)
        good = [await passes("every operation is a tool", listed(client, url, service))]
        for what, way in [("REST", OverRest(url)), ("MCP", OverMcp(client))]:
            database = f"{era}-{what}"
            for check in [writes, reads, refusals, deletes]:
                good.append(await passes(f"{what}: {check.__name__}", check(way, database)))
            good.append(await passes(f"{what}: private addresses", private(way, service)))
    return all(good)


async def main(words):
    with anyio.fail_after(DEADLINE_S):
        return await run(*words)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) != 3 or arguments[0] not in MODES:
        sys.exit(__doc__)
    sys.exit(0 if anyio.run(main, arguments) else 1)
