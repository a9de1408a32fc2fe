"""Static context of the last call, restored from the ledger when its files cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.epoch import OLD_MODE
from nexus_core.assembly.static_context import StaticContext
from nexus_core.assembly.tools import CALLER, Offered
from nexus_core.dialects.neutral import encode_value
from nexus_core.types.layers import LoadedLayers
from nexus_core.types.request import DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.assembly.epoch import Epoch
    from nexus_core.host.manager import Host
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import AgentMode, Request
    from nexus_core.types.settings import Settings


class StoredStaticContext(StaticContext):
    """System prompt, tools and permissions of an epoch; nothing that a project wants to start is allowed here.

    Args:
        request: The circumstances, as the epoch has them.
        settings: The settings as they were kept.
        epoch: The epoch.
        told: The sections that the model was told last.
        host: The plugins.
    """

    def __init__(self, request: Request, settings: Settings, epoch: Epoch, told: Iterable[Section], host: Host) -> None:
        super().__init__(request, LoadedLayers(settings=settings), (), host)
        permissions = epoch.basis.get("permissions")
        self._permissions = tuple(map(str, permissions)) if isinstance(permissions, list) else super().permissions
        self.sections = tuple(told)
        self.offered = tuple(Offered(tool, CALLER) for tool in epoch.tools)
        self.basis = {name: value for name, value in epoch.basis.items() if name != "reloads"}

    @property
    def permissions(self) -> tuple[str, ...]:
        """What the agent may do, as it was."""
        return self._permissions


def agrees(epoch: Epoch, request: Request) -> bool:
    """Whether an epoch was made for what a request says about the agent."""
    basis, permissions = epoch.basis, epoch.basis.get("permissions")
    return (
        basis.get("role") == request.role
        and request.renderer in ("", basis.get("renderer"))
        and isinstance(permissions, list)
        and permissions[1:] == list(request.permissions or ())
        and basis.get("system_prompt", "") == request.system_prompt
        and basis.get("task") == request.task
        and _agrees_with_mode(basis.get("mode"), request.mode)
        and basis.get("skills") == (None if request.skills is None else list(request.skills))
        and basis.get("tools") == [encode_value(tool) for tool in request.tools or ()]
    )


def _agrees_with_mode(epoch_mode: object, wanted: AgentMode) -> bool:
    """True if an epoch can go on in a mode; an old one that names none was made for both of these."""
    return epoch_mode == wanted if epoch_mode is not None else wanted in (DEFAULT_MODE, OLD_MODE)
