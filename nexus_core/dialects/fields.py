"""Typed access to untrusted JSON, SDK objects and arguments of callers, and provider metadata.

Errors have the path of the wrong field. No SDK is imported.

The `extra` of a message, part or tool holds the fields of its API that Nexus does not model. Keys that start with `_`
are metadata: which of several equivalent spellings the API used. Both are sent back only to that API.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from typing import Any

from nexus_core.errors import MessageError, UsageError
from nexus_core.text.safety import repair_surrogates

MAX_SHOWN_CHARACTERS = 60


class ErrorPath:
    """Context manager that prefixes the path of message errors raised inside."""

    # A class, because it is entered for every block of every message and is three times faster than a generator.
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MessageError):
            raise prefix_error_path(self._path, error) from None


def prefix_error_path(path: str, error: MessageError) -> MessageError:
    """Prefix the path of an error. `content` and `[0].type` make `content[0].type`."""
    dot = "." if path and error.path and not error.path.startswith("[") else ""
    return MessageError(error.what, path=f"{path}{dot}{error.path}", hint=error.hint, command=error.command)


def describe_json_value(value: object) -> str:
    """Describe a value by its JSON type, for errors: `a list`, `null`, `the number 3`."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {format_for_error(value)}"
    if isinstance(value, int | float):
        return f"the number {format_for_error(value)}"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def format_for_error(value: object) -> str:
    """Return a value shortened and escaped for an error on a terminal."""
    if isinstance(value, str):
        cut = value[:MAX_SHOWN_CHARACTERS]
        return ascii(cut) if cut == value else f"{cut!a}…"
    if isinstance(value, int) and value.bit_length() > 4 * MAX_SHOWN_CHARACTERS:
        return "with very many digits"  # Python refuses to print it
    return repr(value)


def require_object(value: object) -> dict[str, Any]:
    """Return the value if it is a dict.

    SDK objects must have been converted with `to_json_types`.

    Raises:
        MessageError: It is not a dict.
    """
    if isinstance(value, dict):
        return value
    raise MessageError(f"expected an object, not {describe_json_value(value)}")


def get_text(block: Mapping[str, Any], key: str) -> str:
    """Return a required text field."""
    value = block.get(key)
    if isinstance(value, str):
        return value
    raise _build_field_error(block, key, "text")


def get_optional_text(block: Mapping[str, Any], key: str) -> str:
    """Return a text field, "" if it is missing or null."""
    return "" if block.get(key) is None else get_text(block, key)


def get_object(block: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a required object field."""
    value = block.get(key)
    if isinstance(value, dict):
        return value
    raise _build_field_error(block, key, "an object")


def get_list(block: Mapping[str, Any], key: str) -> list[Any]:
    """Return a required list field."""
    value = block.get(key)
    if isinstance(value, list):
        return value
    raise _build_field_error(block, key, "a list")


def get_count(block: Mapping[str, Any], key: str) -> int:
    """Return a field with a non-negative integer, 0 if it is missing or null."""
    value = block.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _build_field_error(block, key, "a whole number")


def take_text(block: dict[str, Any], key: str) -> str:
    """Remove and return a required text field."""
    text = get_text(block, key)
    del block[key]
    return text


def take_optional_text(block: dict[str, Any], key: str) -> str:
    """Remove and return a text field.

    An empty, null or missing one is left as it is, and "" returned.
    """
    text = get_optional_text(block, key)
    if text:
        del block[key]
    return text


def omit_keys(block: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a copy without these keys."""
    return {key: value for key, value in block.items() if key not in keys}


def to_camel_case(key: str) -> str:
    """Convert a snake_case field name to the camelCase of Gemini's REST API."""
    if "_" not in key:
        return key
    first, *others = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others) if first else key


def _build_field_error(block: Mapping[str, Any], key: str, wanted: str) -> MessageError:
    if key not in block:
        return MessageError(f"there is no {key!r}", path=key, hint=f"it must be {wanted}")
    return MessageError(f"expected {wanted}, not {describe_json_value(block[key])}", path=key)


