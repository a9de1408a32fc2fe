"""What each hook's answer must look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from nexus_core.values.command import Command
from nexus_core.values.layer import Layer, LayerText
from nexus_core.values.section import Section

T = TypeVar("T")


class Answer(NamedTuple, Generic[T]):
    """What one plugin answered to a hook that collects."""

    plugin: str
    items: tuple[T, ...]


class WrongAnswerError(TypeError):
    """Raised when a plugin's answer is not what the hook asks for; says what it was instead."""


def items_of(kind: type[T]) -> Callable[[object], tuple[T, ...]]:
    """A check that turns an iterable of `kind`, or None, into a tuple."""
    expected = f"expected a list of {kind.__name__}"

    def check(answer: object) -> tuple[T, ...]:
        if answer is None:
            return ()
        if not isinstance(answer, Iterable) or isinstance(answer, (str, bytes)):
            raise WrongAnswerError(f"returned {type(answer).__name__}, {expected}")
        items = tuple(answer)
        for item in items:
            if not isinstance(item, kind):
                raise WrongAnswerError(f"returned a list with {type(item).__name__} in it, {expected}")
        return items

    return check


CHECKS: dict[str, Callable[[object], tuple[object, ...]]] = {
    "nexus_commands": items_of(Command),
    "nexus_layers": items_of(Layer),
    "nexus_layer_texts": items_of(LayerText),
    "nexus_static_sections": items_of(Section),
}
