"""What imported sessions are called."""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.session.importing.paths import Path
    from nexus_core.transcripts.base import Transcript

_PROGRAMS = {"claude-code": "claude"}
_RANDOM = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)", re.IGNORECASE)
"""The beginning of a UUID, which is what people compare; names that somebody chose are used whole."""
_LONGEST = 80
"""Characters that are taken from an id or a file's name; of a longer one the end is a digest of all of it."""
_UNUSUAL = re.compile(r"[^\w.@+-]+")


def name_session(transcript: Transcript, name: str, parent: str, is_taken: Callable[[str], bool]) -> str:
    """A name for a transcript: program and id, of a UUID the beginning where that is free; else the file's name.

    Args:
        transcript: The transcript.
        name: The file.
        parent: The session whose subagent it is.
        is_taken: Whether a session is called so.
    """
    program = _PROGRAMS.get(transcript.format, transcript.format)
    beginning = _RANDOM.match(transcript.id)
    names = [f"{program}-{_plain(each)}" for each in ([beginning[0]] if beginning else []) + [transcript.id]]
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
    plain = _UNUSUAL.sub("-", text).strip("-")
    if len(plain) <= _LONGEST:
        return plain
    digest = blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{plain[: _LONGEST - len(digest) - 1]}-{digest}"
