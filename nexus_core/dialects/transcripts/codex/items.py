"""Lines with and without an envelope, and the items in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.responses.dialect import DIALECT
from nexus_core.dialects.transcripts.lines import mapping_under, word_in
from nexus_core.dialects.transcripts.transcript import Entry
from nexus_core.dialects.transcripts.unreadable import attempt, kept
from nexus_core.values.conversation import Usage

if TYPE_CHECKING:
    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.values.message import Role

FORMAT = "codex"
_SPEAKERS: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}


class Item(NamedTuple):
    """A line without its envelope: what it is, and what it says."""

    kind: str
    body: dict[str, Any]
    record: Record

    @property
    def inner_kind(self) -> str:
        """What an item or event calls itself."""
        return word_in(self.body, "type") or ("message" if "role" in self.body else "")

    @property
    def full_kind(self) -> str:
        """Both, for what is kept as it is."""
        return "/".join(filter(None, (self.kind, word_in(self.body, "type"))))


def open_envelope(record: Record) -> Item:
    """What a line is; of a file without envelopes, by the looks of it."""
    value = record.value
    if isinstance(value.get("payload"), dict):
        payload: dict[str, Any] = value["payload"]
        kind = word_in(value, "type") or ("session_meta" if "id" in payload and "type" not in payload else "untyped")
        return Item(kind, payload, record)
    if "record_type" in value:
        return Item(f"record_type/{value['record_type']}", value, record)
    if "type" in value or "role" in value:
        return Item("response_item", value, record)
    return Item("session_meta" if "id" in value else "untyped", value, record)


def read_item(item: Item, body: dict[str, Any], account: Account, *, model: str = "") -> Entry:
    """An item as a message; one that is new, or lacks something, whole."""
    record = item.record
    message = attempt(DIALECT.read, body, account, record.number)
    if message is None:
        message = kept(_speaker(body), FORMAT, body)
    name = word_in(body, "id")
    return Entry(
        message=message,
        lines=(record.number,),
        ids=(name,) if name else (),
        time=word_in(record.value, "timestamp"),
        model=model if message.role == "assistant" else "",
        raw=(record.value,),
    )


def read_usage(event: dict[str, Any]) -> Usage | None:
    """What the last call cost, as a `token_count` event tells it."""
    given = mapping_under(mapping_under(event, "info"), "last_token_usage")
    if not given:
        return None
    return Usage(
        input_tokens=_number(given, "input_tokens"),
        output_tokens=_number(given, "output_tokens"),
        cached_input_tokens=_number(given, "cached_input_tokens"),
        reasoning_tokens=_number(given, "reasoning_output_tokens"),
    )


def _speaker(body: dict[str, Any]) -> Role:
    if word_in(body, "type").endswith("_output"):
        return "tool"
    return _SPEAKERS.get(word_in(body, "role"), "assistant")


def _number(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    return found if type(found) is int and found >= 0 else 0
