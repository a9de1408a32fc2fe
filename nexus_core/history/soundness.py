"""A quick look that spares a sound conversation the whole repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.dialects.marks import marks_in
from nexus_core.history.mending.naming import is_valid
from nexus_core.history.mending.parts import has_wrong_text_type
from nexus_core.history.mending.steps import mend
from nexus_core.history.mending.texts import is_foul, is_sealed
from nexus_core.history.mending.turns import has_empty_list_field
from nexus_core.values.message import Message
from nexus_core.values.parts import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.api import ApiRules
    from nexus_core.values.parts import Part


def is_surely_sound(messages: Sequence[Message], rules: ApiRules) -> bool:
    """Whether messages with which nothing is wrong one by one go together as an API wants them.

    False only means that nobody is sure: repair looks at everything, this at the usual. A test holds that repair finds
    nothing where this says True.
    """
    if not rules.call_ids:
        return False  # pairing by order is not a quick look
    spoken = _Spoken(rules)
    return all(map(spoken.takes, messages)) and spoken.may_end()


def is_sound_alone(message: Message, rules: ApiRules) -> bool:
    """Whether nothing is wrong with a message itself, wherever it stands."""
    calls = [ToolCall(result.call_id, result.name or "tool") for result in message.tool_results]
    before = [Message("assistant", calls)] if calls else []
    return not mend([*before, message], rules).findings


def is_plainly_sound(message: Message, rules: ApiRules) -> bool:
    """The same, told by a quick look: False only means that nobody is sure."""
    if message.role == "system" or is_foul(message.name, 0) or is_foul(message.extra, 0):
        return False
    if message.name and not _may_be_named(message.name, rules):
        return False
    if message.extra and rules.filled_lists and has_empty_list_field(message.extra, message.parts, rules):
        return False
    return bool(message.parts) and all(_is_plain(part, message, rules) for part in message.parts)


def _is_plain(part: Part, message: Message, rules: ApiRules) -> bool:
    if is_foul(part, 0):
        return False
    if isinstance(part, Text):
        is_typed = not (part.extra and rules.text_types and has_wrong_text_type(part, message.role))
        return message.role != "tool" and is_typed and bool(part.text.strip())
    if isinstance(part, ToolCall):
        is_named = bool(part.name.strip()) and is_valid(part.name, rules.name_pattern, rules.name_length)
        is_parsed = part.raw is None or part.raw == "{}" or bool(part.arguments)
        is_known = bool(part.id) and is_valid(part.id, rules.id_pattern, rules.id_length)
        return message.role == "assistant" and is_parsed and is_named and is_known
    if isinstance(part, ToolResult):
        says = all(_says(each, rules) for each in part.parts)
        if rules.result_names or (part.name and not _may_be_named(part.name, rules)):
            return False
        return message.role == "tool" and says and bool(part.parts or not (part.is_error or rules.filled_lists))
    return is_sealed(part) and message.role == "assistant" and getattr(part, "api", "") == rules.name


def _says(part: Part, rules: ApiRules) -> bool:
    """True if it is a text inside a result, and nothing is wrong with it."""
    return isinstance(part, Text) and not (part.extra and rules.text_types) and bool(part.text.strip())


def _may_be_named(name: str, rules: ApiRules) -> bool:
    return not rules.speaker_names or is_valid(name, rules.name_pattern, rules.name_length)


class _Spoken:
    """What has been said so far, as much as matters for what may come next."""

    def __init__(self, rules: ApiRules) -> None:
        self._rules = rules
        self._previous = ""
        self._waiting: set[str] = set()
        self._ids: set[str] = set()
        self._answered: set[str] = set()  # who read the messages with results of the last calls

    def takes(self, message: Message) -> bool:
        """Whether a message may surely come next."""
        role, previous = message.role, self._previous
        if role == "system":
            return not previous and self._rules.system != "field"
        if (not previous and role not in self._rules.first) or role == previous == "assistant":
            return False
        self._previous = role
        calls, results = [], []
        for part in message.parts:
            kind = type(part)
            if kind is ToolCall:
                calls.append(part.id)  # type: ignore[union-attr] # narrowed by its type
            elif kind is ToolResult:
                results.append(part.call_id)  # type: ignore[union-attr] # as above
            elif kind is not Text and (kind is not Reasoning or part is message.parts[-1]):
                return False  # media, provider's blocks and lone thoughts have rules of their own
            if self._rules.cache_marks and marks_in((part,), message.api, self._rules):
                return False
        return self._takes_results(message, results) if results else not self._waiting and self._takes_calls(calls)

    def may_end(self) -> bool:
        """Whether this may surely be the end; calls may wait there."""
        return self._previous in self._rules.last and (self._rules.final_blanks or self._previous != "assistant")

    def _takes_results(self, message: Message, results: list[str]) -> bool:
        if message.role != "tool" or len(results) != len(message.parts) or not self._waiting.issuperset(results):
            return False
        self._waiting.difference_update(results)
        is_split = bool(self._waiting or self._answered)
        self._answered.add(message.api)
        # Results of other APIs are put together when they are converted.
        is_whole = not (is_split and self._rules.results == "together" and self._rules.name in self._answered)
        return len(set(results)) == len(results) and is_whole

    def _takes_calls(self, calls: list[str]) -> bool:
        if not calls:
            return True
        new = set(calls)
        if "" in new or len(new) != len(calls) or (self._rules.unique_ids and not new.isdisjoint(self._ids)):
            return False
        self._ids |= new
        self._waiting |= new
        self._answered = set()
        return True
