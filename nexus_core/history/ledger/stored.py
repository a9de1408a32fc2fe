"""A step that was stored, decoded when it is looked at: a long history is mostly not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.dialects.fields import joined
from nexus_core.dialects.neutral import from_json, to_json
from nexus_core.errors import LedgerError, MessageError
from nexus_core.history.ledger.media import may_hold_media, put_back, refers_to_media, taken_out
from nexus_core.history.ledger.rows import StepRow, digest_of, is_erased
from nexus_core.history.ledger.texts import write_json
from nexus_core.values.ledger import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON


UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError, MessageError)
"""What comes of reading as messages what is none."""


def pack_messages(messages: Iterable[Message]) -> tuple[str, dict[str, bytes]]:
    """Messages as they are stored, and the blobs they refer to.

    Raises:
        MessageError: One of them could not be read again; says which, and what of it.
    """
    blobs: dict[str, bytes] = {}
    written = []
    for index, message in enumerate(messages):
        try:
            written.append(to_json(message))
        except MessageError as error:
            raise joined(f"messages[{index}]", error) from None
    text = write_json(written, "a message")
    if may_hold_media(text):
        text = write_json(taken_out(json.loads(text), blobs), "a message")
    return text, blobs


def unpack_messages(text: str, blob: Callable[[str], bytes]) -> tuple[Message, ...]:
    """The messages that `pack_messages` was given."""
    written = json.loads(text)
    if refers_to_media(text):
        written = put_back(written, blob)
    return tuple(from_json(each) for each in written)


def why_unreadable(text: str) -> str:
    """Why stored messages cannot be read, whatever became of the blobs; "" where they can."""
    try:
        unpack_messages(text, lambda _digest: b"")
    except MessageError as error:
        return f"{error.what} at {error.path}" if error.path else error.what
    except UNREADABLE as error:
        return f"they are no messages ({type(error).__name__})"
    return ""


class StoredStep(Step):
    """A step as a ledger hands it out; equal to any `Step` with the same content.

    Args:
        row: Its record.
        blob: Fetches what its messages refer to.
    """

    __slots__ = ("_blob", "_data", "_messages", "_row")

    _row: StepRow
    _blob: Callable[[str], bytes | None]
    _messages: tuple[Message, ...]
    _data: JSON

    def __init__(self, row: tuple[Any, ...], blob: Callable[[str], bytes | None]) -> None:
        _set_row(self, row)
        _set_blob(self, blob)

    @property
    def closes(self) -> bool:
        """Whether the turn ends with it."""
        return bool(self._row[6])

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said."""
        try:
            return self._messages
        except AttributeError:
            _set_messages(self, self._unpacked())
            return self._messages

    @property
    def data(self) -> JSON:
        """What else is known."""
        try:
            return self._data
        except AttributeError:
            try:
                _set_data(self, json.loads(self._row[10]))
            except (ValueError, RecursionError):
                self._refuse("its data cannot be read")
            return self._data

    @property
    def row(self) -> StepRow:
        """The record it was made of."""
        return StepRow(*self._row)

    @property
    def is_as_recorded(self) -> bool:
        """Whether its content has the digest that was written down with it; `verify` looks at much more."""
        try:
            return digest_of(self.row) == self.digest
        except LedgerError:  # a value of a kind that is never stored
            return False

    @property
    def is_erased(self) -> bool:
        """True if its content was deleted."""
        return is_erased(self.row)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredStep) and self._row == other._row:
            return True
        if not isinstance(other, Step):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in StepRow._fields)

    def __hash__(self) -> int:
        return hash(self._row[0])

    def __repr__(self) -> str:
        shown = ("id", "turn", "branch", "position", "kind", "closes", "tokens")
        return f"Step({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)}, …)"

    def __reduce__(self) -> tuple[object, ...]:
        # Another process has no ledger to ask for blobs, so it gets everything at once.
        return _rebuilt, tuple(getattr(self, name) for name in StepRow._fields)

    def _unpacked(self) -> tuple[Message, ...]:
        try:
            return unpack_messages(self._row[7], self._fetch)
        except UNREADABLE:
            self._refuse("its messages cannot be read")

    def _fetch(self, digest: str) -> bytes:
        content = self._blob(digest)
        if content is None:
            self._refuse(f"the picture or document {digest} is gone")
        return content

    def _refuse(self, what: str) -> NoReturn:
        hint = "`nexus session verify` says what else is damaged, `nexus session repair` saves the rest"
        raise LedgerError(f"step {self.id} of turn {self.turn} is damaged: {what}", hint=hint)


def _rebuilt(*values: Any) -> Step:  # noqa: ANN401 - the fields of a step
    return Step(**dict(zip(StepRow._fields, values, strict=True)))


def _reader(index: int) -> property:
    return property(lambda self: self._row[index])


for _index, _name in enumerate(StepRow._fields):
    if _name not in ("closes", "messages", "data"):
        setattr(StoredStep, _name, _reader(_index))

# Straight into the slots, because a thousand of them may be made to show one.
_set_row = StoredStep.__dict__["_row"].__set__
_set_blob = StoredStep.__dict__["_blob"].__set__
_set_messages = StoredStep.__dict__["_messages"].__set__
_set_data = StoredStep.__dict__["_data"].__set__
