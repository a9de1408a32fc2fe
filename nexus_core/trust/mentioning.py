"""Active parts as they are mentioned in passing: whether they wait for anybody, and without keys.

All of a part is shown to whoever is asked to approve it, and only then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.trust import ActivePart

OPEN = frozenset({"pending", "changed"})
"""The decisions that are none yet."""


def is_off(part: ActivePart) -> bool:
    """Whether it is a server that is switched off; who switches it on changes what an approval would cover."""
    return _content(part).get("enabled") is False


def is_waiting(part: ActivePart) -> bool:
    """Whether it would do something as soon as the user approves it."""
    return part.decision in OPEN and not is_off(part)


def mention(part: ActivePart) -> str:
    """What it would do, in one line, without what looks like a secret."""
    from nexus_core.text.written_secrets import hide_in_line, hide_secrets  # noqa: PLC0415 - where something waits
    from nexus_core.trust.fingerprint import describe_server, one_line, words_of  # noqa: PLC0415 - as above

    content = _content(part)
    if content.get("kind") != "server":
        return hide_in_line(one_line(part.summary))
    url = content.get("url")
    shown = {"command": hide_secrets(words_of(content)), "args": None}
    return describe_server({**content, **shown, "url": hide_secrets([url])[0] if isinstance(url, str) else None})


def describe(part: ActivePart) -> dict[str, object]:
    """A part for programs: where it stands, what it would do, and what was decided."""
    return {
        "decision": part.decision,
        "pointer": part.pointer,
        "layer": part.layer,
        "path": str(part.path),
        "line": part.line,
        "enabled": not is_off(part),
        "summary": mention(part),
    }


def left_off(parts: Iterable[ActivePart]) -> list[dict[str, object]]:
    """The parts that do not take effect, as `--json` lists them under `skipped`."""
    return [describe(part) for part in parts if part.decision != "allowed"]


def _content(part: ActivePart) -> dict[str, Any]:
    try:
        content = json.loads(part.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
