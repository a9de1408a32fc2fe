"""Which plugins may load, and what happens when one misbehaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

ONLY_BUNDLED = "none"


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
    """The policy of this process: the arguments, with `NEXUS_PLUGINS=-name,…` or `none`, and `NEXUS_STRICT=1`.

    Raises:
        ConfigError: `NEXUS_PLUGINS` holds a word that means nothing.
    """
    words = _words(os.environ.get("NEXUS_PLUGINS", ""))
    if strict is None:
        strict = os.environ.get("NEXUS_STRICT", "") not in {"", "0"}
    return PluginPolicy(
        disabled=frozenset(disabled) | {word[1:] for word in words if word != ONLY_BUNDLED},
        only_bundled=ONLY_BUNDLED in words,
        strict=strict,
    )


def disabled_by_user(home: Path, disabled: Sequence[str]) -> Sequence[str]:
    """The plugins that the settings in a home disable; none if a repository may have put them there."""
    if not disabled:
        return disabled
    from nexus_core.trust.store import is_home_own  # noqa: PLC0415 - most users disable none

    return disabled if is_home_own(home) else ()


def _words(variable: str) -> list[str]:
    words = [word.strip() for word in variable.split(",") if word.strip()]
    for word in words:
        if word != ONLY_BUNDLED and not (word.startswith("-") and word[1:]):
            raise ConfigError(
                f"{word!r} is neither '-name' nor '{ONLY_BUNDLED}'",
                where="the environment variable NEXUS_PLUGINS",
                hint=f"write '-{word.lstrip('-+')}' to disable a plugin, or 'none' to load bundled plugins only",
            )
    return words
