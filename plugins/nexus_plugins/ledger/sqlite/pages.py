"""The bytes of a file of SQLite, read without SQLite: pages of the file and its log, and the records in them.

https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOG_HEADER, _FRAME_HEADER = 32, 24
_USUAL_SIZE = 4096
_POINTER = 4
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL, _ZERO, _ONE, _FIRST_TEXT = 7, 8, 9, 12

Value = int | bytes | str | None


class Pages(NamedTuple):
    """The pages of a file.

    Attributes:
        size: Bytes of a page.
        latest: Each by its number, as it was written last.
        older: Others that were written before, or lie in the log.
    """

    size: int
    latest: dict[int, bytes]
    older: list[bytes]

    def all(self) -> Iterator[bytes]:
        """Every page there is."""
        yield from self.latest.values()
        yield from self.older


def read_pages(path: Path) -> Pages:
    """The pages of a file and of the log beside it, whatever state they are in."""
    content = path.read_bytes()
    size = _page_size(int.from_bytes(content[16:18], "big"))
    latest = {number + 1: content[at : at + size] for number, at in enumerate(range(0, len(content), size))}
    older: list[bytes] = []
    log = path.with_name(path.name + "-wal")
    if log.is_file():
        frames = log.read_bytes()[_LOG_HEADER:]
        for at in range(0, len(frames) - _FRAME_HEADER, size + _FRAME_HEADER):
            number = int.from_bytes(frames[at : at + 4], "big")
            older.append(latest.get(number, b""))
            latest[number] = frames[at + _FRAME_HEADER : at + _FRAME_HEADER + size]
    return Pages(size, latest, older)


def record_at(pages: Pages, page: bytes, start: int, *, table: bool) -> list[Value] | None:
    """The values of the record whose header begins at a place of a page; None when there is none.

    Args:
        pages: Where to look for what does not fit on the page.
        page: The page.
        start: Where the record begins.
        table: Whether it is a row of a table, or an entry of an index: they overflow at different sizes.
    """
    try:
        end, at = _number(page, start)
        kinds: list[int] = []
        while at < start + end:
            kind, at = _number(page, at)
            kinds.append(kind)
        whole = end + sum(map(_length, kinds))
        if whole > pages.size * len(pages.latest):  # longer than the file
            return None
        payload = _payload(pages, page, start, whole, table=table)
        return list(_values(payload, end, kinds))
    except (IndexError, ValueError):
        return None


def _payload(pages: Pages, page: bytes, start: int, whole: int, *, table: bool) -> bytes:
    usable = pages.size
    most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if whole <= most:
        return page[start : start + whole]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (whole - least) % (usable - 4)
    local = local if local <= most else least
    pieces = [page[start : start + local]]
    left = whole - local
    number = int.from_bytes(page[start + local : start + local + _POINTER], "big")
    while left > 0:
        more = pages.latest.get(number, b"")
        if len(more) <= _POINTER:
            raise IndexError(number)
        pieces.append(more[_POINTER : _POINTER + left])
        left -= len(pieces[-1])
        number = int.from_bytes(more[:_POINTER], "big")
    return b"".join(pieces)


def _values(payload: bytes, at: int, kinds: list[int]) -> Iterator[Value]:
    for kind in kinds:
        content = payload[at : at + _length(kind)]
        if len(content) < _length(kind):
            raise IndexError(at)
        at += len(content)
        if kind in (0, _REAL):
            yield None  # nothing of ours is a real number
        elif kind in (_ZERO, _ONE):
            yield kind - _ZERO
        elif kind in _INTEGERS:
            yield int.from_bytes(content, "big", signed=True)
        else:
            yield content.decode() if kind % 2 else content


def _length(kind: int) -> int:
    if kind >= _FIRST_TEXT:
        return (kind - _FIRST_TEXT) // 2
    if kind > _ONE:
        raise ValueError(kind)
    return 8 if kind == _REAL else _INTEGERS.get(kind, 0)


def _number(page: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for index in range(8):
        byte = page[at + index]
        value = value << 7 | byte & 127
        if byte < 128:  # noqa: PLR2004 - the bit that says whether it goes on
            return value, at + index + 1
    return value << 8 | page[at + 8], at + 9


def _page_size(written: int) -> int:
    size = 65536 if written == 1 else written
    return size if size >= 512 and not size & (size - 1) else _USUAL_SIZE  # noqa: PLR2004 - the smallest there is
