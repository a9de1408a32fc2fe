"""The request: directory and options that every hook receives."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nexus_core.types.base import dataclass, require_absolute, require_one_of

if TYPE_CHECKING:
    from typing import Any

    from nexus_core.types.messages import JSON, Message, Tool

AgentMode = Literal["", "repl", "server"]
"""The driver of the agent: a person at a prompt, programs over HTTP, or "" if the caller does not say."""

AGENT_MODES: tuple[AgentMode, ...] = ("repl", "server")
"""The modes that a caller can name."""
DEFAULT_ANCESTOR_DEPTH = 2
DEFAULT_ROLE = "unified"
DEFAULT_MODE: AgentMode = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The directory and the options of a load or a turn, passed to every hook that depends on them.

    Attributes:
        cwd: The agent's working directory, absolute.
        home: The user's Nexus directory: `~/.nexus3`, or the value of NEXUS_HOME.
        defaults: The directory of the defaults that ship with Nexus; None if they are disabled.
        ancestor_depth: The number of levels above `cwd` that may contribute a layer.
        plugin_tables: The `plugins` tables of the user's config.json and of that in `cwd`, neither validated nor
            merged, for plugins that need them before all settings are read.
        mode: The driver of the agent, `repl` or `server`; "" for the mode of the session. Without one, the prompt does
            not mention it.
        is_call: True for the system prompt of a session, which `nexus show` prints; False for the form of
            `ContextLoader` and `nexus show --loaded`. Nexus sets it.
        lenient: True to leave out an MCP server that cannot be used, instead of raising an error.
        role: The name of the agent's `AgentRole`; "" for that of the session, else `unified`. Hooks for sections and
            tools always get the name.
        renderer: The name of a `Renderer`; "" for that of the settings.
        system_prompt: A complete system prompt that replaces everything loaded; "" for that of the session, else what
            is loaded.
        task: The task of a worker (subagent); "" for other agents.
        skills: The skills in a worker's prompt; None for those of the session, else all.
        permissions: The agent's permissions, named by the caller; None for those of the session.
        tools: The tools that the caller offers to the model; None for those of the session.
        session: The name of the session whose history is read; "" for none.
        model: The name of the model; "" for that of the session, else that of the settings.
        message: The user message of the turn; None before there is one.
        profile: Data about the user, by name: `{"prompt_overrides": {"friends_profile": "…"}}`.
        source: The sender of the message.
        event_id: The id of the event that started the turn, if it has one.
        timezone: The name of the user's time zone; "" for UTC.
        platform: The user's platform: `slack`, `imessage`.
        platform_actions: The actions that are possible on the platform.
        hook_data: Data of external programs about this turn, by name.
        attachments: Attached files: `{"path": …, "lines": [1, 20]}`.
    """

    cwd: Path
    home: Path
    defaults: Path | None = None
    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    plugin_tables: tuple[JSON, ...] = field(default=(), repr=False)
    mode: AgentMode = DEFAULT_MODE
    is_call: bool = False
    lenient: bool = False
    role: str = ""
    renderer: str = ""
    system_prompt: str = ""
    task: str = ""
    skills: tuple[str, ...] | None = None
    permissions: tuple[str, ...] | None = None
    tools: tuple[Tool, ...] | None = None
    session: str = ""
    model: str = ""
    message: Message | None = None
    profile: JSON = field(default_factory=dict)
    source: str = ""
    event_id: str = ""
    timezone: str = ""
    platform: str = ""
    platform_actions: tuple[str, ...] = ()
    hook_data: JSON = field(default_factory=dict)
    attachments: tuple[JSON, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cwd", "home"):
            path = getattr(self, name)
            if not isinstance(path, Path) or not path.is_absolute():
                require_absolute(path, f"Request.{name}")
        if self.mode != DEFAULT_MODE:
            require_one_of(self.mode, "Request.mode", AGENT_MODES)

    @property
    def standing(self) -> Request:
        """The request without the options of a single turn, from which the static part of the prompt is built."""
        return replace(self, **_PER_TURN_DEFAULTS, role=self.role or DEFAULT_ROLE)


def get_subagent_mode(mode: AgentMode) -> AgentMode:
    """Return the mode of a subagent: another agent drives it, not the person at the prompt.

    `server` stays, because it also means that no person watches the MCP servers.
    """
    return mode if mode == "server" else DEFAULT_MODE


_PER_TURN_DEFAULTS: dict[str, Any] = {
    "model": "",
    "message": None,
    "profile": {},
    "source": "",
    "event_id": "",
    "timezone": "",
    "platform": "",
    "platform_actions": (),
    "hook_data": {},
    "attachments": (),
}
