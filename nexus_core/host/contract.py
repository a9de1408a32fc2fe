"""The hook specifications as data: names, parameters, reference text."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Literal

from nexus_core import hookspecs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FunctionType

Kind = Literal["collects", "first answer wins", "announces"]
"""How a hook's answers are used."""


class Hook:
    """One hook of the contract.

    Attributes:
        name: What plugins call their answer to it.
        parameters: What it tells them, by name.
        specification: The function that specifies it.
        announces: Whether it only tells them something, and asks for no answer.
    """

    __slots__ = ("announces", "name", "parameters", "specification")

    def __init__(self, specification: FunctionType) -> None:
        code = specification.__code__  # `inspect.signature` says the same, and takes ten times as long at each start
        self.name = specification.__name__
        self.parameters = code.co_varnames[: code.co_argcount]
        self.specification = specification
        self.announces = specification.__annotations__["return"] == "None"  # annotations are strings

    @property
    def kind(self) -> Kind:
        """How its answers are used."""
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
        """The same with types: `nexus_layers(request: Request) -> Iterable[Layer | Skipped]`."""
        return f"{self.name}{inspect.signature(self.specification)}".replace("'", "")  # as above

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
    members = [member for stage in hookspecs.STAGES for member in vars(stage).values() if hasattr(member, marker)]
    return {member.__name__: Hook(member) for member in members}


def parameter_names(function: Callable[..., object]) -> tuple[str, ...]:
    """The names of the parameters a hook function must be given; those with a default are left to it."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)
