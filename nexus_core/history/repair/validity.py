"""Quick validity checks that spare valid messages the full repair.

True means that repair would find nothing, which property tests check. False means that the full repair has to decide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.cache_markers import find_part_lifetimes
from nexus_core.dialects.calls import parse_strict_json
from nexus_core.dialects.fields import MAX_NESTING_LEVELS
from nexus_core.history.groups import MessageLinks
from nexus_core.history.repair.content import has_wrong_text_type, is_signed_reasoning, needs_cleaning
from nexus_core.history.repair.order import has_empty_list_field
from nexus_core.history.repair.pairing import is_valid_name
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.dialects.registry import Outline
    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import Part


def looks_valid_together(messages: Sequence[Message], rules: ApiRules) -> bool:
    """Return True if messages that are valid one by one are certainly valid as a list, too.

    This checks only the common cases, so False means that the full repair has to decide.
    """
    is_plain = all(has_plain_parts(message, rules) for message in messages)
    return is_plain and looks_valid_in_sequence(map(MessageLinks, messages), rules)


def has_plain_parts(message: Message, rules: ApiRules) -> bool:
    """Return True if only the message's role and ids decide where it may be in a list.

    Media, provider blocks, reasoning without output and cache markers have rules of their own.
    """
    if message.role == "system":
        return True
    kinds = {*map(type, message.parts)}
    if not kinds <= _PLAIN_TYPES or (message.parts and type(message.parts[-1]) is Reasoning):
        return False
    if ToolResult in kinds and (message.role != "tool" or len(kinds) > 1):
        return False
    return not (rules.cache_marks and find_part_lifetimes(message.parts, message.api, rules))


def looks_valid_in_sequence(messages: Iterable[MessageLinks], rules: ApiRules) -> bool:
    """Return True if messages that are valid by themselves, with plain parts, are certainly valid as a list, too."""
    if not rules.call_ids:
        return False  # pairing by order is too slow for a quick check
    previous, pairs = "", _CallPairs(rules)
    for each in messages:
        role = each.role
        if role == "system":
            if previous or rules.system == "field":
                return False
        elif (not previous and role not in rules.first) or role == previous == "assistant" or not pairs.accepts(each):
            return False
        else:
            previous = role
    return previous in rules.last and (rules.final_blanks or previous != "assistant")


def is_valid_alone(message: Message, rules: ApiRules) -> bool:
    """Return True if the full repair finds nothing wrong with a message by itself."""
    calls = [ToolCall(result.call_id, result.name or "tool") for result in message.tool_results]
    before = [Message("assistant", calls)] if calls else []
    return not apply_repair_rules([*before, message], rules).findings


def looks_valid_alone(message: Message, rules: ApiRules) -> bool:
    """Return True if a message is certainly valid by itself; False means that the full repair has to decide."""
    if message.role == "system" or needs_cleaning(message.name, 0) or needs_cleaning(message.extra, 0):
        return False
    if message.name and not _is_allowed_speaker(message.name, rules):
        return False
    if message.extra and rules.filled_lists and has_empty_list_field(message.extra, message.parts, rules):
        return False
    return bool(message.parts) and all(_looks_valid_part(part, message, rules) for part in message.parts)


def _looks_valid_part(part: Part, message: Message, rules: ApiRules) -> bool:
    if needs_cleaning(part, 0):
        return False
    if isinstance(part, Text):
        is_typed = not (part.extra and rules.text_types and has_wrong_text_type(part, message.role))
        return message.role != "tool" and is_typed and bool(part.text.strip())
    if isinstance(part, ToolCall):
        is_named = bool(part.name.strip()) and is_valid_name(part.name, rules.name_pattern, rules.name_length)
        is_parsed = part.raw is None or part.raw == "{}" or bool(part.arguments)
        is_known = bool(part.id) and is_valid_name(part.id, rules.id_pattern, rules.id_length)
        return message.role == "assistant" and is_parsed and is_named and is_known
    if isinstance(part, ToolResult):
        says = all(_is_valid_result_text(each, rules) for each in part.parts)
        if rules.result_names or (part.name and not _is_allowed_speaker(part.name, rules)):
            return False
        return message.role == "tool" and says and bool(part.parts or not (part.is_error or rules.filled_lists))
    return is_signed_reasoning(part) and message.role == "assistant" and getattr(part, "api", "") == rules.name


def _is_valid_result_text(part: Part, rules: ApiRules) -> bool:
    """Return True for a valid text inside a tool result."""
    return isinstance(part, Text) and not (part.extra and rules.text_types) and bool(part.text.strip())


def _is_allowed_speaker(name: str, rules: ApiRules) -> bool:
    return not rules.speaker_names or is_valid_name(name, rules.name_pattern, rules.name_length)


class _CallPairs:
    """State of a scan over messages that decides whether each call is followed by its result."""

    def __init__(self, rules: ApiRules) -> None:
        self._rules = rules
        self._ids: set[str] = set()
        self._waiting: set[str] = set()  # ids of the last calls that have no result yet
        self._answered: set[str] = set()  # dialects of the messages with results of the last calls

    def accepts(self, message: MessageLinks) -> bool:
        """Return True if a message may certainly come next, and advance."""
        if message.results:
            return self._accepts_results(message)
        return not self._waiting and (not message.calls or self._accepts_calls(message.calls))

    def _accepts_results(self, message: MessageLinks) -> bool:
        results = set(message.results)
        if len(results) != len(message.results) or not self._waiting.issuperset(results):
            return False
        self._waiting -= results
        is_split = bool(self._waiting or self._answered)
        self._answered.add(message.message.api)
        # Conversion joins the results of other APIs.
        return not (is_split and self._rules.results == "together" and self._rules.name in self._answered)

    def _accepts_calls(self, calls: Sequence[str]) -> bool:
        new = set(calls)
        if "" in new or len(new) != len(calls) or (self._rules.unique_ids and not new.isdisjoint(self._ids)):
            return False
        self._ids |= new
        self._waiting |= new
        self._answered = set()
        return True


_PLAIN_TYPES = frozenset({Text, ToolCall, ToolResult, Reasoning})
_MAX_ARGUMENT_DEPTH = 8
"""Arguments that are nested deeper are left to the full repair."""
_MAX_INTEGER = 1 << 63
_SCALAR_TYPES = (bool, float, type(None))


class ValidRuns(NamedTuple):
    """Turns that need no repair.

    Attributes:
        runs: Index ranges of neighbouring turns; the first message of each run is a user message.
        ids: The ids of their calls, each of which has its result in the same turn.
    """

    runs: list[range]
    ids: set[str]


def find_valid_runs(
    given: Sequence[object], outline: Callable[[object], Outline | None], rules: ApiRules
) -> ValidRuns | None:
    """Find turns that are valid whatever comes before and after them.

    A turn begins with a user message. The last turn before one that needs the full repair is left to it as well,
    because what may follow depends on it.

    Args:
        given: A list in the API's own format.
        outline: Returns the content of an element in short form; None for elements that need the full repair.
        rules: The rules of the API.

    Returns:
        None if an id occurs twice.
    """
    scanner = _TurnScanner(rules)
    for index, item in enumerate(given):
        found = outline(item)
        if found is None or not scanner.accepts(found, index):
            scanner.stop()
    return scanner.end(len(given))


class _TurnScanner:
    """State of a scan for valid turns. After a message that it does not accept, it must be stopped."""

    def __init__(self, rules: ApiRules) -> None:
        self._rules = rules
        self._is_id: Callable[[str], object] = re.compile(rules.id_pattern).fullmatch if rules.id_pattern else bool
        self._is_name = re.compile(rules.name_pattern or r"(?s:.*\S.*)").fullmatch
        self._names: set[str] = set()  # names that are known to be valid
        self._runs: list[range] = []
        self._ids: list[str] = []  # ids of the calls in the runs and in the current turns
        self._first: int | None = None  # None if the current turn is not valid
        self._previous = self._turn = 0  # where the previous turn and the current one begin
        self._previous_ids = self._turn_ids = 0  # how many ids come before those of these turns
        self._waiting: dict[object, str] = {}  # the tools of calls, by their ids, or numbered where calls have none
        self._role = ""

    def accepts(self, found: Outline, index: int) -> bool:
        """Return True if a message is valid by itself and may come next in a valid turn, and advance."""
        role, before, calls = found.role, self._role, found.calls
        if not (found.texts or calls) or (self._first is None and role != "user"):
            return False
        for text in found.texts:
            if not text or text.isspace() or "\0" in text or not (text.isascii() or _is_encodable(text)):
                return False
        if role == "user":
            self._begin(index)
            return not calls
        self._role = role
        if role == "tool":
            return self._accepts_results(found.results)
        # Only where calls are items by themselves may replies be neighbours, and then only calls may follow calls.
        is_neighbor = before == "assistant"
        if (is_neighbor and self._rules.results != "anywhere") or (self._waiting and not (is_neighbor and calls)):
            return False
        return not calls or self._accepts_calls(calls)

    def stop(self) -> None:
        """Leave the current turn and the one before it to the full repair; the turns before these are a run."""
        if self._first is not None:
            if self._previous > self._first + 1:
                self._runs.append(range(self._first, self._previous))
            del self._ids[self._previous_ids :]
        self._first, self._role, self._waiting = None, "", {}

    def end(self, length: int) -> ValidRuns | None:
        """End the scan; the last turn belongs to the last run if the list may end with it."""
        is_last = self._role in self._rules.last and (self._rules.final_blanks or self._role != "assistant")
        if self._first is None or not is_last or self._waiting:
            self.stop()
        else:
            self._runs.append(range(self._first, length))
        ids = set(self._ids)
        return ValidRuns(self._runs, ids) if len(ids) == len(self._ids) else None

    def _begin(self, index: int) -> None:
        """Begin a turn with a user message."""
        if self._waiting or self._first is None:
            self.stop()
            self._first = self._previous = index
            self._previous_ids = len(self._ids)
        else:
            self._previous, self._previous_ids = self._turn, self._turn_ids
        self._turn, self._turn_ids, self._role = index, len(self._ids), "user"

    def _accepts_calls(self, calls: Iterable[tuple[str, str, Any]]) -> bool:
        waiting = self._waiting
        for call_id, name, arguments in calls:
            is_named = name in self._names or self._is_valid_name(name)
            if not is_named or call_id in waiting or not self._is_valid_id(call_id):
                return False
            if not _are_valid_arguments(arguments):
                return False
            if call_id:
                self._ids.append(call_id)
            waiting[call_id or len(waiting)] = name
        return True

    def _accepts_results(self, results: Sequence[tuple[str, str]]) -> bool:
        """Return True if results answer the waiting calls, whose ids and names are valid."""
        waiting = self._waiting
        if not self._rules.call_ids:
            is_complete = results == [("", name) for name in waiting.values()]
            waiting.clear()
            return is_complete
        for call_id, name in results:
            if waiting.pop(call_id, None) is None or (name and not self._is_valid_name(name)):
                return False
        return not (waiting and self._rules.results == "together")

    def _is_valid_id(self, name: str) -> bool:
        rules = self._rules
        if not rules.call_ids:
            return not name
        return bool(self._is_id(name)) and not len(name) > rules.id_length > 0 and _is_clean(name)

    def _is_valid_name(self, name: str) -> bool:
        if name in self._names:
            return True
        length = self._rules.name_length
        if not self._is_name(name) or len(name) > length > 0 or not _is_clean(name):
            return False
        self._names.add(name)
        return True


def _is_clean(text: str) -> bool:
    return "\0" not in text and (text.isascii() or _is_encodable(text))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_valid_arguments(arguments: object) -> bool:
    """Return True for a valid JSON object, or the text of one."""
    if type(arguments) is dict:
        return _is_clean_value(arguments, 0)
    if type(arguments) is not str or not _is_clean(arguments):
        return False
    if arguments == "{}":
        return True
    if arguments.count("{") + arguments.count("[") > MAX_NESTING_LEVELS:
        return False
    try:
        parsed = parse_strict_json(arguments)
    except (ValueError, RecursionError):
        return False
    # Without escapes, the strings in it are as clean as the whole text.
    return type(parsed) is dict and bool(parsed) and ("\\u" not in arguments or _is_clean_value(parsed, 0))


def _is_clean_value(value: Any, depth: int) -> bool:  # noqa: ANN401 - JSON
    kind = type(value)
    if kind is str:
        return _is_clean(value)
    if kind is int:
        return bool(-_MAX_INTEGER < value < _MAX_INTEGER)
    if kind is dict and depth < _MAX_ARGUMENT_DEPTH:
        return {*map(type, value)} <= {str} and _are_clean(value, depth) and _are_clean(value.values(), depth)
    if kind is list and depth < _MAX_ARGUMENT_DEPTH:
        return _are_clean(value, depth)
    return kind in _SCALAR_TYPES


def _are_clean(values: Iterable[object], depth: int) -> bool:
    for each in values:  # noqa: SIM110 - `all` with a generator is three times slower
        if not _is_clean_value(each, depth + 1):
            return False
    return True
