"""Repair and check of message lists against the rules of an API.

rules.py         the repair rules in their order, and the function that applies them
draft.py         mutable drafts of the messages under repair, and the findings so far
content.py       rules for characters, texts, media, reasoning and cache markers
pairing.py       rules for tool calls and results: pairing, ids, names and positions
order.py         rules for roles, empty messages and instructions
findings.py      codes of everything that check and repair may find
validity.py      quick checks that spare valid messages the full repair
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import prefix_error_path
from nexus_core.dialects.registry import get_default_registry, read_messages
from nexus_core.dialects.requests import build_not_a_list_error
from nexus_core.dialects.tools import find_invalid_tools
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import find_valid_runs
from nexus_core.types.api import ApiRules
from nexus_core.types.base import dataclass
from nexus_core.types.messages import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.repair.validity import ValidRuns
    from nexus_core.host.manager import Host
    from nexus_core.types.api import Dialect
    from nexus_core.types.plugins import Finding

    ListRepair = tuple[list[Message | range], tuple[Finding, ...]]

ID_CODES = frozenset({"missing-id", "invalid-id", "duplicate-id", "unmatched-id"})
"""Findings about calls that get an id which no other call of the list may have."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Messages that an API accepts, and the findings that were repaired.

    Attributes:
        messages: The caller's own objects where they are valid; repaired ones as dicts of the same dialect.
        findings: The problems, in the order of the messages that were given.
    """

    messages: list[Any]
    findings: tuple[Finding, ...]


def repair_messages(
    messages: Iterable[object],
    api: str | ApiRules | None = None,
    *,
    source: str | None = None,
    host: Host | None = None,
) -> RepairResult:
    """Return a list of messages repaired so that an API accepts it. The input is not changed.

    The result stays in the dialect of the list, whatever the API: with `api="anthropic"`, a list of chat messages
    stays one, and can be converted afterwards. Repair is deterministic and idempotent. Tool calls at the end of the
    list may still wait for their results.

    Args:
        messages: Dicts, objects of an API's SDK, or `Message`.
        api: The API whose rules apply: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, one of a plugin, or
            rules; None for the API of the list.
        source: The dialect of the list; None to detect it from the messages.
        host: The plugin manager, for dialects of plugins; None for that of the installed plugins.

    Raises:
        MessageError: An element of the list is not a message; the error names it.
        UnknownNameError: There is no such API.
    """
    return repair_in_dialects(messages, api, source, get_default_registry(host))


def repair_in_dialects(
    messages: Iterable[object], api: str | ApiRules | None, source: str | None, dialects: DialectRegistry
) -> RepairResult:
    """Repair a list of messages with the dialects of a registry."""
    given = require_list(messages)
    dialect = find_source_dialect(given, api, source, dialects)
    pieces, findings = repair_list(given, dialect, api, dialects)
    is_changed = any(isinstance(piece, Message) for piece in pieces)
    as_messages = is_changed and any(isinstance(item, Message) for item in given)
    repaired: list[Any] = []
    for piece in pieces:
        if isinstance(piece, range):
            repaired += given[piece.start : piece.stop]
        elif as_messages:
            repaired.append(piece)
        else:
            repaired += dialect.write([piece])
    return RepairResult(repaired, findings)


def check_tool_definitions(
    tools: Iterable[object] | None, api: str | ApiRules | None, dialect: Dialect, dialects: DialectRegistry
) -> tuple[Finding, ...]:
    """Return what an API would reject in tool definitions, which are in the dialect of the message list."""
    if tools is None:
        return ()
    from nexus_core.history.budget import read_definitions  # loads the plugin host, which most calls do without

    rules = dialect.rules if api is None else find_rules(api, dialects)
    return tuple(find_invalid_tools(read_definitions(tools, dialect.name, dialects), rules))


def find_rules(api: str | ApiRules, dialects: DialectRegistry) -> ApiRules:
    """Return the rules of an API.

    Raises:
        UnknownNameError: There is no such API.
    """
    found = api if isinstance(api, ApiRules) else dialects.rules(api)
    if found is None:
        raise UnknownNameError("API", api, dialects.names)
    return found


def require_list(messages: object) -> list[object]:
    """Return the elements of a list of messages.

    Raises:
        MessageError: It is not a list.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise build_not_a_list_error(messages)
    return list(messages)


