"""Summarises without a model: turn by turn what was asked, what was done and what came of it, in words that were said.

Sentences count by the words in them that come up in many messages. The same conversation gives the same
summary; the time it takes grows with the length of the conversation and not faster.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.facts import UNSPACED, find_command, find_errors, find_exit_code, list_touched_paths
from nexus_core.compaction.prompts import describe_media
from nexus_core.history.groups import is_session_start, is_user_input
from nexus_core.history.shorten import shorten_text
from nexus_core.thread.summary_message import is_summary
from nexus_core.tokens.estimator import estimate
from nexus_core.types.compaction import Summarizer
from nexus_core.types.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.types.compaction import SummaryRequest
    from nexus_core.types.messages import Message

EXTRACTIVE_NAME = "extractive"

_SCORED = 4000
"""Characters of a text that are looked at: its beginning and its end, where people say what matters."""
_ASKED, _OUTCOME, _LINE = 240, 400, 200
"""Characters of what is shown of a question, of an answer, and of anything else."""
_EARLIER = 3
"""This fraction of the room is for what was summarised before, and what is not needed for anything new."""
# A dot inside a name ends no sentence; in Chinese and Japanese, nothing need stand behind one that does.
_BETWEEN = re.compile("(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f])|\\n+")
_TERM = re.compile(rf"[^\W{UNSPACED}]{{4,40}}")
_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
"""Words without blanks between them; any two letters of it count as one."""
_COMMON = frozenset(
    _TERM.findall(
        "about after again also because been before being could does done each even first from have having here into"
        " just like make many more most much must need only other over please same should since some such than that"
        " their them then there these they this those through under until very want well were what when where which"
        " while will with would your"
    )
)
_LEFT_OUT = "- (left out: "
_FOCUSED = 16
_OFTEN = 64


class _Entry(NamedTuple):
    """A turn: with all there is to say of it, and with what was asked alone."""

    full: str
    short: str
    is_focused: bool


def extractive_summarizer(count: Callable[[str], int] = estimate) -> Summarizer:
    """The summarizer that is always there.

    Args:
        count: Who counts.
    """
    return Summarizer(
        name=EXTRACTIVE_NAME, summarise=lambda request: summarize_extractively(request, count), asks_model=False
    )


def summarize_extractively(request: SummaryRequest, count: Callable[[str], int] = estimate) -> str:
    """A summary of what a request holds, no longer than it asks for."""
    terms = _Terms(request.messages, request.focus)
    entries = [_describe(turn, terms) for turn in _turns(request.messages)]
    room = request.max_tokens
    earlier = _earlier(request.previous, terms, max(room // _EARLIER, room - _needed(entries, room, count)), count)
    lines = _fill(entries, room - count(earlier) - 1, count)
    return shorten_text("\n".join(filter(None, [earlier, *lines])), request.max_tokens, count)


class _Terms:
    """What a conversation is about: words by how many messages they stand in, and those that somebody asked for."""

    def __init__(self, messages: Iterable[Message], focus: str) -> None:
        self._counts: Counter[str] = Counter()
        for message in messages:
            if message.role != "tool":
                self._counts.update(set(_words(_ends(message.content))))
        self.focus = frozenset(_words(focus))

    def score(self, sentence: str) -> int:
        """How much a sentence says of what the conversation is about, for its length."""
        words = set(_words(sentence))
        weight = sum(min(self._counts[word], _OFTEN).bit_length() for word in words)
        return (weight + _FOCUSED * len(words & self.focus)) * 100 // (len(words) + 6)

    def best(self, text: str, most: int) -> str:
        """The best sentences of a text, in their order: the first in any case, and the last rather than others.

        Args:
            text: The text.
            most: How many characters there are.
        """
        parts = (" ".join(part.split()).strip("-*# ") for part in _BETWEEN.split(_ends(text)))
        sentences = list(dict.fromkeys(filter(None, parts)))  # what is said twice is told once
        last = len(sentences) - 1
        ranked = sorted(
            range(len(sentences)),
            key=lambda place: (place > 0, -self.score(sentences[place]) * (3 if place == last else 2), place),
        )
        chosen: list[int] = []
        for place in ranked:
            if len(sentences[place]) <= most:
                chosen.append(place)
                most -= len(sentences[place]) + 1
        if not chosen and sentences:
            return sentences[ranked[0]][:most].rstrip() + "…"
        return " ".join(sentences[place] for place in sorted(chosen))


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    turns: list[list[Message]] = []
    for message in messages:
        if is_summary(message) or is_session_start(message) or message.role == "system":
            continue
        if not turns or is_user_input(message):
            turns.append([])
        turns[-1].append(message)
    return turns


def _describe(turn: Sequence[Message], terms: _Terms) -> _Entry:
    asked = next((message.content.strip() or describe_media(message) for message in turn if is_user_input(message)), "")
    answers = [message.content for message in turn if message.role == "assistant" and message.content.strip()]
    question = terms.best(asked, _ASKED)
    outcome = terms.best(answers[-1], _OUTCOME) if answers else ""
    lines = [f"- Asked: {question}" if question else "-", *_deeds(turn), f"  Outcome: {outcome}" if outcome else ""]
    is_focused = bool(terms.focus & set(_words(f"{question} {outcome}")))
    return _Entry("\n".join(filter(None, lines)), f"- Asked: {question}" if question else "", is_focused)


def _deeds(turn: Sequence[Message]) -> Iterable[str]:
    """What was done: tools by how often they were called, files that were changed, what failed to the end."""
    calls = [part for message in turn for part in message.parts if isinstance(part, ToolCall)]
    tools = Counter(call.name for call in calls)
    changed = dict.fromkeys(path for call in calls for path, effect in list_touched_paths(call) if effect == "changed")
    failed = _failures(turn)
    if tools:
        used = ", ".join(f"{name} ({times} times)" if times > 1 else name for name, times in sorted(tools.items()))
        yield f"  Did: {used}"[:_LINE]
    if changed:
        yield f"  Changed: {', '.join(changed)}"[:_LINE]
    if failed:
        yield f"  Failed: {failed[-1]}"[:_LINE]


def _failures(turn: Sequence[Message]) -> list[str]:
    """What failed, the newest last, but for commands that worked later."""
    commands: dict[str, str] = {}
    failed: dict[str, str] = {}
    for part in (part for message in turn for part in message.parts):
        if isinstance(part, ToolCall):
            commands[part.id] = find_command(part)
        elif isinstance(part, ToolResult):
            command = commands.pop(part.call_id, "")
            what = command or part.call_id
            failed.pop(what, None)
            if failure := _failure(part, command):
                failed[what] = failure
    return list(failed.values())


def _failure(result: ToolResult, command: str) -> str:
    """What failed, how, and the first error in what it said; "" where nothing did."""
    ended = (
        find_exit_code(result) if command else "failed" * result.is_error
    )  # what other tools read may speak of exit codes
    if ended in ("", "exit 0"):
        return ""
    error = next(find_errors(result.text), "")
    return ": ".join(filter(None, [f"{command or result.name or 'a tool'} ({ended})", error]))


def _earlier(previous: str, terms: _Terms, room: int, count: Callable[[str], int]) -> str:
    """The best lines of the summary before, in their order; where none is short enough, its beginning and its end."""
    lines = [line for line in previous.splitlines() if line.strip() and not line.startswith(_LEFT_OUT)]
    ranked = sorted(range(len(lines)), key=lambda place: (-terms.score(lines[place]), -place))
    chosen = []
    for place in ranked:
        tokens = count(lines[place]) + 1
        if tokens <= room:
            room -= tokens
            chosen.append(place)
    if not chosen:
        return shorten_text("\n".join(lines), room, count) if room > 0 else ""
    return "\n".join(lines[place] for place in sorted(chosen))


def _needed(entries: Sequence[_Entry], most: int, count: Callable[[str], int]) -> int:
    """The room in which there is a place for every turn with all there is to say of it; `most` where that is more."""
    needed = 1
    for entry in entries:
        needed += 2 * (count(entry.full) + 1)  # half of the room is for such
        if needed >= most:
            return most
    return needed if entries else 0


def _fill(entries: Sequence[_Entry], room: int, count: Callable[[str], int]) -> list[str]:
    """As many turns as there is room for: the newest, and those that somebody asked for, with all there is to say."""
    chosen: dict[int, str] = {}
    newest_first = sorted(range(len(entries)), key=lambda place: (not entries[place].is_focused, -place))
    half = room // 2
    for place in newest_first:
        tokens = count(entries[place].full) + 1
        if tokens > half:
            break
        chosen[place] = entries[place].full
        half -= tokens
        room -= tokens
    for place in newest_first:
        short = entries[place].short
        tokens = count(short) + 1
        if place in chosen or not short:
            continue
        if tokens > room:
            break
        chosen[place] = short
        room -= tokens
    left = sum(place not in chosen for place in range(len(entries)))
    note = [f"{_LEFT_OUT}{left} turn{'s' * (left > 1)})"] if left else []
    return [*note, *(chosen[place] for place in sorted(chosen))]


def _words(text: str) -> Iterator[str]:
    yield from (word for word in _TERM.findall(text.lower()) if word not in _COMMON)
    if not text.isascii():
        for run in _RUN.findall(text):
            yield from map("".join, pairwise(run))


def _ends(text: str) -> str:
    return text if len(text) <= _SCORED else f"{text[: _SCORED // 2]}\n{text[-_SCORED // 2 :]}"
