"""Pictures and documents inside messages: stored once, by what they are, and put back when a message is read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from nexus_core.values.hashing import blake2b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALLEST = 1024
"""Characters of base64 that are worth a blob."""

_FIELD = "data"
"""Where every API and Nexus itself have the bytes of a picture or document."""
_REFERENCE = "nexus_blob"


def address_of(content: bytes) -> str:
    """The name of some bytes: their digest."""
    return blake2b(content, digest_size=32).hexdigest()


def may_hold_media(text: str) -> bool:
    """Whether messages in JSON have to be looked through at all."""
    return (len(text) >= SMALLEST and f'"{_FIELD}":"' in text) or f'"{_REFERENCE}"' in text


def refers_to_media(text: str) -> bool:
    """Whether stored messages have to be put together again."""
    return f'"{_REFERENCE}"' in text


def taken_out(value: Any, blobs: dict[str, bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    """The same JSON with references in the place of large base64, which is added to `blobs`."""
    if isinstance(value, list):
        return [taken_out(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    copied = {key: _referred(item, blobs) if key == _FIELD else taken_out(item, blobs) for key, item in value.items()}
    # Whoever has a field of our name in what they say gets it back as it was.
    return {_REFERENCE: copied} if _REFERENCE in copied else copied


def put_back(value: Any, blob: Callable[[str], bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    """What `taken_out` was given."""
    if isinstance(value, list):
        return [put_back(item, blob) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and _REFERENCE in value:
        kept = value[_REFERENCE]
        if isinstance(kept, str):
            return b64encode(blob(kept)).decode()
        value = kept
    return {key: put_back(item, blob) for key, item in value.items()}


def references(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON has many types
    """The blobs that stored messages refer to."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        if len(value) == 1 and _REFERENCE in value:
            kept = value[_REFERENCE]
            if isinstance(kept, str):
                yield kept
                return
            value = kept
        for item in value.values():
            yield from references(item)


def _referred(value: Any, blobs: dict[str, bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    if not isinstance(value, str):
        return taken_out(value, blobs)
    content = _bytes_of(value) if len(value) >= SMALLEST else None
    if content is None:
        return value
    digest = address_of(content)
    blobs[digest] = content
    return {_REFERENCE: digest}


def _bytes_of(text: str) -> bytes | None:
    """What a text is the base64 of; None when it would not come back as the same text."""
    try:
        content = b64decode(text, validate=True)
    except ValueError:
        return None
    return content if b64encode(content).decode() == text else None
