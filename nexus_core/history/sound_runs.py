"""One pass over a list that finds the turns with which nothing is wrong, so that repair need not read them."""

from __future__ import annotations

import re
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.arguments import DECODER
from nexus_core.dialects.plain import DEEPEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.dialects.outline import Outline
    from nexus_core.values.api import ApiRules

_MAX_DEPTH = 8
"""Arguments that are nested deeper are left to the full rules."""
_MAX_NUMBER = 1 << 63
_NUMBERS = (bool, float, type(None))


class SoundRuns(NamedTuple):
    """Turns that need no repair.

    Attributes:
        runs: Neighbouring turns, by the places of their messages; the first message of each run is the user's.
        ids: The ids of their calls, each of which has its result in the same turn.
    """

    runs: list[range]
    ids: set[str]


def find_sound_runs(
    given: Sequence[object], outline: Callable[[object], Outline | None], rules: ApiRules
) -> SoundRuns | None:
    """Find turns that are plain, and sound whatever comes before and after them; None where ids occur twice.

    A turn begins with a message of the user. The last turn before one that is left to the full rules is left to them as
    well: what may follow depends on it.

    Args:
        given: A list in the API's own shape.
        outline: Returns what is in an element, or None.
        rules: What the API accepts.
    """
    look = _Look(rules)
    for place, item in enumerate(given):
        found = outline(item)
        if found is None or not look.admits(found):
            look.stop()
        elif found.role == "user":
            look.begin(place)
        elif look.is_running and not look.follows(found):
            look.stop()
    look.end(len(given))
    return None if look.has_repeated_ids else SoundRuns(look.runs, look.ids)


class _Look:
    """The turns so far, and what the current one waits for."""

    def __init__(self, rules: ApiRules) -> None:
        self.runs: list[range] = []
        self.ids: set[str] = set()
        self.has_repeated_ids = False
        self._rules = rules
        self._is_id = re.compile(rules.id_pattern or r"(?s:.+)").fullmatch
        self._is_name = re.compile(rules.name_pattern or r"(?s:.*\S.*)").fullmatch
        self._names: set[str] = set()  # those that are known to be valid
        self._first: int | None = None
        self._previous = self._turn = 0
        self._previous_ids: list[str] = []
        self._turn_ids: list[str] = []
        self._waiting: dict[object, str] = {}  # the tools of calls, by their ids, or numbered where calls have none
        self._role = ""

    @property
    def is_running(self) -> bool:
        """True if the current turn is sound so far."""
        return self._first is not None

    def admits(self, found: Outline) -> bool:
        """True if nothing is wrong with a message by itself."""
        for text in found.texts:
            if not text or text.isspace() or "\0" in text or not (text.isascii() or _is_encodable(text)):
                return False
        for call_id, name, arguments in found.calls:
            if not (self._is_valid_id(call_id) and self._is_valid_name(name) and _are_arguments(arguments)):
                return False
        for call_id, name in found.results:
            if not (self._is_valid_id(call_id) and (not name or self._is_valid_name(name))):
                return False
        return bool(found.texts or found.calls)

    def begin(self, place: int) -> None:
        """Begin a turn with a message of the user."""
        if self._waiting or self._first is None:
            self.stop()
            self._first = self._previous = place
        else:
            self._keep(self._previous_ids)
            self._previous = self._turn
            self._previous_ids, self._turn_ids = self._turn_ids, []
        self._turn, self._role = place, "user"

    def follows(self, found: Outline) -> bool:
        """True if a message of the assistant or of tools may come next in the turn."""
        role, before = found.role, self._role
        self._role = role
        if role == "tool":
            return self._takes_results(found.results)
        if before == "assistant":
            # Only where calls are items by themselves, a turn has several, and then nothing but calls may follow them.
            if self._rules.results != "anywhere" or (self._waiting and not found.calls):
                return False
        elif self._waiting:
            return False
        return self._takes_calls(found.calls)

    def stop(self) -> None:
        """Leave the current turn and the one before it to the full rules; what was before these is a run."""
        if self._first is not None and self._previous > self._first + 1:
            self.runs.append(range(self._first, self._previous))
        self._first, self._role = None, ""
        self._previous_ids, self._turn_ids, self._waiting = [], [], {}

    def end(self, length: int) -> None:
        """Finish with the list, whose end is a part of the last run if it may be one."""
        is_last = self._role in self._rules.last and (self._rules.final_blanks or self._role != "assistant")
        if self._first is None or not is_last or self._waiting:
            self.stop()
        else:
            self._keep(self._previous_ids)
            self._keep(self._turn_ids)
            self.runs.append(range(self._first, length))

    def _keep(self, ids: list[str]) -> None:
        if ids:
            count = len(self.ids) + len(ids)
            self.ids.update(ids)
            self.has_repeated_ids = self.has_repeated_ids or len(self.ids) < count

    def _takes_calls(self, calls: Iterable[tuple[str, str, Any]]) -> bool:
        for call_id, name, _ in calls:
            if call_id:
                if call_id in self._waiting:
                    return False
                self._turn_ids.append(call_id)
            self._waiting[call_id or len(self._waiting)] = name
        return True

    def _takes_results(self, results: Sequence[tuple[str, str]]) -> bool:
        waiting = self._waiting
        if not self._rules.call_ids:
            is_whole = [name for _, name in results] == list(waiting.values())
            waiting.clear()
            return is_whole
        for call_id, _ in results:
            if waiting.pop(call_id, None) is None:
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


def _are_arguments(arguments: object) -> bool:
    """True for an object, or the text of one, in which nothing is wrong."""
    if type(arguments) is dict:
        return _is_clean_value(arguments, 0)
    if type(arguments) is not str or not _is_clean(arguments):
        return False
    if arguments == "{}":
        return True
    if arguments.count("{") + arguments.count("[") > DEEPEST:
        return False
    try:
        parsed = DECODER.decode(arguments)
    except (JSONDecodeError, ValueError, RecursionError):
        return False
    # Without escapes, the texts in it are as clean as the whole.
    return type(parsed) is dict and bool(parsed) and ("\\u" not in arguments or _is_clean_value(parsed, 0))


def _is_clean_value(value: Any, depth: int) -> bool:  # noqa: ANN401 - JSON
    kind = type(value)
    if kind is str:
        return _is_clean(value)
    if kind is int:
        return bool(-_MAX_NUMBER < value < _MAX_NUMBER)
    if kind is dict and depth < _MAX_DEPTH:
        return {*map(type, value)} <= {str} and _are_clean(value, depth) and _are_clean(value.values(), depth)
    if kind is list and depth < _MAX_DEPTH:
        return _are_clean(value, depth)
    return kind in _NUMBERS


def _are_clean(values: Iterable[object], depth: int) -> bool:
    for each in values:  # noqa: SIM110 - `all` with a generator takes three times as long
        if not _is_clean_value(each, depth + 1):
            return False
    return True
