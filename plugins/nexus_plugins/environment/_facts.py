"""What is known about the machine and the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import read_text, visible_line

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Settings

_MODES = {"repl": "Interactive REPL", "server": "HTTP JSON-RPC Server"}
_OPTIONAL = {"Terminal": "plugins.environment.terminal", "Host": "plugins.environment.host"}
OS_RELEASE = Path("/etc/os-release")


def told_facts(request: Request, settings: Settings) -> dict[str, str]:
    """The facts that the settings let a model know, by the name under which it reads them, in their order."""
    unwanted = {name for name, setting in _OPTIONAL.items() if not settings.get(setting, default=True)}
    return {name: value for name, value in _facts(request).items() if name not in unwanted}


def _facts(request: Request) -> dict[str, str]:
    facts = {
        "Working directory": visible_line(str(request.cwd)),
        "Operating system": operating_system(),
    }
    if request.is_call:  # which says the same every day, in whatever terminal
        host, architecture = machine()
        facts |= {"Architecture": visible_line(architecture), "Host": visible_line(host)}
    elif request.mode == "repl":
        facts["Terminal"] = visible_line(terminal())
    if request.mode:
        facts["Mode"] = _MODES[request.mode]
    return facts


def operating_system() -> str:
    """The name of the system, with its distribution or version; Linux inside Windows is named as such."""
    system: str = sys.platform  # a variable, because type checkers take the attribute for a constant
    if system.startswith("linux"):
        if "microsoft" in os.uname().release.lower():
            return "Linux (WSL2 on Windows)"
        distribution = linux_distribution()
        return f"Linux ({distribution})" if distribution else "Linux"
    if system == "darwin":
        import platform  # noqa: PLC0415 - other systems need not import it

        return f"macOS {platform.mac_ver()[0]}".strip()
    return "Windows" if system == "win32" else system


def machine() -> tuple[str, str]:
    """The name of this machine and the architecture of its processor."""
    if hasattr(os, "uname"):
        facts = os.uname()
        return facts.nodename, facts.machine
    import platform  # noqa: PLC0415 - as above

    return platform.node(), platform.machine()


def linux_distribution(release: Path = OS_RELEASE) -> str:
    """The distribution and its version, as it names itself; "" where it does not."""
    try:
        lines = (read_text(release) or "").splitlines()
    except NexusError:  # a curious file is no reason to have no prompt
        return ""
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    words = [facts.get(key, "").strip("\"'") for key in ("NAME", "VERSION_ID")]
    return visible_line(" ".join(word for word in words if word))


def terminal() -> str:
    """The terminal as `program (TERM)`, or whichever of the two is known."""
    program, term = os.environ.get("TERM_PROGRAM", ""), os.environ.get("TERM", "")
    return f"{program} ({term})" if program and term else program or term or "unknown"
