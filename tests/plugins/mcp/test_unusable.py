"""A tool that its server describes in a way that the protocol does not allow: it is left out and named, alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from nexus_core import Nexus
from nexus_core.plugin.settings import MCPServerConfig, MCPServerWithOrigin
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._connections import MAX_LISTED_TOOLS, ServerPool, remove_unusable_tools
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._tools import ToolCatalog, ToolDefinition, UnusableTool, read_catalog, store_catalog
from tests.conftest import Cli
from tests.plugins.mcp.http_world import serving
from tests.plugins.mcp.world import define, script, servers_of, survivors

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")
VERSION = "2025-06-18"
GOOD = {"name": "good", "description": "Good.", "inputSchema": {"type": "object"}}
BAD: dict[str, tuple[Any, UnusableTool]] = {
    "no schema": ({"name": "bad"}, UnusableTool("bad", "inputSchema: Field required")),
    "a schema without a type": (
        {"name": "bad", "inputSchema": {"properties": {}}},
        UnusableTool("bad", "inputSchema.type: Field required"),
    ),
    "a schema of something else": (
        {"name": "bad", "inputSchema": {"type": "array"}},
        UnusableTool("bad", "inputSchema.type: Input should be 'object'"),
    ),
    "a list of properties": (
        {"name": "bad", "inputSchema": {"type": "object", "properties": []}},
        UnusableTool("bad", "inputSchema.properties: Input should be a valid dictionary"),
    ),
    "no name": ({"inputSchema": {"type": "object"}}, UnusableTool("number 2 of its list", "name: Field required")),
    "a number for a name": (
        {"name": 7, "inputSchema": {"type": "object"}},
        UnusableTool("number 2 of its list", "name: Input should be a valid string"),
    ),
    "a number": (7, UnusableTool("number 2 of its list", "Input should be a valid dictionary")),
}


def asked(nexus: Nexus, name: str) -> ToolCatalog:
    request = nexus.request()

    async def main() -> ToolCatalog:
        async with ServerPool(nexus.load(request), request) as links:
            return await links.fetch_catalog(servers_of(nexus)[name])

    return anyio.run(main)


@pytest.mark.parametrize("kind", BAD)
def test_one_that_the_sdk_refuses_is_taken_out_with_the_reason(kind: str) -> None:
    tool, unusable = BAD[kind]
    result = {"tools": [GOOD, tool, {**GOOD, "name": "other"}], "nextCursor": "x"}

    found = remove_unusable_tools(result, VERSION)

    assert [each["name"] for each in result["tools"]] == ["good", "other"]
    assert [(each.name, each.reason.partition(" or ")[0]) for each in found] == [unusable]


@pytest.mark.parametrize("tool", [pytest.param(GOOD, marks=pytest.mark.slow), 7], ids=["good", "bad"])
def test_of_a_list_without_end_the_beginning_is_read(tool: object) -> None:
    """To say of each of millions what is wrong with it would take all the memory there is."""
    result = {"tools": [GOOD, *[tool] * (MAX_LISTED_TOOLS + 1)]}

    unusable = remove_unusable_tools(result, VERSION)

    assert unusable[-1] == UnusableTool("the last 2 of its list", "no more than 10,000 are read")
    assert len(result["tools"]) + len(unusable) - 1 == MAX_LISTED_TOOLS


@pytest.mark.parametrize("result", [{}, {"tools": 7}, {"tools": []}, {"content": [7]}, {"tools": [GOOD], "x": 1}])
def test_whatever_else_a_server_says_stays_as_it_is(result: dict[str, Any]) -> None:
    before = json.dumps(result)

    assert remove_unusable_tools(result, VERSION) == []
    assert json.dumps(result) == before


@linux
def test_the_others_are_there_and_run(make_nexus: MakeNexus, nexus_home: Path) -> None:
    tool, unusable = BAD["a schema without a type"]
    define(nexus_home, mixed={"command": script(), "env": {"TOOLS": json.dumps([tool, GOOD])}})
    nexus = make_nexus()

    record = asked(nexus, "mixed")

    assert ([each.name for each in record.usable], record.unusable) == (["good"], (unusable,))
    assert [tool.name for tool in nexus.assemble(nexus.request()).tools] == ["mcp__mixed__good"]
    assert read_catalog(nexus_home, servers_of(nexus)["mixed"]) == record
    assert survivors(nexus_home) == []


def test_so_it_is_over_http(make_nexus: MakeNexus, nexus_home: Path) -> None:
    tool, unusable = BAD["no schema"]
    with serving("tools/list", lambda handler, number: handler.answer(number, {"tools": [tool, GOOD]})) as world:
        define(nexus_home, mixed={"url": world.url})

        record = asked(make_nexus(), "mixed")

    assert ([each.name for each in record.usable], record.unusable) == (["good"], (unusable,))


@linux
def test_it_is_not_run_and_the_error_says_why(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, mixed={"command": script(), "env": {"TOOLS": json.dumps([GOOD, BAD["no schema"][0]])}})
    nexus = make_nexus()
    request = nexus.request()

    async def main() -> None:
        async with ServerPool(nexus.load(request), request) as links:
            await links.call(servers_of(nexus)["mixed"], "bad", {})

    with pytest.raises(ServerError, match=r"its tool 'bad' in a way that cannot be used: inputSchema: Field required"):
        anyio.run(main)


def test_a_name_that_is_also_that_of_an_unusable_one_is_not_offered(nexus_home: Path, tmp_path: Path) -> None:
    config = MCPServerConfig(name="files", type="stdio", command=("x",))
    server = MCPServerWithOrigin(config, "global", tmp_path / "mcp.json")

    record = store_catalog(nexus_home, server, [ToolDefinition("read", "", {})], (UnusableTool("read", "?"),))

    assert record.usable == ()


@linux
def test_the_commands_name_it(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, mixed={"command": script(), "env": {"TOOLS": json.dumps([GOOD, BAD["no schema"][0]])}})

    tested, listed, doctor = cli("mcp", "test"), cli("mcp", "tools"), cli("doctor")
    rows = json.loads(cli("mcp", "tools", "--json").out)["tools"]

    assert (tested.code, "1 tool, unusable: bad" in tested.out) == (0, True)
    assert "inputSchema: Field required" in listed.out
    assert [(row["tool"], row["status"], row["reason"]) for row in rows] == [
        ("bad", "unusable", "inputSchema: Field required"),
        ("good", "usable", ""),
    ]
    told = "tool 'bad' of server 'mixed' is not offered: inputSchema: Field required [unusable-tool]"
    assert (doctor.code, told in doctor.out) == (1, True)


# The SDK's own server would not send such a list; what writes it is taken a word away.
SDK_SERVER = """
import anyio, mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(ctx, params):
    names = ("good", "bad")
    tools = [mcp_types.Tool(name=name, description="A tool.", input_schema={"type": "object"}) for name in names]
    return mcp_types.ListToolsResult(tools=tools)

