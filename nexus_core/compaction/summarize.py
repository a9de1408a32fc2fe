"""Asks one summarizer, and waits no longer than one may."""

from __future__ import annotations

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


class SummarizerError(Exception):
    """Raised when a summarizer failed; says how, in half a sentence."""


class _Outcome(NamedTuple):
    value: Any
    error: BaseException | None


def call_summarizer(summarizer: Summarizer, request: SummaryRequest) -> Any:  # noqa: ANN401 - a stranger answers anything
    """What a summarizer answers: a value, or an awaitable of one, which takes no longer than it may either.

    It runs in a thread of its own, because nobody can be made to come back. One that does not is left behind; it ends
    with the program.

    Raises:
        SummarizerError: It raised something, or took too long.
    """
    outcome: list[_Outcome] = []
    done = Event()

    def work() -> None:
        try:
            outcome.append(_Outcome(summarizer.summarise(request), None))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the next one is asked
            outcome.append(_Outcome(None, error))
        finally:
            done.set()

    Thread(target=copy_context().run, args=(work,), name=f"nexus-{summarizer.name}", daemon=True).start()
    if not done.wait(request.timeout):
        raise _late(request.timeout)
    value, error = outcome[0]
    if error is not None:
        raise SummarizerError(_told(error)) from error
    return _awaited(value, request.timeout) if isawaitable(value) else value


