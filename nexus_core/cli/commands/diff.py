"""`nexus diff`: the first difference between two requests, and its cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from nexus_core.cli.commands.diff_operand import (
    DiffOperand,
    find_call_pair,
    find_operand,
    find_operand_expiry,
    find_operand_pair,
    parse_request_report,
    translate_request,
)
from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.options import JsonOption
from nexus_core.cli.session_lookup import (
    LedgerOption,
    list_session_names,
    open_ledger_nexus,
    resolve_ledger_url,
    use_session_directory,
)
from nexus_core.errors import NexusError, UsageError
from nexus_core.request.diff import RequestDifference, RequestSide, build_side
from nexus_core.request.diff import compare_requests as compare
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten, visible_line
from nexus_core.tokens.prices import format_dollars
from nexus_core.types.messages import Usage
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.request.diff import CallContent, PieceChange, RequestPiece
    from nexus_core.text.console import ConsoleStyle
    from nexus_core.tokens.prices import Cost
    from nexus_core.types.assembled import CacheMiss

app = typer.Typer()

FirstArgument = Annotated[
    str | None,
    typer.Argument(metavar="[A]", help="A step, session, file or model.", autocompletion=list_session_names),
]
SecondArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[B]",
        help="What to compare it with, the later one; by default, the last call of A.",
        autocompletion=list_session_names,
    ),
]
CheckOption = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 1 if they differ; without B, compare A with itself."),
]

EXAMPLES = """
\b
Examples:
  nexus diff auth-bug         the last two calls of a session: why the cache broke
  nexus diff --exit-code      whether the request of this directory is the same every time
"""


@app.command(epilog=EXAMPLES)
def diff(
    ctx: typer.Context,
    a: FirstArgument = None,
    b: SecondArgument = None,
    *,
    check: CheckOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Show where two requests differ and why the cache broke.

    The first difference is shown, with the file or plugin that caused it and the tokens that are billed again. A step
    stands for what was sent before that reply. A session or a model stands for what would be sent now; write model:NAME
    for an unknown model. A model next to a session is what that model would be sent in it. A file is what `nexus
    assemble` has printed, or a request of any API. Nothing is written.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger) as nexus:
        if check and b is None:
            compared = compare_repeated(cli, nexus, a, resolve_ledger_url(cli.cwd, ledger))
        elif a is not None:
            compared = compare_requests(cli, nexus, a, b)
        else:
            raise UsageError(
                "there is nothing to compare", hint="nexus diff A B, nexus diff NAME, nexus diff --exit-code"
            )
    if json:
        cli.console.json(comparison_to_json(compared))
    else:
        print_comparison(cli, compared)
    if check and compared.difference.first is not None:
        raise typer.Exit(EXIT_FINDINGS)


class RequestComparison(NamedTuple):
    """Two requests.

    Attributes:
        names: What they are called.
        sides: What they are made of.
        difference: By what they differ.
        cost: The estimated cost of B's input after A; None if no model is named.
        expiry: Why nothing of A was left in the cache when B was sent, though equal; None if it was, or if unknown.
    """

    names: tuple[str, str]
    sides: tuple[RequestSide, RequestSide]
    difference: RequestDifference
    cost: Cost | None = None
    expiry: CacheMiss | None = None


def compare_requests(cli: CliContext, nexus: Nexus, a: str, b: str | None) -> RequestComparison:
    """Compare A with B, or without B, the last call of A with the one before."""
    before, after = find_call_pair(nexus, find_operand(nexus, a)) if b is None else find_operand_pair(nexus, a, b)
    made = _read_operand(cli, nexus, before), _read_operand(cli, nexus, after)
    if made[0].api != made[1].api:
        api = made[1].api or made[0].api
        made = translate_request(nexus, made[0], api), translate_request(nexus, made[1], api)
    marks = nexus.dialects.cache_marks()
    sides = build_side(made[0], marks), build_side(made[1], marks)
    difference = compare(*sides)
    expiry = find_operand_expiry(nexus.ledger, before, after) if before.kind == after.kind == "step" else None
    cost = _estimate_cost(nexus, sides[1].model.name, difference, expired=expiry is not None)
    return RequestComparison((str(before), str(after)), sides, difference, cost, expiry)


def _estimate_cost(nexus: Nexus, model: str, difference: RequestDifference, *, expired: bool) -> Cost | None:
    """Return the cost of the second request's input, if all that is as in the first and not expired is cached."""
    from nexus_core.cli.commands.session.overview import open_price_list

    total = difference.stable + difference.resent + difference.new
    usage = Usage(input_tokens=total, cached_input_tokens=0 if expired else difference.stable)
    return open_price_list(nexus).compute(model, usage, is_estimate=True) if model else None


