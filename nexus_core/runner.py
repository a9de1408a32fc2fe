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
"""An operation that returns a T."""


class LongCall(partial[Any]):
    """A blocking call that may take minutes, such as a request to a model: an async caller may abandon it."""


def blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
    """Yield a blocking call to the runner and return its result, for `yield from` in an operation."""
    value: T = yield partial(function, *args, **kwargs)
    return value


def run(operation: Operation[T]) -> T:
    """Run an operation in this thread."""
    try:
        todo = next(operation)
        while True:
            try:
                value = settle(todo())
            except Exception as error:  # noqa: BLE001 - whatever it is, the operation handles it
                todo = operation.throw(error)
            else:
                todo = operation.send(value)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        operation.close()


def settle(value: Any) -> Any:  # noqa: ANN401 - any result
    """Return a value, or the result of an awaitable, for callers without an event loop."""
    if not hasattr(type(value), "__await__"):  # `inspect` knows more ways to be awaitable, and is slow
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


def run_async(operation: Operation[T]) -> Coroutine[Any, Any, T]:
    """Run an operation whose blocking calls are made in worker threads."""
    return _run_async(operation)


async def _run_async(operation: Operation[T]) -> T:
    import asyncio

    try:
        todo = next(operation)
        while True:
            try:
                value = await asyncio.to_thread(todo)
                if hasattr(type(value), "__await__"):
                    value = await value
            except Exception as error:  # noqa: BLE001 - as above; a cancellation is not an Exception and ends the operation
                todo = operation.throw(error)
            else:
                todo = operation.send(value)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        operation.close()


async def run_to_completion(work: Callable[[], T]) -> T:
    """Run a function in a thread. A cancellation is raised only when it is done, so that no later call overtakes it."""
    import asyncio

    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # retrieved, so that asyncio does not report it as lost
        raise cancelled
    return task.result()
