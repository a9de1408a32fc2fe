"""Export of sessions, and import of the export elsewhere with the same ids."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import LedgerError, SessionExistsError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.transfer.exporter import (
    export_session,
    format_messages,
    import_export,
    is_export,
    read_all_messages,
    read_export,
)
from nexus_core.transfer.importer import TranscriptImporter, read_original
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Image, Message, Text, ToolCall, ToolResult
from nexus_plugins.ledger.sqlite import open_sqlite
from tests.effort import examples
from tests.session.conftest import OpenNexus
from tests.session.support import add_turns, calls, says
from tests.transcripts.support import SAMPLES
from tests.transfer.support import import_sample, read_next, sample_names, steps_of

PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()


def exported(ledger: StoreLedger, label: str, *, forks: bool = False) -> str:
    return "".join(export_session(ledger, label, with_forks=forks))


def brought(text: str, ledger: StoreLedger | None = None, **options: Any) -> StoreLedger:
    target = MemoryLedger() if ledger is None else ledger
    import_export(target, read_export(text, "export.jsonl"), **options)
    return target


@pytest.mark.parametrize("name", sample_names())
def test_round_trip_keeps_steps_and_digests(ledger: MemoryLedger, name: str) -> None:
    label = import_sample(ledger, name).label
    text = exported(ledger, label, forks=True)

    target = brought(text)

    for record in ledger.sessions(status=None):
        there = target.session(record.label)
        assert there is not None
        assert (there.head, there.tip, there.origin, there.data) == (
            record.head,
            record.tip,
            record.origin,
            record.data,
        )
        found, expected = steps_of(target, record.label), steps_of(ledger, record.label)
        assert [(step.id, step.digest, step.chain) for step in found] == [
            (step.id, step.digest, step.chain) for step in expected
        ]
        assert read_next(target, record.label) == read_next(ledger, record.label)
    assert list(target.verify()) == []
    assert exported(target, label, forks=True) == text


def test_export_is_deterministic(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")

    assert exported(ledger, "claude-bakery-1") == exported(ledger, "claude-bakery-1")


def test_export_has_one_object_per_line_and_a_header(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")

    first, *others, last = map(json.loads, exported(ledger, "claude-bakery-1").splitlines())

    assert (first["nexus_session"], first["sessions"][0]["label"]) == (1, "claude-bakery-1")
    assert {key for line in others for key in ("blob", "step") if key in line} == {"blob", "step"}
    assert last["steps"] == len(steps_of(ledger, "claude-bakery-1"))
    assert is_export(exported(ledger, "claude-bakery-1"))


def test_round_trip_keeps_prompt_and_tools(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    from tests.session.support import TOOLS

    session = open_nexus().session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask("Why?")
    session.record(calls("t1"))

    target = brought(exported(ledger, "s"))

    other = open_nexus(ledger=target).session("s")
    for each in (session, other):
        (call,) = each.pending_calls
        each.record(call.result("found"))
    assert [tool.name for tool in other.next().tools] == ["look"]
    assert other.next().to("anthropic") == session.next().to("anthropic")
    assert len(target.store.salvage().blobs) == len(ledger.store.salvage().blobs) == 3  # type: ignore[arg-type]
    assert other.record(says("Because.", name="msg_2")).done


def test_round_trip_keeps_images_and_control_characters(ledger: MemoryLedger) -> None:
    spoken = Message("user", (Image(mime="image/png", data=PICTURE), Text("a\0b\u202e\x1b[31m\u2028\ud800 é 漢 🎉")))
    ledger.create("s", steps=[NewStep(kind="turn", closes=True, messages=(spoken,), data={"x": "\x9b\r\n"})])

    text = exported(ledger, "s")
    target = brought(text)

    assert steps_of(target, "s") == steps_of(ledger, "s")
    assert not any(sign in text for sign in "\x1b\u202e\u2028\x9b\r\0")
    assert exported(target, "s") == text


def test_export_with_forks_writes_shared_steps_once(ledger: MemoryLedger) -> None:
    turns = add_turns(ledger, "s", "1", "2", "3")
    ledger.create("fork", head=turns[1].id, origin="s", steps=[NewStep(kind="turn", closes=True)])

    lines = [json.loads(line) for line in exported(ledger, "s", forks=True).splitlines()]

    assert len([line for line in lines if "step" in line]) == 4
    assert [each["label"] for each in lines[0]["sessions"]] == ["s", "fork"]
    assert len(exported(ledger, "fork").splitlines()) == 1 + 3 + 1


def test_export_includes_renamed_forks_of_forks(ledger: MemoryLedger) -> None:
    (turn,) = add_turns(ledger, "s", "1")
    ledger.create("a", head=turn.id, origin="s")
    ledger.create("b", head=turn.id, origin="a")
    ledger.rename("a", "c")

    (first, *_) = exported(ledger, "s", forks=True).splitlines()

    assert [each["label"] for each in json.loads(first)["sessions"]] == ["s", "c", "b"]


# ---- importing ----------------------------------------------------------------------------------------------------


def test_second_import_changes_nothing(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1", "2")
    target = brought(exported(ledger, "s"))
    before = [target.sessions(), list(target.steps())]

    brought(exported(ledger, "s"), target)

    assert [target.sessions(), list(target.steps())] == before


def test_import_into_the_same_ledger_changes_nothing(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1", "2")
    before = [ledger.sessions(), list(ledger.steps())]

    brought(exported(ledger, "s"), ledger)

    assert [ledger.sessions(), list(ledger.steps())] == before


def test_import_adds_only_new_steps(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1", "2")
    target = brought(exported(ledger, "s"))
    add_turns(ledger, "s", "3")

    brought(exported(ledger, "s"), target)

    assert steps_of(target, "s") == steps_of(ledger, "s")
    assert list(target.verify()) == []


def test_import_of_an_older_export_removes_nothing(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1", "2")
    older = exported(ledger, "s")
    add_turns(ledger, "s", "3")
    before = steps_of(ledger, "s")

    brought(older, ledger)

    assert steps_of(ledger, "s") == before


def test_import_of_a_diverged_session_is_rejected(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1")
    target = brought(exported(ledger, "s"))
    add_turns(ledger, "s", "2")
    add_turns(target, "s", "another 2")
    before = [target.sessions(), list(target.steps())]

    with pytest.raises(SessionExistsError, match="'s' is another conversation, or has gone on otherwise") as caught:
        brought(exported(ledger, "s"), target)

    assert "--name" in str(caught.value)
    assert [target.sessions(), list(target.steps())] == before
    brought(exported(ledger, "s"), target, label="theirs")
    assert [step.messages[0].content for step in steps_of(target, "theirs")] == ["1", "2"]
    assert list(target.verify()) == []


def test_import_under_another_name_renames_forks(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")

    target = brought(exported(ledger, "claude-bakery-1", forks=True), label="shop")

    assert sorted(record.label for record in target.sessions()) == ["shop", "shop/agent-agent-7", "shop/fork-1"]
    assert {record.origin for record in target.sessions()} == {"", "shop"}
    content = (SAMPLES / "claude.jsonl").read_bytes()
    assert TranscriptImporter(target).find_imported(content)[0].label == "shop"
    record = target.session("shop")
    assert record is not None
    assert read_original(target, record) == content


def test_import_rejects_a_second_session_with_an_open_turn(ledger: MemoryLedger) -> None:
    ledger.create("s", steps=[NewStep(kind="input", messages=(Message("user", "Why?"),))])

    with pytest.raises(SessionExistsError, match="the turn that is open in 'other' is there already"):
        brought(exported(ledger, "s"), ledger, label="other")


def test_round_trip_keeps_the_archived_status(ledger: MemoryLedger) -> None:
    add_turns(ledger, "s", "1")
    ledger.update("s", status="archived")

    target = brought(exported(ledger, "s"))

    record = target.session("s")
    assert record is not None
    assert record.status == "archived"


def test_round_trip_keeps_a_session_without_steps(ledger: MemoryLedger) -> None:
    ledger.create("s", data={"model": "m"})

    target = brought(exported(ledger, "s"))

    assert [(record.label, record.tip, record.data) for record in target.sessions()] == [("s", None, {"model": "m"})]


def test_export_with_a_missing_blob_fails(ledger: MemoryLedger) -> None:
    ledger.create("s", steps=[NewStep(kind="sealed", data={"epoch": "0" * 64})])

    with pytest.raises(LedgerError, match="there is no blob 0000"):
        exported(ledger, "s")


def test_round_trip_works_between_sqlite_ledgers(tmp_path: Any) -> None:
    source = open_sqlite(f"sqlite:///{tmp_path / 'a.db'}")
    target = open_sqlite(f"sqlite:///{tmp_path / 'b.db'}")
    import_sample(source, "codex.jsonl")

    brought(exported(source, "codex-0199-weather", forks=True), target)

    assert list(target.verify()) == []
    assert {step.chain for step in source.steps()} == {step.chain for step in target.steps()}
    source.close()
    target.close()


WORDS = st.text(max_size=20)
CALLS = st.builds(ToolCall, WORDS, WORDS, st.dictionaries(WORDS, WORDS | st.floats() | st.none(), max_size=2))
PARTS = WORDS.map(Text) | CALLS | st.builds(ToolResult, WORDS, st.lists(WORDS.map(Text), max_size=2))
STEPS = st.builds(
    NewStep,
    kind=st.sampled_from(["input", "reply", "result", "turn", "interrupted"]),
    closes=st.booleans(),
    messages=st.lists(
        st.builds(Message, st.sampled_from(["user", "assistant", "tool"]), st.tuples(PARTS)), max_size=2
    ).map(tuple),
    tokens=st.integers(0, 1 << 40),
    counter=WORDS,
    data=st.dictionaries(WORDS, WORDS | st.integers() | st.floats() | st.lists(WORDS, max_size=2), max_size=3),
)


@settings(deadline=None, max_examples=examples(80))
@given(st.lists(STEPS, max_size=6), WORDS.map(lambda label: f"s{label}"))
def test_round_trip_keeps_any_session(steps: list[NewStep], label: str) -> None:
    ledger = MemoryLedger()
    made = ledger.create(label, steps=[step for step in steps if not {"epoch", "restores"} & step.data.keys()])

    text = exported(ledger, made.label)
    target = brought(text)

    assert list(target.steps()) == list(ledger.steps())
    assert exported(target, made.label) == text
    assert list(target.verify()) == []


# ---- messages -----------------------------------------------------------------------------------------------------


def test_messages_are_written_for_each_api(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_sample(ledger, "claude.jsonl")
    session = open_nexus().session("claude-bakery-1")

    for api in ("openai", "responses", "anthropic", "gemini", "neutral"):
        listed = format_messages(session.messages, api, BUILT_IN_DIALECTS)
        assert isinstance(listed, list)
        assert "Summary: the user wants the rye loaf" in json.dumps(listed[0])


def test_instructions_are_written_outside_the_message_list() -> None:
    said = [Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello.")]

    assert format_messages(said, "anthropic", BUILT_IN_DIALECTS) == {
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    }
    gemini = format_messages(said, "gemini", BUILT_IN_DIALECTS)
    assert isinstance(gemini, dict)
    assert gemini["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert "Be brief." not in json.dumps(gemini["contents"])
    listed = format_messages(said, "openai", BUILT_IN_DIALECTS)
    assert isinstance(listed, list)
    assert listed[0] == {"role": "system", "content": "Be brief."}


def test_all_messages_include_compacted_ones(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")
    record = ledger.session("claude-bakery-1")
    assert record is not None

    said = read_all_messages(ledger, record.tip)

    assert said[0].content == "Which loaves cost more than four francs?"
    assert read_all_messages(ledger, None) == ()
