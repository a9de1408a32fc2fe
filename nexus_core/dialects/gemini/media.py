"""Pictures, sound, films and documents in Gemini's parts: their bytes, or the address of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.gemini.spelling import respelled
from nexus_core.dialects.media import inline
from nexus_core.dialects.notes import noted
from nexus_core.values.parts import File, Image

if TYPE_CHECKING:
    from nexus_core.dialects.gemini.spelling import Fields

Block = dict[str, Any]

_TO_STANDARD = str.maketrans("-_", "+/")
_TO_SAFE = str.maketrans("+/", "-_")
_GROUP = 4
_UPLOADED = "https://generativelanguage.googleapis.com/"
"""Where files are that were uploaded to Gemini; nobody else may fetch them."""
_ENDINGS = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
}


def read_inline(fields: Fields) -> Image | File | None:
    """Bytes; None where there are none."""
    inner = fields.opened("inlineData")
    mime, data = inner.words("mimeType"), inner.words("data")
    is_safe = ("-" in data or "_" in data) and not ("+" in data or "/" in data)
    missing = -len(data) % _GROUP
    if is_safe:
        data = data.translate(_TO_STANDARD)
    notes = {"urlsafe": is_safe, "unpadded": bool(missing)}
    return _made(fields, inner, mime, notes, data=data + "=" * missing) if data else None


def read_file(fields: Fields) -> Image | File | None:
    """An address; None where there is none."""
    inner = fields.opened("fileData")
    mime, address = inner.words("mimeType"), inner.words("fileUri")
    is_public = address.startswith(("https://", "http://")) and not address.startswith(_UPLOADED)
    return _made(fields, inner, mime, {}, **{"url" if is_public else "file_id": address}) if address else None


def write_media(part: Image | File, api: str) -> Block | None:
    """A part with bytes or an address; None for what Gemini cannot be shown."""
    if api == "gemini":
        return _write_own(part)
    mime, data = inline(part.url) or (part.mime, part.data)
    if data:
        return {"inlineData": {"mimeType": mime, "data": data}} if mime else None
    # Only an address can be fetched; another provider's id of a file is none.
    address = part.url or part.file_id
    if "://" not in address:
        return None
    mime = mime or _ENDINGS.get(address.partition("?")[0].rpartition(".")[2].lower(), "")
    return {"fileData": ({"mimeType": mime} if mime else {}) | {"fileUri": address}}


def _made(fields: Fields, inner: Fields, mime: str, notes: dict[str, bool], **held: str) -> Image | File:
    name = "" if mime.startswith("image/") else inner.words("displayName")
    extra = noted(fields.rest, snake=fields.spelled, inner=inner.rest, **notes)
    if mime.startswith("image/"):
        return Image(mime=mime, extra=extra, **held)
    return File(name=name, mime=mime, extra=extra, **held)


def _write_own(part: Image | File) -> Block:
    inner: Block = {"mimeType": part.mime} if part.mime else {}
    if part.data:
        data = part.data.rstrip("=") if "_unpadded" in part.extra else part.data
        inner["data"] = data.translate(_TO_SAFE) if "_urlsafe" in part.extra else data
    else:
        inner["fileUri"] = part.url or part.file_id
    if isinstance(part, File) and part.name:
        inner["displayName"] = part.name
    return respelled({"inlineData" if part.data else "fileData": inner}, part.extra)
