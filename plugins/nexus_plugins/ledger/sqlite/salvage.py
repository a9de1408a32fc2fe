"""The rows in a damaged file: found by what the head of such a record looks like, wherever on a page it lies.

Whether one is whole is told by its digest later, so that what only looks like one does no harm.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import AliasRow, DeletionRow, ErasedRow, HistoryRow, Salvaged, SessionRow, StepRow
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger.sqlite.connecting import connect
from nexus_plugins.ledger.sqlite.failures import TROUBLE, refused
from nexus_plugins.ledger.sqlite.pages import Pages, read_pages, record_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How long a record's head is, then the kinds of its values: 0x41 is a text of 26 characters, as our names are,
# 0x4d one of 32, as our seals are, 0x81 0x0d one of 64, as our digests are, 0 is nothing.
_TEXT = rb"(?:[\x0d-\x7f]|[\x81-\xff][\x00-\x7f])"
_STEP = re.compile(rb"(?=[\x11-\x30]\x41[\x41\x00]\x41\x41[\x01-\x09])", re.DOTALL)
_SESSION = re.compile(rb"(?=[\x0c-\x18]\x41" + _TEXT + rb"[\x41\x00]{3}[\x19\x1d])", re.DOTALL)
_ALIAS = re.compile(rb"(?=[\x05-\x08]" + _TEXT + rb"\x41[\x01-\x06]\x4d)", re.DOTALL)
_HISTORY = re.compile(rb"(?=\x06\x41\x41[\x0d-\x7f][\x01-\x06]\x4d)", re.DOTALL)
_BLOB = re.compile(rb"(?=[\x04-\x0a]\x81\x0d)", re.DOTALL)

# As they stand in the table; a StepRow has them in another order.
_STEP_COLUMNS = (
    *("id", "parent", "turn", "branch", "position", "kind", "closes", "tokens", "counter", "total", "compaction"),
    *("created", "digest", "chain", "data", "messages"),
)


def salvage(path: Path) -> Salvaged:
    """Everything in a file that looks like a row of a ledger."""
    try:
        pages = read_pages(path)
    except OSError as error:
        raise refused(error, path) from error
    return Salvaged(
        steps=(
            StepRow(**dict(zip(_STEP_COLUMNS, row, strict=True)))
            for row in _records(pages, _STEP, len(_STEP_COLUMNS), table=True)
        ),
        sessions=(SessionRow(*row) for row in _records(pages, _SESSION, 11, table=True)),
        aliases=(AliasRow(*row) for row in _records(pages, _ALIAS, 4, table=False)),
        history=(HistoryRow(*row) for row in _records(pages, _HISTORY, 5, table=False)),
        blobs=((row[0], row[1]) for row in _records(pages, _BLOB, 2, table=True) if isinstance(row[1], bytes)),
        deletions=[DeletionRow(*row) for row in _fetch(path, sql.DELETIONS)],
        erased=[ErasedRow(*row) for row in _fetch(path, sql.ALL_ERASED)],
    )


def _fetch(path: Path, statement: str) -> list[Any]:
    """Return rows that only SQLite can read; none where it cannot, or where the file is older than they are."""
    try:
        with closing(connect(path, mode="ro")) as connection:
            return connection.execute(statement).fetchall()
    except TROUBLE:
        return []


def _records(pages: Pages, head: re.Pattern[bytes], columns: int, *, table: bool) -> Iterator[list[Any]]:
    for page in pages.all():
        for match in head.finditer(page):
            values = record_at(pages, page, match.start(), table=table)
            if values is not None and len(values) == columns:
                yield values
