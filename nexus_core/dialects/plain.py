"""Objects of the SDKs become what they are in JSON; no SDK is imported for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any

from nexus_core.dialects.fields import joined, named
from nexus_core.errors import MessageError

DEEPEST = 100
"""Levels of nesting inside an object; nothing that an API takes comes near it.

It holds for what is read from an API as a whole, and in Nexus's own form for each field that is JSON."""


def plain(value: object, path: str = "") -> Any:  # noqa: ANN401 - JSON has many types
    """A copy made of dicts, lists, strings, numbers, booleans and None.

    Of an SDK's object it has the fields that were set, null or not, by the names they have on the wire, without what
    the SDK itself would not send.

    Raises:
        MessageError: It holds something that JSON has no word for, or is nested too deeply.
    """
    try:
        return _plain(value, 0)
    except MessageError as error:
        raise joined(path, error) from None


def plain_mapping(value: object, path: str = "") -> dict[str, Any]:
    """The same for what must be an object.

    Raises:
        MessageError: It is something else.
    """
    # A text or a list is never copied only to be refused.
    if type(value) is dict or isinstance(value, Mapping) or _is_model(value):
        copied: dict[str, Any] = plain(value, path)
        return copied
    raise MessageError(f"expected an object, not {named(value)}", path=path)


def opened(value: object) -> dict[str, Any]:
    """The fields of what must be an object, each as it is: for whoever looks at every one of them anyway.

    Raises:
        MessageError: It is something else, or has a field whose name is no text.
    """
    if isinstance(value, dict | Mapping):
        fields = dict(value)
    elif _is_model(value):
        fields = dict(_set_fields(value))
    else:
        raise MessageError(f"expected an object, not {named(value)}")
    for key in fields:
        if type(key) is not str:
            _field_name(key)
    return fields


def is_unset(value: object) -> bool:
    """Whether it is an SDK's mark for an argument that was not given."""
    return type(value).__name__ in ("NotGiven", "Omit")


_SCALARS = frozenset({str, int, float, bool, type(None)})
"""What JSON has words for and is no list or object: most of what there is, so it is looked at before a call is made."""


def _plain(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON has many types
    kind = type(value)
    if kind in _SCALARS:
        return value
    if depth > DEEPEST:
        raise MessageError(f"nested deeper than {DEEPEST} levels")
    # A dict and a list are told much faster than a mapping.
    if kind is dict or (kind is not list and isinstance(value, Mapping)):
        return _members(value.items(), depth)
    if isinstance(value, list | tuple):
        return _elements(value, depth)
    if _is_model(value):
        return _members(_set_fields(value), depth)
    return _scalar(value)


def _members(items: Any, depth: int) -> dict[str, Any]:  # noqa: ANN401 - pairs of a mapping or of an object
    copied: dict[str, Any] = {}
    for key, value in items:
        name = key if type(key) is str else _field_name(key)
        try:
            copied[name] = value if type(value) in _SCALARS else _plain(value, depth + 1)
        except MessageError as error:
            raise joined(name, error) from None
    return copied


def _field_name(key: object) -> str:
    """What must be text."""
    if isinstance(key, str):
        return str(key)
    raise MessageError(f"expected text as the name of a field, not {named(key)}")


def _elements(items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    copied: list[Any] = []
    for index, value in enumerate(items):
        try:
            copied.append(value if type(value) in _SCALARS else _plain(value, depth + 1))
        except MessageError as error:
            raise joined(f"[{index}]", error) from None
    return copied


def _scalar(value: object) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        from base64 import b64encode  # noqa: PLC0415 - few give bytes

        return b64encode(value).decode("ascii")
    if isinstance(value, date):
        return value.isoformat()
    raise MessageError(f"{named(value)} cannot be written as JSON")


def _is_model(value: object) -> bool:
    """Whether it is an object of pydantic, which every SDK's are."""
    return not isinstance(value, type) and hasattr(type(value), "model_fields") and hasattr(value, "model_fields_set")


def _set_fields(model: Any) -> list[tuple[str, object]]:  # noqa: ANN401 - an object of any SDK
    """What was set, by the names on the wire, in the order of the class; then what the class does not know."""
    given: set[str] = model.model_fields_set - _unsent(model)
    known: dict[str, Any] = type(model).model_fields
    fields = [
        (field.serialization_alias or field.alias or name, getattr(model, name))
        for name, field in known.items()
        if name in given and not field.exclude
    ]
    return fields + list((model.model_extra or {}).items())


def _unsent(model: object) -> frozenset[str]:
    """What an SDK adds to a reply for its user, and no API knows."""
    if type(model).__name__.startswith("Parsed"):
        return frozenset({"parsed", "parsed_arguments"})
    return frozenset()
