"""Settings that name something a plugin offers: the name must be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.errors import ConfigError
    from nexus_core.host.host import Host
    from nexus_core.values.settings import Settings

TRUNCATIONS = ("truncation.strategy", "context.truncation_strategy")


def find_unknown_names(settings: Settings, host: Host) -> Iterator[ConfigError]:
    """An error for each setting whose name nothing answers to; plugins are asked only where something is set."""
    for key in TRUNCATIONS:
        name = settings.get(key)
        if not isinstance(name, str):
            continue
        try:
            host.truncations().get(name)
        except UnknownNameError as error:
            from nexus_core.config.validation import locate_fault  # noqa: PLC0415 - only for what is wrong

            yield locate_fault(settings, "/" + key.replace(".", "/"), f"{key}: {error.what}; {error.hint}")
