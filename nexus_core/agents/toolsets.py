"""Toolsets of plugins, opened at the first call of one of their tools."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nexus_core.agents.tools import ToolRunner
from nexus_core.errors import MissingExtraError, PluginError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType
    from typing import Self

    from nexus_core.agents.permissions import ToolRisk
    from nexus_core.host.manager import Host
    from nexus_core.thread.state import CallResult, RecordedCall
    from nexus_core.types.plugins import Toolset


@runtime_checkable
class ServerToolRunner(Protocol):
    """A tool runner whose tools are those of servers, which can be started and stopped by name."""

    def connect(self, name: str) -> tuple[str, ...]:
        """Start a server now, and return the names of its tools."""

    def disconnect(self, name: str) -> None:
        """Stop a server. Its tools are not run until it is connected again."""


class ToolsetRunner:
    """Runs the tools of all toolsets of plugins. Each is opened on first use, and closed with this one.

    Args:
        host: The plugins.
        nexus: The Nexus that toolsets are opened for.
    """

    def __init__(self, host: Host, nexus: object) -> None:
        self._nexus = nexus
        registry = host.toolsets()
        self._toolsets = {name: (registry.get(name), registry.owner(name)) for name in registry}
        self._opened: dict[str, ToolRunner | None] = {}
        self._lock = Lock()
        self._stack = ExitStack()

    def __contains__(self, name: object) -> bool:
        return any(name in runner for runner in self._open_all())

    def run(self, call: RecordedCall) -> CallResult | Awaitable[CallResult]:
        """Run a call and return its result."""
        return self._find(call.name).run(call)

    def get_risk(self, name: str) -> ToolRisk:
        """Return the risk of a tool."""
        risk: ToolRisk = getattr(self._find(name), "risk", "high")
        return risk

    def find_servers(self) -> ServerToolRunner | None:
        """Return the toolset whose tools are those of servers, opened; None if there is none."""
        return next((each for each in self._open_all() if isinstance(each, ServerToolRunner)), None)

    def close(self) -> None:
        """Close what was opened. Servers are stopped."""
        self._opened = {}
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, name: str) -> ToolRunner:
        return next(runner for runner in self._open_all() if name in runner)

    def _open_all(self) -> list[ToolRunner]:
        with self._lock:
            opened = [self._open(toolset, owner) for toolset, owner in self._toolsets.values()]
        return [runner for runner in opened if runner is not None]

    def _open(self, toolset: Toolset, owner: str) -> ToolRunner | None:
        """Return what runs the tools of a toolset; None if its extra is not installed."""
        if toolset.name not in self._opened:
            try:
                runner = self._stack.enter_context(toolset.open(self._nexus))
            except MissingExtraError:
                self._opened[toolset.name] = None
                return None
            if not isinstance(runner, ToolRunner):
                what = f"its toolset {toolset.name!r} opened a {type(runner).__name__}, which cannot run tools"
                raise PluginError(what, plugin=owner, hook="nexus_toolsets")
            self._opened[toolset.name] = runner
        return self._opened[toolset.name]
