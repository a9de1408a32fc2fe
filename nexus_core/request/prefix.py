"""What is frozen so that every call begins with the same bytes, and what the model has been told since."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.dialects.requests import count_message_bytes, count_tool_bytes
from nexus_core.errors import LedgerError
from nexus_core.ledger.codec import compute_blob_digest
from nexus_core.ledger.json_text import write_json
from nexus_core.ledger.url import without_secret
from nexus_core.request.placements import place_static
from nexus_core.tokens.messages import count_tools
from nexus_core.types.digest import blake2b
from nexus_core.types.messages import Message, Tool
from nexus_core.types.prompt import Section, Source, merge_section_data
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.request.static_context import StaticContext
    from nexus_core.request.tools import ToolOffer
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import Placement
    from nexus_core.types.request import AgentMode

FIRST_VERSION = 1
OLD_MODE: AgentMode = "repl"
"""The mode of epochs that do not name any: sessions without a mode once worked in this one."""


class Prefix(NamedTuple):
    """System prompt and tools.

    Attributes:
        digest: Its address in the ledger.
        system: The system prompt.
        tools: What the model may ask for.
        key: What ends it at once when it changes: mode, role, renderer, permissions, trust, the caller's tools.
        sections_digest: The address of the sections it was made of.
        context: What it was put together from, as it is written down.
    """

    digest: str
    system: str
    tools: tuple[Tool, ...]
    key: JSON
    sections_digest: str
    context: JSON

    @property
    def caller_tools(self) -> tuple[Tool, ...] | None:
        """The caller's tools; None where nothing is known about them."""
        given = self.key.get("tools")
        return tuple(decode_value(Tool, tool) for tool in given) if isinstance(given, list) else None

    @property
    def version(self) -> int:
        """How many epochs there were, with this one."""
        workspace = self.context.get("workspace")
        version = workspace.get("version") if isinstance(workspace, dict) else None
        return version if isinstance(version, int) else FIRST_VERSION


def write_prefix(system: str, tools: Iterable[Tool], basis: JSON, view: str, context: JSON) -> bytes:
    """An epoch as it is stored."""
    body = {
        "system": system,
        "tools": [encode_value(tool) for tool in tools],
        "basis": basis,
        "view": view,
        "context": context,
    }
    return write_json(body, "an epoch").encode()


def read_prefix(content: bytes) -> Prefix:
    """An epoch as it was stored."""
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
    """Sections as they are stored."""
    return write_json([_written(section) for section in sections], "a section").encode()


def read_sections(content: bytes) -> tuple[Section, ...]:
    """Sections as they were stored."""
    return tuple(_read(section) for section in json.loads(content))


def _written(section: Section) -> dict[str, object]:
    written: dict[str, object] = {name: getattr(section, name) for name in ("id", "title", "kind", "order", "text")}
    return written if section.source is None else {**written, "source": asdict(section.source)}


def _read(body: dict[str, object]) -> Section:
    source = body.pop("source", None)
    if isinstance(source, dict):
        lines = source.pop("lines", None)
        source = Source(**source, lines=tuple(lines) if lines else None)
    return Section(**body, source=source)  # type: ignore[arg-type] # as it was written


_RULES, _SOUL = "AGENTS.md", "SOUL.md"


def build_system_context(sections: Sequence[Section], *, version: int, now: int) -> JSON:
    """Digests of the workspace's rules and the agent's soul, who the agent is, what it can do, and since when.

    Args:
        sections: The static zone; what else they know (`Section.data`) stands beside that.
        version: How many epochs the session has had, with this one.
        now: The time, in milliseconds since 1970.
    """
    usual: dict[str, dict[str, object]] = {
        "workspace": {"agentsMdHash": _digest(sections, _RULES), "version": version},
        "persona": {"id": None, "soulHash": _digest(sections, _SOUL)},
        "nexusEnv": {"capabilityCount": 0, "snapshotAt": now},
    }
    known = merge_section_data(sections)
    facts = {group: {**named, **_group(known, group)} for group, named in usual.items()}
    return {**facts, **{group: known[group] for group in known if group not in usual}, "memory": None}


def _group(known: JSON, name: str) -> dict[str, object]:
    group = known.get(name)
    return dict(group) if isinstance(group, dict) else {}


