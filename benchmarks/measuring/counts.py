"""How far our counts of recorded calls are from what their providers counted, and what explains their cache reads."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measuring.rows import Goal, Row
from nexus_core import MessageError
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.budget import (
    MAX_RESPONSE_RESERVE_TOKENS,
    MAX_TOOL_RESERVE_TOKENS,
    RESPONSE_RESERVE_DIVISOR,
    TOOL_RESERVE_DIVISOR,
)
from nexus_core.request.cache_report import CACHE_LIFETIME_MS, CACHE_TOLERANCE, LONG_CACHE_LIFETIME_MS
from nexus_core.thread.calibration import CountedCall, add_calibration_sample, get_calibration, get_calibration_key
from nexus_core.tokens.counters import open_counter
from nexus_core.tokens.messages import count_tools
from nexus_core.transcripts.read import read_transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nexus_core.transcripts.base import Transcript
    from nexus_core.types.messages import Usage

MIN_CALLS = 3
"""Sessions with fewer calls say nothing about how counts grow."""
MIN_TOKENS = 1000
"""Calls that a provider counted fewer tokens for are made up: every coding agent sends more instructions."""
MIN_ADDED_TOKENS = 2000
"""Sessions that added fewer tokens say nothing about a first count, which is of thousands."""
FIRST_ERROR, LATER_ERROR = 0.08, 0.02


class RecordedCall(NamedTuple):
    """A call of a transcript, by both counts.

    Attributes:
        program: The program that wrote the transcript.
        model: The model that answered.
        sent: Tokens of the messages before the reply, by our count; a program's own instructions are not among them.
        bytes: Bytes of the same messages.
        usage: What the provider counted.
        pause: Milliseconds between the reply before and this call; None if unknown.
        follows: False after a compaction or another model, where the call before says nothing about this one.
    """

    program: str
    model: str
    sent: int
    bytes: int
    usage: Usage
    pause: int | None
    follows: bool


class SessionErrors(NamedTuple):
    """How far predictions were off in a session with one model.

    Attributes:
        first: Share by which our count of all that was added since the first call differs, by the model table alone;
            None if too little was added. Calls are left out if the provider counted more tokens for what is new than
            the transcript has bytes of it: the program has sent something that it did not record.
        later: Share by which the prediction of each later call differs.
        unsafe: Calls judged to fit into a window that is one token too small for them, with the usual reserves.
    """

    model: str
    first: float | None
    later: list[float]
    unsafe: int


def build_count_rows(folder: Path) -> list[Row]:
    """Return rows about every transcript below a folder that has what a provider counted."""
    sessions = [calls for path in sorted(folder.rglob("*.jsonl")) if len(calls := read_calls(path)) >= MIN_CALLS]
    errors = [found for calls in sessions for found in measure_errors(calls)]
    if not errors:
        return []
    rows = _build_error_rows("all models", errors, is_goal=True)
    for model in sorted({each.model for each in errors}):
        rows += _build_error_rows(model, [each for each in errors if each.model == model])
    unsafe, number = sum(each.unsafe for each in errors), sum(len(each.later) for each in errors)
    rows.append(
        Row(
            "later calls judged to fit into a window one token too small",
            unsafe,
            (Goal("<=", 0),),
            "count",
            f"of {number:,} recorded calls, with the usual reserves",
        )
    )
    for program in sorted({calls[0].program for calls in sessions}):
        rows += _build_cache_rows(program, [calls for calls in sessions if calls[0].program == program])
    return rows


def read_calls(path: Path) -> list[RecordedCall]:
    """Return the calls of a transcript whose provider reported what it counted; none if it cannot be read."""
    try:
        transcript = read_transcript(path.read_text(encoding="utf-8"), path.name)
    except (MessageError, UnicodeDecodeError):
        return []
    return list(_iterate_calls(transcript))


def _iterate_calls(transcript: Transcript) -> Iterable[RecordedCall]:
    model = transcript.model
    counter = open_counter(model, stored=False)
    sent = counter.count_messages(list(transcript.system)) + count_tools(counter, transcript.tools)
    size = 0
    compacted = {each.at for each in transcript.compactions}
    follows, before = False, ""
    replied: int | None = None
    now: int | None = None
    for index, entry in enumerate(transcript.entries):
        model = entry.model or model
        follows = follows and index not in compacted
        usage, is_reply = entry.usage, entry.message.role == "assistant"
        if is_reply and usage is not None and usage.input_tokens >= MIN_TOKENS:
            pause = None if now is None or replied is None else now - replied
            yield RecordedCall(transcript.format, model, sent, size, usage, pause, follows and model == before)
            follows, before = True, model
        now = _parse_time(entry.time) or now
        replied = now if is_reply else replied
        sent += open_counter(model, stored=False).count_messages([entry.message])
        size += count_message_bytes(entry.message)


def _parse_time(text: object) -> int | None:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None


def measure_errors(calls: Sequence[RecordedCall]) -> list[SessionErrors]:
    """Return the errors of each model of a session, predicted call by call as a session does."""
    found = []
    for model in dict.fromkeys(call.model for call in calls):
        own = [call for call in calls if call.model == model]
        if sum(call.follows for call in own) >= MIN_CALLS - 1:
            found.append(_measure_model_errors(model, own))
    return found


def _measure_model_errors(model: str, calls: Sequence[RecordedCall]) -> SessionErrors:
    counter = open_counter(model, stored=False)
    key, samples = get_calibration_key(model, counter), dict[str, list[float]]()
    last: CountedCall | None = None
    later, unsafe, ours, theirs, size = [], 0, 0, 0, 0
    for call in calls:
        counted = call.usage.input_tokens
        now = CountedCall(call.sent, counted)
        if last is not None and call.follows:
            calibration = get_calibration(samples, key, error=counter.error, last=last)
            assert calibration is not None  # noqa: S101 - there is a last call
            later.append(abs(calibration.predict(call.sent) - counted) / counted)
            unsafe += calibration.predict_high(call.sent) <= _compute_available(counted - 1)
            samples = add_calibration_sample(samples, key, now, last)
            if 0 < counted - last.counted <= call.bytes - size:  # else the program has left something out, or added it
                ours, theirs = ours + call.sent - last.sent, theirs + counted - last.counted
        last, size = now, call.bytes
    first = abs(ours - theirs) / theirs if theirs >= MIN_ADDED_TOKENS else None
    return SessionErrors(model, first, later, unsafe)


def _compute_available(limit: int) -> int:
    response = min(MAX_RESPONSE_RESERVE_TOKENS, limit // RESPONSE_RESERVE_DIVISOR)
    return limit - response - min(MAX_TOOL_RESERVE_TOKENS, limit // TOOL_RESERVE_DIVISOR)


def _build_error_rows(name: str, errors: Sequence[SessionErrors], *, is_goal: bool = False) -> list[Row]:
    later = sorted(share for each in errors for share in each.later)
    first = [each.first for each in errors if each.first is not None]
    tail = f"p90 {later[len(later) * 9 // 10]:.1%}, {len(later):,} calls of {len(errors)} sessions"
    goals = ((Goal("<=", LATER_ERROR),), (Goal("<=", FIRST_ERROR),)) if is_goal else ((), ())
    rows = [
        Row(f"{name}: median error of a predicted call, from the second on", median(later), goals[0], "share", tail)
    ]
    if first:
        worst = f"at most {max(first):.1%}, {len(first)} sessions"
        rows.append(
            Row(f"{name}: median error of a first count, by the table", median(first), goals[1], "share", worst)
        )
    return rows


def _build_cache_rows(program: str, sessions: Iterable[Sequence[RecordedCall]]) -> list[Row]:
    """Return which share of calls found in the cache what they should, without and with its lifetime."""
    calls = same = explained = 0
    for session in sessions:
        for before, call in pairwise(session):
            if before.model != call.model or not call.follows or not before.usage.cache_write_tokens:
                continue
            is_long = 2 * before.usage.cache_write_1h_tokens > before.usage.cache_write_tokens
            is_hit = call.usage.cached_input_tokens >= CACHE_TOLERANCE * before.usage.input_tokens
            lifetime = LONG_CACHE_LIFETIME_MS if is_long else CACHE_LIFETIME_MS
            is_expired = call.pause is not None and call.pause > lifetime
            calls, same, explained = calls + 1, same + is_hit, explained + (is_hit != is_expired)
    if not calls:
        return []
    detail = f"{calls:,} calls"
    return [
        Row(f"{program}: cache reads that follow from the same beginning", same / calls, unit="share", detail=detail),
        Row(f"{program}: the same, with the cache's lifetime", explained / calls, unit="share", detail=detail),
    ]
