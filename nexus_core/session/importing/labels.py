"""What imported sessions are called."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.dialects.transcripts.transcript import Transcript
    from nexus_core.session.importing.paths import Path

_PROGRAMS = {"claude-code": "claude"}
_SHORT = 8
"""Characters of an id that people compare."""
_LONGEST = 80
_UNUSUAL = re.compile(r"[^\w.@+-]+")


def name_session(transcript: Transcript, name: str, parent: str, is_taken: Callable[[str], bool]) -> str:
    """A name for a transcript: its program and the beginning of its id, else the file's name.

    Args:
        transcript: The transcript.
        name: The file.
        parent: The session whose subagent it is.
        is_taken: Whether a session is called so.
    """
    program = _PROGRAMS.get(transcript.format, transcript.format)
    names = [f"{program}-{_plain(each)}" for each in (transcript.id[:_SHORT], transcript.id)]
    wanted = [parent] if parent else names if transcript.id else [_plain(_stem(name)) or program]
    agent = f"/agent-{_plain(transcript.agent)}" if transcript.agent else ""
    return _free([each + agent for each in wanted], is_taken)


def name_path(path: Path, main: str, is_taken: Callable[[str], bool]) -> str:
    """A name for a session beside the main one."""
    if path.kind == "subagent":
        return _free([f"{main}/agent-{_plain(path.name)}"], is_taken)
    kind = "fork" if path.kind == "main" else path.kind
    return next(label for number in count(1) if not is_taken(label := f"{main}/{kind}-{number}"))


def _free(wanted: list[str], is_taken: Callable[[str], bool]) -> str:
    for label in wanted:
        if not is_taken(label):
            return label
    return next(label for number in count(2) if not is_taken(label := f"{wanted[-1]}-{number}"))


def _stem(name: str) -> str:
    stem = re.split(r"[/\\]", name)[-1]
    return stem.rsplit(".", 1)[0] or stem


def _plain(text: str) -> str:
    """A text that can be typed: nothing in a transcript decides how it looks on a terminal."""
    return _UNUSUAL.sub("-", text)[:_LONGEST].strip("-")
