"""Asks summarizers one after the other until one has written a summary."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.calling import SummarizerError, call_summarizer
from nexus_core.compaction.judging import judge_summary
from nexus_core.compaction.pieces import cut_pieces, room_in
from nexus_core.compaction.prompts import (
    build_cached_instruction,
    build_instruction,
    build_summarize_prompt,
    write_transcript,
)
from nexus_core.compaction.redaction import count_secrets, redact_message, redact_text, told_secrets
from nexus_core.errors import SummaryError
from nexus_core.history.shorten import shorten_text
from nexus_core.host.calls import describe_exception
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import redact
from nexus_core.types.compaction import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.compaction import Summarizer, SummaryForm
    from nexus_core.types.messages import Message

MOST_FAILURES = 2
"""So many calls of models may fail; then only those are asked that need none."""
WITHOUT_MODEL = 60.0
"""Seconds that those have at least: how long a model may take says nothing about how long reading takes."""
SUMMARY_SHARE = 6
"""A summary takes no more than this fraction of a window: the one before and the one that is written are in it too."""
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
        timeout: How many seconds each call of a model may take.
        redact: Whether secrets are taken out first. From a call that others have seen nothing can be taken out; where
            there are secrets in it, the conversation goes as one text.
        model: The model that the conversation is with, by name.
    """

    messages: Sequence[Message]
    max_tokens: int
    previous: str = ""
    focus: str = ""
    context: AssembledContext | None = None
    timeout: float = 120.0
    redact: bool = True
    model: str = ""


