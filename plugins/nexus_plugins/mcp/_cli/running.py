"""`nexus mcp test|call`."""

from __future__ import annotations

import json as json_module
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core import NexusError, UsageError
from nexus_core.plugin import decide_again, visible_line
from nexus_plugins.mcp._cli.loop import run_loop
from nexus_plugins.mcp._cli.options import Json, Lenient, Name, Names, app, chosen, in_one_line, look
from nexus_plugins.mcp._errors import RefusedError, ServerError
from nexus_plugins.mcp._running.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin, Shell
    from nexus_plugins.mcp._content import Outcome
    from nexus_plugins.mcp._telling.records import Record

FINDINGS, PROVIDER = 1, 5
"""Exit codes: a tool failed, a server did."""
WAITING = "not approved"
"""The status of a server that waits for a decision."""


class Answer(NamedTuple):
    """What became of asking a server."""

    server: str
    seconds: float
    record: Record | None = None
    error: NexusError | None = None


def ask_all(request: Request, loaded: Loaded, servers: Sequence[MCPServerWithOrigin]) -> list[Answer]:
    """Start servers, all at once, and have each list its tools; the answers are in the order of the servers."""
    from nexus_plugins.mcp.call import import_links  # noqa: PLC0415 - `list` needs none of it

    links_of = import_links()
    import anyio  # noqa: PLC0415 - comes with the extra

    answers: dict[str, Answer] = {}

    async def main() -> None:
        async with links_of(loaded, request, Limits.of(loaded)) as links, anyio.create_task_group() as tasks:

            async def ask(server: MCPServerWithOrigin) -> None:
                started = time.monotonic()
                record, error = None, None
                try:
                    record = await links.record_of(server)
                except NexusError as caught:
                    error = caught
                answers[server.config.name] = Answer(server.config.name, time.monotonic() - started, record, error)

            for server in servers:
                tasks.start_soon(ask, server)

    run_loop(main)
    return [answers[server.config.name] for server in servers]


@app.command("test", epilog="\b\nExamples:\n  nexus mcp test\n  nexus mcp test github --json")
def try_servers(ctx: typer.Context, names: Names = None, lenient: Lenient = False, json: Json = False) -> None:
    """Start servers, see whether they answer, and end them.

    Exits with 1 if one of them fails, or waits for your approval.
    """
    shell: Shell = ctx.obj
    request, loaded = look(shell, lenient=lenient)
    servers = chosen(loaded, names)
    left = [server for server in loaded.servers if not names and server not in servers]
    for server in left:
        shell.console.message(visible_line(f"Not started: {server.config.name}, {_reason(server, request, loaded)}"))
    if not servers:
        shell.console.message("There is no server here that may be started.")
    answers = ask_all(request, loaded, servers) if servers else []
    if json:
        shell.console.json({"schema": 1, "servers": [_describe(answer) for answer in answers]})
    elif answers:
        rows = [
            (answer.server, "failed" if answer.error else "ok", f"{answer.seconds:.1f} s", _said(answer))
            for answer in answers
        ]
        shell.console.table([("NAME", "STATUS", "TIME", "WHAT"), *rows], styles=["bold"])
    if any(answer.error for answer in answers) or any(server.status == WAITING for server in left):
        raise typer.Exit(FINDINGS)


def _reason(server: MCPServerWithOrigin, request: Request, loaded: Loaded) -> str:
    """Why a server is not started, and what to do about it."""
    if server.status != WAITING:
        return server.status
    if decide_again(server, loaded, request) == "changed":
        return "changed since you allowed it; `nexus trust diff` shows how, `nexus trust allow` decides"
    return f"{WAITING}; `nexus trust allow` shows what it would do, and decides"


@app.command(epilog='\b\nExamples:\n  nexus mcp call time now\n  nexus mcp call github search \'{"q": "nexus"}\'')
def call(
    ctx: typer.Context,
    name: Name,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool, as its server calls it.")],
    arguments: Annotated[str, typer.Argument(metavar="[JSON]", help="What to run it with: an object.")] = "{}",
    json: Json = False,
) -> None:
    """Start a server, run one of its tools, and print what it brings.

    Exits with 1 if the tool failed, and with 5 if its server did.
    """
    shell: Shell = ctx.obj
    request, loaded = look(shell)
    (server,) = chosen(loaded, [name])
    given = _arguments(arguments)
    try:
        outcome = _run(request, loaded, server, tool, given)
    except RefusedError:
        raise
    except ServerError as error:
        shell.console.error(str(error))
        raise typer.Exit(PROVIDER) from None
    content = outcome.content
    parts = [content] if isinstance(content, str) else [_words(part) for part in content]
    if json:
        shell.console.json({"schema": 1, "is_error": outcome.is_error, "content": parts})
    else:
        shell.console.text("\n".join(parts))
    if outcome.is_error:
        raise typer.Exit(FINDINGS)


def _run(
    request: Request, loaded: Loaded, server: MCPServerWithOrigin, tool: str, arguments: dict[str, object]
) -> Outcome:
    from nexus_plugins.mcp.call import import_links  # noqa: PLC0415 - `list` needs none of it

    links_of = import_links()
    from nexus_plugins.mcp._content import outcome_of  # noqa: PLC0415 - comes with the extra

    async def main() -> Outcome:
        async with links_of(loaded, request, Limits.of(loaded)) as links:
            return outcome_of(await links.call(server, tool, arguments))

    return run_loop(main)


def _arguments(text: str) -> dict[str, object]:
    value, place = None, ""
    try:
        value = json_module.loads(text)
    except json_module.JSONDecodeError as error:
        place = f"; column {error.pos + 1}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    if not isinstance(value, dict):
        what = f"the arguments of the tool must be a JSON object{place}"
        raise UsageError(what, hint="""for example '{"path": "README.md"}'""")
    return value


def _words(part: object) -> str:
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    mime, data = getattr(part, "mime", ""), getattr(part, "data", "")
    return f"[{mime}, {len(data) * 3 // 4:,} bytes]"


def _describe(answer: Answer) -> dict[str, object]:
    return {
        "name": answer.server,
        "ok": answer.error is None,
        "seconds": round(answer.seconds, 3),
        "tools": len(answer.record.usable) if answer.record else 0,
        "withheld": len(answer.record.withheld) if answer.record else 0,
        "unusable": [each._asdict() for each in answer.record.unusable] if answer.record else [],
        "error": answer.error.what if answer.error else None,
    }


def _said(answer: Answer) -> str:
    if answer.error is not None:
        return in_one_line(answer.error)
    record = answer.record
    if record is None:
        return ""
    withheld = f", {len(record.withheld)} withheld" if record.withheld else ""
    unusable = f", unusable: {', '.join(each.name for each in record.unusable)}" if record.unusable else ""
    return visible_line(f"{len(record.usable)} tool{'' if len(record.usable) == 1 else 's'}{withheld}{unusable}")