def compare_repeated(cli: CliContext, nexus: Nexus, a: str | None, ledger: str | None) -> RequestComparison:
    """Compare A, or a request from this directory, with itself, built again.

    Args:
        cli: What opens a Nexus for another directory.
        nexus: Who knows what A is.
        a: What to make; None for this directory.
        ledger: The url of the ledger; None for the user's own.
    """
    operand = DiffOperand("", "") if a is None else find_operand(nexus, a)
    if operand.kind == "file":
        raise UsageError("a file is the same each time it is read", hint="nexus diff A B --exit-code")
    with use_session_directory(cli, nexus, operand.session) as there:
        name, first = str(operand), _build_stable_side(operand, operand.read(there))
        last = first
        reopened = cli.nexus(ledger=ledger, cwd=there.cwd)
        with closing(repeat_request(operand, there, ledger or "", reopened)) as again:
            for name, made in again:  # noqa: B007 - the last name counts
                last = _build_stable_side(operand, made)
                if compare(first, last).first is not None:
                    break
    return RequestComparison((str(operand), name), (first, last), compare(first, last))


def _read_operand(cli: CliContext, nexus: Nexus, operand: DiffOperand) -> CallContent:
    with use_session_directory(cli, nexus, operand.session) as there:
        if operand.kind == "model":
            _warn_of_unknown_model(cli, there, operand.name)
        return operand.read(there)


def _warn_of_unknown_model(cli: CliContext, nexus: Nexus, model: str) -> None:
    """Warn of an unknown model, whose window and tokens are estimates."""
    from nexus_core.tokens.counters import find_model_finding

    if (finding := find_model_finding(model, host=nexus.host, settings=nexus.load().settings)) is not None:
        cli.console.warning(visible_line(str(finding)))


def _build_stable_side(operand: DiffOperand, made: CallContent) -> RequestSide:
    """Return the part of a request that must not change between calls: the last message has the time."""
    return build_side(made if operand.kind == "step" else made._replace(messages=(), message_tokens=()))


HASH_SEEDS = ("1", "2")
"""Hash seeds of the other processes: with two, an order that depends on hashing rarely looks right by chance."""
_CLOCK_TICK_SECONDS = 1.0
"""Seconds. What shows the time shows another one after that."""


def repeat_request(
    operand: DiffOperand, nexus: Nexus, ledger: str, reopened: AbstractContextManager[Nexus]
) -> Generator[tuple[str, CallContent]]:
    """Yield the request built again, with the place where it was built.

    Args:
        operand: What to make.
        nexus: Who has made it before.
        ledger: The url of the ledger; "" for the user's own.
        reopened: The same once more, with plugins that are asked again.
    """
    began = time.monotonic()
    with ExitStack() as running:
        processes = [(seed, running.enter_context(_start_process(operand, nexus, ledger, seed))) for seed in HASH_SEEDS]
        for seed, process in processes:
            yield f"{operand}, in another process", _read_process_output(process, seed)
    time.sleep(max(0.0, began + _CLOCK_TICK_SECONDS - time.monotonic()))
    with reopened as again:
        yield f"{operand}, a second time", operand.read(again)


