"""What running a function brought, as Gemini wants it: an object, and media beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import compact
from nexus_core.dialects.fields import at, mapping_of, named
from nexus_core.dialects.gemini.media import read_file, read_inline, write_media
from nexus_core.dialects.gemini.spelling import Fields, respelled
from nexus_core.dialects.media import absent
from nexus_core.dialects.notes import noted
from nexus_core.dialects.requests import read_each
from nexus_core.errors import MessageError
from nexus_core.values.parts import File, Image, Opaque, Text, ToolResult

if TYPE_CHECKING:
    from nexus_core.values.parts import ResultPart

Block = dict[str, Any]

_WHOLE = ("output", "error", "result")
"""Under these names a text alone is all that a function said. Gemini itself knows the first two."""


def read_result(fields: Fields) -> ToolResult:
    """A result. What is more than a text is read as JSON."""
    inner = fields.opened("functionResponse")
    call_id, name = inner.words("id"), inner.words("name")
    said, spelling, failed = _read_response(inner)
    parts = [*said, *_read_media(inner)]
    extra = noted(fields.rest, snake=fields.spelled, inner=inner.rest, response=spelling)
    return ToolResult(call_id, tuple(parts), name, failed, extra)


def write_result(result: ToolResult, api: str, name: str) -> Block:
    """A result of the function of that name."""
    own = api == "gemini"
    texts, media = _write_parts(result, api)
    rest: Any = result.extra.get("_inner", {}) if own else {}
    inner: Block = ({"id": result.call_id} if result.call_id else {}) | ({"name": name} if name else {})
    response = _write_response(result, texts, own=own)
    # Where there was none, it was missing or null.
    if response or not (own and ("response" in rest or result.extra.get("_response") == "missing")):
        inner["response"] = response
    if media:
        inner["parts"] = media
    body: Block = {"functionResponse": inner}
    return respelled(body, result.extra) if own else body


def _write_parts(result: ToolResult, api: str) -> tuple[list[str], list[Block]]:
    """The texts of a result, with words for what cannot be shown, and the media beside them.

    Empty texts of another API are left out, as everywhere.
    """
    texts: list[str] = []
    media: list[Block] = []
    for part in result.parts:
        block = write_media(part, api) if isinstance(part, Image | File) else None
        if block:
            media.append(block)
        elif isinstance(part, Image | File):
            texts.append(absent(part).text)
        elif isinstance(part, Text):
            texts += [part.text] if api == "gemini" or part.text.strip() else []
        elif part.api == "gemini":
            media.append(dict(part.block))
    return texts, media


def _read_response(inner: Fields) -> tuple[list[ResultPart], str, bool]:
    """What was said, how it stood there, and whether it is an error."""
    if "response" not in inner:
        return [], "" if "response" in inner.rest else "missing", False
    path = inner.path("response")
    with at(path):
        response = mapping_of(inner.take("response"))
    key = next(iter(response), "")
    if response == {"error": ""}:
        return [], "", True  # as it is written where nothing is said
    if len(response) == 1 and key in _WHOLE and isinstance(response[key], str):
        return [Text(response[key])], "result" if key == "result" else "", key == "error"
    if not response:
        return [], "", False
    try:
        return [Text(compact(response))], "json", bool(response.get("error"))
    except ValueError:  # a number of so many digits that Python refuses to print it
        raise MessageError("it cannot be written as JSON", path=path) from None


def _write_response(result: ToolResult, texts: list[str], *, own: bool) -> Block:
    spelling = result.extra.get("_response") if own else ""
    text = "\n".join(texts)
    given = _object(text) if spelling == "json" else None
    if given is not None:
        return given
    if not (texts or result.is_error):
        return {}
    return {"error" if result.is_error else "result" if spelling == "result" else "output": text}


def _object(text: str) -> Block | None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _read_media(inner: Fields) -> list[ResultPart]:
    if not inner.rest.get("parts"):
        return []
    path = inner.path("parts")
    items = inner.take("parts")
    if not isinstance(items, list):
        raise MessageError(f"expected a list, not {named(items)}", path=path)
    return list(read_each(items, lambda item: _read_part(mapping_of(item)), path))


def _read_part(block: Block) -> ResultPart:
    fields = Fields(block)
    found = [read for name, read in (("inlineData", read_inline), ("fileData", read_file)) if name in fields]
    part = found[0](fields) if len(found) == 1 else None
    return part or Opaque("gemini", block)
