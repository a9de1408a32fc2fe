"""Files and commands, told from calls of tools and their results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.compaction.evidence.shapes import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.types.messages import JSON, ToolCall, ToolResult

Effect = Literal["changed", "read", ""]

_PATHS = re.compile(r"(?:\w{0,20}_)?(?:paths?|files?|file_?names?|filepaths?|director(?:y|ies)|dir)", re.IGNORECASE)
_COMMANDS = frozenset({"command", "cmd", "script", "commands"})
_BODIES = re.compile(
    r"contents?|text|body|data|file_text|(?:new|old)_str(?:ing)?|insert_text|new_source|code|patch|diff|input|edits",
    re.IGNORECASE,
)
_SHELL = re.compile(r"bash|shell|exec|terminal|command|\bsh\b|\brun\b|run_?cmd|powershell", re.IGNORECASE)
_CHANGES = re.compile(
    r"edit|writ|creat|replac|patch|insert|append|delet|remov|renam|mov|updat|save|modif|overwrit", re.IGNORECASE
)
_READS = re.compile(
    r"read|view|open|cat|grep|glob|search|list|\bls\b|find|head|tail|show|load|fetch|get", re.IGNORECASE
)
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |\+\+\+ b/)(\S[^\n\t]{0,259})", re.MULTILINE
)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?[ _-]?(?:with )?(?:status code|code|status)|exited(?: with)?|return ?code)"
    r"\"?[ ]{0,2}[:=]?[ ]{0,2}(?:of )?(-?\d{1,5})\b",
    re.IGNORECASE,
)
_ENDS = 2000
"""Characters at the beginning and at the end of a result that are searched for an exit code."""


class Touched(NamedTuple):
    """A file that a call is about, and what it does to it."""

    path: str
    effect: Effect


def touched_paths(call: ToolCall) -> Iterator[Touched]:
    """The files that a call names, by the names of its arguments and in patches."""
    effect = _effect(call)
    for name, value in call.arguments.items():
        if _PATHS.fullmatch(name):
            values = value if isinstance(value, list | tuple) else [value]
            yield from (Touched(each, effect) for each in values if isinstance(each, str) and _is_path(each))
        elif isinstance(value, str) and ("*** " in value or "+++ b/" in value):
            yield from (Touched(match[1].rstrip(), "changed") for match in _PATCHED.finditer(value))
    if call.raw is not None and not call.arguments:
        yield from (Touched(match[1].rstrip(), "changed") for match in _PATCHED.finditer(call.raw))


def command_of(call: ToolCall) -> str:
    """The first line of the command that a call runs; "" where it runs none."""
    if not _SHELL.search(call.name):
        return ""
    for name in call.arguments:
        if name.lower() in _COMMANDS:
            return _first_line(_command_line(call.arguments[name]))
    return ""


def other_words(call: ToolCall) -> str:
    """What else a call says, but for the content of files."""
    return "\n".join(_strings({name: value for name, value in call.arguments.items() if not _BODIES.fullmatch(name)}))


def exit_of(result: ToolResult) -> str:
    """How a command ended: `exit 1`; `failed` where only that is known; "" where nothing is."""
    text = result.text
    searched = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    codes = _EXIT.findall(searched)
    if codes:
        return f"exit {int(codes[-1])}"
    return "failed" if result.is_error else ""


def _effect(call: ToolCall) -> Effect:
    verb = call.arguments.get("command")
    # Some tools edit and show, and say in an argument which.
    name = verb if isinstance(verb, str) and verb.isidentifier() and not _SHELL.search(call.name) else call.name
    if _CHANGES.search(name):
        return "changed"
    return "read" if _READS.search(name) else ""


def _is_path(text: str) -> bool:
    return 0 < len(text) <= LONGEST and "\n" not in text and "://" not in text and text not in (".", "/", "*")


def _command_line(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        return ""
    words: list[str] = list(value)
    if len(words) == 3 and words[1].startswith("-") and words[1].endswith("c"):  # noqa: PLR2004 - `bash -lc "…"`
        return words[2]
    return " ".join(words)


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text[: 4 * LONGEST].split("\n") if line.strip()), "")
    return line[:LONGEST].rstrip()


def _strings(value: JSON | object, depth: int = 4) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth:
        for each in value.values():
            yield from _strings(each, depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for each in value:
            yield from _strings(each, depth - 1)
