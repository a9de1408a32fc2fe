"""Helpers for plugins that pass on text: hidden characters, markers and secrets.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.rendering import render_system
    from nexus_core.text.front_matter import MAX_HEAD_CHARACTERS as MAX_HEAD_CHARACTERS  # noqa: PLC0414 - a type or a number, and not in __all__
    from nexus_core.text.front_matter import FlowValue as FlowValue  # noqa: PLC0414 - a type or a number, and not in __all__
    from nexus_core.text.front_matter import FrontMatterError, read_front_matter
    from nexus_core.text.safety import (
        escape_markers,
        neutralize,
        one_line,
        strip_hidden,
        unescape_markers,
        visible,
        visible_line,
    )
    from nexus_core.text.secrets import (
        completable_names,
        hide_secrets,
        is_variable_name,
        names_secret,
        redact_json,
        secrets_in,
    )
    from nexus_core.tokens.tokenizers import cut_pieces

_HOMES = {
    "FlowValue": "nexus_core.text.front_matter:FlowValue",
    "FrontMatterError": "nexus_core.text.front_matter:FrontMatterError",
    "MAX_HEAD_CHARACTERS": "nexus_core.text.front_matter:MAX_HEAD_CHARACTERS",
    "completable_names": "nexus_core.text.secrets:completable_names",
    "cut_pieces": "nexus_core.tokens.tokenizers:cut_pieces",
    "escape_markers": "nexus_core.text.safety:escape_markers",
    "hide_secrets": "nexus_core.text.secrets:hide_secrets",
    "is_variable_name": "nexus_core.text.secrets:is_variable_name",
    "names_secret": "nexus_core.text.secrets:names_secret",
    "neutralize": "nexus_core.text.safety:neutralize",
    "one_line": "nexus_core.text.safety:one_line",
    "read_front_matter": "nexus_core.text.front_matter:read_front_matter",
    "redact_json": "nexus_core.text.secrets:redact_json",
    "render_system": "nexus_core.rendering:render_system",
    "secrets_in": "nexus_core.text.secrets:secrets_in",
    "strip_hidden": "nexus_core.text.safety:strip_hidden",
    "unescape_markers": "nexus_core.text.safety:unescape_markers",
    "visible": "nexus_core.text.safety:visible",
    "visible_line": "nexus_core.text.safety:visible_line",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "FrontMatterError",
    "completable_names",
    "cut_pieces",
    "escape_markers",
    "hide_secrets",
    "is_variable_name",
    "names_secret",
    "neutralize",
    "one_line",
    "read_front_matter",
    "redact_json",
    "render_system",
    "secrets_in",
    "strip_hidden",
    "unescape_markers",
    "visible",
    "visible_line",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
