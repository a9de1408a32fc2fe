"""The summarizer without a model.

It lists user message, changed files, failures and outcome of each turn, in sentences of the conversation. If the user's
words and the facts are shown beside it, it gives the outcomes only. Sentences are scored by how many messages contain
their words. The same conversation gives the same summary, in time linear in its length.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.prompts import describe_media
from nexus_core.history.groups import is_session_start, is_user_input
from nexus_core.history.shorten import shorten_text
from nexus_core.memory.facts import UNSPACED, find_command, find_command_outcome, find_errors, list_touched_paths
from nexus_core.memory.statements import (
    find_decisions,
    is_intention,
    split_sentences,
    strip_inserted_text,
    strip_pasted_diffs,
)
from nexus_core.thread.projection import is_summary
from nexus_core.tokens.estimator import estimate
from nexus_core.types.compaction import Summarizer
from nexus_core.types.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.types.compaction import SummaryRequest
    from nexus_core.types.messages import Message

EXTRACTIVE_NAME = "extractive"

_SCORED_CHARACTERS = 4000
"""Characters of a text that are scored: its beginning and its end, which usually matter most."""
_MAX_REQUEST, _MAX_OUTCOME, _MAX_LINE = 240, 400, 200
"""Characters that are shown of a user message, of a reply, and of any other line."""
_MIN_FINDING = 40
"""Characters of a finding; a shorter one says little alone."""
_MAX_TOPIC = 80
"""Characters that are shown of a user message that the evidence shows."""
_PREVIOUS_DIVISOR = 3
"""The fraction of the tokens for the previous summary, in addition to those that new turns do not need."""
_TERM = re.compile(rf"[^\W{UNSPACED}]{{4,40}}")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
"""Words without spaces between them; every two neighboring letters count as one word."""
_STOP_WORDS = frozenset(
    _TERM.findall(
        "about after again also because been before being could does done each even first from have having here into"
        " just like make many more most much must need only other over please same should since some such than that"
        " their them then there these they this those through under until very want well were what when where which"
        " while will with would your"
    )
)
_INTERJECTION = re.compile(r"(?:[^\W\d_]{1,12},? ){0,2}[^\W\d_]{1,12}!|[^\W\d_]{1,12}[.\u2026]?")
"""A sentence such as "Perfect!", or a single word, which says nothing."""
_NO_WORDS = re.compile(r"/[\w:.-]{0,60}|[\W\d_]{0,40}")
"""A command to the program without an argument, or no word at all."""
_ITEM = re.compile(r"^[ \t]{0,20}(?:[-*+\u2022]|\d{1,3}[.)])[ \t]{1,8}(\S[^\n]{0,400})", re.MULTILINE)
"""An item of a list, which says little without the line before the list."""
_SENTENCE_STOP = re.compile(r"[.!?] ")
_SENTENCE_ENDS = frozenset(".!?:;,\u2026\u3002\uff01\uff1f")
_OMITTED = "- (left out: "
_GAP_LINE = re.compile(r"\[\u2026 [\d,]+ characters left out \u2026\]")
_FOCUS_WEIGHT = 16
_MAX_COUNT = 64


class _TurnEntry(NamedTuple):
    """A turn as text: complete, and with its user message alone."""

    full: str
    short: str
    is_focused: bool


def extractive_summarizer(count: Callable[[str], int] = estimate) -> Summarizer:
    """Return the summarizer without a model.

    Args:
        count: Counts the tokens of a text.
    """
    return Summarizer(
        name=EXTRACTIVE_NAME, summarise=lambda request: summarize_extractively(request, count), asks_model=False
    )


def summarize_extractively(request: SummaryRequest, count: Callable[[str], int] = estimate) -> str:
    """Return a summary of a request's messages, of at most `max_tokens`."""
    scores = _TermScores(request.messages, request.focus)
    turns = _split_turns(request.messages)
    described = (_describe_turn(turn, scores, has_evidence=bool(request.evidence)) for turn in turns)
    entries = [entry for entry in described if entry.full]
    limit = request.max_tokens // 2 if request.evidence and request.messages else request.max_tokens
    previous_limit = max(limit // _PREVIOUS_DIVISOR, limit - _compute_needed_tokens(entries, limit, count))
    previous = _shorten_previous(request.previous, scores, previous_limit, count)
    lines = _choose_entries(entries, limit - count(previous) - 1, count)
    # A turn without an outcome needs no entry beside the evidence, but a summary is never empty.
    lines = list(filter(None, [previous, *lines])) or [_describe_omission(max(len(turns), 1))]
    return shorten_text("\n".join(lines), limit, count)


class _TermScores:
    """The number of messages that contain each word, and the words of the focus."""

    def __init__(self, messages: Iterable[Message], focus: str) -> None:
        self._counts: Counter[str] = Counter()
        for message in messages:
            if message.role != "tool":
                self._counts.update(set(_list_terms(_cut_middle(message.content))))
        self.focus = frozenset(_list_terms(focus))

    def score(self, sentence: str) -> int:
        """Return the relevance of a sentence to the conversation, relative to its length."""
        words = set(_list_terms(sentence))
        weight = sum(min(self._counts[word], _MAX_COUNT).bit_length() for word in words)
        return (weight + _FOCUS_WEIGHT * len(words & self.focus)) * 100 // (len(words) + 6)

    def choose_sentences(self, text: str, limit: int) -> str:
        """Return the best sentences of a text in their order.

        The first is preferred to all others, and the last counts more.

        Args:
            text: The text.
            limit: Maximum characters.
        """
        shown = _cut_middle(text)
        items = {" ".join(item.split()) for item in _ITEM.findall(shown)}
        parts = (" ".join(part.split()) for part in split_sentences(shown, shortest=1))
        sentences = list(dict.fromkeys(parts))  # no sentence twice
        if len(sentences) > 1 and (_is_unfinished(sentences[-1]) or _ends_abruptly(shown)):
            sentences.pop()
        sentences = [each for each in sentences if not is_intention(each)]
        sentences = [each for each in sentences if not _is_empty(each)] or sentences
        last = len(sentences) - 1

        def get_rank(index: int) -> tuple[bool, bool, int, int]:
            weight = 3 if index == last else 2
            return index > 0, sentences[index] in items, -self.score(sentences[index]) * weight, index

        ranked = sorted(range(len(sentences)), key=get_rank)
        if sentences and len(sentences[0]) > limit:
            return _cut_sentence(sentences[0], limit)
        chosen: list[int] = []
        for index in ranked:
            if len(sentences[index]) <= limit:
                chosen.append(index)
                limit -= len(sentences[index]) + 1
        return " ".join(map(_end_sentence, (sentences[index] for index in sorted(chosen))))


def _is_empty(sentence: str) -> bool:
    """True if a sentence says nothing: an interjection, a command to the program, or what announces code."""
    return bool(_INTERJECTION.fullmatch(sentence) or _NO_WORDS.fullmatch(sentence) or sentence.endswith(":"))


def _is_unfinished(sentence: str) -> bool:
    """True if a pair of marks in a sentence is not closed."""
    return sentence.count("`") % 2 == 1 or sentence.count("(") > sentence.count(")") or sentence.count("**") % 2 == 1


def _ends_abruptly(text: str) -> bool:
    """True if a text breaks off in a sentence, because the user interrupted the model.

    Items of lists, and lines of which the text has no other, may have no full stop.
    """
    line = text.rstrip().rpartition("\n")[2].strip()
    return line[-1:].isalnum() and _SENTENCE_STOP.search(line) is not None and not _ITEM.match(line)


def _cut_sentence(sentence: str, limit: int) -> str:
    cut = sentence[:limit]
    return (cut[: cut.rfind(" ", limit // 2) + 1] or cut).rstrip() + "…"


def _end_sentence(sentence: str) -> str:
    """Return an item of a list with a semicolon after it, so that the next sentence can follow."""
    return sentence if sentence.rstrip(")")[-1:] in _SENTENCE_ENDS else f"{sentence};"


def _split_turns(messages: Sequence[Message]) -> list[list[Message]]:
    turns: list[list[Message]] = []
    for message in messages:
        if is_summary(message) or is_session_start(message) or message.role == "system":
            continue
        if not turns or is_user_input(message):
            turns.append([])
        turns[-1].append(message)
    return turns


def _describe_turn(turn: Sequence[Message], scores: _TermScores, *, has_evidence: bool) -> _TurnEntry:
    inputs = [message for message in turn if is_user_input(message)]
    asked = next((strip_inserted_text(message.content) or describe_media(message) for message in inputs), "")
    limit = _MAX_TOPIC if has_evidence else _MAX_REQUEST
    question = scores.choose_sentences(strip_pasted_diffs(asked), limit).rstrip(";")
    outcome = _describe_outcome(turn, scores)
    is_focused = bool(scores.focus & set(_list_terms(f"{question} {outcome}")))
    work = () if has_evidence else _describe_work(turn)
    lead = f"- Asked: {question}" if question else ""
    # The evidence shows what was asked, so that a turn without an outcome needs no entry.
    if has_evidence and not outcome and not is_focused:
        return _TurnEntry("", "", is_focused)
    short = lead if question and (is_focused or not has_evidence) else ""
    lines = list(filter(None, [lead, *work, outcome]))
    if lines and not lead:
        lines[0] = f"- {lines[0].lstrip()}"
    return _TurnEntry("\n".join(lines), short, is_focused)


def _describe_outcome(turn: Sequence[Message], scores: _TermScores) -> str:
    """Return the line about the result of a turn; "" if there is none.

    A reply that calls a tool is not the result, and neither are the last words before the turn was cut or an
    interjection. In those cases the latest finding is given.
    """
    last = turn[-1]
    if last.role == "assistant" and not last.tool_calls and last.content.strip():
        outcome = scores.choose_sentences(last.content, _MAX_OUTCOME).rstrip(";")
        if outcome and not _is_empty(outcome):
            return f"  Outcome: {outcome}"
    replies = (message.content for message in reversed(turn) if message.role == "assistant")
    decisions = (each.text for reply in replies for each in reversed(list(find_decisions(reply))))
    found = next((text for text in decisions if len(text) >= _MIN_FINDING and not is_intention(text)), "")
    return f"  So far: {found}" if found else ""


def _describe_work(turn: Sequence[Message]) -> Iterable[str]:
    """Yield lines about changed files, and the last failure that was not fixed."""
    calls = [part for message in turn for part in message.parts if isinstance(part, ToolCall)]
    changed = dict.fromkeys(path for call in calls for path, effect in list_touched_paths(call) if effect == "changed")
    failed = _list_failures(turn)
    if changed:
        yield f"  Changed: {', '.join(changed)}"[:_MAX_LINE]
    if failed:
        yield f"  Failed: {' '.join(failed[-1].split())}"[:_MAX_LINE]


def _list_failures(turn: Sequence[Message]) -> list[str]:
    """Return failed tool calls, newest last, without commands that succeeded later."""
    commands: dict[str, str] = {}
    failed: dict[str, str] = {}
    for part in (part for message in turn for part in message.parts):
        if isinstance(part, ToolCall):
            commands[part.id] = find_command(part)
        elif isinstance(part, ToolResult):
            command = commands.pop(part.call_id, "")
            key = command or part.call_id
            failed.pop(key, None)
            if failure := _describe_failure(part, command):
                failed[key] = failure
    return list(failed.values())


def _describe_failure(result: ToolResult, command: str) -> str:
    """Return the command or tool, its exit code, and its first error; "" if it succeeded."""
    # Results of other tools may contain exit codes of something else.
    ended = find_command_outcome(result) if command else "failed" * result.is_error
    if ended in ("", "exit 0"):
        return ""
    error = next(find_errors(result.text), "")
    return ": ".join(filter(None, [f"{command or result.name or 'a tool'} ({ended})", error]))


def _shorten_previous(previous: str, scores: _TermScores, limit: int, count: Callable[[str], int]) -> str:
    """Return the best entries of the previous summary, or its two ends if none fits."""
    entries = _split_entries(previous)
    ranked = sorted(range(len(entries)), key=lambda index: (-scores.score(entries[index]), -index))
    chosen = []
    for index in ranked:
        tokens = count(entries[index]) + 1
        if tokens <= limit:
            limit -= tokens
            chosen.append(index)
    if not chosen:
        shortened = shorten_text("\n".join(entries), limit, count) if limit > 0 else ""
        return "" if _GAP_LINE.fullmatch(shortened.strip()) else shortened  # nothing of it is left
    return "\n".join(entries[index] for index in sorted(chosen))


def _split_entries(summary: str) -> list[str]:
    """Return the lines of a summary, with indented ones at the line before them."""
    entries: list[str] = []
    for line in summary.splitlines():
        if not line.strip() or line.startswith(_OMITTED):
            continue
        if entries and line.startswith("  "):
            entries[-1] += f"\n{line}"
        else:
            entries.append(line)
    return entries


def _compute_needed_tokens(entries: Sequence[_TurnEntry], limit: int, count: Callable[[str], int]) -> int:
    """Return the tokens with which every turn is shown completely, at most `limit`."""
    needed = 1
    for entry in entries:
        needed += 2 * (count(entry.full) + 1)  # complete entries get half of the tokens
        if needed >= limit:
            return limit
    return needed if entries else 0


def _choose_entries(entries: Sequence[_TurnEntry], limit: int, count: Callable[[str], int]) -> list[str]:
    """Return as many turns as fit; those of the focus and the newest ones are complete."""
    chosen: dict[int, str] = {}
    ranked = sorted(range(len(entries)), key=lambda index: (not entries[index].is_focused, -index))
    half = limit // 2
    for index in ranked:
        tokens = count(entries[index].full) + 1
        if tokens > half:
            break
        chosen[index] = entries[index].full
        half -= tokens
        limit -= tokens
    for index in ranked:
        short = entries[index].short
        tokens = count(short) + 1
        if index in chosen or not short:
            continue
        if tokens > limit:
            break
        chosen[index] = short
        limit -= tokens
    left = sum(index not in chosen for index in range(len(entries)))
    note = [_describe_omission(left)] if left else []
    return [*note, *(chosen[index] for index in sorted(chosen))]


def _describe_omission(turns: int) -> str:
    return f"{_OMITTED}{turns} turn{'s' * (turns > 1)})"


def _list_terms(text: str) -> Iterator[str]:
    yield from (word for word in _TERM.findall(text.lower()) if word not in _STOP_WORDS)
    if not text.isascii():
        for run in _UNSPACED_RUN.findall(text):
            yield from map("".join, pairwise(run))


def _cut_middle(text: str) -> str:
    return (
        text
        if len(text) <= _SCORED_CHARACTERS
        else f"{text[: _SCORED_CHARACTERS // 2]}\n{text[-_SCORED_CHARACTERS // 2 :]}"
    )
