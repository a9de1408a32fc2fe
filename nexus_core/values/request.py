"""What is asked of Nexus: for which place, in which circumstances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_absolute, require_one_of

if TYPE_CHECKING:
    from pathlib import Path

Mode = Literal["repl", "server"]
"""How the agent is driven: by a person at a prompt, or by programs over HTTP."""

MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_ANCESTOR_DEPTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to the plugins; every hook that depends on circumstances receives it.

    Attributes:
        cwd: The directory the agent works in, absolute.
        home: The user's own Nexus directory, `~/.nexus3` unless NEXUS_HOME says otherwise.
        defaults: The defaults that ship with Nexus, or None when they are switched off.
        ancestor_depth: How many levels above `cwd` may contribute a layer.
        mode: How the agent is driven.
    """

    cwd: Path
    home: Path
    defaults: Path | None = None
    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    mode: Mode = "repl"

    def __post_init__(self) -> None:
        require_absolute(self.cwd, "Request.cwd")
        require_absolute(self.home, "Request.home")
        require_one_of(self.mode, "Request.mode", MODES)
