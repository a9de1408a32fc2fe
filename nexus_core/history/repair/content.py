"""Repair rules for what a message contains.

Characters and texts, parts in the wrong message, media, reasoning, provider blocks and cache markers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.cache_markers import (
    LONG_LIFETIME,
    SHORT_LIFETIME,
    build_anthropic_marker,
    find_part_lifetimes,
    get_lifetime,
    rewrite_markers,
)
from nexus_core.dialects.calls import INVALID_JSON_ARGUMENT, parse_arguments
from nexus_core.dialects.fields import MAX_NESTING_LEVELS, format_for_error
from nexus_core.dialects.media import (
    build_media_placeholder,
    encode_text_base64,
    get_document_text,
    is_base64,
    normalize_mime,
)
from nexus_core.dialects.rules import SILENT_ERROR_TEXT
from nexus_core.errors import MessageError
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.history.repair.draft import MessageDraft, RepairWork
    from nexus_core.types.messages import Part, Role

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUL = "\0"

_TEXT_FIELDS: dict[type, tuple[str, ...]] = {
    Text: ("text", "extra"),
    Image: ("data", "url", "mime", "file_id", "detail", "extra"),
    File: ("data", "url", "name", "mime", "file_id", "extra"),
    Reasoning: ("text", "signature", "encrypted", "extra"),
    Opaque: ("block",),
    ToolCall: ("id", "name", "arguments", "raw", "extra"),
    ToolResult: ("call_id", "name", "parts", "extra"),
}
"""The fields of each part type that may contain text."""


def clean_texts(work: RepairWork) -> None:
    """Join or replace lone surrogates, and remove NUL characters."""
    for draft in work.drafts:
        message = draft.message
        if any(needs_cleaning(each, draft.index) for each in (*draft.parts, message.name, message.extra)):
            _clean_draft(
                work,
                draft,
                _repair_surrogates,
                "lone-surrogate",
                "half a character, as cutting a text amid an emoji leaves it",
            )
            _clean_draft(work, draft, _remove_nul, "nul-character", "a NUL character")


def drop_blank_texts(work: RepairWork) -> None:
    """Remove texts that are empty or only whitespace.

    Beside calls and in results they are common: in a list of another API's messages, conversion removes them there.
    """
    change = _drop_blank if any(map(work.is_native, work.drafts)) else _drop_unusual_blank
    for draft in work.drafts:
        if draft.rewrite(change):
            work.add_finding("blank-text", draft, "a text is empty or only whitespace")


def is_blank_text(part: Part) -> bool:
    """Return True for a text that is empty or only whitespace."""
    return isinstance(part, Text) and not part.text.strip()


def _drop_blank(part: Part, _role: Role) -> Part | None:
    return None if is_blank_text(part) else part


def _drop_unusual_blank(part: Part, role: Role) -> Part | None:
    return part if role in ("assistant", "tool") else _drop_blank(part, role)


def needs_cleaning(value: Any, index: int, depth: int = 0) -> bool:  # noqa: ANN401 - a part of any kind, or JSON
    """Return True if a value contains a surrogate or a NUL character. It is fast, because few do.

    Raises:
        MessageError: It is nested too deep; the error names the message by its index.
    """
    if isinstance(value, str):
        return _NUL in value or not (value.isascii() or _SURROGATE.search(value) is None)
    if fields := _TEXT_FIELDS.get(type(value)):
        if isinstance(value, File) and needs_cleaning(get_document_text(value), index):
            return True
        return any(needs_cleaning(inner, index) for name in fields if (inner := getattr(value, name)))
    if not value or not isinstance(value, Mapping | list | tuple):
        return False
    if depth > MAX_NESTING_LEVELS:
        raise MessageError(f"nested deeper than {MAX_NESTING_LEVELS} levels", path=f"messages[{index}]")
    inner_values = (*value, *value.values()) if isinstance(value, Mapping) else value
    return any(needs_cleaning(inner, index, depth + 1) for inner in inner_values)


def _clean_draft(work: RepairWork, draft: MessageDraft, clean: Callable[[str], str], code: str, what: str) -> None:
    parts = [_clean_part(part, clean) for part in draft.parts]
    message = draft.message
    name, extra = clean(message.name), _clean_json(message.extra, clean)
    if name is message.name and extra is message.extra and all(map(is_, parts, draft.parts)):
        return
    work.add_finding(code, draft, f"there is {what} in it")
    # A provider rejects signed reasoning that was changed, so it is dropped.
    draft.parts = [
        new for new, old in zip(parts, draft.parts, strict=True) if new is old or not is_signed_reasoning(old)
    ]
    draft.message = replace(message, name=name, extra=extra)


def is_signed_reasoning(part: Part) -> bool:
    """Return True for reasoning that its provider has signed or encrypted."""
    return isinstance(part, Reasoning) and bool(part.signature or part.encrypted)


def _clean_part(part: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - a part of any kind
    """Return the part, or a new one with clean texts."""
    changes = {}
    for field in _TEXT_FIELDS[type(part)]:
        value = getattr(part, field)
        if isinstance(value, tuple):
            inner = tuple(_clean_part(each, clean) for each in value)
            cleaned: object = value if all(map(is_, inner, value)) else inner
        else:
            cleaned = _clean_json(value, clean)
        if cleaned is not value:
            changes[field] = cleaned
    if isinstance(part, File) and (text := get_document_text(part)) and (cleaned_text := clean(text)) is not text:
        changes["data"] = encode_text_base64(cleaned_text)
    if "arguments" in changes and part.raw is not None:
        changes["raw"] = None  # the raw text may contain the same characters as escapes
    return replace(part, **changes) if changes else part


def _clean_json(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        members = {clean(key): _clean_json(inner, clean) for key, inner in value.items()}
        same = len(members) == len(value) and all(map(is_, members, value))
        return value if same and all(map(is_, members.values(), value.values())) else members
    if isinstance(value, list | tuple):
        elements = [_clean_json(inner, clean) for inner in value]
        return value if all(map(is_, elements, value)) else elements
    return value


def _repair_surrogates(text: str) -> str:
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return repair_surrogates(text)


def _remove_nul(text: str) -> str:
    return text.replace(_NUL, "") if _NUL in text else text


_EMPTY_OBJECT = re.compile(r"\s*\{\s*\}\s*")


def drop_foreign_blocks(work: RepairWork) -> None:
    """Drop blocks of other APIs."""
    name = work.rules.name

    def known(part: Part, _role: Role) -> Part | None:
        return None if isinstance(part, Opaque) and part.api != name else part

    for draft in work.drafts:
        if draft.rewrite(known):
            work.add_finding("foreign-block", draft, f"it holds a block that the {name} API does not know")


def replace_misplaced_media(work: RepairWork) -> None:
    """Replace images and documents by placeholders where the API accepts none; conversion moves those of others."""
    for draft in filter(work.is_native, work.drafts):
        if draft.rewrite(lambda part, role: _replace_if_misplaced(part, role, work)):
            work.add_finding(
                "misplaced-media", draft, f"the {work.rules.name} API accepts no picture or document there"
            )


def replace_oversized_media(work: RepairWork) -> None:
    """Replace images and documents that are too large by placeholders."""
    for draft in work.drafts:
        if draft.rewrite(lambda part, _role: _replace_if_oversized(part, work)):
            work.add_finding("oversized-media", draft, "a picture or document is larger than the API accepts")


def replace_unusable_media(work: RepairWork) -> None:
    """Replace images and documents that the API cannot read; conversion handles the media types of other APIs."""
    for draft in work.drafts:
        if not draft.holds(Image, File, ToolResult):
            continue
        types = (work.rules.image_types, work.rules.file_types) if work.is_native(draft) else (frozenset(), frozenset())
        if draft.rewrite(partial(_replace_if_unusable, *types)):
            what = f"the {work.rules.name} API does not accept the type of a picture or document, or it is not base64"
            work.add_finding("unusable-media", draft, what)


def retype_texts(work: RepairWork) -> None:
    """Give texts the type of their message's role; conversion does so for messages of other APIs."""
    for draft in filter(work.is_native, work.drafts):
        if draft.rewrite(_retype_text):
            work.add_finding(
                "wrong-text-type", draft, f"a text has a type that does not go with the role {draft.role!r}"
            )