async def call_tool(ctx, params):
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=f"ran {params.name}")])

class Forgetful:
    def __init__(self, stream): self.stream = stream
    def __getattr__(self, name): return getattr(self.stream, name)
    async def __aenter__(self): await self.stream.__aenter__(); return self
    async def __aexit__(self, *rest): return await self.stream.__aexit__(*rest)
    async def send(self, item):
        result = getattr(item.message, "result", None) or {}
        for tool in result.get("tools", ()):
            if tool["name"] == "bad": del tool["inputSchema"]["type"]
        await self.stream.send(item)

async def main():
    server = Server("real", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, Forgetful(outgoing), server.create_initialization_options())

anyio.run(main)
"""


@linux
@pytest.mark.slow
def test_the_good_tool_of_a_server_of_the_official_sdk_runs(cli: Cli, nexus_home: Path, tmp_path: Path) -> None:
    file = write_files(tmp_path, {"server.py": SDK_SERVER}) / "server.py"
    define(nexus_home, real=[sys.executable, str(file)])

    tested, called, refused = cli("mcp", "test"), cli("mcp", "call", "real", "good"), cli("mcp", "call", "real", "bad")

    assert "1 tool, unusable: bad" in tested.out
    assert (called.code, called.out) == (0, "ran good\n")
    assert (refused.code, "inputSchema.type: Field required" in refused.err) == (5, True)
    assert survivors(nexus_home) == []
