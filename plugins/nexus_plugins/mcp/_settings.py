"""Settings under `plugins.mcp` in config.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nexus_core.plugin.settings import StrictModel

Seconds = Annotated[float, Field(gt=0, le=3600)]


class McpSettings(StrictModel):
    """Settings of MCP servers: other tools whose files are read, form of the section, timeouts."""

    read: list[Literal["claude", "vscode", "cursor", "codex", "gemini", "opencode"]] = Field(
        default_factory=list,
        description="Other tools whose files in a project are read too: in your own config for every project, in a "
        "project's for that project.",
    )
    form: Literal["table", "bullets"] = Field(
        default="table", description="How servers are listed in the prompt: a table, or a list with a line for each."
    )
    start_timeout: Seconds = Field(
        default=20.0, description="Seconds a server may take to start and to list its tools."
    )
    call_timeout: Seconds = Field(
        default=60.0, description="Seconds a call may take, the start of its server included."
    )
    refresh_hours: Annotated[float, Field(ge=0)] = Field(
        default=24.0, description="Age in hours at which `nexus mcp tools` lists the tools of a server again."
    )
