"""The parts that agents play: a manager, who talks to people, and a worker, who does one task.

`unified`, who does everything, is Nexus's own and is told nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Request, Section
    from nexus_core.plugin import AgentRole


@hookimpl
def nexus_roles() -> list[AgentRole]:
    """Both may have others work for them; only the manager reaches people."""
    from nexus_core.plugin import AgentRole  # noqa: PLC0415 - `nexus show` asks for no role

    return [
        AgentRole(name="manager", sees_platform=True),
        AgentRole(name="worker", scopes=("general", "spawn")),
    ]


@hookimpl
def nexus_static_sections(request: Request) -> list[Section]:
    """What a manager is told about messages, or the frame around the prompt of a worker."""
    if request.role not in {"manager", "worker"}:
        return []
    from nexus_plugins.roles._words import messaging, worker_frame  # noqa: PLC0415 - as above

    return [messaging() if request.role == "manager" else worker_frame(request.task)]
