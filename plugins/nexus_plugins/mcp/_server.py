"""Nexus as an MCP server: its tools, its resources and their handlers."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from nexus_core import NexusError, UnknownNameError, UsageError, __version__, check
from nexus_core.plugin import open_counter, redact
from nexus_core.plugin.dialects import to_json_dict
from nexus_core.plugin.ledgers import excerpt, find_step, redacted_text, search_session
from nexus_core.plugin.memory import format_memory
from nexus_core.plugin.settings import explain
from nexus_core.plugin.text import redact_json
from nexus_plugins.mcp._server_stdio import open_wire
from nexus_plugins.mcp._transport import run_in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core import Nexus
    from nexus_core.plugin import Ledger, Step
    from nexus_core.plugin.ledgers import SessionRecord, StepHit

MAX_SESSIONS = 50
"""Sessions per page."""
DEFAULT_SESSIONS = 20


class PageCursor(NamedTuple):
    """Position in the list of sessions: last changed first, then a digest of the name, which may be secret."""

    before: int
    digest: str

    def __str__(self) -> str:
        return f"{-self.before}:{self.digest}"


def list_sessions(nexus: Nexus, given: Mapping[str, Any]) -> object:
    """Return a page of sessions and the cursor of the next page, or "" after the last.

    A session that changes between two pages moves to the front: it may be listed twice, but no other is skipped.

    Raises:
        UsageError: The cursor `after` is invalid.
    """
    after = _parse_cursor(given["after"]) if given.get("after") else None
    limit = min(int(given.get("limit") or DEFAULT_SESSIONS), MAX_SESSIONS)
    found = sorted((each for each in nexus.ledger.sessions() if _is_in_directory(each, nexus.cwd)), key=_build_cursor)
    rest = [each for each in found if after is None or _build_cursor(each) > after]
    page = rest[:limit]
    following = str(_build_cursor(page[-1])) if len(rest) > len(page) else ""
    return {"total": len(found), "sessions": [redact_json(_describe_session(each)) for each in page], "next": following}


def _build_cursor(session: SessionRecord) -> PageCursor:
    return PageCursor(-session.updated, hashlib.sha256(session.label.encode("utf-8", "surrogatepass")).hexdigest()[:16])


def _parse_cursor(after: str) -> PageCursor:
    match = re.fullmatch(r"(-?[0-9]{1,20}):([0-9a-f]{16})", after)
    if match is None:
        raise UsageError(
            f"{after!r} is not a place to continue from", hint="'after' takes the 'next' of the page before"
        )
    return PageCursor(-int(match[1]), match[2])


def _is_in_directory(session: SessionRecord, directory: Path) -> bool:
    """Return True if a session's working directory is the directory or below it."""
    cwd = session.payload.cwd
    return cwd is not None and Path(cwd).is_relative_to(directory)


def _describe_session(session: SessionRecord) -> dict[str, object]:
    return {
        "session": session.label,
        "directory": session.payload.cwd or "",
        "model": session.payload.model or "",
        "begun": _format_time(session.created),
        "changed": _format_time(session.updated),
        "open": session.open_turn is not None,
        "forked_from": session.origin,
        "worker_of": session.payload.parent or "",
    }


