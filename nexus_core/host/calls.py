"""Hooks as data, checks of their results, and calls isolated from each other.

pluggy stops at the first exception and returns results without plugin names. So it never sees a plugin's own
functions: it gets a wrapper for each of them, made here, which does not raise and returns a result with a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from nexus_core import hookspecs
from nexus_core.errors import NexusError, PluginError
from nexus_core.hookspecs import hookimpl
from nexus_core.types.plugins import HookCall, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FunctionType

    from nexus_core.host.discovery import PluginCandidate

HookKind = Literal["collects", "first answer wins", "announces"]
"""The use of a hook's results: collected, first answer, or ignored."""


class HookSpec:
    """One hook of the contract.

    Attributes:
        name: The name of the functions that implement it.
        parameters: The names of its parameters.
        specification: The function that specifies it.
        announces: True if it only notifies plugins and expects no result.
    """

    __slots__ = ("announces", "name", "parameters", "specification")

    def __init__(self, specification: FunctionType) -> None:
        code = specification.__code__  # `inspect.signature` is ten times slower, at each start
        self.name = specification.__name__
        self.parameters = code.co_varnames[: code.co_argcount]
        self.specification = specification
        self.announces = specification.__annotations__["return"] == "None"  # annotations are strings

    @property
    def kind(self) -> HookKind:
        """The way Nexus uses its results."""
        if self.announces:
            return "announces"
        options = getattr(self.specification, f"{hookspecs.PROJECT}_spec")
        return "first answer wins" if options["firstresult"] else "collects"

    @property
    def signature(self) -> str:
        """The heading of its reference page: `nexus_layers(request)`."""
        return f"{self.name}({', '.join(self.parameters)})"

    @property
    def declaration(self) -> str:
        """The signature with types: `nexus_layers(request: Request) -> Iterable[Layer | SkippedFile]`."""
        return f"{self.name}{inspect.signature(self.specification)}".replace("'", "")  # annotations are strings

    @property
    def reference(self) -> str:
        """Its docstring, unindented."""
        return inspect.getdoc(self.specification) or ""

    @property
    def purpose(self) -> str:
        """The first line of its docstring."""
        return self.reference.partition("\n")[0]


@cache
def get_hooks() -> Mapping[str, HookSpec]:
    """Return every hook by name, in the order of a run."""
    marker = f"{hookspecs.PROJECT}_spec"
    return {name: HookSpec(member) for name, member in vars(hookspecs).items() if hasattr(member, marker)}


