"""Helpers for plugins that read and write files safely.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.config.load import read_layer_json, read_layer_text
    from nexus_core.files.places import (
        defaults_directory,
        file_in,
        find_repository,
        find_repository_root,
        has_untrusted_owner,
        is_outside_path,
        parent_levels,
        trusted_owners,
    )
    from nexus_core.files.read import LayerReader, read_bytes, real_path
    from nexus_core.files.write import directory_lock, file_lock, make_directories, write_text_atomically
    from nexus_core.types.layers import Piece

_HOMES = {
    "LayerReader": "nexus_core.files.read:LayerReader",
    "Piece": "nexus_core.types.layers:Piece",
    "defaults_directory": "nexus_core.files.places:defaults_directory",
    "directory_lock": "nexus_core.files.write:directory_lock",
    "file_in": "nexus_core.files.places:file_in",
    "file_lock": "nexus_core.files.write:file_lock",
    "find_repository": "nexus_core.files.places:find_repository",
    "find_repository_root": "nexus_core.files.places:find_repository_root",
    "has_untrusted_owner": "nexus_core.files.places:has_untrusted_owner",
    "is_outside_path": "nexus_core.files.places:is_outside_path",
    "make_directories": "nexus_core.files.write:make_directories",
    "parent_levels": "nexus_core.files.places:parent_levels",
    "read_bytes": "nexus_core.files.read:read_bytes",
    "read_layer_json": "nexus_core.config.load:read_layer_json",
    "read_layer_text": "nexus_core.config.load:read_layer_text",
    "real_path": "nexus_core.files.read:real_path",
    "trusted_owners": "nexus_core.files.places:trusted_owners",
    "write_text_atomically": "nexus_core.files.write:write_text_atomically",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "LayerReader",
    "Piece",
    "defaults_directory",
    "directory_lock",
    "file_in",
    "file_lock",
    "find_repository",
    "find_repository_root",
    "has_untrusted_owner",
    "is_outside_path",
    "make_directories",
    "parent_levels",
    "read_bytes",
    "read_layer_json",
    "read_layer_text",
    "real_path",
    "trusted_owners",
    "write_text_atomically",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