def _format_time(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # an imported session may hold any number
        return ""


MAX_STEPS = 50
"""Steps per result."""
MAX_EXCERPT_CHARACTERS = 4_000
"""Characters of one message in a search result, around the match."""
MAX_READ_CHARACTERS = 100_000
"""Characters in a result of `read_steps`, divided equally among the messages."""


class ServedTool(NamedTuple):
    """A tool of this server: description, JSON Schema of its arguments, and implementation."""

    description: str
    properties: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    run: Callable[[Nexus, Mapping[str, Any]], object]

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


def _assemble_context(nexus: Nexus, given: Mapping[str, Any]) -> object:
    fields = {name: given[name] for name in ("message", "session", "model", "role") if given.get(name)}
    context = nexus.assemble(nexus.request(**fields), announce=False)
    api = given.get("api") or "openai"
    request = redact_json(to_json_dict(context.to(api)))  # a request for an SDK may hold bytes
    return {"request": request, "tokens": context.token_budget.total, "window": context.token_budget.limit}


def _explain_source(nexus: Nexus, given: Mapping[str, Any]) -> object:
    found = explain(
        nexus.static_context(),
        given["query"],
        load_in=lambda directory: nexus.context().load_for(directory).loaded,
    )
    return {"explanations": [each.to_json() for each in found]}


def _search_history(nexus: Nexus, given: Mapping[str, Any]) -> object:
    """Return the steps of a session with a text in them; else those that fit it best, there or of sessions here."""
    text: str = given["text"]
    if not text.strip():
        raise UsageError("there is nothing to look for", hint="text must not be empty")
    session = _find_session(nexus.ledger, given["session"]) if given.get("session") else None
    limit = min(int(given.get("limit") or 20), MAX_STEPS)
    found = session and search_session(nexus.ledger, session, text, limit=limit, with_forgotten=False)
    if session is not None and found:
        cut = partial(excerpt, sought=text, most=MAX_EXCERPT_CHARACTERS)
        return {"session": session.label, "steps": [_describe_step(step, cut) for step in found]}
    result = nexus.search(
        text,
        session=session.label if session else None,
        directory=None if session else str(nexus.cwd),
        limit=limit,
        snippet_characters=MAX_EXCERPT_CHARACTERS,
    )
    return {
        **({"session": session.label} if session else {}),
        "steps": [_describe_hit(hit) for hit in result.strong_hits],
        "coverage": result.coverage,
        "unknown_names": list(result.unknown_names),
        "unknown_words": list(result.unknown_words),
    }


def _describe_hit(hit: StepHit) -> dict[str, object]:
    messages = [{"role": hit.role, "text": hit.text}]
    when = datetime.fromtimestamp(hit.created / 1000, UTC).isoformat(timespec="seconds")
    about = {"session": hit.session, "id": hit.step, "kind": hit.kind, "turn": hit.turn, "created": when}
    return {**about, "score": hit.score, "messages": messages}


def _recall(nexus: Nexus, given: Mapping[str, Any]) -> object:
    """Return notes, rules, guides and turns of other sessions for a query, each as a model reads it in a call."""
    query: str = given["query"]
    if not query.strip():
        raise UsageError("there is nothing to look for", hint="query must not be empty")
    found = nexus.recall(query, session=given.get("session") or "", limit=min(int(given.get("limit") or 8), MAX_STEPS))
    memories = [
        {"id": each.id, "kind": each.kind, "source": each.place, "reason": each.reason, "text": format_memory(each)}
        for each in found.memories
    ]
    return redact_json({"memories": memories, "findings": [each.message for each in found.findings]})


def _read_steps(nexus: Nexus, given: Mapping[str, Any]) -> object:
    session = _find_session(nexus.ledger, given["session"])
    limit = min(int(given.get("limit") or 20), MAX_STEPS)
    until: str = given.get("until") or ""
    tip = nexus.ledger.step(session.tip) if session.tip else None
    last = find_step(nexus.ledger, until, tip) if until and tip else tip
    if until and last is None:
        raise UsageError(f"there is no step {until!r}", hint="search_history and read_steps tell the ids of steps")
    steps = nexus.ledger.thread(last.id, limit=limit) if last else []
    share = MAX_READ_CHARACTERS // max(1, sum(len(step.messages) for step in steps))
    cut = partial(_cut_from, int(given.get("offset") or 0), share)
    return {"session": session.label, "steps": [_describe_step(step, cut) for step in steps]}


def _count_tokens(nexus: Nexus, given: Mapping[str, Any]) -> object:
    settings = nexus.load().settings
    model = settings.model_id(str(given.get("model") or ""))
    counter = open_counter(model, host=nexus.host, settings=settings)
    return {"model": model, "counter": counter.name, "exact": counter.exact, **counter.measure(given["text"])._asdict()}


def _check_messages(nexus: Nexus, given: Mapping[str, Any]) -> object:
    found = check(given["messages"], given.get("api") or None, host=nexus.host)
    return {"findings": [{"code": each.code, "message": each.message, "index": each.index} for each in found]}


_TEXT_SCHEMA = {"type": "string"}
_API_SCHEMA = {
    "type": "string",
    "description": "openai, responses, anthropic, gemini, neutral, or what a plugin offers.",
}
_LIMIT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MAX_STEPS}
_SESSION_SCHEMA = {"type": "string", "description": "The session's name; list_sessions lists them."}

