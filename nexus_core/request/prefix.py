"""The frozen system prompt and tools of a session: offered, stored, and notices of later changes.

A prefix stays the same bytes from call to call, so that providers find it in their prompt cache. In the ledger, and in
the public API, it is called an epoch. Tools are those of the caller and of plugins, filtered by role, settings and
permissions.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.fields import format_for_error
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.errors import LedgerError, MessageError, UnknownNameError, UsageError
from nexus_core.ledger.codec import compute_blob_digest
from nexus_core.ledger.store import write_json
from nexus_core.ledger.url import without_secret
from nexus_core.request.static_context import StaticContext
from nexus_core.types.base import blake2b
from nexus_core.types.layers import LoadedLayers
from nexus_core.types.messages import TOOL_SCOPES, Tool
from nexus_core.types.prompt import Section, Source, merge_section_data
from nexus_core.types.request import DEFAULT_MODE
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.host.manager import Host
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import AgentRole
    from nexus_core.types.request import AgentMode, Request

CALLER_SOURCE = Source(uri="caller:")
_SCOPE, _PERMISSIONS, _OUTER = "scope", "permissions", "_outer"


class ToolOffer(NamedTuple):
    """A tool and the rule that keeps it from the model, if any.

    Attributes:
        tool: The tool.
        source: The caller, or the plugin that offers it.
        refusal: The rule that keeps it from the model; "" if it is sent.
    """

    tool: Tool
    source: Source
    refusal: str = ""


def read_tools(tools: Iterable[object], api: str, dialects: DialectRegistry) -> tuple[Tool, ...]:
    """Parse tool definitions in the format of any API.

    `api` decides if a definition fits several.

    A definition may have a scope (`"scope": "messaging"`) and the permissions it needs (`"permissions": ["mail"]`).
    Both are for Nexus and are not sent.

    Raises:
        MessageError: A definition is invalid, or a name is missing or repeated.
        UnknownNameError: A scope is unknown.
        UsageError: `permissions` is not a list of texts.
    """
    read = tuple(normalize_tool(_read_nexus_fields(tool)) for tool in dialects.read_tools(tools, api))
    _require_names(read)
    return read


def _read_nexus_fields(tool: Tool) -> Tool:
    """Return a tool with the scope and permissions of its definition.

    They may be at either level, if the API nests definitions.
    """
    outer = tool.extra.get(_OUTER)
    outer = outer if isinstance(outer, dict) else {}
    scope = tool.extra.get(_SCOPE, outer.get(_SCOPE))
    needed = tool.extra.get(_PERMISSIONS, outer.get(_PERMISSIONS))
    names = {_SCOPE} if isinstance(scope, str) else set()
    names |= {_PERMISSIONS} & {*tool.extra, *outer}
    if not names or "_builtin" in tool.extra:
        return tool
    if not isinstance(scope, str):
        scope = tool.scope
    if scope not in TOOL_SCOPES:
        raise UnknownNameError(f"scope of the tool {tool.name!r}:", scope, TOOL_SCOPES)
    extra = {name: value for name, value in tool.extra.items() if name not in (*names, _OUTER)}
    around = {name: value for name, value in outer.items() if name not in names}
    return replace(
        tool,
        scope=scope,
        permissions=tool.permissions if needed is None else _read_permissions(needed, tool.name),
        extra=extra | ({_OUTER: around} if around else {}),
    )


def _read_permissions(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        hint = '"permissions": ["mail"]'
        raise UsageError(f"the permissions of the tool {name!r} must be a list of texts", hint=hint)
    return tuple(value)


def _require_names(tools: Iterable[Tool]) -> None:
    """Raise a MessageError for a missing or repeated name.

    Tools that a provider runs may have none.
    """
    names: set[str] = set()
    for tool in tools:
        if "_builtin" in tool.extra:
            continue
        if not tool.name.strip():
            raise MessageError("a tool has no name", path="tools", hint="a model can only ask for what has one")
        if tool.name in names:
            raise MessageError(
                f"two tools are called {format_for_error(tool.name)}", path="tools", hint="give each its own name"
            )
        names.add(tool.name)


def normalize_tool(tool: Tool) -> Tool:
    """Round-trip a tool through JSON, so that it equals the stored one."""
    # Keys keep the caller's order, because a model reads parameters in the order in which they are written.
    return decode_value(Tool, json.loads(write_json(encode_value(tool), "a tool")))


def offer_tools(
    caller_tools: Iterable[Tool],
    plugin_tools: Iterable[tuple[Tool, str]],
    role: AgentRole,
    settings: Settings,
    granted: Collection[str] | None = None,
) -> tuple[ToolOffer, ...]:
    """Return all tools in a stable order, with the reasons for refusals.

    Args:
        caller_tools: The caller's tools, which come first.
        plugin_tools: Tools of plugins, each with the name of its plugin.
        role: The agent role, which limits scopes.
        settings: Settings of the user and the project, which allow and deny tools.
        granted: The permissions of the agent; None if they are not limited.
    """
    offers = [ToolOffer(tool, CALLER_SOURCE) for tool in caller_tools]
    offers += [
        _offer_plugin_tool(tool, Source(uri=tool.origin or f"plugin:{plugin}", plugin=plugin))
        for tool, plugin in plugin_tools
    ]
    names: set[str] = set()
    checked = []
    for each in offers:
        is_repeated = each.source is not CALLER_SOURCE and each.tool.name in names
        refusal = each.refusal or ("another tool has that name" if is_repeated else "")
        refusal = refusal or _find_refusal(each.tool, role, settings, granted)
        names.add(each.tool.name)
        checked.append(each._replace(refusal=refusal))
    return tuple(checked)


def _offer_plugin_tool(tool: Tool, source: Source) -> ToolOffer:
    """Return the offer of a plugin's tool.

    An invalid tool is refused here, because it would fail the whole call.
    """
    try:
        normalized = normalize_tool(tool)
    except MessageError as error:
        return ToolOffer(Tool(name=tool.name, scope=tool.scope), source, f"{error.what}, at {error.path}")
    nameless = not normalized.name.strip() and "_builtin" not in normalized.extra
    return ToolOffer(normalized, source, "it has no name" if nameless else "")


def list_permitted_tools(offers: Iterable[ToolOffer]) -> tuple[Tool, ...]:
    """Return the tools that are sent to the model."""
    return tuple(each.tool for each in offers if not each.refusal)


def _find_refusal(tool: Tool, role: AgentRole, settings: Settings, granted: Collection[str] | None) -> str:
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    if isinstance(deny, list) and tool.name in deny:
        return "permissions.tools.deny"
    if isinstance(allow, list) and tool.name not in allow:
        return "permissions.tools.allow"
    if tool.scope not in role.scopes:
        return f"role {role.name}"
    missing = next((each for each in tool.permissions if granted is not None and each not in granted), None)
    return "" if missing is None else f"permission {missing}"


FIRST_VERSION = 1
OLD_MODE: AgentMode = "repl"
"""The mode of old stored prefixes, which have none."""
MAX_CACHED_BLOBS = 64
"""Blobs of each type that are cached, and prefixes whose sizes are; then the cache is cleared."""
NOTICE_SECTION = "changed-instructions"
NOTICE_TITLE = "Changed Instructions"
MAX_NOTICE_LINES = 200
"""Lines of a notice about one section."""
MAX_NOTICE_LINE_CHARACTERS = 1000
"""Characters of a line in a notice; a longer line is cut, with the number of missing characters."""
_NOTICE_ORDER = -1
_DIFF_CONTEXT_LINES = 2
_RULES_FILE, _SOUL_FILE = "AGENTS.md", "SOUL.md"
_STORED_SETTINGS: Mapping[str, tuple[str, ...] | None] = {
    "provider": ("provider", "model", "context_window", "options"),
    "models": None,
    "permissions": None,
    "renderer": None,
    "budget": None,
    "truncation": None,
    "cache": None,
    "compaction": ("enabled",),
}
"""The fields of each group that are stored, None for all: no addresses, no names of keys and no commands."""
_HEADERS_OPTION = "extra_headers"
"""Not stored, because it may hold an API key."""


class Prefix(NamedTuple):
    """System prompt and tools, frozen.

    Attributes:
        digest: The digest of the stored prefix.
        system: The system prompt.
        tools: The tools that the model may call.
        key: Mode, role, renderer, permissions, trust and the caller's tools; a change starts a new prefix at once.
        sections_digest: The digest of the sections that the system prompt was rendered from.
        context: Metadata for `AssembledContext.system_context`.
    """

    digest: str
    system: str
    tools: tuple[Tool, ...]
    key: JSON
    sections_digest: str
    context: JSON

    @property
    def caller_tools(self) -> tuple[Tool, ...] | None:
        """The caller's tools; None if they are not stored."""
        tools = self.key.get("tools")
        return tuple(decode_value(Tool, tool) for tool in tools) if isinstance(tools, list) else None

    @property
    def version(self) -> int:
        """The number of this prefix in its session, from 1."""
        workspace = self.context.get("workspace")
        version = workspace.get("version") if isinstance(workspace, dict) else None
        return version if isinstance(version, int) else FIRST_VERSION


