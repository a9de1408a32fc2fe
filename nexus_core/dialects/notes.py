"""What `extra` holds: fields of the API, and notes on how it spelled something where it had a choice.

A note's name starts with `_`. Both go back only to the API they came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIKE_NOTES = "_fields"
"""Where fields are kept whose own names start with `_`: no API has any, but what is read may."""


def noted(fields: dict[str, Any], **notes: object) -> dict[str, Any]:
    """Fields with the notes that say something; `role="developer"` becomes `_role`."""
    found = dict(fields)
    apart = {key: found.pop(key) for key in fields if key[:1] == "_"} if fields else None
    for name, value in notes.items():
        if value:
            found[f"_{name}"] = value
    if apart:
        found[_LIKE_NOTES] = apart
    return found


def filled(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A body with the fields of `extra` that it does not have already."""
    for key, value in fields_of(extra).items():
        body.setdefault(key, value)
    return body


def fields_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields among it, without the notes."""
    if not extra:
        return {}
    fields = {key: value for key, value in extra.items() if not key.startswith("_")}
    alike = extra.get(_LIKE_NOTES)
    return fields | alike if alike else fields