def has_wrong_text_type(part: Part, role: Role) -> bool:
    """Return True for a text with the type of another role, which the dialect has noted, or a user's refusal."""
    return isinstance(part, Text) and ("_type" in part.extra or ("_refusal" in part.extra and role != "assistant"))


def wrap_malformed_arguments(work: RepairWork) -> None:
    """Wrap arguments that are not a JSON object in one, with the model's text as a value."""
    for draft in work.drafts:
        for index, part in enumerate(draft.parts):
            if (
                not isinstance(part, ToolCall)
                or part.raw is None
                or parse_arguments(part.raw)
                or _EMPTY_OBJECT.fullmatch(part.raw)
            ):
                continue
            work.add_finding(
                "malformed-arguments", draft, f"the arguments for {format_for_error(part.name)} are not a JSON object"
            )
            wrapped = {INVALID_JSON_ARGUMENT: part.raw} if part.raw.strip() else {}
            draft.parts[index] = replace(part, arguments=part.arguments or wrapped, raw=None)


def describe_silent_errors(work: RepairWork) -> None:
    """Add a text to failed results without content; conversion does so for messages of other APIs."""
    for draft in filter(work.is_native, work.drafts):
        for index, part in enumerate(draft.parts):
            if isinstance(part, ToolResult) and part.is_error and not part.parts:
                work.add_finding("silent-error", draft, "a result says that its tool failed, and nothing else")
                draft.parts[index] = replace(part, parts=(Text(SILENT_ERROR_TEXT),))


