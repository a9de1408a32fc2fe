"""Makes a list of messages what an API accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import joined
from nexus_core.dialects.finding import default_dialects, read_messages
from nexus_core.dialects.requests import no_list
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.values.api import ApiRules
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.message import Message
from nexus_core.values.parts import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.dialects.finding import Dialects
    from nexus_core.history.sound_runs import SoundRuns
    from nexus_core.host.host import Host
    from nexus_core.values.api import Dialect
    from nexus_core.values.finding import Finding

    Mending = tuple[list[Message | range], tuple[Finding, ...]]

ID_CODES = frozenset({"missing-id", "invalid-id", "duplicate-id", "unmatched-id"})
"""Findings about calls that get an id which no other call of the list may have."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What an API accepts, and what had to be done for it.

    Attributes:
        messages: The caller's own objects where nothing was wrong with them; others as dicts of the same dialect.
        findings: What was wrong, in the order of the messages that were given.
    """

    messages: list[Any]
    findings: tuple[Finding, ...]


def repair(
    messages: Iterable[object],
    api: str | ApiRules | None = None,
    *,
    source: str | None = None,
    host: Host | None = None,
) -> Repaired:
    """Make a list of messages what an API accepts; nothing that is given is changed.

    The result is written in the dialect of the list, not in that of the API: with `api="anthropic"`, a list of chat
    messages stays one, and can be converted afterwards. The same list gives the same result, in which there is nothing
    left to repair. Calls at the end of the list that wait for their results are left waiting.

    Args:
        messages: Dicts, objects of an API's SDK, or `Message`.
        api: Whose rules count: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, or what a plugin offers; the
            list's own by default.
        source: The dialect of the list, where it cannot be told from the messages.
        host: Whose plugins to ask for other dialects; the user's own by default.

    Raises:
        MessageError: Something in the list is no message; names it.
        UnknownNameError: There is no such API.
    """
    return repair_in(messages, api, source, default_dialects(host))


def repair_in(
    messages: Iterable[object], api: str | ApiRules | None, source: str | None, dialects: Dialects
) -> Repaired:
    """The same, where the dialects are at hand."""
    given = as_list(messages)
    speaking = source_of(given, api, source, dialects)
    pieces, findings = _mend_list(given, speaking, api, dialects)
    as_messages = any(isinstance(item, Message) for item in given)
    repaired: list[Any] = []
    for piece in pieces:
        if isinstance(piece, range):
            repaired += given[piece.start : piece.stop]
        elif as_messages:
            repaired.append(piece)
        else:
            repaired += speaking.write([piece])
    return Repaired(repaired, findings)


def findings_in(
    messages: Iterable[object],
    api: str | ApiRules | None,
    source: str | None,
    tools: Iterable[object] | None,
    host: Host | None,
) -> tuple[Finding, ...]:
    """Return what an API would refuse; arguments as those of `check`."""
    given, dialects = as_list(messages), default_dialects(host)
    speaking = source_of(given, api, source, dialects)
    return (*_mend_list(given, speaking, api, dialects)[1], *check_tool_definitions(tools, api, speaking, dialects))


def check_tool_definitions(
    tools: Iterable[object] | None, api: str | ApiRules | None, speaking: Dialect, dialects: Dialects
) -> tuple[Finding, ...]:
    """Return what an API would refuse in definitions of tools, written beside a list in a dialect."""
    if tools is None:
        return ()
    from nexus_core.dialects.tools.validity import find_invalid_tools  # noqa: PLC0415 - most lists come without tools
    from nexus_core.history.allowance import read_definitions  # noqa: PLC0415 - as above

    rules = speaking.rules if api is None else rules_of(api, dialects)
    return tuple(find_invalid_tools(read_definitions(tools, speaking.name, dialects), rules))


def rules_of(api: str | ApiRules, dialects: Dialects) -> ApiRules:
    """The rules of an API."""
    found = api if isinstance(api, ApiRules) else dialects.rules(api)
    if found is None:
        raise UnknownNameError("API", api, dialects.names)
    return found


def as_list(messages: object) -> list[object]:
    """The elements of a list of messages."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise no_list(messages)
    return list(messages)


