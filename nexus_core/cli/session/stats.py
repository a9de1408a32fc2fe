"""`nexus session stats`."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING

import typer  # noqa: TC002 - Typer reads annotations at run time

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, OptionalLabel, app, find_session, open_nexus
from nexus_core.history.ledger.opening import without_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.session.damage import Damaged
    from nexus_core.cli.session.sums import CacheSums, Sums
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.text.progress import Progress
    from nexus_core.values.ledger import Ledger, Step


@app.command(epilog="\b\nExamples:\n  nexus session stats auth-bug\n  nexus session stats --json")
def stats(ctx: typer.Context, label: OptionalLabel = None, *, ledger: LedgerUrl = "", json: Json = False) -> None:
    """Add up what a session consists of, or the whole ledger: turns, messages, calls of tools, tokens, cost by model.

    A session has also what was said before it was forked, and what became of the provider's cache; in the whole ledger,
    every step counts once. What is damaged is named on standard error and left out, and the exit code is 3.
    """
    from nexus_core.cli.session.damage import Damaged, tell_damage  # noqa: PLC0415 - other commands do not need it
    from nexus_core.cli.session.reading import steps_up_to  # noqa: PLC0415 - as above
    from nexus_core.cli.session.sums import Sums  # noqa: PLC0415 - as above
    from nexus_core.cli.session.sums_shown import print_sums  # noqa: PLC0415 - as above
    from nexus_core.session.steps.walking import walk_back  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    sums, damaged = Sums(), list[Damaged]()
    with open_nexus(ctx, ledger) as nexus:
        url = without_secret(nexus.ledger.url)
        records = nexus.ledger.sessions(status=None)
        record = None if label is None else find_session(nexus.ledger, label)
        tips = [record.tip] if record else [each.tip for each in records]
        with shell.console.progress(steps_up_to(nexus.ledger, tips)) as progress:
            steps = nexus.ledger.steps() if record is None else walk_back(nexus.ledger, record.tip)
            counting = _counted(
                sums, steps, nexus.ledger, progress, damaged=damaged, label=record.label if record else ""
            )
            if record is not None:
                sums.cache = _cache_in(nexus, counting, damaged, record.label)
            deque(counting, maxlen=0)
    about: dict[str, object] = {"sessions": len(records)} if record is None else {"session": record.label}
    if json:
        told = {**about, **sums.facts(), "damaged": [each._asdict() for each in damaged]}
        shell.console.json({"schema": 1, "ledger": url, **told})
    elif record is None and not records:
        shell.console.message(f"No sessions in {url}.")
    else:
        print_sums(shell, about, sums)
    tell_damage(shell, damaged)


def _counted(
    sums: Sums, steps: Iterable[Step], ledger: Ledger, progress: Progress, *, damaged: list[Damaged], label: str
) -> Iterator[Step]:
    """The steps that can be read, counted on the way; what leads no farther ends it.

    What an import took back is out of the sums when all steps are counted, whichever way they come.
    """
    from nexus_core.cli.session.damage import noting  # noqa: PLC0415 - as above
    from nexus_core.history.ledger.reading import is_import_revert  # noqa: PLC0415 - as above
    from nexus_core.session.steps.walking import find_reverted  # noqa: PLC0415 - as above

    awaited: set[str] = set()  # reverted steps of a session, which come behind the step that says so
    with noting(damaged, label):
        for step in steps:
            known = sums.steps
            with noting(damaged, label):
                sums.add(step)
                if step.id in awaited:
                    sums.take_back(step)
                reverted = find_reverted(ledger, step) if is_import_revert(step) else []
                if label:
                    awaited.update(each.id for each in reverted)
                else:
                    for each in reverted:
                        if each.branch == step.branch:  # else another session has it, too
                            sums.take_back(each)
            progress.advance(1)
            if sums.steps != known and step.id not in awaited:
                yield step


def _cache_in(nexus: Nexus, steps: Iterable[Step], damaged: list[Damaged], label: str) -> CacheSums:
    """What became of the cache, as far as its calls can be read."""
    from nexus_core.cli.session.damage import noting  # noqa: PLC0415 - as above
    from nexus_core.cli.session.sums import CacheSums  # noqa: PLC0415 - as above
    from nexus_core.session.caching import cache_along  # noqa: PLC0415 - as above
    from nexus_core.session.steps.epochs import Epochs  # noqa: PLC0415 - as above
    from nexus_core.tokens.counters import open_model  # noqa: PLC0415 - as above

    settings, sums = nexus.load().settings, CacheSums()
    minimum = cache(lambda model: open_model(model, host=nexus.host, settings=settings).cache_minimum)
    with noting(damaged, label):
        for step, report in cache_along(steps, Epochs(lambda: nexus.ledger), minimum):
            sums.add(step, report)
    return sums
