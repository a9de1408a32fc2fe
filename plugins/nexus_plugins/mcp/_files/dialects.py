"""The files in which other tools keep their MCP servers, and how they write them."""

from __future__ import annotations

from typing import NamedTuple


class Dialect(NamedTuple):
    """How a tool writes servers.

    Attributes:
        name: What Nexus calls it.
        tool: What people call the tool.
        files: Where a project keeps them; the first of these that is there is read.
        container: The key that holds them.
        comments: Whether the tool accepts comments and trailing commas.
        inputs: Whether it understands `${input:id}`.
        command_list: Whether a command is a list of words there, rather than the name of a program.
    """

    name: str
    tool: str
    files: tuple[str, ...]
    container: str
    comments: bool = False
    inputs: bool = False
    command_list: bool = False


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("claude", "Claude Code", (".mcp.json",), "mcpServers"),
        Dialect("vscode", "VS Code", (".vscode/mcp.json",), "servers", comments=True, inputs=True),
        Dialect("cursor", "Cursor", (".cursor/mcp.json",), "mcpServers"),
        Dialect("codex", "Codex", (".codex/config.toml",), "mcp_servers"),
        Dialect("gemini", "Gemini CLI", (".gemini/settings.json",), "mcpServers", comments=True),
        Dialect("opencode", "opencode", ("opencode.json", "opencode.jsonc"), "mcp", comments=True, command_list=True),
    )
}
CLAUDE_HOME = Dialect("claude-home", "Claude Code", (".claude.json",), "mcpServers")
"""What it keeps for a person: servers for all projects, and under `projects` those of each."""
TARGETS = (*DIALECTS, "nexus")
"""Those whose files Nexus can write."""
FIELDS = {
    "nexus": {name: name for name in ("env_file", "include_tools", "exclude_tools", "start_timeout", "call_timeout")},
    "codex": {
        "include_tools": "enabled_tools",
        "exclude_tools": "disabled_tools",
        "start_timeout": "startup_timeout_sec",
        "call_timeout": "tool_timeout_sec",
    },
    "claude": {"call_timeout": "timeout"},
    "vscode": {"env_file": "envFile"},
    "cursor": {"env_file": "envFile"},
    "gemini": {"include_tools": "includeTools", "exclude_tools": "excludeTools", "call_timeout": "timeout"},
    "opencode": {"start_timeout": "timeout"},
}
"""By the name that a field has in Nexus, what each of them calls it; what is not there, the tool does not know."""
WITHOUT_CWD = frozenset({"cursor", "opencode"})
"""Those that start programs nowhere else than in the project; opencode refuses a file that says so."""
NEXUS = Dialect("nexus", "Nexus", ("mcp.json",), "servers", comments=True, inputs=True, command_list=True)


def dialect_of(path: str) -> Dialect:
    """Whose file it is, by where it lies; Nexus's own if it is nobody else's."""
    place = path.replace("\\", "/")
    for dialect in (*DIALECTS.values(), CLAUDE_HOME):
        if any(place == name or place.endswith(f"/{name}") for name in dialect.files):
            return dialect
    return NEXUS