SERVED_TOOLS = {
    "assemble_context": ServedTool(
        "The request that a model would be sent here: system prompt, history of a session, message and tools, made to "
        "fit, and without keys and passwords. Nothing is written and no model is called.",
        {
            "message": _TEXT_SCHEMA,
            "session": _SESSION_SCHEMA,
            "model": _TEXT_SCHEMA,
            "role": _TEXT_SCHEMA,
            "api": _API_SCHEMA,
        },
        (),
        _assemble_context,
    ),
    "explain_source": ServedTool(
        "Where a setting (provider.model), a file or a sentence of the prompt comes from, and what it overrode.",
        {"query": _TEXT_SCHEMA},
        ("query",),
        _explain_source,
    ),
    "list_sessions": ServedTool(
        "The sessions that work in this directory or further down, those changed last first, without archived ones. "
        "Where there are more, `next` says what to call it again with as `after`.",
        {
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_SESSIONS},
            "after": {"type": "string", "description": "What `next` said of the page before."},
        },
        (),
        list_sessions,
    ),
    "search_history": ServedTool(
        "What was said before: the steps that fit a question best by its words, of all sessions that work in this "
        "directory or further down, or of one session, where steps with the very text come first. Ask again in "
        "other words if the answer is not there; `coverage` says how much of the question the best step has, "
        "`unknown_names` and `unknown_words` what occurs nowhere. Of a long message it has "
        f"{MAX_EXCERPT_CHARACTERS:,} characters.",
        {"session": _SESSION_SCHEMA, "text": _TEXT_SCHEMA, "limit": _LIMIT_SCHEMA},
        ("text",),
        _search_history,
    ),
    "recall": ServedTool(
        "Notes, rules of the user, guides and turns of earlier sessions that fit a question, each with its source. "
        "What the user asked to forget is not among them. Ask again in other words if nothing fits.",
        {
            "query": {"type": "string", "description": "A question, or words that the answer may have."},
            "session": {"type": "string", "description": "The session that asks: its own turns are left out."},
            "limit": _LIMIT_SCHEMA,
        },
        ("query",),
        _recall,
    ),
    "read_steps": ServedTool(
        "Steps of a session, oldest first: the newest, or those up to a step. "
        f"All of it has {MAX_READ_CHARACTERS:,} characters, the same share for each message; one that is cut says "
        "how much is left, and fewer steps or an offset show it.",
        {
            "session": _SESSION_SCHEMA,
            "until": {"type": "string", "description": "The id of a step, or the part of it that a summary shows."},
            "limit": _LIMIT_SCHEMA,
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "How many characters of each message to pass over.",
            },
        },
        ("session",),
        _read_steps,
    ),
    "count_tokens": ServedTool(
        "How many tokens a text takes, by which counter, and whether that is exact.",
        {"text": _TEXT_SCHEMA, "model": _TEXT_SCHEMA},
        ("text",),
        _count_tokens,
    ),
    "check_messages": ServedTool(
        "What an API would refuse in a list of messages.",
        {"messages": {"type": "array", "items": {"type": "object"}}, "api": _API_SCHEMA},
        ("messages",),
        _check_messages,
    ),
}
"""The tools by name, in the order of the list."""


def _find_session(ledger: Ledger, label: str) -> SessionRecord:
    record = ledger.session(label)
    if record is None:
        raise UnknownNameError("session", label, (each.label for each in ledger.sessions()))
    return record


def _describe_step(step: Step, cut: Callable[[str], str]) -> dict[str, object]:
    """Return a step without secrets, with the text of its messages shortened by `cut`."""
    messages = [{"role": message.role, "text": cut(redacted_text(message))} for message in step.messages]
    return {"id": step.id, "kind": step.kind, "turn": step.turn, "position": step.position, "messages": messages}


def _cut_from(offset: int, limit: int, text: str) -> str:
    """Return at most `limit` characters of a text from an offset, and how many are left."""
    left = len(text) - offset - limit
    return text[offset : offset + limit] + (f"… [{left:,} more characters]" if left > 0 else "")


