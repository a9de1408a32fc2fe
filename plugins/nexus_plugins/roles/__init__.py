"""The agent roles manager, for talking to people, and worker, for one task.

_sections.py    prompt sections of both

`unified`, the agent role for everything, belongs to the core and has no section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Request, Section
    from nexus_core.plugin import AgentRole


@hookimpl
def nexus_roles() -> list[AgentRole]:
    """Return the agent roles manager and worker. Both may spawn workers. Only the manager reaches people."""
    from nexus_core.plugin import AgentRole

    return [
        AgentRole(name="manager", sees_platform=True),
        AgentRole(name="worker", scopes=("general", "spawn")),
    ]


@hookimpl
def nexus_static_sections(request: Request) -> list[Section]:
    """Return the section about messages for a manager, or about the task for a worker."""
    if request.role not in {"manager", "worker"}:
        return []
    from nexus_plugins.roles._sections import build_messaging_section, build_worker_section

    return [build_messaging_section() if request.role == "manager" else build_worker_section(request.task)]
