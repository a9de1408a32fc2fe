"""Pictures and documents: data URLs taken apart and put together, and words for what an API cannot be shown."""

from __future__ import annotations

from typing import Any, NamedTuple

from nexus_core.dialects.fields import optional_text_in
from nexus_core.values.parts import File, Image, Text

_BASE64 = ";base64"
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_QUARTET = 4
_MAX_PADDING = 2
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_MIMES = {"image/jpg": "image/jpeg"}
_ENDINGS = {"plain": "txt", "markdown": "md", "jpeg": "jpg", "svg+xml": "svg"}


class Inline(NamedTuple):
    """What a data URL holds."""

    mime: str
    data: str


def inline(url: str) -> Inline | None:
    """The type and the base64 of a data URL; None for any URL that `data_url` would not write just so."""
    head, comma, data = url.partition(",") if url.startswith("data:") else ("", "", "")
    mime = head[len("data:") : -len(_BASE64)]
    if not (comma and data and mime and head.endswith(_BASE64)) or ";" in mime:
        return None
    return Inline(mime, data)


def data_url(mime: str, data: str) -> str:
    """A URL that holds the bytes themselves."""
    return f"data:{mime or 'application/octet-stream'}{_BASE64},{data}"


def is_base64(data: str) -> bool:
    """True if data can be decoded: digits of base64, with or without padding and line breaks."""
    # Pictures have millions of digits: to delete the valid ones takes a fifth of the time of decoding them.
    digits = data.encode("ascii", "replace").translate(None, b" \t\r\n")
    body = digits.rstrip(b"=")
    is_complete = len(body) % _QUARTET != 1 and len(digits) - len(body) <= _MAX_PADDING
    return is_complete and not body.translate(None, _DIGITS)


def normalize_mime(mime: str) -> str:
    """Return the registered media type for a common misspelling of it, or the same."""
    return _MIMES.get(mime, mime)


def take_file_data(block: dict[str, Any]) -> Inline:
    """The bytes of a file in OpenAI's field for them, taken out of it: in a data URL, or bare with no type."""
    given = optional_text_in(block, "file_data")
    held = inline(given) or Inline("", "" if given.startswith("data:") else given)
    if held.data:
        del block["file_data"]
    return held


def file_data(file: File) -> str:
    """The bytes of a file as OpenAI has them."""
    return data_url(file.mime, file.data) if file.mime and file.data else file.data


def audio_format(mime: str) -> str:
    """OpenAI's word for a kind of sound: `mp3` for `audio/mpeg`; "" for what is no sound."""
    kind, _, subtype = mime.partition("/")
    return _FORMATS.get(subtype, subtype) if kind == "audio" else ""


def file_name(file: File) -> str:
    """Its name, or one that tells its type, for APIs that insist on one."""
    subtype = file.mime.partition("/")[2]
    return file.name or f"document.{_ENDINGS.get(subtype, subtype) or 'bin'}"


def absent(part: Image | File) -> Text:
    """What stands where an API cannot be shown something: that it was there, and what it is called."""
    kind = "image" if isinstance(part, Image) else "file"
    url = "" if part.url.startswith("data:") else part.url
    called = part.file_id or url or (part.name if isinstance(part, File) else "") or part.mime
    return Text(f"[{kind} not shown here: {called}]" if called else f"[{kind} not shown here]")