MAX_NESTING_LEVELS = 100
"""Maximum nesting of JSON, far beyond what any API accepts. Protects recursive code.

Applies to everything read from an API, and to each JSON field in the neutral format."""


def to_json_types(value: object, path: str = "") -> Any:  # noqa: ANN401 - JSON has many types
    """Return a deep copy made of dicts, lists, strings, numbers, booleans and None.

    An SDK object becomes a dict of the fields that were set, including null, under their wire names and without those
    that the SDK does not send.

    Args:
        value: JSON types, mappings, tuples, enums, bytes, dates or pydantic models.
        path: Prefix of the path in errors.

    Raises:
        MessageError: It has a value that JSON does not support, or is nested too deeply.
    """
    try:
        return _copy_json(value, 0)
    except MessageError as error:
        raise prefix_error_path(path, error) from None


def to_json_dict(value: object, path: str = "") -> dict[str, Any]:
    """Return a mapping or SDK object as a dict of JSON types, see `to_json_types`.

    Raises:
        MessageError: It is something else.
    """
    # Checked first, so that a large text or list is not copied before it is rejected.
    if type(value) is dict or isinstance(value, Mapping) or _is_pydantic_model(value):
        copied: dict[str, Any] = to_json_types(value, path)
        return copied
    raise MessageError(f"expected an object, not {describe_json_value(value)}", path=path)


def get_raw_fields(value: object) -> dict[str, Any]:
    """Return the fields of a mapping or SDK object without converting them.

    For callers that validate each field anyway.

    Raises:
        MessageError: It is something else, or a field name is not a string.
    """
    if isinstance(value, dict | Mapping):
        fields = dict(value)
    elif _is_pydantic_model(value):
        fields = dict(_list_set_fields(value))
    else:
        raise MessageError(f"expected an object, not {describe_json_value(value)}")
    for key in fields:
        if type(key) is not str:
            _require_field_name(key)
    return fields


def is_not_given(value: object) -> bool:
    """Return True for an SDK's sentinel of an argument that was not passed."""
    return type(value).__name__ in ("NotGiven", "Omit")


_SCALAR_TYPES = frozenset({str, int, float, bool, type(None)})
"""JSON's scalar types. Most values have one, so callers test for them before they call `_copy_json`."""


