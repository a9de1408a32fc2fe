"""Approvals of MCP servers and other programs, checked again before a start."""

from __future__ import annotations

import os
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.pointers import SERVERS, pointer_to
from nexus_core.files.places import find_home_repository, find_workspace
from nexus_core.layers.mcp import list_server_entries
from nexus_core.text.safety import one_line
from nexus_core.trust.coverage import describe_uncovered_code, digest_code_stats
from nexus_core.trust.fingerprint import build_server_content, runs_project_code
from nexus_core.trust.store import TrustStore
from nexus_core.types.base import dataclass
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.mcp import ActiveSetting, MCPServerWithOrigin, TrustDecision
    from nexus_core.types.request import Request


def _always_holds() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ServerApproval:
    """The user's decision about a server as it is now.

    Attributes:
        decision: The decision; every byte of the code that it covers has been read for it.
        variables: Environment variables that keep Python from running code that was not approved.
        still_holds: Returns True if nothing has changed since: no byte differs, and no file was swapped and put back.
    """

    decision: TrustDecision
    variables: dict[str, str] = field(default_factory=dict)
    still_holds: Callable[[], bool] = _always_holds


def clear_for_start(server: MCPServerWithOrigin, loaded: LoadedLayers, request: Request) -> ServerApproval:
    """Return the user's decision about a server as it is at this moment.

    Since it was loaded, its code may have been replaced, and the user may have changed the decision. The user's own
    servers are always allowed.

    Args:
        server: One of `loaded.servers`.
        loaded: The loaded layers.
        request: The request they were loaded for.
    """
    name = server.config.name
    for config in loaded.configs:
        if config.layer is None or config.path != server.source_path or config.layer.name != server.origin:
            continue
        if config.layer.is_own:
            return ServerApproval("allowed")
        key = (config.path.resolve(), pointer_to(f"/{SERVERS}", name))
        part = next((part for part in loaded.active if (part.path, part.pointer) == key), None)
        entry = next((each for each in list_server_entries(config.settings) if each.get("name") == name), None)
        if part is None or entry is None:
            continue
        take_snapshot = partial(_take_snapshot, part, entry, config.layer.project, request)
        found = take_snapshot()
        return ServerApproval(
            found.decision,
            _build_safe_variables(found.content, request.home),
            partial(_is_unchanged, take_snapshot, found),
        )
    return ServerApproval("pending")


class _ApprovalSnapshot(NamedTuple):
    decision: TrustDecision
    content: str
    signature: str


def _take_snapshot(part: ActiveSetting, entry: dict[str, Any], project: Path, request: Request) -> _ApprovalSnapshot:
    content = build_server_content(entry, project)
    signature = digest_code_stats(content)  # first, so that it detects changes made while bytes are read
    store = TrustStore(request.home, workspace=find_workspace(request.cwd))
    return _ApprovalSnapshot(store.decide(replace(part, content=content), is_fresh=True), content, signature)


def _is_unchanged(take_snapshot: Callable[[], _ApprovalSnapshot], before: _ApprovalSnapshot) -> bool:
    return take_snapshot() == before


def _build_safe_variables(content: str, home: Path) -> dict[str, str]:
    """Return the variables that keep Python from running code that no approval covers.

    Bytecode beside a module may be another program than the module, so the cache is moved elsewhere. And modules in the
    directory of the project are for servers that run code of the project: those of all others are installed elsewhere.
    """
    if not runs_project_code(content):
        return {"PYTHONSAFEPATH": "1"}
    if find_home_repository(home) is not None:  # no directory is out of the repository's reach
        return {"PYTHONPYCACHEPREFIX": os.path.join(os.devnull, "none"), "PYTHONDONTWRITEBYTECODE": "1"}  # noqa: PTH118
    return {"PYTHONPYCACHEPREFIX": str(home / "bytecode")}


def recheck_trust(server: MCPServerWithOrigin, loaded: LoadedLayers, request: Request) -> TrustDecision:
    """Return the decision of `clear_for_start`, for callers that start nothing."""
    return clear_for_start(server, loaded, request).decision


def find_unapproved_code(loaded: LoadedLayers, request: Request) -> Iterator[Finding]:
    """Yield findings for approved code that has changed, and for code that an approval does not cover.

    Loading skips the directories of code, because reading them is slow.
    """
    allowed = [part for part in loaded.active if part.decision == "allowed"]
    store = TrustStore(request.home, workspace=find_workspace(request.cwd))
    for part in allowed:
        if store.decide(part) == "changed":
            message = f"the code of {one_line(part.pointer)} has changed since you approved it, so it will not start"
            hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
            yield Finding("unapproved", f"{message}; {hint}", part.path, part.line)
        if uncovered := describe_uncovered_code(store.approved_content(part) or ""):
            message = f"your approval of {one_line(part.pointer)} does not cover everything: {one_line(uncovered)}"
            yield Finding("uncovered-code", message, part.path, part.line)
