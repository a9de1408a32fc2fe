"""The hook specifications as data: names, parameters, reference text."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import hookspecs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Hook(NamedTuple):
    """One hook of the contract."""

    name: str
    parameters: tuple[str, ...]
    specification: Callable[..., object]

    @property
    def signature(self) -> str:
        """The heading of its reference page: `nexus_layers(request)`."""
        return f"{self.name}({', '.join(self.parameters)})"

    @property
    def reference(self) -> str:
        """Its docstring, unindented."""
        return inspect.getdoc(self.specification) or ""

    @property
    def purpose(self) -> str:
        """The first line of its docstring."""
        return self.reference.partition("\n")[0]


@cache
def hooks() -> Mapping[str, Hook]:
    """Every hook by name, in the order of a run."""
    marker = f"{hookspecs.PROJECT}_spec"
    return {
        name: Hook(name, parameter_names(member), member)
        for name, member in vars(hookspecs).items()
        if hasattr(member, marker)
    }


def parameter_names(function: Callable[..., object]) -> tuple[str, ...]:
    """The names of the parameters a hook function must be given; those with a default are left to it."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)
