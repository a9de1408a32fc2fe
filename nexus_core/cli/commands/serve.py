"""`nexus serve`: agents for programs, as JSON-RPC 2.0 over HTTP on the loopback interface."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import JsonOption, LevelOption, ProviderOption, build_model_option
from nexus_core.cli.session_lookup import LedgerOption, open_ledger_nexus
from nexus_core.errors import MissingExtraError
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.rpc.server_file import ServerAddress

app = typer.Typer()

EXAMPLES = """
\b
Examples:
  nexus serve
  nexus serve --port 0 -m claude-sonnet-5
"""
_DEFAULT_PORT = 8765  # as in nexus_core.rpc.server, which needs the extra
_QUESTION_SECONDS = 60  # for a person at a client; a client that answers nothing must not hold a turn for ever


@app.command(epilog=EXAMPLES)
def serve(
    ctx: typer.Context,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Listen on this port; 0 takes a free one.")
    ] = _DEFAULT_PORT,
    model: Annotated[str, build_model_option("Call this model; provider.model by default.")] = "",
    provider: ProviderOption = "",
    level: LevelOption = "",
    question_seconds: Annotated[
        int,
        typer.Option("--question-seconds", metavar="N", min=0, help="Wait so long for a permission; 0 asks nothing."),
    ] = _QUESTION_SECONDS,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Serve agents to programs (JSON-RPC).

    It listens on 127.0.0.1 only, and prints its address and a token that every request needs. `nexus rpc` and
    `nexus_core.rpc.Client` read both from server.json in the Nexus home. Ctrl-C, SIGTERM and `nexus rpc shutdown` end
    it: running turns are cancelled, and what was said is stored.
    """
    cli: CliContext = ctx.obj
    from nexus_core.rpc.client import SERVE_EXTRA

    if any(find_spec(each) is None for each in SERVE_EXTRA.modules):
        raise MissingExtraError("serve", SERVE_EXTRA)
    from nexus_core.rpc.server import open_listener
    from nexus_core.rpc.server_file import lock_server_file

    config = {"provider": {"model": model, "provider": provider}, "permissions": {"level": level}}
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus, lock_server_file(nexus.home):
        listener = open_listener(port)
        try:
            asyncio.run(_serve(cli, nexus, listener, config, question_seconds=question_seconds, json=json))
        finally:
            listener.close()


async def _serve(
    cli: CliContext,
    nexus: Nexus,
    listener: socket,
    config: dict[str, dict[str, str]],
    *,
    question_seconds: int,
    json: bool,
) -> None:
    from nexus_core.agents.toolsets import ToolsetRunner
    from nexus_core.rpc.pool import AgentPool, SharedComponents
    from nexus_core.rpc.server import RpcServer
    from nexus_core.rpc.server_file import ServerAddress, write_server_file

    with ToolsetRunner(nexus.host, nexus) as toolsets:
        pool = AgentPool(
            SharedComponents(
                config=config, nexus=nexus, tools=[toolsets], question_seconds=question_seconds, mode="server"
            )
        )
        server = RpcServer(pool)
        host, port = listener.getsockname()
        address = ServerAddress(f"http://{host}:{port}", server.token, os.getpid())
        _stop_on_signals(server.stop)
        with write_server_file(nexus.home, address) as path:
            _print_address(cli, address, str(path), json=json)
            await server.serve(listener)


def _stop_on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def _print_address(cli: CliContext, address: ServerAddress, path: str, *, json: bool) -> None:
    if json:
        cli.console.json({"schema": 1, **address._asdict(), "file": path})
    else:
        cli.console.text(f"Listening on {address.url}")
        cli.console.text(f"Token: {address.token}")
        cli.console.message(visible_line(f"Both are in {path}. Ctrl-C ends the server."), style="dim")
    cli.console.output.flush()
