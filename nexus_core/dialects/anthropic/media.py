"""Pictures and documents in Anthropic's Messages: their bytes or words, an address, or the id of an uploaded file."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from nexus_core.dialects.fields import at, mapping_in, take_text, take_words
from nexus_core.dialects.media import absent, inline, is_base64, normalize_mime
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.rules import ANTHROPIC
from nexus_core.values.parts import File, Image, Opaque

Block = dict[str, Any]

_PDF = "application/pdf"
_WORDS = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})


def read_image(block: Block) -> Image | Opaque:
    """A picture; as it came where its source is of a kind that is new."""
    fields = _read_source(block)
    return Image(**fields) if fields else Opaque("anthropic", block)


def read_document(block: Block) -> File | Opaque:
    """A document; as it came where its source is blocks, or of a kind that is new."""
    fields = _read_source(block)
    if not fields:
        return Opaque("anthropic", block)
    return File(name=take_words(fields["extra"], "title"), **fields)


def write_media(part: Image | File, api: str) -> Block:
    """A block, or words for what Anthropic cannot be shown."""
    if api == "anthropic":
        return _write_own(part)
    if isinstance(part, File) and part.mime.startswith("image/"):
        part = Image(mime=part.mime, data=part.data, url=part.url, file_id=part.file_id)
    source = _image_source(part, api) if isinstance(part, Image) else _document_source(part, api)
    if source is None:
        return {"type": "text", "text": absent(part).text}
    body: Block = {"type": "image" if isinstance(part, Image) else "document", "source": source}
    return body | ({"title": part.name} if isinstance(part, File) and part.name else {})


def _read_source(block: Block) -> dict[str, Any] | None:
    """What the part is made with; None where the source is empty or of no known kind."""
    source = dict(mapping_in(block, "source"))
    with at("source"):
        kind = take_text(source, "type")
        said = _said_by(source, kind)
    if not any(said.values()):
        return None
    rest = {key: value for key, value in block.items() if key not in ("type", "source")}
    return said | {"extra": noted(rest, inner=source, source=kind if kind in ("text", "content") else "")}


def _said_by(source: Block, kind: str) -> dict[str, str]:
    """The fields of a source, taken out of it; none of those that are nothing to Nexus."""
    if kind == "url":
        return {"url": take_text(source, "url")}
    if kind == "file":
        return {"file_id": take_text(source, "file_id")}
    if kind == "base64" and source.get("data") != "":
        return {"mime": take_text(source, "media_type"), "data": take_text(source, "data")}
    if kind == "text" and source.get("data") != "":
        return {"mime": take_text(source, "media_type"), "data": encode_text_base64(take_text(source, "data"))}
    if kind == "content" and isinstance(source.get("content"), str) and source["content"]:
        return {"mime": "text/plain", "data": encode_text_base64(take_text(source, "content"))}
    return {}


def _write_own(part: Image | File) -> Block:
    inner: Any = part.extra.get("_inner", {})
    if isinstance(part, Image):
        return filled({"type": "image", "source": _own_source(part) | inner}, part.extra)
    body: Block = {"type": "document", "source": _own_source(part) | inner}
    return filled(body | ({"title": part.name} if part.name else {}), part.extra)


def _own_source(part: Image | File) -> Block:
    if part.url:
        return {"type": "url", "url": part.url}
    if part.file_id:
        return {"type": "file", "file_id": part.file_id}
    words = words_of(part)
    if words is None:
        return {"type": "base64", "media_type": part.mime, "data": part.data}
    return {"type": "content", "content": words} if part.extra["_source"] == "content" else _text(words, part.mime)


def _image_source(image: Image, api: str) -> Block | None:
    mime, data = inline(image.url) or (image.mime, image.data)
    mime = normalize_mime(mime)
    if data:
        is_shown = mime in ANTHROPIC.image_types and is_base64(data)
        return {"type": "base64", "media_type": mime, "data": data} if is_shown else None
    return _elsewhere(image, api)


def _document_source(file: File, api: str) -> Block | None:
    mime, data = inline(file.url) or (file.mime, file.data)
    if data and mime == _PDF and is_base64(data):
        return {"type": "base64", "media_type": _PDF, "data": data}
    if data:
        words = _unpacked(data) if mime.startswith("text/") or mime in _WORDS else None
        return _text(words) if words and words.strip() else None
    # Behind an address Anthropic reads nothing but a PDF.
    return _elsewhere(file, api) if mime in ("", _PDF) else None


def _elsewhere(part: Image | File, api: str) -> Block | None:
    if part.url.startswith(("https://", "http://")):
        return {"type": "url", "url": part.url}
    # The id of a file means nothing to another provider.
    return {"type": "file", "file_id": part.file_id} if part.file_id and not api else None


def _text(words: str, mime: str = "text/plain") -> Block:
    return {"type": "text", "media_type": mime, "data": words}


def words_of(part: Image | File) -> str | None:
    """Return the words of a document that came as words; None for one that came as bytes or an address."""
    return _unpacked(part.data) if "_source" in part.extra and part.data else None


def encode_text_base64(words: str) -> str:
    """Return words as the data of a part."""
    # Half a surrogate pair is no text, but a JSON file may hold one, and it must come out as it went in.
    return b64encode(words.encode("utf-8", "surrogatepass")).decode("ascii")


def _unpacked(data: str) -> str | None:
    try:
        return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
