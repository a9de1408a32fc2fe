"""What `nexus doctor` looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.finding import Finding
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.request import Request


@hookspec
def nexus_diagnose(request: Request, loaded: Loaded) -> Iterable[Finding]:
    """Look for trouble in what was loaded.

    Collects. Asked by `nexus doctor`. Sorted by file, line and code.

    Args:
        request: The working directory, the user's home and so on.
        loaded: The layers that were found, their texts and settings.

    Returns:
        Findings, each with a code of your own, the file and the line.

    Example:
        from nexus_core import Finding, hookimpl

        @hookimpl
        def nexus_diagnose(loaded):
            loud = [text.path for text in loaded.texts if text.text.isupper()]
            return [Finding("shouting", "written in capitals only", path) for path in loud]
    """
