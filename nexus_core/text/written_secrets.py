"""Finds what looks like a secret in a command or an address, where nobody should have written it but many do."""

from __future__ import annotations

import re
import shlex
from itertools import chain
from typing import TYPE_CHECKING

from nexus_core.text.secret_shapes import find_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HIDDEN = "***"
SHORTEST = 4
"""Characters; to hide whatever is shorter would hide half of what is said."""

_WORDS = frozenset(
    [
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "cred",
        "credential",
        "credentials",
        "dsn",
        "jwt",
        "key",
        "pass",
        "passphrase",
        "passwd",
        "password",
        "pat",
        "pwd",
        "secret",
        "signature",
        "token",
    ]
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)")
_ASSIGNED = re.compile(r"(?:--?)?([A-Za-z][\w.-]*)=(?:(?i:bearer|basic|token)\s+)?(.+)", re.DOTALL)
_HEADER = re.compile(r"(?:--?header=)?([A-Za-z][\w-]*)\s*:\s*(?:(?i:bearer|basic|token)\s+)?(.+)", re.DOTALL)
_USERINFO = re.compile(r"[A-Za-z][\w+.-]*://(?:([^/?#\s]*)@)?")
_QUERY = re.compile(r"[?&#]([^=&#]+)=([^&#]+)")
# Letters and digits in one long word: nobody can tell, and nobody needs to read it.
_OPAQUE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{32,}=*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_REFERENCE = re.compile(r"\$\{[^{}:]*(?::(?!-)[^{}]*)?\}")
_COMPLETABLE = re.compile(r"[\w/.@][\w@%+=:,./-]{0,255}")
_DEFAULT = re.compile(r"\$\{([^{}:]*):-([^{}]*)\}")


def secrets_in(words: Sequence[str]) -> list[tuple[str, ...]]:
    """For each word of a command, or for an address, the parts of it that should not be seen; longest first."""
    found = []
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        parts = {part for part in _parts(word, before) if _is_written_out(part)}
        found.append(tuple(sorted(parts, key=lambda part: (-len(part), part))))
    return found


def hide_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command, or an address as the only one, without what looks like a secret."""
    hidden = []
    for word, parts in zip(words, secrets_in(words), strict=True):
        shown = word
        for part in parts:
            shown = shown.replace(part, HIDDEN)
        hidden.append(shown)
    return hidden


def hide_in_line(line: str) -> str:
    """The same for a command in one line."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation without its end
        words = line.split()
    for part in chain.from_iterable(secrets_in(words)):
        line = line.replace(part, HIDDEN)
    return line


def completable_names(names: Iterable[str]) -> list[str]:
    """Return the names that a shell may complete: those that mean themselves to it and are not secrets.

    A shell inserts a completion as it is. A name with `$(…)` in it, which a project can choose for a server, would be
    run, one with a line break would be two, and one with an escape sequence would steer the terminal.
    """
    return [name for name in names if _COMPLETABLE.fullmatch(name) and name.isprintable() and not find_secrets(name)]


def names_secret(name: str) -> bool:
    """Whether what has such a name is usually kept secret: `API_KEY`, `authToken`, `--password`."""
    return any(part.lower() in _WORDS for part in _PARTS.findall(name))


def _parts(word: str, before: str) -> Iterator[str]:
    option = _OPTION.fullmatch(before)
    if option and names_secret(option[1]) and not _OPTION.fullmatch(word):
        yield word
    for pattern in (_ASSIGNED, _HEADER):
        match = pattern.fullmatch(word)
        if match and names_secret(match[1]):
            yield match[2]
    if match := _USERINFO.match(word):
        yield (match[1] or "").partition(":")[2]
        if not (match[1] or "").partition(":")[1]:
            yield match[1] or ""
        yield from (value for name, value in _QUERY.findall(word) if names_secret(name))
    yield from (default for name, default in _DEFAULT.findall(word) if names_secret(name))
    yield from _OPAQUE.findall(word)
    yield from (word[span.start : span.end] for span in find_secrets(word))


def _is_written_out(part: str) -> bool:
    """Whether it is a value, not a reference to one."""
    return len(part) >= SHORTEST and not _REFERENCE.fullmatch(part)
