"""`nexus acp`: an agent for editors, and a recorder of other ACP agents."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import LevelOption, ProviderOption, RoleOption, build_model_option
from nexus_core.cli.session_lookup import LedgerOption, resolve_ledger_url
from nexus_core.errors import MissingExtraError, NexusError, UsageError
from nexus_core.text.safety import visible_line
from nexus_core.types.plugins import Extra

if TYPE_CHECKING:
    from nexus_core.cli.context import CliContext
    from nexus_core.transcripts.acp import AcpSession, Sender

app = typer.Typer()

ACP_EXTRA = Extra("acp", modules=("acp",))
_CHUNK_BYTES = 64 * 1024
_JOIN_SECONDS = 30.0
"""How long the end of the agent waits for the ledger."""

EXAMPLES = """
\b
Examples:
  nexus acp -m claude-sonnet-5
  nexus acp -- claude-code-acp
"""


@app.command(epilog=EXAMPLES)
def acp(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Another agent to record, and its arguments.")
    ] = None,
    *,
    model: Annotated[str, build_model_option("Call this model; provider.model by default.")] = "",
    provider: ProviderOption = "",
    role: RoleOption = "",
    level: LevelOption = "",
    no_editor_servers: Annotated[
        bool, typer.Option("--no-editor-servers", help="Start no MCP servers that the editor passes.")
    ] = False,
    ledger: LedgerOption = "",
) -> None:
    """Serve an editor, or record its agent (ACP).

    ACP is the Agent Client Protocol. Configure it in the editor as an agent's command; it speaks on standard input and
    output. With -- COMMAND, that agent is started instead: every byte is passed on unchanged, and its conversations
    are stored in the ledger.
    """
    cli: CliContext = ctx.obj
    url = resolve_ledger_url(cli.cwd, ledger)
    options = {"model": model, "provider": provider, "role": role, "level": level}
    given = {name: value for name, value in options.items() if value}
    if not command:
        _serve(cli, url, given, editor_servers=not no_editor_servers)
        return
    if given:
        raise UsageError(f"--{next(iter(given))} is for agents of Nexus", hint="pass it to COMMAND in its own way")
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - the user names it
    except OSError as error:
        raise UsageError(
            f"{command[0]!r} cannot be started: {error.strerror}",
            hint="name an installed program that speaks the Agent Client Protocol",
        ) from None
    recorder = AcpRecorder(cli, url)
    recorder.start()
    code = pass_bytes(process, recorder, sys.stdin.fileno(), cli.console.output.fileno())
    recorder.stop()
    raise typer.Exit(code)


def _serve(cli: CliContext, ledger: str | None, given: dict[str, str], *, editor_servers: bool) -> None:
    """Serve an editor with agents of Nexus.

    Raises:
        UsageError: A person has started it at a terminal.
        MissingExtraError: The extra `acp` is not installed.
    """
    if sys.stdin.isatty() or cli.console.is_terminal:
        raise UsageError(
            "an editor speaks to `nexus acp`, not a person",
            hint="nexus chat talks to you; nexus acp -- COMMAND records",
        )
    from importlib.util import find_spec

    if find_spec("acp") is None:
        raise MissingExtraError("acp", ACP_EXTRA)
    from nexus_core.cli.commands.acp_agent import serve_editor

    serve_editor(cli, ledger, given, editor_servers=editor_servers)


def pass_bytes(process: subprocess.Popen[bytes], recorder: AcpRecorder, source: int, output: int) -> int:
    """Pass every byte on between an editor and an agent, until the agent ends. Return its exit code.

    Args:
        process: The agent.
        recorder: Gets a copy of each piece before the other side does: a response never overtakes its request there.
        source: The descriptor that the editor writes to.
        output: The descriptor that the editor reads.
    """
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101 - as above
    Thread(target=_pass_input, args=(process, recorder, source), name="nexus editor", daemon=True).start()
    is_heard = True
    try:
        while data := os.read(process.stdout.fileno(), _CHUNK_BYTES):
            recorder.put("agent", data)
            if is_heard:
                is_heard = _write_all(output, data)
                if not is_heard:  # the editor is gone
                    with suppress(OSError):
                        process.stdin.close()
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        return process.wait()


def _pass_input(process: subprocess.Popen[bytes], recorder: AcpRecorder, source: int) -> None:
    """Pass on what the editor writes, until it closes its side."""
    assert process.stdin is not None  # noqa: S101 - as above
    descriptor = process.stdin.fileno()
    with suppress(OSError, ValueError):
        while data := os.read(source, _CHUNK_BYTES):
            recorder.put("editor", data)
            if not _write_all(descriptor, data):
                break
    with suppress(OSError):
        process.stdin.close()


def _write_all(descriptor: int, data: bytes) -> bool:
    """Write all bytes; return False if no one reads them."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        return False
    return True


class AcpRecorder:
    """Stores conversations in a thread of its own, so that no byte waits for the ledger.

    Args:
        cli: The command.
        ledger: The URL of the ledger; None for the user's own.
    """

    def __init__(self, cli: CliContext, ledger: str | None) -> None:
        self._cli = cli
        self._ledger = ledger
        self._pieces: SimpleQueue[tuple[Sender, bytes] | None] = SimpleQueue()
        self._thread = Thread(target=self._record, name="nexus recorder", daemon=True)

    def start(self) -> None:
        """Begin to read what `put` adds."""
        self._thread.start()

    def put(self, sender: Sender, data: bytes) -> None:
        """Add bytes that one side wrote. Does not wait."""
        self._pieces.put((sender, data))

    def stop(self) -> None:
        """Store what there is."""
        self._pieces.put(None)
        self._thread.join(_JOIN_SECONDS)
        if self._thread.is_alive():
            self._cli.console.warning("the ledger takes too long; the last turn may not be recorded")

    def _record(self) -> None:
        try:
            self._read_pieces()
        except Exception as error:  # noqa: BLE001 - whatever fails here, the two sides go on talking
            self._cli.console.warning(visible_line(f"the conversation is not recorded any more: {error}"))

    def _read_pieces(self) -> None:
        from nexus_core.transcripts.acp import MAX_LINE_BYTES, AcpTraffic

        with self._cli.nexus(ledger=self._ledger) as nexus:
            from nexus_core.transfer.importer import TranscriptImporter

            importer = TranscriptImporter(nexus.ledger)

            def store(session: AcpSession) -> None:
                try:
                    importer.import_transcript(session.to_transcript(), cwd=str(self._cli.cwd))
                except NexusError as error:
                    session.is_changed = True  # the next turn tries again
                    self._cli.console.warning(visible_line(f"a turn is not recorded yet: {error}"))

            traffic = AcpTraffic(store)
            rests: dict[Sender, bytearray] = {"editor": bytearray(), "agent": bytearray()}
            while (piece := self._pieces.get()) is not None:
                sender, data = piece
                rest = rests[sender]
                *lines, last = data.split(b"\n")
                for line in lines:
                    rest += line
                    traffic.read_line(sender, bytes(rest))
                    rest.clear()
                if len(rest) <= MAX_LINE_BYTES:  # the rest of a line that is not read need not be kept
                    rest += last
            traffic.end()
