"""What the settings say about calls, as it is kept with what was sent: so that it can be put together again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.ledger.json_text import write_json
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUPS: Mapping[str, tuple[str, ...] | None] = {
    "provider": ("provider", "model", "context_window", "options"),
    "models": None,
    "permissions": None,
    "renderer": None,
    "budget": None,
    "truncation": None,
    "cache": None,
    "compaction": ("enabled",),
}
"""What is kept of each group, None for all of it: neither addresses nor names of keys, and nothing that is run."""
_HEADERS = "extra_headers"
"""The option that may hold a key."""


def write_setup(settings: Settings) -> bytes:
    """What is kept of settings."""
    kept = {name: _some(settings.get(name), fields) for name, fields in _GROUPS.items()}
    return write_json({name: value for name, value in kept.items() if value}, "a setting").encode()


def read_setup(content: bytes) -> Settings:
    """Settings that say what was kept, and nothing else."""
    return Settings(json.loads(content))


def _some(group: object, fields: tuple[str, ...] | None) -> object:
    if not isinstance(group, dict):
        return group if fields is None else None
    kept: dict[str, Any] = {name: value for name, value in group.items() if fields is None or name in fields}
    options = kept.get("options")
    if isinstance(options, dict) and _HEADERS in options:
        kept["options"] = {name: value for name, value in options.items() if name != _HEADERS}
    return kept
