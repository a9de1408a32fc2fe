"""What each hook's answer must look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from importlib import import_module
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

MAX_ITEMS = 10_000
"""How much one plugin may answer to one hook; an endless answer must end."""


_HINTS = {"ModelCounter": "; derive it from nexus_core.plugin.TextCounter, which has all but name, exact and count"}
"""By expected type, where a plugin can get what its answer lacks."""


class Answer(NamedTuple, Generic[T]):
    """What one plugin answered to a hook that collects."""

    plugin: str
    items: tuple[T, ...]


class WrongAnswerError(TypeError):
    """Raised when a plugin's answer is not what the hook asks for; says what it was instead."""


def items_of(*targets: str) -> Callable[[object], tuple[object, ...]]:
    """A check that turns an iterable of such values, each `module:Class` below `nexus_core.values`, into a tuple."""
    expected = f"expected a list of {' or '.join(target.partition(':')[2] for target in targets)}"
    copiers: dict[type, Callable[[Any], object]] = {}

    def check(answer: object) -> tuple[object, ...]:
        items = _listed(answer, expected)
        if items and not copiers:  # imported when something is answered: most commands ask few hooks
            copiers.update((kind, _copier(kind)) for kind in map(_import, targets))
        for index, item in enumerate(items):
            copy = copiers.get(type(item))
            if copy is None:  # a subclass may be made, compared and copied in ways of its own
                raise WrongAnswerError(f"returned a list with {type(item).__name__} in it, {expected}")
            # A copy is checked once more, while its maker can still be named, and is nobody else's to change.
            items[index] = copy(item)
        return tuple(items)

    return check


def speakers(answer: object) -> tuple[object, ...]:
    """A check for dialects, which may be of any class: what one lacks is named."""
    items = _listed(answer, "expected a list of Dialect")
    for item in items:
        _require_dialect(item)
    return tuple(items)


def one(target: str) -> Callable[[object], tuple[object, ...] | None]:
    """A check for hooks where the first answer wins: such a value, or None for "ask somebody else"."""

    def check(answer: object) -> tuple[object, ...] | None:
        if answer is None:
            return None
        expected = _import(target)
        if isinstance(answer, type) or not _is_a(answer, expected):
            raise WrongAnswerError(_describe_mismatch(answer, expected))
        return (answer,)

    return check


def nothing(answer: object) -> tuple[object, ...]:
    """A check for hooks that announce: there is nothing to answer."""
    if answer is not None:
        raise WrongAnswerError(f"returned {type(answer).__name__}, and there is nothing to answer")
    return ()


