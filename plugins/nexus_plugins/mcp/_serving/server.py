"""Nexus as an MCP server, over standard input and output."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import nexus_plugins.mcp._running.quiet  # noqa: F401 - for what it does
from nexus_core import NexusError, UnknownNameError, UsageError, __version__
from nexus_core.plugin import redact, redact_json
from nexus_plugins.mcp._aside import run_aside
from nexus_plugins.mcp._serving.served import SERVED
from nexus_plugins.mcp._serving.wire import open_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core import Nexus

T = TypeVar("T")
PROMPT = "nexus://prompt"
LAYER = "nexus://layers/"
MARKDOWN = "text/markdown"
HARMLESS = mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""What clients are told of all our tools, so that they need not ask a person each time."""
LONGEST_FAULT = 1_000
"""Characters that are told of what is wrong with a request."""


async def serve(nexus: Nexus, source: int, sink: int) -> None:
    """Serve until the client leaves.

    Args:
        nexus: What is served.
        source: The descriptor where the requests come from; nobody else may read or close it.
        sink: The descriptor where the answers go; nobody else may write to it.
    """
    async with open_wire(source, sink) as (incoming, outgoing):
        server = make_server(nexus)
        await server.run(incoming, outgoing, server.create_initialization_options())


def make_server(nexus: Nexus) -> Server[Any]:
    """A server of the official SDK that answers for a Nexus."""
    answers = Answers(nexus)
    return Server(
        "nexus",
        version=__version__,
        instructions="What Nexus knows of this directory: the prompt, where its parts come from, and past sessions.",
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=answers.read_resource,
    )


class Answers:
    """What a client is answered; each answer is made in a thread, one after the other."""

    def __init__(self, nexus: Nexus) -> None:
        self._nexus = nexus
        self._turn = anyio.Lock()
        self._mutex = threading.Lock()  # for a thread whose client no longer waits for it

    async def list_tools(self, _ctx: object, _params: object) -> mcp_types.ListToolsResult:
        """Our tools."""
        tools = [
            mcp_types.Tool(name=name, description=served.description, input_schema=served.schema, annotations=HARMLESS)
            for name, served in SERVED.items()
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def call_tool(self, _ctx: object, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        """What one of them says."""
        text, failed = await self._in_turn(partial(run_tool, self._nexus, params.name, params.arguments or {}))
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)], is_error=failed)

    async def list_resources(self, _ctx: object, _params: object) -> mcp_types.ListResourcesResult:
        """The prompt, and each layer."""
        names = await self._in_turn(lambda: [layer.name for layer in self._nexus.load().layers])
        told = [(PROMPT, "prompt", "The labelled system prompt.")]
        told += ((LAYER + quote(name, safe=""), name, f"The texts of layer {name}.") for name in names)
        found = [
            mcp_types.Resource(uri=uri, name=name, description=description, mime_type=MARKDOWN)
            for uri, name, description in told
        ]
        return mcp_types.ListResourcesResult(resources=found)

    async def read_resource(
        self, _ctx: object, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        """The text of one of them."""
        uri = str(params.uri)
        text = redact(await self._in_turn(partial(resource_text, self._nexus, uri))).text
        contents = mcp_types.TextResourceContents(uri=uri, text=text, mime_type=MARKDOWN)
        return mcp_types.ReadResourceResult(contents=[contents])

    async def list_templates(self, _ctx: object, _params: object) -> mcp_types.ListResourceTemplatesResult:
        """None; clients ask, and log an error where there is no answer."""
        return mcp_types.ListResourceTemplatesResult(resource_templates=[])

    async def _in_turn(self, work: Callable[[], T]) -> T:
        async with self._turn:
            try:
                return await run_aside(partial(self._guarded, work))
            except NexusError as error:
                code = mcp_types.INVALID_PARAMS if isinstance(error, UsageError) else mcp_types.INTERNAL_ERROR
                raise MCPError(code=code, message=_shown(str(error))) from None

    def _guarded(self, work: Callable[[], T]) -> T:
        with self._mutex:
            return work()


def run_tool(nexus: Nexus, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """What a tool of ours answers, as JSON, and whether it failed."""
    served = SERVED.get(name)
    if served is None:
        return _shown(str(UnknownNameError("tool", name, SERVED))), True
    try:
        if fault := _fault(served.schema, arguments):
            return _shown(fault), True
        return json.dumps(redact_json(served.run(nexus, arguments)), ensure_ascii=False, default=str), False
    except NexusError as error:
        return _shown(str(error)), True
    except Exception as error:  # noqa: BLE001 - the client is told, whatever a plugin does
        return _shown(f"{name} failed with {type(error).__name__}: {error}"), True


def _shown(fault: str) -> str:
    """Return a fault without secrets, and not all of it where it is long."""
    fault = redact(fault).text
    return fault if len(fault) <= LONGEST_FAULT else f"{fault[:LONGEST_FAULT]}…"


def resource_text(nexus: Nexus, uri: str) -> str:
    """The text of a resource.

    Raises:
        UnknownNameError: There is none of that address.
    """
    if uri == PROMPT:
        return nexus.system_prompt()
    loaded = nexus.load()
    known = {LAYER + quote(layer.name, safe=""): layer for layer in loaded.layers}
    layer = known.get(uri) or known.get(LAYER + quote(unquote(uri.removeprefix(LAYER)), safe=""))
    if layer is None:
        raise UnknownNameError("resource", uri, [PROMPT, *known])
    return "\n\n".join(f"Source: {text.path}\n\n{text.text}" for text in loaded.texts_of(layer))


def _fault(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call, in words; "" when nothing is."""
    import jsonschema  # noqa: PLC0415 - comes with the SDK, and takes its time

    error = jsonschema.Draft202012Validator(dict(schema)).iter_errors(dict(arguments))
    first = next(iter(error), None)
    return f"{first.json_path}: {first.message}" if first is not None else ""
