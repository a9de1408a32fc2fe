"""Steps are read as they were stored, with keys in order, or named as unreadable."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core.dialects.neutral import message_to_json
from nexus_core.errors import LedgerError, MessageError, NexusError
from nexus_core.ledger import codec
from nexus_core.ledger.codec import StoredStep, decode_messages, encode_messages
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.effort import examples
from tests.ledger.backends import add, said, tell, texts
from tests.ledger.test_ledger import PICTURE


def nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = {"nexus_blob": value} if level % 2 else [value]
    return {"a": value}


TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=3)
ODD: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    st.sampled_from([None, True, 0, 1, 1.5, float("nan"), 10**5000, b"x", (), [1], {}, {1: 2}, {"a": object()}]),
)
OBJECTS: st.SearchStrategy[Any] = st.one_of(
    st.integers(95, 103).map(nested), st.dictionaries(TEXTS | st.just("nexus_blob"), ODD, max_size=2)
)
PARTS: list[tuple[type[Any], tuple[str, ...]]] = [
    (Text, ("text", "extra")),
    (Image, ("mime", "data", "detail", "extra")),
    (File, ("name", "mime", "extra")),
    (Reasoning, ("text", "signature", "encrypted", "api", "extra")),
    (Opaque, ("api", "block")),
    (ToolCall, ("id", "name", "arguments", "raw", "extra")),
    (ToolResult, ("call_id", "name", "is_error", "extra")),
]
CHOICE = st.integers(0, 2)
USUAL: dict[str, Any] = {
    "text": "x",
    "api": "anthropic",
    "block": {"type": "z"},
    "id": "c",
    "name": "f",
    "call_id": "c",
}


def odd(name: str) -> st.SearchStrategy[Any]:
    """What somebody may put into a field: mostly of its type, with something in it that may not be."""
    usual = OBJECTS if name in ("extra", "block", "arguments") else TEXTS
    return st.integers(0, 9).flatmap(lambda number: usual if number else ODD)


@st.composite
def odd_messages(draw: st.DrawFn) -> Message | None:
    """A message with fields that may not be what they are declared as; None where it cannot even be made."""
    try:
        parts: list[Any] = []
        for kind, names in draw(st.lists(st.sampled_from(PARTS), max_size=3)):
            fields = {name: USUAL[name] for name in names if name in USUAL}
            fields |= {name: draw(odd(name)) for name in names if name != "is_error" and draw(CHOICE) == 0}
            parts.append(kind(**fields))
        if draw(CHOICE) == 0:
            parts.append(ToolResult("c", [part for part in parts if type(part) in (Text, Image, File, Opaque)]))
        extra: dict[str, Any] = {name: draw(odd(name)) for name in ("name", "api", "extra") if draw(CHOICE) == 0}
        return Message("assistant", parts, **extra)
    except ValueError:
        return None


@settings(deadline=None, max_examples=examples(300))
@given(odd_messages())
def test_whatever_is_accepted_is_given_back(message: Message | None) -> None:
    if message is None:
        return
    ledger = MemoryLedger()
    ledger.create("work")
    try:
        step = ledger.append("work", NewStep(kind="turn", closes=True, messages=(message,), counter="c"), after=None)
    except NexusError:
        assert ledger.session("work").tip is None  # type: ignore[union-attr]
        return

    written = json.loads(encode_messages([message])[0])
    again = ledger.step(step.id)
    assert again is not None
    assert json.loads(encode_messages(again.messages)[0]) == written
    assert list(ledger.verify()) == []


def test_the_deepest_arguments_are_kept_and_deeper_ones_refused_with_the_place(ledger: StoreLedger) -> None:
    ledger.create("work")
    deepest = Message("assistant", (ToolCall("c", "f", nested(100)),))

    step = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(deepest,), counter="c"))
    assert ledger.thread(step.id)[0].messages == (deepest,)

    deeper = Message("assistant", (Text("x"), ToolCall("c", "f", nested(101))))
    with pytest.raises(MessageError, match="nested deeper than 100 levels") as caught:
        add(ledger, "work", NewStep(kind="turn", closes=True, messages=(deepest, deeper), counter="c"))
    assert caught.value.path.startswith("messages[1].parts[1].arguments.a")
    assert ledger.session("work").tip == step.id  # type: ignore[union-attr]


@pytest.mark.parametrize("tokens", [1.5, True, "3", None])
def test_tokens_are_a_whole_number(tokens: Any) -> None:
    ledger = MemoryLedger()
    ledger.create("work")

    with pytest.raises(LedgerError, match="a step cannot have"):
        add(ledger, "work", said("x", tokens=tokens))


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Steps are stored as a Nexus did that did not look at what it stored."""

    def pack(messages: Iterable[Message]) -> tuple[str, dict[str, bytes]]:
        text = json.dumps([message_to_json(message) for message in messages], separators=(",", ":"))
        return text.replace('"unreadable"', "null"), {}

    monkeypatch.setattr(codec, "encode_messages", pack)
    return monkeypatch


