"""Cache markers that messages and tools already have, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.types.messages import Opaque, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import Part, Tool

    RewriteMarker = Callable[[Any], Any]

SHORT_LIFETIME, LONG_LIFETIME = "5m", "1h"
"""Cache lifetimes at Anthropic. A marker without `ttl` has the short one."""


def get_lifetime(mark: object) -> str:
    """Return the cache lifetime of a marker."""
    return LONG_LIFETIME if isinstance(mark, dict) and mark.get("ttl") == LONG_LIFETIME else SHORT_LIFETIME


def find_part_lifetimes(parts: Iterable[Part], api: str, rules: ApiRules) -> list[str]:
    """Return the lifetimes of the markers in a message's parts, in order.

    Args:
        parts: The parts of a message.
        api: The dialect that the message was read from. Markers of another API are not sent and not counted.
        rules: Rules of the API that the message is sent to.
    """
    found: list[str] = []

    def collect(marker: object) -> object:
        found.append(get_lifetime(marker))
        return marker

    for part in parts:
        rewrite_markers(part, api, rules, collect)
    return found


def find_tool_lifetimes(tools: Iterable[Tool], rules: ApiRules) -> list[str]:
    """Return the lifetimes of the markers on the API's own tools, in order."""
    markers = (tool.extra.get(rules.cache_mark) for tool in tools if tool.api == rules.name)
    return [get_lifetime(marker) for marker in markers if marker is not None]


def limit_tool_markers(tools: Sequence[Tool], rules: ApiRules, limit: int) -> tuple[Tool, ...]:
    """Return the tools with only the last `limit` markers.

    None lives longer than one before it.
    """
    lifetimes = find_tool_lifetimes(tools, rules) if rules.cache_marks else []
    if len(lifetimes) <= limit and lifetimes == sorted(lifetimes):  # "1h" sorts before "5m": longest first
        return tuple(tools)
    kept = lifetimes[max(len(lifetimes) - limit, 0) :]
    kept = [SHORT_LIFETIME if SHORT_LIFETIME in kept[:index] else each for index, each in enumerate(kept)]
    new_lifetimes = iter([*[""] * (len(lifetimes) - len(kept)), *kept])
    return tuple(
        _replace_tool_marker(tool, rules, next(new_lifetimes)) if find_tool_lifetimes([tool], rules) else tool
        for tool in tools
    )


def build_anthropic_marker(lifetime: str) -> dict[str, str]:
    """Return Anthropic's `cache_control` for a lifetime."""
    return {"type": "ephemeral", "ttl": LONG_LIFETIME} if lifetime == LONG_LIFETIME else {"type": "ephemeral"}


def _replace_tool_marker(tool: Tool, rules: ApiRules, lifetime: str) -> Tool:
    rest = {key: value for key, value in tool.extra.items() if key != rules.cache_mark}
    return replace(tool, extra=rest | ({rules.cache_mark: build_anthropic_marker(lifetime)} if lifetime else {}))


def rewrite_markers(part: Part, api: str, rules: ApiRules, rewrite: RewriteMarker) -> Part:
    """Return the part with its markers rewritten, itself if none changes.

    Args:
        part: The part. Markers of nested parts are rewritten, too.
        api: The dialect that the message was read from. Markers of another API are not sent, so they are ignored.
        rules: Rules of the API that the message is sent to.
        rewrite: Called with each marker in order. Returns it, a new marker, or None to remove it.
    """
    if isinstance(part, Opaque):
        block = part.block if part.api != rules.name else _rewrite_nested_markers(part.block, rules.cache_mark, rewrite)
        return part if block is part.block else replace(part, block=block)
    if api != rules.name:
        return part
    if isinstance(part, ToolResult):
        inner: list[Any] = [rewrite_markers(each, api, rules, rewrite) for each in part.parts]
        if any(new is not old for new, old in zip(inner, part.parts, strict=True)):
            part = replace(part, parts=tuple(inner))
    if part.extra.get(rules.cache_mark) is None:
        return part
    extra = _rewrite_nested_markers(part.extra, rules.cache_mark, rewrite)
    return part if extra is part.extra else replace(part, extra=extra)


def _rewrite_nested_markers(value: Any, field: str, rewrite: RewriteMarker) -> Any:  # noqa: ANN401 - anything in JSON
    """Return JSON with all markers in `field` rewritten.

    Markers may be at any depth, because a document may contain blocks.
    """
    if isinstance(value, list):
        elements = [_rewrite_nested_markers(element, field, rewrite) for element in value]
        return elements if any(new is not old for new, old in zip(elements, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changed = {key: _rewrite_nested_markers(each, field, rewrite) for key, each in value.items() if key != field}
    old = value.get(field)
    new = None if old is None else rewrite(old)
    if new is old and all(changed[key] is value[key] for key in changed):
        return value
    return {key: new if key == field else changed[key] for key in value if key != field or new is not None}
