"""`nexus memory forget`: what it names, shows and removes, and what still says the same afterwards."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nexus_core import Nexus
from nexus_core.cli import forget_plan
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.memory.forgotten_memories import read_forgotten_memories
from nexus_core.session.engine import Engine
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, ToolCall
from nexus_core.types.payloads import ForgetPayload
from tests.conftest import Cli, Outcome
from tests.session.support import says

if TYPE_CHECKING:
    from collections.abc import Callable

NOTE = "The nightly backup runs on host osprey-17."
QUESTION = "Which host runs the nightly backup?"


@pytest.fixture
def note(nexus_home: Path) -> Path:
    """A note of the user, with memory switched on."""
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}', "memory/nightly-backup.md": f"{NOTE}\n"})
    return nexus_home / "memory/nightly-backup.md"


def talk(work: Path, session: str, question: str, reply: str = "") -> str:
    """Ask and record a reply. Return the message as the model reads it."""
    with Nexus(work, defaults=False) as nexus:
        opened = nexus.session(session, model="gpt-4o")
        sent = opened.ask(question).messages[-1].content
        if reply:
            opened.record(says(reply, name=f"msg_{session}_{len(question)}"))
    return sent


def forget(cli: Cli, target: str, *options: str) -> tuple[int, Any]:
    outcome = cli("memory", "forget", target, *(options or ("--yes",)), "--json")
    return outcome.code, json.loads(outcome.out)


def find_texts(cli: Cli, question: str) -> str:
    """Everything that searches find for a question."""
    memories = json.loads(cli("memory", "search", question, "--json").out)["memories"]
    steps = json.loads(cli("session", "search", question, "--json").out)["found"]
    return "\n".join(each["text"] for each in (*memories, *steps))


# ---- what repeats it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reply"), [("osprey-17", "It runs on osprey-17."), ("heron", "It is called heron, as your note says.")]
)
def test_forget_removes_the_reply_that_repeats_a_memory(
    cli: Cli, note: Path, work: Path, name: str, reply: str
) -> None:
    note.write_text(f"The nightly backup runs on host {name}.\n", encoding="utf-8")
    assert name in talk(work, "first", QUESTION, reply)

    code, report = forget(cli, str(note))

    assert (code, len(report["steps"]), report["still_found"], report["may_repeat"]) == (0, 1, [], [])
    assert name not in find_texts(cli, QUESTION)
    assert name not in talk(work, "second", QUESTION)


def test_forget_removes_a_reply_that_other_sessions_repeat(cli: Cli, note: Path, work: Path) -> None:
    for number in range(12):  # the name is in most turns
        talk(work, f"session-{number}", f"{QUESTION} Ask {number}.", "It runs on osprey-17.")
    note_steps = find_texts(cli, QUESTION).count("osprey")

    code, report = forget(cli, str(note))

    assert note_steps >= 10
    assert (code, len(report["steps"]), report["may_repeat"]) == (0, 12, [])
    assert "osprey" not in find_texts(cli, QUESTION)


def test_forget_follows_a_reply_that_was_a_memory_itself(cli: Cli, note: Path, work: Path, nexus_home: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    note.rename(nexus_home / "hidden.md")
    assert "osprey" in talk(work, "second", "Which host has the nightly backup?", "The osprey machine has it.")
    (nexus_home / "hidden.md").rename(note)

    code, report = forget(cli, str(note))

    assert (code, len(report["steps"])) == (0, 2)
    assert "osprey" not in find_texts(cli, QUESTION)


def test_forget_keeps_a_reply_that_does_not_repeat_it(cli: Cli, note: Path, work: Path) -> None:
    talk(work, "first", QUESTION, "Please look into the runbook.")

    code, report = forget(cli, str(note))

    assert (code, report["steps"]) == (0, [])
    assert "runbook" in find_texts(cli, "runbook")


LATER = [("first", "And tomorrow?", "osprey-17 again."), ("other", "The backup is on osprey-17 now.", "Good.")]


@pytest.mark.parametrize("later", LATER)
def test_forget_names_other_turns_that_may_say_it(
    cli: Cli, note: Path, work: Path, nexus_home: Path, later: tuple[str, str, str]
) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    write_files(nexus_home, {"config.json": "{}"})
    talk(work, *later)

    outcome = cli("memory", "forget", str(note), "--yes")

    assert outcome.code == 1
    assert "1 other place may still say it" in outcome.err
    [step] = re.findall(r"^  (step:\w+): .*osprey", outcome.err, re.MULTILINE)
    code, _ = forget(cli, step)
    assert code == 0
    assert "osprey" not in find_texts(cli, "osprey-17")


def test_forget_a_text_removes_later_turns_that_have_it(cli: Cli, note: Path, work: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    talk(work, "first", "And tomorrow?", "OSPREY-17 again.")

    code, report = forget(cli, "osprey-17")

    assert (code, len(report["steps"]), report["still_found"], report["may_repeat"]) == (0, 2, [], [])
    assert not note.exists()


def test_forget_names_another_note_that_says_the_same(cli: Cli, note: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/other.md": "osprey-17 is the machine for each nightly backup.\n"})

    code, report = forget(cli, str(note))

    [other] = json.loads(cli("memory", "list", "--json").out)["memories"]
    assert (code, report["may_repeat"]) == (1, [other["id"]])


def test_forget_does_not_name_turns_for_common_words(cli: Cli, note: Path, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}", "memory/nightly-backup.md": "The tests need a server that runs.\n"})
    for number in range(12):
        talk(work, f"session-{number}", f"Start the server and run tests, part {number}.", "Tests and servers run.")

    code, report = forget(cli, str(note))

    assert (code, report["may_repeat"]) == (0, [])


def test_forget_keeps_a_reply_that_shares_a_common_word_with_a_long_session(cli: Cli, note: Path, work: Path) -> None:
    note.unlink()
    others = [f"The server of the blue team is up and well again, {number}." for number in range(12)]
    texts = [*(f"server down, {number}" for number in range(150)), "The osprey runs on the server heron."]
    with Nexus(work, defaults=False) as nexus:
        for name, said in (("other", others), ("long", texts)):
            steps = [NewStep(kind="turn", closes=True, messages=(Message("user", text),)) for text in said]
            nexus.ledger.create(name, data={"cwd": str(work)}, steps=steps)
    assert "heron" in talk(work, "given", "What does the osprey run on?", "Please restart the server.")

    _, report = forget(cli, "long")

    assert len(report["steps"]) == len(texts)
    assert "restart" in find_texts(cli, "restart")


def test_forget_reports_a_note_that_its_source_did_not_remove(
    cli: Cli, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [memory] = json.loads(cli("memory", "list", "--json").out)["memories"]
    monkeypatch.setattr(Path, "unlink", lambda *_given, **_named: None)

    code, report = forget(cli, str(note))

    assert (code, report["still_found"]) == (1, [memory["id"]])


def test_forget_reports_a_step_that_is_still_in_the_index(
    cli: Cli, note: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note.unlink()
    talk(work, "first", "The parrot invoice is number 4471.", "Yes.")
    monkeypatch.setattr(Engine, "_append_forget_step", lambda *_given: True)

    code, report = forget(cli, "parrot invoice")

    assert code == 1
    assert set(report["steps"]) < set(report["still_found"])  # and the memory that it is


def test_forget_says_what_it_did_not_compare(cli: Cli, note: Path, work: Path) -> None:
    note.write_text(" ".join(f"word{number}" for number in range(60)), encoding="utf-8")
    with Nexus(work, defaults=False) as nexus:
        messages = (Message("user", f"word1 word2 in report {number}.") for number in range(60))
        steps = [NewStep(kind="turn", closes=True, messages=(message,)) for message in messages]
        nexus.ledger.create("one", data={"cwd": str(work)}, steps=steps)

    limits = [forget(cli, target, "--dry-run")[1]["limits"] for target in ("word1 word2", str(note))]
    outcome = cli("memory", "forget", "word1 word2", "--yes")

    assert limits == [["50 of 62 questions are asked"], ["1 long text by the first 48 different words"]]
    assert "not everything can be compared: 50 of 62 questions are asked" in outcome.err


def test_forget_says_how_many_texts_it_compared(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget_plan, "_MAX_FACTS", 2)
    for name in ("parrot", "heron", "osprey"):
        talk(work, "tests", f"Always run the {name} tests first.", "Good.")

    _, report = forget(cli, "tests", "--dry-run")

    assert (len(report["ids"]), report["limits"]) == (3, ["2 of 3 forgotten texts are compared"])


# ---- what is evidence of a text -------------------------------------------------------------------------------------

BILLING = "The billing service listens on port 7100. Always run the tests first."


def test_forget_a_text_says_why_it_removes_a_rule_beside_it(cli: Cli, work: Path) -> None:
    talk(work, "first", BILLING, "Good.")
    talk(work, "other", "I always run the tests first.", "Good.")

    outcome = cli("memory", "forget", "port 7100", "--yes")

    assert "    Always run the tests first. (of the same message)\n" in outcome.err
    assert (outcome.code, "may still say it" in outcome.err) == (0, False)


def test_forget_a_rule_compares_only_the_rule(cli: Cli, work: Path) -> None:
    talk(work, "first", BILLING, "Good.")
    talk(work, "other", "The billing service is at port 7100.", "Good.")
    [rule] = json.loads(cli("memory", "list", "--json").out)["memories"]

    outcome = cli("memory", "forget", rule["id"], "--yes")

    assert "(of the same message)" not in outcome.err
    assert (outcome.code, "may still say it" in outcome.err) == (0, False)


def test_forget_names_the_place_with_most_of_a_text_first(cli: Cli, work: Path) -> None:
    talk(work, "first", "Staging listens on port 5433 of db-staging.", "Good.")
    talk(work, "second", "Ticket 5433 is closed.", "Good.")
    talk(work, "third", "We moved the port to db-staging:5433", "Good.")

    outcome = cli("memory", "forget", "port 5433", "--yes")

    excerpts = re.findall(r"^  (step:\w+): (.*)$", outcome.err, re.MULTILINE)
    assert [text for _, text in excerpts] == ["We moved the port to db-staging:5433", "Ticket 5433 is closed."]
    assert f"`nexus memory forget {excerpts[0][0]}` forgets one" in outcome.err


@pytest.mark.parametrize(("scope", "count"), [("directory", 1), ("all", 2)])
def test_forget_names_places_of_other_directories_by_names(
    cli: Cli, work: Path, nexus_home: Path, scope: str, count: int
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"memory": {"enabled": False, "scope": scope}})})
    other = work.with_name("other")
    other.mkdir()
    talk(work, "first", "The parrot invoice is number 4471.", "Good.")
    talk(other, "second", "A parrot has an invoice.", "Good.")
    talk(other, "third", "Number 4471 is paid.", "Good.")

    code, report = forget(cli, "parrot invoice is number 4471")

    assert (code, len(report["may_repeat"])) == (1, count)


def test_the_report_of_forget_is_what_was_forgotten(cli: Cli, note: Path, work: Path, nexus_home: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    talk(work, "second", "Is osprey-17 down?", "Yes, osprey-17 is down.")

    outcome = cli("memory", "forget", "osprey-17", "--yes")

    [listed] = json.loads((nexus_home / "memory/forgotten.json").read_text(encoding="utf-8"))["forgotten"]
    printed = re.findall(r"^    (step:\w+): ", outcome.err, re.MULTILINE)
    [removed] = listed["removed"]
    assert Path(removed).parent == note.parent
    assert note.name not in json.dumps(listed)  # it has words of the text
    assert sorted(printed) == listed["uris"]
    assert len(printed) == 3
    assert "session second: 2 steps removed from the search index" in outcome.err
    assert "osprey" not in find_texts(cli, "osprey-17")


# ---- compacted sessions ---------------------------------------------------------------------------------------------


def compact(work: Path, session: str, summary: str) -> None:
    """Add long turns to a session, and summarize the turns before them."""
    with Nexus(work, defaults=False, summarize=lambda _request: summary) as nexus:
        opened = nexus.session(session, model="gpt-4o")
        for number in range(6):
            opened.ask(f"lorem {number} " * 500)
            opened.record(says(f"fine{number} " * 500, name=f"msg_{session}_{number}"))
        opened.compact()


def test_forget_a_text_of_a_compacted_session(cli: Cli, work: Path) -> None:
    talk(work, "first", "The backup host is osprey-17, remember.", "okay " * 900)
    compact(work, "first", "The user spoke of a host.")

    _, shown = forget(cli, "osprey-17", "--dry-run")
    code, report = forget(cli, "osprey-17")

    assert (len(report["steps"]), report["steps"]) == (1, shown["steps"])
    assert (code, report["summaries"]) == (1, ["first"])  # it quotes the user
    assert "osprey" not in find_texts(cli, "osprey-17")


SUMMARIES = [
    ("The user asked for the backup host; it is osprey-17.", True),
    ("The user asked: Which host runs the nightly backup?", False),
]


@pytest.mark.parametrize(("summary", "is_named"), SUMMARIES)
def test_forget_names_a_summary_that_calls_have(
    cli: Cli, note: Path, work: Path, summary: str, *, is_named: bool
) -> None:
    talk(work, "first", QUESTION, "okay " * 900)
    compact(work, "first", summary)

    outcome = cli("memory", "forget", str(note), "--yes")

    warning = "the summary in the calls of session first may still say it: "
    assert (outcome.code, warning in outcome.err) == (int(is_named), is_named)
    assert ("that could find it asked again: none does" in outcome.err) != is_named
    assert ("`nexus session compact first --undo`, then forget it again" in outcome.err) == is_named


def test_json_of_forget_has_the_sessions_whose_summary_may_say_it(cli: Cli, note: Path, work: Path) -> None:
    talk(work, "first", QUESTION, "okay " * 900)
    compact(work, "first", SUMMARIES[0][0])

    code, report = forget(cli, str(note))

    with Nexus(work, defaults=False) as nexus:
        compaction = next(step.id for step in nexus.ledger.steps() if step.kind == "compaction")
    assert (code, report["may_repeat"], report["summaries"]) == (1, [f"step:{compaction}"], ["first"])


# ---- damaged sessions -----------------------------------------------------------------------------------------------


@pytest.fixture
def torn(note: Path, work: Path) -> Path:
    """A note that two sessions were given, `whole` and `torn`; the newest step of the second is damaged."""
    talk(work, "torn", QUESTION)
    talk(work, "whole", QUESTION)
    with Nexus(work, defaults=False) as nexus:
        record = nexus.ledger.session("torn")
    with closing(sqlite3.connect(note.parents[1] / "ledger.db")) as connection, connection:
        for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            connection.execute(f"drop trigger {name}")
        connection.execute("update steps set data = '{' where id = ?", (record and record.tip,))
    return note


@pytest.mark.parametrize("target", ["file", "text"])
def test_forget_skips_a_damaged_session(cli: Cli, torn: Path, work: Path, target: str) -> None:
    outcome = cli("memory", "forget", {"file": str(torn), "text": "osprey-17"}[target], "--yes")

    assert outcome.code == 0
    assert outcome.err.count("session torn is not searched: ") == 1
    assert not torn.exists()
    with Nexus(work, defaults=False) as nexus:
        assert NOTE not in "".join(message.content for message in nexus.session("whole").next().messages)


@pytest.mark.usefixtures("torn")
def test_why_skips_a_damaged_session(cli: Cli) -> None:
    outcome = cli("memory", "why", "--json")

    assert [each["session"] for each in json.loads(outcome.out)["injected"]] == ["whole"]
    assert "session torn is not searched: " in outcome.err
    assert cli("memory", "why", "--session", "torn").code == 3


# ---- memories before the history ------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", ["before_history", "system"])
def test_forget_two_memories_before_the_history(cli: Cli, work: Path, nexus_home: Path, position: str) -> None:
    notes = {
        "a": "The nightly backup runs on host osprey-17.",
        "b": "The weekly deploy pipeline uses runner heron-23.",
        "c": "The monthly invoice report goes to printer falcon-31.",
    }
    settings = {"memory": {"enabled": True, "position": position}}
    write_files(nexus_home, {f"memory/{name}.md": f"{text}\n" for name, text in notes.items()})
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    talk(work, "first", QUESTION, "I see.")
    talk(work, "first", "Which runner does the weekly deploy pipeline use?", "I see now.")
    talk(work, "first", "Which printer gets the monthly invoice report?", "I see that, too.")

    codes = [forget(cli, f"{name}.md")[0] for name in ("a", "b")]

    with Nexus(work, defaults=False) as nexus:
        nexus.session("first").fork("fork")
        contexts = [nexus.session(name).preview("And now?") for name in ("first", "fork")]
    sent = ["\n".join([each.system_prompt, *(message.content for message in each.messages)]) for each in contexts]
    injected = json.loads(cli("memory", "why", "--session", "first", "--json").out)["injected"]
    assert codes == [0, 0]
    assert [[name for name, text in notes.items() if text in each] for each in sent] == [["c"], ["c"]]
    assert [(Path(each["source"]).name, each["is_sent"]) for each in injected] == [
        ("a.md", False),
        ("b.md", False),
        ("c.md", True),
    ]


# ---- what is meant --------------------------------------------------------------------------------------------------


def find_episode(cli: Cli, question: str) -> Any:
    memories = json.loads(cli("memory", "search", question, "--json").out)["memories"]
    return next(each for each in memories if each["kind"] == "episode")


def test_show_and_forget_take_the_id_of_an_episode_that_search_prints(cli: Cli, work: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    episode = find_episode(cli, QUESTION)

    shown = cli("memory", "show", episode["id"])
    code, report = forget(cli, episode["id"])

    assert "It runs on osprey-17." in shown.out
    assert (code, len(report["steps"])) == (0, 2)
    assert find_texts(cli, QUESTION) == ""
    assert "was forgotten" in cli("memory", "show", episode["id"]).err


def test_show_of_a_question_leaves_a_forgotten_answer_out(cli: Cli, work: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    episode = find_episode(cli, QUESTION)
    [answer] = re.findall(r"Answered \((step:\w+)\)", cli("memory", "show", episode["id"]).out)
    forget(cli, answer)

    for name in (episode["id"], episode["source"]):
        shown = cli("memory", "show", name)
        assert (shown.code, QUESTION in shown.out, "osprey" in shown.out) == (0, True, False)


def test_show_refuses_the_steps_of_a_forgotten_session(cli: Cli, work: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    episode = find_episode(cli, QUESTION)
    forget(cli, "first")

    for name in (episode["id"], episode["source"]):
        shown = cli("memory", "show", name)
        assert (shown.code, shown.out, "was forgotten" in shown.err) == (2, "", True)


def test_show_takes_a_step_and_an_id_that_why_prints(cli: Cli, note: Path, work: Path) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    talk(work, "second", QUESTION)
    injected = json.loads(cli("memory", "why", "--json").out)["injected"]
    note.unlink()

    shown = [cli("memory", "show", each["id"]) for each in injected]
    step = next(each["source"] for each in injected if each["source"].startswith("step:"))

    assert len(injected) == 3
    assert all("osprey-17" in each.out for each in shown)
    assert cli("memory", "show", step).out == next(each.out for each in shown if step in each.out)


def test_an_episode_on_an_older_list_of_forgotten_memories_stays_forgotten(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    talk(work, "first", QUESTION, "It runs on osprey-17.")
    step = find_episode(cli, QUESTION)["source"]
    listed = [{"time": "2026-11-01T00:00:00Z", "what": "memory", "ids": ["0123456789ab"], "uris": [step]}]
    write_files(nexus_home, {"memory/forgotten.json": json.dumps({"schema": 1, "forgotten": listed})})

    found = json.loads(cli("memory", "search", QUESTION, "--json").out)["memories"]

    assert step not in [each["source"] for each in found]


@pytest.mark.parametrize("text", ["a", "the", "ab1", "the and", "…"])
def test_forget_refuses_a_text_of_few_letters_or_stop_words(cli: Cli, note: Path, text: str) -> None:
    outcome = cli("memory", "forget", text, "--yes")

    assert outcome.code == 2
    assert "is not an id, and as a text it is shorter than four letters" in outcome.err
    assert note.exists()


def test_forget_a_text_means_whole_words(cli: Cli, note: Path) -> None:
    assert cli("memory", "forget", "night", "--yes").code == 1
    assert note.exists()
    assert cli("memory", "forget", "NIGHTLY   backup", "--yes").code == 0
    assert not note.exists()


def test_forget_a_text_removes_all_of_many_steps_in_any_letter_case(cli: Cli, work: Path) -> None:
    forms = ["ZEBRA project", "Zebra\nProject", "zebra  PROJECT"]
    with Nexus(work, defaults=False) as nexus:
        steps = [
            NewStep(kind="turn", closes=True, messages=(Message("user", f"The {form} item {number} is due."),))
            for number in range(90)
            for form in forms
        ]
        nexus.ledger.create("one", data={"cwd": str(work)}, steps=steps)

    code, report = forget(cli, "zebra project")

    assert (code, len(report["steps"]), report["may_repeat"]) == (0, 270, [])
    assert find_texts(cli, "zebra project") == ""


@pytest.mark.parametrize("stored", ["cafe\u0301 Lumie\u0300re", "caf\u00e9 lumi\u00e8re", "CAFE\u0301 LUMI\u00c8RE"])
@pytest.mark.parametrize("named", ["Cafe\u0301 lumie\u0300re", "CAF\u00c9 lumi\u00e8re"])
def test_forget_a_text_finds_both_forms_of_its_accents(cli: Cli, work: Path, stored: str, named: str) -> None:
    talk(work, "one", f"We meet in the {stored} at noon.")
    talk(work, "two", "We meet in the cafe at noon.")

    code, report = forget(cli, named)

    assert (code, len(report["steps"])) == (0, 1)
    assert "lumi" not in find_texts(cli, "lumiere").lower()


@pytest.mark.parametrize(
    "stored", ["n\u200bächtliche Wartung", "nächtl\u00adiche War\u2060tung", "nächtliche War\x08tung"]
)
@pytest.mark.parametrize("named", ["nächtliche Wartung", "nächt\u200bliche wartung"])
def test_forget_a_text_finds_it_with_hidden_characters(cli: Cli, work: Path, stored: str, named: str) -> None:
    talk(work, "one", f"The {stored} begins at noon.")
    talk(work, "two", "We meet at noon.")

    code, report = forget(cli, named)

    assert (code, len(report["steps"])) == (0, 1)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("ứng dụng", "cứng dụng"),
        ("\u1f04\u03bd\u03b5\u03bc\u03bf\u03c2", "\u03ba\u1f04\u03bd\u03b5\u03bc\u03bf\u03c2"),
        ("зонт", "горизонт"),
    ],
)
def test_forget_a_text_means_whole_words_of_every_script_with_spaces(
    cli: Cli, work: Path, text: str, inside: str
) -> None:
    talk(work, "one", f"Report: {inside} 17.")
    talk(work, "two", f"Report: {text} 18.")

    assert len(forget(cli, text)[1]["steps"]) == 1


@pytest.mark.parametrize(
    ("text", "inside"),
    [("会議室", "第二会議室です"), ("ห้องประชุม", "ที่ห้องประชุมใหญ่"), ("ｶﾀｶﾅ", "全ｶﾀｶﾅ名"), ("서버", "서버는")],
)
def test_forget_a_text_finds_it_where_no_space_follows(cli: Cli, work: Path, text: str, inside: str) -> None:
    talk(work, "one", f"Report: {inside} 17.")

    assert len(forget(cli, text)[1]["steps"]) == 1


@pytest.mark.parametrize("text", ["ÜBER-quokka", "stra\u00dfe", "\u212aelvin quokka", 'say "quokka"', "\\quokka\\"])
def test_forget_a_text_finds_it_in_the_arguments_of_tools(cli: Cli, work: Path, text: str) -> None:
    call = ToolCall(id="1", name="write", arguments={"path": [{text.upper(): 1}]})
    steps = [NewStep(kind="turn", closes=True, messages=(Message("assistant", parts=(call,)),))]
    with Nexus(work, defaults=False) as nexus:
        nexus.ledger.create("one", data={"cwd": str(work)}, steps=steps)

    assert len(forget(cli, text)[1]["steps"]) == 1


@pytest.mark.parametrize(
    "place", ["nightly-backup.md", "{note}", "{note}:1-1", "../home/.nexus3/memory/nightly-backup.md"]
)
def test_forget_takes_the_name_and_the_path_of_a_note(cli: Cli, note: Path, place: str) -> None:
    code, report = forget(cli, place.format(note=note))

    assert (code, report["deleted_files"]) == (0, [str(note)])


def test_forget_refuses_a_name_that_two_notes_have(cli: Cli, note: Path, work: Path) -> None:
    write_files(work, {".nexus3/memory/nightly-backup.md": "Something else.\n"})

    outcome = cli("memory", "forget", "nightly-backup.md", "--yes")

    assert (outcome.code, note.exists()) == (2, True)
    assert f"'nightly-backup.md' could mean 2 things: {note}, {work}/.nexus3" in outcome.err


def test_forget_asks_whether_a_memory_or_a_session_is_meant(cli: Cli, note: Path, work: Path) -> None:
    [memory] = json.loads(cli("memory", "list", "--json").out)["memories"]
    name = memory["id"][:6]
    talk(work, name, "What is new, said the parrot?")

    outcome = cli("memory", "forget", name, "--yes")

    assert outcome.code == 2
    assert f"{name!r} could mean 2 things: {memory['id']}, session:{name}" in outcome.err
    assert NOTE in cli("memory", "show", name).out
    assert forget(cli, f"session:{name}")[1]["target"] == f"session {name}"
    assert (forget(cli, memory["id"])[0], note.exists()) == (0, False)


def test_forget_a_text_finds_it_in_the_title_of_a_note(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/nightly-backup.md": "It runs on osprey-17.\n"})

    code, _ = forget(cli, "nightly backup")

    assert (code, (nexus_home / "memory/nightly-backup.md").exists()) == (0, False)


@pytest.mark.parametrize("name", ["", " "])
def test_show_refuses_an_empty_name(cli: Cli, work: Path, name: str) -> None:
    talk(work, "first", BILLING, "Good.")  # a rule has no title

    outcome = cli("memory", "show", name)

    assert outcome.code == 2
    assert "the name of a memory is empty" in outcome.err


def test_forget_takes_the_name_of_a_note_in_a_home_with_dots(
    cli: Cli, note: Path, work: Path, nexus_home: Path
) -> None:
    with Nexus(work, home=nexus_home / ".." / nexus_home.name, defaults=False) as nexus:
        nexus.session("first", model="gpt-4o").ask(QUESTION)

    code, report = forget(cli, note.name)

    assert (code, report["sessions"]) == (0, ["first"])


def test_show_refuses_a_title_that_two_notes_have(cli: Cli, note: Path, work: Path) -> None:
    write_files(work, {".nexus3/memory/nightly-backup.md": "Something else.\n"})
    ids = [each["id"] for each in json.loads(cli("memory", "list", "--json").out)["memories"]]

    outcome = cli("memory", "show", "nightly backup")

    assert note.exists()
    assert outcome.code == 2
    assert all(id_ in outcome.err for id_ in ids)


def test_forget_says_that_a_file_which_is_not_a_note_is_a_text(cli: Cli, work: Path) -> None:
    write_files(work, {"CLAUDE.md": "Be brief.\n"})
    talk(work, "first", "Please read CLAUDE.md now.")

    outcome = cli("memory", "forget", "CLAUDE.md", "--dry-run")

    assert outcome.code == 0
    assert "'CLAUDE.md' is not a note, so it is a text that memories may have" in outcome.err
    assert ": Please read CLAUDE.md now." in outcome.err


def answer(cli: Cli, monkeypatch: pytest.MonkeyPatch, reply: str, *arguments: str) -> Outcome:
    """Run a command at a terminal where the user types a line."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", TypedLine(reply))
    return cli(*arguments)


