"""Repeated imports of one transcript: nothing twice, and later only what is new."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from nexus_core.errors import ConflictError, MessageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.transfer.importer import TranscriptImporter
from nexus_core.types.ledger import NewStep, SessionRecord, Step
from tests.session.conftest import OpenNexus
from tests.session.support import result_of, says
from tests.transcripts.support import SAMPLES, sample
from tests.transfer.support import (
    assistant,
    calls,
    compacted,
    describe_steps,
    format_lines,
    import_lines,
    import_sample,
    live_steps_of,
    read_next,
    result,
    sample_names,
    steps_of,
    summary,
    user,
)

LABEL = "claude-s-1"
LINES = [
    user("u", None),
    calls("a", "u", "t1", "t2"),
    result("r", "a", "t1"),
    result("q", "r", "t2"),
    assistant("b", "q"),
    user("m", "b", isMeta=True),
    user("v", "m"),
    assistant("c", "v"),
    compacted("x", "c", "v", "c"),
    summary("s", "c", "u was answered"),
    user("w", "s"),
    assistant("d", "w"),
]


def everything(ledger: StoreLedger) -> list[Any]:
    """What is in a ledger, sessions and steps."""
    return [sorted(ledger.sessions(status=None), key=lambda each: each.label), list(ledger.steps())]


@pytest.mark.parametrize("name", sample_names())
def test_second_import_changes_nothing(ledger: MemoryLedger, name: str) -> None:
    import_sample(ledger, name)
    before = everything(ledger)

    again = import_sample(ledger, name)

    assert everything(ledger) == before
    assert all(change.what == "same" for change in again.sessions)
    assert TranscriptImporter(ledger).find_imported((SAMPLES / name).read_bytes())[0].label == again.label


def test_moved_file_is_found(ledger: MemoryLedger) -> None:
    content = (SAMPLES / "chat.json").read_bytes()
    import_lines(ledger, content, "chat.json")

    assert [change.label for change in TranscriptImporter(ledger).find_imported(content)] == ["chat"]
    assert TranscriptImporter(ledger).find_imported(content + b" ") == []


@pytest.mark.parametrize("first", range(1, len(LINES)))
def test_grown_file_adds_only_new_entries(ledger: MemoryLedger, first: int) -> None:
    whole = MemoryLedger()
    import_lines(whole, LINES)
    import_lines(ledger, LINES[:first])
    before = steps_of(ledger, LABEL)

    import_lines(ledger, LINES)

    assert steps_of(ledger, LABEL)[: len(before)] == before
    assert [message.content for message in read_next(ledger, LABEL)] == [
        message.content for message in read_next(whole, LABEL)
    ]
    assert [each.label for each in ledger.sessions()] == [LABEL]
    assert list(ledger.verify()) == []


def test_file_growing_line_by_line_stays_one_session(ledger: MemoryLedger) -> None:
    for number in range(1, len(LINES) + 1):
        import_lines(ledger, LINES[:number])

    messages = [message for step in live_steps_of(ledger, LABEL) for message in step.messages]
    assert len(messages) == 10
    assert [each.label for each in ledger.sessions()] == [LABEL]
    assert list(ledger.verify()) == []


@pytest.mark.parametrize("name", ["claude.jsonl", "gemini_cli.jsonl", "pi.jsonl"])
def test_older_copy_changes_nothing(ledger: MemoryLedger, name: str) -> None:
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
    imported = import_sample(ledger, name)
    sessions = {each.label: each.tip for each in ledger.sessions(status=None)}
    about = ledger.session(imported.label)

    for length in range(1, len(lines)):
        with suppress(MessageError):  # what has no message is no transcript
            import_lines(ledger, "".join(lines[:length]), name)

    assert {each.label: each.tip for each in ledger.sessions(status=None)} == sessions
    assert ledger.session(imported.label) == about


def test_later_results_refer_to_their_calls(ledger: MemoryLedger) -> None:
    import_lines(ledger, LINES[:3])

    import_lines(ledger, LINES[:5])

    steps = [step for step in steps_of(ledger, LABEL) if step.kind != "sealed"]
    assert [step.kind for step in steps] == ["input", "reply", "result", "result", "reply"]
    assert [result_of(step).answers for step in steps[2:4]] == [((steps[1].id, 0),), ((steps[1].id, 1),)]


def test_usage_continues_from_the_stored_sum(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    cost = {"usage": {"input_tokens": 100, "output_tokens": 1}}
    lines = [user("u", None), assistant("a", "u", **cost), user("v", "a"), assistant("b", "v", **cost)]
    import_lines(ledger, lines[:2])

    import_lines(ledger, lines)

    assert open_nexus().session(LABEL).usage.input_tokens == 200
    assert steps_of(ledger, LABEL)[-1].payload.turns == 2


def test_continued_session_is_kept_and_new_entries_are_forked(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, LINES[:5])
    session = open_nexus().session(LABEL)
    session.ask("Mine.")
    session.record(says("Yours."))
    mine = describe_steps(ledger, LABEL)

    imported = import_lines(ledger, LINES[:8])

    (change,) = imported.sessions
    assert describe_steps(ledger, LABEL) == mine
    assert change.label == f"{LABEL}/fork-1"
    assert change.note == f"{LABEL!r} was continued here since it was imported"
    assert describe_steps(ledger, change.label)[:4] == mine[:4]
    assert describe_steps(ledger, change.label)[-2:] == ["input: v", "reply: c."]


def test_rewound_transcript_continues_its_session_and_forks_the_rest(ledger: MemoryLedger) -> None:
    import_lines(ledger, [*LINES[:5], user("v", "b"), assistant("c", "v")])

    imported = import_lines(
        ledger, [*LINES[:5], user("v", "b"), assistant("c", "v"), user("y", "b"), assistant("z", "y")]
    )

    assert [change.label for change in imported.sessions] == [LABEL, f"{LABEL}/fork-1"]
    assert [message.content for message in read_next(ledger, LABEL)][-3:] == ["b", "y", "z"]
    assert [message.content for message in read_next(ledger, f"{LABEL}/fork-1")][-3:] == ["b", "v", "c"]


def test_growing_branch_extends_its_fork(ledger: MemoryLedger) -> None:
    lines = [*LINES[:5], user("v", "b"), assistant("c", "v"), user("y", "b"), assistant("z", "y")]
    import_lines(ledger, lines)
    assert describe_steps(ledger, f"{LABEL}/fork-1")[-1] == "reply: c."

    import_lines(ledger, [*lines, user("g", "c"), assistant("h", "g")])

    assert describe_steps(ledger, f"{LABEL}/fork-1")[-2:] == ["input: g", "reply: h."]
    assert describe_steps(ledger, LABEL)[-1] == "reply: z."
    assert len(ledger.sessions()) == 2


def block(name: str, parent: str, *blocks: Any) -> dict[str, Any]:
    """Another line of the answer `a`."""
    line = assistant(name, parent, *blocks)
    line["message"]["id"] = "msg-a"
    return line


LOOK = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
SEE = {"type": "tool_use", "id": "t2", "name": "see", "input": {}}
ANSWER = [
    user("u", None),
    block("a", "u", "One moment."),
    block("a2", "a", LOOK),
    block("a3", "a2", SEE),
    result("r", "a3", "t"),
    result("r2", "r", "t2"),
    assistant("b", "r2", "Found."),
]


EAGER = [
    user("u", None),
    block("a", "u", "One moment."),
    block("a2", "a", LOOK),
    result("r", "a2", "t"),
    block("a3", "r", SEE),
    result("r2", "a3", "t2"),
    block("a4", "r2", LOOK | {"id": "t3"}),
    result("r3", "a4", "t3"),
    assistant("b", "r3", "Found."),
]
"""An answer whose tools are called while the rest of it is written."""


@pytest.mark.parametrize(
    ("lines", "first"), [(lines, first) for lines in (ANSWER, EAGER) for first in range(1, len(lines))]
)
def test_reply_imported_in_parts_continues_its_session(
    ledger: MemoryLedger, lines: list[dict[str, Any]], first: int
) -> None:
    whole = MemoryLedger()
    import_lines(whole, lines)
    import_lines(ledger, lines[:first])
    before = steps_of(ledger, LABEL)

    imported = import_lines(ledger, lines)

    assert [each.label for each in ledger.sessions()] == [LABEL]
    assert steps_of(ledger, LABEL)[: len(before)] == before
    assert read_next(ledger, LABEL) == read_next(whole, LABEL)
    assert imported.sessions[0].note == ""
    assert steps_of(ledger, LABEL)[-1].payload.turns == 1
    assert list(ledger.verify()) == []


def test_reply_growing_block_by_block_is_replaced(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    for number in range(1, len(ANSWER) + 1):
        import_lines(ledger, ANSWER[:number])
    after = everything(ledger)

    again = import_lines(ledger, ANSWER)

    assert everything(ledger) == after
    assert not again.sessions[0].steps
    session = open_nexus().session(LABEL)
    assert [message.role for message in read_next(ledger, LABEL)] == ["user", "assistant", "tool", "tool", "assistant"]
    assert session.pending_calls == ()


def test_reply_growing_after_its_results_is_replaced(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    whole = MemoryLedger()
    import_lines(whole, EAGER)
    for number in range(1, len(EAGER) + 1):
        import_lines(ledger, EAGER[:number])
    after = everything(ledger)

    again = import_lines(ledger, EAGER)

    assert everything(ledger) == after
    assert not again.sessions[0].steps
    assert [each.label for each in ledger.sessions()] == [LABEL]
    assert read_next(ledger, LABEL) == read_next(whole, LABEL)
    assert open_nexus().session(LABEL).pending_calls == ()
    assert list(ledger.verify()) == []


def test_model_is_stored_with_the_first_reply(ledger: MemoryLedger) -> None:
    import_lines(ledger, ANSWER[:1])

    import_lines(ledger, ANSWER)

    (record,) = ledger.sessions()
    assert record.payload.model == "claude-opus-4-5"


def test_grown_reply_is_counted_once_in_usage(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    lines = [user("u", None), block("a", "u", "One moment."), block("a2", "a", "Here.")]
    for line in lines[1:]:
        line["message"]["usage"] = {"input_tokens": 100, "output_tokens": 5}
    import_lines(ledger, lines[:2])

    import_lines(ledger, lines)

    assert open_nexus().session(LABEL).usage.input_tokens == 100


def test_reply_growing_within_a_text_is_replaced(ledger: MemoryLedger) -> None:
    asked = {"role": "user", "content": "Why?"}
    import_lines(ledger, json.dumps([asked, {"role": "assistant", "content": "Bec"}]), "talk.json")

    import_lines(ledger, json.dumps([asked, {"role": "assistant", "content": "Because."}]), "talk.json")

    assert [message.content for message in read_next(ledger, "talk")] == ["Why?", "Because."]
    assert [each.label for each in ledger.sessions()] == ["talk"]


def test_different_reply_becomes_a_fork(ledger: MemoryLedger) -> None:
    asked = {"role": "user", "content": "Why?"}
    import_lines(ledger, json.dumps([asked, {"role": "assistant", "content": "Because."}]), "talk.json")

    import_lines(ledger, json.dumps([asked, {"role": "assistant", "content": "No idea."}]), "talk.json")

    assert len(ledger.sessions()) == 2


def test_partial_reply_of_a_continued_session_is_kept(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, ANSWER[:2])
    session = open_nexus().session(LABEL)
    session.ask("Mine.")
    session.record(says("Yours."))
    mine = describe_steps(ledger, LABEL)

    imported = import_lines(ledger, ANSWER[:3])

    assert describe_steps(ledger, LABEL) == mine
    assert describe_steps(ledger, imported.sessions[0].label) == ["input: u", "reply: One moment.look(t)", "sealed"]


def test_renamed_session_is_found(ledger: MemoryLedger) -> None:
    import_lines(ledger, LINES[:5])
    ledger.rename(LABEL, "mine")

    assert import_lines(ledger, LINES[:8]).label == "mine"

    assert [each.label for each in ledger.sessions()] == ["mine"]
    assert describe_steps(ledger, "mine")[-1] == "reply: c."


def test_fork_by_the_user_is_not_extended(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, LINES[:5])
    open_nexus().session(LABEL).fork("mine")
    before = describe_steps(ledger, "mine")

    import_lines(ledger, LINES[:8])

    assert describe_steps(ledger, "mine") == before
    assert describe_steps(ledger, LABEL)[-1] == "reply: c."


def test_transcript_without_id_is_found_by_name(ledger: MemoryLedger) -> None:
    first, second = '[{"role":"user","content":"a"}]', '[{"role":"user","content":"b"}]'
    grown = '[{"role":"user","content":"a"},{"role":"assistant","content":"re a"}]'

    import_lines(ledger, first, "one.json")
    import_lines(ledger, second, "two.json")
    import_lines(ledger, grown, "elsewhere/one.json")

    assert describe_steps(ledger, "one") == ["input: a", "reply: re a."]
    assert describe_steps(ledger, "two") == ["input: b"]


# ---- cut off ------------------------------------------------------------------------------------------------------


class Killed(Exception):  # noqa: N818 - it reads as what happened
    """The program was ended."""


class Mortal:
    """A ledger in which a program writes so many times and no more."""

    def __init__(self, ledger: MemoryLedger, writes: int) -> None:
        self._ledger = ledger
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ledger, name)
        return self._counted(found) if name in ("create", "append_many", "put_blob", "put_blobs", "update") else found

    def _counted(self, write: Any) -> Any:
        def once(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                raise Killed
            self._left -= 1
            return write(*arguments, **named)

        return once


@pytest.mark.parametrize("name", ["claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl"])
def test_interrupted_import_is_completed_by_the_next(name: str) -> None:
    content = (SAMPLES / name).read_bytes()
    whole = MemoryLedger()
    TranscriptImporter(whole).import_transcript(sample(name), content, file_name=name)
    expected = {record.label: describe_steps(whole, record.label) for record in whole.sessions()}

    for writes in range(20):
        ledger = MemoryLedger()
        importer = TranscriptImporter(ledger)
        try:
            TranscriptImporter(Mortal(ledger, writes)).import_transcript(sample(name), content, file_name=name)
        except Killed:
            # Sessions are there whole or not at all.
            for record in ledger.sessions():
                assert describe_steps(ledger, record.label) == expected[record.label]
            assert importer.find_imported(content) == []
        importer.import_transcript(sample(name), content, file_name=name)

        assert {record.label: describe_steps(ledger, record.label) for record in ledger.sessions()} == expected
        assert len(importer.find_imported(content)) == len(expected)
        assert list(ledger.verify()) == []


class Overtaken(MemoryLedger):
    """A ledger into which somebody else imports the same thing at the wrong moment."""

    other: Any = None

    def create(self, label: str, **named: Any) -> SessionRecord:
        if self.other is not None:
            work, self.other = self.other, None
            work()
        return super().create(label, **named)

    def append_many(self, label: str, steps: Any, *, after: str | None) -> list[Step]:
        if self.other is not None:
            work, self.other = self.other, None
            work()
        return super().append_many(label, steps, after=after)


def test_concurrent_imports_add_each_step_once() -> None:
    ledger = Overtaken()
    ledger.other = lambda: import_lines(ledger, LINES[:8])

    import_lines(ledger, LINES[:5])
    assert describe_steps(ledger, LABEL)[-1] == "reply: c."
    ledger.other = lambda: import_lines(ledger, LINES)
    import_lines(ledger, [*LINES, user("e", "d")])

    assert [each.label for each in ledger.sessions()] == [LABEL]
    assert describe_steps(ledger, LABEL)[-1] == "input: e"
    assert list(ledger.verify()) == []


def test_import_gives_up_after_repeated_conflicts(ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    import_lines(ledger, LINES[:5])

    def overtaken(*_: object, **__: object) -> list[Step]:
        raise ConflictError("it has moved on")

    monkeypatch.setattr(ledger, "append_many", overtaken)

    with pytest.raises(ConflictError):
        import_lines(ledger, LINES)


def test_dry_run_writes_nothing(ledger: MemoryLedger) -> None:
    planned = import_sample(ledger, "claude.jsonl", dry_run=True)

    assert everything(ledger) == [[], []]
    added = import_sample(ledger, "claude.jsonl")
    assert [change.label for change in planned.sessions] == [change.label for change in added.sessions]


def test_many_forks_are_compared_without_rereading_shared_steps(ledger: MemoryLedger) -> None:
    lines: list[dict[str, Any]] = []
    for number in range(300):
        lines += [user(f"u{number}", f"a{number - 1}" if number else None), assistant(f"a{number}", f"u{number}")]
    lines += [line for each in range(40) for line in (user(f"x{each}", "a290"), assistant(f"y{each}", f"x{each}"))]
    import_lines(ledger, format_lines(*lines))
    read: list[int] = []
    thread = ledger.thread

    def counted(tip: str, **named: Any) -> list[Step]:
        read.append(len(found := thread(tip, **named)))
        return found

    ledger.thread = counted  # type: ignore[method-assign]
    import_lines(ledger, format_lines(*lines, user("z", "y39")))

    assert len(ledger.sessions()) == 41
    assert sum(read) < 600 + 41 * 200


def test_step_of_the_user_is_not_taken_for_an_imported_one(ledger: MemoryLedger) -> None:
    import_lines(ledger, LINES[:5])
    record = ledger.session(LABEL)
    assert record is not None
    mine = NewStep(kind="turn", closes=True, messages=steps_of(ledger, LABEL)[0].messages)
    ledger.append(LABEL, mine, after=record.tip)

    imported = import_lines(ledger, [*LINES[:5], user("u2", "b", "u")])

    assert imported.sessions[0].is_new
    assert describe_steps(ledger, imported.sessions[0].label)[-1] == "input: u"


def test_excess_branches_are_left_out(ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_core.transfer.transcript_steps.MAX_BRANCHES", 3)
    lines = [user("u", None), assistant("a", "u")]
    lines += [line for each in range(9) for line in (user(f"x{each}", "a"), user(f"y{each}", f"x{each}"))]

    imported = import_lines(ledger, lines)
    again = import_lines(ledger, lines)

    assert imported.left_out == again.left_out == 5
    assert len(ledger.sessions()) == 4
    assert list(ledger.verify()) == []


def test_branches_inside_a_long_turn_repeat_a_bounded_number_of_tokens(
    ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_core.transfer.transcript_steps.MIN_REPEATED_TOKENS", 1)
    lines = [user("u", None, "many words " * 100), calls("a", "u", "t")]
    lines += [result(f"r{each}", "a", f"nobody {each}") for each in range(50)]

    imported = import_lines(ledger, lines)
    before = [ledger.sessions(), list(ledger.steps())]
    import_lines(ledger, lines)

    tokens = sum(step.tokens for step in ledger.steps())
    assert imported.left_out > 40
    assert tokens <= 3 * sum(step.tokens for step in steps_of(ledger, LABEL))
    assert [ledger.sessions(), list(ledger.steps())] == before
