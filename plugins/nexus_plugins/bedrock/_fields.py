"""The fields of a block, or an error that says which one is wrong; and the bytes in it, which are base64 in JSON."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError
from nexus_core.plugin import json_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

API = "bedrock"
"""What the dialect is called."""

Block = dict[str, Any]

_BLOBS = frozenset({"bytes", "redactedContent"})
"""Fields that boto3 takes and gives as bytes, wherever they stand."""
_DOCUMENTS = frozenset({"input", "json"})
"""Fields of any JSON; whatever is called as above in there is text."""


def text_in(block: Mapping[str, Any], key: str, path: str = "") -> str:
    """A field that must be there, and be text."""
    value = block.get(key)
    if isinstance(value, str):
        return value
    raise _wrong(block, key, path, "text")


def words_in(block: Mapping[str, Any], key: str, path: str = "") -> str:
    """A field that may be missing or null, and is text otherwise."""
    return "" if block.get(key) is None else text_in(block, key, path)


def mapping_in(block: Mapping[str, Any], key: str, path: str = "") -> Block:
    """A field that must be there, and be an object."""
    value = block.get(key)
    if isinstance(value, dict):
        return value
    raise _wrong(block, key, path, "an object")


def list_in(block: Mapping[str, Any], key: str, path: str = "") -> list[Any]:
    """A field that must be there, and be a list."""
    value = block.get(key)
    if isinstance(value, list):
        return value
    raise _wrong(block, key, path, "a list")


def number_in(block: Mapping[str, Any], key: str, path: str = "") -> int:
    """A count: a whole number, or 0 when it is missing or null."""
    value = block.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _wrong(block, key, path, "a whole number")


def mapping_of(value: object) -> Block:
    """What must be an object."""
    if isinstance(value, dict):
        return value
    raise MessageError(f"expected an object, not {json_kind(value)}")


def without(block: Mapping[str, Any], *keys: str) -> Block:
    """The other fields."""
    return {key: value for key, value in block.items() if key not in keys}


def inside(path: str, key: str) -> str:
    """Where a field is."""
    return f"{path}.{key}" if path else key


def unpacked(data: str) -> bytes | str:
    """The bytes that base64 stands for; what is no base64 stays as it is."""
    try:
        return b64decode(data, validate=True)
    except ValueError:
        return data


def with_bytes(block: Mapping[str, Any]) -> Block:
    """A copy of a block that is kept whole, as boto3 has it: bytes where JSON has base64."""
    return {key: _with_bytes(key, value) for key, value in block.items()}


def _with_bytes(key: str, value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, str):
        return unpacked(value) if key in _BLOBS else value
    if key in _DOCUMENTS:
        return value
    if isinstance(value, dict):
        return with_bytes(value)
    return [_with_bytes("", each) for each in value] if isinstance(value, list) else value


def _wrong(block: Mapping[str, Any], key: str, path: str, wanted: str) -> MessageError:
    place = inside(path, key)
    if key not in block:
        return MessageError(f"there is no {key!r}", path=place, hint=f"it must be {wanted}")
    return MessageError(f"expected {wanted}, not {json_kind(block[key])}", path=place)
