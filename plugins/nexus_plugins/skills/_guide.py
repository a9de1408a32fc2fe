"""What the head of a guide says about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin import redact
from nexus_plugins.skills._block import LONGEST_DESCRIPTION, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import FlowValue, Layer

MAX_REQUIRED = 32  # variables or programs of one guide

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_CATEGORY = re.compile(r"[^\W_](?:[\w &/+-]{0,30}[^\W_])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SEPARATORS = re.compile(r"[\s,]+")


class Guide(NamedTuple):
    """What is known of a guide without its words.

    Attributes:
        name: What it is asked for by.
        description: What it is good for, in one line; "" where it does not say.
        category: What it is listed under.
        variables: The environment variables that it cannot do without.
        programs: The programs that it cannot do without.
        path: Its file.
        layer: Where it was found.
    """

    name: str
    description: str
    category: str
    variables: tuple[str, ...]
    programs: tuple[str, ...]
    path: Path
    layer: Layer


class UnusableError(ValueError):
    """A guide cannot be offered; the message says why."""


def describe(path: Path, layer: Layer, head: dict[str, FlowValue], remarks: list[str]) -> Guide:
    """A guide by its file and the values in its head; what is odd about it is added to `remarks`.

    Raises:
        UnusableError: It has no usable name, or requires what cannot be understood.
    """
    return Guide(
        _name(head, path.parent.name, remarks),
        _description(head, remarks),
        _category(head, remarks),
        _required(head, ("env",), _VARIABLE),
        _required(head, ("bin", "bins"), _PROGRAM),
        path,
        layer,
    )


def _name(head: dict[str, FlowValue], directory: str, remarks: list[str]) -> str:
    """What it calls itself, if that can be typed; many have a title there, and go by the name of their directory."""
    name = head.get("name") or directory
    if isinstance(name, str) and _NAME.fullmatch(name):
        if name != directory:
            remarks.append(f"is named {name!r}, unlike its directory")
        return name
    rule = "its name must be at most 64 ASCII letters, digits, '-', '_' or '.'"
    if not _NAME.fullmatch(directory):
        raise UnusableError(rule)
    remarks.append(f"{rule}; the name of its directory is used")
    return directory


def _description(head: dict[str, FlowValue], remarks: list[str]) -> str:
    value = head.get("description")
    words = " ".join(value.split()) if isinstance(value, str) else ""
    if not words:
        remarks.append("has no description")
    redacted = redact(words)
    if redacted.counts:
        kinds = ", ".join(sorted(redacted.counts))
        remarks.append(f"its description has what looks like a secret ({kinds}); the prompt has the rest")
        words = redacted.text
    if len(words) > LONGEST_DESCRIPTION:
        remarks.append(f"its description is longer than {LONGEST_DESCRIPTION:,} characters")
        words = f"{words[:LONGEST_DESCRIPTION]}…"
    return words


def _category(head: dict[str, FlowValue], remarks: list[str]) -> str:
    value = _find(head, "category") or OTHER
    if isinstance(value, str) and _CATEGORY.fullmatch(value):
        return value[0].upper() + value[1:]
    remarks.append("its category must be at most 32 characters: words, '&', '/', '+' and '-'")
    return OTHER


def _required(head: dict[str, FlowValue], keys: tuple[str, ...], form: re.Pattern[str]) -> tuple[str, ...]:
    """What a guide cannot do without, by name, each once and in the order it has."""
    requires = _find(head, "requires")
    if not isinstance(requires, dict):
        return ()
    names = list(dict.fromkeys(name for key in keys for name in _names(requires.get(key, ""))))
    if len(names) > MAX_REQUIRED or not all(form.fullmatch(name) for name in names):
        raise UnusableError(f"`requires.{keys[0]}` must be a list of at most {MAX_REQUIRED} names")
    return tuple(names)


def _names(value: FlowValue) -> Iterator[str]:
    # Of an object, the names are what counts; some say there what each of them is good for.
    for item in _SEPARATORS.split(value) if isinstance(value, str) else value:
        if not isinstance(item, str):
            raise UnusableError("`requires` must hold lists of names")
        if item:
            yield item


def _find(head: dict[str, FlowValue], key: str) -> FlowValue | None:
    """A value of ours: where we say it stands, or among the `metadata`, where other agents allow what is not theirs."""
    metadata = head.get("metadata")
    places: list[FlowValue] = [head]
    if isinstance(metadata, dict):
        places += [metadata, *metadata.values()]
    return next((place[key] for place in places if isinstance(place, dict) and key in place), None)
