"""Inspection and registration of plugins, where a broken plugin does not affect the others."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_core.deprecation import warn_renamed
from nexus_core.errors import PluginError, did_you_mean
from nexus_core.hookspecs import PROJECT, RENAMED_HOOKS
from nexus_core.host.calls import describe_exception, get_hooks, list_parameter_names, wrap_implementation
from nexus_core.types.plugins import Extra, PluginInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pluggy

    from nexus_core.host.calls import HookSpec, ProblemReporter
    from nexus_core.host.discovery import PluginCandidate
    from nexus_core.types.plugins import HookCall, PluginStatus

_IMPLEMENTATION_MARK = f"{PROJECT}_impl"
_HOOK_PREFIX = f"{PROJECT}_"
_NO_HOOK = "it implements no hook; mark a function with @hookimpl"


def find_implementations(plugin: object) -> dict[str, Callable[..., object]]:
    """Return the functions of a plugin that are marked `@hookimpl`, by the hook they implement."""
    found = ((_get_hook_name(function, name), function) for name, function in _find_marked_functions(plugin))
    # An optional hook of another version of Nexus is neither called nor an error.
    return {name: function for name, function in found if name in get_hooks()}


def find_contract_errors(plugin: object) -> Iterator[str]:
    """Yield every reason why a plugin cannot be registered, each a sentence that names the remedy."""
    if isinstance(plugin, str):
        yield f"{plugin!r} is a name; import the module and pass that"
        return
    if inspect.isclass(plugin):
        yield f"{plugin.__name__} is a class; pass an instance: {plugin.__name__}()"
        return
    implementing: dict[str, str] = {}
    for name, function in _find_marked_functions(plugin):
        hook = get_hooks().get(_get_hook_name(function, name))
        if hook is not None:
            if (other := implementing.setdefault(hook.name, name)) != name:
                yield f"{other} and {name} both implement {hook.name}; make them one"
            yield from _check_implementation(name, function, hook)
        elif not _get_hook_options(function).get("optionalhook"):
            yield _join_sentences(f"{_get_hook_name(function, name)} is not a hook", did_you_mean(name, get_hooks()))


def _check_implementation(name: str, function: Callable[..., object], hook: HookSpec) -> Iterator[str]:
    options = _get_hook_options(function)
    if options.get("wrapper") or options.get("hookwrapper"):
        yield f"{name} is a hook wrapper; wrappers are not supported, implement the hook itself"
    if inspect.iscoroutinefunction(function):
        yield f"{name} is async; write `def`, hooks are called synchronously"
    for parameter in list_parameter_names(function):
        if parameter not in hook.parameters:
            yield _join_sentences(
                f"{name} has a parameter {parameter!r}, but the hook is {hook.signature}",
                did_you_mean(parameter, hook.parameters),
            )


def _warn_of_renamed_hooks(label: str, plugin: object) -> None:
    for name, function in _find_marked_functions(plugin):
        former = _get_hook_options(function).get("specname") or name
        if former in RENAMED_HOOKS:
            warn_renamed(f"the hook {former} of plugin {label}", RENAMED_HOOKS[former])


def find_uncalled_functions(plugin: object) -> list[str]:
    """Describe functions that are never called: named like hooks but without `@hookimpl`, or no hook at all."""
    marked = {name for name, _ in _find_marked_functions(plugin)}
    found: list[str] = []
    for name in dir(plugin):
        if not name.startswith(_HOOK_PREFIX) or name in marked or not callable(_get_attribute(plugin, name)):
            continue
        if name in get_hooks():
            found.append(f"{name} is not marked @hookimpl, so it is never called")
        # If some hooks are marked, a name that is only similar to a hook is more likely a helper.
        elif not marked and (nearest := did_you_mean(name, get_hooks())):
            found.append(f"{name} looks like a hook but is not one; {nearest}")
    return found if found or marked else [_NO_HOOK]


def _find_marked_functions(plugin: object) -> Iterator[tuple[str, Callable[..., object]]]:
    for name in dir(plugin):
        # Inspecting a plugin must not run it, so properties are skipped; a module has none.
        if not inspect.ismodule(plugin) and isinstance(inspect.getattr_static(plugin, name, None), property):
            continue
        function = _get_attribute(plugin, name)
        if callable(function) and isinstance(_get_attribute(function, _IMPLEMENTATION_MARK), dict):
            yield name, function


def _get_attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - not a hook: a lazy attribute, or an imported proxy such as `flask.request`
        return None


def _get_hook_options(function: Callable[..., object]) -> dict[str, Any]:
    options: dict[str, Any] = getattr(function, _IMPLEMENTATION_MARK)
    return options


def _get_hook_name(function: Callable[..., object], name: str) -> str:
    hook: str = _get_hook_options(function).get("specname") or name
    return RENAMED_HOOKS.get(hook, hook)


def _join_sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


class PluginLoader:
    """Registers plugins with a pluggy manager and builds the `PluginInfo` of each.

    Args:
        manager: The manager to register hooks with.
        reporter: Reports plugins that cannot be loaded or misbehave later.
        trace: Called with every call of a hook function; None traces nothing.
    """

    def __init__(
        self, manager: pluggy.PluginManager, *, reporter: ProblemReporter, trace: Callable[[HookCall], None] | None
    ) -> None:
        self._manager = manager
        self._reporter = reporter
        self._trace = trace
        self._rows: list[PluginInfo] = []
        self._owners: dict[str, PluginCandidate] = {}

    def load(self, candidates: Iterable[PluginCandidate], *, disabled: frozenset[str]) -> tuple[PluginInfo, ...]:
        """Load candidates in the given order. In first-answer hooks, later ones are called first."""
        for candidate in candidates:
            if candidate.name in self._owners:
                self._refuse_duplicate(candidate)
                continue
            self._owners[candidate.name] = candidate
            if candidate.name in disabled:
                self._add_row(candidate, "disabled", hooks=candidate.hooks or ())
            elif candidate.hooks is not None:
                self._register_unloaded(candidate, candidate.hooks)
            else:
                self._register_loaded(candidate)
        return tuple(self._rows)

    def _refuse_duplicate(self, candidate: PluginCandidate) -> None:
        owner = self._owners[candidate.name]
        self._fail(candidate, f"its name is taken by {owner.label}; it needs another one")

    def _register_unloaded(self, candidate: PluginCandidate, names: tuple[str, ...]) -> None:
        if self._lacks_extra(candidate, candidate.needs):
            return

        def find(name: str) -> Callable[..., object]:
            if name in candidate.constants:
                return candidate.constants[name]
            function: Callable[..., object] = getattr(candidate.load(), name)
            return function

        view = {name: self._wrap(candidate, name, partial(find, name)) for name in names}
        self._manager.register(_PluginView(view), name=candidate.name)
        self._add_row(candidate, "active", hooks=names)

    def _register_loaded(self, candidate: PluginCandidate) -> None:
        try:
            plugin = candidate.load()
            found = list(find_contract_errors(plugin))
            functions = find_implementations(plugin)
            uncalled = [] if found else find_uncalled_functions(plugin)
            if self._lacks_extra(candidate, getattr(plugin, "NEEDS", None)):
                return
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may call sys.exit() when imported
            self._fail(candidate, f"it {describe_exception(error)} while it was loaded", cause=error)
            return
        if candidate.origin == "given":
            found += uncalled
        if found:
            self._fail(candidate, "; ".join(found))
            return
        self._register(candidate, functions)
        for each in uncalled:
            self._reporter.report(candidate.label, each)
        _warn_of_renamed_hooks(candidate.label, plugin)

    def _register(self, candidate: PluginCandidate, functions: dict[str, Callable[..., object]]) -> None:
        view = {
            name: self._wrap(candidate, name, lambda function=function: function, **_get_call_order(function))  # type: ignore[misc]
            for name, function in functions.items()
        }
        self._manager.register(_PluginView(view), name=candidate.name)
        self._add_row(candidate, "active", hooks=tuple(name for name in get_hooks() if name in view))

    def _wrap(
        self, candidate: PluginCandidate, name: str, find: Callable[[], Callable[..., object]], **options: bool
    ) -> Callable[..., object]:
        return wrap_implementation(
            candidate, get_hooks()[name], find, reporter=self._reporter, trace=self._trace, **options
        )

    def _lacks_extra(self, candidate: PluginCandidate, needs: Any) -> bool:  # noqa: ANN401 - an attribute of any plugin
        if needs is None:
            return False
        if not isinstance(needs, Extra) or all(map(_is_installed, needs.modules)):
            return False
        self._add_row(candidate, "needs-extra", hooks=candidate.hooks or (), error=f"needs {needs.requirement}")
        return True

    def _fail(self, candidate: PluginCandidate, message: str, cause: BaseException | None = None) -> None:
        self._add_row(candidate, "failed", error=message)
        if candidate.origin == "given":
            raise PluginError(message, plugin=candidate.label) from cause  # the caller who passed it can fix it now
        self._reporter.report_failure(candidate, message, consequence="it is left out", cause=cause)

    def _add_row(
        self, candidate: PluginCandidate, status: PluginStatus, *, hooks: tuple[str, ...] = (), error: str | None = None
    ) -> None:
        self._rows.append(
            PluginInfo(
                name=candidate.name,
                distribution=candidate.distribution,
                version=candidate.version,
                bundled=candidate.is_bundled,
                status=status,
                hooks=hooks,
                error=error,
            )
        )


class _PluginView:
    """A plugin as pluggy sees it: its wrapped hook functions and nothing else."""

    def __init__(self, functions: dict[str, Callable[..., object]]) -> None:
        self.__dict__.update(functions)

    def __dir__(self) -> list[str]:
        return list(self.__dict__)


def _is_installed(module: str) -> bool:
    """Return True if a package can be imported. `importlib.util` answers the same, but slows down every start."""
    name = module.partition(".")[0]  # asking for a submodule would import its parents
    if name in sys.modules:
        return sys.modules[name] is not None
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)


def _get_call_order(function: Callable[..., object]) -> dict[str, bool]:
    options: dict[str, Any] = getattr(function, f"{PROJECT}_impl")
    return {"tryfirst": bool(options.get("tryfirst")), "trylast": bool(options.get("trylast"))}
