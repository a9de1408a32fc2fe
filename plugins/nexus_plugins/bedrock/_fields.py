"""Typed fields of a block, with errors that name their path, and base64 as bytes."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError
from nexus_core.plugin.dialects import json_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

API = "bedrock"
"""The name of the dialect."""

Block = dict[str, Any]

_BINARY_FIELDS = frozenset({"bytes", "redactedContent"})
"""Fields that boto3 has as bytes, at any depth."""
_JSON_FIELDS = frozenset({"input", "json"})
"""Fields with arbitrary JSON; fields inside with the names above are text."""


def require_text(block: Mapping[str, Any], key: str, path: str = "") -> str:
    """Return a required text field."""
    value = block.get(key)
    if isinstance(value, str):
        return value
    raise _build_field_error(block, key, path, "text")


def get_text(block: Mapping[str, Any], key: str, path: str = "") -> str:
    """Return an optional text field, or "" if it is missing or null."""
    return "" if block.get(key) is None else require_text(block, key, path)


def require_mapping(block: Mapping[str, Any], key: str, path: str = "") -> Block:
    """Return a required object field."""
    value = block.get(key)
    if isinstance(value, dict):
        return value
    raise _build_field_error(block, key, path, "an object")


def require_list(block: Mapping[str, Any], key: str, path: str = "") -> list[Any]:
    """Return a required list field."""
    value = block.get(key)
    if isinstance(value, list):
        return value
    raise _build_field_error(block, key, path, "a list")


def get_count(block: Mapping[str, Any], key: str, path: str = "") -> int:
    """Return a non-negative integer field, or 0 if it is missing or null."""
    value = block.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _build_field_error(block, key, path, "a whole number")


def require_object(value: object) -> Block:
    """Return a value that must be an object."""
    if isinstance(value, dict):
        return value
    raise MessageError(f"expected an object, not {json_kind(value)}")


def drop_fields(block: Mapping[str, Any], *keys: str) -> Block:
    """Return a copy of a block without some fields."""
    return {key: value for key, value in block.items() if key not in keys}


def join_path(path: str, key: str) -> str:
    """Return the path of a field, for errors."""
    return f"{path}.{key}" if path else key


def decode_base64(data: str) -> bytes | str:
    """Decode base64, or return a text that is not base64 unchanged."""
    try:
        return b64decode(data, validate=True)
    except ValueError:
        return data


def restore_bytes(block: Mapping[str, Any]) -> Block:
    """Return a copy of a block as boto3 expects it: bytes instead of base64."""
    return {key: _restore_value(key, value) for key, value in block.items()}


def _restore_value(key: str, value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, str):
        return decode_base64(value) if key in _BINARY_FIELDS else value
    if key in _JSON_FIELDS:
        return value
    if isinstance(value, dict):
        return restore_bytes(value)
    return [_restore_value("", each) for each in value] if isinstance(value, list) else value


def _build_field_error(block: Mapping[str, Any], key: str, path: str, expected: str) -> MessageError:
    field = join_path(path, key)
    if key not in block:
        return MessageError(f"there is no {key!r}", path=field, hint=f"it must be {expected}")
    return MessageError(f"expected {expected}, not {json_kind(block[key])}", path=field)
