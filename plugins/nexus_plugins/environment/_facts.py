"""What is known about the machine and the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nexus_core.plugin import visible_line

if TYPE_CHECKING:
    from nexus_core import Request

_MODES = {"repl": "Interactive REPL", "server": "HTTP JSON-RPC Server"}
_SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def environment_facts(request: Request) -> dict[str, str]:
    """The facts by the name under which the model reads them, in their order."""
    facts = {
        "Working directory": visible_line(str(request.cwd)),
        "Operating system": operating_system(),
    }
    if request.mode == "repl":
        facts["Terminal"] = visible_line(terminal())
    facts["Mode"] = _MODES[request.mode]
    return facts


def operating_system() -> str:
    """The name of the system; Linux inside Windows is named as such."""
    name = next((name for prefix, name in _SYSTEMS.items() if sys.platform.startswith(prefix)), sys.platform)
    if name == "Linux" and "microsoft" in os.uname().release.lower():
        return "Linux (WSL2 on Windows)"
    return name


def terminal() -> str:
    """The terminal as `program (TERM)`, or whichever of the two is known."""
    program, term = os.environ.get("TERM_PROGRAM", ""), os.environ.get("TERM", "")
    return f"{program} ({term})" if program and term else program or term or "unknown"
