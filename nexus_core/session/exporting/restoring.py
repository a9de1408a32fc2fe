"""The steps of an export in another ledger: the same names, the same digests, each of them once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError, SessionExistsError
from nexus_core.session.importing.tallies import Tally, tally, tally_until
from nexus_core.session.importing.transcripts import ABOUT, about_import

if TYPE_CHECKING:
    from nexus_core.session.exporting.reading import Export
    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord


class Restored(NamedTuple):
    """What becomes of a session.

    Attributes:
        record: What it is like.
        is_new: Whether it is made.
        after: The step behind which the steps go; None for none.
        steps: What is added; nothing where all of it is there.
        tally: What the session consists of with them.
    """

    record: SessionRecord
    is_new: bool
    after: str | None
    steps: tuple[NewStep, ...]
    tally: Tally


def restore(ledger: Ledger, export: Export, *, label: str = "", dry_run: bool = False) -> list[Restored]:
    """Bring the sessions of an export into a ledger; what is there already stays as it is.

    Each session is added in one transaction. If that is cut off between two, the next import adds the rest.

    Args:
        ledger: Where to.
        export: What.
        label: What the session shall be called; by default what it is called in the export.
        dry_run: Whether to say only what would be added.

    Raises:
        SessionExistsError: A session of that name is another conversation, or has gone on otherwise.
        LedgerError: A step of that name is there already and says something else.
    """
    planned = _Plan(ledger, export).plan(label)
    if dry_run:
        return planned
    ledger.put_blobs(export.blobs)
    for each in planned:
        if not each.is_new:
            ledger.append_many(each.record.label, each.steps, after=each.after)
            continue
        record = each.record
        ledger.create(record.label, head=each.after, origin=record.origin, data=record.data, steps=each.steps)
        if record.tip is not None and (record.status != "active" or not each.steps):
            # It was last changed where it comes from.
            ledger.update(record.label, status=record.status, updated=export.steps[record.tip].created)
    return planned


class _Plan:
    def __init__(self, ledger: Ledger, export: Export) -> None:
        self._ledger = ledger
        self._export = export
        self._planned: set[str] = set()

    def plan(self, label: str) -> list[Restored]:
        main = self._export.sessions[0].label
        return [self._restored(_named(record, main, label)) for record in self._export.sessions]

    def _restored(self, record: SessionRecord) -> Restored:
        after, steps = self._missing(record.tip)
        there = self._ledger.session(record.label)
        if there is None:
            self._ensure_closed(record.label, after)
        elif there.tip != after and (steps or not _leads_to(self._ledger, there.tip, after)):
            raise SessionExistsError(
                f"session {there.label!r} is another conversation, or has gone on otherwise",
                hint="import it under another name: --name NAME",
            )
        after = after if there is None else there.tip
        self._planned.update(step.id for step in steps)
        if there is None or steps:
            found = tally(self._export.steps[name] for name in reversed([*self._export.thread(record.tip)]))
        else:
            found = tally_until(self._ledger, there.tip)
        return Restored(record if there is None else there, there is None, after, steps, found)

    def _missing(self, tip: str | None) -> tuple[str | None, tuple[NewStep, ...]]:
        """The last step of a thread that is there, and those that are not."""
        names: list[str] = []
        for name in self._export.thread(tip):
            if name in self._planned or self._is_there(name):
                return name, tuple(self._export.steps[each] for each in reversed(names))
            names.append(name)
        return None, tuple(self._export.steps[each] for each in reversed(names))

    def _is_there(self, name: str) -> bool:
        known = self._ledger.step(name)
        if getattr(known, "is_erased", False):
            hint = "import it into another ledger: --ledger NEW"
            raise LedgerError(f"step {name} was deleted here with its session, and does not come back", hint=hint)
        if known is not None and known.digest != self._export.digests[name]:
            raise LedgerError(f"there is another step {name}", hint="`nexus ledger verify` says whether it is whole")
        return known is not None

    def _ensure_closed(self, label: str, after: str | None) -> None:
        if after is not None and not self._export.steps[after].closes:
            raise SessionExistsError(
                f"the turn that is open in {label!r} is there already, in a session of another name",
                hint="`nexus session list` says which; finish the turn there",
            )


def _named(record: SessionRecord, main: str, label: str) -> SessionRecord:
    """A session under another name, with those that are named after it."""
    if not label:
        return record
    names = {
        each: label + each.removeprefix(main) if each == main or each.startswith(f"{main}/") else each
        for each in (record.label, record.origin)
    }
    about = about_import(record)
    data = {**record.data, ABOUT: {**about, "session": names[record.label], "main": label}} if about else record.data
    return replace(record, label=names[record.label], origin=names[record.origin], data=data)


def _leads_to(ledger: Ledger, tip: str | None, step: str | None) -> bool:
    """Whether a step is among those up to another."""
    if tip is None or step is None:
        return step is None
    try:
        return bool(ledger.thread(tip, first=step))
    except LedgerError:
        return False
