"""What a plugin implements, and what is wrong with it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from nexus_core.errors import did_you_mean
from nexus_core.hookspecs import PROJECT
from nexus_core.host.contract import hooks, parameter_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nexus_core.host.contract import Hook

_MARK = f"{PROJECT}_impl"
_PREFIX = f"{PROJECT}_"
_NO_HOOK = "it implements no hook; mark a function with @hookimpl"


def implementations(plugin: object) -> dict[str, Callable[..., object]]:
    """The functions of a plugin that are marked `@hookimpl`, by the hook they say they implement."""
    found = ((_hook_name(function, name), function) for name, function in _marked(plugin))
    # An optional hook of another version of Nexus is neither called nor a fault.
    return {name: function for name, function in found if name in hooks()}


def faults(plugin: object) -> Iterator[str]:
    """Every reason why a plugin cannot be registered, each a sentence that says what to change."""
    if isinstance(plugin, str):
        yield f"{plugin!r} is a name; import the module and pass that"
        return
    if inspect.isclass(plugin):
        yield f"{plugin.__name__} is a class; pass an instance: {plugin.__name__}()"
        return
    answering: dict[str, str] = {}
    for name, function in _marked(plugin):
        hook = hooks().get(_hook_name(function, name))
        if hook is not None:
            if (other := answering.setdefault(hook.name, name)) != name:
                yield f"{other} and {name} both answer {hook.name}; make them one"
            yield from _faults_of(name, function, hook)
        elif not _options(function).get("optionalhook"):
            yield _join(f"{_hook_name(function, name)} is not a hook", did_you_mean(name, hooks()))


def _faults_of(name: str, function: Callable[..., object], hook: Hook) -> Iterator[str]:
    options = _options(function)
    if options.get("wrapper") or options.get("hookwrapper"):
        yield f"{name} is a hook wrapper; wrappers are not supported, answer the hook yourself"
    if inspect.iscoroutinefunction(function):
        yield f"{name} is async; write `def`, hooks are called synchronously"
    for parameter in parameter_names(function):
        if parameter not in hook.parameters:
            yield _join(
                f"{name} asks for a parameter {parameter!r}, but the hook is {hook.signature}",
                did_you_mean(parameter, hook.parameters),
            )


def idle(plugin: object) -> list[str]:
    """What is never called: functions that are named like hooks but lack `@hookimpl`; a plugin without any hook."""
    marked = {name for name, _ in _marked(plugin)}
    found: list[str] = []
    for name in dir(plugin):
        if not name.startswith(_PREFIX) or name in marked or not callable(_attribute(plugin, name)):
            continue
        if name in hooks():
            found.append(f"{name} is not marked @hookimpl, so it is never called")
        # Where hooks are marked, a name that is only near to one is more likely that of a helper.
        elif not marked and (nearest := did_you_mean(name, hooks())):
            found.append(f"{name} looks like a hook but is none; {nearest}")
    return found if found or marked else [_NO_HOOK]


def _marked(plugin: object) -> Iterator[tuple[str, Callable[..., object]]]:
    for name in dir(plugin):
        # Looking at a plugin must not run it, so properties are passed over; a module has none.
        if not inspect.ismodule(plugin) and isinstance(inspect.getattr_static(plugin, name, None), property):
            continue
        function = _attribute(plugin, name)
        if callable(function) and isinstance(_attribute(function, _MARK), dict):
            yield name, function


def _attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - no hook: a lazy attribute, or something imported such as `flask.request`
        return None


def _options(function: Callable[..., object]) -> dict[str, Any]:
    options: dict[str, Any] = getattr(function, _MARK)
    return options


def _hook_name(function: Callable[..., object], name: str) -> str:
    return _options(function).get("specname") or name


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
