"""Earlier turns give way to a summary, because there is no room for them or somebody asks for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nexus_core import check_messages
from nexus_core.compaction import prompts
from nexus_core.dialects.neutral import encode_value
from nexus_core.errors import BudgetError, TurnError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.text.secrets import RedactedText, redact
from nexus_core.thread.projection import DEFAULT_MARKER
from nexus_core.types.assembled import AgentResult
from nexus_core.types.compaction import CompactionReport
from nexus_core.types.messages import Message
from tests.session.compacted import (
    AVAILABLE,
    Fake,
    Words,
    compactions,
    configure,
    exchange,
    long_session,
    work,
)
from tests.session.conftest import EVERYWHERE, OpenNexus
from tests.session.support import calls, compaction_of, kinds_of, says, spoken, steps_of
from tests.session.test_prefix import Words as MoodyWords

pytestmark = [EVERYWHERE, pytest.mark.usefixtures("no_session_start")]


def texts(messages: tuple[Message, ...]) -> list[str]:
    """The first words of messages."""
    return [" ".join(spoken(message).split()[:2]) for message in messages]


# ---- by itself ----------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("D-04")
def test_while_it_fits_nothing_is_summarised(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 8)

    context = session.ask("And?")

    assert context.token_budget.remaining > 0
    assert not fake.asked
    assert not compactions(ledger)


@pytest.mark.acceptance("D-04", "H-04", "H-05", "C-11")
def test_what_does_not_fit_is_summarised_before_the_call(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake("They counted up to six.")
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 10, words=35)

    context = session.ask("And? " + "word " * 300)

    (step,) = compactions(ledger)
    assert (compaction_of(step).trigger, compaction_of(step).summarizer) == ("context_limit", "given")
    assert context.token_budget.total <= 0.6 * AVAILABLE
    assert (compaction_of(step).tokens_before or 0) >= AVAILABLE
    assert compaction_of(step).tokens_after == context.token_budget.total
    assert context.decisions == ()
    summary, *kept = context.history
    assert (summary.role, summary.extra["_summary"]) == ("user", step.id)
    assert summary.content.startswith(f"{DEFAULT_MARKER}\n")
    assert "They counted up to six." in summary.content
    assert texts(tuple(kept)) == [f"{who} {n}" for n in (7, 8, 9) for who in ("question", "answer")]
    assert kinds_of(ledger, "s")[-3:] == ["input", "compaction", "sealed"]


def test_what_was_summarised_is_said(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 10, words=35)

    (finding,) = session.ask("And? " + "word " * 300).findings

    assert re.fullmatch(r"14 earlier messages summarized by given: 1,\d{3} tokens became \d{3}.*", finding.message)


@pytest.mark.acceptance("D-04")
def test_what_just_fits_without_any_room_left_is_summarised(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    room = session.preview("word").token_budget.remaining

    session.fork("f").ask("word " * room)
    session.ask("word " * (room + 1))

    assert not compactions(ledger, "f")
    assert len(compactions(ledger)) == 1


@pytest.mark.acceptance("D-07")
def test_the_last_three_turns_stay_whole(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 5, words=90)

    context = session.ask("And? " + "word " * 200)

    assert context.token_budget.total > 0.6 * AVAILABLE
    assert texts(context.history)[1:] == [f"{who} {n}" for n in (2, 3, 4) for who in ("question", "answer")]
    assert len(compactions(ledger)) == 1


@pytest.mark.acceptance("C-23")
def test_fewer_turns_stay_only_where_three_do_not_fit(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 4, words=120)

    context = session.ask("And? " + "word " * 400)

    assert texts(context.history)[1:] == ["question 3", "answer 3"]


@pytest.mark.acceptance("D-06", "X-05")
def test_memories_give_way_before_anything_is_summarised(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[MoodyWords()], summarize=Fake()), 8)
    before = session.preview("word")
    room = before.token_budget.remaining
    assert room < 400

    context = session.ask("word " * (room + 3))  # two more than there is room for beside a memory

    assert not compactions(ledger)
    assert context.decisions == ()
    assert before.token_budget.used["memory"] > context.token_budget.used["memory"] == 0
    assert context.system_prompt == before.system_prompt
    session.interrupt()
    longer = session.ask("word " * (room + 20))
    assert len(compactions(ledger)) == 1
    assert longer.system_prompt == before.system_prompt
    assert spoken(longer.current_message).endswith("word " * (room + 20))


def test_it_is_checked_at_every_step_of_a_loop(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)
    session.ask("Why?")
    work(session, 6, rounds=12, words=30)

    context = session.next()

    (step,) = compactions(ledger)
    assert step.turn == steps_of(ledger, "s")[-1].turn
    assert not step.closes
    assert spoken(context.current_message) == "Why?"
    # Three turns and the whole of this one would free only an eighth, so that its oldest calls are summarized, too.
    asked = [spoken(message) for message in context.history[1:] if message.role == "user"]
    assert [text.split()[1] for text in asked] == ["3", "4", "5"]
    assert len(context.progress) == 10
    assert context.token_budget.remaining >= 0.3 * AVAILABLE


def test_of_long_turns_questions_and_answers_stay(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="words")
    for number in range(3):
        session.ask(f"question {number}")
        work(session, number, rounds=6, words=40)
        session.record(says(f"answer {number}", name=f"end_{number}"))

    context = session.ask("And? " + "word " * 250)

    (step,) = compactions(ledger)
    kept = context.history[1:]
    spoken_texts = [spoken(message) for message in kept if not message.tool_calls and not message.tool_results]
    assert spoken_texts == [f"{each} {number}" for number in range(3) for each in ("question", "answer")]
    stored = compaction_of(step)
    assert len(stored.pinned) >= 2
    assert check_messages(context.to("anthropic")["messages"], "anthropic") == ()
    assert (stored.tokens_after or 0) <= 0.7 * (stored.tokens_before or 0)
    session.undo()
    assert sum(bool(message.tool_results) for message in session.messages) == 18


def test_one_long_turn_alone_is_summarised_from_inside(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 2)
    session.ask("Why?")
    work(session, 6, rounds=14, words=80)

    context = session.next()

    summary, *rest = context.history
    assert not rest
    assert DEFAULT_MARKER in summary.content
    assert spoken(context.current_message) == "Why?"
    assert context.progress[0].tool_calls
    assert 2 < len(context.progress) < 28
    assert context.token_budget.total <= 0.6 * AVAILABLE
    session.record(says("Because.", name="msg_9"))
    assert texts(session.ask("And?").history)[1] == "Why?"
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("H-09")
def test_a_later_summary_covers_the_earlier_one(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    fake.answer = lambda _: f"Summary {len(fake.asked)}."
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 24)

    assert len(fake.asked) >= 2
    assert [request.previous for request in fake.asked[:3]][:2] == ["", "Summary 1."]
    newest = session.preview("And?").history[0].content
    assert f"Summary {len(fake.asked)}." in newest
    assert "Summary 1." not in newest
    assert len(compactions(ledger)) == len(fake.asked)


@pytest.mark.acceptance("C-22")
@pytest.mark.parametrize(
    "setting",
    [{"trigger_ratio": 0.7}, {"trigger_tokens": 788}, {"trigger_turns": 6}],
    ids=lambda each: next(iter(each)),
)
def test_it_may_be_due_earlier(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, setting: dict[str, float]
) -> None:
    configure(nexus_home, **setting)

    long_session(open_nexus(plugins=[Words()], summarize=Fake()), 7)

    (step,) = compactions(ledger)
    assert compaction_of(step).trigger == ("periodic" if "trigger_turns" in setting else "context_limit")
    assert 0 < (compaction_of(step).tokens_before or 0) < AVAILABLE


def test_whoever_only_looks_is_told_that_it_is_due(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 8)
    before = kinds_of(ledger, "s")

    context = session.preview("word " * 300)

    assert [finding.code for finding in context.findings] == ["compaction-due"]
    assert context.decisions
    assert not fake.asked
    assert kinds_of(ledger, "s") == before
    assert [finding.code for finding in session.ask("word " * 300).findings] == ["compacted"]


@pytest.mark.acceptance("L-16")
def test_everything_on_disk_is_read_again(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 7)
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})
    told = session.ask("And?")
    session.record(says("So.", name="msg_a"))

    report = session.compact()
    context = session.ask("And then?")

    assert "Be brief." in told.system_prompt
    assert report is not None
    assert "Be verbose." in context.system_prompt
    assert "Be brief." not in context.system_prompt
    assert context.epoch != told.epoch
    assert "Be verbose." not in spoken(context.current_message)


# ---- somebody asks for it -----------------------------------------------------------------------------------------


def test_somebody_asks_for_it(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake("They counted.")
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)

    report = session.compact(focus="the numbers")

    assert report is not None
    (step,) = compactions(ledger)
    assert step.closes
    assert (compaction_of(step).trigger, compaction_of(step).focus) == (
        "manual",
        "the numbers",
    )
    assert (report.step, report.trigger, report.summarizer, report.calls) == (step.id, "manual", "given", 1)
    assert (report.turns, report.messages) == (3, 6)
    assert report.tokens_after < report.tokens_before
    assert "They counted." in report.summary
    assert fake.asked[0].focus == "the numbers"
    assert "the numbers" in fake.asked[0].prompt
    assert texts(session.messages)[1:] == [f"{who} {n}" for n in (3, 4, 5) for who in ("question", "answer")]


def test_a_trial_says_what_would_be_done_and_asks_nobody(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)
    before = kinds_of(ledger, "s")

    report = session.compact(dry_run=True)

    assert report is not None
    assert report.step is None
    assert (report.turns, report.first_kept) == (3, steps_of(ledger, "s")[9].id)
    assert not fake.asked
    assert kinds_of(ledger, "s") == before
    done = session.compact()
    assert done is not None
    assert done.tokens_after <= report.tokens_after
    assert done.first_kept == report.first_kept


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_where_there_is_nothing_to_summarise_nothing_is_done(
    open_nexus: OpenNexus, ledger: StoreLedger, turns: int
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), turns)
    before = kinds_of(ledger, "s")

    assert session.compact() is None
    assert kinds_of(ledger, "s") == before


def test_an_archived_session_is_left_alone(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)
    ledger.update("s", status="archived")

    with pytest.raises(TurnError, match="archived"):
        session.compact()


def test_without_any_setting_no_model_is_needed(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()]), 20, words=5)

    report = session.compact()

    assert report is not None
    assert report.summarizer == "extractive"
    assert "question 16" in report.summary
    assert compaction_of(compactions(ledger)[0]).summarizer == "extractive"


def test_facts_are_kept_beside_the_summary(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake("They worked.")).session("s", model="words")
    session.ask("Look at src/auth/token.py, please")
    session.record(says("It is in src/auth/token.py. " + "word " * 400, name="msg_a"))
    for number in range(4):
        exchange(session, number)

    report = session.compact()

    assert report is not None
    assert "src/auth/token.py" in report.summary
    assert "Look at src/auth/token.py, please" in report.summary
    assert report.fidelity["path"].retained == ("src/auth/token.py",)
    assert (compaction_of(compactions(ledger)[0]).fidelity or {})["path"] == {
        "retained": 1,
        "recoverable": 0,
        "lost": 0,
    }


SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 9


def compacted_after_telling(secret: str, open_nexus: OpenNexus, fake: Fake) -> CompactionReport:
    session = open_nexus(plugins=[Words()], summarize=fake).session("s", model="words")
    session.ask(f"The key is {secret} " + "word " * 100)
    session.record(says("Thanks.", name="msg_a"))
    for number in range(4):
        exchange(session, number)
    report = session.compact()
    assert report is not None
    return report


def test_secrets_are_not_summarised_and_the_ledger_has_what_was_sent(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    fake = Fake()

    report = compacted_after_telling(SECRET, open_nexus, fake)

    assert sum(report.redacted.values()) == 1
    assert SECRET not in fake.asked[0].prompt
    assert SECRET not in report.summary
    assert SECRET not in json.dumps(compactions(ledger)[0].payload.to_json())
    assert SECRET in steps_of(ledger, "s")[0].messages[0].content


@pytest.mark.acceptance("B-09")
def test_secrets_stay_where_the_user_wants_it(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, redact_secrets=False)
    fake = Fake()

    report = compacted_after_telling(SECRET, open_nexus, fake)

    assert SECRET in fake.asked[0].prompt
    assert report.redacted == {}


def test_where_no_turn_is_open_summary_and_pins_still_come_first(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=Fake())
    session = long_session(nexus, 6)
    pinned = steps_of(ledger, "s")[3]
    session.pin(pinned.id)
    session.compact()

    context = nexus.assemble(nexus.request(session="s"))

    assert context.messages == session.messages
    assert texts(context.history)[:3] == ["[Previous conversation", "question 1", "question 3"]
    assert (context.current_message, context.progress) == (None, ())
    placed = [each.name for each in context.placements if each.zone == "history"]
    assert placed[0] == compactions(ledger)[0].id
    assert len(placed) == len(context.messages)


@pytest.mark.acceptance("T10")
def test_a_call_with_secrets_is_not_repeated_for_its_cache(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path
) -> None:
    configure(nexus_home, form="cached")
    fake = Fake()
    secret = "sk-ant-api03-" + "A1b2C3d4E5" * 9
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)
    session.ask(f"The key is {secret}")  # it stays; the call that would be repeated has it

    report = session.compact()

    assert report is not None
    assert fake.asked[0].context is None
    assert (report.form, report.redacted) == ("standalone", {})
    assert report.note.endswith("because there are secrets in it: 1 anthropic-key")
    assert (compaction_of(compactions(ledger)[0]).form, compaction_of(compactions(ledger)[0]).note) == (
        "standalone",
        report.note,
    )


def test_each_message_is_looked_through_for_secrets_once(
    open_nexus: OpenNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def watch(text: str) -> RedactedText:
        seen.append(text)
        return redact(text)

    monkeypatch.setattr(prompts, "redact", watch)
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)

    session.compact()

    assert sum(text.startswith("question 0 ") for text in seen) == 1
    assert sum(text.startswith("answer 0 ") for text in seen) == 1


def test_a_summarizer_is_told_which_model_the_conversation_is_with(open_nexus: OpenNexus) -> None:
    fake = Fake()

    long_session(open_nexus(plugins=[Words()], summarize=fake), 6).compact()

    assert fake.asked[0].model == "words"


def test_a_summarizer_may_go_on_from_the_call_itself(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, form="cached")
    fake = Fake()
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)
    last = session.preview("And?")

    session.compact()

    context = fake.asked[0].context
    assert context is not None
    assert context.system_prompt == last.system_prompt
    assert [encode_value(each) for each in context.messages] == [encode_value(each) for each in last.history]


# ---- taking it back -----------------------------------------------------------------------------------------------


def test_undoing_gives_back_what_was_summarised(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)
    whole = session.messages
    report = session.compact()
    exchange(session, 6)

    undone = session.undo()

    assert report is not None
    assert (undone.compaction, undone.restored) == (report.step, None)
    assert session.messages[:12] == whole
    assert texts(session.messages)[-2:] == ["question 6", "answer 6"]
    assert kinds_of(ledger, "s")[-1] == "revert"
    assert list(ledger.verify()) == []


def test_undoing_makes_the_one_before_count_and_the_epoch_stays(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 5)
    first = session.compact()
    exchange(session, 5)
    exchange(session, 6)
    second = session.compact()
    epoch = steps_of(ledger, "s")[-1].payload.epoch

    undone = session.undo()

    assert first is not None
    assert second is not None
    assert undone == (undone.step, second.step, first.step)
    assert texts(session.messages)[1:3] == ["question 2", "answer 2"]
    assert steps_of(ledger, "s")[-1].payload.epoch == epoch
    session.undo()
    assert texts(session.messages)[0] == "question 0"


def test_nothing_is_undone_where_nothing_is_compacted(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()]), 1)

    with pytest.raises(TurnError, match="nothing is compacted"):
        session.undo()


def test_after_an_undoing_it_is_summarised_again_when_it_does_not_fit(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 12)
    session.undo()

    assert session.ask("And?").token_budget.remaining > 0
    assert len(compactions(ledger)) == 2


@pytest.mark.acceptance("H-07")
def test_a_compaction_can_be_expanded(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 5)
    first = session.compact()
    exchange(session, 5)
    second = session.compact()
    assert first is not None
    assert second is not None

    steps = steps_of(ledger, "s")
    assert session.expand(str(first.step)) == tuple(steps[:6])
    assert session.expand(str(second.step)) == tuple(steps[6:9])
    with pytest.raises(UsageError, match="is no compaction"):
        session.expand(steps[0].id)
    with pytest.raises(UsageError, match="there is no step 'nowhere'"):
        session.expand("nowhere")


# ---- what stays ---------------------------------------------------------------------------------------------------


def test_what_is_pinned_stays_when_the_rest_is_summarised(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)
    question = steps_of(ledger, "s")[3]

    assert session.pin(question.id)
    assert not session.pin(question.id)
    report = session.compact()

    assert report is not None
    assert texts(session.messages)[1:3] == ["question 1", "question 3"]
    assert session.messages[1] == steps_of(ledger, "s")[4].messages[0]  # as it was sealed
    exchange(session, 6)
    session.compact()
    assert texts(session.messages)[1:3] == ["question 1", "question 4"]
    assert session.unpin(question.id)
    assert not session.unpin(question.id)
    exchange(session, 7)
    session.compact()
    assert texts(session.messages)[1:3] == ["question 5", "answer 5"]
    assert list(ledger.verify()) == []


def test_a_pinned_result_stays_with_its_call(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="words")
    session.ask("Why?")
    step = session.record(calls("t1", "t2"))
    *_, found = [session.record(call.result("found " * 50)) for call in step.tool_calls]
    session.next()
    session.record(says("Because.", name="msg_b"))
    session.pin(found.id)
    for number in range(4):
        exchange(session, number)

    session.compact()

    messages = session.messages
    assert [call.id for call in messages[1].tool_calls] == ["t1", "t2"]
    assert [result.call_id for message in messages[2:4] for result in message.tool_results] == ["t1", "t2"]
    assert texts(messages)[4] == "question 1"
    session.ask("And?").to("anthropic")
    assert list(ledger.verify()) == []


def test_what_is_pinned_is_known_to_a_fork(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=Fake())
    session = long_session(nexus, 6)
    session.pin(steps_of(ledger, "s")[0].id)

    fork = session.fork("f")
    fork.compact()

    assert texts(fork.messages)[1:3] == ["question 0", "question 3"]
    assert texts(session.messages)[0] == "question 0"


@pytest.mark.parametrize("strategy", ["oldest_first", "middle_out"])
def test_what_is_pinned_is_not_left_out_either(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, strategy: str
) -> None:
    config = {"compaction": {"enabled": False}, "truncation": {"strategy": strategy}}
    write_files(nexus_home, {"config.json": json.dumps(config)})
    session = long_session(open_nexus(plugins=[Words()]), 4)
    pinned = steps_of(ledger, "s")[3].id
    session.pin(pinned)
    for number in range(4, 30):
        exchange(session, number)
        assert "question 1" in texts(session.messages)

    context = session.ask("And?")

    assert "question 1" in texts(context.history)
    assert "question 2" not in texts(context.history)
    assert spoken(context.history[texts(context.history).index("question 1")]).startswith("question 1 word")
    assert context.history[texts(context.history).index("question 1")].content.startswith("Current time: ")
    assert context.decisions


def test_only_what_is_said_in_the_session_can_be_pinned(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=Fake())
    session, other = long_session(nexus, 6), long_session(nexus, 1, label="o")
    first = steps_of(ledger, "s")[0].id
    elsewhere = steps_of(ledger, "o")[0].id

    with pytest.raises(UsageError, match="there is no step 'nowhere' in session 's'"):
        session.pin("nowhere")
    with pytest.raises(UsageError, match="in session 's'"):
        session.pin(elsewhere)
    with pytest.raises(UsageError, match="in session 's'"):
        session.unpin(elsewhere)
    report = session.compact()
    assert report is not None
    with pytest.raises(UsageError, match="has no message"):
        session.pin(str(report.step))
    with pytest.raises(TurnError, match="has replaced step"):
        session.pin(first)
    assert other.messages


# ---- while others go on -------------------------------------------------------------------------------------------


def test_a_reply_to_what_was_sent_before_a_compaction_is_kept(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=Fake())
    session = long_session(nexus, 6)
    sent = session.ask("And?")
    nexus.session("s").compact()
    nexus.session("s").pin(steps_of(ledger, "s")[-1].turn)

    reply = session.record(says("So.", name="msg_a"))

    assert reply.done
    replayed = nexus.replay(reply.id)
    assert replayed.messages == sent.messages
    assert kinds_of(ledger, "s")[-3:] == ["compaction", "pin", "reply"]
    assert texts(session.messages)[-2:] == ["And?", "So."]


def test_steps_that_arrive_while_a_summary_is_made_are_kept(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=lambda _: meanwhile())
    session = long_session(nexus, 6)
    other = nexus.session("s")

    def meanwhile() -> str:
        exchange(other, 6)
        other.ask("And?")
        return "They counted."

    report = session.compact()

    assert report is not None
    assert texts(session.messages)[-3:] == ["question 6", "answer 6", "And?"]
    assert texts(session.messages)[1] == "question 3"
    (step,) = compactions(ledger)
    assert not step.closes
    assert list(ledger.verify()) == []


def test_where_nothing_was_to_stay_what_arrives_stays(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=lambda _: meanwhile())
    session = nexus.session("s", model="words")
    session.ask("Why?")
    session.record(says("word " * 1200))  # more than fits beside anything else
    elsewhere = AgentResult(messages=[Message("user", "question 1"), Message("assistant", "answer 1")])

    def meanwhile() -> str:
        nexus.session("s").record(elsewhere)
        return "They counted."

    report = session.compact()

    assert report is not None
    assert report.first_kept is None
    assert texts(session.messages)[1:] == ["question 1", "answer 1"]
    assert list(ledger.verify()) == []


def test_somebody_else_compacts_first(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    nexus = open_nexus(plugins=[Words()], summarize=fake)
    session = long_session(nexus, 6)
    fake.answer = lambda _: compact_elsewhere() if len(fake.asked) == 1 else "They counted."

    def compact_elsewhere() -> str:
        assert nexus.session("s").compact() is not None
        return "They counted too."

    report = session.compact()

    assert report is None  # the other one has left nothing to summarize
    assert len(compactions(ledger)) == 1


@pytest.mark.parametrize(("kind", "asked"), [("kept", 1), ("summarized", 2)])
def test_somebody_pins_a_step_meanwhile(open_nexus: OpenNexus, ledger: StoreLedger, kind: str, asked: int) -> None:
    def answer(_: object) -> str:
        if len(fake.asked) == 1:
            open_nexus(plugins=[Words()]).session("s").pin(replies[-1 if kind == "kept" else 0])
        return "They counted."

    fake = Fake(answer)
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)
    replies = [step.id for step in steps_of(ledger, "s") if step.kind == "reply"]

    assert session.compact() is not None

    assert len(fake.asked) == asked
    assert len(compactions(ledger)) == 1
    said = [message.content.split()[:2] for message in session.messages]
    assert ["answer", "5" if kind == "kept" else "0"] in said


# ---- what cannot be helped ----------------------------------------------------------------------------------------


def test_what_must_stay_and_does_not_fit_is_an_error_with_a_table(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 4)

    with pytest.raises(BudgetError) as caught:
        session.ask("word " * 1200)

    assert caught.value.parts["event"] > 1200
    assert not compactions(ledger)
    session.interrupt()
    assert session.ask("And?").token_budget.remaining > 0


# ---- facts beside the summary -------------------------------------------------------------------------------------


@pytest.mark.acceptance("H-09")
def test_addresses_with_an_at_sign_stay_as_facts_and_handles_do_not(open_nexus: OpenNexus) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake("They looked for owners.")).session("s", model="words")
    session.ask("Who owns it? " + "word " * 40)
    step = session.record(calls("c1", name="msg_a"))
    session.record(
        step.tool_calls[0].result(
            "ada@example.com and lodash@4.17.21, not @alice, root@host or git@example.org:app. " * 4
        )
    )
    session.next()
    session.record(says("Ada does. " + "word " * 40, name="msg_b"))
    for number in range(4):
        exchange(session, number)

    session.compact()

    summary = spoken(session.messages[0])
    assert "ada@example.com" in summary
    assert "lodash@4.17.21" in summary
    assert not re.search(r"@alice|root@host|git@example", summary)
