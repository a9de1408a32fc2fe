"""The parts of a chat message's content: text, refusals, pictures, sound, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.fields import at, mapping_in, mapping_of, named, take_text, take_words
from nexus_core.dialects.media import absent, audio_format, data_url, file_data, file_name, inline, take_file_data
from nexus_core.dialects.notes import filled, noted
from nexus_core.errors import MessageError
from nexus_core.values.parts import File, Image, Opaque, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.parts import ResultPart

_SOUNDS = ("wav", "mp3")


def read_content(block: dict[str, Any]) -> tuple[list[ResultPart], str]:
    """The parts of a message's content, taken out of it; and `list` where they stood in one."""
    content = block.get("content")
    if content is None:
        return [], ""
    del block["content"]
    if isinstance(content, str):
        return [Text(content)], ""
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of parts, not {named(content)}", path="content")
    parts = []
    for index, item in enumerate(content):
        with at(f"content[{index}]"):
            parts.append(_read_part(mapping_of(item)))
    return parts, "list"


def write_content(
    parts: Sequence[ResultPart], api: str, *, spelling: object, media: bool
) -> str | list[dict[str, Any]]:
    """Content: a text where one is enough and the API did not have a list, otherwise a list of parts."""
    blocks = [block for block in (write_part(part, api, media=media) for part in parts) if block is not None]
    if spelling == "list" or len(blocks) > 1 or any(block.keys() != {"type", "text"} for block in blocks):
        return blocks
    return "".join(block["text"] for block in blocks)


def write_part(part: ResultPart, api: str, *, media: bool) -> dict[str, Any] | None:
    """One part, read by `api`; None for another API's block. What cannot be shown where it stands is named instead."""
    own = api == "openai"
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "openai" else None
    if isinstance(part, Text):
        kind = "refusal" if api in FAMILY and "_refusal" in part.extra else "text"
        body: dict[str, Any] = {"type": kind, kind: part.text}
        return filled(body, part.extra) if own else body
    if own:
        return _own_image(part) if isinstance(part, Image) else _own_file(part)
    shown = _foreign_image(part) if isinstance(part, Image) else _foreign_file(part, api)
    return shown if shown and media else {"type": "text", "text": absent(part).text}


def _read_part(block: dict[str, Any]) -> ResultPart:
    kind = block.get("type")
    if kind == "text":
        del block["type"]
        return Text(take_text(block, "text"), noted(block))
    if kind == "refusal":
        del block["type"]
        return Text(take_text(block, "refusal"), noted(block, refusal="part"))
    if kind == "image_url":
        return _read_image(block)
    if kind == "input_audio":
        return read_audio(block)
    if kind == "file":
        return _read_file(block)
    if not isinstance(kind, str):
        raise MessageError(
            "there is no 'type'" if kind is None else f"expected text, not {named(kind)}",
            path="type",
            hint="it says what the part is: text, image_url, input_audio, file, refusal",
        )
    return Opaque("openai", block)


def _read_image(block: dict[str, Any]) -> Image:
    # Some servers take the URL itself where OpenAI wants an object.
    bare = isinstance(block.get("image_url"), str)
    inner = {"url": block["image_url"]} if bare else mapping_in(block, "image_url")
    with at("image_url"):
        url = take_text(inner, "url")
        detail = take_words(inner, "detail")
    held = inline(url)
    return Image(
        mime=held.mime if held else "",
        data=held.data if held else "",
        url="" if held else url,
        detail=detail,
        extra=noted(_rest(block, "image_url"), inner=inner, bare=bare),
    )


def _own_image(image: Image) -> dict[str, Any]:
    url = data_url(image.mime, image.data) if image.data else image.url
    inner = {"url": url} | ({"detail": image.detail} if image.detail else {})
    bare = image.extra.get("_bare")
    return filled({"type": "image_url", "image_url": url if bare else inner | _inner(image)}, image.extra)


def _foreign_image(image: Image) -> dict[str, Any] | None:
    url = data_url(image.mime, image.data) if image.data else image.url
    detail = {"detail": image.detail} if image.detail in ("auto", "low", "high", "original") else {}
    return {"type": "image_url", "image_url": {"url": url} | detail} if url else None


def read_audio(block: dict[str, Any]) -> File:
    """Sound. Responses has it in the same shape."""
    inner = mapping_in(block, "input_audio")
    with at("input_audio"):
        data, kind = take_text(inner, "data"), take_text(inner, "format")
    extra = noted(_rest(block, "input_audio"), inner=inner) | {"_sound": kind}
    return File(mime=f"audio/{kind}", data=data, extra=extra)


def write_audio(file: File) -> dict[str, Any]:
    """Sound, as it was read."""
    inner: dict[str, Any] = {"data": file.data, "format": file.extra["_sound"]}
    return filled({"type": "input_audio", "input_audio": inner | _inner(file)}, file.extra)


def _read_file(block: dict[str, Any]) -> File:
    inner = mapping_in(block, "file")
    with at("file"):
        held = take_file_data(inner)
        file_id, name = (take_words(inner, key) for key in ("file_id", "filename"))
    return File(
        name=name, mime=held.mime, data=held.data, file_id=file_id, extra=noted(_rest(block, "file"), inner=inner)
    )


def _own_file(file: File) -> dict[str, Any]:
    if "_sound" in file.extra:
        return write_audio(file)
    given = {"filename": file.name, "file_data": file_data(file), "file_id": file.file_id}
    inner = {key: value for key, value in given.items() if value}
    return filled({"type": "file", "file": inner | _inner(file)}, file.extra)


def _foreign_file(file: File, api: str) -> dict[str, Any] | None:
    if file.file_id and api in FAMILY:
        return {"type": "file", "file": {"file_id": file.file_id}}
    if not file.data:
        return None
    sound = audio_format(file.mime)
    if sound:
        inner = {"data": file.data, "format": sound}
        return {"type": "input_audio", "input_audio": inner} if sound in _SOUNDS else None
    return {"type": "file", "file": {"filename": file_name(file), "file_data": data_url(file.mime, file.data)}}


def _rest(block: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name not in ("type", key)}


def _inner(part: Image | File) -> dict[str, Any]:
    inner: Any = part.extra.get("_inner", {})
    return dict(inner)