T = TypeVar("T")
PROMPT_URI = "nexus://prompt"
LAYER_URI_PREFIX = "nexus://layers/"
MARKDOWN_MIME = "text/markdown"
READ_ONLY_ANNOTATIONS = mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Annotations of all tools, so that clients need not ask the user each time."""
MAX_ERROR_CHARACTERS = 1_000
"""Characters of an error message."""


async def serve_client(nexus: Nexus, source: int, sink: int) -> None:
    """Serve one client until it disconnects.

    Args:
        nexus: The Nexus to serve.
        source: File descriptor of the requests; no other code may read or close it.
        sink: File descriptor of the responses; no other code may write to it.
    """
    async with open_wire(source, sink) as (incoming, outgoing):
        server = build_server(nexus)
        await server.run(incoming, outgoing, server.create_initialization_options())


def build_server(nexus: Nexus) -> Server[Any]:
    """Return a server of the official SDK with the handlers of a Nexus."""
    handlers = RequestHandlers(nexus)
    return Server(
        "nexus",
        version=__version__,
        instructions="What Nexus knows of this directory: the prompt, where its parts come from, and past sessions.",
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


class RequestHandlers:
    """Handlers of a client's requests. They run in threads, one at a time."""

    def __init__(self, nexus: Nexus) -> None:
        self._nexus = nexus
        self._lock = anyio.Lock()
        self._thread_lock = threading.Lock()  # a thread may outlive its cancelled request

    async def list_tools(self, _ctx: object, _params: object) -> mcp_types.ListToolsResult:
        """Return the tools of this server."""
        tools = [
            mcp_types.Tool(
                name=name, description=served.description, input_schema=served.schema, annotations=READ_ONLY_ANNOTATIONS
            )
            for name, served in SERVED_TOOLS.items()
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def call_tool(self, _ctx: object, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        """Run a tool and return its result."""
        text, failed = await self._run_serially(partial(run_tool, self._nexus, params.name, params.arguments or {}))
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)], is_error=failed)

    async def list_resources(self, _ctx: object, _params: object) -> mcp_types.ListResourcesResult:
        """Return the resources: the prompt, and each layer."""
        names = await self._run_serially(lambda: [layer.name for layer in self._nexus.load().layers])
        listed = [(PROMPT_URI, "prompt", "The labelled system prompt.")]
        listed += ((LAYER_URI_PREFIX + quote(name, safe=""), name, f"The texts of layer {name}.") for name in names)
        found = [
            mcp_types.Resource(uri=uri, name=name, description=description, mime_type=MARKDOWN_MIME)
            for uri, name, description in listed
        ]
        return mcp_types.ListResourcesResult(resources=found)

    async def read_resource(
        self, _ctx: object, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        """Return the text of a resource, without secrets."""
        uri = str(params.uri)
        text = redact(await self._run_serially(partial(read_resource_text, self._nexus, uri))).text
        contents = mcp_types.TextResourceContents(uri=uri, text=text, mime_type=MARKDOWN_MIME)
        return mcp_types.ReadResourceResult(contents=[contents])

    async def list_templates(self, _ctx: object, _params: object) -> mcp_types.ListResourceTemplatesResult:
        """Return no templates. Clients ask for them, and log an error if the method is missing."""
        return mcp_types.ListResourceTemplatesResult(resource_templates=[])

    async def _run_serially(self, work: Callable[[], T]) -> T:
        async with self._lock:
            try:
                return await run_in_daemon_thread(partial(self._run_locked, work))
            except NexusError as error:
                code = mcp_types.INVALID_PARAMS if isinstance(error, UsageError) else mcp_types.INTERNAL_ERROR
                raise MCPError(code=code, message=_shorten_error(str(error))) from None

    def _run_locked(self, work: Callable[[], T]) -> T:
        with self._thread_lock:
            return work()


def run_tool(nexus: Nexus, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """Run a tool of this server and return its result as JSON, or an error text and True."""
    served = SERVED_TOOLS.get(name)
    if served is None:
        return _shorten_error(str(UnknownNameError("tool", name, SERVED_TOOLS))), True
    try:
        if message := _find_argument_error(served.schema, arguments):
            return _shorten_error(message), True
        return json.dumps(redact_json(served.run(nexus, arguments)), ensure_ascii=False, default=str), False
    except NexusError as error:
        return _shorten_error(str(error)), True
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and the client gets a result
        return _shorten_error(f"{name} failed with {type(error).__name__}: {error}"), True


def _shorten_error(message: str) -> str:
    """Return an error message without secrets, truncated if it is long."""
    message = redact(message).text
    return message if len(message) <= MAX_ERROR_CHARACTERS else f"{message[:MAX_ERROR_CHARACTERS]}…"


def read_resource_text(nexus: Nexus, uri: str) -> str:
    """Return the text of a resource.

    Raises:
        UnknownNameError: There is no resource with that URI.
    """
    if uri == PROMPT_URI:
        return nexus.system_prompt()
    loaded = nexus.load()
    known = {LAYER_URI_PREFIX + quote(layer.name, safe=""): layer for layer in loaded.layers}
    layer = known.get(uri) or known.get(LAYER_URI_PREFIX + quote(unquote(uri.removeprefix(LAYER_URI_PREFIX)), safe=""))
    if layer is None:
        raise UnknownNameError("resource", uri, [PROMPT_URI, *known])
    return "\n\n".join(f"Source: {text.path}\n\n{text.text}" for text in loaded.texts_of(layer))


def _find_argument_error(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return the first validation error of a tool's arguments, or "" if they are valid."""
    import jsonschema

    errors = jsonschema.Draft202012Validator(dict(schema)).iter_errors(dict(arguments))
    first = next(iter(errors), None)
    return f"{first.json_path}: {first.message}" if first is not None else ""
