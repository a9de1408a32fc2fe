"""Pictures and documents: their bytes or words, or where they are in S3."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import File, Image, Opaque, fields_of, inline_data, media_note, noted
from nexus_plugins.bedrock._fields import API, inside, mapping_in, text_in, unpacked, without, words_in

if TYPE_CHECKING:
    from nexus_plugins.bedrock._fields import Block

_PICTURES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_MIMES = {spelled: mime for mime, spelled in _DOCUMENTS.items()}
_WORDS = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})
_REFUSED = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")
_ENDING = re.compile(r"\.[a-zA-Z0-9]{1,5}$")
_LONGEST_NAME = 200
_S3 = "s3://"


class Names:
    """Names of documents: of few kinds of letters, and no two alike in a request."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> None:
        """One that stands in the request already."""
        self._taken.add(name)

    def new(self, name: str) -> str:
        """One that is like the name of a file, and is not taken yet."""
        plain = _REFUSED.sub(" ", _ENDING.sub("", name)).strip()[: _LONGEST_NAME - 10].strip() or "document"
        found, count = plain, 1
        while found in self._taken:
            count += 1
            found = f"{plain} {count}"
        self._taken.add(found)
        return found


def read_image(block: Block, rest: Block) -> Image | Opaque:
    """A picture; as it came where its source is of a kind that is new."""
    kind = text_in(block, "format", "image")
    held, others = _read_source(block, "image")
    if not held or "words" in held:
        return Opaque(API, {"image": block, **rest})
    extra = noted(rest, inner=without(block, "format", "source"), source=others)
    return Image(mime=f"image/{kind}", extra=extra, **held)


def read_document(block: Block, rest: Block) -> File | Opaque:
    """A document; as it came where its source is blocks, or of a kind that is new."""
    name, spelled = text_in(block, "name", "document"), words_in(block, "format", "document")
    held, others = _read_source(block, "document")
    if not held:
        return Opaque(API, {"document": block, **rest})
    is_text = "words" in held
    if is_text:
        held = {"data": b64encode(held["words"].encode("utf-8", "surrogatepass")).decode("ascii")}
    mime = _MIMES.get(spelled, "text/plain" if is_text else "")
    # What is empty or null stays inside, to be told from what is missing.
    inner = without(block, "name", "source", "format" if spelled else "")
    unusual = spelled if _DOCUMENTS.get(mime) != spelled else ""
    extra = noted(rest, inner=inner, source=others, text=is_text, format=unusual, bare=not spelled)
    return File(name=name, mime=mime, extra=extra, **held)


def write_own(part: Image | File) -> Block:
    """A picture or document of Bedrock's own, as it was."""
    extra: Any = part.extra
    rest = fields_of(extra)
    inner: Block = {"source": _own_source(part) | extra.get("_source", {}), **extra.get("_inner", {})}
    if isinstance(part, Image):
        return {"image": {"format": part.mime.partition("/")[2], **inner}, **rest}
    spelled = {} if "_bare" in extra else {"format": extra.get("_format", _DOCUMENTS.get(part.mime, "txt"))}
    return {"document": {**spelled, "name": part.name, **inner}, **rest}


def write_foreign(part: Image | File, names: Names) -> Block:
    """A picture or document of somebody else; words for what Bedrock cannot be shown."""
    mime, data = inline_data(part.url) or (part.mime, part.data)
    is_picture = isinstance(part, Image) or mime.startswith("image/")
    spelled = _PICTURES.get(mime) if is_picture else _DOCUMENTS.get(mime) or _as_words(mime)
    source = _foreign_source(part, data)
    if spelled is None or source is None:
        return {"text": media_note(part).text}
    if is_picture:
        return {"image": {"format": spelled, "source": source}}
    return {"document": {"format": spelled, "name": names.new(getattr(part, "name", "")), "source": source}}


def _read_source(block: Block, path: str) -> tuple[dict[str, str], Block]:
    """What the source holds, and its other fields; nothing where it is empty or of no known kind."""
    source, place = mapping_in(block, "source", path), inside(path, "source")
    if source.get("bytes") not in (None, ""):
        return {"data": text_in(source, "bytes", place)}, without(source, "bytes")
    if source.get("text") not in (None, ""):
        return {"words": text_in(source, "text", place)}, without(source, "text")
    if source.get("s3Location") is not None:
        location = mapping_in(source, "s3Location", place)
        uri = text_in(location, "uri", inside(place, "s3Location"))
        return ({"file_id": uri} if uri else {}), source
    return {}, {}


def _own_source(part: Image | File) -> Block:
    if part.file_id:
        return {"s3Location": {"uri": part.file_id}}
    data = unpacked(part.data)
    if "_text" in part.extra and isinstance(data, bytes):
        return {"text": data.decode("utf-8", "surrogatepass")}
    return {"bytes": data}


def _foreign_source(part: Image | File, data: str) -> Block | None:
    if part.file_id.startswith(_S3) and not data:
        return {"s3Location": {"uri": part.file_id}}
    held = unpacked(data)
    return {"bytes": held} if held and isinstance(held, bytes) else None


def _as_words(mime: str) -> str | None:
    return "txt" if mime.startswith("text/") or mime in _WORDS else None