def _digest(sections: Sequence[Section], file: str) -> str | None:
    texts = [
        section.text
        for section in sections
        if section.source and section.source.is_file and section.source.uri.endswith(f"/{file}")
    ]
    if not texts:
        return None
    return blake2b("\n\n".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_GROUPS: Mapping[str, tuple[str, ...] | None] = {
    "provider": ("provider", "model", "context_window", "options"),
    "models": None,
    "permissions": None,
    "renderer": None,
    "budget": None,
    "truncation": None,
    "cache": None,
    "compaction": ("enabled",),
}
"""What is kept of each group, None for all of it: neither addresses nor names of keys, and nothing that is run."""
_HEADERS = "extra_headers"
"""The option that may hold a key."""


def write_settings(settings: Settings) -> bytes:
    """What is kept of settings."""
    kept = {name: _some(settings.get(name), fields) for name, fields in _GROUPS.items()}
    return write_json({name: value for name, value in kept.items() if value}, "a setting").encode()


def read_settings(content: bytes) -> Settings:
    """Settings that say what was kept, and nothing else."""
    return Settings(json.loads(content))


def _some(group: object, fields: tuple[str, ...] | None) -> object:
    if not isinstance(group, dict):
        return group if fields is None else None
    kept: dict[str, Any] = {name: value for name, value in group.items() if fields is None or name in fields}
    options = kept.get("options")
    if isinstance(options, dict) and _HEADERS in options:
        kept["options"] = {name: value for name, value in options.items() if name != _HEADERS}
    return kept


NOTICE_SECTION = "changed-instructions"
NOTICE_TITLE = "Changed Instructions"
MAX_NOTICE_LINES = 200
"""A notice has no more lines than this about one section."""
MAX_NOTICE_LINE_CHARACTERS = 1000
"""Characters of a line that a notice repeats; of a longer one it says how much is missing, and where to read it."""
_ORDER = -1
_CONTEXT = 2


def build_change_notice(told: Sequence[Section], now: Sequence[Section]) -> Section | None:
    """A section that says what is different now; None where nothing is.

    Args:
        told: The sections that the model knows.
        now: The sections as they are.
    """
    changes = "\n\n".join(_changes(told, now))
    if not changes:
        return None
    text = f"The instructions at the beginning have changed. From now on, this applies:\n\n{changes}"
    is_own = all(section.source is None or section.source.trust == "user" for section in (*told, *now))
    source = Source(uri="plugin:nexus", trust="user" if is_own else "project")
    return Section(NOTICE_SECTION, title=NOTICE_TITLE, text=text, kind="event", order=_ORDER, source=source)


def find_changed_sections(
    told: Iterable[Section], now: Iterable[Section]
) -> Iterator[tuple[Section | None, Section | None]]:
    """Of each section that is another now how it was and how it is; None where it was not, or is no more there.

    In the order in which a model reads them, those that are gone at last.
    """
    before, after = _by_key(told), _by_key(now)
    for key, section in after.items():
        if key not in before or before[key].text != section.text:
            yield before.get(key), section
    yield from ((section, None) for key, section in before.items() if key not in after)


def _changes(told: Sequence[Section], now: Sequence[Section]) -> Iterator[str]:
    for before, after in find_changed_sections(told, now):
        section = after or before
        if section is None:
            continue
        name = f"{section.title} ({section.source.uri})" if section.source and section.source.is_file else section.title
        if after is None:
            yield f"{name}: removed; it no longer applies."
        elif before is None:
            yield f"{name}: new\n{_bounded(after.text.splitlines(), name)}"
        else:
            lines = unified_diff(before.text.splitlines(), after.text.splitlines(), n=_CONTEXT, lineterm="")
            yield f"{name}: changed\n{_bounded(list(lines)[2:], name)}"  # without the two lines that name files


def _bounded(lines: Sequence[str], name: str) -> str:
    shown = [line if len(line) <= MAX_NOTICE_LINE_CHARACTERS else _cut(line, name) for line in lines[:MAX_NOTICE_LINES]]
    if len(lines) > MAX_NOTICE_LINES:
        shown.append(f"[… {len(lines) - MAX_NOTICE_LINES:,} more lines of {name} …]")
    return "\n".join(shown)


def _cut(line: str, name: str) -> str:
    left = len(line) - MAX_NOTICE_LINE_CHARACTERS
    return f"{line[:MAX_NOTICE_LINE_CHARACTERS]} [… {left:,} more characters of this line of {name} …]"


def _by_key(sections: Iterable[Section]) -> dict[tuple[str, str, int], Section]:
    """Sections by what makes each the same although it was moved; of several alike, also by which of them it is."""
    found: dict[tuple[str, str, int], Section] = {}
    alike: Counter[tuple[str, str]] = Counter()
    for section in sections:
        key = _name(section), section.title
        found[*key, alike[key]] = section
        alike[key] += 1
    return found


def _name(section: Section) -> str:
    """The file it comes from, or what it is called and by whom; two plugins may call something the same."""
    if section.source is None:
        return section.id
    return section.source.uri if section.source.is_file else f"{section.source.plugin}:{section.id}"


class MissingBlobError(LedgerError):
    """A blob that a step refers to is gone."""


MAX_CACHED_BLOBS = 64
"""So many epochs and views are remembered."""


class PendingPrefix(NamedTuple):
    """An epoch, and what has to be stored before a step may name it; nothing for one that goes on."""

    prefix: Prefix
    blobs: tuple[bytes, ...] = ()


class PrefixStore:
    """Reads epochs and begins new ones.

    Args:
        ledger: Gives the ledger.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._prefixes: dict[str, Prefix] = {}
        self._sections: dict[str, tuple[Section, ...]] = {}
        self._settings: dict[str, Settings] = {}
        self._pending: tuple[StaticContext, str, int, PendingPrefix] | None = None

    def continue_or_begin(self, before: Prefix | None, static: StaticContext, reloads: int, now: int) -> PendingPrefix:
        """The epoch that goes on, or a new one: the first, or because something counts at once.

        Args:
            before: The epoch so far.
            static: What stands around the session now.
            reloads: How often the session was told to begin a new one.
            now: The time, in milliseconds since 1970.
        """
        basis = {**static.prefix_key, "reloads": reloads}
        if before is not None and before.key == basis and before.tools == static.tools:
            return PendingPrefix(before)
        return self.begin(before, static, reloads, now)

    def begin(self, before: Prefix | None, static: StaticContext, reloads: int, now: int) -> PendingPrefix:
        """A new epoch, with everything as it is now; arguments as above."""
        basis = {**static.prefix_key, "reloads": reloads}
        name = before.digest if before else ""
        known = self._pending  # others may begin one at the same time, for another session
        if known is None or known[0] is not static or known[1:3] != (name, reloads):
            version = before.version + 1 if before else FIRST_VERSION
            context = build_system_context(static.sections, version=version, now=now)
            content = write_prefix(static.system_prompt, static.tools, basis, static.sections_digest, context)
            self._pending = known = (
                static,
                name,
                reloads,
                PendingPrefix(read_prefix(content), (static.sections_blob, content)),
            )
        return known[3]

    def store(self, blobs: tuple[bytes, ...]) -> None:
        """Keep what a step is going to name."""
        if blobs:
            self._ledger().put_blobs(blobs)

    def read(self, digest: str) -> Prefix:
        """The epoch of that address.

        Raises:
            LedgerError: It is not there.
        """
        found = self._prefixes.get(digest)
        if found is None:
            found = read_prefix(self._blob(digest, "the system prompt, with the tools, of this call"))
            _remember(self._prefixes, digest, found)
        return found

    def find(self, digest: str, view: str = "") -> Prefix | None:
        """The epoch of that address; None before the first, and where it or what the model was told since is gone.

        Args:
            digest: Its address, "" for none.
            view: The address of the sections that the model was told last, "" for those of the epoch.
        """
        if not digest:
            return None
        try:
            epoch = self.read(digest)
            self.read_sections(view or epoch.sections_digest)
        except MissingBlobError:
            return None
        return epoch

    def read_sections(self, digest: str) -> tuple[Section, ...]:
        """The sections of that address; none where nothing is known about them."""
        if not digest:
            return ()
        found = self._sections.get(digest)
        if found is None:
            found = read_sections(self._blob(digest, "a list of the sections that were sent"))
            _remember(self._sections, digest, found)
        return found

    def read_settings(self, digest: str) -> Settings:
        """The settings of that address."""
        found = self._settings.get(digest)
        if found is None:
            found = read_settings(self._blob(digest, "a record of the settings of this call"))
            _remember(self._settings, digest, found)
        return found

    def _blob(self, digest: str, what: str) -> bytes:
        ledger = self._ledger()
        content = ledger.blob(digest)
        if content is None:
            hint = "no command brings it back; the next question starts a new one; `nexus ledger verify` lists all"
            raise MissingBlobError(
                f"{what} is gone: there is no blob {digest}", where=without_secret(ledger.url), hint=hint
            )
        return content


def _remember(known: dict[str, Any], digest: str, found: object) -> None:
    if len(known) >= MAX_CACHED_BLOBS:
        known.clear()
    known[digest] = found


MAX_CACHED_PREFIXES = 64
"""Prefixes of which sizes are cached; then the cache is cleared."""


class PrefixSizer:
    """Sizes of system prompts and tools by one counter, for all sessions.

    Args:
        counter: The token counter.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self._tokens: dict[str, dict[str, int]] = {}
        self._bytes: dict[str, dict[str, int]] = {}
        self._placements: dict[str, tuple[Sequence[ToolOffer], tuple[Placement, ...]]] = {}

    def count_tokens(self, epoch: Prefix) -> dict[str, int]:
        """Return the tokens of system prompt and tools."""
        known = self._tokens.get(epoch.digest)
        if known is None:
            _make_room(self._tokens)
            system = self.counter.count_messages([Message("system", epoch.system)]) if epoch.system else 0
            self._tokens[epoch.digest] = known = {"system": system, "tools": count_tools(self.counter, epoch.tools)}
        return known

    def count_bytes(self, epoch: Prefix) -> dict[str, int]:
        """Return the bytes of system prompt and tools in a request body."""
        known = self._bytes.get(epoch.digest)
        if known is None:
            _make_room(self._bytes)
            system = count_message_bytes(Message("system", epoch.system)) if epoch.system else 0
            self._bytes[epoch.digest] = known = {"system": system, "tools": count_tool_bytes(epoch.tools)}
        return known

    def place(self, digest: str, sections: Iterable[Section], offered: Sequence[ToolOffer]) -> tuple[Placement, ...]:
        """Return source and tokens of everything in the static zone."""
        known = self._placements.get(digest)
        if known is None or known[0] is not offered:
            _make_room(self._placements)
            self._placements[digest] = known = offered, place_static(sections, offered, self.counter)
        return known[1]


def _make_room(known: dict[str, Any]) -> None:
    if len(known) >= MAX_CACHED_PREFIXES:
        known.clear()
