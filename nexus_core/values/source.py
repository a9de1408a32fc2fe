"""Where a piece of the prompt comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_one_of, require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

Trust = Literal["user", "project", "foreign"]
"""Whose word a text is: the user's own or Nexus's; that of the project; that of anybody, such as a page that a tool
has read."""

TRUSTS: tuple[Trust, ...] = get_args(Trust)
_COMPUTED = ("plugin:", "settings:", "step:", "caller:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a text; the host fills in the plugin, so a plugin need only say what it knows.

    Attributes:
        uri: The path of a file; `plugin:<name>` for text that a plugin computed, `settings:` for merged settings,
            `step:<id>` for what was said in a session, `caller:` for what the caller gave.
        layer: The name of the layer it was found in, "" when it belongs to none.
        plugin: The name of the plugin that contributed it.
        lines: The first and the last line, where it is not all of the file.
        trust: Whose word it is.
    """

    uri: str
    layer: str = ""
    plugin: str = ""
    lines: tuple[int, int] | None = None
    trust: Trust = "user"

    def __post_init__(self) -> None:
        require_words(self.uri, "Source.uri")
        require_type(self.layer, "Source.layer", str)
        require_type(self.plugin, "Source.plugin", str)
        require_one_of(self.trust, "Source.trust", TRUSTS)

    @property
    def is_file(self) -> bool:
        """Whether the text was read from a file rather than computed."""
        return not self.uri.startswith(_COMPUTED)


def source_name(uri: str) -> str:
    """Where something comes from, for a reader: nothing stands behind the colon of `settings:` and `caller:`."""
    return uri.removesuffix(":")


def lowest_trust(trusts: Iterable[Trust]) -> Trust:
    """Whose word a text is that was made from several: that of the one who is trusted least."""
    return max(trusts, key=TRUSTS.index, default="user")
