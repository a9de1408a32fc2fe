"""The parts of an item's content in Responses: text, refusals, pictures, files, sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.fields import at, mapping_of, named, optional_text_in, take_text, take_words, text_in, without
from nexus_core.dialects.media import absent, data_url, file_data, file_name, inline, take_file_data
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.openai.parts import read_audio, write_audio
from nexus_core.errors import MessageError
from nexus_core.values.parts import File, Image, Opaque, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.parts import ResultPart

_TEXTS = ("input_text", "output_text", "text")
_IMAGES = ("input_image", "computer_screenshot")
_DETAILS = ("auto", "low", "high", "original")


def read_parts(block: dict[str, Any], key: str, *, said: str, typed: bool = True) -> tuple[list[ResultPart], str]:
    """The parts in a field, taken out of the item, and how they stood there: as text, one, a list or nothing.

    Args:
        block: The item.
        key: The field.
        said: The type that a text has there unless it says otherwise.
        typed: Whether each part must say what it is.
    """
    content = block.get(key)
    if content is None:
        return [], "nothing"
    del block[key]
    if isinstance(content, str):
        return [Text(content)], "text"
    if isinstance(content, dict):
        with at(key):
            return [_read_part(content, said, typed=typed)], "one"
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of parts, not {named(content)}", path=key)
    parts = []
    for index, item in enumerate(content):
        with at(f"{key}[{index}]"):
            parts.append(_read_part(mapping_of(item), said, typed=typed))
    return parts, "list"


def write_parts(parts: Sequence[ResultPart], api: str, *, spelling: object, said: str) -> object:
    """What stands in the field: text where one is enough and it was not a list."""
    blocks = [block for block in (write_part(part, api, said=said) for part in parts) if block is not None]
    if spelling == "one" and len(blocks) == 1:
        return blocks[0]
    if spelling == "list" or len(blocks) > 1 or any(block.keys() != {"type", "text"} for block in blocks):
        return blocks
    return "".join(block["text"] for block in blocks)


def write_part(part: ResultPart, api: str, *, said: str) -> dict[str, Any] | None:
    """One part, read by `api`; None for another API's block. What cannot be shown is named instead."""
    own = api == "responses"
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "responses" else None
    if own:
        return _write_own(part, said)
    if isinstance(part, Text):
        return {"type": said, "text": part.text}
    block = _foreign_image(part, api) if isinstance(part, Image) else _foreign_file(part, api)
    return block or {"type": said, "text": absent(part).text}


def _read_part(block: dict[str, Any], said: str, *, typed: bool) -> ResultPart:
    kind = block.get("type")
    if kind in _TEXTS:
        note = "" if kind == said else kind
        return Text(take_text(block, "text"), noted(without(block, "type"), type=note))
    if kind == "refusal":
        return Text(take_text(block, "refusal"), noted(without(block, "type"), refusal="part"))
    if kind in _IMAGES:
        return _read_image(block)
    if kind == "input_file":
        return _read_file(block)
    if kind == "input_audio":
        return read_audio(block)
    if typed:
        text_in(block, "type")
    return Opaque("responses", block)


def _write_own(part: Text | Image | File, said: str) -> dict[str, Any]:
    if isinstance(part, Text):
        kind: Any = "refusal" if "_refusal" in part.extra else part.extra.get("_type", said)
        return filled({"type": kind, "refusal" if kind == "refusal" else "text": part.text}, part.extra)
    if "_sound" in part.extra and isinstance(part, File):
        return write_audio(part)
    if isinstance(part, Image):
        url = data_url(part.mime, part.data) if part.data else part.url
        kind = part.extra.get("_type", "input_image")
        given = {"type": kind, "detail": part.detail, "image_url": url, "file_id": part.file_id}
    else:
        given = {"type": "input_file", "filename": part.name, "file_data": file_data(part)}
        given |= {"file_url": part.url, "file_id": part.file_id}
    return filled({key: value for key, value in given.items() if value}, part.extra)


def _read_image(block: dict[str, Any]) -> Image:
    held = inline(optional_text_in(block, "image_url"))
    url = take_words(block, "image_url")
    detail, file_id = take_words(block, "detail"), take_words(block, "file_id")
    kind = block.pop("type")
    return Image(
        mime=held.mime if held else "",
        data=held.data if held else "",
        url="" if held else url,
        file_id=file_id,
        detail=detail,
        extra=noted(block, type="" if kind == "input_image" else kind),
    )


def _read_file(block: dict[str, Any]) -> File:
    held = take_file_data(block)
    name, url, file_id = (take_words(block, key) for key in ("filename", "file_url", "file_id"))
    return File(
        name=name, mime=held.mime, data=held.data, url=url, file_id=file_id, extra=noted(without(block, "type"))
    )


def _foreign_image(image: Image, api: str) -> dict[str, Any] | None:
    url = data_url(image.mime, image.data) if image.data else image.url
    where = {"image_url": url} if url else {"file_id": image.file_id} if image.file_id and api in FAMILY else None
    detail = image.detail if image.detail in _DETAILS else "auto"
    return {"type": "input_image", "detail": detail} | where if where else None


def _foreign_file(file: File, api: str) -> dict[str, Any] | None:
    if file.mime.startswith("audio/"):
        return None  # Responses does not listen
    if file.file_id and api in FAMILY:
        return {"type": "input_file", "file_id": file.file_id}
    if file.data:
        return {"type": "input_file", "filename": file_name(file), "file_data": data_url(file.mime, file.data)}
    return {"type": "input_file", "file_url": file.url} if file.url else None
