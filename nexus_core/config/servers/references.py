"""References such as `${TOKEN}` in the place of secrets that are written out in the definition of a server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.text.written_secrets import secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"\$\{(?:env:)?([^{}]*?)(:-[^{}]+)?\}")  # a variable, and its default
_SCHEME = re.compile(r"\s*(?:(?:Bearer|Basic|Token)\s+)?\s*", re.IGNORECASE)  # may come before a reference
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrittenSecret(NamedTuple):
    """A value in the definition of a server that looks like a secret.

    Attributes:
        part: The keys that lead to it in the one form: `("env", "TOKEN")`, `("command", "2")`, `("url",)`.
        what: Its place, for people; never the value.
        reference: Text that can stand there instead.
        variables: The environment variables that this text refers to, and that have to be set then.
    """

    part: tuple[str, ...]
    what: str
    reference: str
    variables: tuple[str, ...]


class SecretReplacer:
    """Finds secrets in servers and chooses variables for them, one for each value.

    Servers of one file are given to the same object, so that two secrets never share a variable.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def replace(self, name: str, server: Mapping[str, Any]) -> tuple[dict[str, Any], list[WrittenSecret]]:
        """Return a server in the one form with references instead of secrets, and what was replaced."""
        found = list(self.find(name, server))
        replaced = {**server}
        for key, *rest in (secret.part for secret in found):
            replaced[key] = replaced[key].copy() if rest else replaced[key]
        for secret in found:
            key, *rest = secret.part
            if not rest:
                replaced[key] = secret.reference
            elif isinstance(replaced[key], list):
                replaced[key][int(rest[0])] = secret.reference
            else:
                replaced[key][rest[0]] = secret.reference
        return replaced, found

    def find(self, name: str, server: Mapping[str, Any]) -> Iterator[WrittenSecret]:
        """Yield every value of a server, in the one form, that looks like a secret."""
        prefix = _as_variable(name)
        command = list(server.get("command") or ())
        for number, (word, secrets) in enumerate(zip(command, secrets_in(command), strict=True)):
            if secrets:
                variable = self._choose(word, f"{prefix}_ARG_{number}")
                yield _secret(("command", str(number)), "a key in its command", variable)
        url = server.get("url") or ""
        if any(secrets_in([url])):
            yield _secret(("url",), "a key in its address", self._choose(url, f"{prefix}_URL"))
        for table in ("env", "headers"):
            for key, value in (server.get(table) or {}).items():
                yield from self._find_value((table, key), value, prefix)

    def _find_value(self, part: tuple[str, str], value: str, prefix: str) -> Iterator[WrittenSecret]:
        table, key = part
        if not any(secrets_in([f"{key}={value}"])):
            return
        references = list(_REFERENCE.finditer(value))
        if references and _SCHEME.fullmatch(_REFERENCE.sub("", value)):
            defaults = tuple(match[1] for match in references if match[2])
            if defaults:
                bare = _REFERENCE.sub(lambda match: f"${{{match[1]}}}" if match[2] else match[0], value)
                yield WrittenSecret(part, f"the default of {key}", bare, defaults)
            return
        qualified = f"{prefix}_{_as_variable(key)}"
        is_usable = table == "env" and _VARIABLE.fullmatch(key)
        variable = self._choose(value, *([key] if is_usable else []), qualified)
        yield _secret(part, f"the value of {key}", variable)

    def _choose(self, value: str, *names: str) -> str:
        """Return the first of some names that does not stand for another value yet."""
        numbered = (f"{names[-1]}_{number}" for number in range(2, len(self._values) + 3))
        chosen = next(name for name in (*names, *numbered) if self._values.get(name, value) == value)
        self._values[chosen] = value
        return chosen


def _secret(part: tuple[str, ...], what: str, variable: str) -> WrittenSecret:
    return WrittenSecret(part, what, f"${{{variable}}}", (variable,))


def _as_variable(name: str) -> str:
    text = "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()
    return f"_{text}" if text[:1].isdigit() else text