@pytest.mark.usefixtures("unchecked")
def test_a_step_that_cannot_be_read_is_found(ledger: StoreLedger) -> None:
    ledger.create("work")
    _, lost, _ = tell(ledger, "work", "one", "unreadable", "three")

    with pytest.raises(LedgerError, match="its messages cannot be read"):
        ledger.thread(lost.id)[-1].messages  # noqa: B018 - looked at
    (finding,) = ledger.verify()
    assert (finding.code, finding.step) == ("step-unreadable", lost.id)
    assert finding.message.endswith("its messages cannot be read: expected text, not null at parts[0].text")


@pytest.mark.parametrize("stored", ["[]", "null", "5", "{", ""])
def test_step_whose_data_is_no_object_is_damaged(stored: str) -> None:
    ledger = MemoryLedger()
    ledger.create("work")
    (step,) = tell(ledger, "work", "one")
    assert isinstance(step, StoredStep)
    damaged = StoredStep(step.row._replace(data=stored), ledger.blob)

    with pytest.raises(LedgerError, match="its data cannot be read"):
        damaged.data  # noqa: B018 - looked at
    with pytest.raises(LedgerError, match="its data cannot be read"):
        damaged.payload  # noqa: B018 - looked at
    assert (damaged.id, damaged.closes) == (step.id, True)


@pytest.mark.usefixtures("unchecked")
def test_a_turn_that_cannot_be_read_is_left_out_of_a_repair_and_named(ledger: StoreLedger) -> None:
    ledger.create("work")
    _, lost, _ = tell(ledger, "work", "one", "unreadable", "three")
    target = MemoryLedger()

    rebuilt = ledger.repair(target)

    assert [(each.code, each.step) for each in rebuilt.lost] == [("turn-lost", lost.id)]
    assert f"the messages of step {lost.id} cannot be read: expected text, not null" in rebuilt.lost[0].message
    assert texts(target.thread(str(target.session("work").tip))) == ["one", "three"]  # type: ignore[union-attr]
    assert list(target.verify()) == []


def test_messages_are_read_without_the_ledger_as_they_were_written() -> None:
    message = Message("user", (Text("x"), Opaque("anthropic", {"nexus_blob": "y"})))

    assert decode_messages(encode_messages([message])[0], lambda _digest: b"") == (message,)


WORDS = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
ORDERED_OBJECTS = st.dictionaries(WORDS | st.sampled_from(["z", "data", "nexus_blob", "a"]), VALUES | st.just(PICTURE))
LABELS = count()


def written(value: Any) -> str:
    """JSON that shows the order of keys."""
    return json.dumps(value)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=ORDERED_OBJECTS)
def test_keys_come_back_in_the_order_in_which_they_were_given(ledger: StoreLedger, body: dict[str, Any]) -> None:
    label = f"work {next(LABELS)}"
    message = Message(
        "assistant",
        (
            Text("so", body),
            ToolCall("1", "look", body, raw=written(body)),
            Opaque("anthropic", body),
            ToolResult("1", (Opaque("x", body),)),
        ),
        extra=body,
    )
    ledger.create(label, data=body)
    new = NewStep(kind="turn", closes=True, messages=(message,), data={"z": body, "a": [body]})

    name = ledger.append(label, new, after=None).id

    step, session = ledger.step(name), ledger.session(label)
    assert step is not None
    assert session is not None
    assert written([message_to_json(each) for each in step.messages]) == written([message_to_json(message)])
    assert written(step.data) == written({"z": body, "a": [body]})
    assert written(session.data) == written(body)
    assert written(ledger.update(label, data={"y": 1, "b": body}).data) == written({"y": 1, "b": body})


def test_a_ledger_with_given_orders_verifies_and_can_be_copied(ledger: StoreLedger) -> None:
    ledger.create("work")
    call = Message("assistant", (ToolCall("1", "look", {"path": "x", "lines": 3, "also": {"z": 1, "a": 2}}),))
    step = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(call,), data={"z": 1, "a": 2}))
    tell(ledger, "work", "and on")

    assert list(ledger.verify()) == []
    assert list(step.messages[0].tool_calls[0].arguments) == ["path", "lines", "also"]
    assert texts(ledger.scan(str(ledger.session("work").tip), "on")) == ["and on"]  # type: ignore[union-attr]
