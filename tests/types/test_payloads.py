"""Payloads of steps and sessions: typed fields around JSON that stays as it is."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import FrozenInstanceError
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.types.ledger import NewStep, SessionRecord, StepKind
from nexus_core.types.messages import Usage
from nexus_core.types.payloads import (
    CompactionPayload,
    InputPayload,
    LearnedLimit,
    Payload,
    PinPayload,
    RenderedPayload,
    ReplyPayload,
    ResultPayload,
    RevertPayload,
    SessionPayload,
    StepPayload,
    TextClamp,
    ToolCallKey,
    read_step_payload,
)
from tests.conftest import ROOT
from tests.effort import examples
from tests.transcripts.support import SAMPLES
from tests.transfer.support import import_sample

KINDS = get_args(StepKind)
STORED = ROOT / "tests/golden/net/recorded.sql.gz"
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LIKELY: st.SearchStrategy[Any] = st.sampled_from(
    [
        [["01M7HRS29HN5YX053ZXZK53KTQ", 0]],
        [["a", "0"]],
        [[0, 0, 0, 3, 4]],
        [[0, 0, 0, 3]],
        [[100, 50], [90, 95]],
        {"gpt-4o": [1.1, 1.2]},
        {"gpt-4o": [8000, 128000]},
        {"gpt-4o": [8000, "128000"]},
        {"input_tokens": 3, "output_tokens": 4, "later": {}},
        {"input_tokens": "3"},
        ["a", 1, None],
        {"format": "claude-code", "number": "one"},
    ]
)


def objects(kind: type[Payload]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with known and unknown keys in any order, and values of any type."""
    keys = st.sampled_from(sorted(kind.json_keys.values())) | st.text(max_size=6)
    return st.lists(st.tuples(keys, VALUES | LIKELY), max_size=8).map(dict)


def stored_steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and data of the steps of a varied ledger, and of imported transcripts."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(gzip.decompress(STORED.read_bytes()).decode())
        rows = database.execute("select kind, data from steps").fetchall()
    yield from ((kind, json.loads(data)) for kind, data in rows)
    ledger = MemoryLedger()
    for file in sorted(SAMPLES.iterdir()):
        import_sample(ledger, file.name)
    yield from ((step.kind, dict(step.data)) for step in ledger.steps())


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_payload_keeps_any_json_as_it_is(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*KINDS, "of-a-newer-version"]))
    given_json = data.draw(objects(type(read_step_payload(kind, {}))))
    text = json.dumps(given_json)

    payload = read_step_payload(kind, json.loads(text))
    for name in payload.json_keys:
        getattr(payload, name)

    assert json.dumps(payload.to_json()) == text
    assert json.dumps(NewStep(kind="reply", data=given_json).payload.to_json()) == text


@settings(deadline=None, max_examples=examples(100))
@given(objects(SessionPayload))
@example({"transcript": {"later": [1], "number": None, "format": 5}})
def test_session_payload_keeps_any_json_as_it_is(given_json: dict[str, Any]) -> None:
    text = json.dumps(given_json)

    payload = SessionRecord(label="s", data=json.loads(text)).payload
    for name in payload.json_keys:
        getattr(payload, name)

    assert json.dumps(payload.to_json()) == text
    assert payload.transcript is None or payload.transcript.to_json() == given_json["transcript"]


def test_fields_of_recorded_ledgers_are_known_and_written_as_they_were() -> None:
    kinds = set()
    for kind, data in stored_steps():
        payload = read_step_payload(kind, data)
        names = {key: name for name, key in payload.json_keys.items()}

        again = type(payload)().replace(
            **{names[key]: None if data[key] is None else getattr(payload, names[key]) for key in data}
        )

        assert json.dumps(again.to_json()) == json.dumps(data)
        kinds.add(kind)
    assert kinds == set(KINDS) - {"forget", "state"}  # no recorded ledger has memories, or threads of LangGraph


