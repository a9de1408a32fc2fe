"""The commands `nexus mcp …`.

Only `test`, `call`, and `tools` for servers without a catalog, start servers. All servers end with the command.
"""

from __future__ import annotations

import json as json_module
import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast

import typer
from typer.core import TyperCommand

from nexus_core import ConfigError, MissingExtraError, NexusError, UnknownNameError, UsageError
from nexus_core.plugin import Layer, LayerConfig
from nexus_core.plugin.settings import SecretReferences, describe_server, recheck_trust, require_seconds
from nexus_core.plugin.text import completable_names, hide_secrets, one_line, visible_line
from nexus_plugins.mcp import SERVERS_FILE
from nexus_plugins.mcp._errors import ServerError, ServerRefusedError
from nexus_plugins.mcp._files import CLAUDE_HOME_FORMAT, EXPORT_TARGETS, FILE_FORMATS, NEXUS_FORMAT, detect_format
from nexus_plugins.mcp._section import describe_shadow, find_usable_servers
from nexus_plugins.mcp._tool_arguments import MAX_LINE_CHARACTERS, ToolArgument, format_arguments, list_arguments
from nexus_plugins.mcp._tools import ToolDefinition, approve_catalog, build_tool_name, read_catalog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from typer._click import Context  # private, but it is what the method we override is typed with

    from nexus_core import Request
    from nexus_core.plugin import CommandContext, LoadedLayers, SkippedFile
    from nexus_core.plugin.settings import MCPServerWithOrigin
    from nexus_plugins.mcp._connections import ToolOutcome
    from nexus_plugins.mcp._edit import ServerDefinitionFile
    from nexus_plugins.mcp._files import ServerFileFormat
    from nexus_plugins.mcp._launch import ServerLaunch
    from nexus_plugins.mcp._tools import ToolCatalog

__all__ = ["app"]

app = typer.Typer(
    help="Manage MCP servers and call their tools.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus mcp list\n  nexus mcp add --global time -- uvx mcp-server-time",
)


def complete_server_names(ctx: typer.Context) -> list[str]:
    """Return the names of the servers here, for shell completion."""
    return completable_names(server.config.name for server in load_servers(ctx.find_root().obj)[1].servers)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A server.", autocompletion=complete_server_names)]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Names of servers; default: all.", autocompletion=complete_server_names),
]
LenientOption = Annotated[bool, typer.Option("--lenient", help="Skip servers with invalid definitions.")]
GlobalOption = Annotated[bool, typer.Option("--global", help="Use your own mcp.json, not the project's.")]


def load_servers(cli: CommandContext, *, lenient: bool = False, thorough: bool = False) -> tuple[Request, LoadedLayers]:
    """Load the layers and servers of the working directory.

    Args:
        cli: The context of the command.
        lenient: True to skip servers with invalid definitions, with a warning, instead of failing.
        thorough: True to warn about every key of a server file that is not used.
    """
    with cli.nexus() as nexus:
        request = replace(nexus.request(), lenient=lenient)
        loaded = nexus.load(request)
    files = {config.path for config in loaded.configs if "mcp_servers" in config.settings} if thorough else set()
    for skipped in loaded.skipped:
        is_left_out = lenient and skipped.reason.endswith("the server is left out")
        if is_left_out or (skipped.path in files and skipped.line):
            cli.console.warning(visible_line(f"{skipped.place}: {skipped.reason}"))
    return request, loaded


def format_error_line(error: NexusError) -> str:
    """Return an error and its hint in one line."""
    return visible_line("; ".join(line.strip() for line in str(error).splitlines()))


def select_servers(loaded: LoadedLayers, names: Sequence[str] | None) -> list[MCPServerWithOrigin]:
    """Return the named servers, or without names, all that may be started."""
    if not names:
        return [server for server in loaded.servers if server.status == "enabled"]
    found = {server.config.name: server for server in loaded.servers}
    for name in names:
        if name not in found:
            raise UnknownNameError("server", name, found)
    return [found[name] for name in dict.fromkeys(names)]


T = TypeVar("T")
SIGNAL_EXIT_BASE = 128
"""Shells add this to the number of the signal that ended a program."""


