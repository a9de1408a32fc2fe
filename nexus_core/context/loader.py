"""`ContextLoader`: loads all layers of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.nexus import Nexus

if TYPE_CHECKING:
    import os

    from nexus_core.layers.context import LoadedContext

__all__ = ["ContextLoader"]


class ContextLoader:
    """Loads everything for a directory: `ContextLoader(cwd).load()` or `ContextLoader().load(cwd)`."""

    def __init__(self, cwd: str | os.PathLike[str] | None = None) -> None:
        self._cwd = cwd

    def load(self, cwd: str | os.PathLike[str] | None = None) -> LoadedContext:
        """Find and merge all layers, fresh from disk, for an agent in a REPL."""
        place = cwd if cwd is not None else self._cwd if self._cwd is not None else "."
        return Nexus(place).context(mode="repl")