def test_field_of_another_type_reads_as_missing() -> None:
    data = {"model": 5, "turns": "7", "usage": {"input_tokens": "3"}, "sizes": [1, "2"], "interrupted": "yes"}

    payload = read_step_payload("reply", data)

    assert isinstance(payload, ReplyPayload)
    assert (payload.model, payload.turns, payload.usage, payload.sizes) == (None, None, None, ())
    assert payload.interrupted is False


@pytest.mark.parametrize("data", [None, [], "text", 7])
def test_anything_but_an_object_reads_as_empty(data: object) -> None:
    assert read_step_payload("reply", data) == ReplyPayload()


def test_new_payload_stores_given_fields_in_their_order() -> None:
    payload = ReplyPayload(stop="end", usage=Usage(input_tokens=3), model=None, id="")

    usage = {
        "input_tokens": 3,
        "output_tokens": 0,
        "cached_input_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
    }
    assert list(payload.to_json().items()) == [("stop", "end"), ("usage", usage), ("model", None), ("id", "")]


def test_nested_fields_are_stored_as_plain_json() -> None:
    result = ResultPayload(answers=(ToolCallKey("a", 1),), clamps=(TextClamp(0, 0, 0, 5, 6),), sizes=(1, 2))
    state = PinPayload(windows={"m": LearnedLimit(1, 2)}, pins=("a",))

    assert result.to_json() == {"answers": [["a", 1]], "clamp": [[0, 0, 0, 5, 6]], "sizes": [1, 2]}
    assert state.to_json() == {"windows": {"m": [1, 2]}, "pins": ["a"]}


def test_replacing_a_field_keeps_unknown_keys_and_the_order() -> None:
    payload = ReplyPayload.from_json({"later": 1, "model": "a", "stop": "end"})

    changed = payload.replace(model="b", sent=5)

    assert list(changed.to_json().items()) == [("later", 1), ("model", "b"), ("stop", "end"), ("sent", 5)]
    assert payload.model == "a"


def test_unknown_field_is_an_error_of_the_caller() -> None:
    with pytest.raises(TypeError, match="ReplyPayload has no field 'summary'"):
        ReplyPayload().replace(summary="x")


def test_payload_is_frozen() -> None:
    payload = ReplyPayload(model="a")

    with pytest.raises(FrozenInstanceError):
        payload.model = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del payload.model


def test_payload_equals_another_with_the_same_json() -> None:
    payload = CompactionPayload(summary="x", pinned=("a",))
    copies = [
        copy.deepcopy(payload),
        pickle.loads(pickle.dumps(payload)),  # noqa: S301 - our own
        CompactionPayload.from_json(payload.to_json()),
    ]

    assert all(each == payload and each.pinned == ("a",) for each in copies)
    assert payload != CompactionPayload(summary="y")
    assert StepPayload() != PinPayload()


def test_payload_is_decoded_once() -> None:
    step = NewStep(kind="compaction", data={"gains": [[10, 5]]})

    assert step.payload is step.payload
    assert isinstance(step.payload, CompactionPayload)
    assert step.payload.savings is step.payload.savings


def test_step_carries_the_state_of_the_session_on() -> None:
    before = RenderedPayload(epoch="e", cut={"rule": "newest"}, model="a", pins=("p",), turns=1)

    after = InputPayload(model="b", pins=("q",)).follow(before, turns=2, total_tokens=None, total_usage=Usage())

    stored = after.to_json()
    assert list(stored) == ["epoch", "cut", "pins", "turns", "spent", "model"]
    assert (after.epoch, after.pins, after.turns, after.model) == ("e", ("q",), 2, "b")
    assert after.total_tokens is None


def test_empty_cut_ends_the_truncation_of_the_step_before() -> None:
    before = RenderedPayload(epoch="e", cut={"rule": "newest"})

    after = RevertPayload(restores=None, cut=None).follow(before, turns=None, total_tokens=None, total_usage=None)

    assert after.to_json() == {"epoch": "e", "restores": None}


def test_compaction_says_if_its_first_kept_step_is_no_id() -> None:
    assert CompactionPayload(first_kept=None).names_kept
    assert CompactionPayload(first_kept="a").names_kept
    assert not CompactionPayload.from_json({"first_kept": 5}).names_kept