def run_until_signal(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` in an event loop and return its result.

    SIGINT, SIGTERM and SIGHUP cancel it. Cancellation is awaited, because stopping servers takes a moment; a second
    Ctrl-C does not shorten that.

    Raises:
        KeyboardInterrupt: SIGINT arrived.
        typer.Exit: SIGTERM or SIGHUP arrived.
    """
    import anyio

    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return anyio.run(main)
    received: list[int] = []
    results: list[T] = []

    async def watched() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    async for number in signals:
                        received.append(number)
                        tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                results.append(await main())
                tasks.cancel_scope.cancel()

    try:
        anyio.run(watched)
    except BaseExceptionGroup as group:
        raise _unwrap_exception(group) from None
    if received and received[0] == signal.SIGINT:
        raise KeyboardInterrupt
    if received:
        raise typer.Exit(SIGNAL_EXIT_BASE + received[0])
    return results[0]


def _unwrap_exception(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SERVER_URL = re.compile(r"https?://[^\s/?#]\S*|\$\{.*")


class _AddCommand(TyperCommand):
    """The command `add`, with a hint for options that belong to the server's program."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments. An unknown option raises UsageError with a hint."""
        has_separator = "--" in args  # looked up first, because Typer consumes the list
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            option = getattr(error, "option_name", None)
            if has_separator or option is None or getattr(error, "possibilities", None):
                raise
            what = f"{option!r} is not an option of `nexus mcp add`"
            raise UsageError(what, hint="if it belongs to the program: nexus mcp add NAME -- COMMAND ARGS...") from None


@app.command(
    cls=_AddCommand,
    epilog="\b\nExamples:\n  nexus mcp add --global time -- uvx mcp-server-time\n"
    "  nexus mcp add docs --url https://docs.example/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'",
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the server.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="The program and its arguments.")
    ] = None,
    *,
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Connect to this address.")] = "",
    type_: Annotated[
        str, typer.Option("--type", metavar="http|sse", help="Protocol of the address; default: http.")
    ] = "",
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable; ${NAME} is resolved at start.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header; references as for --env.")
    ] = None,
    cwd: Annotated[str, typer.Option("--cwd", metavar="DIR", help="Start the program in DIR.")] = "",
    for_all: GlobalOption = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a server of that name.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Add a server to mcp.json.

    It is not started.
    """
    _require_command_or_url(name, command or [], url)
    if (header and command) or (url and (env or cwd)):
        raise UsageError(
            "--env and --cwd need a program, --header needs an address", hint="remove the option that does not apply"
        )
    entry: dict[str, Any] = {"command": command} if command else {"url": url}
    entry |= {"type": "sse"} if _uses_sse(type_, url) else {}
    tables = {"env": _parse_pairs(env, "--env", "="), "headers": _parse_pairs(header, "--header", "=:")}
    entry |= {key: value for key, value in tables.items() if value} | ({"cwd": cwd} if cwd else {})
    cli: CommandContext = ctx.obj
    path = find_servers_file(cli, for_all=for_all)
    file = _read_server_file(path)
    if name in file.servers and not force:
        raise UsageError(f"there is a server {name!r} already in {path}", hint="--force replaces it")
    save_server_file(cli, path, file.with_server(name, entry), own=for_all, dry_run=dry_run)
    warn_of_secrets(cli, entry)
    if not for_all and not dry_run:
        print_approval_hint(cli)


@app.command(epilog="\b\nExamples:\n  nexus mcp remove time\n  nexus mcp remove --global time --dry-run")
def remove(
    ctx: typer.Context, name: NameArgument, for_all: GlobalOption = False, dry_run: DryRunOption = False
) -> None:
    """Remove a server from its file."""
    cli: CommandContext = ctx.obj
    path, own = _find_definition(cli, name, for_all=for_all)
    save_server_file(cli, path, _read_server_file(path).without_server(name), own=own, dry_run=dry_run)


@app.command(epilog="\b\nExamples:\n  nexus mcp enable time\n  nexus mcp enable --global time")
def enable(
    ctx: typer.Context, name: NameArgument, for_all: GlobalOption = False, dry_run: DryRunOption = False
) -> None:
    """Enable a server in its file."""
    _set_enabled(ctx.obj, name, for_all=for_all, dry_run=dry_run, on=True)


@app.command(epilog="\b\nExamples:\n  nexus mcp disable time\n  nexus mcp disable --global time")
def disable(
    ctx: typer.Context, name: NameArgument, for_all: GlobalOption = False, dry_run: DryRunOption = False
) -> None:
    """Disable a server in its file.

    It stays listed.
    """
    _set_enabled(ctx.obj, name, for_all=for_all, dry_run=dry_run, on=False)


def find_servers_file(cli: CommandContext, *, for_all: bool) -> Path:
    """Return the path of the user's mcp.json if `for_all`, else of the project's."""
    with cli.nexus() as nexus:
        return nexus.home / SERVERS_FILE if for_all else nexus.cwd / ".nexus3" / SERVERS_FILE


def save_server_file(cli: CommandContext, path: Path, text: str, *, own: bool, dry_run: bool) -> None:
    """Write a server file and print its path. A dry run only names it."""
    if dry_run:
        cli.console.message(f"Dry run: {visible_line(str(path))} would be written.")
        return
    from nexus_plugins.mcp._edit import write_server_file

    write_server_file(path, text, own=own)
    cli.console.text(visible_line(str(path)))


def warn_of_secrets(cli: CommandContext, entry: Mapping[str, Any]) -> None:
    """Warn of secrets that a server definition holds as plain text."""
    for what in dict.fromkeys(secret.what for secret in SecretReferences().find("", entry)):
        cli.console.warning(
            visible_line(f"{what} is written out in the file; a reference such as ${{NAME}} would keep it out")
        )


def print_approval_hint(cli: CommandContext) -> None:
    """Print that servers of a project need approval."""
    cli.console.message("Servers of a project are started only after `nexus trust allow`.")


def _read_server_file(path: Path) -> ServerDefinitionFile:
    from nexus_plugins.mcp._edit import read_server_file

    return read_server_file(path)


def _set_enabled(cli: CommandContext, name: str, *, for_all: bool, dry_run: bool, on: bool) -> None:
    path, own = _find_definition(cli, name, for_all=for_all)
    save_server_file(cli, path, _read_server_file(path).with_enabled(name, on=on), own=own, dry_run=dry_run)


def _find_definition(cli: CommandContext, name: str, *, for_all: bool) -> tuple[Path, bool]:
    """Return the file that defines a server, and True if it belongs to the user."""
    _, loaded = load_servers(cli)
    servers: Iterable[MCPServerWithOrigin] = loaded.servers
    own = {layer.name for layer in loaded.layers if layer.is_own}
    if for_all:
        return find_servers_file(cli, for_all=True), True
    found = {server.config.name: server for server in servers}
    if name not in found:
        raise UnknownNameError("server", name, found)
    return found[name].source_path, found[name].origin in own


def _require_command_or_url(name: str, command: Sequence[str], url: str) -> None:
    """Raise UsageError unless there is a name and either a command or a URL."""
    if not name.strip():
        raise UsageError("a server needs a name", hint="nexus mcp add NAME -- COMMAND ARGS...")
    if bool(command and command[0].strip()) == bool(url):
        raise UsageError("a server has either a command or an address", hint="-- COMMAND ARGS..., or --url URL")
    if _URL.match(command[0] if command else ""):
        shown = hide_secrets([command[0]])[0]
        raise UsageError("this is an address, not a program", hint=f"nexus mcp add {name} --url {shown}")
    if url and not _SERVER_URL.fullmatch(url):
        raise UsageError("this is not the address of a server", hint="--url https://…")


def _uses_sse(type_: str, url: str) -> bool:
    """Return True if `--type` asks for SSE, the older protocol."""
    if type_ and (type_ not in {"http", "sse"} or not url):
        raise UsageError("--type must be http or sse, and needs --url", hint="--url https://… --type sse")
    return type_ == "sse"


def _parse_pairs(given: list[str] | None, option: str, separators: str) -> dict[str, str]:
    """Split each text at its first separator: `TOKEN=value`, and for headers also `Name: value`."""
    pairs: dict[str, str] = {}
    for each in given or ():
        match = re.fullmatch(f"([^{separators}\\s]+)\\s*[{separators}](.*)", each, re.DOTALL)
        if match is None:
            example = "'Authorization=Bearer ${TOKEN}'" if ":" in separators else "'TOKEN=${TOKEN}'"
            raise UsageError(f"{option} needs NAME=VALUE", hint=f"{option} {example}")
        pairs[match[1]] = match[2].lstrip() if ":" in separators else match[2]
    return pairs


MAX_DESCRIPTION_CHARACTERS = 60
STATUS_EXPLANATIONS = {
    "left out": "Tools that are left out are not offered to models, because the definition of their server says so.",
    "unusable": "Tools that are unusable are described by their server in a way that the protocol does not allow.",
    "withheld": "Tools that are withheld are new or changed; `nexus mcp approve NAME` shows how, and approves them.",
}
"""Explanations of the statuses other than usable."""


@app.command("list", epilog="\b\nExamples:\n  nexus mcp list\n  nexus -C services/auth mcp list --json")
def list_servers(ctx: typer.Context, lenient: LenientOption = False, json: JsonOption = False) -> None:
    """List MCP servers and whether they are approved.

    The list says where each is defined. Starts none.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli, lenient=lenient, thorough=True)
    usable = {server.config.name for server in find_usable_servers(request, loaded)}
    if json:
        described = [
            {**_describe_definition(server), "usable": server.config.name in usable} for server in loaded.servers
        ]
        cli.console.json({"schema": 1, "servers": described})
        return
    if not loaded.servers:
        cli.console.message("There are no servers here; `nexus mcp add` makes one.")
        return
    rows = [
        (one_line(server.config.name), server.config.type, server.origin, server.status, _describe_launch(server))
        for server in loaded.servers
    ]
    cli.console.table([("NAME", "TYPE", "ORIGIN", "STATUS", "WHAT"), *rows], styles=["bold"])
    if not usable:
        cli.console.message("No agent here gets any of them: permissions.level is stricter than 'trusted'.")
    if any(server.status == "not approved" for server in loaded.servers):
        cli.console.message("Decide with: nexus trust allow, nexus trust deny")
    for server in loaded.servers:
        if shadow := describe_shadow(server):
            cli.console.warning(visible_line(f"{server.source_path}:{server.line}: {shadow}"))


@app.command(epilog="\b\nExamples:\n  nexus mcp tools\n  nexus mcp tools github --refresh --json")
def tools(
    ctx: typer.Context,
    names: NamesArgument = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Start the servers and ask again.")] = False,
    lenient: LenientOption = False,
    json: JsonOption = False,
) -> None:
    """List the tools of MCP servers.

    They are listed by the names that a model calls them, each with its arguments: name, type, whether it is required,
    and what it is for. Servers are started only if nothing is known of them yet, if
    what is known is old, or with --refresh.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli, lenient=lenient)
    servers = select_servers(loaded, names)
    catalogs = {server.config.name: _read_known_catalog(request.home, server) for server in servers}
    wanted = [server for server in servers if refresh or _is_outdated(catalogs[server.config.name], loaded)]
    if wanted:
        for answer in fetch_catalogs(request, loaded, wanted):
            catalogs[answer.server] = answer.catalog or catalogs[answer.server]
            if answer.error is not None:
                cli.console.warning(format_error_line(answer.error))
    _note_waiting_servers(cli, loaded.servers if not names else [])
    known = [(server, catalog) for server in servers if (catalog := catalogs[server.config.name])]
    rows = [row for server, catalog in known for row in _build_tool_rows(server, catalog)]
    for server, catalog in known:
        _warn_of_unknown_tools(cli, server, catalog)
    if json:
        cli.console.json({"schema": 1, "tools": rows})
    else:
        _print_tools(cli, rows)


def _note_waiting_servers(cli: CommandContext, servers: Iterable[MCPServerWithOrigin]) -> None:
    """Print the servers that are not approved, and the command that approves them."""
    waiting = [one_line(server.config.name) for server in servers if server.status == WAITING_STATUS]
    if waiting:
        cli.console.message(f"Not approved, so not asked: {', '.join(waiting)}. `nexus trust allow` approves them.")


def _print_tools(cli: CommandContext, rows: Sequence[Mapping[str, object]]) -> None:
    if not rows:
        cli.console.message("No tools are known here.")
        return
    for number, row in enumerate(rows):
        if number:
            cli.console.text("")
        status = "" if row["status"] == "usable" else f", {row['status']}"
        _print_wrapped(cli, f"{row['name']} (server {row['server']}{status})", "")
        _print_wrapped(cli, _shorten_description(str(row["reason"] or row["description"])), "  ")
        arguments = cast("list[dict[str, Any]]", row["arguments"])
        for line in format_arguments([ToolArgument(**each) for each in arguments]):
            cli.console.text(line)
    for status, meaning in STATUS_EXPLANATIONS.items():
        if any(row["status"] == status for row in rows):
            cli.console.message(meaning)


def _print_wrapped(cli: CommandContext, text: str, indent: str) -> None:
    for line in wrap(one_line(text), MAX_LINE_CHARACTERS - len(indent), break_on_hyphens=False):
        cli.console.text(f"{indent}{line}")


def _warn_of_unknown_tools(cli: CommandContext, server: MCPServerWithOrigin, catalog: ToolCatalog) -> None:
    """Warn of tool names in a server definition that the server does not have."""
    config = server.config
    listed = {each.name for each in catalog.current} | {each.name for each in catalog.unusable}
    for name in dict.fromkeys((*(config.include_tools or ()), *config.exclude_tools)):
        if name not in listed:
            what = f"server {config.name!r} has no tool {name!r}, which its definition names"
            cli.console.warning(visible_line(f"{server.source_path}:{server.line}: {what}"))


def _build_tool_rows(server: MCPServerWithOrigin, catalog: ToolCatalog) -> list[dict[str, object]]:
    name, offers = server.config.name, server.config.offers
    found = [(each, "usable" if offers(each.name) else "left out", "") for each in catalog.usable]
    found += [(each, "withheld", "") for each in catalog.withheld]
    found += [(ToolDefinition(each.name, "", {}), "unusable", each.reason) for each in catalog.unusable]
    return [
        {
            "name": build_tool_name(name, each.name),
            "server": name,
            "tool": each.name,
            "status": status,
            "reason": reason,
            "description": each.description,
            "arguments": [argument._asdict() for argument in list_arguments(each.schema)],
            "parameters": dict(each.schema),
        }
        for each, status, reason in sorted(found, key=lambda row: row[0].name)
    ]


def _read_known_catalog(home: Path, server: MCPServerWithOrigin) -> ToolCatalog | None:
    try:
        return read_catalog(home, server)
    except NexusError:  # damaged: fetching the catalog reports why
        return None


def _is_outdated(catalog: ToolCatalog | None, loaded: LoadedLayers) -> bool:
    hours = loaded.settings.get("plugins.mcp.refresh_hours", 24.0)
    age = time.time() - catalog.seen if catalog is not None else None
    return age is None or (isinstance(hours, int | float) and age > hours * 3600)


def _describe_definition(server: MCPServerWithOrigin) -> dict[str, object]:
    config = server.config
    return {
        "name": config.name,
        "type": config.type,
        "origin": server.origin,
        "status": server.status,
        "path": str(server.source_path),
        "line": server.line,
        "what": _describe_launch(server),
        "env": sorted(config.env),
        "headers": sorted(config.headers),
        "include_tools": None if config.include_tools is None else list(config.include_tools),
        "exclude_tools": list(config.exclude_tools),
        "start_timeout": config.start_timeout,
        "call_timeout": config.call_timeout,
        "shadows": str(server.shadows) if server.shadows else None,
    }


def _describe_launch(server: MCPServerWithOrigin) -> str:
    config = server.config
    # `nexus trust allow` shows all of it; a list is printed in passing and must not show secrets.
    command, url = hide_secrets(config.command), hide_secrets([config.url])[0]
    return describe_server({"command": command, "url": url, "cwd": config.cwd or None, "env_file": config.env_file})


def _shorten_description(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MAX_DESCRIPTION_CHARACTERS else f"{line[:MAX_DESCRIPTION_CHARACTERS]}…"


@app.command("import", epilog="\b\nExamples:\n  nexus mcp import claude\n  nexus mcp import ~/.claude.json --global")
def import_servers(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="TOOL|FILE",
            help=f"{', '.join(FILE_FORMATS)}, or a file.",
            autocompletion=lambda: [*FILE_FORMATS],
        ),
    ],
    *,
    for_all: GlobalOption = False,
    lenient: LenientOption = False,
    force: Annotated[bool, typer.Option("--force", help="Replace servers that have the same names.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Copy the servers of another tool to mcp.json.

    None is started. References stay references, and what looks like a secret becomes one: you are told which variables
    to set.

    From ~/.claude.json it copies the servers of this directory, or with --global, those for all projects.
    """
    cli: CommandContext = ctx.obj
    path, dialect = _find_import_source(cli, source)
    within = ("projects", os.path.realpath(cli.cwd)) if dialect is CLAUDE_HOME_FORMAT and not for_all else ()
    entries = _read_other_servers(cli, path, dialect, within, lenient=lenient)
    goal = find_servers_file(cli, for_all=for_all)
    from nexus_plugins.mcp._edit import read_server_file

    file = read_server_file(goal)
    added = [name for name in entries if force or name not in file.servers]
    references = SecretReferences()
    remarks: list[str] = []
    for name in added:
        entry, secrets = references.replace(name, entries[name])
        remarks += [f"{each.reference} stands for {each.what} of server {name!r}" for each in secrets]
        file = file._replace(text=file.with_server(name, entry))
    for name in entries:
        what = f"adds {name!r}" if name in added else f"skips {name!r}, which exists already; --force replaces it"
        cli.console.message(visible_line(f"Import {what}."))
    if added:
        save_server_file(cli, goal, file.text, own=for_all, dry_run=dry_run)
        for remark in remarks:
            cli.console.message(visible_line(f"{remark}."))
        if remarks:
            cli.console.message(visible_line(f"Set these variables where it is used; {path} has their values."))
        if not for_all and not dry_run:
            print_approval_hint(cli)
    elif not entries:
        more = " for this directory; --global copies those for all projects" if within else ""
        cli.console.message(f"There are no servers in it{more}.")


@app.command(
    "export",
    epilog="\b\nExamples:\n  nexus mcp export --format claude > .mcp.json\n  nexus mcp export github --format codex",
)
def export_servers(
    ctx: typer.Context,
    names: NamesArgument = None,
    to: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="TOOL",
            help=f"Write the format of this tool: {', '.join(EXPORT_TARGETS)}.",
            autocompletion=lambda: [*EXPORT_TARGETS],
        ),
    ] = "nexus",
) -> None:
    """Print servers in the format of another tool.

    The output is the data, in that tool's own format; there is no --json. Values of variables and headers that are
    written out in your files become references, so that no secret is printed.
    """
    if to not in EXPORT_TARGETS:
        raise UnknownNameError("tool to export to", to, EXPORT_TARGETS)
    cli: CommandContext = ctx.obj
    _, loaded = load_servers(cli)
    found = {server.config.name: server.config for server in loaded.servers}
    for name in names or ():
        if name not in found:
            raise UnknownNameError("server", name, found)
    from nexus_plugins.mcp._export import format_servers as export

    exported = export([found[name] for name in names or found], to)
    cli.console.text(exported.text.rstrip("\n"))
    if exported.variables:
        listed = visible_line(", ".join(exported.variables))
        cli.console.message(f"Set these variables where it is used: {listed}.")
    for loss in exported.losses:
        cli.console.warning(visible_line(loss))


def _find_import_source(cli: CommandContext, source: str) -> tuple[Path, ServerFileFormat]:
    if source in FILE_FORMATS:
        dialect = FILE_FORMATS[source]
        candidates = [cli.cwd / name for name in dialect.files]
        path = next((each for each in candidates if each.is_file()), None)
        if path is None:
            raise UsageError(
                f"{dialect.tool} has no servers here", where=str(candidates[0]), hint="name a file instead"
            )
        return path, dialect
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - never fails
    path = path if path.is_absolute() else cli.cwd / path
    if not path.is_file():
        if path.suffix or "/" in source:
            raise UsageError("no such file", where=str(path))
        raise UnknownNameError("tool", source, FILE_FORMATS)
    dialect = detect_format(str(path))
    return path, FILE_FORMATS["codex"] if dialect is NEXUS_FORMAT and path.suffix == ".toml" else dialect


def _read_other_servers(
    cli: CommandContext, path: Path, dialect: ServerFileFormat, within: tuple[str, ...], *, lenient: bool
) -> dict[str, dict[str, Any]]:
    """Return the servers of a file, normalized, by name."""
    layer = Layer("global", path.parent, "global")  # the user named the file, so it is read as the user's own
    from nexus_plugins.mcp._files import read_servers

    found = read_servers(path, layer, dialect, within)
    from nexus_core.plugin.settings import normalize_servers

    configs = [each for each in found if isinstance(each, LayerConfig)]
    skipped: list[SkippedFile] = []
    normal = normalize_servers(configs, skipped, lenient=lenient)
    for each in skipped:
        cli.console.warning(visible_line(f"{each.place}: {each.reason}"))
    servers: list[Any] = [server for config in normal for server in cast("list[Any]", config.settings["mcp_servers"])]
    return {server["name"]: _drop_defaults(server) for server in servers}


def _drop_defaults(server: dict[str, Any]) -> dict[str, Any]:
    """Return a server definition without its name and without default values."""
    implied = {
        "name",
        *(["type"] if server["type"] in {"stdio", "http"} else []),
        *(["enabled"] if server["enabled"] else []),
    }
    return {key: value for key, value in server.items() if key not in implied}


EXIT_NOT_APPROVED = 1


DEFAULT_LOGIN_SECONDS = 300.0


@app.command(epilog="\b\nExamples:\n  nexus mcp login docs\n  nexus mcp login docs --browser")
def login(
    ctx: typer.Context,
    name: NameArgument,
    *,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in your browser.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Listen on this port; default: any.")
    ] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Wait so long.")
    ] = DEFAULT_LOGIN_SECONDS,
) -> None:
    """Sign in to an MCP server (OAuth).

    The address of a page is printed; open it, and this command ends when you have signed in there. The tokens are
    stored in your own directory, for you only, and renewed when they expire. `nexus mcp logout` deletes them.
    """
    cli: CommandContext = ctx.obj
    seconds = require_seconds(timeout, "--timeout")
    launch = _prepare_login(cli, name)
    from nexus_plugins.mcp._oauth import sign_in

    def show(url: str) -> None:
        cli.console.message(f"Open this page to sign in to {one_line(name)}, within {seconds:g} seconds:")
        cli.console.text(visible_line(url))
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(url)

    has_signed_in = run_until_signal(partial(sign_in, launch, show, port=port, seconds=seconds))
    done = f"Signed in to {one_line(name)}; `nexus mcp logout {one_line(name)}` deletes its tokens."
    cli.console.message(done if has_signed_in else f"{one_line(name)} does not ask for signing in.")


@app.command(epilog="\b\nExamples:\n  nexus mcp logout docs\n  nexus -C work mcp logout tickets")
def logout(ctx: typer.Context, name: NameArgument) -> None:
    """Delete the stored tokens of an MCP server.

    They are not revoked: its operator can do that.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli)
    (server,) = select_servers(loaded, [name])
    from nexus_plugins.mcp._launch import delete_token_files

    count = delete_token_files(request.home, server.config.name)
    what = f"Deleted the tokens of {one_line(name)}." if count else f"There are no tokens of {one_line(name)}."
    cli.console.message(what)


def _prepare_login(cli: CommandContext, name: str) -> ServerLaunch:
    """Return a server that the user has approved, at an address."""
    request, loaded = load_servers(cli)
    (server,) = select_servers(loaded, [name])
    if not server.config.url:
        raise UsageError(f"server {name!r} is a program, which needs no signing in", hint="pass it a token in 'env'")
    from nexus_plugins.mcp.call import import_server_pool

    import_server_pool()  # raises if the SDK is missing
    from nexus_plugins.mcp._launch import prepare_launch

    return prepare_launch(server, loaded, request)


@app.command(epilog="\b\nExamples:\n  nexus mcp approve github\n  nexus mcp approve github --yes")
def approve(
    ctx: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Review and approve changed tools of a server.

    The changes since your last approval are shown. Exits with 1 if something changed and was not approved.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli)
    (server,) = select_servers(loaded, [name])
    catalog = read_catalog(request.home, server)
    if catalog is None:
        raise ConfigError(f"the tools of server {name!r} are not known yet", hint=f"nexus mcp tools {name}")
    from difflib import unified_diff

    lines = list(
        unified_diff(
            _format_definitions(catalog.approved),
            _format_definitions(catalog.current),
            "approved",
            "present",
            lineterm="",
        )
    )
    if not lines:
        cli.console.message("No changes: its tools are those that you approved.")
        return
    cli.console.text("\n".join(map(one_line, lines)))
    if not yes and not _confirm_approval(cli):
        cli.console.message("Not approved: changed tools stay withheld.")
        raise typer.Exit(EXIT_NOT_APPROVED)
    approve_catalog(request.home, server)
    cli.console.message(f"Approved the tools of {one_line(name)}.")


def _format_definitions(definitions: Iterable[ToolDefinition]) -> list[str]:
    # ASCII only, so that no two different texts look alike.
    shown = [each._asdict() for each in sorted(definitions, key=lambda each: each.name)]
    return json_module.dumps(shown, indent=2, sort_keys=True).splitlines()


def _confirm_approval(cli: CommandContext) -> bool:
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    cli.console.message("Approve it? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


EXIT_FINDINGS, EXIT_SERVER_FAILED = 1, 5
"""Exit codes: a tool failed, a server failed."""
WAITING_STATUS = "not approved"
"""The status of a server that waits for the user's decision."""


class ServerTestResult(NamedTuple):
    """The tool catalog that a server listed, or its error, and the seconds that it took."""

    server: str
    seconds: float
    catalog: ToolCatalog | None = None
    error: NexusError | None = None


def fetch_catalogs(
    request: Request, loaded: LoadedLayers, servers: Sequence[MCPServerWithOrigin]
) -> list[ServerTestResult]:
    """Start servers concurrently and fetch the catalog of each. Results are in the order of the servers."""
    from nexus_plugins.mcp.call import import_server_pool

    pool_type = import_server_pool()
    import anyio

    answers: dict[str, ServerTestResult] = {}

    async def main() -> None:
        async with pool_type(loaded, request) as pool, anyio.create_task_group() as tasks:

            async def ask(server: MCPServerWithOrigin) -> None:
                started = time.monotonic()
                catalog, error = None, None
                try:
                    catalog = await pool.fetch_catalog(server)
                except NexusError as caught:
                    error = caught
                answers[server.config.name] = ServerTestResult(
                    server.config.name, time.monotonic() - started, catalog, error
                )

            for server in servers:
                tasks.start_soon(ask, server)

    run_until_signal(main)
    return [answers[server.config.name] for server in servers]


@app.command("test", epilog="\b\nExamples:\n  nexus mcp test\n  nexus mcp test github --json")
def try_servers(
    ctx: typer.Context, names: NamesArgument = None, lenient: LenientOption = False, json: JsonOption = False
) -> None:
    """Start MCP servers and test whether they respond.

    They are ended again. Exits with 1 if one of them fails, or waits for your approval.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli, lenient=lenient)
    servers = select_servers(loaded, names)
    not_started = [server for server in loaded.servers if not names and server not in servers]
    for server in not_started:
        cli.console.message(
            visible_line(f"Not started: {server.config.name}, {_explain_status(server, request, loaded)}")
        )
    if not servers:
        cli.console.message("There is no server here that may be started.")
    answers = fetch_catalogs(request, loaded, servers) if servers else []
    if json:
        cli.console.json({"schema": 1, "servers": [_describe_test(answer) for answer in answers]})
    elif answers:
        rows = [
            (answer.server, "failed" if answer.error else "ok", f"{answer.seconds:.1f} s", _summarize_test(answer))
            for answer in answers
        ]
        cli.console.table([("NAME", "STATUS", "TIME", "WHAT"), *rows], styles=["bold"])
    if any(answer.error for answer in answers) or any(server.status == WAITING_STATUS for server in not_started):
        raise typer.Exit(EXIT_FINDINGS)


def _explain_status(server: MCPServerWithOrigin, request: Request, loaded: LoadedLayers) -> str:
    """Return why a server is not started, and what to do about it."""
    if server.status != WAITING_STATUS:
        return server.status
    if recheck_trust(server, loaded, request) == "changed":
        return "changed since you allowed it; `nexus trust diff` shows how, `nexus trust allow` decides"
    return f"{WAITING_STATUS}; `nexus trust allow` shows what it would do, and decides"


@app.command(epilog='\b\nExamples:\n  nexus mcp call time now\n  nexus mcp call github search \'{"q": "nexus"}\'')
def call(
    ctx: typer.Context,
    name: NameArgument,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of a tool, as the server lists it.")],
    arguments: Annotated[str, typer.Argument(metavar="[JSON]", help="Arguments of the tool: an object.")] = "{}",
    json: JsonOption = False,
) -> None:
    """Call a tool of an MCP server and print its result.

    The server is started for the call. Exits with 1 if the tool failed, and with 5 if its server did.
    """
    cli: CommandContext = ctx.obj
    request, loaded = load_servers(cli)
    (server,) = select_servers(loaded, [name])
    parsed = _parse_arguments(arguments)
    try:
        outcome = _call_tool(request, loaded, server, tool, parsed)
    except ServerRefusedError:
        raise
    except ServerError as error:
        cli.console.error(str(error))
        raise typer.Exit(EXIT_SERVER_FAILED) from None
    content = outcome.content
    parts = [content] if isinstance(content, str) else [_describe_part(part) for part in content]
    if json:
        cli.console.json({"schema": 1, "is_error": outcome.is_error, "content": parts})
    else:
        cli.console.text("\n".join(parts))
    if outcome.is_error:
        raise typer.Exit(EXIT_FINDINGS)


def _call_tool(
    request: Request, loaded: LoadedLayers, server: MCPServerWithOrigin, tool: str, arguments: dict[str, object]
) -> ToolOutcome:
    from nexus_plugins.mcp.call import import_server_pool

    pool_type = import_server_pool()
    from nexus_plugins.mcp._connections import convert_tool_result

    async def main() -> ToolOutcome:
        async with pool_type(loaded, request) as pool:
            return convert_tool_result(await pool.call(server, tool, arguments))

    return run_until_signal(main)


def _parse_arguments(text: str) -> dict[str, object]:
    value, position = None, ""
    try:
        value = json_module.loads(text)
    except json_module.JSONDecodeError as error:
        position = f"; column {error.pos + 1}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    if not isinstance(value, dict):
        what = f"the arguments of the tool must be a JSON object{position}"
        raise UsageError(what, hint="""for example '{"path": "README.md"}'""")
    return value


def _describe_part(part: object) -> str:
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    mime, data = getattr(part, "mime", ""), getattr(part, "data", "")
    return f"[{mime}, {len(data) * 3 // 4:,} bytes]"


def _describe_test(answer: ServerTestResult) -> dict[str, object]:
    return {
        "name": answer.server,
        "ok": answer.error is None,
        "seconds": round(answer.seconds, 3),
        "tools": len(answer.catalog.usable) if answer.catalog else 0,
        "withheld": len(answer.catalog.withheld) if answer.catalog else 0,
        "unusable": [each._asdict() for each in answer.catalog.unusable] if answer.catalog else [],
        "error": answer.error.what if answer.error else None,
    }


def _summarize_test(answer: ServerTestResult) -> str:
    if answer.error is not None:
        return format_error_line(answer.error)
    catalog = answer.catalog
    if catalog is None:
        return ""
    withheld = f", {len(catalog.withheld)} withheld" if catalog.withheld else ""
    unusable = f", unusable: {', '.join(each.name for each in catalog.unusable)}" if catalog.unusable else ""
    return visible_line(f"{len(catalog.usable)} tool{'' if len(catalog.usable) == 1 else 's'}{withheld}{unusable}")


@app.command(epilog="\b\nExamples:\n  nexus mcp serve\n  claude mcp add nexus -- nexus mcp serve")
def serve(ctx: typer.Context) -> None:
    """Serve this directory's context as an MCP server.

    Over standard input and output, for any MCP client.
    """
    try:
        from nexus_plugins.mcp._server import serve_client
    except ModuleNotFoundError:
        from nexus_plugins.mcp.call import EXTRA

        raise MissingExtraError("mcp", EXTRA) from None
    cli: CommandContext = ctx.obj
    if os.isatty(0):
        cli.console.message("Waiting for an MCP client on standard input; press Ctrl-C to stop.")
    # Separate descriptors, so that plugins and their child processes cannot read or write the client's channel.
    source, sink = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with cli.nexus() as nexus:
        run_until_signal(partial(serve_client, nexus, source, sink))
