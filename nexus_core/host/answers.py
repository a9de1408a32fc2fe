"""What each hook's answer must look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from nexus_core.values.command import Command
from nexus_core.values.declarations import InitFile, MergePolicy, PluginSettings
from nexus_core.values.finding import Finding
from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
from nexus_core.values.section import Section

T = TypeVar("T")

MAX_ITEMS = 10_000
"""How much one plugin may answer to one hook; an endless answer must end."""


class Answer(NamedTuple, Generic[T]):
    """What one plugin answered to a hook that collects."""

    plugin: str
    items: tuple[T, ...]


class WrongAnswerError(TypeError):
    """Raised when a plugin's answer is not what the hook asks for; says what it was instead."""


def items_of(*kinds: type) -> Callable[[object], tuple[object, ...]]:
    """A check that turns an iterable of such values, or None, into a tuple."""
    expected = f"expected a list of {' or '.join(kind.__name__ for kind in kinds)}"

    def check(answer: object) -> tuple[object, ...]:
        if answer is None:
            return ()
        if not isinstance(answer, Iterable) or isinstance(answer, (str, bytes)):
            raise WrongAnswerError(f"returned {type(answer).__name__}, {expected}")
        items = tuple(islice(answer, MAX_ITEMS + 1))
        if len(items) > MAX_ITEMS:
            raise WrongAnswerError(f"returned more than {MAX_ITEMS} items")
        for item in items:
            if type(item) not in kinds:  # a subclass may be made, compared and copied in ways of its own
                raise WrongAnswerError(f"returned a list with {type(item).__name__} in it, {expected}")
        # A copy is checked once more, while its maker can still be named, and is nobody else's to change.
        return tuple(replace(item) for item in items)

    return check


CHECKS: dict[str, Callable[[object], tuple[object, ...]]] = {
    "nexus_commands": items_of(Command),
    "nexus_init_files": items_of(InitFile),
    "nexus_settings": items_of(PluginSettings),
    "nexus_merge_policies": items_of(MergePolicy),
    "nexus_layers": items_of(Layer, Skipped),
    "nexus_layer_config": items_of(LayerConfig, Skipped),
    "nexus_layer_texts": items_of(LayerText, Skipped),
    "nexus_static_sections": items_of(Section),
    "nexus_diagnose": items_of(Finding),
}
