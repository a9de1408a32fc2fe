"""One plugin's side of one hook: isolated from the others, checked, named and timed.

pluggy stops at the first exception and returns answers without names. So it never gets to see a plugin's own
functions: for each of them it is given a stand-in made here, which does not raise and answers with a name.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from nexus_core.errors import NexusError
from nexus_core.hookspecs import hookimpl
from nexus_core.host.answers import CHECKS, Answer, WrongAnswerError
from nexus_core.host.contract import parameter_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.host.blame import Blame
    from nexus_core.host.candidates import Candidate
    from nexus_core.host.contract import Hook
    from nexus_core.values.events import HookCall

_CONSEQUENCES = {False: "its answer is left out", True: "Nexus goes on without it"}
"""What follows from a mistake in a hook that asks, and in one that announces."""


def stand_in(
    candidate: Candidate,
    hook: Hook,
    find: Callable[[], Callable[..., object]],
    *,
    blame: Blame,
    trace: Callable[[HookCall], None] | None,
    tryfirst: bool = False,
    trylast: bool = False,
) -> Callable[..., Answer[Any] | None]:
    """The function that pluggy calls instead of a plugin's own.

    Args:
        candidate: Whose function it stands for.
        hook: The hook it answers.
        find: Returns the plugin's function; called when the hook is, so that it may import the plugin.
        blame: Told about exceptions and wrong answers.
        trace: Told about every call, if somebody wants to know.
        tryfirst: Whether the plugin wants to be asked before others, where the first answer wins.
        trylast: Whether it wants to be asked after others.
    """
    call = _checked_call(hook, find)

    def answer(*arguments: object) -> Answer[Any] | None:
        started = perf_counter() if trace else 0.0
        items: tuple[object, ...] | None = None
        failed = True
        try:
            items = call(arguments)
            failed = False
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() and extension panics too must not stop the others
            if isinstance(error, NexusError) and not hook.announces:
                raise
            message = f"it {error if isinstance(error, WrongAnswerError) else describe(error)}"
            # What a plugin was only told of has happened, and is not undone because it did not listen.
            follows, spared = _CONSEQUENCES[hook.announces], hook.announces
            blame.put_on(candidate, message, consequence=follows, hook=hook.name, cause=error, is_harmless=spared)
        finally:
            if trace is not None:
                trace(_call(hook, candidate, perf_counter() - started, items, failed=failed))
        # None goes back to pluggy as None, which then asks the next plugin where the first answer wins.
        return None if items is None else Answer(candidate.name, items)

    # pluggy reads the parameters from the wrapped function: those of the hook, all of them.
    answer.__wrapped__ = hook.specification  # type: ignore[attr-defined]
    return hookimpl(tryfirst=tryfirst, trylast=trylast)(answer)


def _checked_call(
    hook: Hook, find: Callable[[], Callable[..., object]]
) -> Callable[[tuple[object, ...]], tuple[object, ...] | None]:
    """What calls a plugin's function with those parameters of the hook that it asks for, and checks its answer."""
    found: list[tuple[Callable[..., object], list[tuple[str, int]]]] = []  # one, once it was asked for

    def call(arguments: tuple[object, ...]) -> tuple[object, ...] | None:
        if not found:
            function = find()
            found.append((function, [(name, hook.parameters.index(name)) for name in parameter_names(function)]))
        function, wanted = found[0]
        return CHECKS[hook.name](function(**{name: arguments[place] for name, place in wanted}))

    return call


def describe(error: BaseException) -> str:
    """An exception in half a sentence: its type, and its message if it has one."""
    try:
        if isinstance(error, SystemExit):
            return f"called sys.exit({'' if error.code is None else repr(error.code)})"
        kind = type(error).__name__
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a stranger's exception may fail at this too
        return "raised an exception that cannot even be named"
    try:
        message = str(error).partition("\n")[0]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - as above
        message = ""
    return f"raised {kind}" + (f": {message}" if message else "")


def _call(
    hook: Hook, candidate: Candidate, seconds: float, items: tuple[object, ...] | None, *, failed: bool
) -> HookCall:
    from nexus_core.values.events import HookCall  # noqa: PLC0415 - only a traced run needs it

    return HookCall(
        hook=hook.name,
        plugin=candidate.name,
        seconds=seconds,
        answers=None if hook.announces else len(items or ()),
        failed=failed,
    )
