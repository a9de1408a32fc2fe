"""Run one generator for blocking and for async callers.

An operation is a generator. It yields every function that blocks, and is sent its result, awaited if necessary;
everything between two yields is quick. `run` calls the functions in this thread, `run_async` in worker threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

P = ParamSpec("P")
T = TypeVar("T")

Operation = Generator[Callable[[], Any], Any, T]
"""A pipeline that ends with a T."""


def blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """What a function returns that may take its time, for `yield from` inside a pipeline."""
    value: T = yield partial(function, *args, **kwargs)
    return value


def run(work: Operation[T]) -> T:
    """Run a pipeline in this thread."""
    try:
        todo = next(work)
        while True:
            try:
                value = settle(todo())
            except Exception as error:  # noqa: BLE001 - whatever it is, the pipeline decides about it
                todo = work.throw(error)
            else:
                todo = work.send(value)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        work.close()


def settle(value: Any) -> Any:  # noqa: ANN401 - whatever a pipeline waits for
    """Return a value, or the result of an awaitable, for callers without an event loop."""
    if not hasattr(value, "__await__"):  # `inspect` knows more ways to be awaitable, and is slow
        return value
    import asyncio

    async def wait_for() -> Any:  # noqa: ANN401 - as above
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait_for())
    # A blocking call inside an event loop: the awaitable gets a loop of its own in another thread.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        return beside.submit(asyncio.run, wait_for()).result()


def run_async(work: Operation[T]) -> Coroutine[Any, Any, T]:
    """Run a pipeline whose waiting is done in other threads."""
    return _run_async(work)


async def _run_async(work: Operation[T]) -> T:
    import asyncio

    try:
        todo = next(work)
        while True:
            try:
                value = await asyncio.to_thread(todo)
                if hasattr(value, "__await__"):
                    value = await value
            except Exception as error:  # noqa: BLE001 - as above; being cancelled is no Exception and ends the pipeline
                todo = work.throw(error)
            else:
                todo = work.send(value)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        work.close()
