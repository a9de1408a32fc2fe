"""What may stand under `plugins.tagged` in config.json."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nexus_core.plugin import Strict
from nexus_plugins.tagged._options import IDENTITY, IDENTITY_FORM, LIMIT


class TaggedSettings(Strict):
    """How a session is put into the tagged format."""

    language: Literal["en", "zh"] = Field(
        default="en", description="The language of headings: English or Chinese. The identity stays as it is."
    )
    limit: int = Field(default=LIMIT, ge=0, description="How many messages are remembered at most, the newest.")
    single_message: bool = Field(
        default=False,
        description="Whether the four blocks are one message, for servers that mishandle several of the user in a row.",
    )
    tool_calls: bool = Field(default=False, description="Whether memories name the tools that were used.")
    identity: str = Field(
        default=IDENTITY,
        pattern=f"^{IDENTITY_FORM}$",
        description="The file in a layer's directory that takes the place of the identity; the most local one is used.",
    )