def find_source_dialect(
    given: list[object], api: str | ApiRules | None, source: str | None, dialects: DialectRegistry
) -> Dialect:
    """Return the dialect of a list. An ambiguous one, chat or Anthropic's, has that of the target API."""
    if source is not None:
        return dialects.get(source)
    found = dialects.recognise(given)
    is_for_anthropic = (api.name if isinstance(api, ApiRules) else api) == "anthropic"
    if is_for_anthropic and found.name == "openai" and not any(_is_only_of(found, item) for item in given):
        return dialects.get("anthropic")
    return found


def repair_list(
    given: list[object], dialect: Dialect, api: str | ApiRules | None, dialects: DialectRegistry
) -> ListRepair:
    """Repair a list: return index ranges of unchanged elements, new messages between them, and findings."""
    rules = dialect.rules if api is None else find_rules(api, dialects)
    outline = getattr(dialect, "outline", None)
    if outline is not None and rules == dialect.rules:
        found = find_valid_runs(given, outline, rules)
        partly_repaired = _repair_rest(given, dialect, rules, found) if found and found.runs else None
        if partly_repaired is not None:
            return partly_repaired
    repaired = apply_repair_rules(read_messages(dialect, given), rules, listed=dialect.name == rules.name)
    pieces = [message if index is None else range(index, index + 1) for index, message in repaired.messages]
    return pieces, repaired.findings


def _repair_rest(given: list[object], dialect: Dialect, rules: ApiRules, found: ValidRuns) -> ListRepair | None:
    """Repair a list without its valid runs; the first message of each run stays and marks its position.

    Returns:
        None if the valid runs matter for the rest: a call in them has an id of the rest, or a call gets a new id.
    """
    runs = {run.start: run for run in found.runs}
    rest_indices = list(_find_indices_outside(found.runs, len(given)))
    rest = _read_messages_at(dialect, given, rest_indices)
    if any(call_id in found.ids for message in rest for call_id in _find_call_ids(message)):
        return None
    try:
        repaired = apply_repair_rules(rest, rules, listed=True)
    except MessageError:  # its path has an index of the rest; repairing the whole list raises it with the right one
        return None
    if not ID_CODES.isdisjoint(finding.code for finding in repaired.findings):
        return None
    pieces: list[Message | range] = []
    for index, message in repaired.messages:
        if index is None:
            pieces.append(message)
        else:
            original = rest_indices[index]
            pieces.append(runs.pop(original, range(original, original + 1)))
    findings = tuple(
        finding if finding.index is None else replace(finding, index=rest_indices[finding.index])
        for finding in repaired.findings
    )
    return None if runs else (pieces, findings)


def _find_indices_outside(runs: list[range], length: int) -> Iterator[int]:
    """Yield the indices outside of runs, and the first of each run."""
    start = 0
    for run in runs:
        yield from range(start, run.start + 1)
        start = run.stop
    yield from range(start, length)


def _read_messages_at(dialect: Dialect, given: list[object], indices: list[int]) -> list[Message]:
    read: list[Message] = []
    for index in indices:
        try:
            read.append(dialect.read(given[index]))
        except MessageError as error:
            raise prefix_error_path(f"messages[{index}]", error) from None
    return read


def _find_call_ids(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.id
        elif isinstance(part, ToolResult):
            yield part.call_id


def _is_only_of(dialect: Dialect, item: object) -> bool:
    """Return True if an element is certainly of that dialect and of no other, as every object of an SDK is."""
    return not isinstance(item, Mapping) or dialect.recognises(item) or item.get("role") == "developer"


def check_messages(
    messages: Iterable[object],
    api: str | ApiRules | None = None,
    *,
    source: str | None = None,
    tools: Iterable[object] | None = None,
    host: Host | None = None,
) -> tuple[Finding, ...]:
    """Return what an API would reject: everything that `repair` changes, an empty list, and invalid tools.

    Args:
        messages: Dicts, objects of an API's SDK, or `Message`.
        api: The API whose rules apply: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, one of a plugin, or
            rules; None for the API of the list.
        source: The dialect of the list; None to detect it from the messages.
        tools: Definitions of the tools in the same call, in any API's format.
        host: The plugin manager, for dialects of plugins; None for that of the installed plugins.

    Returns:
        Findings; `index` is the message, `code` is explained in docs/reference/findings.md.

    Raises:
        MessageError: An element is not a message or not a tool definition; the error names it.
        UnknownNameError: There is no such API.
    """
    given, dialects = require_list(messages), get_default_registry(host)
    dialect = find_source_dialect(given, api, source, dialects)
    return (*repair_list(given, dialect, api, dialects)[1], *check_tool_definitions(tools, api, dialect, dialects))
