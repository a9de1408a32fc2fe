"""The marks that tell a provider what to keep in its cache, where messages and tools bear them already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.values.parts import Opaque, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.values.api import ApiRules
    from nexus_core.values.conversation import Tool
    from nexus_core.values.parts import Part

    Rewrite = Callable[[Any], Any]

SHORT, LONG = "5m", "1h"
"""How long Anthropic keeps what is marked; whoever says nothing gets the shorter."""


def lifetime(mark: object) -> str:
    """How long a mark says that something is to be kept."""
    return LONG if isinstance(mark, dict) and mark.get("ttl") == LONG else SHORT


def marks_in(parts: Iterable[Part], api: str, rules: ApiRules) -> list[str]:
    """The lifetimes of the marks in a message that the API will get, in their order; arguments as `rewrite_marks`."""
    found: list[str] = []

    def note(mark: object) -> object:
        found.append(lifetime(mark))
        return mark

    for part in parts:
        rewrite_marks(part, api, rules, note)
    return found


def marks_on(tools: Iterable[Tool], rules: ApiRules) -> list[str]:
    """The lifetimes of the marks on tools that the API will get, in their order."""
    marks = (tool.extra.get(rules.cache_mark) for tool in tools if tool.api == rules.name)
    return [lifetime(mark) for mark in marks if mark is not None]


def limit_marks(tools: Sequence[Tool], rules: ApiRules, most: int) -> tuple[Tool, ...]:
    """The tools, with the last marks on them that the API takes, none of which outlives one before it."""
    lifetimes = marks_on(tools, rules) if rules.cache_marks else []
    if len(lifetimes) <= most and lifetimes == sorted(lifetimes):  # `1h` is the first in this order as well
        return tuple(tools)
    kept = lifetimes[max(len(lifetimes) - most, 0) :]
    kept = [SHORT if SHORT in kept[:place] else each for place, each in enumerate(kept)]
    marks = iter([*[""] * (len(lifetimes) - len(kept)), *kept])
    return tuple(_remarked(tool, rules, next(marks)) if marks_on([tool], rules) else tool for tool in tools)


def new_mark(lifetime: str) -> dict[str, str]:
    """A mark as Anthropic writes it."""
    return {"type": "ephemeral", "ttl": LONG} if lifetime == LONG else {"type": "ephemeral"}


def _remarked(tool: Tool, rules: ApiRules, lifetime: str) -> Tool:
    rest = {key: value for key, value in tool.extra.items() if key != rules.cache_mark}
    return replace(tool, extra=rest | ({rules.cache_mark: new_mark(lifetime)} if lifetime else {}))


def rewrite_marks(part: Part, api: str, rules: ApiRules, rewrite: Rewrite) -> Part:
    """A part with other marks; the very same if none changes.

    Args:
        part: What to look at, with what is inside of it.
        api: Who read the message. Marks of another API are not sent, and not looked at.
        rules: The API it goes to.
        rewrite: Gets each mark in its order; returns it, another one, or None to take it away.
    """
    if isinstance(part, Opaque):
        block = part.block if part.api != rules.name else _rewritten(part.block, rules.cache_mark, rewrite)
        return part if block is part.block else replace(part, block=block)
    if api != rules.name:
        return part
    if isinstance(part, ToolResult):
        inner: list[Any] = [rewrite_marks(each, api, rules, rewrite) for each in part.parts]
        if any(new is not old for new, old in zip(inner, part.parts, strict=True)):
            part = replace(part, parts=tuple(inner))
    if part.extra.get(rules.cache_mark) is None:
        return part
    extra = _rewritten(part.extra, rules.cache_mark, rewrite)
    return part if extra is part.extra else replace(part, extra=extra)


def _rewritten(value: Any, mark: str, rewrite: Rewrite) -> Any:  # noqa: ANN401 - anything in JSON
    """The same with other marks in it, however deep: a document may be made of blocks."""
    if isinstance(value, list):
        elements = [_rewritten(element, mark, rewrite) for element in value]
        return elements if any(new is not old for new, old in zip(elements, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changed = {key: _rewritten(each, mark, rewrite) for key, each in value.items() if key != mark}
    own = value.get(mark)
    new = None if own is None else rewrite(own)
    if new is own and all(changed[key] is value[key] for key in changed):
        return value
    return {key: new if key == mark else changed[key] for key in value if key != mark or new is not None}
