"""Keys: read from the environment when they are needed, and shown by nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nexus_core.plugin import redact, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST = 8
"""Anything shorter is a word that stands in for a key, as local servers want it, and may stand in any text."""
LONGEST_SAYING = 300
_STAND_IN = "[key]"


class Secret:
    """A text that no message, traceback or file shows; `reveal()` is for whoever sends it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself; keep it out of variables."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")


class Secrets(NamedTuple):
    """What is sent but never told.

    Attributes:
        values: By the name of the environment variable.
    """

    values: dict[str, Secret]

    def mask(self, text: str) -> str:
        """A text without any of them."""
        for secret in self.values.values():
            if len(secret.reveal()) >= SHORTEST:
                text = text.replace(secret.reveal(), _STAND_IN)
        return text

    def tell(self, text: str) -> str:
        """A stranger's text for a message: in one line, short, and without anything that looks like a secret."""
        line = visible_line(" ".join(redact(self.mask(text)).text.split()))
        return line if len(line) <= LONGEST_SAYING else f"{line[:LONGEST_SAYING]}…"


class VariableError(Exception):
    """Raised when an environment variable is not set, or holds what cannot be sent; says which, never what it holds."""


def read_secrets(names: Iterable[str]) -> Secrets:
    """What environment variables hold.

    Raises:
        VariableError: One of them holds no key.
    """
    return Secrets({name: _read(name) for name in names})


def read_set(names: Iterable[str]) -> Secrets:
    """What those environment variables hold that are set."""
    return Secrets({name: Secret(os.environ[name]) for name in names if name in os.environ})


def is_set(name: str) -> bool:
    """Whether an environment variable holds anything."""
    return bool(os.environ.get(name, "").strip())


def _read(name: str) -> Secret:
    if not is_set(name):
        raise VariableError(f"the environment variable {name} is not set")
    # Files end with a line break, and keys often come from files.
    secret = Secret(os.environ[name].strip())
    if not (secret.reveal().isascii() and secret.reveal().isprintable()):
        raise VariableError(f"the environment variable {name} contains characters that cannot be in a key")
    return secret
