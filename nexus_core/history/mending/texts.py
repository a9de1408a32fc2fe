"""Characters and texts that are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.media import encode_text_base64, words_of
from nexus_core.dialects.plain import DEEPEST
from nexus_core.errors import MessageError
from nexus_core.text.surrogates import join_halves
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.history.mending.work import Draft, Work
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUL = "\0"

_FIELDS: dict[type, tuple[str, ...]] = {
    Text: ("text", "extra"),
    Image: ("data", "url", "mime", "file_id", "detail", "extra"),
    File: ("data", "url", "name", "mime", "file_id", "extra"),
    Reasoning: ("text", "signature", "encrypted", "extra"),
    Opaque: ("block",),
    ToolCall: ("id", "name", "arguments", "raw", "extra"),
    ToolResult: ("call_id", "name", "parts", "extra"),
}
"""Where a part holds text."""


def clean_texts(work: Work) -> None:
    """Put halves of characters together, replace those that have no other half, and take NUL characters out."""
    for draft in work.drafts:
        message = draft.message
        if any(is_foul(each, draft.index) for each in (*draft.parts, message.name, message.extra)):
            _clean(work, draft, _whole, "lone-surrogate", "half a character, as cutting a text amid an emoji leaves it")
            _clean(work, draft, _without_nul, "nul-character", "a NUL character")


def drop_blank_texts(work: Work) -> None:
    """Take texts out that are empty or all blanks.

    In a list of other APIs' messages, conversion takes out those beside calls and in results, where they are usual.
    """
    change = _said if any(map(work.owns, work.drafts)) else _said_or_usual
    for draft in work.drafts:
        if draft.rewrite(change):
            work.note("blank-text", draft, "a text is empty or only whitespace")


def is_blank(part: Part) -> bool:
    """Whether it is a text that says nothing."""
    return isinstance(part, Text) and not part.text.strip()


def _said(part: Part, _role: Role) -> Part | None:
    return None if is_blank(part) else part


def _said_or_usual(part: Part, role: Role) -> Part | None:
    return part if role in ("assistant", "tool") else _said(part, role)


def is_foul(value: Any, index: int, depth: int = 0) -> bool:  # noqa: ANN401 - a part of any kind, or JSON
    """Whether there is anything to clean: a quick look, because there hardly ever is.

    Raises:
        MessageError: It is nested too deep; names the message by its index.
    """
    if isinstance(value, str):
        return _NUL in value or not (value.isascii() or _SURROGATE.search(value) is None)
    if fields := _FIELDS.get(type(value)):
        if isinstance(value, File) and is_foul(words_of(value), index):
            return True
        return any(is_foul(inner, index) for name in fields if (inner := getattr(value, name)))
    if not value or not isinstance(value, Mapping | list | tuple):
        return False
    if depth > DEEPEST:
        raise MessageError(f"nested deeper than {DEEPEST} levels", path=f"messages[{index}]")
    inner_values = (*value, *value.values()) if isinstance(value, Mapping) else value
    return any(is_foul(inner, index, depth + 1) for inner in inner_values)


def _clean(work: Work, draft: Draft, clean: Callable[[str], str], code: str, what: str) -> None:
    parts = [_cleaned(part, clean) for part in draft.parts]
    message = draft.message
    name, extra = clean(message.name), _cleaned_json(message.extra, clean)
    if name is message.name and extra is message.extra and all(map(is_, parts, draft.parts)):
        return
    work.note(code, draft, f"there is {what} in it")
    # A sealed thought that is changed is worth nothing, and refused.
    draft.parts = [new for new, old in zip(parts, draft.parts, strict=True) if new is old or not is_sealed(old)]
    draft.message = replace(message, name=name, extra=extra)


def is_sealed(part: Part) -> bool:
    """Whether it is reasoning that its provider has signed or encrypted."""
    return isinstance(part, Reasoning) and bool(part.signature or part.encrypted)


def _cleaned(part: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - a part of any kind
    """The part, or another one with clean texts."""
    changes = {}
    for field in _FIELDS[type(part)]:
        value = getattr(part, field)
        if isinstance(value, tuple):
            inner = tuple(_cleaned(each, clean) for each in value)
            cleaned: object = value if all(map(is_, inner, value)) else inner
        else:
            cleaned = _cleaned_json(value, clean)
        if cleaned is not value:
            changes[field] = cleaned
    if isinstance(part, File) and (words := words_of(part)) and (cleaned_words := clean(words)) is not words:
        changes["data"] = encode_text_base64(cleaned_words)
    if "arguments" in changes and part.raw is not None:
        changes["raw"] = None  # in that text the same characters may be escaped
    return replace(part, **changes) if changes else part


def _cleaned_json(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        members = {clean(key): _cleaned_json(inner, clean) for key, inner in value.items()}
        same = len(members) == len(value) and all(map(is_, members, value))
        return value if same and all(map(is_, members.values(), value.values())) else members
    if isinstance(value, list | tuple):
        elements = [_cleaned_json(inner, clean) for inner in value]
        return value if all(map(is_, elements, value)) else elements
    return value


def _whole(text: str) -> str:
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return join_halves(text)


def _without_nul(text: str) -> str:
    return text.replace(_NUL, "") if _NUL in text else text
