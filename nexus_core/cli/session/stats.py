"""`nexus session stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, OptionalLabel, app, find_session, open_nexus
from nexus_core.cli.session.tables import right_aligned
from nexus_core.history.ledger.opening import without_secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.cli.session.sums import Sums
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.conversation import Usage
    from nexus_core.values.ledger import Ledger, Step

_MODELS = ("MODEL", "REPLIES", "INPUT", "CACHED", "RATE", "PUT INTO CACHE", "OUTPUT", "REASONING")


@app.command(epilog="\b\nExamples:\n  nexus session stats auth-bug\n  nexus session stats --json")
def stats(ctx: typer.Context, label: OptionalLabel = None, *, ledger: LedgerUrl = "", json: Json = False) -> None:
    """Add up what a session consists of, or the whole ledger: turns, messages, calls of tools, tokens, cost by model.

    A session has also what was said before it was forked; in the whole ledger, every step counts once.
    """
    from nexus_core.cli.session.sums import Sums  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    sums = Sums()
    with open_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        records = nexus.ledger.sessions(status=None)
        record = None if label is None else find_session(nexus.ledger, label)
        tips = [record.tip] if record else [each.tip for each in records]
        with shell.console.progress(steps_up_to(nexus.ledger, tips)) as progress:
            for step in nexus.ledger.steps() if record is None else _thread(nexus.ledger, record.tip):
                sums.add(step)
                progress.advance(1)
    about: dict[str, object] = {"sessions": len(records)} if record is None else {"session": record.label}
    if json:
        shell.console.json({"schema": 1, "ledger": url, **about, **sums.facts()})
    elif record is None and not records:
        shell.console.message(f"No sessions in {url}.")
    else:
        _print(shell, about, sums)


def steps_up_to(ledger: Ledger, tips: Iterable[str | None]) -> int:
    """About how many steps lead to some; those that several share are counted more than once."""
    ends = [ledger.step(tip) for tip in tips if tip is not None]
    return sum(end.position + 1 for end in ends if end is not None)


def _thread(ledger: Ledger, tip: str | None) -> Iterable[Step]:
    from nexus_core.session.walking import walk_back  # noqa: PLC0415 - as above

    return () if tip is None else walk_back(ledger, tip)


def _print(shell: CommandShell, about: dict[str, object], sums: Sums) -> None:
    from nexus_core.cli.session.sums import ranked  # noqa: PLC0415 - as above

    facts = [(name, str(value)) for name, value in about.items()]
    facts += [(name, f"{getattr(sums, name):,}") for name in ("turns", "steps", "messages", "compactions")]
    facts += [("tokens", f"{tokens:,} ({counter or 'nobody knows who counted'})") for counter, tokens in ranked(sums.tokens)]
    shell.console.table(facts)
    if sums.tools:
        shell.console.text("")
        tools = [("TOOL", "CALLS"), *((name, f"{calls:,}") for name, calls in ranked(sums.tools))]
        shell.console.table(right_aligned(tools, {1}), styles=["bold"])
    if sums.calls:
        models = [_cells(name or "(unknown)", replies, sums.usage.get(name)) for name, replies in ranked(sums.calls)]
        total = _cells("all", sum(sums.calls.values()), sums.all_usage)
        shell.console.text("")
        rows = [_MODELS, *models, *([total] if len(models) > 1 else [])]
        shell.console.table(right_aligned(rows, range(1, len(_MODELS))), styles=["bold"])


def _cells(model: str, replies: int, usage: Usage | None) -> tuple[str, ...]:
    from nexus_core.cli.session.overview import hit_rate, percent  # noqa: PLC0415 - as above

    if usage is None:
        return (model, f"{replies:,}", *("-" for _ in _MODELS[2:]))
    numbers = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens)
    read, cached, written = (f"{number:,}" for number in numbers)
    rate = percent(hit_rate(usage))
    return (model, f"{replies:,}", read, cached, rate, written, f"{usage.output_tokens:,}", f"{usage.reasoning_tokens:,}")
