"""Redaction of API keys, passwords and tokens in text, commands and URLs.

`redact` is for text that goes to a summarizer, an export or another program, and names the kind of each secret:
`[redacted:aws-key]`. `hide_secrets` is for commands and URLs that are shown, and writes `***`.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.text.safety import strip_all_hidden
from nexus_core.text.secret_patterns import (
    PLACEHOLDER_PREFIX,
    SecretSpan,
    closes_private_key,
    find_field_secrets,
    find_secrets,
    opens_private_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SECRET_PLACEHOLDER = "***"  # noqa: S105 - a placeholder, not a secret
MIN_SECRET_CHARACTERS = 4
"""Shorter values are not hidden: they occur everywhere, so that hiding them would hide half of a text."""

_SECRET_WORDS = frozenset(
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
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)")
_ASSIGNMENT = re.compile(r"(?:--?)?([A-Za-z][\w.-]*)=(?:(?i:bearer|basic|token)\s+)?(.+)", re.DOTALL)
_HEADER = re.compile(r"(?:--?header=)?([A-Za-z][\w-]*)\s*:\s*(?:(?i:bearer|basic|token)\s+)?(.+)", re.DOTALL)
_USERINFO = re.compile(r"[A-Za-z][\w+.-]*://(?:([^/?#\s]*)@)?")
_QUERY = re.compile(r"[?&#]([^=&#?]+)=([^&#]+)")
# Letters and digits in one long word: it may be a key, and no reader needs it.
_OPAQUE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{32,}=*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_REFERENCE = re.compile(r"\$\{[^{}:]*(?::(?!-)[^{}]*)?\}")
_COMPLETABLE_NAME = re.compile(r"[\w/.@][\w@%+=:,./-]{0,255}")
_DEFAULT_VALUE = re.compile(r"\$\{([^{}:]*):-([^{}]*)\}")


def secrets_in(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each argument of a command, or for a URL, the secret parts, longest first."""
    found = []
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        parts = {part for part in _find_secret_parts(word, before) if _is_literal_value(part)}
        found.append(tuple(sorted(parts, key=lambda part: (-len(part), part))))
    return found


def hide_secrets(words: Sequence[str]) -> list[str]:
    """Return the arguments of a command, or a URL as the only one, with secrets replaced."""
    hidden = []
    for word, parts in zip(words, secrets_in(words), strict=True):
        shown = word
        for part in parts:
            shown = shown.replace(part, SECRET_PLACEHOLDER)
        hidden.append(shown)
    return hidden


def hide_command_secrets(line: str) -> str:
    """Return a command line with secrets replaced."""
    try:
        words = shlex.split(line)
    except ValueError:  # an unclosed quotation
        words = line.split()
    for part in chain.from_iterable(secrets_in(words)):
        line = line.replace(part, SECRET_PLACEHOLDER)
    return line


def completable_names(names: Iterable[str]) -> list[str]:
    """Return the names that a shell may complete: those without special characters that are not secrets.

    A shell inserts a completion verbatim. A name with `$(…)` in it, which a project can choose for a server, would be
    run, one with a line break would be two, and one with an escape sequence would control the terminal.
    """
    return [
        name for name in names if _COMPLETABLE_NAME.fullmatch(name) and name.isprintable() and not find_secrets(name)
    ]


def names_secret(name: str) -> bool:
    """Return True if a value with this name is usually secret: `API_KEY`, `authToken`, `--password`."""
    return any(part.lower() in _SECRET_WORDS for part in _NAME_PARTS.findall(name))


def _find_secret_parts(word: str, before: str) -> Iterator[str]:
    option = _OPTION.fullmatch(before)
    if option and names_secret(option[1]) and not _OPTION.fullmatch(word):
        yield word
    for pattern in (_ASSIGNMENT, _HEADER):
        match = pattern.fullmatch(word)
        if match and names_secret(match[1]):
            yield match[2]
    if match := _USERINFO.match(word):
        yield (match[1] or "").partition(":")[2]
        if not (match[1] or "").partition(":")[1]:
            yield match[1] or ""
        yield from (value for name, value in _QUERY.findall(word) if names_secret(name))
    yield from (default for name, default in _DEFAULT_VALUE.findall(word) if names_secret(name))
    yield from _OPAQUE.findall(word)
    yield from (word[span.start : span.end] for span in find_secrets(word))


def _is_literal_value(part: str) -> bool:
    """Return True if it is a value, not a reference to one."""
    return len(part) >= MIN_SECRET_CHARACTERS and not _REFERENCE.fullmatch(part)


_MAX_REMEMBERED_CHARACTERS = 2_000
"""Texts up to this length that had no secret are remembered: a memory is redacted where it is found, and again before
it is sent, because a plugin may have found it."""
_MAX_PASSES = 6
"""A placeholder may end a word, so that the token after it begins one; hostile texts need more than two passes."""
_MAX_LOOKAHEAD_CHARACTERS = 1024
"""Characters read beyond the visible ones, so that a secret that begins in them is recognized by its end."""
_KEY_NAMES, _VALUE_NAMES = ("name", "key", "header", "variable"), ("value", "val", "content")
_PROGRAM = re.compile(r"[\w./+-]{1,200}")
_MAX_ARGUMENTS = 200
_OPTION_NAME = re.compile(r"--?[A-Za-z][\w.-]{0,60}")