def _start_process(operand: DiffOperand, nexus: Nexus, ledger: str, seed: str) -> subprocess.Popen[bytes]:
    # -P: what lies in the current directory must not be imported.
    command = [sys.executable, "-P", "-m", "nexus_core", "-C", str(nexus.cwd), "--home", str(nexus.home)]
    command += [*operand.command, *(["--ledger", ledger] if ledger else [])]
    return subprocess.Popen(  # noqa: S603 - it is ourselves
        command,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _read_process_output(process: subprocess.Popen[bytes], seed: str) -> CallContent:
    out, err = process.communicate()
    if process.returncode:
        output = err.decode(errors="replace").strip().splitlines() or [format_count(process.returncode, "error")]
        raise NexusError(
            f"another process (PYTHONHASHSEED={seed}) could not do it: {output[0].removeprefix('Error: ')}"
        )
    return parse_request_report(json.loads(out), "another process")


_MAX_LISTED_CHANGES = 20
"""Changes to list; --json has all of them."""
_MAX_LINE_CHARACTERS = 100
"""Characters of a line that are shown."""
_MAX_COMPARED_LINES = 200
"""Lines behind the first difference that tell whether a line is new: the time grows with their square."""
_LINE_STYLES: dict[str, ConsoleStyle] = {"  -": "red", "  +": "green"}
_CHANGE_STYLES: dict[str, ConsoleStyle] = {"changed": "yellow", "new": "green", "gone": "red", "moved": "cyan"}
_CHANGE_TEXTS = {"changed": "has changed", "new": "is new", "gone": "is gone", "moved": "has moved"}


def print_comparison(cli: CliContext, compared: RequestComparison) -> None:
    """Print by what two requests differ, where the cache breaks, and what that costs."""
    console, difference = cli.console, compared.difference
    for letter, name, side in zip("AB", compared.names, compared.sides, strict=True):
        count = format_count(len(side.messages), "message") if side.messages else ""
        facts = (count, format_count(_sum_side_tokens(side), "token"), side.model.name)
        console.text(visible_line(f"{letter}: {name} ({', '.join(filter(None, facts))})"), wrap=True)
    if difference.first is None:
        console.text("They are the same.")
        return
    if difference.is_continuation:
        console.text(f"B begins with all of A, and goes on with {format_count(len(difference.changes), 'message')}.")
    else:
        console.text(visible_line(f"First difference: {_describe_change(difference.first)}"), style="bold", wrap=True)
        for line in _format_first_difference(compared):
            console.text(visible_line(line), style=_LINE_STYLES.get(line[:3], "plain"), wrap=True)
    total = difference.stable + difference.resent + difference.new
    cached = "may come from a cache" if compared.expiry is None else f"are not cached ({compared.expiry})"
    console.text(
        f"Of the {format_count(total, 'token')} of B, {difference.stable:,} are as in A and {cached}, "
        f"{difference.resent:,} are billed again, {difference.new:,} are new.",
        wrap=True,
    )
    if compared.cost is not None:
        console.text(_describe_cost(compared.cost), wrap=True)
    _print_changes(cli, difference.changes)


def _describe_cost(cost: Cost) -> str:
    if not cost.total:
        return "The cost of that input is unknown, because the price of the model is."
    date = f", at prices of {cost.date}" if cost.date else ""
    parts = f"{format_dollars(cost.cache_read)} from the cache, {format_dollars(cost.input)} again and new"
    return f"That input costs {cost}: {parts}{date}."


def comparison_to_json(compared: RequestComparison) -> dict[str, Any]:
    """Return the same for programs."""
    difference = compared.difference
    return {
        "schema": 1,
        "same": difference.first is None,
        "goes_on": difference.is_continuation,
        **{
            letter: {
                "name": name,
                "model": side.model.name,
                "tokens": _sum_side_tokens(side),
                "messages": len(side.messages),
            }
            for letter, name, side in zip("ab", compared.names, compared.sides, strict=True)
        },
        "first": None if difference.first is None else _change_to_json(difference.first),
        "stable": difference.stable,
        "expired": None if compared.expiry is None else str(compared.expiry),
        "again": difference.resent,
        "new": difference.new,
        "cost": compared.cost.to_json() if compared.cost else None,
        "changes": [_change_to_json(change) for change in difference.changes],
    }


def _describe_change(change: PieceChange) -> str:
    piece = change.piece
    if piece.kind == "model":
        before = change.before.name if change.before else ""
        return f"the model is {before or 'not named'} in A and {piece.name or 'not named'} in B"
    origin = f" ({_get_origin(piece)})" if _get_origin(piece) else ""
    return f"{_describe_piece(piece)}{origin} {_CHANGE_TEXTS[change.outcome]}"


def _describe_piece(piece: RequestPiece) -> str:
    if piece.kind == "model" and not piece.name:
        return "no model"
    return f"{piece.kind} {piece.name!r}" if piece.kind in ("section", "tool", "model") else piece.name


def _get_origin(piece: RequestPiece) -> str:
    return "" if piece.source is None else format_source(piece.source.uri)


def _format_first_difference(compared: RequestComparison) -> list[str]:
    """Return the first line that is another one, that is new, or that is gone."""
    first = compared.difference.first
    if first is None or first.outcome != "changed" or first.piece.kind == "model":
        return []
    if first.piece.kind == "section":
        texts: Sequence[str] = [side.system.text for side in compared.sides]
    else:
        texts = [each.text if each else "" for each in first]
    lines = [text.split("\n") for text in texts]
    start = next((index for index, row in enumerate(zip_longest(*lines)) if row[0] != row[1]), None)
    if start is None:
        return []
    old, new = (each[start : start + _MAX_COMPARED_LINES] for each in lines)
    # A line that was moved by a new one is not gone.
    outcome = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()[0][0]
    shown = [f"  line {start + 1}:"]
    shown += [f"  - {shorten(old[0], _MAX_LINE_CHARACTERS)}"] if outcome != "insert" else []
    return shown + ([f"  + {shorten(new[0], _MAX_LINE_CHARACTERS)}"] if outcome != "delete" else [])


def _print_changes(cli: CliContext, changes: Sequence[PieceChange]) -> None:
    rows = [
        (
            change.outcome,
            _describe_piece(change.piece),
            f"{_format_tokens(change.before)} -> {_format_tokens(change.after)}",
            _get_origin(change.piece),
        )
        for change in changes[:_MAX_LISTED_CHANGES]
    ]
    cli.console.text("")
    colors = {(index, 0): _CHANGE_STYLES[row[0]] for index, row in enumerate(rows, 1)}
    cli.console.table([("CHANGE", "WHAT", "TOKENS", "FROM"), *rows], styles=["bold"], cell_styles=colors)
    if len(changes) > _MAX_LISTED_CHANGES:
        cli.console.message(
            f"({format_count(len(changes) - _MAX_LISTED_CHANGES, 'more change')}; --json has all of them)", style="dim"
        )


def _format_tokens(piece: RequestPiece | None) -> str:
    return "0" if piece is None else f"{piece.tokens:,}"


def _sum_side_tokens(side: RequestSide) -> int:
    return sum(piece.tokens for piece in (*side.tools, side.system, *side.messages))


def _change_to_json(change: PieceChange) -> dict[str, Any]:
    source = change.piece.source
    return {
        "fate": change.outcome,
        "kind": change.piece.kind,
        "name": change.piece.name,
        "source": source and {"uri": source.uri, "layer": source.layer, "plugin": source.plugin},
        "tokens_before": 0 if change.before is None else change.before.tokens,
        "tokens_after": 0 if change.after is None else change.after.tokens,
    }
