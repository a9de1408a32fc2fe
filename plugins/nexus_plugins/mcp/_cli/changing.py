"""`nexus mcp add|remove|enable|disable`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from nexus_core import UnknownNameError, UsageError
from nexus_core.plugin import hide_secrets, visible_line
from nexus_plugins.mcp._cli.options import DryRun, Global, Name, app, look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from typer._click import Context  # private, but it is what the method we override is typed with

    from nexus_core.plugin import MCPServerWithOrigin, Shell
    from nexus_plugins.mcp._files.editing import ServerFile

FILE = "mcp.json"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SERVER_ADDRESS = re.compile(r"https?://[^\s/?#]\S*|\$\{.*")


class _Adding(TyperCommand):
    """Says what to do about an option that is one of the server's program."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As usual, but for the error."""
        is_apart = "--" in args  # Typer takes them out of the list one by one
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            option = getattr(error, "option_name", None)
            if is_apart or option is None or getattr(error, "possibilities", None):
                raise
            what = f"{option!r} is not an option of `nexus mcp add`"
            raise UsageError(what, hint="if it belongs to the program: nexus mcp add NAME -- COMMAND ARGS...") from None


@app.command(
    cls=_Adding,
    epilog="\b\nExamples:\n  nexus mcp add --global time -- uvx mcp-server-time\n"
    "  nexus mcp add docs --url https://docs.example/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'",
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="The program and its arguments.")
    ] = None,
    *,
    url: Annotated[str, typer.Option("--url", help="The address, for a server that is connected to.")] = "",
    type_: Annotated[
        str, typer.Option("--type", metavar="http|sse", help="How it is spoken to; http if not said.")
    ] = "",
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable; ${NAME} is looked up later.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="Sent along; references as for --env.")
    ] = None,
    cwd: Annotated[str, typer.Option("--cwd", help="Where the program is started.")] = "",
    for_all: Global = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a server of that name.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Write a server into mcp.json. It is not started."""
    _require_target(name, command or [], url)
    if (header and command) or (url and (env or cwd)):
        raise UsageError("--env and --cwd are for a program, --header is for an address", hint="leave it out")
    entry: dict[str, Any] = {"command": command} if command else {"url": url}
    entry |= {"type": "sse"} if _is_older(type_, url) else {}
    tables = {"env": _pairs(env, "--env", "="), "headers": _pairs(header, "--header", "=:")}
    entry |= {key: value for key, value in tables.items() if value} | ({"cwd": cwd} if cwd else {})
    shell: Shell = ctx.obj
    path = target(shell, for_all=for_all)
    file = _read(path)
    if name in file.servers and not force:
        raise UsageError(f"there is a server {name!r} already in {path}", hint="--force replaces it")
    save(shell, path, file.with_server(name, entry), own=for_all, dry_run=dry_run)
    warn_of_secrets(shell, entry)
    if not for_all and not dry_run:
        say_who_decides(shell)


@app.command(epilog="\b\nExamples:\n  nexus mcp remove time\n  nexus mcp remove --global time --dry-run")
def remove(ctx: typer.Context, name: Name, for_all: Global = False, dry_run: DryRun = False) -> None:
    """Take a server out of the file that defines it."""
    shell: Shell = ctx.obj
    path, own = _defined(shell, name, for_all=for_all)
    save(shell, path, _read(path).without_server(name), own=own, dry_run=dry_run)


@app.command(epilog="\b\nExamples:\n  nexus mcp enable time\n  nexus mcp enable --global time")
def enable(ctx: typer.Context, name: Name, for_all: Global = False, dry_run: DryRun = False) -> None:
    """Switch a server on, in the file that defines it."""
    _switch(ctx.obj, name, for_all=for_all, dry_run=dry_run, on=True)


@app.command(epilog="\b\nExamples:\n  nexus mcp disable time\n  nexus mcp disable --global time")
def disable(ctx: typer.Context, name: Name, for_all: Global = False, dry_run: DryRun = False) -> None:
    """Switch a server off, in the file that defines it; it stays listed."""
    _switch(ctx.obj, name, for_all=for_all, dry_run=dry_run, on=False)


def target(shell: Shell, *, for_all: bool) -> Path:
    """The mcp.json that is meant."""
    with shell.nexus() as nexus:
        return nexus.home / FILE if for_all else nexus.cwd / ".nexus3" / FILE


def save(shell: Shell, path: Path, text: str, *, own: bool, dry_run: bool) -> None:
    """Write a file, and say which."""
    if dry_run:
        shell.console.message(f"Nothing was written; {visible_line(str(path))} would be.")
        return
    from nexus_plugins.mcp._files.editing import write_file  # noqa: PLC0415 - `list` needs none of it

    write_file(path, text, own=own)
    shell.console.text(visible_line(str(path)))


def warn_of_secrets(shell: Shell, entry: Mapping[str, Any]) -> None:
    """Say what in a file would better not be there."""
    from nexus_core.plugin import SecretReferences  # noqa: PLC0415 - `list` needs none of it

    for what in dict.fromkeys(secret.what for secret in SecretReferences().find("", entry)):
        shell.console.warning(
            visible_line(f"{what} is written out in the file; a reference such as ${{NAME}} would keep it out")
        )


def say_who_decides(shell: Shell) -> None:
    """Say what is left to do after something was written for a project."""
    shell.console.message("Servers of a project are started only after `nexus trust allow`.")


def _read(path: Path) -> ServerFile:
    from nexus_plugins.mcp._files.editing import read_file  # noqa: PLC0415 - `list` needs none of it

    return read_file(path)


def _switch(shell: Shell, name: str, *, for_all: bool, dry_run: bool, on: bool) -> None:
    path, own = _defined(shell, name, for_all=for_all)
    save(shell, path, _read(path).switched(name, on=on), own=own, dry_run=dry_run)


def _defined(shell: Shell, name: str, *, for_all: bool) -> tuple[Path, bool]:
    """The file that defines a server, and whether it is the user's own."""
    _, loaded = look(shell)
    servers: Iterable[MCPServerWithOrigin] = loaded.servers
    own = {layer.name for layer in loaded.layers if layer.is_own}
    if for_all:
        return target(shell, for_all=True), True
    found = {server.config.name: server for server in servers}
    if name not in found:
        raise UnknownNameError("server", name, found)
    return found[name].source_path, found[name].origin in own


