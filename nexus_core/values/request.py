"""What is asked of Nexus: for which place, in which circumstances."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from nexus_core.values.checks import require_absolute, require_one_of
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from nexus_core.values.conversation import Tool
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON

Mode = Literal["", "repl", "server"]
"""The driver of the agent: a person at a prompt, programs over HTTP, or "" if the caller does not say."""

MODES: tuple[Mode, ...] = ("repl", "server")
"""The modes that a caller can name."""
DEFAULT_ANCESTOR_DEPTH = 2
DEFAULT_ROLE = "unified"
DEFAULT_MODE: Mode = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to the plugins; every hook that depends on circumstances receives it.

    Attributes:
        cwd: The directory the agent works in, absolute.
        home: The user's own Nexus directory, `~/.nexus3` unless NEXUS_HOME says otherwise.
        defaults: The defaults that ship with Nexus, or None when they are switched off.
        ancestor_depth: How many levels above `cwd` may contribute a layer.
        plugin_tables: What the user's own config.json and that of `cwd` have under `plugins`, neither checked nor
            merged; for what a plugin must know before all settings are read.
        mode: The driver of the agent, `repl` or `server`; "" for the mode of the session, else none: the model reads
            nothing about it.
        is_call: True for the system prompt of a session, which `nexus show` prints; False for the form of
            `ContextLoader` and `nexus show --loaded`. Nexus sets it.
        lenient: Whether an MCP server that cannot be used is left out rather than an error.
        role: What part the agent plays, by the name of an `AgentRole`; "" for what the session was told before, else
            `unified`. Who is asked for sections or tools is told which.
        renderer: How it is put into words, by the name of a `Renderer`; "" for what the settings say.
        system_prompt: A text that is the whole system prompt, in place of everything that is loaded; "" for what the
            session was given before, else what is loaded.
        task: What a worker is to do; "" for everybody else.
        skills: The skills that a worker is told about; None for those the session was told before, else all.
        permissions: What the agent may do, in words of the caller's own; None for what the session was told before.
        tools: What the caller lets the model ask for; None for what the session was told before.
        session: The session whose history is read; "" for none.
        model: Whom to ask; "" for whom the session asked before, or the settings say.
        message: What the turn is about; None where nothing was said yet.
        profile: What is known of the user, by name: `{"prompt_overrides": {"friends_profile": "…"}}`.
        source: Who or what said it.
        event_id: What set it off, if that has a name.
        timezone: Where the user's clock stands, by the zone's name; "" for UTC.
        platform: Where the user is: `slack`, `imessage`.
        platform_actions: What can be done there.
        hook_data: What programs outside have to say about this turn, by name.
        attachments: Files that were handed over: `{"path": …, "lines": [1, 20]}`.
    """

    cwd: Path
    home: Path
    defaults: Path | None = None
    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    plugin_tables: tuple[JSON, ...] = field(default=(), repr=False)
    mode: Mode = DEFAULT_MODE
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
        require_absolute(self.cwd, "Request.cwd")
        require_absolute(self.home, "Request.home")
        if self.mode != DEFAULT_MODE:
            require_one_of(self.mode, "Request.mode", MODES)

    @property
    def standing(self) -> Request:
        """The same without what changes from turn to turn; the stable part of a prompt is made from this."""
        return replace(self, **_EACH_TURN, role=self.role or DEFAULT_ROLE)


def subagent_mode(mode: Mode) -> Mode:
    """Return the mode of a subagent: another agent drives it, not the person at the prompt.

    `server` stays, because it also says that nobody is there to watch what MCP servers do.
    """
    return mode if mode == "server" else DEFAULT_MODE


_EACH_TURN: dict[str, Any] = {
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
