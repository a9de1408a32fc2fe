"""Helpers for plugins that provide a dialect: the message format of an API.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.dialects.calls import assign_call_ids, parse_arguments
    from nexus_core.dialects.calls import get_call_arguments as call_arguments
    from nexus_core.dialects.fields import describe_json_value as json_kind
    from nexus_core.dialects.fields import get_provider_fields as provider_fields
    from nexus_core.dialects.fields import prefix_error_path as at_path
    from nexus_core.dialects.fields import to_json_dict, with_metadata
    from nexus_core.dialects.media import build_media_placeholder as media_note
    from nexus_core.dialects.media import parse_data_url as inline_data
    from nexus_core.dialects.registry import ApiDialect, Outline
    from nexus_core.dialects.requests import read_each
    from nexus_core.types.api import BEFORE_MESSAGES as BEFORE_MESSAGES  # noqa: PLC0414 - a type or a number, and not in __all__
    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import Conversation, Reply
    from nexus_core.types.messages import Stop as Stop  # noqa: PLC0414 - a type or a number, and not in __all__

_HOMES = {
    "ApiDialect": "nexus_core.dialects.registry:ApiDialect",
    "ApiRules": "nexus_core.types.api:ApiRules",
    "BEFORE_MESSAGES": "nexus_core.types.api:BEFORE_MESSAGES",
    "Conversation": "nexus_core.types.messages:Conversation",
    "Outline": "nexus_core.dialects.registry:Outline",
    "Reply": "nexus_core.types.messages:Reply",
    "Stop": "nexus_core.types.messages:Stop",
    "assign_call_ids": "nexus_core.dialects.calls:assign_call_ids",
    "at_path": "nexus_core.dialects.fields:prefix_error_path",
    "call_arguments": "nexus_core.dialects.calls:get_call_arguments",
    "inline_data": "nexus_core.dialects.media:parse_data_url",
    "json_kind": "nexus_core.dialects.fields:describe_json_value",
    "media_note": "nexus_core.dialects.media:build_media_placeholder",
    "parse_arguments": "nexus_core.dialects.calls:parse_arguments",
    "provider_fields": "nexus_core.dialects.fields:get_provider_fields",
    "read_each": "nexus_core.dialects.requests:read_each",
    "to_json_dict": "nexus_core.dialects.fields:to_json_dict",
    "with_metadata": "nexus_core.dialects.fields:with_metadata",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "ApiDialect",
    "ApiRules",
    "Conversation",
    "Outline",
    "Reply",
    "assign_call_ids",
    "at_path",
    "call_arguments",
    "inline_data",
    "json_kind",
    "media_note",
    "parse_arguments",
    "provider_fields",
    "read_each",
    "to_json_dict",
    "with_metadata",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
