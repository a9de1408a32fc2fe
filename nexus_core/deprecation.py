"""Former names that keep working for one release, each with a warning that gives the new name."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that a name is deprecated, at the line that uses it.

    Args:
        old: The name that was used, as in `Session.label`.
        new: The name to use instead.
        stacklevel: Frames between here and the line that used it, as for `warnings.warn`.
    """
    message = f"{old} is deprecated and will be removed in the next release: use {new}"
    warn(message, DeprecationWarning, stacklevel=stacklevel)


def renamed_attribute(owner: str, old: str, new: str) -> Any:  # noqa: ANN401 - a property of any type
    """Return a property that warns and returns the attribute, property or bound method of the new name."""

    def read(self: object) -> object:
        warn_renamed(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(read, doc=f"Deprecated: use `{new}`.")


def renamed_argument(old: str, new: str) -> Callable[[F], F]:
    """Return a decorator for a function that still accepts a keyword argument by its former name."""

    def decorate(function: F) -> F:
        name = function.__qualname__

        def rename(given: dict[str, Any]) -> dict[str, Any]:
            if old in given and new not in given:
                warn_renamed(f"{name}({old}=…)", f"{name}({new}=…)", stacklevel=4)
                given[new] = given.pop(old)
            return given

        @wraps(function)
        def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401 - those of the function
            return function(*args, **rename(given))

        @wraps(function)
        async def call_async(*args: Any, **given: Any) -> Any:  # noqa: ANN401 - those of the function
            return await function(*args, **rename(given))

        return call_async if iscoroutinefunction(function) else call  # type: ignore[return-value]

    return decorate


def find_renamed(module: str, name: str, names: Mapping[str, str]) -> object:
    """Return the value of a module's former name, with a warning; for the module's `__getattr__`.

    Args:
        module: The module's name.
        name: The name that was asked for.
        names: The new name of each former one.

    Raises:
        AttributeError: It is not a former name.
    """
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_renamed(f"{module}.{name}", f"{module}.{names[name]}", stacklevel=4)
    return getattr(import_module(module), names[name])
