"""Agents: call a model, run its tools, and store every step in a session.

agent.py         Agent and AsyncAgent
loop.py          a turn as one generator, for blocking and async callers
events.py        the events that a turn yields
tools.py         Python functions as tools: their schema, arguments, results and time-outs
toolsets.py      the tools of plugins, opened when a model first calls one
permissions.py   what a permission level lets run, asks for, or refuses
event_queue.py   a queue of events from another thread, for blocking and async code

Only these modules call models, and only through the hook `nexus_providers`. Names in `__all__` are imported when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.agents.agent import Agent, AsyncAgent
    from nexus_core.agents.events import (
        CompactionEvent,
        DoneEvent,
        MemoryEvent,
        PermissionEvent,
        SteeringMessageEvent,
        StepEvent,
        ToolCallEvent,
        ToolResultEvent,
        UsageEvent,
    )
    from nexus_core.agents.tools import FunctionTool, ToolRunner, tool
    from nexus_core.types.providers import ReasoningDelta, TextDelta

_HOMES = {
    "Agent": "nexus_core.agents.agent",
    "AsyncAgent": "nexus_core.agents.agent",
    "CompactionEvent": "nexus_core.agents.events",
    "DoneEvent": "nexus_core.agents.events",
    "FunctionTool": "nexus_core.agents.tools",
    "MemoryEvent": "nexus_core.agents.events",
    "PermissionEvent": "nexus_core.agents.events",
    "ReasoningDelta": "nexus_core.types.providers",
    "StepEvent": "nexus_core.agents.events",
    "TextDelta": "nexus_core.types.providers",
    "ToolCallEvent": "nexus_core.agents.events",
    "ToolResultEvent": "nexus_core.agents.events",
    "ToolRunner": "nexus_core.agents.tools",
    "UsageEvent": "nexus_core.agents.events",
    "SteeringMessageEvent": "nexus_core.agents.events",
    "tool": "nexus_core.agents.tools",
}
"""The module of each name."""

__all__ = [
    "Agent",
    "AsyncAgent",
    "CompactionEvent",
    "DoneEvent",
    "FunctionTool",
    "MemoryEvent",
    "PermissionEvent",
    "ReasoningDelta",
    "SteeringMessageEvent",
    "StepEvent",
    "TextDelta",
    "ToolCallEvent",
    "ToolResultEvent",
    "ToolRunner",
    "UsageEvent",
    "tool",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
