"""Asks one summarizer, and waits no longer than one may."""

from __future__ import annotations

from contextvars import copy_context
from inspect import isawaitable
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import NexusError
from nexus_core.host.calls import describe_exception

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from nexus_core.types.compaction import Summarizer, SummaryRequest


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
