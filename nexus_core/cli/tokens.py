"""`nexus tokens`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.exits import CONFIGURATION
from nexus_core.cli.given_file import STANDARD_INPUT, read_given, size_of_given
from nexus_core.cli.options import Json, model_option
from nexus_core.errors import FileError, UsageError
from nexus_core.text.visible import visible_line
from nexus_core.tokens.counters import find_unknown, open_counter
from nexus_core.tokens.pieces import cut_pieces
from nexus_core.values.counting import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.text.progress import Progress
    from nexus_core.tokens.memory import RememberingCounter
    from nexus_core.values.counting import Basis

app = typer.Typer()

_STEP = 1024 * 1024
"""How much is counted before the bar moves."""
_LEAST_SURE_FIRST: tuple[Basis, ...] = ("estimated", "exact", "cached")
"""What was counted now and what was counted before are equally sure; together they were counted now."""

Files = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Files to count; - is standard input.")]
ModelName = Annotated[str, model_option("Whose tokens; provider.model by default.")]


class Counted(NamedTuple):
    """A file and its tokens."""

    file: str
    size: int
    found: Count


@app.command(epilog="\b\nExamples:\n  nexus tokens README.md docs/*.md\n  git diff | nexus tokens -m gpt-4o")
def tokens(ctx: typer.Context, files: Files = None, model: ModelName = "", json: Json = False) -> None:
    """Count the tokens of files; says by which counter, and whether that is exact, cached or an estimate."""
    shell: CommandShell = ctx.obj
    names = files or [_input_if_piped()]
    with shell.nexus() as nexus:
        model, counter = _open(shell, nexus, model)
        counted, refused = _count_all(shell, names, counter)
    total = _sum(each.found for each in counted)
    if json:
        document = {"schema": 1, "model": model, "counter": counter.name, "exact": counter.exact}
        rows = [{"file": each.file, "bytes": each.size, **each.found._asdict()} for each in counted]
        shell.console.json({**document, "files": rows, "refused": refused, "total": total._asdict()})
    else:
        _print(shell, counted, total, counter.name)
    if refused:
        raise typer.Exit(CONFIGURATION)


def _open(shell: CommandShell, nexus: Nexus, model: str) -> tuple[str, RememberingCounter]:
    settings = nexus.load().settings
    model = settings.model_id(model)
    if (finding := find_unknown(model, host=nexus.host, settings=settings)) is not None:
        shell.console.warning(visible_line(str(finding)))
    return model, open_counter(model, host=nexus.host, settings=settings)


def _count_all(
    shell: CommandShell, names: Sequence[str], counter: RememberingCounter
) -> tuple[list[Counted], list[dict[str, str]]]:
    """What was counted, and what could not be, with the reason."""
    counted: list[Counted] = []
    refused: list[dict[str, str]] = []
    with shell.console.progress(sum(size_of_given(shell.cwd, name) for name in names)) as progress:
        for name in names:
            try:
                data = read_given(shell.cwd, name, instead="name the files in it")
                counted.append(Counted(name, len(data), _count(counter, _decode(name, data), len(data), progress)))
            except FileError as error:
                progress.close()
                shell.console.error(str(error))
                refused.append({"file": name, "reason": error.what})
    return counted, refused


def _count(counter: RememberingCounter, text: str, size: int, progress: Progress) -> Count:
    counts = []
    for piece in cut_pieces(text, _STEP):
        counts.append(counter.measure(piece))
        progress.advance(size * len(piece) / max(len(text), 1))
    return _sum(counts)


def _sum(counts: Iterable[Count]) -> Count:
    """All together; as sure as the least sure of them."""
    found = list(counts)
    bases = {count.basis for count in found}
    least: Basis = next((basis for basis in _LEAST_SURE_FIRST if basis in bases), "exact")
    return Count(sum(count.tokens for count in found), least)


def _decode(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FileError(f"not UTF-8: {found}", where=name, hint="only text has tokens") from None
    if "\0" in text:
        raise FileError(f"not text: a zero byte at offset {data.index(0)}", where=name, hint="only text has tokens")
    return text


def _input_if_piped() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("nothing to count", hint="name files, or pipe text into it")
    return STANDARD_INPUT


def _print(shell: CommandShell, counted: Sequence[Counted], total: Count, counter: str) -> None:
    rows = [(f"{each.found.tokens:,}", each.found.basis, counter, each.file) for each in counted]
    if len(rows) > 1:
        rows.append((f"{total.tokens:,}", total.basis, counter, f"total of {len(rows)} files"))
    if rows:
        shell.console.table([("TOKENS", "BASIS", "COUNTER", "FILE"), *rows], styles=["bold"])
