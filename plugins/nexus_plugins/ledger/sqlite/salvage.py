"""Rows from a damaged SQLite file, read from its pages and log without SQLite.

Rows are found by the pattern of their record header, anywhere on a page. Their digest decides later whether they are
intact. https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.ledgers import AliasRow, DeletionRow, ErasedRow, HistoryRow, Salvaged, SessionRow, StepRow
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger.sqlite.connection import SQLITE_ERRORS, build_system_error, connect_to_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_DEFAULT_PAGE_BYTES = 4096
_POINTER_BYTES = 4
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL, _ZERO, _ONE, _FIRST_TEXT = 7, 8, 9, 12

ColumnValue = int | bytes | str | None


class SqlitePages(NamedTuple):
    """The pages of a file.

    Attributes:
        size: Bytes of a page.
        latest: The newest version of each page, by page number.
        older: Older versions, which a newer one in the log replaces.
    """

    size: int
    latest: dict[int, bytes]
    older: list[bytes]

    def all(self) -> Iterator[bytes]:
        """Yield every page, newest versions first."""
        yield from self.latest.values()
        yield from self.older


def read_pages(path: Path) -> SqlitePages:
    """Read the pages of a file and of its log, without validation."""
    content = path.read_bytes()
    size = _decode_page_size(int.from_bytes(content[16:18], "big"))
    latest = {number + 1: content[at : at + size] for number, at in enumerate(range(0, len(content), size))}
    older: list[bytes] = []
    log = path.with_name(path.name + "-wal")
    if log.is_file():
        frames = log.read_bytes()[_LOG_HEADER_BYTES:]
        for at in range(0, len(frames) - _FRAME_HEADER_BYTES, size + _FRAME_HEADER_BYTES):
            number = int.from_bytes(frames[at : at + 4], "big")
            older.append(latest.get(number, b""))
            latest[number] = frames[at + _FRAME_HEADER_BYTES : at + _FRAME_HEADER_BYTES + size]
    return SqlitePages(size, latest, older)


def read_record(pages: SqlitePages, page: bytes, start: int, *, table: bool) -> list[ColumnValue] | None:
    """Return the values of the record at an offset of a page, or None.

    Args:
        pages: All pages, for records that overflow to others.
        page: The page.
        start: The offset of the record.
        table: True for a row of a table, False for an entry of an index, which overflows at another size.
    """
    try:
        end, at = _read_varint(page, start)
        kinds: list[int] = []
        while at < start + end:
            kind, at = _read_varint(page, at)
            kinds.append(kind)
        length = end + sum(map(_measure_value, kinds))
        if length > pages.size * len(pages.latest):  # longer than the file
            return None
        payload = _read_payload(pages, page, start, length, table=table)
        return list(_decode_values(payload, end, kinds))
    except (IndexError, ValueError):
        return None


def _read_payload(pages: SqlitePages, page: bytes, start: int, length: int, *, table: bool) -> bytes:
    usable = pages.size
    max_local = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if length <= max_local:
        return page[start : start + length]
    min_local = (usable - 12) * 32 // 255 - 23
    local = min_local + (length - min_local) % (usable - 4)
    local = local if local <= max_local else min_local
    pieces = [page[start : start + local]]
    left = length - local
    number = int.from_bytes(page[start + local : start + local + _POINTER_BYTES], "big")
    while left > 0:
        more = pages.latest.get(number, b"")
        if len(more) <= _POINTER_BYTES:
            raise IndexError(number)
        pieces.append(more[_POINTER_BYTES : _POINTER_BYTES + left])
        left -= len(pieces[-1])
        number = int.from_bytes(more[:_POINTER_BYTES], "big")
    return b"".join(pieces)


def _decode_values(payload: bytes, at: int, kinds: list[int]) -> Iterator[ColumnValue]:
    for kind in kinds:
        content = payload[at : at + _measure_value(kind)]
        if len(content) < _measure_value(kind):
            raise IndexError(at)
        at += len(content)
        if kind in (0, _REAL):
            yield None  # the ledger has no real numbers
        elif kind in (_ZERO, _ONE):
            yield kind - _ZERO
        elif kind in _INTEGERS:
            yield int.from_bytes(content, "big", signed=True)
        else:
            yield content.decode() if kind % 2 else content


def _measure_value(kind: int) -> int:
    if kind >= _FIRST_TEXT:
        return (kind - _FIRST_TEXT) // 2
    if kind > _ONE:
        raise ValueError(kind)
    return 8 if kind == _REAL else _INTEGERS.get(kind, 0)


def _read_varint(page: bytes, at: int) -> tuple[int, int]:
    """Decode a variable-length integer. Return it and the offset after it."""
    value = 0
    for index in range(8):
        byte = page[at + index]
        value = value << 7 | byte & 127
        if byte < 128:  # noqa: PLR2004 - the highest bit marks continuation
            return value, at + index + 1
    return value << 8 | page[at + 8], at + 9


def _decode_page_size(written: int) -> int:
    size = 65536 if written == 1 else written
    return size if size >= 512 and not size & (size - 1) else _DEFAULT_PAGE_BYTES  # noqa: PLR2004 - the smallest there is


# The length of a record's header, then the types of its values: 0x41 is a text of 26 characters (an id), 0x4d one of
# 32 (a `seal`), 0x81 0x0d one of 64 (a digest), 0 is null.
_TEXT = rb"(?:[\x0d-\x7f]|[\x81-\xff][\x00-\x7f])"
_STEP = re.compile(rb"(?=[\x11-\x30]\x41[\x41\x00]\x41\x41[\x01-\x09])", re.DOTALL)
_SESSION = re.compile(rb"(?=[\x0c-\x18]\x41" + _TEXT + rb"[\x41\x00]{3}[\x19\x1d])", re.DOTALL)
_ALIAS = re.compile(rb"(?=[\x05-\x08]" + _TEXT + rb"\x41[\x01-\x06]\x4d)", re.DOTALL)
_HISTORY = re.compile(rb"(?=\x06\x41\x41[\x0d-\x7f][\x01-\x06]\x4d)", re.DOTALL)
_BLOB = re.compile(rb"(?=[\x04-\x0a]\x81\x0d)", re.DOTALL)

# In the order of the table; a StepRow has another order.
_STEP_COLUMNS = (
    *("id", "parent", "turn", "branch", "position", "kind", "closes", "tokens", "counter", "total", "compaction"),
    *("created", "digest", "chain", "data", "messages"),
)


def salvage_rows(path: Path) -> Salvaged:
    """Return everything in a file that looks like a row of a ledger."""
    try:
        pages = read_pages(path)
    except OSError as error:
        raise build_system_error(error, path) from error
    return Salvaged(
        steps=(
            StepRow(**dict(zip(_STEP_COLUMNS, row, strict=True)))
            for row in _find_records(pages, _STEP, len(_STEP_COLUMNS), table=True)
        ),
        sessions=(SessionRow(*row) for row in _find_records(pages, _SESSION, 11, table=True)),
        aliases=(AliasRow(*row) for row in _find_records(pages, _ALIAS, 4, table=False)),
        history=(HistoryRow(*row) for row in _find_records(pages, _HISTORY, 5, table=False)),
        blobs=((row[0], row[1]) for row in _find_records(pages, _BLOB, 2, table=True) if isinstance(row[1], bytes)),
        deletions=[DeletionRow(*row) for row in _fetch_rows(path, sql.DELETIONS)],
        erased=[ErasedRow(*row) for row in _fetch_rows(path, sql.ALL_ERASED)],
    )


def _fetch_rows(path: Path, statement: str) -> list[Any]:
    """Return rows read by SQLite, none if it cannot or the table does not exist."""
    try:
        with closing(connect_to_file(path, mode="ro")) as connection:
            return connection.execute(statement).fetchall()
    except SQLITE_ERRORS:
        return []


def _find_records(pages: SqlitePages, head: re.Pattern[bytes], columns: int, *, table: bool) -> Iterator[list[Any]]:
    for page in pages.all():
        for match in head.finditer(page):
            values = read_record(pages, page, match.start(), table=table)
            if values is not None and len(values) == columns:
                yield values
