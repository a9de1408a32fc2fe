"""Import of transcripts as sessions that can be continued."""

from __future__ import annotations

from threading import active_count
from typing import Any

import pytest

from nexus_core.errors import SessionExistsError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.thread.projection import DEFAULT_MARKER as SUMMARY
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.importer import CHUNK_BYTES, BackgroundCompressor, TranscriptImporter, read_original
from tests.session.conftest import OpenNexus
from tests.session.support import compaction_of, result_of, says
from tests.transcripts.support import SAMPLES
from tests.transcripts.test_corpus import FILES
from tests.transfer.support import (
    assistant,
    calls,
    compacted,
    context_of,
    describe_steps,
    format_lines,
    import_lines,
    import_sample,
    read_next,
    repair_for_api,
    result,
    sample_names,
    steps_of,
    summary,
    user,
)

APIS = ("anthropic", "openai", "responses", "gemini", "neutral")


@pytest.mark.acceptance("H-01", "H-02", "H-06")
@pytest.mark.parametrize("name", sample_names())
def test_imported_session_sends_what_the_program_would_send(ledger: MemoryLedger, name: str) -> None:
    label = import_sample(ledger, name).label

    expected = context_of(read_transcript((SAMPLES / name).read_text(encoding="utf-8"), name))
    for api in APIS:
        assert repair_for_api(read_next(ledger, label), api) == repair_for_api(expected, api)
    assert list(ledger.verify()) == []


@pytest.mark.skipif(not FILES, reason="there are no sessions of real people here")
def test_real_session_sends_what_the_program_would_send(ledger: MemoryLedger) -> None:
    for file in FILES:
        own = MemoryLedger()
        label = import_lines(own, file.read_bytes(), file.name).label
        import_lines(ledger, file.read_bytes(), file.name)

        expected = context_of(read_transcript(file.read_text(encoding="utf-8"), file.name))
        for api in APIS:
            assert repair_for_api(read_next(own, label), api) == repair_for_api(expected, api)
        assert list(own.verify()) == []
    assert list(ledger.verify()) == []


@pytest.mark.parametrize("name", sample_names())
def test_imported_session_can_be_continued(ledger: MemoryLedger, open_nexus: OpenNexus, name: str) -> None:
    label = import_sample(ledger, name).label
    before = read_next(ledger, label)
    session = open_nexus().session(label, model="claude-sonnet-4", any_directory=True)

    context = session.ask("And now?", interrupt=True)
    step = session.record(says("That is all."))

    assert [*context.messages][: len(before)] == before
    assert context.messages[-1].content.endswith("And now?")
    assert step.done
    assert list(ledger.verify()) == []


