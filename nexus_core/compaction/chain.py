"""Asks summarisers one after the other until one has written a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.calling import SummariserError, call_summariser
from nexus_core.compaction.judging import judge_summary
from nexus_core.compaction.pieces import cut_pieces
from nexus_core.compaction.prompts import (
    build_cached_instruction,
    build_instruction,
    build_summarize_prompt,
    write_transcript,
)
from nexus_core.compaction.redaction import redact_message, redact_text
from nexus_core.errors import SummaryError
from nexus_core.host.implementation import describe
from nexus_core.text.redaction import redact
from nexus_core.text.visible import visible_line
from nexus_core.values.compaction import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.compaction import Summariser
    from nexus_core.values.message import Message

MOST_FAILURES = 2
"""So many calls of models may fail; then only those are asked that need none."""
_LONGEST = 300

Asking = Generator[Callable[[], Any], Any, "Summary"]
"""A pipeline: it yields functions that take their time, and is sent what they return, or what that brings if it can be
awaited. Whatever they raise is thrown into it."""


class SummaryTask(NamedTuple):
    """What is to be summarised.

    Attributes:
        messages: What was said.
        max_tokens: How long the summary may be.
        previous: The prose of the summary before.
        focus: What the user wants to be kept above all.
        context: The call that would be made next, to ask the same model with the same beginning; None to ask with the
            conversation as one text.
        timeout: How many seconds each call may take.
        redact: Whether secrets are taken out first. With a context they are not: its model has read them.
    """

    messages: Sequence[Message]
    max_tokens: int
    previous: str = ""
    focus: str = ""
    context: AssembledContext | None = None
    timeout: float = 120.0
    redact: bool = True


class Summary(NamedTuple):
    """What was written, and by whom.

    Attributes:
        text: The summary.
        summariser: Who wrote it, by name.
        calls: How often somebody was asked.
        failures: Who was asked in vain, and what went wrong.
        redacted: How many secrets of which kind were taken out before.
    """

    text: str
    summariser: str
    calls: int
    failures: tuple[tuple[str, str], ...] = ()
    redacted: Mapping[str, int] = MappingProxyType({})


def ask_summarisers(task: SummaryTask, chain: Sequence[Summariser], count: Callable[[str], int]) -> Asking:
    """The first summary that somebody in the chain writes.

    No summariser is asked twice, but for the pieces of a conversation that it cannot read at once. After two calls of
    models that failed no further model is asked.

    Args:
        task: What is to be summarised.
        chain: Whom to ask, in this order.
        count: Who counts.

    Raises:
        SummaryError: Nobody could.
    """
    task, original, counts = yield partial(_prepared, task, count)
    failures: list[tuple[str, str]] = []
    calls = failed_models = 0
    for summariser in chain:
        if summariser.asks_model and failed_models >= MOST_FAILURES:
            continue
        written = task.previous
        try:
            pieces = yield partial(_cut, task, summariser.window, count)
            for piece in pieces:
                request = _request(task, piece, written, is_whole=len(pieces) == 1)
                calls += 1
                answer = yield partial(call_summariser, summariser, request)
                written = judge_summary(answer, request, original, count)
        except Exception as error:  # noqa: BLE001 - a summariser may fail in any way; then the next one is asked
            failures.append((summariser.name, _told(error)))
            failed_models += summariser.asks_model
        else:
            return Summary(written, summariser.name, calls, tuple(failures), counts)
    raise SummaryError(failures)


def _prepared(task: SummaryTask, count: Callable[[str], int]) -> tuple[SummaryTask, int, Counter[str]]:
    """The task without secrets, what the conversation takes, and how many secrets there were."""
    counts: Counter[str] = Counter()
    if task.redact:
        messages = [redact_message(message, counts) for message in task.messages]
        task = task._replace(messages=messages, previous=redact_text(task.previous, counts))
    original = count(write_transcript(task.messages)) + count(task.previous)
    return task._replace(max_tokens=max(min(task.max_tokens, original // 2), 1)), original, counts


def _cut(task: SummaryTask, window: int, count: Callable[[str], int]) -> list[tuple[Message, ...]]:
    """The pieces of a conversation, with room for the summary so far and for the one that is written."""
    beside = max(count(task.previous), task.max_tokens) + task.max_tokens
    return cut_pieces(task.messages, window, beside=beside, count=count)


def _told(error: Exception) -> str:
    """What went wrong, without what nobody else should read."""
    what = str(error) if isinstance(error, SummariserError) else describe(error)
    return visible_line(redact(what).text[:_LONGEST])


def _request(task: SummaryTask, messages: tuple[Message, ...], previous: str, *, is_whole: bool) -> SummaryRequest:
    context = task.context if is_whole else None
    build = build_instruction if context is None else build_cached_instruction
    return SummaryRequest(
        prompt=build_summarize_prompt(messages, previous=previous, focus=task.focus, max_tokens=task.max_tokens),
        messages=messages,
        instruction=build(has_previous=bool(previous), focus=task.focus, max_tokens=task.max_tokens),
        max_tokens=task.max_tokens,
        previous=previous,
        focus=task.focus,
        context=context,
        timeout=task.timeout,
    )
