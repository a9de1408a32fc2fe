"""The lines of a file that holds a JSON object on each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.fields import named
from nexus_core.dialects.plain import DEEPEST
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.dialects.transcripts.account import Account


TOO_MUCH = "nested too deeply, or a number with thousands of digits"
"""Why Python reads no further, though it is JSON so far."""


class Record(NamedTuple):
    """A line and the object that stands on it."""

    number: int
    value: dict[str, Any]


def read_records(lines: Iterable[str], account: Account) -> list[Record]:
    """Every line that is an object. Others are kept apart, each with a note; the last may be half a line."""
    records = []
    unread: list[_Unread] = []
    number = last = 0
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            account.use("blank", number)
            continue
        last = number
        found = _parsed(number, line)
        if isinstance(found, Record):
            records.append(found)
        else:
            unread.append(found)
    account.lines = number
    for each in unread:
        is_half = each.is_torn and each.number == last
        account.keep(each.number, "incomplete" if is_half else "broken", each.text, "skipped")
        account.note(each.number, "incomplete, as in a session that is being written" if is_half else each.fault)
    return records


def word_in(value: dict[str, Any], key: str) -> str:
    """A field where it is text; "" for anything else."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def mapping_under(value: dict[str, Any], key: str) -> dict[str, Any]:
    """A field where it is an object; an empty one for anything else."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def not_json(error: json.JSONDecodeError) -> str:
    """What is wrong with a line, and where in it."""
    what = error.msg.removesuffix(" at")  # some end so
    return f"not JSON: {what[:1].lower()}{what[1:]} at column {error.colno}"


def require_shallow(value: dict[str, Any] | list[Any]) -> None:
    """Refuse what is nested deeper than anybody would write it: whoever goes through it would run out of stack.

    Raises:
        MessageError: It is.
    """
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inside = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise MessageError(f"nested deeper than {DEEPEST} levels")


class _Unread(NamedTuple):
    number: int
    text: str
    fault: str
    is_torn: bool = False


def _parsed(number: int, line: str) -> Record | _Unread:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        return _Unread(number, line.rstrip("\r\n"), not_json(error), is_torn=True)
    except (ValueError, RecursionError):
        return _Unread(number, line.rstrip("\r\n"), TOO_MUCH)
    if not isinstance(value, dict):
        return _Unread(number, line.rstrip("\r\n"), f"expected an object, not {named(value)}")
    return Record(number, value)
