"""Asks again whether a server may be started, right before it is; and once more when it has been."""

from __future__ import annotations

import os
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import SETTING
from nexus_core.files.places import home_repository, workspace_of
from nexus_core.layers.servers import entries_in
from nexus_core.trust.coverage import describe_uncovered, sign
from nexus_core.trust.fingerprint import one_line, runs_own_code, server_content
from nexus_core.trust.store import TrustStore
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nexus_core.values.loaded import Loaded
    from nexus_core.values.request import Request
    from nexus_core.values.servers import MCPServerWithOrigin
    from nexus_core.values.trust import ActivePart, Decision


def _is_own() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ServerApproval:
    """Decision of the user about a server as it is now.

    Attributes:
        decision: The decision; every byte of the code that it covers has been read for it.
        variables: Environment variables that keep Python from code that was not approved.
        still_holds: Tells whether all of it is as it was: no byte is another, and nothing was exchanged and put back.
    """

    decision: Decision
    variables: dict[str, str] = field(default_factory=dict)
    still_holds: Callable[[], bool] = _is_own


def clear_for_start(server: MCPServerWithOrigin, loaded: Loaded, request: Request) -> ServerApproval:
    """What the user has decided about a server as it is at this moment.

    Since it was loaded, its code may have been exchanged, and the user may have thought better of it. The user's own
    servers are always allowed.

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
            return ServerApproval("allowed")
        key = (config.path.resolve(), pointer_to(f"/{SETTING}", name))
        part = next((part for part in loaded.active if (part.path, part.pointer) == key), None)
        entry = next((each for each in entries_in(config.settings) if each.get("name") == name), None)
        if part is None or entry is None:
            continue
        look = partial(_look, part, entry, config.layer.project, request)
        found = look()
        return ServerApproval(
            found.decision, _safe_variables(found.content, request.home), partial(_is_same, look, found)
        )
    return ServerApproval("pending")


class _Look(NamedTuple):
    decision: Decision
    content: str
    signature: str


def _look(part: ActivePart, entry: dict[str, Any], project: Path, request: Request) -> _Look:
    content = server_content(entry, project)
    signature = sign(content)  # first, so that it tells of whatever happens while bytes are read
    store = TrustStore(request.home, workspace=workspace_of(request.cwd))
    return _Look(store.decide(replace(part, content=content), is_fresh=True), content, signature)


def _is_same(look: Callable[[], _Look], before: _Look) -> bool:
    return look() == before


def _safe_variables(content: str, home: Path) -> dict[str, str]:
    """The variables that keep Python from what no approval covers.

    Bytecode beside a module may be another program than the module, so it is kept elsewhere. And modules in the
    directory of the project are for servers that run code of the project: those of all others are installed elsewhere.
    """
    if not runs_own_code(content):
        return {"PYTHONSAFEPATH": "1"}
    if home_repository(home) is not None:  # no place is out of reach
        return {"PYTHONPYCACHEPREFIX": os.path.join(os.devnull, "none"), "PYTHONDONTWRITEBYTECODE": "1"}  # noqa: PTH118
    return {"PYTHONPYCACHEPREFIX": str(home / "bytecode")}


def decide_again(server: MCPServerWithOrigin, loaded: Loaded, request: Request) -> Decision:
    """The decision of `clear_for_start`, for those who start nothing."""
    return clear_for_start(server, loaded, request).decision


def find_code_faults(loaded: Loaded, request: Request) -> Iterator[Finding]:
    """Return a finding for approved code that has changed, and for what an approval does not cover.

    A load leaves out the directories of code, which take long to look at.
    """
    allowed = [part for part in loaded.active if part.decision == "allowed"]
    store = TrustStore(request.home, workspace=workspace_of(request.cwd))
    for part in allowed:
        if store.decide(part) == "changed":
            message = f"the code of {one_line(part.pointer)} has changed since you approved it, so it will not start"
            hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
            yield Finding("unapproved", f"{message}; {hint}", part.path, part.line)
        if uncovered := describe_uncovered(store.approved_content(part) or ""):
            message = f"your approval of {one_line(part.pointer)} does not cover everything: {one_line(uncovered)}"
            yield Finding("uncovered-code", message, part.path, part.line)