def _listed(answer: object, expected: str) -> list[Any]:
    """The items of an answer, if there are not too many."""
    if answer is None:
        return []
    if type(answer) is not list and (not isinstance(answer, Iterable) or isinstance(answer, (str, bytes))):
        raise WrongAnswerError(f"returned {type(answer).__name__}, {expected}")
    items = list(islice(answer, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise WrongAnswerError(f"returned more than {MAX_ITEMS} items")
    return items


def _require_dialect(item: object) -> None:
    """Refuse what lacks something that every dialect has, or whose rules are another's."""
    from nexus_core.values.api import ApiRules, Dialect  # noqa: PLC0415 - few plugins offer one

    kind, members = type(item).__name__, [name for name in vars(Dialect) if not name.startswith("_")]
    if isinstance(item, type):
        raise WrongAnswerError(f"returned the class {item.__name__} in place of a dialect; make one: {item.__name__}()")
    if lacking := [name for name in members if not hasattr(item, name)]:
        raise WrongAnswerError(
            f"returned a list with {kind} in it, which is no Dialect: it has no {', '.join(lacking)}"
        )
    values = {name: getattr(item, name) for name in members}
    name, rules = values.pop("name"), values.pop("rules")
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise WrongAnswerError(f"returned a Dialect whose name is {name!r}, expected a word")
    if not isinstance(rules, ApiRules) or rules.name != name:
        told = f"those of {rules.name!r}" if isinstance(rules, ApiRules) else type(rules).__name__
        raise WrongAnswerError(
            f"returned the Dialect {name!r} whose rules are {told}, expected ApiRules of its own name"
        )
    if idle := [each for each, value in values.items() if not callable(value)]:
        raise WrongAnswerError(f"returned the Dialect {name!r} whose {', '.join(idle)} cannot be called")


def _copier(kind: type) -> Callable[[Any], object]:
    """What copies a dataclass: `replace`, or where the order of its fields says it all, something much faster."""
    known = fields(kind)
    if len(known) < 2 or not all(field.init and not field.kw_only for field in known):  # noqa: PLR2004 - of one, no tuple
        return replace
    values = attrgetter(*(field.name for field in known))
    return lambda item: kind(*values(item))


def _is_a(answer: object, expected: type) -> bool:
    """True if an answer is of a type, or has all members of a protocol.

    Since Python 3.12, `isinstance` does not see members of a protocol that `__getattr__` provides, as wrappers do.
    """
    members = _protocol_members(expected)
    return all(hasattr(answer, each) for each in members) if members else isinstance(answer, expected)


def _protocol_members(expected: type) -> list[str]:
    """Return the public members of a protocol, in their order; none for any other type."""
    members = [
        each
        for base in reversed(expected.__mro__)
        for each in (*vars(base), *vars(base).get("__annotations__", ()))
        if getattr(base, "_is_protocol", False) and not each.startswith("_")
    ]
    return list(dict.fromkeys(members))


def _describe_mismatch(answer: object, expected: type) -> str:
    """Return what an answer lacks to be of an expected type: the methods of a protocol are named."""
    name = type(answer).__name__
    if isinstance(answer, type):
        return f"returned the class {answer.__name__} in place of an object; make one: {answer.__name__}()"
    members = _protocol_members(expected)
    lacking = [each for each in members if not hasattr(answer, each)]
    if not members or len(lacking) == len(members):
        return f"returned {name}, expected a {expected.__name__} or None"
    hint = _HINTS.get(expected.__name__, "")
    return f"returned {name}, which is not a {expected.__name__}: it has no {', '.join(lacking)}{hint}"


def _import(target: str) -> type:
    module, _, name = target.partition(":")
    kind: type = getattr(import_module(f"nexus_core.values.{module}"), name)
    return kind


CHECKS: dict[str, Callable[[object], tuple[object, ...] | None]] = {
    "nexus_commands": items_of("command:Command"),
    "nexus_init_files": items_of("declarations:InitFile"),
    "nexus_settings": items_of("declarations:PluginSettings"),
    "nexus_merge_policies": items_of("declarations:MergePolicy"),
    "nexus_layers": items_of("layer:Layer", "layer:Skipped"),
    "nexus_layer_config": items_of("layer:LayerConfig", "layer:Skipped"),
    "nexus_layer_texts": items_of("layer:LayerText", "layer:Skipped"),
    "nexus_static_sections": items_of("section:Section"),
    "nexus_current_sections": items_of("section:Section"),
    "nexus_tools": items_of("conversation:Tool"),
    "nexus_renderers": items_of("rendering:Renderer"),
    "nexus_dialects": speakers,
    "nexus_roles": items_of("rendering:AgentRole"),
    "nexus_models": items_of("counting:Model"),
    "nexus_token_counter": one("counting:ModelCounter"),
    "nexus_truncations": items_of("budget:Truncation"),
    "nexus_compaction_plan": one("compaction:CompactionPlan"),
    "nexus_summarisers": items_of("compaction:Summariser"),
    "nexus_ledger": one("ledger:Ledger"),
    "nexus_assembled": nothing,
    "nexus_recorded": nothing,
    "nexus_diagnose": items_of("finding:Finding"),
}
