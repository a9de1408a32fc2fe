"""What another tool would do otherwise than Nexus with a server that is exported to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_plugins.mcp._files.dialects import DIALECTS, FIELDS, WITHOUT_CWD
from nexus_plugins.mcp._files.references import WITHOUT_DEFAULTS, foreign_references_in, references_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import MCPServerConfig


PLACES = {
    "vscode": frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}),
    "cursor": frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}),
}
"""The places that a tool looks up itself."""


def find_losses(server: MCPServerConfig, target: str, entry: dict[str, Any]) -> Iterator[str]:
    """The differences, in words; none for Nexus itself.

    Args:
        server: The server.
        target: The tool.
        entry: What is written about the server for that tool.
    """
    if target != "nexus":
        yield from _unknown_fields(server, target)
        yield from _unknown_references(server, target, entry)


def _unknown_fields(server: MCPServerConfig, target: str) -> Iterator[str]:
    tool, name = DIALECTS[target].tool, server.name
    set_fields = {field for field in FIELDS["nexus"] if getattr(server, field) not in (None, "", ())}
    unknown = set_fields - FIELDS[target].keys()
    if not server.enabled and target in {"claude", "vscode", "cursor"}:
        yield f"{tool} has no 'enabled' in this file: it would start {name!r}"
    if unknown & {"include_tools", "exclude_tools"} or (
        server.include_tools == () and "include_tools" not in FIELDS[target]
    ):
        yield f"{tool} has no choice of tools in this file: it would offer all of {name!r}"
    if unknown & {"start_timeout", "call_timeout"}:
        yield f"{tool} has limits of its own for {name!r}"
    if "env_file" in unknown:
        yield f"{tool} does not read the variables of {name!r} from a file"
    if server.cwd and target in WITHOUT_CWD:
        yield f"{tool} has no 'cwd' in this file: it would start {name!r} where it runs itself"
    if server.type == "sse" and target == "codex":
        yield f"Codex does not speak with {name!r}, which is an event stream"


def _unknown_references(server: MCPServerConfig, target: str, entry: dict[str, Any]) -> Iterator[str]:
    references = list(references_in(json.dumps(entry)))
    if target == "codex":
        if references:
            yield f"Codex does not look up the references in {server.name!r}"
        return
    tool = DIALECTS[target].tool
    places = [each.name for each in references if each.kind == "place" and each.name not in PLACES.get(target, ())]
    if places:
        named = ", ".join(f"${{{name}}}" for name in dict.fromkeys(places))
        yield f"{tool} does not look up {named} in {server.name!r}"
    words = (*server.command, server.url)
    if target in WITHOUT_DEFAULTS and any(each.default for word in words for each in references_in(word)):
        yield f"{tool} knows no defaults: a variable must be set where it starts {server.name!r}"
    own = sorted({each for word in words for each in foreign_references_in(word, target)})
    if own:
        yield f"{tool} would look up {', '.join(own)} in {server.name!r}, which means just that in Nexus"
