"""Parts of a project's configuration that do something, and what the user decided about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

Decision = Literal["allowed", "denied", "pending", "changed"]
"""`changed`: something else was approved under this name before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePart:
    """A setting of a project that starts a program, opens a connection, sets an environment or names a plugin.

    Attributes:
        path: The file that sets it, absolute and without links.
        layer: The name of the layer it belongs to.
        pointer: Which setting it is, as a JSON pointer: `/mcp_servers/github`.
        line: Where it stands in the file.
        summary: What it would do, whole and in one line: the complete command, or the address.
        content: Everything that an approval covers, in canonical form; a changed byte asks again. Secret values are
            in it as digests only.
        decision: What the user has decided about exactly this content.
    """

    path: Path
    layer: str
    pointer: str
    line: int
    summary: str
    content: str
    decision: Decision = "pending"
