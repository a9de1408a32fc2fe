"""`nexus mcp list|tools`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core import NexusError
from nexus_core.plugin import describe_server, hide_secrets, one_line, visible_line
from nexus_plugins.mcp._cli.options import Json, Lenient, Names, app, chosen, in_one_line, look
from nexus_plugins.mcp._telling.names import tool_name
from nexus_plugins.mcp._telling.records import Definition, read_record
from nexus_plugins.mcp._telling.shadows import shadow_of
from nexus_plugins.mcp._telling.table import usable_servers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.plugin import Loaded, MCPServerWithOrigin, Shell
    from nexus_plugins.mcp._telling.records import Record

LONGEST_SHOWN = 60  # characters of a description
MEANINGS = {
    "left out": "Tools that are left out are not offered to models, because the definition of their server says so.",
    "unusable": "Tools that are unusable are described by their server in a way that the protocol does not allow.",
    "withheld": "Tools that are withheld are new or have changed; `nexus mcp pin NAME` shows how, and approves them.",
}
"""What the less usual statuses of tools mean."""


@app.command("list", epilog="\b\nExamples:\n  nexus mcp list\n  nexus -C services/auth mcp list --json")
def list_servers(ctx: typer.Context, lenient: Lenient = False, json: Json = False) -> None:
    """List the servers here, where each is defined, and whether it may be started. None is."""
    shell: Shell = ctx.obj
    request, loaded = look(shell, lenient=lenient, thorough=True)
    usable = {server.config.name for server in usable_servers(request, loaded)}
    if json:
        described = [{**_describe(server), "usable": server.config.name in usable} for server in loaded.servers]
        shell.console.json({"schema": 1, "servers": described})
        return
    if not loaded.servers:
        shell.console.message("There are no servers here; `nexus mcp add` makes one.")
        return
    rows = [
        (one_line(server.config.name), server.config.type, server.origin, server.status, _would(server))
        for server in loaded.servers
    ]
    shell.console.table([("NAME", "TYPE", "ORIGIN", "STATUS", "WHAT"), *rows], styles=["bold"])
    if not usable:
        shell.console.message("No agent here gets any of them: permissions.level is stricter than 'trusted'.")
    if any(server.status == "not approved" for server in loaded.servers):
        shell.console.message("Decide with: nexus trust allow, nexus trust deny")
    for server in loaded.servers:
        if shadow := shadow_of(server):
            shell.console.warning(visible_line(f"{server.source_path}:{server.line}: {shadow}"))


@app.command(epilog="\b\nExamples:\n  nexus mcp tools\n  nexus mcp tools github --refresh --json")
def tools(
    ctx: typer.Context,
    names: Names = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Start the servers and ask them.")] = False,
    lenient: Lenient = False,
    json: Json = False,
) -> None:
    """List the tools of servers, by the names that a model calls them.

    Servers are started only if nothing is known of them yet, if what is known is old, or with --refresh.
    """
    shell: Shell = ctx.obj
    request, loaded = look(shell, lenient=lenient)
    servers = chosen(loaded, names)
    records = {server.config.name: _known(request.home, server) for server in servers}
    wanted = [server for server in servers if refresh or _is_old(records[server.config.name], loaded)]
    if wanted:
        from nexus_plugins.mcp._cli.running import ask_all  # noqa: PLC0415 - the SDK takes its time

        for answer in ask_all(request, loaded, wanted):
            records[answer.server] = answer.record or records[answer.server]
            if answer.error is not None:
                shell.console.warning(in_one_line(answer.error))
    known = [(server, record) for server in servers if (record := records[server.config.name])]
    rows = [row for server, record in known for row in _rows(server, record)]
    for server, record in known:
        _warn_of_names(shell, server, record)
    if json:
        shell.console.json({"schema": 1, "tools": rows})
    else:
        _print_tools(shell, rows)


def _print_tools(shell: Shell, rows: Sequence[Mapping[str, object]]) -> None:
    if not rows:
        shell.console.message("No tools are known here.")
        return
    table = [
        (row["name"], row["server"], row["status"], _short(str(row["reason"] or row["description"]))) for row in rows
    ]
    shell.console.table([("NAME", "SERVER", "STATUS", "DESCRIPTION"), *map(_texts, table)], styles=["bold"])
    for status, meaning in MEANINGS.items():
        if any(row["status"] == status for row in rows):
            shell.console.message(meaning)


def _texts(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(str, row))


def _warn_of_names(shell: Shell, server: MCPServerWithOrigin, record: Record) -> None:
    """Say which tools are named in what is written about a server, and are none of it."""
    config = server.config
    there = {each.name for each in record.current} | {each.name for each in record.unusable}
    for name in dict.fromkeys((*(config.include_tools or ()), *config.exclude_tools)):
        if name not in there:
            what = f"server {config.name!r} has no tool {name!r}, which is named there"
            shell.console.warning(visible_line(f"{server.source_path}:{server.line}: {what}"))


def _rows(server: MCPServerWithOrigin, record: Record) -> list[dict[str, object]]:
    name, offers = server.config.name, server.config.offers
    found = [(each, "usable" if offers(each.name) else "left out", "") for each in record.usable]
    found += [(each, "withheld", "") for each in record.withheld]
    found += [(Definition(each.name, "", {}), "unusable", each.reason) for each in record.unusable]
    return [
        {
            "name": tool_name(name, each.name),
            "server": name,
            "tool": each.name,
            "status": status,
            "reason": reason,
            "description": each.description,
            "parameters": dict(each.schema),
        }
        for each, status, reason in sorted(found, key=lambda row: row[0].name)
    ]


def _known(home: Path, server: MCPServerWithOrigin) -> Record | None:
    try:
        return read_record(home, server)
    except NexusError:  # damaged: it is asked again, and that fails with the reason
        return None


def _is_old(record: Record | None, loaded: Loaded) -> bool:
    hours = loaded.settings.get("plugins.mcp.refresh_hours", 24.0)
    age = time.time() - record.seen if record is not None else None
    return age is None or (isinstance(hours, int | float) and age > hours * 3600)


def _describe(server: MCPServerWithOrigin) -> dict[str, object]:
    config = server.config
    return {
        "name": config.name,
        "type": config.type,
        "origin": server.origin,
        "status": server.status,
        "path": str(server.source_path),
        "line": server.line,
        "what": _would(server),
        "env": sorted(config.env),
        "headers": sorted(config.headers),
        "include_tools": None if config.include_tools is None else list(config.include_tools),
        "exclude_tools": list(config.exclude_tools),
        "start_timeout": config.start_timeout,
        "call_timeout": config.call_timeout,
        "shadows": str(server.shadows) if server.shadows else None,
    }


def _would(server: MCPServerWithOrigin) -> str:
    config = server.config
    # All of it is shown when it is to be approved; a list is printed in passing.
    command, url = hide_secrets(config.command), hide_secrets([config.url])[0]
    return describe_server({"command": command, "url": url, "cwd": config.cwd or None, "env_file": config.env_file})


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}…"