async def _awaited(value: Awaitable[Any], timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - as above; it is the request's
    import asyncio

    try:
        return await asyncio.wait_for(value, timeout)
    except TimeoutError as error:
        raise _late(timeout) from error
    except Exception as error:
        raise SummarizerError(_told(error)) from error


def _told(error: BaseException) -> str:
    """What went wrong, for a sentence that begins with the summarizer."""
    if not isinstance(error, NexusError):
        return describe_exception(error)
    return f"failed: {error.what}" + (f" ({error.hint})" if error.hint else "")


def _late(timeout: float) -> SummarizerError:
    return SummarizerError(f"took longer than {timeout:g} s")


MAX_REFUSAL_CHARACTERS = 400
"""A refusal is no longer than that; a summary that begins so says more."""
MAX_TOKEN_CHARACTERS = 64
"""Characters of a token, and more than any has that is not all blanks: a text that is longer need not be counted."""
_REFUSAL = re.compile(
    r"sorry[,.]|as an ai\b|unfortunately,? i\b|i(?:'m| am) (?:sorry|unable|not able|afraid)|i apologi[sz]e"
    r"|i (?:cannot|can't|won't|will not|must decline)",
    re.IGNORECASE,
)
_GARBAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOLERATED = 200
"""One character of garbage in so many is an accident."""


def judge_summary(
    answer: object, request: SummaryRequest, original: int, count: Callable[[str], int], *, is_model: bool = True
) -> str:
    """An answer as a summary, no longer than it may be.

    Args:
        answer: What a summarizer gave.
        request: What it was asked.
        original: What the conversation takes that it stands for.
        count: Who counts.
        is_model: Whether a model wrote it, which may refuse, or babble. Who only quotes what was said quotes refusals
            and odd characters too.

    Raises:
        SummarizerError: It is none.
    """
    text = _text_of(answer, is_model=is_model)
    if len(text) > original * MAX_TOKEN_CHARACTERS + MAX_REFUSAL_CHARACTERS:
        raise SummarizerError(f"wrote {len(text):,} characters in place of {original:,} tokens")
    if is_model and " ".join(text.split()) in _known_texts(request):
        raise SummarizerError("returned what it was given")
    if is_model and len(text) <= MAX_REFUSAL_CHARACTERS and _REFUSAL.match(text.replace("\u2019", "'")):
        raise SummarizerError(f"refused: {text.splitlines()[0][:80]}")
    tokens = count(text)
    if tokens >= original:
        raise SummarizerError(f"wrote {tokens:,} tokens in place of {original:,}")
    return shorten_text(text, request.max_tokens, count)


def _text_of(answer: object, *, is_model: bool) -> str:
    if not isinstance(answer, str):
        raise SummarizerError(f"returned {type(answer).__name__} instead of text")
    if _SURROGATE.search(answer):
        raise SummarizerError("returned text that cannot be encoded (a lone surrogate)")
    garbage = len(_GARBAGE.findall(answer))
    if is_model and garbage * _TOLERATED > len(answer):
        raise SummarizerError(f"returned {garbage:,} characters that are not text")
    text = _GARBAGE.sub("", answer).strip()
    if not text:
        raise SummarizerError("returned an empty text")
    return text


def _known_texts(request: SummaryRequest) -> set[str]:
    texts = [request.prompt, request.instruction, request.previous, *(message.content for message in request.messages)]
    joined = "\n".join(message.content for message in request.messages)
    return {" ".join(text.split()) for text in (*texts, joined) if text.strip()}


MAX_PIECES = 16
"""More would cost more than the conversation is worth; then what is too long is shortened."""
PROMPT_OVERHEAD_TOKENS = 400
"""Tokens of a prompt besides what is summarised."""
MIN_PIECE_TOKENS = 64
"""Tokens that a piece has in any case; a smaller window is none."""
WINDOW_SAFETY_SHARE = 0.9
"""The share of a window that is used: its owner may count otherwise than we do."""


def compute_piece_limit(window: int, *, beside: int) -> int:
    """The tokens that a summarizer can read of a conversation at once; arguments as below."""
    return max(int(window * WINDOW_SAFETY_SHARE) - PROMPT_OVERHEAD_TOKENS - beside, MIN_PIECE_TOKENS)


def split_into_pieces(
    messages: Sequence[Message], window: int, *, beside: int, count: Callable[[str], int]
) -> list[tuple[Message, ...]]:
    """A conversation in pieces that a summarizer can read, groups whole; one piece where it can read everything.

    Args:
        messages: The conversation.
        window: How many tokens it reads at once; 0 for any number.
        beside: What else must fit: the summary so far, and the one it writes.
        count: Who counts.
    """
    if not window or not messages:
        return [tuple(messages)]
    room = compute_piece_limit(window, beside=beside)
    whole = [tuple(messages[group.first : group.last + 1]) for group in group_messages(messages)]
    sizes = [count(write_transcript(group)) + 2 for group in whole]
    if sum(sizes) <= room:
        return [tuple(messages)]
    # Neighbours that do not fit into one piece together fill at least half of two.
    if sum(sizes) > room * (MAX_PIECES - 1) // 2:
        return _chunks(write_transcript(messages), room, count)
    readable = [
        each if size <= room else _as_text(write_transcript(each), room, count)
        for each, size in zip(whole, sizes, strict=True)
    ]
    return _packed(readable, sizes, room)


def _packed(whole: Sequence[tuple[Message, ...]], sizes: Sequence[int], room: int) -> list[tuple[Message, ...]]:
    pieces: list[list[Message]] = []
    left = 0
    for group, size in zip(whole, sizes, strict=True):
        if not pieces or size > left:
            pieces.append([])
            left = room
        pieces[-1] += group
        left -= min(size, room)
    return [tuple(piece) for piece in pieces]


def _chunks(text: str, room: int, count: Callable[[str], int]) -> list[tuple[Message, ...]]:
    """A text in as many pieces as there may be, of each its beginning and its end."""
    length = -(-len(text) // MAX_PIECES)
    return [_as_text(text[start : start + length], room, count) for start in range(0, len(text), length)]


def _as_text(text: str, room: int, count: Callable[[str], int]) -> tuple[Message, ...]:
    # Whoever reads it as text reads the same; a call without its result would be a riddle.
    return (Message("user", shorten_text(text, room, count)),)


CALLER_SUMMARIZER = "given"
"""The name of the function that the caller gave to `Nexus(summarize=…)`."""


def find_summarizers(
    host: Host,
    loaded: LoadedLayers,
    names: Sequence[str],
    *,
    given: SummarizeFunction | None = None,
    count: Callable[[str], int],
) -> list[Summarizer]:
    """The chain of summarizers to ask.

    Args:
        host: The plugins that offer some.
        loaded: Layers and settings.
        names: Who is asked, in which order; `given` is passed over where nobody gave anything.
        given: The caller's own.
        count: Who counts, for the one that needs no model.

    Raises:
        UnknownNameError: There is none of that name.
    """
    core = [extractive_summarizer(count)]
    if given is not None:
        core.append(Summarizer(name=CALLER_SUMMARIZER, summarise=given))
    registry = host.summarizers(loaded, core, reserved=(CALLER_SUMMARIZER,))
    return [registry.get(name) for name in dict.fromkeys(names) if name != CALLER_SUMMARIZER or given is not None]


MAX_MODEL_FAILURES = 2
"""So many calls of models may fail; then only those are asked that need none."""
MIN_LOCAL_SECONDS = 60.0
"""Seconds that those have at least: how long a model may take says nothing about how long reading takes."""
SUMMARY_WINDOW_DIVISOR = 6
"""A summary takes no more than this fraction of a window: the one before and the one that is written are in it too."""
_LONGEST = 300

SummaryOperation = Generator[Callable[[], Any], Any, "Summary"]
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


def ask_summarizers(task: SummaryTask, chain: Sequence[Summarizer], count: Callable[[str], int]) -> SummaryOperation:
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
        if summarizer.asks_model and failed_models >= MAX_MODEL_FAILURES:
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
            failures.append((summarizer.name, _chain_told(error)))
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
            note = f"the conversation was sent as one text, because there are secrets in it: {describe_secrets(found)}"
    original = count(write_transcript(task.messages)) + count(task.previous)
    task = task._replace(max_tokens=max(min(task.max_tokens, original // 2), 1))
    return _Prepared(task, original, counts, note)


def _readable(task: SummaryTask, window: int, count: Callable[[str], int]) -> tuple[str, list[tuple[Message, ...]]]:
    """The summary so far and the pieces of a conversation, with room for the summary that is written."""
    previous = task.previous
    if window:
        previous = shorten_text(previous, compute_piece_limit(window, beside=task.max_tokens + window // 3), count)
    beside = max(count(previous), task.max_tokens) + task.max_tokens
    return previous, split_into_pieces(task.messages, window, beside=beside, count=count)


def _task_for(summarizer: Summarizer, task: SummaryTask) -> SummaryTask:
    """A task with the time that a summarizer has, and a summary that leaves room in its window for the conversation."""
    seconds = task.timeout if summarizer.asks_model else max(task.timeout, MIN_LOCAL_SECONDS)
    most = summarizer.window // SUMMARY_WINDOW_DIVISOR or task.max_tokens
    return task._replace(timeout=seconds, max_tokens=min(task.max_tokens, most))


def _chain_told(error: Exception) -> str:
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