def _require_target(name: str, command: Sequence[str], url: str) -> None:
    """Raise UsageError unless there is a name, and either a program or an address."""
    if not name.strip():
        raise UsageError("a server needs a name", hint="nexus mcp add NAME -- COMMAND ARGS...")
    if bool(command and command[0].strip()) == bool(url):
        raise UsageError("a server has either a command or an address", hint="-- COMMAND ARGS..., or --url URL")
    if _ADDRESS.match(command[0] if command else ""):
        shown = hide_secrets([command[0]])[0]
        raise UsageError("this is an address, not a program", hint=f"nexus mcp add {name} --url {shown}")
    if url and not _SERVER_ADDRESS.fullmatch(url):
        raise UsageError("this is not the address of a server", hint="--url https://…")


def _is_older(type_: str, url: str) -> bool:
    """Whether an address speaks the older protocol."""
    if type_ and (type_ not in {"http", "sse"} or not url):
        raise UsageError("--type must be http or sse, and needs --url", hint="--url https://… --type sse")
    return type_ == "sse"


def _pairs(given: list[str] | None, option: str, separators: str) -> dict[str, str]:
    """Names and values, apart at the first of the separators: `TOKEN=value`, and of headers `Name: value` too."""
    pairs: dict[str, str] = {}
    for each in given or ():
        match = re.fullmatch(f"([^{separators}\\s]+)\\s*[{separators}](.*)", each, re.DOTALL)
        if match is None:
            example = "'Authorization=Bearer ${TOKEN}'" if ":" in separators else "'TOKEN=${TOKEN}'"
            raise UsageError(f"{option} needs NAME=VALUE", hint=f"{option} {example}")
        pairs[match[1]] = match[2].lstrip() if ":" in separators else match[2]
    return pairs