def list_parameter_names(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of a hook function's parameters without a default. The others keep their default."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)


T = TypeVar("T")

MAX_RESULT_ITEMS = 10_000
"""Most items that one plugin may return from one hook, so that an endless iterable ends."""


_MISMATCH_HINTS = {
    "ModelCounter": "; derive it from nexus_core.plugin.TextCounter, which has all but name, exact and count"
}
"""By expected type, where a plugin can get the members that its result lacks."""


class HookResult(NamedTuple, Generic[T]):
    """The checked result of one plugin's hook function."""

    plugin: str
    items: tuple[T, ...]


class InvalidHookResultError(TypeError):
    """Raised when a plugin's result has the wrong type. The message names the actual type."""


def build_list_check(*targets: str) -> Callable[[object], tuple[object, ...]]:
    """Return a check that turns an iterable of these types, each given as `module:Class`, into a tuple."""
    expected = f"expected a list of {' or '.join(target.partition(':')[2] for target in targets)}"
    kinds: set[type] = set()

    def check(answer: object) -> tuple[object, ...]:
        items = _list_items(answer, expected)
        if items and not kinds:  # imported only when there is a result: most commands call few hooks
            kinds.update(map(_import_type, targets))
        for index, item in enumerate(items):
            if type(item) not in kinds:  # a subclass may customize construction, comparison and copying
                raise InvalidHookResultError(f"returned a list with {type(item).__name__} in it, {expected}")
            # The copy is validated again while its plugin is known, and has no other references.
            items[index] = replace(item)
        return tuple(items)

    return check


def check_dialects(answer: object) -> tuple[object, ...]:
    """Check dialects, which may be of any class, and name the members that one lacks."""
    items = _list_items(answer, "expected a list of Dialect")
    for item in items:
        _require_dialect(item)
    return tuple(items)


def build_single_check(target: str) -> Callable[[object], tuple[object, ...] | None]:
    """Return a check for hooks where the first answer wins: a value of this type, or None for the next plugin."""

    def check(answer: object) -> tuple[object, ...] | None:
        if answer is None:
            return None
        expected = _import_type(target)
        if isinstance(answer, type) or not _is_instance_of(answer, expected):
            raise InvalidHookResultError(_describe_mismatch(answer, expected))
        return (answer,)

    return check


def check_no_result(answer: object) -> tuple[object, ...]:
    """Check that a hook that announces returned None."""
    if answer is not None:
        raise InvalidHookResultError(f"returned {type(answer).__name__}, expected None")
    return ()


def _list_items(answer: object, expected: str) -> list[Any]:
    """Return the items of a result, or raise if there are too many."""
    if answer is None:
        return []
    if type(answer) is not list and (not isinstance(answer, Iterable) or isinstance(answer, (str, bytes))):
        raise InvalidHookResultError(f"returned {type(answer).__name__}, {expected}")
    items = list(islice(answer, MAX_RESULT_ITEMS + 1))
    if len(items) > MAX_RESULT_ITEMS:
        raise InvalidHookResultError(f"returned more than {MAX_RESULT_ITEMS} items")
    return items


def _require_dialect(item: object) -> None:
    """Raise if an object lacks a member of `Dialect`, or if its rules have another name."""
    from nexus_core.types.api import ApiRules, Dialect

    kind, members = type(item).__name__, [name for name in vars(Dialect) if not name.startswith("_")]
    if isinstance(item, type):
        raise InvalidHookResultError(
            f"returned the class {item.__name__} in place of a dialect; make one: {item.__name__}()"
        )
    if lacking := [name for name in members if not hasattr(item, name)]:
        raise InvalidHookResultError(
            f"returned a list with {kind} in it, which is not a Dialect: it has no {', '.join(lacking)}"
        )
    values = {name: getattr(item, name) for name in members}
    name, rules = values.pop("name"), values.pop("rules")
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise InvalidHookResultError(f"returned a Dialect whose name is {name!r}, expected a word")
    if not isinstance(rules, ApiRules) or rules.name != name:
        actual = f"those of {rules.name!r}" if isinstance(rules, ApiRules) else type(rules).__name__
        raise InvalidHookResultError(
            f"returned the Dialect {name!r} whose rules are {actual}, expected ApiRules of its own name"
        )
    if idle := [each for each, value in values.items() if not callable(value)]:
        raise InvalidHookResultError(f"returned the Dialect {name!r} whose {', '.join(idle)} cannot be called")


def _is_instance_of(answer: object, expected: type) -> bool:
    """Return True if a result is of a type, or has all members of a protocol.

    Since Python 3.12, `isinstance` does not see members of a protocol that `__getattr__` provides, as wrappers do.
    """
    members = _list_protocol_members(expected)
    return all(hasattr(answer, each) for each in members) if members else isinstance(answer, expected)


def _list_protocol_members(expected: type) -> list[str]:
    """Return the public members of a protocol, in order, or an empty list for any other type."""
    members = [
        each
        for base in reversed(expected.__mro__)
        for each in (*vars(base), *vars(base).get("__annotations__", ()))
        if getattr(base, "_is_protocol", False) and not each.startswith("_")
    ]
    return list(dict.fromkeys(members))


def _describe_mismatch(answer: object, expected: type) -> str:
    """Describe why a result is not of an expected type. For a protocol, name the missing members."""
    name = type(answer).__name__
    if isinstance(answer, type):
        return f"returned the class {answer.__name__} in place of an object; make one: {answer.__name__}()"
    members = _list_protocol_members(expected)
    lacking = [each for each in members if not hasattr(answer, each)]
    if not members or len(lacking) == len(members):
        return f"returned {name}, expected a {expected.__name__} or None"
    hint = _MISMATCH_HINTS.get(expected.__name__, "")
    return f"returned {name}, which is not a {expected.__name__}: it has no {', '.join(lacking)}{hint}"


def _import_type(target: str) -> type:
    module, _, name = target.partition(":")
    kind: type = getattr(import_module(module), name)
    return kind


RESULT_CHECKS: dict[str, Callable[[object], tuple[object, ...] | None]] = {
    "nexus_commands": build_list_check("nexus_core.types.plugins:Command"),
    "nexus_init_files": build_list_check("nexus_core.types.settings:InitFile"),
    "nexus_settings": build_list_check("nexus_core.types.settings:PluginSettings"),
    "nexus_merge_policies": build_list_check("nexus_core.types.settings:MergePolicy"),
    "nexus_layers": build_list_check("nexus_core.types.layers:Layer", "nexus_core.types.layers:SkippedFile"),
    "nexus_layer_config": build_list_check(
        "nexus_core.types.layers:LayerConfig", "nexus_core.types.layers:SkippedFile"
    ),
    "nexus_layer_texts": build_list_check("nexus_core.types.layers:LayerText", "nexus_core.types.layers:SkippedFile"),
    "nexus_static_sections": build_list_check("nexus_core.types.prompt:Section"),
    "nexus_current_sections": build_list_check("nexus_core.types.prompt:Section"),
    "nexus_tools": build_list_check("nexus_core.types.messages:Tool"),
    "nexus_renderers": build_list_check("nexus_core.types.prompt:Renderer"),
    "nexus_dialects": check_dialects,
    "nexus_roles": build_list_check("nexus_core.types.prompt:AgentRole"),
    "nexus_models": build_list_check("nexus_core.types.budget:Model"),
    "nexus_token_counter": build_single_check("nexus_core.types.budget:ModelCounter"),
    "nexus_truncation_strategies": build_list_check("nexus_core.types.budget:TruncationStrategy"),
    "nexus_compaction_plan": build_single_check("nexus_core.types.compaction:CompactionPlan"),
    "nexus_summarizers": build_list_check("nexus_core.types.compaction:Summarizer"),
    "nexus_ledger": build_single_check("nexus_core.types.ledger:Ledger"),
    "nexus_memory_sources": build_list_check("nexus_core.types.memory:MemorySource"),
    "nexus_embedders": build_list_check("nexus_core.types.memory:Embedder"),
    "nexus_providers": build_list_check("nexus_core.types.providers:Provider"),
    "nexus_toolsets": build_list_check("nexus_core.types.plugins:Toolset"),
    "nexus_transcripts": build_list_check("nexus_core.types.transcripts:TranscriptReader"),
    "nexus_call_assembled": check_no_result,
    "nexus_step_recorded": check_no_result,
    "nexus_diagnose": build_list_check("nexus_core.types.plugins:Finding"),
}


class ProblemReporter:
    """Keeps the problems of a run and reports each of them once.

    Args:
        strict: True if every problem stops the run; those of bundled plugins always do.
        report: Called with each new problem; None writes it to the log.
    """

    def __init__(self, *, strict: bool, report: Callable[[Problem], None] | None) -> None:
        self._strict = strict
        self._report = report or _log_problem
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems so far, in order."""
        return tuple(self._problems.values())

    def report_failure(
        self,
        candidate: PluginCandidate,
        message: str,
        *,
        consequence: str,
        hook: str | None = None,
        cause: BaseException | None = None,
        is_harmless: bool = False,
    ) -> None:
        """Report a problem and its consequence once, or raise a PluginError if continuing would be wrong.

        Args:
            candidate: The plugin that caused it.
            message: What it did.
            consequence: The effect on this run.
            hook: The hook that was called; None while loading.
            cause: The exception behind it.
            is_harmless: True if nothing depends on it, so that a bundled plugin may fail as well.
        """
        if self._strict or (candidate.is_bundled and not is_harmless):
            raise PluginError(message, plugin=candidate.label, hook=hook) from cause
        self.report(candidate.label, f"{consequence}, because {message}", hook=hook, cause=cause)

    def report(self, plugin: str, message: str, *, hook: str | None = None, cause: BaseException | None = None) -> None:
        """Report a problem without a consequence, such as a duplicate name. Raises a PluginError in a strict run."""
        if self._strict:
            raise PluginError(message, plugin=plugin, hook=hook) from cause
        problem = Problem(plugin=plugin, hook=hook, message=message, cause=cause)
        if str(problem) not in self._problems:
            self._problems[str(problem)] = problem
            self._report(problem)


def _log_problem(problem: Problem) -> None:
    import logging

    logging.getLogger("nexus_core").warning("%s", problem)


_CONSEQUENCES = {False: "its result is dropped", True: "Nexus continues without it"}
"""The consequence of an error, by whether the hook announces."""


def wrap_implementation(
    candidate: PluginCandidate,
    hook: HookSpec,
    find: Callable[[], Callable[..., object]],
    *,
    reporter: ProblemReporter,
    trace: Callable[[HookCall], None] | None,
    tryfirst: bool = False,
    trylast: bool = False,
) -> Callable[..., HookResult[Any] | None]:
    """Return the function that pluggy calls instead of a plugin's own.

    Args:
        candidate: The plugin that has the function.
        hook: The hook it implements.
        find: Returns the plugin's function; called when the hook is called, so that it may import the plugin.
        reporter: Reports exceptions and wrong results.
        trace: Called with every call of the function; None traces nothing.
        tryfirst: True if the plugin wants to be called before others, where the first answer wins.
        trylast: True if it wants to be called after others.
    """
    call = _build_checked_call(hook, find)

    def answer(*arguments: object) -> HookResult[Any] | None:
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
            message = f"it {error if isinstance(error, InvalidHookResultError) else describe_exception(error)}"
            # An announced event has happened already; a listener's failure does not undo it.
            reporter.report_failure(
                candidate,
                message,
                consequence=_CONSEQUENCES[hook.announces],
                hook=hook.name,
                cause=error,
                is_harmless=hook.announces,
            )
        finally:
            if trace is not None:
                trace(_build_hook_call(hook, candidate, perf_counter() - started, items, failed=failed))
        # pluggy gets None, which makes it call the next plugin where the first answer wins.
        return None if items is None else HookResult(candidate.name, items)

    # pluggy reads the parameters of the wrapped function, which has all parameters of the hook.
    answer.__wrapped__ = hook.specification  # type: ignore[attr-defined]
    return hookimpl(tryfirst=tryfirst, trylast=trylast)(answer)


def _build_checked_call(
    hook: HookSpec, find: Callable[[], Callable[..., object]]
) -> Callable[[tuple[object, ...]], tuple[object, ...] | None]:
    """Return a function that calls a plugin's function with the parameters it names, and checks its result."""
    resolved: list[tuple[Callable[..., object], list[tuple[str, int]]]] = []  # one item after the first call

    def call(arguments: tuple[object, ...]) -> tuple[object, ...] | None:
        if not resolved:
            function = find()
            resolved.append(
                (function, [(name, hook.parameters.index(name)) for name in list_parameter_names(function)])
            )
        function, wanted = resolved[0]
        return RESULT_CHECKS[hook.name](function(**{name: arguments[index] for name, index in wanted}))

    return call


def describe_exception(error: BaseException) -> str:
    """Describe an exception in half a sentence: its type, and its message if it has one."""
    try:
        if isinstance(error, SystemExit):
            return f"called sys.exit({'' if error.code is None else repr(error.code)})"
        kind = type(error).__name__
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a plugin's exception class may raise here too
        return "raised an exception whose type cannot be named"
    try:
        message = str(error).partition("\n")[0]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - `__str__` of a plugin's exception may raise
        message = ""
    return f"raised {kind}" + (f": {message}" if message else "")


def _build_hook_call(
    hook: HookSpec, candidate: PluginCandidate, seconds: float, items: tuple[object, ...] | None, *, failed: bool
) -> HookCall:
    return HookCall(
        hook=hook.name,
        plugin=candidate.name,
        seconds=seconds,
        answers=None if hook.announces else len(items or ()),
        failed=failed,
    )
