"""Takes secrets out of a text before it goes where it need not: to a summariser, into an export, into a log.

Only what is a secret beyond reasonable doubt is taken out: a key by its prefix and length, a password by the word
before it. What kind of secret it was stays readable.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

_NAMES = (
    r"api[_-]?key|secret[_-]?(?:access[_-]?)?key|client[_-]?secret|access[_-]?key|(?:access|auth|refresh|private|secret)"
    r"[_-]?token|passw(?:or)?d|passphrase"
)
_ASSIGNED = rf"(?<![A-Za-z0-9])[\"']?(?:[A-Za-z0-9]{{1,40}}[_-]){{0,4}}(?:{_NAMES})[\"']?\s{{0,4}}[:=]\s{{0,4}}"

# Each pattern has the groups `before` and `secret`, or is a secret as a whole. No two of its repetitions can take the
# same characters in turns, so that the time it takes grows with the text and not faster.
_PATTERNS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "private-key",
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^-]{1,16384}-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----",
        ),
        ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,200}"),
        ("openai-key", r"\bsk-(?=[a-z-]{0,12}[A-Za-z0-9_-]{0,188}[0-9])[A-Za-z0-9_-]{20,200}"),
        ("google-key", r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255})"),
        ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,64}"),
        ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"),
        ("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}"),
        (
            "hosting-token",
            r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,250}|hf_[A-Za-z0-9]{30,64}|gsk_[A-Za-z0-9]{40,64})",
        ),
        ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{10,4096}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{10,2048}"),
        ("bearer", r"(?P<before>\b[Bb]earer\s{1,4})(?P<secret>[A-Za-z0-9._~+/-]{16,4096}=*)"),
        (
            "url-password",
            r"(?P<before>\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@'\"<]{0,200}:)(?P<secret>[^\s/@'\"<]{3,200})(?=@)",
        ),
        ("storage-key", r"(?P<before>\b(?:Account|SharedAccess)Key=)(?P<secret>[A-Za-z0-9+/]{20,200}={0,2})"),
        ("password", rf"(?i:(?P<before>{_ASSIGNED})(?P<secret>\"[^\"\s]{{6,512}}\"|'[^'\s]{{6,512}}'))"),
        ("password", rf"(?i:(?P<before>{_ASSIGNED})(?P<secret>[^\s\"'`,;<>(){{}}\[\]]{{8,512}}))"),
    )
)
_STAND_IN = re.compile(
    r"^[\"']?(?:\$|%|<|\{|\[redacted|\*{3}|x{4}|\.{3}|your|my[_-]|example|change|replace|insert|dummy|placeholder|none|null"
    r"|true|false|string|required|optional|env[.:(]|os\.|process\.|config\.|settings\.|secrets?[.:]|self\.|args\.|todo)",
    re.IGNORECASE,
)


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text; `[redacted:aws-key]` stands where a secret was.
        counts: How many secrets of which kind there were.
    """

    text: str
    counts: Counter[str]


def redact(text: str) -> Redacted:
    """A text without keys, tokens and passwords; applied a second time, it changes nothing."""
    counts: Counter[str] = Counter()
    for name, pattern in _PATTERNS:

        def replace(match: re.Match[str], name: str = name) -> str:
            found = match.groupdict()
            secret = found.get("secret") or ""
            if secret.startswith("[redacted:") or (name == "password" and _is_no_password(secret)):
                return match[0]
            counts[name] += 1
            return f"{found.get('before') or ''}[redacted:{name}]"

        text = pattern.sub(replace, text)
    return Redacted(text, counts)


def redact_json(value: Any, counts: Counter[str] | None = None) -> Any:  # noqa: ANN401 - JSON has many types
    """JSON whose texts are without secrets; names of fields count as what stands before a value.

    Args:
        value: Dicts, lists, texts and numbers.
        counts: Counts what was taken out.
    """
    if isinstance(value, str):
        redacted = redact(value)
        if counts is not None:
            counts.update(redacted.counts)
        return redacted.text
    if isinstance(value, dict):
        return {key: _redact_field(key, item, counts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(item, counts) for item in value]
    return value


def _redact_field(name: object, value: object, counts: Counter[str] | None) -> object:
    if isinstance(name, str) and isinstance(value, str):
        lead = f'{name}: "'
        redacted = redact(f'{lead}{value}"')
        if redacted.counts["password"] and redacted.text.endswith("[redacted:password]"):
            if counts is not None:
                counts.update(redacted.counts)
            return "[redacted:password]"
    return redact_json(value, counts)


def _is_no_password(secret: str) -> bool:
    """Whether it only stands in for one, or is a word of a sentence."""
    if _STAND_IN.match(secret):
        return True
    if secret[0] in "\"'":
        return len(set(secret[1:-1])) < 4  # noqa: PLR2004 - `xxxxxx`, `********`
    return not (any(sign.isdigit() for sign in secret) and any(sign.isalpha() for sign in secret))
