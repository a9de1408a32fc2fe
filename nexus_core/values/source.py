"""Where a piece of the prompt comes from."""

from __future__ import annotations

from dataclasses import dataclass

from nexus_core.values.checks import require_type, require_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a text; the host fills in the plugin, so a plugin need only say what it knows.

    Attributes:
        uri: The path of a file; `plugin:<name>` for text that a plugin computed, `settings:` for merged settings.
        layer: The name of the layer it was found in, "" when it belongs to none.
        plugin: The name of the plugin that contributed it.
    """

    uri: str
    layer: str = ""
    plugin: str = ""

    def __post_init__(self) -> None:
        require_words(self.uri, "Source.uri")
        require_type(self.layer, "Source.layer", str)
        require_type(self.plugin, "Source.plugin", str)

    @property
    def is_file(self) -> bool:
        """Whether the text was read from a file rather than computed."""
        return not self.uri.startswith(("plugin:", "settings:"))
