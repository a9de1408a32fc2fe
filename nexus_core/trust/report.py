"""Reports about active settings: summaries without secrets, JSON and diffs.

The complete setting is shown only to the user who is asked to approve it.
"""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from nexus_core.text.safety import one_line
from nexus_core.text.secrets import hide_command_secrets, hide_secrets
from nexus_core.trust.fingerprint import describe_server, split_server_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.mcp import ActiveSetting

OPEN_DECISIONS = frozenset({"pending", "changed"})
"""Decisions that leave a setting waiting for approval."""


def is_disabled(part: ActiveSetting) -> bool:
    """Return True if it is a disabled server. Enabling it changes the content that an approval covers."""
    return _parse_content(part).get("enabled") is False


def is_waiting(part: ActiveSetting) -> bool:
    """Return True if it would take effect as soon as the user approves it."""
    return part.decision in OPEN_DECISIONS and not is_disabled(part)


def summarize_setting(part: ActiveSetting) -> str:
    """Describe its effect in one line, without values that look like secrets."""
    content = _parse_content(part)
    if content.get("kind") != "server":
        return hide_command_secrets(one_line(part.summary))
    url = content.get("url")
    shown = {"command": hide_secrets(split_server_command(content)), "args": None}
    return describe_server({**content, **shown, "url": hide_secrets([url])[0] if isinstance(url, str) else None})


def setting_to_json(part: ActiveSetting) -> dict[str, object]:
    """Return a setting as JSON: its position, its effect, and the decision."""
    return {
        "decision": part.decision,
        "pointer": part.pointer,
        "layer": part.layer,
        "path": str(part.path),
        "line": part.line,
        "enabled": not is_disabled(part),
        "summary": summarize_setting(part),
    }


def list_inactive(parts: Iterable[ActiveSetting]) -> list[dict[str, object]]:
    """Return the settings that do not take effect, as `--json` lists them under `skipped`."""
    return [setting_to_json(part) for part in parts if part.decision != "allowed"]


def _parse_content(part: ActiveSetting) -> dict[str, Any]:
    try:
        content = json.loads(part.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


# In these fields, every string of this form is our digest. Elsewhere it may be part of a command, and stays visible.
_DIGEST_FIELDS = frozenset({"code", "env", "files", "headers", "other", "value"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN_DIGEST_CHARACTERS = len("sha256:") + 16


def diff_contents(approved: str, present: str, *, approved_name: str, present_name: str) -> list[str]:
    """Return the lines of a unified diff between two canonical contents, or [] if they are equal."""
    return list(unified_diff(_format_lines(approved), _format_lines(present), approved_name, present_name, lineterm=""))


def _format_lines(content: str) -> list[str]:
    try:
        data = json.loads(content)
    except ValueError:
        return content.splitlines()
    if isinstance(data, dict):
        data = {key: _shorten_digests(value) if key in _DIGEST_FIELDS else value for key, value in data.items()}
    # ASCII, so that different texts never look alike.
    return json.dumps(data, indent=2, sort_keys=True).splitlines()


def _shorten_digests(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shorten_digests(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten_digests(each) for each in value]
    return f"{value[:_SHOWN_DIGEST_CHARACTERS]}..." if isinstance(value, str) and _DIGEST.fullmatch(value) else value
