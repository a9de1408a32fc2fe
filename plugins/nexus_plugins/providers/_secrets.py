"""API keys: read from the environment on demand, and masked in every text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nexus_core.plugin import redact
from nexus_core.plugin.text import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_SECRET_CHARACTERS = 8
"""Shorter values are not masked: local servers accept dummy keys, which may be words of any text."""
MAX_SHOWN_CHARACTERS = 300
_PLACEHOLDER = "[key]"

NOT_A_VARIABLE = "must be the name of an environment variable, not a value"
"""The fault of a setting that names a variable."""


class Secret:
    """A secret text that is not shown by `repr` and cannot be pickled. `reveal()` returns it for sending."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text. Do not store it in variables, which tracebacks show."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied")


class EnvironmentSecrets(NamedTuple):
    """Secrets from environment variables.

    Attributes:
        values: The secrets by the name of their variable.
    """

    values: dict[str, Secret]

    def mask(self, text: str) -> str:
        """Return a text with the secrets replaced by a placeholder."""
        for secret in self.values.values():
            if len(secret.reveal()) >= MIN_SECRET_CHARACTERS:
                text = text.replace(secret.reveal(), _PLACEHOLDER)
        return text

    def to_safe_line(self, text: str) -> str:
        """Return untrusted text for a message: one short line, without anything that looks like a secret."""
        line = visible_line(" ".join(redact(self.mask(text)).text.split()))
        return line if len(line) <= MAX_SHOWN_CHARACTERS else f"{line[:MAX_SHOWN_CHARACTERS]}…"


class EnvironmentVariableError(Exception):
    """Raised when an environment variable is not set or not a valid key. Names it, never its value.

    Args:
        message: What is wrong with the variable.
        unset_variable: Its name, if it is not set; else "".
    """

    def __init__(self, message: str, unset_variable: str = "") -> None:
        super().__init__(message)
        self.unset_variable = unset_variable


def read_secrets(names: Iterable[str]) -> EnvironmentSecrets:
    """Read secrets from environment variables.

    Raises:
        EnvironmentVariableError: A variable is not set, or its value cannot be a key.
    """
    return EnvironmentSecrets({name: _read_secret(name) for name in names})


def read_present_secrets(names: Iterable[str]) -> EnvironmentSecrets:
    """Read secrets from those of the environment variables that are set."""
    return EnvironmentSecrets({name: Secret(os.environ[name]) for name in names if name in os.environ})


def is_variable_set(name: str) -> bool:
    """Return True if an environment variable is set and not blank."""
    return bool(os.environ.get(name, "").strip())


def _read_secret(name: str) -> Secret:
    if not is_variable_set(name):
        raise EnvironmentVariableError(f"the environment variable {name} is not set", name)
    # Keys often come from files, which end with a line break.
    secret = Secret(os.environ[name].strip())
    if not (secret.reveal().isascii() and secret.reveal().isprintable()):
        raise EnvironmentVariableError(f"the environment variable {name} contains characters that cannot be in a key")
    return secret