def _replace_if_misplaced(part: Part, role: Role, work: RepairWork) -> Part:
    return build_media_placeholder(part) if isinstance(part, Image | File) and role not in work.rules.media else part


def _replace_if_oversized(part: Part, work: RepairWork) -> Part:
    if not isinstance(part, Image | File):
        return part
    limit = work.rules.image_size if isinstance(part, Image) else work.rules.file_size
    return (
        build_media_placeholder(replace(part, url="") if part.url.startswith("data:") else part)
        if _measure_media(part) > limit > 0
        else part
    )


def _replace_if_unusable(image_types: frozenset[str], file_types: frozenset[str], part: Part, _role: Role) -> Part:
    if not isinstance(part, Image | File) or not part.data:
        return part
    if not is_base64(part.data):
        return build_media_placeholder(part)
    types = image_types if isinstance(part, Image) else file_types
    mime = normalize_mime(part.mime)
    if not types:
        return part
    return (
        build_media_placeholder(part) if mime not in types else part if mime == part.mime else replace(part, mime=mime)
    )


def _retype_text(part: Part, role: Role) -> Part:
    if not isinstance(part, Text) or not has_wrong_text_type(part, role):
        return part
    if role == "assistant":
        # The SDK's type of such a text requires the field, and servers that check types insist on it.
        return replace(part, extra={"annotations": []} | {key: part.extra[key] for key in part.extra if key != "_type"})
    dropped = ("_type", "_refusal", "annotations", "logprobs")  # fields of replies only
    return replace(part, extra={key: value for key, value in part.extra.items() if key not in dropped})


def _measure_media(part: Image | File) -> int:
    # A data URL in a notation that no dialect has parsed.
    return len(part.data) or (len(part.url) if part.url.startswith("data:") else 0)


def move_misplaced_parts(work: RepairWork) -> None:
    """Drop calls and reasoning outside of replies, and move misplaced results into messages of their own.

    A `tool` message with anything besides results becomes a user message.
    """
    drafts: list[MessageDraft] = []
    for draft in work.drafts:
        sorted_out = list(_split_misplaced(draft))
        if len(sorted_out) > 1 or sorted_out[0] is not draft:
            work.add_finding("misplaced-part", draft, f"a part has no place in a message of the role {draft.role!r}")
        drafts += sorted_out
    work.drafts = drafts


def _split_misplaced(draft: MessageDraft) -> list[MessageDraft]:
    """Return the draft, or the drafts that replace it."""
    if draft.role == "assistant":
        return _split_off_results(draft)
    allowed = [part for part in draft.parts if not isinstance(part, ToolCall | Reasoning)]
    if draft.role == "system":
        same = len(allowed) == len(draft.parts)
        return _split_off_results(draft if same else draft.copy(allowed, "system"))
    role = draft.role
    if role == "tool" and len(draft.results) < len(allowed):
        role = "user"  # the role of messages with results and other parts
    return [draft] if role == draft.role and len(allowed) == len(draft.parts) else [draft.copy(allowed, role)]


def _split_off_results(draft: MessageDraft) -> list[MessageDraft]:
    results = draft.results
    if not results:
        return [draft]
    return [draft.copy(draft.others, draft.role), draft.copy(results, "tool")]


def drop_foreign_reasoning(work: RepairWork) -> None:
    """Drop reasoning of other APIs, which this one cannot use."""
    name = work.rules.name

    def known(part: Part, _role: Role) -> Part | None:
        return None if isinstance(part, Reasoning) and part.api != name else part

    for draft in work.drafts:
        if draft.rewrite(known):
            work.add_finding("foreign-reasoning", draft, f"it holds reasoning from another API than {name}")


def drop_unsigned_reasoning(work: RepairWork) -> None:
    """Drop reasoning without a signature."""
    for draft in work.drafts:
        if draft.rewrite(lambda part, _role: None if _is_unsigned(part) else part):
            work.add_finding("unsigned-reasoning", draft, "it holds reasoning without a signature")


def drop_dangling_reasoning(work: RepairWork) -> None:
    """Drop reasoning that is not followed by output of the assistant."""
    # If the API reads neighbouring replies as one turn, the output may be in the next message.
    across = work.rules.results != "each"
    follows = False
    for draft in reversed(work.drafts):
        follows = follows and across and draft.role == "assistant"
        kept: list[Part] = []
        for part in reversed(draft.parts):
            follows = follows or not (isinstance(part, Reasoning) or is_blank_text(part))
            if follows or not isinstance(part, Reasoning):
                kept.append(part)
        if len(kept) < len(draft.parts):
            work.add_finding("dangling-reasoning", draft, "reasoning is not followed by what it led to")
            draft.parts = kept[::-1]
        follows = follows and draft.role == "assistant"


