"""Encoding of steps as rows and blobs, and steps that are decoded on access.

Images and documents are stored once, as blobs named by their digest, and put back when a message is read.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, get_args

from nexus_core.dialects.fields import prefix_error_path
from nexus_core.dialects.neutral import message_from_json, message_to_json
from nexus_core.errors import LedgerError, MessageError, UnknownNameError
from nexus_core.ledger.store import (
    StepRow,
    clean_text,
    compute_chain_digest,
    compute_content_digest,
    compute_step_digest,
    is_erased,
    parse_json,
    write_json,
)
from nexus_core.types.base import blake2b
from nexus_core.types.ledger import Step, StepKind
from nexus_core.types.payloads import StepPayloadMixin, read_step_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.ledger.store import ParentRef, SessionRow
    from nexus_core.types.ledger import NewStep
    from nexus_core.types.messages import JSON, Message

MIN_BLOB_CHARACTERS = 1024
"""Minimum characters of base64 to store it as a blob: a reference to one takes about a tenth of that."""

_DATA_FIELD = "data"
"""The key of base64 content of an image or document, in every API and in Nexus."""
_BLOB_FIELD = "nexus_blob"


def compute_blob_digest(content: bytes) -> str:
    """Return the digest by which a blob is stored."""
    return blake2b(content, digest_size=32).hexdigest()


def may_hold_media(text: str) -> bool:
    """Return True if messages in JSON may have media to extract or a field to escape."""
    return (len(text) >= MIN_BLOB_CHARACTERS and f'"{_DATA_FIELD}":"' in text) or f'"{_BLOB_FIELD}"' in text


def refers_to_media(text: str) -> bool:
    """Return True if stored messages have references to blobs."""
    return f'"{_BLOB_FIELD}"' in text


def extract_media(value: Any, blobs: dict[str, bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    """Replace large base64 in JSON by references, and add the bytes to `blobs`."""
    if isinstance(value, list):
        return [extract_media(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    copied = {
        key: _extract_field(item, blobs) if key == _DATA_FIELD else extract_media(item, blobs)
        for key, item in value.items()
    }
    # Escape a field of the same name in the message itself, so that it is restored unchanged.
    return {_BLOB_FIELD: copied} if _BLOB_FIELD in copied else copied


def restore_media(value: Any, blob: Callable[[str], bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    """Return the JSON that `extract_media` was called with."""
    if isinstance(value, list):
        return [restore_media(item, blob) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and _BLOB_FIELD in value:
        kept = value[_BLOB_FIELD]
        if isinstance(kept, str):
            return b64encode(blob(kept)).decode()
        value = kept
    return {key: restore_media(item, blob) for key, item in value.items()}


def find_media_blobs(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON has many types
    """Yield the digests of the blobs that stored messages refer to."""
    if isinstance(value, list):
        for item in value:
            yield from find_media_blobs(item)
    elif isinstance(value, dict):
        if len(value) == 1 and _BLOB_FIELD in value:
            kept = value[_BLOB_FIELD]
            if isinstance(kept, str):
                yield kept
                return
            value = kept
        for item in value.values():
            yield from find_media_blobs(item)


def _extract_field(value: Any, blobs: dict[str, bytes]) -> Any:  # noqa: ANN401 - JSON has many types
    if not isinstance(value, str):
        return extract_media(value, blobs)
    content = _decode_base64(value) if len(value) >= MIN_BLOB_CHARACTERS else None
    if content is None:
        return value
    digest = compute_blob_digest(content)
    blobs[digest] = content
    return {_BLOB_FIELD: digest}


def _decode_base64(text: str) -> bytes | None:
    """Decode base64. Return None if encoding does not give the same text again."""
    try:
        content = b64decode(text, validate=True)
    except ValueError:
        return None
    return content if b64encode(content).decode() == text else None


PROMPT_BLOB, SECTIONS_BLOB, SETTINGS_BLOB = "system prompt and tools", "sections", "settings"
MEDIA_BLOB, SOURCE_BLOB, SOURCE_PIECE_BLOB = "picture or document", "imported file", "piece of an imported file"

_STEP_BLOB_FIELDS = {"epoch": PROMPT_BLOB, "view": SECTIONS_BLOB, "setup": SETTINGS_BLOB, "memories": SECTIONS_BLOB}
"""Keys in the data of a step that name blobs, and the kind of each blob."""
_BLOB_DIGEST = re.compile(r"[0-9a-f]{64}")


def find_step_blobs(row: StepRow) -> Iterator[tuple[str, str]]:
    """Yield the digest and kind of each blob that a step refers to."""
    if refers_to_media(row.messages):
        for digest in find_media_blobs(json.loads(row.messages)):
            yield digest, MEDIA_BLOB
    if any(f'"{name}":' in row.data for name in _STEP_BLOB_FIELDS):
        data = json.loads(row.data)
        for name, kind in _STEP_BLOB_FIELDS.items():
            if _is_blob_digest(data.get(name)):
                yield data[name], kind


def find_session_blobs(row: SessionRow) -> Iterator[tuple[str, str]]:
    """Yield the digest and kind of the file that a session was imported from."""
    about = json.loads(row.data).get("transcript")
    source = about.get("source") if isinstance(about, dict) else None
    if _is_blob_digest(source):
        yield str(source), SOURCE_BLOB


def find_nested_blobs(kind: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the digest and kind of each blob that a blob refers to.

    A blob that cannot be read refers to none.

    Args:
        kind: The kind of the blob, such as `PROMPT_BLOB`.
        content: Its bytes.
    """
    if kind not in (PROMPT_BLOB, SOURCE_BLOB):
        return
    try:
        body: Any = json.loads(content)
        found = (
            [(body.get("view"), SECTIONS_BLOB)]
            if kind == PROMPT_BLOB
            else [(each, SOURCE_PIECE_BLOB) for each in body["zlib"]]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    yield from ((digest, nested) for digest, nested in found if _is_blob_digest(digest))


def _is_blob_digest(value: object) -> bool:
    return isinstance(value, str) and _BLOB_DIGEST.fullmatch(value) is not None


DECODE_ERRORS = (ValueError, TypeError, AttributeError, RecursionError, MessageError)
"""Errors of decoding JSON that has no valid messages."""


def encode_messages(messages: Iterable[Message]) -> tuple[str, dict[str, bytes]]:
    """Return the stored JSON of messages, and the blobs it refers to.

    Raises:
        MessageError: A message could not be decoded again. The error has the path of the field.
    """
    blobs: dict[str, bytes] = {}
    written = []
    for index, message in enumerate(messages):
        try:
            written.append(message_to_json(message))
        except MessageError as error:
            raise prefix_error_path(f"messages[{index}]", error) from None
    text = write_json(written, "a message")
    if may_hold_media(text):
        text = write_json(extract_media(json.loads(text), blobs), "a message")
    return text, blobs


def decode_messages(text: str, blob: Callable[[str], bytes]) -> tuple[Message, ...]:
    """Return the messages that `encode_messages` was called with."""
    written = parse_json(text)
    if refers_to_media(text):
        written = restore_media(written, blob)
    return tuple(message_from_json(each) for each in written)


def describe_decode_error(text: str) -> str:
    """Return the reason why stored messages cannot be decoded, "" if they can.

    Blobs are not read.
    """
    try:
        decode_messages(text, lambda _digest: b"")
    except MessageError as error:
        return f"{error.what} at {error.path}" if error.path else error.what
    except DECODE_ERRORS as error:
        return f"they are no messages ({type(error).__name__})"
    return ""


class StoredStep(Step):
    """A step whose messages and data are decoded on access, and which equals any `Step` with the same content.

    Args:
        row: The fields of its `StepRow`.
        blob: Returns the blob with a digest, or None.
    """

    __slots__ = ("_blob", "_row")

    _row: StepRow
    _blob: Callable[[str], bytes | None]

    def __init__(self, row: tuple[Any, ...], blob: Callable[[str], bytes | None]) -> None:
        _set_row(self, tuple.__new__(StepRow, row))
        _set_blob(self, blob)
        _set_closes(self, bool(row[6]))

    def __deepcopy__(self, memo: dict[int, Any]) -> StoredStep:
        """Return a step that decodes messages and data of its own, if they are ever read."""
        return StoredStep(self._row, self._blob)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field of a step
            # Python calls it for a slot that is still empty.
            if name == "messages":
                messages = self._decode_messages()
                _set_messages(self, messages)
                return messages
            if name not in ("payload", "data"):
                return super().__getattr__(name)  # which is no field
            data = self._parse_data()
            _set_data(self, data)
            if name == "data":
                return data
            payload = read_step_payload(self.kind, data)
            _set_payload(self, payload)
            return payload

    @property
    def stored_messages(self) -> str:
        """The stored JSON of the messages."""
        return self._row.messages

    @property
    def row(self) -> StepRow:
        """The row of the step."""
        return self._row

    @property
    def is_as_recorded(self) -> bool:
        """True if the content has the stored digest. `verify` checks much more."""
        try:
            return compute_step_digest(self.row) == self.digest
        except LedgerError:  # a value of a type that is never stored
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
        return hash(self._row.id)

    def __repr__(self) -> str:
        shown = ("id", "turn", "branch", "position", "kind", "closes", "tokens")
        return f"Step({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)}, …)"

    def __reduce__(self) -> tuple[object, ...]:
        # Another process cannot read blobs from this ledger, so that everything is decoded now.
        return _build_step, tuple(getattr(self, name) for name in StepRow._fields)

    def _parse_data(self) -> JSON:
        try:
            data = parse_json(self._row.data)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            self._raise_damaged("its data cannot be read")
        return data

    def _decode_messages(self) -> tuple[Message, ...]:
        try:
            return decode_messages(self._row.messages, self._fetch)
        except DECODE_ERRORS:
            self._raise_damaged("its messages cannot be read")

    def _fetch(self, digest: str) -> bytes:
        content = self._blob(digest)
        if content is None:
            self._raise_damaged(f"the picture or document {digest} is gone")
        return content

    def _raise_damaged(self, what: str) -> NoReturn:
        hint = "`nexus ledger verify` says what else is damaged, `nexus ledger repair NEW` saves the rest"
        raise LedgerError(f"step {self.id} of turn {self.turn} is damaged: {what}", hint=hint)


def _build_step(*values: Any) -> Step:  # noqa: ANN401 - the fields of a step
    return Step(**dict(zip(StepRow._fields, values, strict=True)))


for _name in StepRow._fields:
    if _name not in ("closes", "messages", "data"):
        # In C, because steps are asked for these all the time.
        setattr(StoredStep, _name, property(attrgetter(f"_row.{_name}")))

# Written to the slots directly, because a thousand steps may be built to show one.
_set_row, _set_blob = StoredStep.__dict__["_row"].__set__, StoredStep.__dict__["_blob"].__set__
_set_closes, _set_messages, _set_data = (Step.__dict__[name].__set__ for name in ("closes", "messages", "data"))
_set_payload = StepPayloadMixin.__dict__["payload"].__set__

MAX_STEP_TOKENS = 1 << 53
"""Larger integers are not exact in every JSON parser."""
_STEP_KINDS = get_args(StepKind)


class EncodedStep(NamedTuple):
    """A step in its stored form, before it has a parent, a turn and a branch.

    Attributes:
        id: Its id.
        created: The time, in milliseconds since 1970.
        kind, closes, messages, tokens, counter, data: The fields of its `StepRow`.
        restores: The compaction that a revert makes active; None for no compaction.
        blobs: The blobs that its messages refer to, by digest.
    """

    id: str
    created: int
    kind: str
    closes: int
    messages: str
    tokens: int
    counter: str
    data: str
    restores: str | None
    blobs: dict[str, bytes]


def encode_step(step: NewStep, name: str, created: int) -> EncodedStep:
    """Return a step in its stored form.

    Args:
        step: The step.
        name: Its id.
        created: The time, in milliseconds since 1970.

    Raises:
        LedgerError: Its data cannot be written as JSON, or a number is out of range.
        MessageError: A message could not be decoded again: a field has the wrong type, or is nested too deeply.
    """
    if step.kind not in _STEP_KINDS:
        raise UnknownNameError("kind of step", str(step.kind), _STEP_KINDS)
    if type(step.tokens) is not int or not 0 <= step.tokens < MAX_STEP_TOKENS:
        raise LedgerError(f"a step cannot have {step.tokens} tokens", hint="count again")
    restores = step.data.get("restores")
    if restores is not None and not isinstance(restores, str):
        raise LedgerError("`restores` is not the id of a step", hint="name the compaction that counts again, or None")
    messages, blobs = encode_messages(step.messages)
    return EncodedStep(
        id=name,
        created=created,
        kind=step.kind,
        closes=int(step.closes),
        messages=messages,
        tokens=step.tokens,
        counter=clean_text(step.counter),
        data=write_json(dict(step.data)),
        restores=restores,
        blobs=blobs,
    )


def build_step_rows(
    steps: Iterable[EncodedStep], parent: ParentRef | None, *, turn: str | None, branch: str
) -> list[StepRow]:
    """Return the rows of consecutive steps. Arguments as for `build_step_row`."""
    rows: list[StepRow] = []
    before: ParentRef | StepRow | None = parent
    for new in steps:
        row = build_step_row(new, before, turn=turn, branch=branch)
        turn = None if row.closes else row.turn
        rows.append(row)
        before = row
    return rows


def build_step_row(new: EncodedStep, parent: ParentRef | StepRow | None, *, turn: str | None, branch: str) -> StepRow:
    """Return the row of a step after its parent, with digest and chain.

    Args:
        new: The step.
        parent: The step before it; None for the first.
        turn: The open turn; None if the step opens one, which then has its id.
        branch: The branch of the step.
    """
    name, created, kind, closes, messages, tokens, counter, data, restores, _ = new
    before, turn = parent.id if parent else None, turn or name
    digest = compute_content_digest(name, before, turn, kind, closes, tokens, counter, created, messages, data)
    return StepRow(
        id=name,
        parent=before,
        turn=turn,
        branch=branch,
        position=parent.position + 1 if parent else 0,
        kind=kind,
        closes=closes,
        messages=messages,
        tokens=tokens,
        counter=counter,
        data=data,
        total=compute_running_total(tokens, counter, parent),
        compaction=find_active_compaction(name, kind, restores, parent),
        created=created,
        digest=digest,
        chain=compute_chain_digest(parent.chain if parent else "", digest),
    )


def compute_running_total(tokens: int, counter: str, parent: ParentRef | StepRow | None) -> int:
    """Return the running total of tokens since the last change of the counter."""
    return tokens + (parent.total if parent and parent.counter == counter else 0)


def find_active_compaction(
    name: str, kind: str, restores: str | None, parent: ParentRef | StepRow | None
) -> str | None:
    """Return the compaction that is active from a step on, or None."""
    if kind == "compaction":
        return name
    if kind == "revert":
        return restores
    return parent.compaction if parent else None