class TypedLine:
    def __init__(self, line: str) -> None:
        self.line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return f"{self.line}\n"


@pytest.mark.parametrize("reply", ["n", "y"])
def test_the_question_shows_the_first_words_and_no_means_nothing(
    cli: Cli, note: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    outcome = answer(cli, monkeypatch, reply, "memory", "forget", str(note))

    assert outcome.err.index(NOTE) < outcome.err.index("Forget it?")
    assert ("Nothing was forgotten." in outcome.err, note.exists()) == (reply == "n", reply == "n")
    assert ("Forgotten: 1 item." in outcome.err) == (reply == "y")


@pytest.mark.parametrize("reply", ["n", "y"])
def test_json_of_forget_tells_a_refusal_from_a_dry_run(
    cli: Cli, note: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    _, shown = forget(cli, str(note), "--dry-run")
    answered = json.loads(answer(cli, monkeypatch, reply, "memory", "forget", str(note), "--json").out)

    assert (shown["dry_run"], shown["forgotten"]) == (True, False)
    assert (answered["dry_run"], answered["forgotten"]) == (False, reply == "y")


# ---- sessions that share steps --------------------------------------------------------------------------------------


def fork(work: Path, session: str, name: str) -> None:
    with Nexus(work, defaults=False) as nexus:
        nexus.session(session).fork(name)


def rebuild_index(work: Path) -> None:
    """Change the version of the index, so that the next search builds it anew."""
    with Nexus(work, defaults=False) as nexus:
        path = nexus.ledger.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update search_state set value = '0' where name = 'version'")


@pytest.mark.parametrize("deleted", [["orig"], ["fork"], ["third", "fork"]])
def test_steps_that_forks_share_stay_forgotten_when_one_is_deleted(cli: Cli, work: Path, deleted: list[str]) -> None:
    talk(work, "orig", "The parrot invoice is number 4471.", "Yes, parrot invoice 4471.")
    fork(work, "orig", "fork")
    talk(work, "fork", "And bananas?", "Fine.")
    fork(work, "fork", "third")
    assert cli("session", "archive", "third").code == 0

    code, report = forget(cli, "parrot invoice")
    for session in deleted:
        assert cli("session", "delete", session, "--yes").code == 0
    rebuild_index(work)

    assert (code, len(report["steps"]), report["stays_in"]) == (0, 2, ["fork", "orig", "third"])
    assert "parrot" not in find_texts(cli, "parrot invoice")
    assert cli("ledger", "verify").code == 0


def test_the_report_of_forget_counts_a_shared_step_once(cli: Cli, work: Path) -> None:
    talk(work, "orig", "The parrot invoice is number 4471.", "Yes, parrot invoice 4471.")
    fork(work, "orig", "fork")
    talk(work, "fork", "The parrot invoice again?")

    shown = cli("memory", "forget", "parrot invoice", "--dry-run").err
    outcome = cli("memory", "forget", "parrot invoice", "--yes")

    for text in (shown, outcome.err):
        assert text.count(": The parrot invoice is number 4471.") == 1
        assert "session fork: 3 steps removed from the search index\n" in text
        assert "session orig: shares 2 steps named above\n" in text
        assert re.findall("`nexus session delete (.*)` erases", text) == ["fork", "orig"]
    with Nexus(work, defaults=False) as nexus:
        assert [record.status for record in nexus.ledger.sessions(status=None)] == ["active", "active"]


@pytest.mark.parametrize("position", ["after_history", "before_history"])
def test_a_fork_of_an_earlier_turn_inherits_what_was_forgotten(
    cli: Cli, note: Path, work: Path, nexus_home: Path, position: str
) -> None:
    settings = {"memory": {"enabled": True, "position": position}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    talk(work, "orig", QUESTION, "It runs on osprey-17.")
    talk(work, "orig", "And bananas?", "Fine.")
    with Nexus(work, defaults=False) as nexus:
        first = next(step.id for step in nexus.ledger.steps() if step.kind == "reply")
    forget(cli, str(note))

    with Nexus(work, defaults=False) as nexus:
        nexus.session("orig").fork("fork", at=first)
        calls = "".join(message.content for message in nexus.session("fork").ask("And apples?").messages)
    assert cli("session", "delete", "orig", "--yes").code == 0
    rebuild_index(work)

    assert NOTE not in calls
    assert "osprey" not in find_texts(cli, QUESTION)
    assert cli("ledger", "verify").code == 0


@pytest.mark.parametrize("position", ["after_history", "before_history"])
def test_a_fork_before_damaged_steps_leaves_out_all_memories(
    cli: Cli, note: Path, work: Path, nexus_home: Path, caplog: pytest.LogCaptureFixture, *, position: str
) -> None:
    settings = {"memory": {"enabled": True, "position": position}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    talk(work, "orig", QUESTION, "It runs on osprey-17.")
    talk(work, "orig", "And bananas?", "Fine.")
    with Nexus(work, defaults=False) as nexus:
        first, last = (step.id for step in nexus.ledger.steps() if step.kind == "reply")
    forget(cli, str(note))
    with closing(sqlite3.connect(nexus_home / "ledger.db")) as connection, connection:
        for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            connection.execute(f"drop trigger {name}")
        connection.execute("update steps set data = '{' where id = ?", (last,))

    with Nexus(work, defaults=False) as nexus:
        forked = nexus.session("orig").fork("fork", at=first)
        calls = "".join(message.content for message in forked.ask("And apples?").messages)

    assert NOTE not in calls
    assert "what session 'orig' has forgotten cannot be read" in caplog.text


def test_a_fork_in_memory_stays_forgotten_when_the_other_is_deleted(work: Path) -> None:
    with Nexus(work, defaults=False, ledger="memory:") as nexus:
        session = nexus.session("orig", model="gpt-4o")
        session.ask("The parrot invoice is number 4471.")
        session.record(says("Yes."))
        forked = session.fork("fork")
        forked.ask("And bananas?")
        forked.forget_memories([], steps=[hit.step for hit in nexus.search("parrot").hits])
        nexus.delete_session("fork")

        assert nexus.search("parrot").hits == ()


# ---- interruptions --------------------------------------------------------------------------------------------------

RULE = "Always run the osprey smoke tests before you push."


class Killed(BaseException):
    """Stands for a process that ends at that point."""


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, count: int, *, is_after: bool) -> None:
    """End a function at its first calls but `count`, before or after it has done its work."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = []

    def run(*given: Any, **named: Any) -> Any:
        calls.append(name)
        if len(calls) > count and not is_after:
            raise Killed
        result = original(*given, **named)
        if len(calls) > count:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, run)


POINTS = [
    *[(forget_plan, "record_forgotten_memories", 0, is_after) for is_after in (False, True)],
    *[(Engine, "_append_forget_step", count, is_after) for count in range(5) for is_after in (False, True)],
    *[(Path, "unlink", 0, is_after) for is_after in (False, True)],
]


def test_a_fork_that_was_interrupted_has_forgotten_the_same(
    cli: Cli, note: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(work, "orig", QUESTION, "It runs on osprey-17.")
    talk(work, "orig", "And bananas?", "Fine.")
    with Nexus(work, defaults=False) as nexus:
        first = next(step.id for step in nexus.ledger.steps() if step.kind == "reply")
    forget(cli, str(note))

    with Nexus(work, defaults=False) as nexus, monkeypatch.context() as patched:
        interrupt(patched, StoreLedger, "create", 0, is_after=True)
        with pytest.raises(Killed):
            nexus.session("orig").fork("fork", at=first)

    assert NOTE not in talk(work, "fork", "And apples?")
    with Nexus(work, defaults=False) as nexus:
        assert NOTE not in "".join(message.content for message in nexus.session("fork").next().messages)


@pytest.mark.parametrize(("owner", "name", "count", "is_after"), POINTS)
@pytest.mark.parametrize("target", ["id", "text", "session", "step", "file"])
def test_forget_that_was_interrupted_is_completed_by_the_same_command(
    cli: Cli,
    note: Path,
    work: Path,
    *,
    nexus_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    owner: object,
    name: str,
    count: int,
    is_after: bool,
) -> None:
    note.write_text(f"{RULE}\n", encoding="utf-8")
    talk(work, "first", RULE, "The osprey smoke tests: understood.")
    fork(work, "first", "fork")
    talk(work, "fork", RULE, "As before.")
    talk(work, "given", "What do I run before I push, smoke tests?", "The osprey smoke tests.")
    memories = json.loads(cli("memory", "list", "--json").out)["memories"]
    rule = min((each for each in memories if each["kind"] == "preference"), key=lambda each: str(each["source"]))
    command = {"id": rule["id"], "text": "osprey smoke", "session": "first", "step": rule["source"], "file": str(note)}
    arguments = ("memory", "forget", command[target], "--yes")
    saved = shutil.copytree(nexus_home, nexus_home.with_name("saved"))
    cli(*arguments)
    expected = read_forgotten(work, note)
    shutil.rmtree(nexus_home)
    saved.rename(nexus_home)

    with monkeypatch.context() as patched, suppress(Killed):
        interrupt(patched, owner, name, count, is_after=is_after)
        cli(*arguments)
    cli(*arguments)

    assert (expected["first"] == (set(), ())) == (target == "file")
    assert read_forgotten(work, note) == expected


def read_forgotten(work: Path, note: Path) -> dict[str, object]:
    """Read what each session has forgotten, what is listed, and if the note is there."""
    listed = read_forgotten_memories(note.parents[1])
    found: dict[str, object] = {"note": note.exists(), "ids": listed.ids, "uris": listed.uris}
    with Nexus(work, defaults=False) as nexus:
        for record in nexus.ledger.sessions(status=None):
            payloads = [step.payload for step in nexus.ledger.thread(record.tip or "")]
            steps = {name for each in payloads if isinstance(each, ForgetPayload) for name in each.forgotten_steps}
            found[record.label] = steps, payloads[-1].unsent_memories
        found["search"] = [hit.step for hit in nexus.search("osprey smoke tests").hits]
    return found
