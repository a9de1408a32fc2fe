"""Secrets in settings: hidden in errors and output, replaced by references.

Errors never quote lines about MCP servers, because any of them may hold a password, nor lines that name the variable of
a key, where some users put the key itself, nor text that looks like a secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.jsonc import JsonSyntaxError, parse_json
from nexus_core.config.pointers import SERVERS, SERVERS_ALIAS
from nexus_core.text.secrets import hide_secrets, redact, secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nexus_core.config.load import LineIndex, TextPosition

_COVER_CHARACTER = "·"
_UNCOVERED_WORDS = frozenset(
    {"servers", "name", "type", "command", "args", "env", "cwd", "url", "headers", "enabled", "true", "false", "null"}
)
"""Words that stay visible if they are a whole string or word: they show what a line is about, and are not secrets."""
_MIN_COVERED_BEHIND = 1000  # characters; more than an error shows of a line
_MAX_COVERED_BEHIND = 100_000  # characters, where no line ends
_PIECE = re.compile(
    r"""(?P<text>"(?:[^"\\\r\n]|\\[^\r\n])*") | (?P<open>"[^\r\n]*) | (?P<comment>//[^\r\n]*) | [^\s{}\[\],:"]+""",
    re.VERBOSE,
)


def cover_text(text: str, around: int) -> str:
    """Return the text with everything masked except punctuation, blanks, and the names of fields.

    Every character keeps its position. What is far behind the offset `around` is left out, for no error shows it.
    """
    limit = around + _MAX_COVERED_BEHIND
    end = text.find("\n", around + _MIN_COVERED_BEHIND, limit)
    return _PIECE.sub(_cover_piece, text[: limit if end < 0 else end])


def _cover_piece(match: re.Match[str]) -> str:
    piece = match[0]
    if piece.removeprefix('"').removesuffix('"') in _UNCOVERED_WORDS:
        return piece
    if match["text"] is not None:
        return f'"{_COVER_CHARACTER * (len(piece) - 2)}"'
    return f'"{_COVER_CHARACTER * (len(piece) - 1)}' if match["open"] is not None else _COVER_CHARACTER * len(piece)