def source_of(given: list[object], api: str | ApiRules | None, source: str | None, dialects: Dialects) -> Dialect:
    """The dialect of a list; of one that could be Anthropic's as well as chat, that of the API it goes to."""
    if source is not None:
        return dialects.get(source)
    found = dialects.recognise(given)
    goes_to_anthropic = (api.name if isinstance(api, ApiRules) else api) == "anthropic"
    if goes_to_anthropic and found.name == "openai" and not any(_is_surely(found, item) for item in given):
        return dialects.get("anthropic")
    return found


def _mend_list(given: list[object], speaking: Dialect, api: str | ApiRules | None, dialects: Dialects) -> Mending:
    """Return what becomes of a list: places of what stays as it is, messages in between, and findings."""
    from nexus_core.history.mending.steps import mend  # noqa: PLC0415 - the rules, for whoever has messages
    from nexus_core.history.sound_runs import find_sound_runs  # noqa: PLC0415 - as above

    rules = speaking.rules if api is None else rules_of(api, dialects)
    outline = getattr(speaking, "outline", None)
    if outline is not None and rules == speaking.rules:
        found = find_sound_runs(given, outline, rules)
        mending = _mend_rest(given, speaking, rules, found) if found and found.runs else None
        if mending is not None:
            return mending
    mended = mend(read_messages(speaking, given), rules, listed=speaking.name == rules.name)
    pieces = [message if index is None else range(index, index + 1) for index, message in mended.messages]
    return pieces, mended.findings


def _mend_rest(given: list[object], speaking: Dialect, rules: ApiRules, found: SoundRuns) -> Mending | None:
    """Mend a list from which sound turns are set aside but for the first message of each run, which marks its place.

    None where those turns matter for the rest: a call there has an id of the rest, or a call gets a new id.
    """
    from nexus_core.history.mending.steps import mend  # noqa: PLC0415 - as above

    runs = {run.start: run for run in found.runs}
    kept = list(_places_besides(found.runs, len(given)))
    rest = _read_places(speaking, given, kept)
    if any(call_id in found.ids for message in rest for call_id in _ids_in(message)):
        return None
    try:
        mended = mend(rest, rules, listed=True)
    except MessageError:  # it names the place of a message in the rest; the same error of the whole list is right
        return None
    if not ID_CODES.isdisjoint(finding.code for finding in mended.findings):
        return None
    pieces: list[Message | range] = []
    for index, message in mended.messages:
        if index is None:
            pieces.append(message)
        else:
            place = kept[index]
            pieces.append(runs.pop(place, range(place, place + 1)))
    findings = tuple(
        finding if finding.index is None else replace(finding, index=kept[finding.index]) for finding in mended.findings
    )
    return None if runs else (pieces, findings)


def _places_besides(runs: list[range], length: int) -> Iterator[int]:
    """Yield the places outside of runs, and the first of each run."""
    place = 0
    for run in runs:
        yield from range(place, run.start + 1)
        place = run.stop
    yield from range(place, length)


def _read_places(speaking: Dialect, given: list[object], places: list[int]) -> list[Message]:
    read: list[Message] = []
    for place in places:
        try:
            read.append(speaking.read(given[place]))
        except MessageError as error:
            raise joined(f"messages[{place}]", error) from None
    return read


def _ids_in(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.id
        elif isinstance(part, ToolResult):
            yield part.call_id


def _is_surely(speaking: Dialect, item: object) -> bool:
    """Whether an element is of that dialect and of no other's; objects of an SDK are."""
    return not isinstance(item, Mapping) or speaking.recognises(item) or item.get("role") == "developer"