def _copy_json(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON has many types
    kind = type(value)
    if kind in _SCALAR_TYPES:
        return value
    if depth > MAX_NESTING_LEVELS:
        raise MessageError(f"nested deeper than {MAX_NESTING_LEVELS} levels")
    # Exact type checks first: isinstance with Mapping is much slower.
    if kind is dict or (kind is not list and isinstance(value, Mapping)):
        return _copy_members(value.items(), depth)
    if isinstance(value, list | tuple):
        return _copy_elements(value, depth)
    if _is_pydantic_model(value):
        return _copy_members(_list_set_fields(value), depth)
    return _convert_scalar(value)


def _copy_members(items: Any, depth: int) -> dict[str, Any]:  # noqa: ANN401 - pairs of a mapping or of an object
    copied: dict[str, Any] = {}
    for key, value in items:
        name = key if type(key) is str else _require_field_name(key)
        try:
            copied[name] = value if type(value) in _SCALAR_TYPES else _copy_json(value, depth + 1)
        except MessageError as error:
            raise prefix_error_path(name, error) from None
    return copied


def _require_field_name(key: object) -> str:
    """Return a field name as str, or raise if it is not a string."""
    if isinstance(key, str):
        return str(key)
    raise MessageError(f"expected text as the name of a field, not {describe_json_value(key)}")


def _copy_elements(items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    copied: list[Any] = []
    for index, value in enumerate(items):
        try:
            copied.append(value if type(value) in _SCALAR_TYPES else _copy_json(value, depth + 1))
        except MessageError as error:
            raise prefix_error_path(f"[{index}]", error) from None
    return copied


def _convert_scalar(value: object) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode("ascii")
    if isinstance(value, date):
        return value.isoformat()
    raise MessageError(f"{describe_json_value(value)} cannot be written as JSON")


def _is_pydantic_model(value: object) -> bool:
    """Return True for a pydantic model. All SDKs use pydantic for their objects."""
    return not isinstance(value, type) and hasattr(type(value), "model_fields") and hasattr(value, "model_fields_set")


def _list_set_fields(model: Any) -> list[tuple[str, object]]:  # noqa: ANN401 - an object of any SDK
    """Return the set fields under their wire names, then the extra fields."""
    given: set[str] = model.model_fields_set - _find_unsent_fields(model)
    known: dict[str, Any] = type(model).model_fields
    fields = [
        (field.serialization_alias or field.alias or name, getattr(model, name))
        for name, field in known.items()
        if name in given and not field.exclude
    ]
    return fields + list((model.model_extra or {}).items())


def _find_unsent_fields(model: object) -> frozenset[str]:
    """Return the fields that an SDK adds to a parsed reply and that the API rejects."""
    if type(model).__name__.startswith("Parsed"):
        return frozenset({"parsed", "parsed_arguments"})
    return frozenset()


_UNDERSCORED_FIELDS = "_fields"
"""Key for fields whose names start with `_`. No API has such fields, but untrusted input may."""


def with_metadata(fields: dict[str, Any], **metadata: object) -> dict[str, Any]:
    """Return an `extra` of fields and metadata.

    `role="developer"` becomes `_role`, empty values are left out.
    """
    if not fields:  # as in most messages
        return {f"_{name}": value for name, value in metadata.items() if value}
    found = dict(fields)
    underscored = {key: found.pop(key) for key in fields if key[:1] == "_"}
    for name, value in metadata.items():
        if value:
            found[f"_{name}"] = value
    if underscored:
        found[_UNDERSCORED_FIELDS] = underscored
    return found


def add_provider_fields(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Add the provider's fields in `extra` to a body and return it.

    Fields that it has are not replaced.
    """
    for key, value in get_provider_fields(extra).items():
        body.setdefault(key, value)
    return body


def get_provider_fields(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's fields in `extra`, without metadata."""
    if not extra:
        return {}
    fields = {key: value for key, value in extra.items() if not key.startswith("_")}
    underscored = extra.get(_UNDERSCORED_FIELDS)
    return fields | underscored if underscored else fields


def read_text(value: object, name: str, hint: str | None = None) -> str:
    """Return a text as a ledger would return it, with surrogate pairs joined.

    Raises:
        UsageError: The value is not a text.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {describe_json_value(value)}", hint=hint)
    return value if value.isascii() else repair_surrogates(value)


def read_texts(value: object, name: str, hint: str | None = None) -> tuple[str, ...]:
    """Return the texts of any iterable, those of a set sorted.

    Args:
        value: The iterable.
        name: The argument's name, for errors.
        hint: The hint of the error for one text in place of a list; None for a default.

    Raises:
        UsageError: The value is not a list, or an element is not a text.
    """
    hint = (hint or f"{name}=[{value!a}]") if isinstance(value, str) else None
    texts = [read_text(each, f"each of {name}") for each in read_list(value, name, hint)]
    return tuple(sorted(texts) if isinstance(value, set | frozenset) else texts)


def read_list(value: object, name: str, hint: str | None = None) -> tuple[object, ...]:
    """Return the elements of an iterable.

    Raises:
        UsageError: The value is not a list; a single text is not one.
    """
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list, not {describe_json_value(value)}", hint=hint or f"{name}=[…]")
    return tuple(value)


def read_flag(value: object, name: str) -> bool:
    """Return a flag.

    Raises:
        UsageError: The value is not a bool.
    """
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {describe_json_value(value)}")
    return value


def read_path(value: object, name: str) -> str | os.PathLike[str]:
    """Return a path.

    Raises:
        UsageError: The value is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{name} must be a path, not {describe_json_value(value)}")
    return value
