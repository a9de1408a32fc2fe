"""From sections to text.

labelled.py  the static zone: every section under its heading
current.py   what is said in a turn, with its circumstances
core.py      LABELLED, the renderer that Nexus itself brings, and UNIFIED, the role
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.rendering.core import LABELLED, UNIFIED

__all__ = ["LABELLED", "UNIFIED"]


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from nexus_core.rendering import core  # noqa: PLC0415 - `nexus show` needs neither

        return getattr(core, name)
