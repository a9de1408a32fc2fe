"""Helpers for plugins with settings, MCP servers or programs that need approval.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.config.addresses import find_address_error, get_authority, get_host, is_encrypted
    from nexus_core.config.durations import require_seconds
    from nexus_core.config.edit import remove_value, set_value
    from nexus_core.config.load import JsonDocument, setting_error
    from nexus_core.config.pointers import pointer_to
    from nexus_core.config.schema import StrictModel
    from nexus_core.config.secrets import SecretReplacer as SecretReferences
    from nexus_core.config.servers import normalize_servers
    from nexus_core.layers.approval import clear_for_start, recheck_trust
    from nexus_core.layers.explain import explain
    from nexus_core.trust.coverage import is_unchanged
    from nexus_core.trust.fingerprint import canonical, describe_server
    from nexus_core.types.mcp import MCPServerConfig, MCPServerWithOrigin

_HOMES = {
    "JsonDocument": "nexus_core.config.load:JsonDocument",
    "MCPServerConfig": "nexus_core.types.mcp:MCPServerConfig",
    "MCPServerWithOrigin": "nexus_core.types.mcp:MCPServerWithOrigin",
    "SecretReferences": "nexus_core.config.secrets:SecretReplacer",
    "StrictModel": "nexus_core.config.schema:StrictModel",
    "canonical": "nexus_core.trust.fingerprint:canonical",
    "clear_for_start": "nexus_core.layers.approval:clear_for_start",
    "describe_server": "nexus_core.trust.fingerprint:describe_server",
    "explain": "nexus_core.layers.explain:explain",
    "find_address_error": "nexus_core.config.addresses:find_address_error",
    "get_authority": "nexus_core.config.addresses:get_authority",
    "get_host": "nexus_core.config.addresses:get_host",
    "is_encrypted": "nexus_core.config.addresses:is_encrypted",
    "is_unchanged": "nexus_core.trust.coverage:is_unchanged",
    "normalize_servers": "nexus_core.config.servers:normalize_servers",
    "require_seconds": "nexus_core.config.durations:require_seconds",
    "pointer_to": "nexus_core.config.pointers:pointer_to",
    "recheck_trust": "nexus_core.layers.approval:recheck_trust",
    "remove_value": "nexus_core.config.edit:remove_value",
    "set_value": "nexus_core.config.edit:set_value",
    "setting_error": "nexus_core.config.load:setting_error",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "JsonDocument",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "SecretReferences",
    "StrictModel",
    "canonical",
    "clear_for_start",
    "describe_server",
    "explain",
    "find_address_error",
    "get_authority",
    "get_host",
    "is_encrypted",
    "is_unchanged",
    "normalize_servers",
    "pointer_to",
    "recheck_trust",
    "remove_value",
    "require_seconds",
    "set_value",
    "setting_error",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
