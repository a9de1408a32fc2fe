"""Ask summarizers in order until one has written a valid summary.

For each: split the conversation if it does not fit into the summarizer's window, call it in a thread with a time limit,
and check its answer. A summarizer that fails is followed by the next one.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from threading import Event, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.extractive import extractive_summarizer
from nexus_core.compaction.overflow import read_overflow
from nexus_core.compaction.prompts import (
    build_cached_instruction,
    build_instruction,
    build_summarize_prompt,
    count_secrets,
    describe_secrets,
    redact_message,
    redact_text,
    write_transcript,
)
from nexus_core.errors import NexusError, SummaryError
from nexus_core.history.groups import group_messages
from nexus_core.history.shorten import shorten_text
from nexus_core.host.calls import describe_exception
from nexus_core.runner import LongCall
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import redact
from nexus_core.types.compaction import Summarizer, SummaryRequest
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.compaction import SummarizeFunction, SummaryForm
    from nexus_core.types.layers import LoadedLayers

CALLER_SUMMARIZER = "given"
"""The name of the function passed to `Nexus(summarize=…)`."""
MAX_MODEL_FAILURES = 2
"""Failed model calls after which only summarizers without a model are asked."""
MIN_LOCAL_SECONDS = 60.0
"""Seconds that a summarizer without a model has at least; the timeout is meant for models."""
SUMMARY_WINDOW_DIVISOR = 6
"""The fraction of a window that a summary may have: the previous one and the new one are both in it."""
_MAX_FAILURE_CHARACTERS = 300

SummaryOperation = Generator[Callable[[], Any], Any, "Summary"]
"""An operation: it yields functions that block, and is sent their results, awaited if necessary. Their exceptions are
thrown into it."""


class SummarizerError(Exception):
    """Raised if a summarizer failed; its message follows the summarizer's name."""


class SummaryTask(NamedTuple):
    """The conversation to summarize.

    Attributes:
        messages: The messages.
        max_tokens: Maximum tokens of the summary.
        previous: The prose of the previous summary.
        focus: What the user wants to keep above all.
        context: The next call of the conversation, to ask the same model with the same prefix; None to send the
            conversation as one text.
        timeout: Maximum seconds of each model call.
        redact: Whether to remove secrets. They cannot be removed from `context`, so that a conversation with secrets is
            sent as one text.
        model: The name of the conversation's model.
        evidence: The user's words and the facts that are shown beside the summary.
    """

    messages: Sequence[Message]
    max_tokens: int
    previous: str = ""
    focus: str = ""
    context: AssembledContext | None = None
    timeout: float = 120.0
    redact: bool = True
    model: str = ""
    evidence: str = ""