class RedactedText(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text, with `[redacted:aws-key]` in place of a secret.
        counts: The number of secrets by kind.
    """

    text: str
    counts: Counter[str]


def redact(text: str) -> RedactedText:
    """Return a text without keys, tokens and passwords. Redacting it again changes nothing.

    Quotation marks, commas and brackets stay, so that JSON with secrets in it can still be parsed. A text in which
    hidden characters divide a secret loses all of them.
    """
    counts: Counter[str] = Counter()
    if len(text) <= _MAX_REMEMBERED_CHARACTERS and _has_no_secret(text):
        return RedactedText(text, counts)
    text = _replace_secrets(text, counts)
    return RedactedText(_replace_secrets(strip_all_hidden(text), counts) if _has_hidden_secret(text) else text, counts)


def _replace_secrets(text: str, counts: Counter[str]) -> str:
    for _ in range(_MAX_PASSES):
        spans = find_secrets(text)
        if not spans:
            break
        text = _replace_spans(text, spans, counts)
    return text


@lru_cache(maxsize=256)
def _has_no_secret(text: str) -> bool:
    return not find_secrets(text) and not _has_hidden_secret(text)


def _has_hidden_secret(text: str) -> bool:
    """Return True if a text without its hidden characters has a secret."""
    plain = strip_all_hidden(text)
    return plain != text and bool(find_secrets(plain))


def is_variable_name(name: str) -> bool:
    """Return True if an environment variable can have a name, which does not look like a secret itself."""
    return _VARIABLE_NAME.fullmatch(name) is not None and not redact(name).counts


def redact_beginning(text: str, length: int) -> str:
    """Return the first characters of a text without secrets, even one that is cut off. The rest is not read."""
    return redact(text[: length + _MAX_LOOKAHEAD_CHARACTERS]).text[:length]


def redact_json(value: Any, counts: Counter[str] | None = None) -> Any:  # noqa: ANN401 - JSON has many types
    """Return JSON without keys, tokens and passwords. The name of a field counts as evidence for its value.

    Args:
        value: Dicts, lists, texts and numbers.
        counts: Incremented for each redacted secret.
    """
    counts = Counter() if counts is None else counts
    if isinstance(value, str):
        return _redact_text(value, counts)
    if isinstance(value, dict):
        return _redact_fields(value, counts)
    if isinstance(value, list | tuple):
        return _redact_items(value, counts)
    return value


def _redact_text(text: str, counts: Counter[str]) -> str:
    redacted = redact(text)
    counts.update(redacted.counts)
    return redacted.text


def _replace_spans(text: str, spans: list[SecretSpan], counts: Counter[str]) -> str:
    pieces = []
    at = 0
    for start, end, kind in spans:
        pieces += [text[at:start], f"{PLACEHOLDER_PREFIX}{kind}]"]
        counts[kind] += 1
        at = end
    return "".join([*pieces, text[at:]])


def _redact_fields(fields: dict[Any, Any], counts: Counter[str]) -> dict[Any, Any]:
    redacted: dict[Any, Any] = {}
    named = next((fields[name] for name in _KEY_NAMES if isinstance(fields.get(name), str)), "")
    for key, value in fields.items():
        shown = _redact_text(key, counts) if isinstance(key, str) else key
        number = 2
        while shown in redacted:  # two secrets of one kind
            shown, number = f"{shown.rpartition(' #')[0] or shown} #{number}", number + 1
        # {"name": "DB_PASSWORD", "value": "…"}, as in manifests and recorded requests
        redacted[shown] = _redact_field(named if named and key in _VALUE_NAMES else key, value, counts)
    return redacted


def _redact_field(name: object, value: object, counts: Counter[str]) -> object:
    if isinstance(name, str) and isinstance(value, str):
        if spans := find_field_secrets(name, value):
            value = _replace_spans(value, spans, counts)
        return _redact_text(value, counts)
    return redact_json(value, counts)


def _redact_items(items: list[Any] | tuple[Any, ...], counts: Counter[str]) -> list[Any]:
    """Return a list without secrets. An option is evidence for the word behind it, as in the arguments of a command."""
    if _is_command(items):
        items = _redact_command(items, counts)
    redacted: list[Any] = []
    before: object = None
    is_in_key = False
    for item in items:
        if not isinstance(item, str):
            redacted.append(redact_json(item, counts))
        elif is_in_key:  # a key as a list of its lines
            is_in_key = not closes_private_key(item)
            redacted.append(_redact_key_line(item, counts) if is_in_key else item)
        elif isinstance(before, str) and _OPTION_NAME.fullmatch(before) and not item.startswith("-"):
            redacted.append(_redact_field(before.lstrip("-"), item, counts))
        else:
            redacted.append(_redact_text(item, counts))
            is_in_key = opens_private_key(item)
        before = item
    return redacted


def _is_command(items: list[Any] | tuple[Any, ...]) -> bool:
    """Return True if a list may be a program and its arguments."""
    return (
        1 < len(items) <= _MAX_ARGUMENTS
        and all(isinstance(item, str) and len(item) <= _MAX_REMEMBERED_CHARACTERS for item in items)
        and _PROGRAM.fullmatch(items[0]) is not None
    )


def _redact_command(words: Sequence[str], counts: Counter[str]) -> list[str]:
    """Return the words of a command without the secrets behind its other words: `["curl", "-u", "me:…"]`."""
    spans = find_secrets(" ".join(words))
    redacted = []
    at = 0
    for word in words:
        inside = [
            SecretSpan(max(each.start - at, 0), min(each.end - at, len(word)), each.kind)
            for each in spans
            if each.start < at + len(word) and each.end > at
        ]
        redacted.append(_replace_spans(word, inside, counts))
        at += len(word) + 1
    return redacted


def _redact_key_line(line: str, counts: Counter[str]) -> str:
    if not line.strip() or line.startswith(PLACEHOLDER_PREFIX):
        return line
    counts["private-key"] += 1
    return f"{PLACEHOLDER_PREFIX}private-key]"
