"""Remembers which settings have been checked, because checking them again costs more than everything else together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core._version import __version__
from nexus_core.files.places import cache_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.config.validation import Fault
    from nexus_core.values.settings import Settings


def ensure_valid(settings: Settings, models: Mapping[str, str], further: Sequence[Fault] = ()) -> None:
    """Raise a ConfigError for the first fault in the settings; what was found valid before is not checked again.

    Args:
        settings: The merged settings.
        models: By plugin name, the model of its settings as `package.module:Class`.
        further: What else was found wrong with them.
    """
    if not settings.value:
        return
    mark = cache_directory() / "valid-settings" / _digest(settings, models)
    if mark.exists() and not further:
        return
    from nexus_core.config.validation import build_config, import_models  # noqa: PLC0415 - pydantic takes its time

    build_config(settings, import_models(models), further)
    _remember(mark)


def _digest(settings: Settings, models: Mapping[str, str]) -> str:
    import json  # noqa: PLC0415 - only where there are settings
    from hashlib import blake2b  # noqa: PLC0415 - as above

    content = json.dumps([__version__, sorted(models.items()), settings.value], sort_keys=True)
    return blake2b(content.encode(), digest_size=20).hexdigest()


def _remember(mark: Path) -> None:
    from nexus_core.errors import FileError  # noqa: PLC0415 - settings are new once
    from nexus_core.files.writing import make_directories  # noqa: PLC0415 - as above

    try:
        make_directories(mark.parent, mode=0o700)
        mark.touch(mode=0o600)
    except (OSError, FileError):  # no cache on a read-only disk; the next run checks again
        return