class Summary(NamedTuple):
    """What was written, and by whom.

    Attributes:
        text: The summary.
        summarizer: Who wrote it, by name.
        calls: How often somebody was asked.
        messages: What it stands for, as whoever wrote it could read it: without secrets.
        failures: Who was asked in vain, and what went wrong.
        redacted: How many secrets of which kind were taken out before.
        form: How a model was asked; None where none was.
        note: Why it was asked otherwise than wanted; "" where it was not.
    """

    text: str
    summarizer: str
    calls: int
    messages: tuple[Message, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    redacted: Mapping[str, int] = MappingProxyType({})
    form: SummaryForm | None = None
    note: str = ""


def ask_summarizers(task: SummaryTask, chain: Sequence[Summarizer], count: Callable[[str], int]) -> Asking:
    """The first summary that somebody in the chain writes.

    No summarizer is asked twice, but for the pieces of a conversation that it cannot read at once; one that says so
    only when it is asked gets pieces then. After two calls of models that failed no further model is asked.

    Args:
        task: What is to be summarised.
        chain: Whom to ask, in this order.
        count: Who counts.

    Raises:
        SummaryError: Nobody could.
    """
    task, original, counts, note = yield partial(_prepared, task, count)
    failures: list[tuple[str, str]] = []
    calls = failed_models = 0
    waiting = deque(chain)
    while waiting:
        summarizer = waiting.popleft()
        if summarizer.asks_model and failed_models >= MOST_FAILURES:
            continue
        try:
            own = _task_for(summarizer, task)
            written, pieces = yield partial(_readable, own, summarizer.window, count)
            for piece in pieces:
                request = _request(own, piece, written, is_whole=len(pieces) == 1)
                calls += 1
                answer = yield partial(call_summarizer, summarizer, request)
                written = judge_summary(answer, request, original, count, is_model=summarizer.asks_model)
        except Exception as error:  # noqa: BLE001 - a summarizer may fail in any way; then the next one is asked
            failures.append((summarizer.name, _told(error)))
            failed_models += summarizer.asks_model
            if window := _smaller_window(error, summarizer, task, original):
                waiting.appendleft(replace(summarizer, window=window))
        else:
            said = tuple(task.messages)
            summary = Summary(written, summarizer.name, calls, said, tuple(failures), counts)
            return _as_asked(summary, task, note, len(pieces)) if summarizer.asks_model else summary
    raise SummaryError(failures)


def _smaller_window(error: Exception, summarizer: Summarizer, task: SummaryTask, original: int) -> int:
    """The window of a model that has just said that the conversation is too long for it; 0 where it said nothing so.

    It may count otherwise than we do, so that no more than half of the conversation is believed to fit.
    """
    from nexus_core.compaction.overflow import read_overflow

    overflow = read_overflow(error) if summarizer.asks_model and task.messages else None
    if overflow is None:
        return 0
    return min(each for each in (overflow.limit, summarizer.window, max(original // 2, 1)) if each)


def _as_asked(summary: Summary, task: SummaryTask, note: str, pieces: int) -> Summary:
    """A summary with how a model was asked for it."""
    if task.context is not None and pieces > 1:
        note = f"the conversation was sent in {pieces} pieces, because the summarizer reads no more at once"
    return summary._replace(form="cached" if task.context is not None and pieces == 1 else "standalone", note=note)


class _Prepared(NamedTuple):
    """A task without secrets, what the conversation takes, how many secrets there were, and what to say about that."""

    task: SummaryTask
    original: int
    redacted: Counter[str]
    note: str


def _prepared(task: SummaryTask, count: Callable[[str], int]) -> _Prepared:
    counts: Counter[str] = Counter()
    note = ""
    if task.redact:
        messages = [redact_message(message, counts) for message in task.messages]
        previous, focus = redact_text(task.previous, counts), redact_text(task.focus, counts)
        task = task._replace(messages=messages, previous=previous, focus=focus)
        # A call that is repeated byte for byte is repeated with its secrets.
        found = counts or (Counter() if task.context is None else count_secrets(task.context))
        if task.context is not None and found:
            task = task._replace(context=None)
            note = f"the conversation was sent as one text, because there are secrets in it: {told_secrets(found)}"
    original = count(write_transcript(task.messages)) + count(task.previous)
    task = task._replace(max_tokens=max(min(task.max_tokens, original // 2), 1))
    return _Prepared(task, original, counts, note)


def _readable(task: SummaryTask, window: int, count: Callable[[str], int]) -> tuple[str, list[tuple[Message, ...]]]:
    """The summary so far and the pieces of a conversation, with room for the summary that is written."""
    previous = task.previous
    if window:
        previous = shorten_text(previous, room_in(window, beside=task.max_tokens + window // 3), count)
    beside = max(count(previous), task.max_tokens) + task.max_tokens
    return previous, cut_pieces(task.messages, window, beside=beside, count=count)


def _task_for(summarizer: Summarizer, task: SummaryTask) -> SummaryTask:
    """A task with the time that a summarizer has, and a summary that leaves room in its window for the conversation."""
    seconds = task.timeout if summarizer.asks_model else max(task.timeout, WITHOUT_MODEL)
    most = summarizer.window // SUMMARY_SHARE or task.max_tokens
    return task._replace(timeout=seconds, max_tokens=min(task.max_tokens, most))


def _told(error: Exception) -> str:
    """What went wrong, without what nobody else should read."""
    what = str(error) if isinstance(error, SummarizerError) else describe_exception(error)
    return visible_line(redact(what).text[:_LONGEST])


def _request(task: SummaryTask, messages: tuple[Message, ...], previous: str, *, is_whole: bool) -> SummaryRequest:
    context = task.context if is_whole else None
    build = build_instruction if context is None else build_cached_instruction
    prompt = build_summarize_prompt(
        messages,
        previous=previous,
        focus=task.focus,
        max_tokens=task.max_tokens,
        redact_secrets=False,  # `_prepared` has done it, where the task asks for it
    )
    return SummaryRequest(
        prompt=prompt,
        messages=messages,
        instruction=build(has_previous=bool(previous), focus=task.focus, max_tokens=task.max_tokens),
        max_tokens=task.max_tokens,
        previous=previous,
        focus=task.focus,
        context=context,
        timeout=task.timeout,
        model=task.model,
    )