class PendingPrefix(NamedTuple):
    """A prefix and the blobs to store first; none for a prefix that continues."""

    prefix: Prefix
    blobs: tuple[bytes, ...] = ()


class MissingBlobError(LedgerError):
    """The ledger lacks a blob that a step refers to."""


class PrefixStore:
    """Reads stored prefixes, sections and settings, and begins new prefixes.

    Args:
        ledger: Returns the ledger.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._prefixes: dict[str, Prefix] = {}
        self._sections: dict[str, tuple[Section, ...]] = {}
        self._settings: dict[str, Settings] = {}
        self._pending: tuple[StaticContext, str, int, PendingPrefix] | None = None

    def continue_or_begin(self, before: Prefix | None, static: StaticContext, reloads: int, now: int) -> PendingPrefix:
        """Return the current prefix, or a new one if key or tools have changed.

        Args:
            before: The current prefix; None before the first call.
            static: The current static context of the session.
            reloads: How often the caller requested a new prefix.
            now: The time, in milliseconds since 1970.
        """
        key = {**static.prefix_key, "reloads": reloads}
        if before is not None and before.key == key and before.tools == static.tools:
            return PendingPrefix(before)
        return self.begin(before, static, reloads, now)

    def begin(self, before: Prefix | None, static: StaticContext, reloads: int, now: int) -> PendingPrefix:
        """Return a new prefix of the current static context; arguments as above."""
        key = {**static.prefix_key, "reloads": reloads}
        previous = before.digest if before else ""
        pending = self._pending  # read once: another session may replace it meanwhile
        if pending is None or pending[0] is not static or pending[1:3] != (previous, reloads):
            version = before.version + 1 if before else FIRST_VERSION
            context = build_system_context(static.sections, version=version, now=now)
            content = write_prefix(static.system_prompt, static.tools, key, static.sections_digest, context)
            begun = PendingPrefix(read_prefix(content), (static.sections_blob, content))
            self._pending = pending = static, previous, reloads, begun
        return pending[3]

    def store(self, blobs: tuple[bytes, ...]) -> None:
        """Store the blobs that a step is going to refer to."""
        if blobs:
            self._ledger().put_blobs(blobs)

    def read(self, digest: str) -> Prefix:
        """Return the prefix with a digest.

        Raises:
            LedgerError: The ledger lacks it.
        """
        prefix = self._prefixes.get(digest)
        if prefix is None:
            prefix = read_prefix(self._read_blob(digest, "the system prompt, with the tools, of this call"))
            _limit_cache(self._prefixes)
            self._prefixes[digest] = prefix
        return prefix

    def find(self, digest: str, sections_digest: str = "") -> Prefix | None:
        """Return the prefix with a digest; None if there is none or a blob is gone.

        Args:
            digest: The digest of the prefix; "" before the first call.
            sections_digest: The digest of the sections last sent, which must exist too; "" for those of the prefix.
        """
        if not digest:
            return None
        try:
            prefix = self.read(digest)
            self.read_sections(sections_digest or prefix.sections_digest)
        except MissingBlobError:
            return None
        return prefix

    def read_sections(self, digest: str) -> tuple[Section, ...]:
        """Return the sections with a digest; none for ""."""
        if not digest:
            return ()
        sections = self._sections.get(digest)
        if sections is None:
            sections = read_sections(self._read_blob(digest, "a list of the sections that were sent"))
            _limit_cache(self._sections)
            self._sections[digest] = sections
        return sections

    def read_settings(self, digest: str) -> Settings:
        """Return the settings with a digest."""
        settings = self._settings.get(digest)
        if settings is None:
            settings = read_settings(self._read_blob(digest, "a record of the settings of this call"))
            _limit_cache(self._settings)
            self._settings[digest] = settings
        return settings

    def _read_blob(self, digest: str, what: str) -> bytes:
        ledger = self._ledger()
        content = ledger.blob(digest)
        if content is None:
            hint = "no command brings it back; the next question starts a new one; `nexus ledger verify` lists all"
            raise MissingBlobError(
                f"{what} is gone: there is no blob {digest}", where=without_secret(ledger.url), hint=hint
            )
        return content


def _limit_cache(cache: dict[str, Any]) -> None:
    if len(cache) >= MAX_CACHED_BLOBS:
        cache.clear()


def build_system_context(sections: Sequence[Section], *, version: int, now: int) -> JSON:
    """Return the metadata of a prefix for `AssembledContext.system_context`.

    Args:
        sections: The static sections; their `data` is merged into the result.
        version: The number of the prefix in its session, from 1.
        now: The time, in milliseconds since 1970.
    """
    defaults: dict[str, dict[str, object]] = {
        "workspace": {"agentsMdHash": _compute_file_digest(sections, _RULES_FILE), "version": version},
        "persona": {"id": None, "soulHash": _compute_file_digest(sections, _SOUL_FILE)},
        "nexusEnv": {"capabilityCount": 0, "snapshotAt": now},
    }
    section_data = merge_section_data(sections)
    groups = {group: {**fields, **_get_group(section_data, group)} for group, fields in defaults.items()}
    return {**groups, **{group: section_data[group] for group in section_data if group not in defaults}, "memory": None}


def _get_group(section_data: JSON, name: str) -> dict[str, object]:
    group = section_data.get(name)
    return dict(group) if isinstance(group, dict) else {}


def _compute_file_digest(sections: Sequence[Section], file: str) -> str | None:
    texts = [
        section.text
        for section in sections
        if section.source and section.source.uri.endswith(f"/{file}") and section.source.is_file
    ]
    if not texts:
        return None
    return blake2b("\n\n".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# ---- stored form ----------------------------------------------------------------------------------------------------


def write_prefix(system: str, tools: Iterable[Tool], key: JSON, sections_digest: str, context: JSON) -> bytes:
    """Serialize a prefix."""
    body = {
        "system": system,
        "tools": [encode_value(tool) for tool in tools],
        "basis": key,
        "view": sections_digest,
        "context": context,
    }
    return write_json(body, "an epoch").encode()


def read_prefix(content: bytes) -> Prefix:
    """Parse a stored prefix."""
    body = json.loads(content)
    return Prefix(
        compute_blob_digest(content),
        body["system"],
        tuple(decode_value(Tool, tool) for tool in body["tools"]),
        body.get("basis", {}),
        body.get("view", ""),
        body.get("context", {}),
    )


def write_sections(sections: Iterable[Section]) -> bytes:
    """Serialize sections."""
    return write_json([_section_to_json(section) for section in sections], "a section").encode()


def _section_to_json(section: Section) -> dict[str, object]:
    body: dict[str, object] = {name: getattr(section, name) for name in ("id", "title", "kind", "order", "text")}
    if section.kind == "memory" and section.data:  # why it was recalled
        body["data"] = dict(section.data)
    return body if section.source is None else {**body, "source": asdict(section.source)}


def read_sections(content: bytes) -> tuple[Section, ...]:
    """Parse stored sections."""
    return tuple(_section_from_json(section) for section in json.loads(content))


def _section_from_json(body: dict[str, object]) -> Section:
    source = body.pop("source", None)
    if isinstance(source, dict):
        lines = source.pop("lines", None)
        source = Source(**source, lines=tuple(lines) if lines else None)
    return Section(**body, source=source)  # type: ignore[arg-type] # as `_section_to_json` has stored it


def write_settings(settings: Settings) -> bytes:
    """Serialize the settings that affect calls."""
    stored = {name: _select_fields(settings.value.get(name), fields) for name, fields in _STORED_SETTINGS.items()}
    return write_json({name: value for name, value in stored.items() if value}, "a setting").encode()


def _select_fields(group: object, fields: tuple[str, ...] | None) -> object:
    if not isinstance(group, dict):
        return group if fields is None else None
    stored: dict[str, Any] = {name: value for name, value in group.items() if fields is None or name in fields}
    options = stored.get("options")
    if isinstance(options, dict) and _HEADERS_OPTION in options:
        stored["options"] = {name: value for name, value in options.items() if name != _HEADERS_OPTION}
    return stored


def read_settings(content: bytes) -> Settings:
    """Parse stored settings."""
    return Settings(json.loads(content))


# ---- change notices -------------------------------------------------------------------------------------------------


def build_change_notice(sent: Sequence[Section], now: Sequence[Section]) -> Section | None:
    """Return a section that lists what has changed; None if nothing has.

    Args:
        sent: The sections that the model was last sent.
        now: The current sections.
    """
    changes = "\n\n".join(_describe_changes(sent, now))
    if not changes:
        return None
    text = f"The instructions at the beginning have changed. From now on, this applies:\n\n{changes}"
    is_user_level = all(section.source is None or section.source.trust == "user" for section in (*sent, *now))
    source = Source(uri="plugin:nexus", trust="user" if is_user_level else "project")
    return Section(NOTICE_SECTION, title=NOTICE_TITLE, text=text, kind="event", order=_NOTICE_ORDER, source=source)


def _describe_changes(sent: Sequence[Section], now: Sequence[Section]) -> Iterator[str]:
    for before, after in find_changed_sections(sent, now):
        section = after or before
        if section is None:
            continue
        name = f"{section.title} ({section.source.uri})" if section.source and section.source.is_file else section.title
        if after is None:
            yield f"{name}: removed; it no longer applies."
        elif before is None:
            yield f"{name}: new\n{_limit_lines(after.text.splitlines(), name)}"
        else:
            lines = unified_diff(before.text.splitlines(), after.text.splitlines(), n=_DIFF_CONTEXT_LINES, lineterm="")
            yield f"{name}: changed\n{_limit_lines(list(lines)[2:], name)}"  # without the two lines of file names


def _limit_lines(lines: Sequence[str], name: str) -> str:
    shown = [
        line if len(line) <= MAX_NOTICE_LINE_CHARACTERS else _cut_line(line, name) for line in lines[:MAX_NOTICE_LINES]
    ]
    if len(lines) > MAX_NOTICE_LINES:
        shown.append(f"[… {len(lines) - MAX_NOTICE_LINES:,} more lines of {name} …]")
    return "\n".join(shown)


def _cut_line(line: str, name: str) -> str:
    left = len(line) - MAX_NOTICE_LINE_CHARACTERS
    return f"{line[:MAX_NOTICE_LINE_CHARACTERS]} [… {left:,} more characters of this line of {name} …]"


def find_changed_sections(
    sent: Iterable[Section], now: Iterable[Section]
) -> Iterator[tuple[Section | None, Section | None]]:
    """Yield each changed section as (before, after), with None if missing.

    Sections come in the order of the prompt, removed ones last.
    """
    before, after = _index_sections(sent), _index_sections(now)
    for key, section in after.items():
        if key not in before or before[key].text != section.text:
            yield before.get(key), section
    yield from ((section, None) for key, section in before.items() if key not in after)


def _index_sections(sections: Iterable[Section]) -> dict[tuple[str, str, int], Section]:
    """Return sections by name, title and a number among equals.

    A section keeps its key when it moves.
    """
    indexed: dict[tuple[str, str, int], Section] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for section in sections:
        key = _get_section_name(section), section.title
        indexed[*key, counts[key]] = section
        counts[key] += 1
    return indexed


def _get_section_name(section: Section) -> str:
    """Return the file of a section, or its plugin and id.

    Two plugins may use the same id.
    """
    if section.source is None:
        return section.id
    return section.source.uri if section.source.is_file else f"{section.source.plugin}:{section.id}"


# ---- sizes ----------------------------------------------------------------------------------------------------------


class StoredStaticContext(StaticContext):
    """Static context of a stored prefix.

    It loads no layers, so no project setting that needs approval takes effect.

    Args:
        request: The request, as the prefix has it.
        settings: The stored settings.
        prefix: The stored prefix.
        sections: The sections that the model was last sent.
        host: The plugin manager.
    """

    def __init__(
        self, request: Request, settings: Settings, prefix: Prefix, sections: Iterable[Section], host: Host
    ) -> None:
        super().__init__(request, LoadedLayers(settings=settings), (), host)
        permissions = prefix.key.get("permissions")
        self._permissions = tuple(map(str, permissions)) if isinstance(permissions, list) else super().permissions
        self.sections = tuple(sections)
        self.tool_offers = tuple(ToolOffer(tool, CALLER_SOURCE) for tool in prefix.tools)
        self.prefix_key = {name: value for name, value in prefix.key.items() if name != "reloads"}

    @property
    def permissions(self) -> tuple[str, ...]:
        """The stored permissions."""
        return self._permissions


def prefix_matches(prefix: Prefix, request: Request) -> bool:
    """True if a prefix was built for the agent options of a request."""
    key, permissions = prefix.key, prefix.key.get("permissions")
    return (
        key.get("role") == request.role
        and request.renderer in ("", key.get("renderer"))
        and isinstance(permissions, list)
        and permissions[1:] == list(request.permissions or ())
        and key.get("system_prompt", "") == request.system_prompt
        and key.get("task") == request.task
        and _serves_mode(key.get("mode"), request.mode)
        and key.get("skills") == (None if request.skills is None else list(request.skills))
        and key.get("tools") == [encode_value(tool) for tool in request.tools or ()]
    )


def _serves_mode(prefix_mode: object, wanted: AgentMode) -> bool:
    """True if a prefix serves a mode; old ones without a mode serve two."""
    return prefix_mode == wanted if prefix_mode is not None else wanted in (DEFAULT_MODE, OLD_MODE)