_SERVER_POINTERS = ("/mcp_servers", "/mcpServers")
# With zero bytes between the letters, because an excerpt of a refused UTF-16 file is shown too.
_SERVERS_MENTION = re.compile("\0*".join("mcp") + "[\0_]*" + "\0*".join("servers"), re.IGNORECASE)
_KEY_VARIABLE = re.compile(r"key_env\b", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/?#\s\"]{1,200}@")  # of an address, however short
_MAX_CHECKED_CHARACTERS = 500  # characters on either side of a position; far fewer are shown
_MAX_PARSED_CHARACTERS = 100_000  # characters; a longer text is not parsed only to show more of a file


def find_secret_lines(lines: LineIndex, position: TextPosition) -> frozenset[int]:
    """Return which of the line of a position and its two neighbours must not be shown."""
    servers = find_server_lines(lines)
    around = range(position.line - 1, position.line + 2)
    return frozenset(number for number in around if number in servers or _has_secret(lines, number, position))


def _has_secret(lines: LineIndex, number: int, position: TextPosition) -> bool:
    """Return True if the visible part of a line contains a secret."""
    start = max(0, position.column - _MAX_CHECKED_CHARACTERS) if number == position.line else 0
    text = (lines.line(number) or "")[start : start + 2 * _MAX_CHECKED_CHARACTERS]
    return bool(_KEY_VARIABLE.search(text) or _PASSWORD.search(text) or redact(text).counts)


def find_server_lines(lines: LineIndex) -> range:
    """Return the line numbers of the servers, or all lines from their first mention if they cannot be located."""
    mention = _SERVERS_MENTION.search(lines.text)
    if mention is None:
        return range(0)
    offsets = _find_servers(lines.text) or (mention.start(), len(lines.text))
    first, last = map(lines.position, offsets)
    return range(first.line, last.line + 1)


def _find_servers(text: str) -> tuple[int, int] | None:
    """Return the offsets between which a JSON text is about servers, or None if it is not JSON or has none."""
    if len(text) > _MAX_PARSED_CHARACTERS:
        return None
    try:
        document = parse_json(text)
    except JsonSyntaxError:
        return None
    spans = [span for key in _SERVER_POINTERS if (span := document.span(key))]
    return (min(span.key for span in spans), max(span.end for span in spans)) if spans else None


_PLACEHOLDER = "(hidden)"
_SERVER_TABLES = frozenset({"env", "environment", "headers", "http_headers"})
"""The names of a server's variables and headers in files."""
_SECRET_NAME_ENDINGS = (
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "token",
    "password",
    "secret",
    "authorization",
    "cookie",
)
"""Ends of setting names whose values are secret; the name of a variable in place of the value is not."""


def withhold_secrets(value: Any, pointer: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """Return a value with placeholders for secrets.

    Args:
        value: All settings, or one.
        pointer: Its JSON pointer among the settings.
    """
    if isinstance(value, dict):
        return {key: withhold_secrets(item, f"{pointer}/{key}") for key, item in value.items()}
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):  # an argument may reveal what the next one is
            return hide_secrets(value)
        return [withhold_secrets(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    if _is_secret_setting(pointer, value):
        return _PLACEHOLDER
    return hide_secrets([value])[0] if isinstance(value, str) else value


def _is_secret_setting(pointer: str, value: object) -> bool:
    path = pointer.split("/")
    # The values of a server's environment and headers are often secret, whatever their names.
    if pointer.startswith((f"/{SERVERS}/", f"/{SERVERS_ALIAS}/")) and not _SERVER_TABLES.isdisjoint(path):
        return True
    if not isinstance(value, str) or not path[-1].lower().replace("-", "_").endswith(_SECRET_NAME_ENDINGS):
        return False
    return not ("_" in value and value.isupper() and value.isidentifier())


_REFERENCE = re.compile(r"\$\{(?:env:)?([^{}]*?)(:-[^{}]+)?\}")  # a variable, and its default
_SCHEME = re.compile(r"\s*(?:Bearer|Basic|Token)\s+|\s*", re.IGNORECASE)  # may come before a reference
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrittenSecret(NamedTuple):
    """A value in the definition of a server that looks like a secret.

    Attributes:
        part: The keys that lead to it in the normalized form: `("env", "TOKEN")`, `("command", "2")`, `("url",)`.
        what: Its location, for people; never the value.
        reference: The text that can replace it.
        variables: The environment variables that this text refers to, and that must then be set.
    """

    part: tuple[str, ...]
    what: str
    reference: str
    variables: tuple[str, ...]


class SecretReplacer:
    """Finds secrets in servers and chooses an environment variable for each value.

    Use one object for all servers of a file, so that two secrets never share a variable.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def replace(self, name: str, server: Mapping[str, Any]) -> tuple[dict[str, Any], list[WrittenSecret]]:
        """Return a normalized server with references instead of secrets, and what was replaced."""
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
        """Yield every value of a normalized server that looks like a secret."""
        prefix = _to_variable_name(name)
        command = list(server.get("command") or ())
        for number, (word, secrets) in enumerate(zip(command, secrets_in(command), strict=True)):
            if secrets:
                variable = self._choose(word, f"{prefix}_ARG_{number}")
                yield _build_secret(("command", str(number)), "a key in its command", variable)
        url = server.get("url") or ""
        if any(secrets_in([url])):
            yield _build_secret(("url",), "a key in its address", self._choose(url, f"{prefix}_URL"))
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
        qualified = f"{prefix}_{_to_variable_name(key)}"
        is_usable = table == "env" and _VARIABLE_NAME.fullmatch(key)
        variable = self._choose(value, *([key] if is_usable else []), qualified)
        yield _build_secret(part, f"the value of {key}", variable)

    def _choose(self, value: str, *names: str) -> str:
        """Return the first of some names that is not used for another value yet."""
        numbered = (f"{names[-1]}_{number}" for number in range(2, len(self._values) + 3))
        chosen = next(name for name in (*names, *numbered) if self._values.get(name, value) == value)
        self._values[chosen] = value
        return chosen


def _build_secret(part: tuple[str, ...], what: str, variable: str) -> WrittenSecret:
    return WrittenSecret(part, what, f"${{{variable}}}", (variable,))


def _to_variable_name(name: str) -> str:
    text = "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()
    return f"_{text}" if text[:1].isdigit() else text
