"""Images and files: data URLs, base64, and text placeholders."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from nexus_core.dialects.fields import get_optional_text
from nexus_core.types.messages import File, Image, Text

_BASE64_MARKER = ";base64"
_BASE64_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_QUARTET = 4
_MAX_PADDING = 2
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_MIME_ALIASES = {"image/jpg": "image/jpeg"}
_FILE_EXTENSIONS = {"plain": "txt", "markdown": "md", "jpeg": "jpg", "svg+xml": "svg"}


class InlineData(NamedTuple):
    """Content of a data URL: media type and base64 data."""

    mime: str
    data: str


def parse_data_url(url: str) -> InlineData | None:
    """Parse a data URL.

    Returns None for any URL that `build_data_url` would write differently.
    """
    head, comma, data = url.partition(",") if url.startswith("data:") else ("", "", "")
    mime = head[len("data:") : -len(_BASE64_MARKER)]
    if not (comma and data and mime and head.endswith(_BASE64_MARKER)) or ";" in mime:
        return None
    return InlineData(mime, data)


def build_data_url(mime: str, data: str) -> str:
    """Return the data URL for base64 data."""
    return f"data:{mime or 'application/octet-stream'}{_BASE64_MARKER},{data}"


def is_base64(data: str) -> bool:
    """Return True if data is valid base64, with or without padding and whitespace."""
    # Images have millions of digits: deleting the valid ones is five times faster than decoding them.
    digits = data.encode("ascii", "replace").translate(None, b" \t\r\n")
    body = digits.rstrip(b"=")
    is_complete = len(body) % _BASE64_QUARTET != 1 and len(digits) - len(body) <= _MAX_PADDING
    return is_complete and not body.translate(None, _BASE64_DIGITS)


def normalize_mime(mime: str) -> str:
    """Return the registered media type for a common misspelling, or the value itself."""
    return _MIME_ALIASES.get(mime, mime)


def take_file_data(block: dict[str, Any]) -> InlineData:
    """Remove and parse OpenAI's `file_data`: a data URL, or bare base64."""
    given = get_optional_text(block, "file_data")
    held = parse_data_url(given) or InlineData("", "" if given.startswith("data:") else given)
    if held.data:
        del block["file_data"]
    return held


def build_file_data(file: File) -> str:
    """Return the value of OpenAI's `file_data` for a file."""
    return build_data_url(file.mime, file.data) if file.mime and file.data else file.data


def get_audio_format(mime: str) -> str:
    """Return OpenAI's name of an audio format.

    Returns `mp3` for `audio/mpeg`, and "" if the type is not audio.
    """
    kind, _, subtype = mime.partition("/")
    return _AUDIO_FORMATS.get(subtype, subtype) if kind == "audio" else ""


def choose_file_name(file: File) -> str:
    """Return the file's name, or one built from its type if it has none."""
    subtype = file.mime.partition("/")[2]
    return file.name or f"document.{_FILE_EXTENSIONS.get(subtype, subtype) or 'bin'}"


def build_media_placeholder(part: Image | File) -> Text:
    """Return the text that replaces an image or file which the API does not accept."""
    kind = "image" if isinstance(part, Image) else "file"
    url = "" if part.url.startswith("data:") else part.url
    name = part.file_id or url or (part.name if isinstance(part, File) else "") or part.mime
    return Text(f"[{kind} not shown here: {name}]" if name else f"[{kind} not shown here]")


def get_document_text(part: Image | File) -> str | None:
    """Return the text of a document that was read as text.

    Returns None for one read as base64 or a URL.
    """
    return decode_text_base64(part.data) if "_source" in part.extra and part.data else None


def encode_text_base64(text: str) -> str:
    """Encode text as the base64 data of a part."""
    # JSON may contain lone surrogates, which must survive a round trip.
    return b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def decode_text_base64(data: str) -> str | None:
    """Decode the base64 data of a part as text, None if it is not text."""
    try:
        return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