class Summary(NamedTuple):
    """A summary and its origin.

    Attributes:
        text: The summary.
        summarizer: The name of the summarizer that wrote it.
        calls: Number of requests to summarizers.
        messages: The summarized messages, with secrets removed.
        failures: The summarizers that failed, each with its error.
        redacted: Number of secrets removed, by kind.
        form: The form of the request to a model; None if no model was asked.
        note: Why the form differs from the one wanted; "" if it does not.
    """

    text: str
    summarizer: str
    calls: int
    messages: tuple[Message, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    redacted: Mapping[str, int] = MappingProxyType({})
    form: SummaryForm | None = None
    note: str = ""


# ---- the chain ------------------------------------------------------------------------------------------------------


def find_summarizers(
    host: Host,
    loaded: LoadedLayers,
    names: Sequence[str],
    *,
    given: SummarizeFunction | None = None,
    count: Callable[[str], int],
) -> list[Summarizer]:
    """Return the summarizers to ask, in order.

    Args:
        host: The plugins that offer summarizers.
        loaded: Layers and settings.
        names: The names in the settings; `given` is skipped if the caller passed no function.
        given: The caller's function.
        count: Counts the tokens of a text, for the extractive summarizer.

    Raises:
        UnknownNameError: There is no summarizer of that name.
    """
    core = [extractive_summarizer(count)]
    if given is not None:
        core.append(Summarizer(name=CALLER_SUMMARIZER, summarise=given))
    registry = host.summarizers(loaded, core, reserved=(CALLER_SUMMARIZER,))
    return [registry.get(name) for name in dict.fromkeys(names) if name != CALLER_SUMMARIZER or given is not None]


def ask_summarizers(task: SummaryTask, chain: Sequence[Summarizer], count: Callable[[str], int]) -> SummaryOperation:
    """Return the first valid summary of a chain.

    Each summarizer is asked once per piece of the conversation. One that rejects the conversation as too long is asked
    again with pieces. After two failed model calls no further model is asked.

    Args:
        task: The conversation.
        chain: The summarizers, in order.
        count: Counts the tokens of a text.

    Raises:
        SummaryError: Every summarizer failed.
    """
    task, original, secrets, note = yield partial(_redact_task, task, count)
    failures: list[tuple[str, str]] = []
    calls = failed_models = 0
    waiting = deque(chain)
    while waiting:
        summarizer = waiting.popleft()
        if summarizer.asks_model and failed_models >= MAX_MODEL_FAILURES:
            continue
        try:
            own = _adapt_task(task, summarizer, count)
            text, pieces = yield partial(_split_task, own, summarizer.window, count)
            for piece in pieces:
                request = _build_request(own, piece, text, is_whole=len(pieces) == 1)
                calls += 1
                answer = yield LongCall(call_summarizer, summarizer, request)
                text = judge_summary(answer, request, original, count, is_model=summarizer.asks_model)
        except Exception as error:  # noqa: BLE001 - a summarizer may raise anything; then the next one is asked
            failures.append((summarizer.name, _describe_failure(error)))
            failed_models += summarizer.asks_model
            if window := _find_smaller_window(error, summarizer, task, original):
                waiting.appendleft(replace(summarizer, window=window))
        else:
            summary = Summary(text, summarizer.name, calls, tuple(task.messages), tuple(failures), secrets)
            return _add_form(summary, task, note, len(pieces)) if summarizer.asks_model else summary
    raise SummaryError(failures)


def _redact_task(task: SummaryTask, count: Callable[[str], int]) -> tuple[SummaryTask, int, Counter[str], str]:
    """Return the task without secrets, its tokens, the secrets by kind, and a note."""
    secrets: Counter[str] = Counter()
    note = ""
    if task.redact:
        messages = [redact_message(message, secrets) for message in task.messages]
        previous, focus = redact_text(task.previous, secrets), redact_text(task.focus, secrets)
        # The same secrets are in the messages, where they were counted.
        evidence = redact_text(task.evidence, Counter())
        task = task._replace(messages=messages, previous=previous, focus=focus, evidence=evidence)
        # A call that is repeated byte by byte contains its secrets.
        found = secrets or (Counter() if task.context is None else count_secrets(task.context))
        if task.context is not None and found:
            task = task._replace(context=None)
            note = f"the conversation was sent as one text, because there are secrets in it: {describe_secrets(found)}"
    original = count(write_transcript(task.messages)) + count(task.previous)
    task = task._replace(max_tokens=max(min(task.max_tokens, original // 2), 1))
    return task, original, secrets, note


def _adapt_task(task: SummaryTask, summarizer: Summarizer, count: Callable[[str], int]) -> SummaryTask:
    """Return a task with the timeout, evidence and summary length that suit a summarizer."""
    seconds = task.timeout if summarizer.asks_model else max(task.timeout, MIN_LOCAL_SECONDS)
    limit = summarizer.window // SUMMARY_WINDOW_DIVISOR
    evidence = shorten_text(task.evidence, limit, count) if limit and task.evidence else task.evidence
    return task._replace(timeout=seconds, max_tokens=min(task.max_tokens, limit or task.max_tokens), evidence=evidence)


def _split_task(task: SummaryTask, window: int, count: Callable[[str], int]) -> tuple[str, list[tuple[Message, ...]]]:
    """Return the previous summary, and pieces that fit beside it and the new one."""
    previous = task.previous
    if window:
        beside = task.max_tokens + count(task.evidence) + window // 3
        previous = shorten_text(previous, compute_piece_limit(window, beside=beside), count)
    beside = max(count(previous), task.max_tokens) + task.max_tokens + (count(task.evidence) if window else 0)
    return previous, split_into_pieces(task.messages, window, beside=beside, count=count)


def _build_request(
    task: SummaryTask, messages: tuple[Message, ...], previous: str, *, is_whole: bool
) -> SummaryRequest:
    context = task.context if is_whole else None
    build = build_instruction if context is None else build_cached_instruction
    prompt = build_summarize_prompt(
        messages,
        previous=previous,
        focus=task.focus,
        max_tokens=task.max_tokens,
        redact_secrets=False,  # `_redact_task` has done it, if the task wants it
        evidence=task.evidence,
    )
    instruction = build(
        has_previous=bool(previous),
        has_evidence=bool(task.evidence),
        focus=task.focus,
        max_tokens=task.max_tokens,
    )
    return SummaryRequest(
        prompt=prompt,
        messages=messages,
        instruction=instruction,
        max_tokens=task.max_tokens,
        previous=previous,
        focus=task.focus,
        context=context,
        timeout=task.timeout,
        model=task.model,
        evidence=task.evidence,
    )


def _describe_failure(error: Exception) -> str:
    """Return an error in one line, without secrets."""
    what = str(error) if isinstance(error, SummarizerError) else describe_exception(error)
    return visible_line(redact(what).text[:_MAX_FAILURE_CHARACTERS])


def _find_smaller_window(error: Exception, summarizer: Summarizer, task: SummaryTask, original: int) -> int:
    """Return the window of a model that found the conversation too long; else 0.

    It may count other tokens than we do, so that at most half of the conversation is assumed to fit.
    """
    overflow = read_overflow(error) if summarizer.asks_model and task.messages else None
    if overflow is None:
        return 0
    return min(each for each in (overflow.limit, summarizer.window, max(original // 2, 1)) if each)


def _add_form(summary: Summary, task: SummaryTask, note: str, pieces: int) -> Summary:
    """Return a summary with the form of the request to its model."""
    if task.context is not None and pieces > 1:
        note = f"the conversation was sent in {pieces} pieces, because the summarizer reads no more at once"
    return summary._replace(form="cached" if task.context is not None and pieces == 1 else "standalone", note=note)


# ---- pieces ---------------------------------------------------------------------------------------------------------

MAX_PIECES = 16
"""Calls of one summarizer; a longer conversation is shortened, because more would cost more than it is worth."""
PROMPT_OVERHEAD_TOKENS = 400
"""Tokens of a prompt besides the conversation."""
MIN_PIECE_TOKENS = 64
"""Tokens of a piece, however small the window is."""
WINDOW_SAFETY_SHARE = 0.9
"""The share of a window that is used, because its model may count more tokens than we do."""


def compute_piece_limit(window: int, *, beside: int) -> int:
    """Return the maximum tokens of a piece; arguments as for `split_into_pieces`."""
    return max(int(window * WINDOW_SAFETY_SHARE) - PROMPT_OVERHEAD_TOKENS - beside, MIN_PIECE_TOKENS)


def split_into_pieces(
    messages: Sequence[Message], window: int, *, beside: int, count: Callable[[str], int]
) -> list[tuple[Message, ...]]:
    """Split a conversation between groups into pieces that fit into a summarizer's window.

    Args:
        messages: The conversation.
        window: Maximum tokens of a request; 0 for no limit.
        beside: Tokens of the previous and the new summary, which must fit too.
        count: Counts the tokens of a text.
    """
    if not window or not messages:
        return [tuple(messages)]
    limit = compute_piece_limit(window, beside=beside)
    groups = [tuple(messages[slice(*group)]) for group in group_messages(messages)]
    sizes = [count(write_transcript(group)) + 2 for group in groups]
    if sum(sizes) <= limit:
        return [tuple(messages)]
    # Neighbors that do not fit into one piece together fill at least half of two.
    if sum(sizes) > limit * (MAX_PIECES - 1) // 2:
        return _split_text(write_transcript(messages), limit, count)
    readable = [
        each if size <= limit else _build_text_piece(write_transcript(each), limit, count)
        for each, size in zip(groups, sizes, strict=True)
    ]
    return _pack_groups(readable, sizes, limit)


def _pack_groups(groups: Sequence[tuple[Message, ...]], sizes: Sequence[int], limit: int) -> list[tuple[Message, ...]]:
    pieces: list[list[Message]] = []
    left = 0
    for group, size in zip(groups, sizes, strict=True):
        if not pieces or size > left:
            pieces.append([])
            left = limit
        pieces[-1] += group
        left -= min(size, limit)
    return [tuple(piece) for piece in pieces]


def _split_text(text: str, limit: int, count: Callable[[str], int]) -> list[tuple[Message, ...]]:
    """Split a text into `MAX_PIECES` pieces, each shortened in the middle."""
    length = -(-len(text) // MAX_PIECES)
    return [_build_text_piece(text[start : start + length], limit, count) for start in range(0, len(text), length)]


def _build_text_piece(text: str, limit: int, count: Callable[[str], int]) -> tuple[Message, ...]:
    # As text, because a tool call without its result would be invalid.
    return (Message("user", shorten_text(text, limit, count)),)


# ---- one call -------------------------------------------------------------------------------------------------------


def call_summarizer(summarizer: Summarizer, request: SummaryRequest) -> Any:  # noqa: ANN401 - it may return anything
    """Return the answer of a summarizer: a value, or an awaitable with the same time limit.

    It runs in a daemon thread, because a function cannot be interrupted. One that exceeds the limit is abandoned.

    Raises:
        SummarizerError: It raised an exception, or exceeded the time limit.
    """
    outcome: list[tuple[Any, BaseException | None]] = []
    done = Event()

    def call() -> None:
        try:
            outcome.append((summarizer.summarise(request), None))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the next one is asked
            outcome.append((None, error))
        finally:
            done.set()

    Thread(target=copy_context().run, args=(call,), name=f"nexus-{summarizer.name}", daemon=True).start()
    if not done.wait(request.timeout):
        raise _build_timeout_error(request.timeout)
    value, error = outcome[0]
    if error is not None:
        raise SummarizerError(_describe_error(error)) from error
    return _await_answer(value, request.timeout) if isawaitable(value) else value


async def _await_answer(value: Awaitable[Any], timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - the request's timeout
    try:
        return await asyncio.wait_for(value, timeout)
    except TimeoutError as error:
        raise _build_timeout_error(timeout) from error
    except Exception as error:
        raise SummarizerError(_describe_error(error)) from error


def _describe_error(error: BaseException) -> str:
    """Return an error as the end of a sentence that begins with the summarizer's name."""
    if not isinstance(error, NexusError):
        return describe_exception(error)
    return f"failed: {error.what}" + (f" ({error.hint})" if error.hint else "")


def _build_timeout_error(timeout: float) -> SummarizerError:
    return SummarizerError(f"took longer than {timeout:g} s")


# ---- its answer -----------------------------------------------------------------------------------------------------

MAX_REFUSAL_CHARACTERS = 400
"""A longer text that begins like a refusal is a summary."""
MAX_TOKEN_CHARACTERS = 64
"""Characters of the longest token that is not whitespace: a longer text need not be counted."""
_REFUSAL = re.compile(
    r"sorry[,.]|as an ai\b|unfortunately,? i\b|i(?:'m| am) (?:sorry|unable|not able|afraid)|i apologi[sz]e"
    r"|i (?:cannot|can't|won't|will not|must decline)",
    re.IGNORECASE,
)
_GARBAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARACTERS_PER_GARBAGE = 200
"""One invalid character in so many is tolerated and removed."""


def judge_summary(
    answer: object, request: SummaryRequest, original: int, count: Callable[[str], int], *, is_model: bool = True
) -> str:
    """Return the answer of a summarizer as a summary of at most the requested length.

    Args:
        answer: The answer.
        request: The request.
        original: Tokens of the summarized conversation.
        count: Counts the tokens of a text.
        is_model: True if a model wrote it, which may refuse or repeat its input. A summarizer without a model quotes
            the conversation, which may contain refusals and invalid characters.

    Raises:
        SummarizerError: The answer is not a summary.
    """
    text = _clean_text(answer, is_model=is_model)
    if len(text) > original * MAX_TOKEN_CHARACTERS + MAX_REFUSAL_CHARACTERS:
        raise SummarizerError(f"wrote {len(text):,} characters in place of {original:,} tokens")
    if is_model and " ".join(text.split()) in _list_request_texts(request):
        raise SummarizerError("returned what it was given")
    if is_model and len(text) <= MAX_REFUSAL_CHARACTERS and _REFUSAL.match(text.replace("\u2019", "'")):
        raise SummarizerError(f"refused: {text.splitlines()[0][:80]}")
    tokens = count(text)
    if tokens >= original:
        raise SummarizerError(f"wrote {tokens:,} tokens in place of {original:,}")
    return shorten_text(text, request.max_tokens, count)


def _clean_text(answer: object, *, is_model: bool) -> str:
    if not isinstance(answer, str):
        raise SummarizerError(f"returned {type(answer).__name__} instead of text")
    if _SURROGATE.search(answer):
        raise SummarizerError("returned text that cannot be encoded (a lone surrogate)")
    garbage = len(_GARBAGE.findall(answer))
    if is_model and garbage * _CHARACTERS_PER_GARBAGE > len(answer):
        raise SummarizerError(f"returned {garbage:,} characters that are not text")
    text = _GARBAGE.sub("", answer).strip()
    if not text:
        raise SummarizerError("returned an empty text")
    return text


def _list_request_texts(request: SummaryRequest) -> set[str]:
    texts = [
        request.prompt,
        request.instruction,
        request.previous,
        request.evidence,
        *(message.content for message in request.messages),
    ]
    joined = "\n".join(message.content for message in request.messages)
    return {" ".join(text.split()) for text in (*texts, joined) if text.strip()}
