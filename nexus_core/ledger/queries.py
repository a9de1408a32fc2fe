"""Queries over all sessions of a ledger, in a few statements.

A `QueryableStore` answers them itself. From any other store, and from a damaged one, every session is read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nexus_core.errors import LedgerError, LedgerUnreachableError
from nexus_core.ledger.ledger import NO_LIMIT, StoreLedger, build_session_record, encode_search_text
from nexus_core.ledger.store import QueryableStore, write_canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nexus_core.ledger.store import BranchRow
    from nexus_core.types.ledger import Ledger, SessionRecord, SessionStatus

T = TypeVar("T")

_FIRST_SESSIONS = 100
"""Sessions searched one by one before the whole ledger: a frequent text is mostly found in these."""


class NewestSessions(NamedTuple):
    """The sessions changed last, and the number of the others."""

    records: list[SessionRecord]
    left_out: int


class BranchOrigin(NamedTuple):
    """The step that a branch was forked from, and its branch, None for a new one."""

    step: str | None
    branch: str | None


class TipBranches(NamedTuple):
    """The branches that the sessions of a ledger are on.

    Attributes:
        branches: The branch of each tip, by the tip's id.
        origins: The origins of these branches.
    """

    branches: dict[str, str]
    origins: dict[str, BranchOrigin]


def find_newest_sessions(
    ledger: Ledger, *, status: SessionStatus | None = None, directory: str | None = None, limit: int | None = None
) -> NewestSessions:
    """Return the sessions changed last, those with the same time by label.

    Args:
        ledger: The ledger.
        status: Only sessions of that status; None for all.
        directory: Only sessions whose working directory it is; None for all.
        limit: The maximum number of sessions; None for all.
    """

    def query(store: QueryableStore) -> NewestSessions:
        # Sessions with the text in another field of their data are left out below.
        text = "" if directory is None else write_canonical_json(directory)
        most = NO_LIMIT if limit is None or directory is not None else limit
        rows = store.newest_session_rows(status=status or "", text=text, limit=most)
        found = [record for record in map(build_session_record, rows) if _works_in(record, directory)]
        if directory is None and limit is not None:
            return NewestSessions(found, max(store.count_sessions(status or "") - limit, 0))
        return _limit_sessions(found, limit)

    if limit is None and directory is None:
        return NewestSessions(ledger.sessions(status=status), 0)
    result = _run_query(ledger, query)
    if result is not None:
        return result
    return _limit_sessions([record for record in ledger.sessions(status=status) if _works_in(record, directory)], limit)


def count_sessions(ledger: Ledger) -> int:
    """Return the number of sessions, archived ones included."""
    count = _run_query(ledger, lambda store: store.count_sessions(""))
    return len(ledger.sessions(status=None)) if count is None else count


def count_steps(ledger: Ledger) -> int:
    """Return the number of steps, roughly.

    Without a queryable store, steps that sessions share are counted more than once.
    """
    count = _run_query(ledger, lambda store: store.count_steps())
    if count is not None:
        return count
    tips = [record.tip for record in ledger.sessions(status=None) if record.tip is not None]
    return sum(step.position + 1 for step in map(ledger.step, tips) if step is not None)


def find_former_names(ledger: Ledger) -> dict[str, str]:
    """Return the aliases of all sessions, each with the current label of its session."""
    if not isinstance(ledger, StoreLedger):
        labels = [record.label for record in ledger.sessions(status=None)]
        return {alias: label for label in labels for alias in ledger.aliases(label)}
    store = ledger.store

    def query() -> dict[str, str]:
        if not (aliases := store.alias_rows()):
            return {}
        labels = {row.id: row.label for row in store.session_rows()}
        return {row.alias: labels[row.session] for row in aliases if row.session in labels}

    return store.read(query)


def find_sessions_to_search(ledger: Ledger, text: str) -> Iterator[SessionRecord]:
    """Yield the sessions that may contain a text, those changed last first.

    Sessions whose newest step is missing are among them.
    """
    yield from (first := find_newest_sessions(ledger, limit=_FIRST_SESSIONS)).records
    if not first.left_out:
        return
    known = {record.label for record in first.records}
    labels = _run_query(ledger, partial(_find_labels_with, encode_search_text(text)))
    if labels is None:
        yield from (record for record in ledger.sessions(status=None) if record.label not in known)
        return
    for label in labels:
        record = None if label in known else ledger.session(label)
        if record is not None:
            yield record


def _find_labels_with(needle: str, store: QueryableStore) -> list[str]:
    """Return the labels of sessions with a text in their threads, or a missing tip."""
    matches = dict(store.branches_with(needle))
    inheriting = _find_branches_after(matches, store.forked_branches()) if matches else set[str]()
    return [
        label
        for label, tip, branch, position in store.session_tips()
        if tip is not None
        and (branch is None or position is None or matches.get(branch, NO_LIMIT) <= position or branch in inheriting)
    ]


def _find_branches_after(matches: Mapping[str, int], forks: Iterable[BranchRow]) -> set[str]:
    """Return the branches that were forked after a match, or from such branches.

    Args:
        matches: The first position that matches, by its branch.
        forks: The branches that were forked from another.
    """
    left = {row.id: row for row in forks}
    known: dict[str, bool] = {}
    for name in left:
        passed: dict[str, None] = {}
        branch: str | None = name
        is_after = False
        while branch in left and branch not in known and branch not in passed and not is_after:
            passed[branch] = None
            _, branch, position = left[branch]
            is_after = matches.get(branch or "", NO_LIMIT) <= position
        known |= dict.fromkeys(passed, is_after or known.get(branch or "", False))
    return {branch for branch, is_after in known.items() if is_after}


def find_tip_branches(ledger: Ledger) -> TipBranches:
    """Return the branches of the sessions' tips, as far as one query finds them."""
    rows = _run_query(ledger, lambda store: store.tip_branches()) or []
    found = TipBranches({}, {})
    for tip, branch, step, left in rows:
        found.branches[tip] = branch
        if step is None or left is not None:  # else that step is missing
            found.origins[branch] = BranchOrigin(step, left)
    return found


def _run_query(ledger: Ledger, query: Callable[[QueryableStore], T]) -> T | None:
    """Return the result of a query, or None if the store cannot run it.

    The store is not queryable, or its rows are damaged.
    """
    if not isinstance(ledger, StoreLedger) or not isinstance(ledger.store, QueryableStore):
        return None
    try:
        return ledger.store.read(partial(query, ledger.store))
    except LedgerUnreachableError:
        raise
    except LedgerError:  # one damaged row fails all: reading them one by one finds the others
        return None


def _works_in(record: SessionRecord, directory: str | None) -> bool:
    return directory is None or record.payload.cwd == directory


def _limit_sessions(records: list[SessionRecord], limit: int | None) -> NewestSessions:
    return NewestSessions(records[:limit], 0 if limit is None else max(len(records) - limit, 0))
