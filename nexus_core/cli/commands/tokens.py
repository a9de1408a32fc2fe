"""`nexus tokens`: the tokens of files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.context import get_exit_code
from nexus_core.cli.input import STANDARD_INPUT, get_input_size, read_input_bytes
from nexus_core.cli.options import JsonOption, build_model_option
from nexus_core.errors import FileError, NexusError, UsageError
from nexus_core.text.safety import visible_line
from nexus_core.tokens.counters import find_model_finding, open_counter
from nexus_core.tokens.tokenizers import cut_pieces
from nexus_core.types.budget import TokenCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import ProgressBar
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.budget import CountBasis

app = typer.Typer()

_PROGRESS_STEP_CHARACTERS = 1024 * 1024
"""Characters counted between two updates of the progress bar."""
_BASES_BY_CERTAINTY: tuple[CountBasis, ...] = ("estimated", "exact", "cached")
"""Least certain first. Exact and cached counts are equally certain; their sum is exact."""

FilesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="Files to count; - is standard input.")
]
ModelOption = Annotated[str, build_model_option("Whose tokens; provider.model by default.")]


class FileCount(NamedTuple):
    """A file and its tokens."""

    file: str
    size: int
    found: TokenCount


@app.command(epilog="\b\nExamples:\n  nexus tokens README.md docs/*.md\n  git diff | nexus tokens -m gpt-4o")
def tokens(ctx: typer.Context, files: FilesArgument = None, model: ModelOption = "", json: JsonOption = False) -> None:
    """Count the tokens of files.

    The output names the counter and says whether the number is exact, cached or an estimate.
    """
    cli: CliContext = ctx.obj
    names = files or [_require_piped_input()]
    with cli.nexus() as nexus:
        model, counter = _open_counter(cli, nexus, model)
        counted, refused = _count_files(cli, names, counter)
    total = _add_counts(each.found for each in counted)
    if json:
        document = {"schema": 1, "model": model, "counter": counter.name, "exact": counter.exact}
        document["error"] = counter.error
        rows = [{"file": each.file, "bytes": each.size, **each.found._asdict()} for each in counted]
        reasons = [{"file": name, "reason": error.what} for name, error in refused]
        cli.console.json({**document, "files": rows, "refused": reasons, "total": total._asdict()})
    else:
        _print_counts(cli, counted, total, counter)
    if refused:
        raise typer.Exit(max(get_exit_code(error) for _, error in refused))


def _open_counter(cli: CliContext, nexus: Nexus, model: str) -> tuple[str, CachingCounter]:
    settings = cli.load_readable(nexus).settings
    model = settings.model_id(model)
    if (finding := find_model_finding(model, host=nexus.host, settings=settings)) is not None:
        cli.console.warning(visible_line(str(finding)))
    return model, open_counter(model, host=nexus.host, settings=settings)


def _count_files(
    cli: CliContext, names: Sequence[str], counter: CachingCounter
) -> tuple[list[FileCount], list[tuple[str, NexusError]]]:
    """Return the counts, and the files that could not be counted with their errors."""
    counted: list[FileCount] = []
    refused: list[tuple[str, NexusError]] = []
    size = sum(get_input_size(cli.cwd, name) for name in names)
    with cli.console.progress(size, "Counting", unit="bytes") as progress:
        for name in names:
            try:
                data = read_input_bytes(cli.cwd, name, instead="name the files in it")
                counted.append(
                    FileCount(name, len(data), _count_text(counter, _decode_text(name, data), len(data), progress))
                )
            except (FileError, UsageError) as error:
                cli.console.error(str(error))
                refused.append((name, error))
    return counted, refused


def _count_text(counter: CachingCounter, text: str, size: int, progress: ProgressBar) -> TokenCount:
    counts = []
    for piece in cut_pieces(text, _PROGRESS_STEP_CHARACTERS):
        counts.append(counter.measure(piece))
        progress.advance(size * len(piece) / max(len(text), 1))
    return _add_counts(counts)


def _add_counts(counts: Iterable[TokenCount]) -> TokenCount:
    """Return the sum. Its basis is the least certain one."""
    found = list(counts)
    bases = {count.basis for count in found}
    least: CountBasis = next((basis for basis in _BASES_BY_CERTAINTY if basis in bases), "exact")
    return TokenCount(sum(count.tokens for count in found), least)


def _decode_text(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FileError(f"not UTF-8: {found}", where=name, hint="only text has tokens") from None
    if "\0" in text:
        raise FileError(f"not text: a zero byte at offset {data.index(0)}", where=name, hint="only text has tokens")
    return text


def _require_piped_input() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("nothing to count", hint="name files, or pipe text into it")
    return STANDARD_INPUT


def _print_counts(cli: CliContext, counted: Sequence[FileCount], total: TokenCount, counter: CachingCounter) -> None:
    def describe_basis(count: TokenCount) -> str:
        return counter.describe_basis() if count.basis == "estimated" and not counter.exact else count.basis

    rows = [(f"{each.found.tokens:,}", describe_basis(each.found), counter.name, each.file) for each in counted]
    if len(rows) > 1:
        rows.append((f"{total.tokens:,}", describe_basis(total), counter.name, f"total of {len(rows)} files"))
    if rows:
        cli.console.table([("TOKENS", "BASIS", "COUNTER", "FILE"), *rows], styles=["bold"])