def test_imported_session_has_model_directory_and_format(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_sample(ledger, "claude.jsonl", cwd="/srv/bakery")

    record = ledger.session("claude-bakery-1")
    assert record is not None
    assert (record.payload.model, record.payload.cwd) == ("claude-opus-4-5-20251101", "/srv/bakery")
    assert record.payload.transcript is not None
    assert record.payload.transcript.format == "claude-code"
    assert open_nexus().session("claude-bakery-1", any_directory=True).preview("?").model == "claude-opus-4-5-20251101"


# ---- compactions --------------------------------------------------------------------------------------------------


TURNS = [user("1", None), assistant("re 1", "1"), user("2", "re 1"), assistant("re 2", "2"), user("3", "re 2")]


@pytest.mark.acceptance("H-03", "H-04", "H-05", "H-07", "C-11")
def test_compaction_replaces_entries_before_the_first_kept_one(ledger: MemoryLedger) -> None:
    lines = [*TURNS, assistant("re 3", "3"), compacted("c", "re 3", "3", "re 3"), summary("s", "re 3", "1 and 2")]

    import_lines(ledger, [*lines, user("4", "s"), assistant("re 4", "4")])

    steps = {step.messages[0].content: step for step in steps_of(ledger, "claude-s-1") if step.messages}
    (compaction,) = [step for step in steps_of(ledger, "claude-s-1") if step.kind == "compaction"]
    assert compaction_of(compaction).first_kept == steps["3"].id
    assert (compaction_of(compaction).summary, compaction_of(compaction).tokens_before) == ("1 and 2", 1000)
    read = read_next(ledger, "claude-s-1")
    assert [message.content for message in read] == [f"{SUMMARY}\n1 and 2", "3", "re 3", "4", "re 4"]
    assert read[0].role == "user"
    assert len(steps_of(ledger, "claude-s-1")) == 9


@pytest.mark.acceptance("C-11")
def test_compaction_without_kept_entries_replaces_all_before_it(ledger: MemoryLedger) -> None:
    import_lines(
        ledger, [*TURNS, assistant("re 3", "3"), compacted("c", "re 3"), summary("s", "c", "all"), user("4", "s")]
    )

    (compaction,) = [step for step in steps_of(ledger, "claude-s-1") if step.kind == "compaction"]
    assert compaction_of(compaction).first_kept is None
    assert [message.content for message in read_next(ledger, "claude-s-1")] == [f"{SUMMARY}\nall", "4"]


@pytest.mark.acceptance("H-03", "H-09")
def test_latest_compaction_is_in_effect(ledger: MemoryLedger) -> None:
    lines = [*TURNS[:2], compacted("c", "re 1"), summary("s", "c", "1"), user("2", "s"), assistant("re 2", "2")]

    import_lines(ledger, [*lines, compacted("d", "re 2"), summary("t", "d", "1 and 2"), user("3", "t")])

    assert [message.content for message in read_next(ledger, "claude-s-1")] == [f"{SUMMARY}\n1 and 2", "3"]
    assert [step.kind for step in steps_of(ledger, "claude-s-1")].count("compaction") == 2


def test_entries_kept_from_inside_a_turn_include_its_input(ledger: MemoryLedger) -> None:
    lines = [user("u", None), calls("a", "u", "t1"), result("r", "a", "t1"), calls("b", "r", "t2")]
    lines += [result("q", "b", "t2"), compacted("c", "q", "b", "q"), summary("s", "q", "t1 was found")]

    import_lines(ledger, [*lines, assistant("d", "s")])

    read = read_next(ledger, "claude-s-1")
    assert [message.content for message in read] == [f"{SUMMARY}\nt1 was found", "u", "", "", "d"]


def test_replacement_history_of_codex_is_sent_as_it_was(ledger: MemoryLedger) -> None:
    label = import_sample(ledger, "codex.jsonl").label

    transcript = read_transcript((SAMPLES / "codex.jsonl").read_text(encoding="utf-8"))
    assert len(transcript.compactions[-1].context) > 1
    assert read_next(ledger, label) == [entry.message for entry in transcript.context]


def test_compaction_without_a_summary_sends_the_kept_entries(ledger: MemoryLedger) -> None:
    import_lines(ledger, [*TURNS, compacted("c", "3", "3"), user("4", "3")])

    assert [message.content for message in read_next(ledger, "claude-s-1")] == ["3", "4"]


# ---- branches -----------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("H-08")
def test_fork_begins_where_the_user_went_back(ledger: MemoryLedger) -> None:
    import_lines(ledger, [*TURNS[:4], user("x", "re 1"), assistant("re x", "x")])

    fork, main = steps_of(ledger, "claude-s-1/fork-1"), steps_of(ledger, "claude-s-1")
    assert describe_steps(ledger, "claude-s-1") == ["input: 1", "reply: re 1.", "input: x", "reply: re x."]
    assert describe_steps(ledger, "claude-s-1/fork-1") == ["input: 1", "reply: re 1.", "input: 2", "reply: re 2."]
    assert fork[:2] == main[:2]
    record = ledger.session("claude-s-1/fork-1")
    assert record is not None
    assert record.origin == "claude-s-1"


def test_fork_inside_a_turn_begins_after_the_turn_before(ledger: MemoryLedger) -> None:
    lines = [*TURNS[:2], user("u", "re 1"), calls("a", "u", "t1"), result("r", "a", "t1")]

    import_lines(ledger, [*lines, assistant("b", "r"), assistant("c", "r")])

    fork, main = steps_of(ledger, "claude-s-1/fork-1"), steps_of(ledger, "claude-s-1")
    assert describe_steps(ledger, "claude-s-1/fork-1")[2:] == [
        "input: u",
        "reply: look(t1)",
        "result: =found",
        "reply: b.",
    ]
    assert [one.id == other.id for one, other in zip(fork, main, strict=True)] == [True, True, *[False] * 4]
    assert result_of(fork[4]).answers == ((fork[3].id, 0),)


def test_fork_of_a_fork_has_all_earlier_messages(ledger: MemoryLedger) -> None:
    lines = [*TURNS[:2], user("x", "re 1"), assistant("re x", "x"), user("y", "re x"), assistant("re y", "y")]

    import_lines(ledger, [*lines, user("z", "re x"), assistant("re z", "z"), user("2", "re 1"), assistant("re 2", "2")])

    contents = {
        tuple(message.content for message in read_next(ledger, f"claude-s-1/fork-{number}")[2:]) for number in (1, 2)
    }
    assert contents == {("x", "re x", "y", "re y"), ("x", "re x", "z", "re z")}


def test_fork_after_a_compaction_has_its_summary(ledger: MemoryLedger) -> None:
    lines = [*TURNS[:2], compacted("c", "re 1"), summary("s", "c", "1"), user("2", "s"), assistant("re 2", "2")]

    import_lines(ledger, [*lines, user("3", "re 2"), user("x", "re 2"), assistant("re x", "x")])

    assert [message.content for message in read_next(ledger, "claude-s-1/fork-1")] == [
        f"{SUMMARY}\n1",
        "2",
        "re 2",
        "3",
    ]


def test_subagent_session_starts_without_the_conversation(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")

    assert describe_steps(ledger, "claude-bakery-1/agent-agent-7")[0] == "input: Search the shop for prices of rye."
    record = ledger.session("claude-bakery-1/agent-agent-7")
    assert record is not None
    assert record.origin == "claude-bakery-1"


def test_subagent_file_is_named_after_its_parent_session(ledger: MemoryLedger) -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a7"}
    import_lines(ledger, [*TURNS])

    label = import_lines(ledger, [user("p", None, **side), assistant("q", "p") | side]).label

    assert label == "claude-s-1/agent-a7"
    record = ledger.session(label)
    assert record is not None
    assert record.origin == "claude-s-1"
    assert describe_steps(ledger, "claude-s-1")[0] == "input: 1"


def test_rolled_back_turns_become_a_session(ledger: MemoryLedger) -> None:
    import_sample(ledger, "codex.jsonl")

    label = "codex-0199-weather/rolled-back-1"
    taken = [step.id for step in steps_of(ledger, label)]
    kept = [step.id for step in steps_of(ledger, "codex-0199-weather")]
    common = [name for name in taken if name in kept]
    assert taken[: len(common)] == common == kept[: len(common)]
    assert len(taken) - len(common) == 2


# ---- names --------------------------------------------------------------------------------------------------------


def test_session_is_named_after_program_and_id_or_file(ledger: MemoryLedger) -> None:
    assert import_sample(ledger, "pi.jsonl").label == "pi-5d0c-garden"
    assert import_sample(ledger, "chat.json").label == "chat"
    assert import_sample(ledger, "chatgpt.json", label="walk").label == "walk"


def test_uuid_is_shortened_while_the_name_is_free(ledger: MemoryLedger) -> None:
    ids = [f"0199a213-4a5b-7c6d-8e9f-00000000000{number}" for number in range(2)]
    for name in ids:
        import_lines(ledger, [user("u", None, name) | {"sessionId": name}])

    assert {record.label for record in ledger.sessions()} == {"claude-0199a213", f"claude-{ids[1]}"}


def test_chosen_id_is_not_shortened(ledger: MemoryLedger) -> None:
    for name in ("tool-call-session", "tool-call-other"):
        import_lines(ledger, [user("u", None, name) | {"sessionId": name}])

    assert {record.label for record in ledger.sessions()} == {"claude-tool-call-session", "claude-tool-call-other"}


def test_long_names_end_with_a_digest(ledger: MemoryLedger) -> None:
    content = (SAMPLES / "chat.json").read_bytes()

    labels = {import_lines(ledger, content, f"{'long-' * 40}{end}.json").label for end in "ab"}

    assert len(labels) == 2
    assert {len(label) for label in labels} == {80}


def test_name_of_another_session_is_rejected(ledger: MemoryLedger) -> None:
    ledger.create("work")

    with pytest.raises(SessionExistsError, match="session 'work' exists already, with another conversation"):
        import_lines(ledger, TURNS, label="work")
    assert [record.label for record in ledger.sessions()] == ["work"]


def test_control_characters_in_an_id_are_removed_from_the_name(ledger: MemoryLedger) -> None:
    label = import_lines(ledger, [user("u", None) | {"sessionId": "\x1b[31m\u202ea b/\n"}]).label

    assert label == "claude-31m-a-b"


# ---- nothing is lost ----------------------------------------------------------------------------------------------


def test_original_file_is_stored_unchanged(ledger: MemoryLedger) -> None:
    content = (SAMPLES / "claude.jsonl").read_bytes()
    grown = content + '{"half": "\ufffd'.encode()

    import_lines(ledger, content, "x")
    import_lines(ledger, grown, "x")

    record = ledger.session("claude-bakery-1")
    assert record is not None
    assert read_original(ledger, record) == grown


def test_growing_file_is_stored_without_repeating_chunks(ledger: MemoryLedger) -> None:
    long = format_lines(TURNS[0], {"type": "mode", "text": "".join(map(str, range(CHUNK_BYTES // 2)))})
    import_lines(ledger, long)
    before = len(ledger.store.salvage().blobs)  # type: ignore[arg-type]

    import_lines(ledger, long + format_lines(TURNS[1]))

    record = ledger.session("claude-s-1")
    assert record is not None
    assert read_original(ledger, record) == (long + format_lines(TURNS[1])).encode()
    assert len(ledger.store.salvage().blobs) - before == 2  # type: ignore[arg-type]  # the last chunk, and the list


def test_transcript_without_a_file_has_no_original(ledger: MemoryLedger) -> None:
    label = TranscriptImporter(ledger).import_transcript(read_transcript(format_lines(*TURNS))).label

    record = ledger.session(label)
    assert record is not None
    assert read_original(ledger, record) is None


def test_transcript_without_messages_creates_no_session(ledger: MemoryLedger) -> None:
    import_lines(ledger, [{"type": "summary", "summary": "x", "leafUuid": "y"}, {"type": "mode", "sessionId": "s"}])

    assert ledger.sessions() == []


def test_broken_lines_are_skipped(ledger: MemoryLedger) -> None:
    import_lines(ledger, format_lines(TURNS[0], "{broken", "\0" * 100, TURNS[1], '{"type": "us'))

    assert describe_steps(ledger, "claude-s-1") == ["input: 1", "reply: re 1."]


def test_calls_of_an_interrupted_turn_are_not_pending(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    lines = [user("q", None), calls("c", "q", "t1"), user("p", "c"), assistant("a", "p")]
    label = import_lines(ledger, lines).label
    ended = next(step for step in steps_of(ledger, label) if step.kind == "interrupted")

    session = open_nexus().session(label, model="claude-sonnet-4").fork("other", at=ended.id)

    assert session.pending_calls == ()


def test_interrupted_import_leaves_no_compression_behind(ledger: MemoryLedger) -> None:
    before = active_count()

    with pytest.raises(KeyboardInterrupt), BackgroundCompressor(bytes(200 * CHUNK_BYTES)):
        raise KeyboardInterrupt

    assert active_count() == before
    assert list(ledger.store.blob_rows()) == []


def test_file_that_cannot_be_compressed_is_not_stored_in_part(
    ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_data: bytes, _level: int) -> bytes:
        raise MemoryError

    monkeypatch.setattr("nexus_core.transfer.importer.zlib.compress", fail)

    with pytest.raises(MemoryError):
        import_lines(ledger, [user("a", None)])

    assert ledger.sessions(status=None) == []
