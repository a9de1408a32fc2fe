"""What changed since an approval, for a person to read."""

from __future__ import annotations

import json
import re
from difflib import unified_diff

# Here every text of this form is a digest of ours. Elsewhere it is a word of a command, of which nothing may be hidden.
_WITH_DIGESTS = frozenset({"code", "env", "files", "headers", "other", "value"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN = len("sha256:") + 16


def compare(approved: str, present: str, *, approved_name: str, present_name: str) -> list[str]:
    """The lines of a unified diff between two canonical contents; none when they are the same."""
    return list(unified_diff(_lines(approved), _lines(present), approved_name, present_name, lineterm=""))


def _lines(content: str) -> list[str]:
    try:
        data = json.loads(content)
    except ValueError:
        return content.splitlines()
    if isinstance(data, dict):
        data = {key: _shorten(value) if key in _WITH_DIGESTS else value for key, value in data.items()}
    # ASCII, so that no two texts look alike.
    return json.dumps(data, indent=2, sort_keys=True).splitlines()


def _shorten(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shorten(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each) for each in value]
    return f"{value[:_SHOWN]}..." if isinstance(value, str) and _DIGEST.fullmatch(value) else value
