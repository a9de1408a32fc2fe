"""The fields of an object that came from outside, or an error that says which one is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SHOWN = 60


class at:  # noqa: N801 - it reads as a word: `with at("content")`
    """Whatever is wrong inside is reported as being there."""

    # A generator would do; but this is entered for every block of every message, and takes a third of the time.
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MessageError):
            raise joined(self._path, error) from None


def joined(path: str, error: MessageError) -> MessageError:
    """The same error, seen from outside: `content` and `[0].type` make `content[0].type`."""
    dot = "." if path and error.path and not error.path.startswith("[") else ""
    return MessageError(error.what, path=f"{path}{dot}{error.path}", hint=error.hint, command=error.command)


def named(value: object) -> str:
    """What something is, in the words of JSON: `a list`, `null`, `the number 3`."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, int | float):
        return f"the number {shown(value)}"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def shown(value: object) -> str:
    """A value short enough for an error, with nothing in it that a terminal would obey."""
    if isinstance(value, str):
        cut = value[:LONGEST_SHOWN]
        return ascii(cut) if cut == value else f"{cut!a}…"
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST_SHOWN:
        return "with very many digits"  # Python refuses to print it
    return repr(value)


def mapping_of(value: object) -> dict[str, Any]:
    """What must be an object; `plain` has been here already."""
    if isinstance(value, dict):
        return value
    raise MessageError(f"expected an object, not {named(value)}")


def text_in(block: Mapping[str, Any], key: str) -> str:
    """A field that must be there, and be text."""
    value = block.get(key)
    if isinstance(value, str):
        return value
    raise _wrong(block, key, "text")


def optional_text_in(block: Mapping[str, Any], key: str) -> str:
    """A field that may be missing or null, and is text otherwise."""
    return "" if block.get(key) is None else text_in(block, key)


def mapping_in(block: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A field that must be there, and be an object."""
    value = block.get(key)
    if isinstance(value, dict):
        return value
    raise _wrong(block, key, "an object")


def list_in(block: Mapping[str, Any], key: str) -> list[Any]:
    """A field that must be there, and be a list."""
    value = block.get(key)
    if isinstance(value, list):
        return value
    raise _wrong(block, key, "a list")


def number_in(block: Mapping[str, Any], key: str) -> int:
    """A count: a whole number, or 0 when it is missing or null."""
    value = block.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _wrong(block, key, "a whole number")


def take_text(block: dict[str, Any], key: str) -> str:
    """A field that must be text, taken out of the object."""
    text = text_in(block, key)
    del block[key]
    return text


def take_words(block: dict[str, Any], key: str) -> str:
    """A field of text, taken out; where it is empty, null or missing it stays as it is, and the answer is ""."""
    text = optional_text_in(block, key)
    if text:
        del block[key]
    return text


def without(block: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The other fields."""
    return {key: value for key, value in block.items() if key not in keys}


def _wrong(block: Mapping[str, Any], key: str, wanted: str) -> MessageError:
    if key not in block:
        return MessageError(f"there is no {key!r}", path=key, hint=f"it must be {wanted}")
    return MessageError(f"expected {wanted}, not {named(block[key])}", path=key)
