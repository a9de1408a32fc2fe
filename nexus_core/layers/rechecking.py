"""Asks again whether a server may be started, right before it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import SETTING
from nexus_core.files.places import workspace_of
from nexus_core.layers.servers import entries_in
from nexus_core.trust.fingerprint import server_content
from nexus_core.trust.store import TrustStore

if TYPE_CHECKING:
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.request import Request
    from nexus_core.values.servers import MCPServerWithOrigin
    from nexus_core.values.trust import Decision


def decide_again(server: MCPServerWithOrigin, loaded: Loaded, request: Request) -> Decision:
    """What the user has decided about a server as it is at this moment.

    Since it was loaded, the files that its command names may have been exchanged, and the user may have thought better
    of it. The user's own servers are always allowed.

    Args:
        server: One of `loaded.servers`.
        loaded: What was loaded.
        request: For what it was loaded.
    """
    name = server.config.name
    for config in loaded.configs:
        if config.layer is None or config.path != server.source_path or config.layer.name != server.origin:
            continue
        if config.layer.is_own:
            return "allowed"
        key = (config.path.resolve(), pointer_to(f"/{SETTING}", name))
        part = next((part for part in loaded.active if (part.path, part.pointer) == key), None)
        entry = next((each for each in entries_in(config.settings) if each.get("name") == name), None)
        if part is None or entry is None:
            continue
        store = TrustStore(request.home, workspace=workspace_of(request.cwd))
        return store.decide(replace(part, content=server_content(entry, config.layer.project)))
    return "pending"
