"""Which plugins may load, and what happens when one misbehaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class PluginPolicy(NamedTuple):
    """The user's decisions about plugins.

    Attributes:
        disabled: Names that are not loaded.
        only_bundled: Whether installed plugins are ignored altogether.
        strict: Whether the first problem with any plugin stops the run.
    """

    disabled: frozenset[str] = frozenset()
    only_bundled: bool = False
    strict: bool = False


def read_policy(disabled: Iterable[str] = (), *, strict: bool | None = None) -> PluginPolicy:
    """The policy of this process: the arguments, with `NEXUS_PLUGINS=-name,…` or `none`, and `NEXUS_STRICT=1`."""
    if strict is None:
        strict = os.environ.get("NEXUS_STRICT", "") not in {"", "0"}
    words = [word.strip() for word in os.environ.get("NEXUS_PLUGINS", "").split(",")]
    return PluginPolicy(
        disabled=frozenset(disabled) | {word[1:] for word in words if word.startswith("-")},
        only_bundled="none" in words,
        strict=strict,
    )
