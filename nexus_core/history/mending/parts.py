"""Parts that are refused, wherever they stand."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nexus_core.dialects.arguments import INVALID_JSON, parsed
from nexus_core.dialects.fields import shown
from nexus_core.dialects.media import absent, is_base64, normalize_mime
from nexus_core.dialects.rules import SILENT_ERROR
from nexus_core.values.parts import File, Image, Opaque, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from nexus_core.history.mending.work import Work
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

_EMPTY = re.compile(r"\s*\{\s*\}\s*")


def drop_foreign_blocks(work: Work) -> None:
    """Leave blocks out that only another API knows."""
    name = work.rules.name

    def known(part: Part, _role: Role) -> Part | None:
        return None if isinstance(part, Opaque) and part.api != name else part

    for draft in work.drafts:
        if draft.rewrite(known):
            work.note("foreign-block", draft, f"it holds a block that the {name} API does not know")


def replace_misplaced_media(work: Work) -> None:
    """Put notes in place of pictures and documents where the API takes none; others are the conversion's to place."""
    for draft in filter(work.owns, work.drafts):
        if draft.rewrite(lambda part, role: _placed(part, role, work)):
            work.note("misplaced-media", draft, f"the {work.rules.name} API accepts no picture or document there")


def replace_oversized_media(work: Work) -> None:
    """Put notes in place of pictures and documents that are too large."""
    for draft in work.drafts:
        if draft.rewrite(lambda part, _role: _fitting(part, work)):
            work.note("oversized-media", draft, "a picture or document is larger than the API accepts")


def replace_unusable_media(work: Work) -> None:
    """Put notes in place of pictures and documents that the API cannot read; conversion drops types of other APIs'."""
    for draft in work.drafts:
        if not draft.holds(Image, File, ToolResult):
            continue
        types = (work.rules.image_types, work.rules.file_types) if work.owns(draft) else (frozenset(), frozenset())
        if draft.rewrite(partial(_usable, *types)):
            what = f"the {work.rules.name} API does not accept the type of a picture or document, or it is not base64"
            work.note("unusable-media", draft, what)


def retype_texts(work: Work) -> None:
    """Give texts the type that goes with the role of their message; conversion does so for other APIs'."""
    for draft in filter(work.owns, work.drafts):
        if draft.rewrite(_retyped):
            work.note("wrong-text-type", draft, f"a text has a type that does not go with the role {draft.role!r}")


def has_wrong_text_type(part: Part, role: Role) -> bool:
    """True if a text has another type than its role has, which the dialect has noted, or the user refuses."""
    return isinstance(part, Text) and ("_type" in part.extra or ("_refusal" in part.extra and role != "assistant"))


def wrap_malformed_arguments(work: Work) -> None:
    """Make an object of arguments that are none; what the model wrote stays readable."""
    for draft in work.drafts:
        for place, part in enumerate(draft.parts):
            if not isinstance(part, ToolCall) or part.raw is None or parsed(part.raw) or _EMPTY.fullmatch(part.raw):
                continue
            work.note("malformed-arguments", draft, f"the arguments for {shown(part.name)} are not a JSON object")
            wrapped = {INVALID_JSON: part.raw} if part.raw.strip() else {}
            draft.parts[place] = replace(part, arguments=part.arguments or wrapped, raw=None)


def word_silent_errors(work: Work) -> None:
    """Give words to errors that have none; in messages of others, conversion does."""
    for draft in filter(work.owns, work.drafts):
        for place, part in enumerate(draft.parts):
            if isinstance(part, ToolResult) and part.is_error and not part.parts:
                work.note("silent-error", draft, "a result says that its tool failed, and nothing else")
                draft.parts[place] = replace(part, parts=(Text(SILENT_ERROR),))


def _placed(part: Part, role: Role, work: Work) -> Part:
    return absent(part) if isinstance(part, Image | File) and role not in work.rules.media else part


def _fitting(part: Part, work: Work) -> Part:
    if not isinstance(part, Image | File):
        return part
    limit = work.rules.image_size if isinstance(part, Image) else work.rules.file_size
    return absent(replace(part, url="") if part.url.startswith("data:") else part) if _size(part) > limit > 0 else part


def _usable(image_types: frozenset[str], file_types: frozenset[str], part: Part, _role: Role) -> Part:
    if not isinstance(part, Image | File) or not part.data:
        return part
    if not is_base64(part.data):
        return absent(part)
    types = image_types if isinstance(part, Image) else file_types
    mime = normalize_mime(part.mime)
    if not types:
        return part
    return absent(part) if mime not in types else part if mime == part.mime else replace(part, mime=mime)


def _retyped(part: Part, role: Role) -> Part:
    if not isinstance(part, Text) or not has_wrong_text_type(part, role):
        return part
    if role == "assistant":
        # The SDK's type of such a text requires the field, and servers that check types insist on it.
        return replace(part, extra={"annotations": []} | {key: part.extra[key] for key in part.extra if key != "_type"})
    dropped = ("_type", "_refusal", "annotations", "logprobs")  # which only the assistant's texts have
    return replace(part, extra={key: value for key, value in part.extra.items() if key not in dropped})


def _size(part: Image | File) -> int:
    # An address that holds the bytes itself, in a spelling that no dialect took apart.
    return len(part.data) or (len(part.url) if part.url.startswith("data:") else 0)
