"""The two texts of the format that stay the same from turn to turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_plugins.tagged._capabilities import capabilities_block, read_tools
from nexus_plugins.tagged._identity import CORE_IDENTITY
from nexus_plugins.tagged._options import read_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_plugins.tagged._options import Config


class PromptManager:
    """Has the identity, and describes tools.

    Args:
        config_service: Where `plugins.tagged.*` is asked for: the `Settings` of a load, or anything with such a `get`.
        identity: A text in the place of the identity that ships with the plugin.
    """

    def __init__(self, config_service: Config | None = None, *, identity: str = "") -> None:
        self._words = read_options(config_service).words
        self._identity = identity or CORE_IDENTITY

    def get_core_identity(self) -> str:
        """The system prompt; the same at every call."""
        return self._identity

    def get_capabilities_prompt(self, tool_definitions: Iterable[object]) -> str:
        """The block `[CAPABILITIES]` for tools in the shape of any API.

        Raises:
            MessageError: One of them is no definition of a tool.
        """
        return capabilities_block(read_tools(tool_definitions), self._words)