def _is_unsigned(part: Part) -> bool:
    return isinstance(part, Reasoning) and not is_signed_reasoning(part)


def drop_unpaired_blocks(work: RepairWork) -> None:
    """Drop calls of provider-run tools without a result, and their results without a call."""
    calls: dict[str, MessageDraft] = {}
    answered: set[str] = set()
    for draft in work.drafts:
        for kind, name in (_classify_provider_block(part, work) for part in draft.parts):
            if kind == "call":
                calls.setdefault(name, draft)
            elif kind == "result" and name in calls:
                answered.add(name)
    last = work.drafts[-1] if work.drafts else None  # a paused reply is sent back as it is, to be continued
    for draft in work.drafts:
        kept = [
            part
            for part in draft.parts
            if (name := _classify_provider_block(part, work)[1]) == ""
            or name in answered
            or (draft is last and name in calls)
        ]
        if len(kept) < len(draft.parts):
            work.add_finding(
                "unpaired-block",
                draft,
                "a call of a tool that the provider runs has no result, or the result has no call",
            )
            draft.parts = kept


def drop_reasoning_cache_markers(work: RepairWork) -> None:
    """Remove cache markers from reasoning, where the API rejects them."""
    mark = work.rules.cache_mark

    def unmarked(part: Part, _role: Role) -> Part:
        if not isinstance(part, Reasoning) or mark not in part.extra:
            return part
        return replace(part, extra={key: value for key, value in part.extra.items() if key != mark})

    for draft in filter(work.is_native, work.drafts):
        if draft.holds(Reasoning) and draft.rewrite(unmarked):
            work.add_finding("misplaced-cache-mark", draft, f"reasoning is marked {mark}")


def limit_cache_marks(work: RepairWork) -> None:
    """Keep only the last allowed cache markers, and shorten lifetimes that exceed that of an earlier marker."""
    rules = work.rules
    found = [each for draft in work.drafts for each in find_part_lifetimes(draft.parts, draft.message.api, rules)]
    limit = _CacheMarkLimit(work, surplus=len(work.marked) + len(found) - rules.cache_marks)
    if limit.surplus > 0 or _is_outlived_by_later([*work.marked, *found]):
        for draft in work.drafts:
            limit.repair_draft(draft)


class _CacheMarkLimit:
    """Repair of cache markers in their order.

    Args:
        work: The repair.
        surplus: The number of markers to remove, from the first on.
    """

    def __init__(self, work: RepairWork, *, surplus: int) -> None:
        self.surplus = surplus
        self._work = work
        self._short = SHORT_LIFETIME in work.marked

    def repair_draft(self, draft: MessageDraft) -> None:
        """Repair the markers of the next message."""
        rules, api = self._work.rules, draft.message.api
        draft.parts = [
            rewrite_markers(part, api, rules, lambda mark: self._repair_marker(mark, draft)) for part in draft.parts
        ]

    def _repair_marker(self, mark: Any, draft: MessageDraft) -> Any:  # noqa: ANN401 - JSON
        rules = self._work.rules
        self.surplus -= 1
        if self.surplus >= 0:
            what = f"more than {rules.cache_marks} blocks are marked {rules.cache_mark}"
            self._work.add_finding("too-many-cache-marks", draft, what)
            return None
        if get_lifetime(mark) == LONG_LIFETIME and self._short:
            what = f"what is to be kept for {LONG_LIFETIME} stands after what is to be kept for {SHORT_LIFETIME}"
            self._work.add_finding("cache-mark-order", draft, what)
            return build_anthropic_marker(SHORT_LIFETIME)
        self._short = self._short or get_lifetime(mark) == SHORT_LIFETIME
        return mark


def _is_outlived_by_later(lifetimes: list[str]) -> bool:
    return SHORT_LIFETIME in lifetimes and LONG_LIFETIME in lifetimes[lifetimes.index(SHORT_LIFETIME) :]


def _classify_provider_block(part: Part, work: RepairWork) -> tuple[str, str]:
    """Return `call`, `result` or "" for a block, and the id that links call and result of a provider-run tool."""
    if not isinstance(part, Opaque) or part.api != work.rules.name:
        return "", ""
    if part.block.get("type") in work.rules.server_calls:
        return "call", str(part.block.get("id"))
    answered = part.block.get("tool_use_id")
    return ("result", answered) if isinstance(answered, str) else ("", "")
