"""Settings under `plugins.tagged` in config.json."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nexus_core.plugin.settings import StrictModel
from nexus_plugins.tagged._options import DEFAULT_LIMIT, IDENTITY_FILE, IDENTITY_PATTERN


class TaggedSettings(StrictModel):
    """Settings of the tagged format."""

    language: Literal["en", "zh"] = Field(
        default="en", description="The language of headings: English or Chinese. The identity stays as it is."
    )
    limit: int = Field(default=DEFAULT_LIMIT, ge=0, description="Maximum number of remembered messages, the newest.")
    single_message: bool = Field(
        default=False,
        description="Send the four blocks as one message, for servers that mishandle consecutive user messages.",
    )
    tool_calls: bool = Field(default=False, description="Name the tools that remembered messages called.")
    identity: str = Field(
        default=IDENTITY_FILE,
        pattern=f"^{IDENTITY_PATTERN}$",
        description="The file in a layer's directory that replaces the identity; the most local one is used.",
    )
