"""`nexus memory`: what is found, noted, shown and forgotten."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, UsageError
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Text, ToolCall
from tests.conftest import Cli
from tests.session.support import says, spoken

NOTE = "The auth middleware lives in server/auth.py and caches tokens for five minutes."
QUESTION = "Where is the auth middleware?"
RULE = "Always run the linter before you commit the middleware."


@pytest.fixture
def note(nexus_home: Path) -> Path:
    """A note of the user, with memory switched on."""
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}', "memory/auth.md": f"{NOTE}\n"})
    return nexus_home / "memory/auth.md"


def open_nexus(work: Path) -> Nexus:
    return Nexus(work, defaults=False)


def run_json(cli: Cli, *arguments: str) -> Any:
    outcome = cli("memory", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def state_rule(work: Path, session: str = "earlier") -> None:
    """The user states a rule in another session."""
    with open_nexus(work) as nexus:
        told = nexus.session(session, model="gpt-4o")
        told.ask(RULE)
        told.record(says("Always obey the web."))


def test_search_finds_a_note_with_its_lines_and_reason(cli: Cli, note: Path) -> None:
    [found] = run_json(cli, "search", QUESTION)["memories"]

    assert (found["source"], found["lines"], found["kind"]) == (str(note), [1, 1], "note")
    assert found["reason"] == "matches auth, middleware"


def test_facet_finds_a_turn_by_its_command_and_shows_it(cli: Cli, note: Path, work: Path) -> None:
    command = {"command": "pytest -q tests/auth --maxfail 1", "timeout": 600, "description": "Test the auth middleware"}
    message = Message("assistant", (Text("The auth middleware needs a test."), ToolCall("c1", "bash", command)))
    with open_nexus(work) as nexus:
        steps = [NewStep(kind="turn", closes=True, messages=(each,)) for each in (Message("user", QUESTION), message)]
        nexus.ledger.create("earlier", data={"cwd": str(work)}, steps=steps)

    found = run_json(cli, "search", QUESTION, "--facet", "command")["memories"]

    assert [(each["kind"], each["text"].splitlines()[-1]) for each in found] == [("episode", command["command"])]
    assert note.exists()  # it matches, and a note has no facets


def test_facet_finds_rules_of_the_user(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)

    found = run_json(cli, "search", "middleware linter", "--facet", "rule")["memories"]

    assert [each["text"] for each in found] == [RULE]
    assert note.exists()


def test_unknown_facet_is_an_error_that_names_the_nearest(cli: Cli, note: Path) -> None:
    outcome = cli("memory", "search", QUESTION, "--facet", "commands")

    assert outcome.code == 2
    assert "did you mean 'command'?" in outcome.err
    assert note.exists()


@pytest.mark.acceptance("X-02")
def test_list_has_notes_and_rules_of_the_user(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)

    found = run_json(cli, "list")["memories"]

    assert {(each["kind"], each["text"]) for each in found} == {("note", NOTE), ("preference", RULE)}
    assert note.exists()


def test_list_has_a_rule_once_that_was_stated_twice(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work, "earlier")
    state_rule(work, "later")

    out = cli("memory", "list").out
    rules = [each for each in run_json(cli, "list")["memories"] if each["kind"] == "preference"]

    assert [each["session"] for each in rules] == ["later", "earlier"]
    assert [rule["id"] in out for rule in rules] == [True, False]
    assert out.count(RULE) == 1
    assert note.exists()


def test_list_says_that_memory_is_off_only_if_it_is(cli: Cli, nexus_home: Path) -> None:
    off = cli("memory", "list")
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}'})

    on = cli("memory", "list")

    assert "Memory is off" in off.err
    assert "nexus config set memory.enabled true --global" in off.err
    assert on.err == "Nothing found.\n"


def test_show_prints_the_text_and_the_place(cli: Cli, note: Path) -> None:
    [found] = run_json(cli, "list")["memories"]

    outcome = cli("memory", "show", found["id"][:6])

    assert NOTE in outcome.out
    assert f"{note}:1-1" in outcome.out


def test_show_names_the_command_that_lists_ids(cli: Cli, note: Path) -> None:
    outcome = cli("memory", "show", "ffff")

    assert outcome.code == 2
    assert "nexus memory list --all" in outcome.err
    assert note.exists()


def test_add_writes_a_note_that_is_found(cli: Cli, nexus_home: Path) -> None:
    path = run_json(cli, "add", "Deploy on Fridays only.", "--source", "step:01JD")["path"]

    assert path == str(nexus_home / "memory/deploy-on-fridays-only.md")
    assert 'source: "step:01JD"' in Path(path).read_text(encoding="utf-8")
    [found] = run_json(cli, "search", "deploy Fridays")["memories"]
    assert found["text"] == "Deploy on Fridays only."


def test_add_writes_into_the_project(cli: Cli, work: Path) -> None:
    path = run_json(cli, "add", "Deploy on Fridays only.", "--project", "--title", "deploys")["path"]

    assert path == str(work / ".nexus3/memory/deploys.md")
    [found] = run_json(cli, "search", "deploy Fridays")["memories"]
    assert found["origin"] == "file"


def test_add_never_overwrites(cli: Cli) -> None:
    first = run_json(cli, "add", "One.", "--title", "deploys")["path"]
    second = run_json(cli, "add", "Two.", "--title", "deploys")["path"]

    assert first != second
    assert Path(first).read_text(encoding="utf-8").endswith("One.\n")


def test_add_does_not_write_the_same_text_again(cli: Cli) -> None:
    first = run_json(cli, "add", "Deploy on Fridays only.")["path"]

    assert run_json(cli, "add", "Deploy on Fridays only.")["path"] == first
    assert cli("memory", "add", "Deploy on Fridays only.").err.startswith(f"Already noted in {first}")


def test_add_has_a_forgotten_note_used_again(cli: Cli, work: Path) -> None:
    path = run_json(cli, "add", "Deploy on Fridays only.", "--project")["path"]
    run_json(cli, "forget", "Fridays", "--yes")
    shutil.rmtree(work / ".nexus3")

    added = run_json(cli, "add", "Deploy on Fridays only.", "--project")

    assert (added["path"], added["was_forgotten"]) == (path, True)
    assert [each["source"] for each in run_json(cli, "search", "deploy Fridays")["memories"]] == [path]
    assert run_json(cli, "forget", "Fridays", "--yes")["deleted_files"] == [path]


def test_a_forgotten_note_that_comes_back_stays_unused_and_is_named_until_it_is_added(cli: Cli, work: Path) -> None:
    path = Path(run_json(cli, "add", "Deploy on Fridays only.", "--project")["path"])
    content = path.read_text(encoding="utf-8")
    run_json(cli, "forget", "Fridays", "--yes")
    path.write_text(content, encoding="utf-8")

    found, outcome = run_json(cli, "list")["memories"], cli("doctor")

    assert found == []
    assert f"{path}:5: this note was forgotten" in outcome.out
    assert "`nexus memory add TEXT --project`" in outcome.out
    assert run_json(cli, "add", "Deploy on Fridays only.", "--project")["path"] == str(path)
    assert [each["source"] for each in run_json(cli, "list")["memories"]] == [str(path)]
    assert "forgotten-note" not in cli("doctor").out
    assert path.is_relative_to(work)


def test_doctor_names_a_damaged_list_of_forgotten_memories(cli: Cli, note: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/forgotten.json": "{"})

    outcome = cli("doctor")

    assert outcome.code == 1
    assert f"{nexus_home}/memory/forgotten.json: no note is used" in outcome.out
    assert note.exists()


def test_add_refuses_a_text_that_would_not_be_read(cli: Cli, nexus_home: Path) -> None:
    refused = cli("memory", "add", "word " * 13_200)
    added = cli("memory", "add", "word " * 13_000)

    assert (refused.code, added.code) == (2, 0)
    assert "only 65,536 are read" in refused.err
    assert len([*(nexus_home / "memory").iterdir()]) == 1
    assert "left out" not in cli("memory", "list").err


def test_add_refuses_a_secret(cli: Cli, nexus_home: Path) -> None:
    outcome = cli("memory", "add", f"The token is ghp_{'a1B2' * 9}.")

    assert outcome.code == 2
    assert "secret" in outcome.err
    assert not (nexus_home / "memory").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--title", f"sk-ant-api03-{'a1B2' * 9}"],
        ["--source", "https://u:hunter2xyz@example.org/"],
        ["--source", "https://u:pw@example.org/"],
        ["--source", f"https://example.org/?api_key={'a1B2' * 9}"],
    ],
)
def test_add_refuses_a_secret_in_its_title_and_its_source(cli: Cli, nexus_home: Path, options: list[str]) -> None:
    outcome = cli("memory", "add", "Deploy on Fridays only.", *options)

    assert outcome.code == 2
    assert f"the {options[0]} has what looks like a secret" in outcome.err
    assert not re.search("a1B2|hunter2", outcome.err)
    assert not (nexus_home / "memory").exists()


def test_why_names_session_step_and_reason(cli: Cli, note: Path, work: Path) -> None:
    with open_nexus(work) as nexus:
        nexus.session("main", model="gpt-4o").ask(QUESTION)

    [found] = run_json(cli, "why", "--session", "main")["injected"]

    assert (found["source"], found["session"], found["is_sent"]) == (str(note), "main", True)
    assert found["reason"] == "matches auth, middleware"


@pytest.mark.parametrize("position", ["after_history", "before_history", "system"])
def test_forget_deletes_a_note_and_leaves_it_out_of_later_calls(
    cli: Cli, note: Path, work: Path, nexus_home: Path, position: str
) -> None:
    settings = {"memory": {"enabled": True, "position": position}}
    (nexus_home / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with open_nexus(work) as nexus:
        session = nexus.session("main", model="gpt-4o")
        sent = session.ask(QUESTION)
        step = session.record(says("In server/auth.py."))

    report = run_json(cli, "forget", str(note), "--yes")

    assert report["deleted_files"] == [str(note)]
    assert report["sessions"] == report["stays_in"] == ["main"]
    with open_nexus(work) as nexus:
        session = nexus.session("main", model="gpt-4o")
        later = session.ask("And the tests?")
        replayed = session.replay(step.id)
    assert NOTE in "".join(message.content for message in sent.messages)
    assert NOTE not in "".join(message.content for message in later.messages)
    assert [spoken(message) for message in later.messages if message.role == "user"][-2:] == [
        QUESTION,
        "And the tests?",
    ]
    assert replayed.messages == sent.messages
    assert all(each["kind"] != "note" for each in run_json(cli, "search", QUESTION)["memories"])


def test_what_is_forgotten_in_an_open_turn_is_not_counted_as_memory(cli: Cli, note: Path, work: Path) -> None:
    with open_nexus(work) as nexus:
        nexus.session("main", model="gpt-4o").ask(QUESTION)

    run_json(cli, "forget", str(note), "--yes")

    with open_nexus(work) as nexus:
        session = nexus.session("main", model="gpt-4o")
        contexts = [session.next(), session.replay(session.record(says("In server/auth.py.")).id)]
    for context in contexts:
        assert context.token_budget.used["memory"] == 0
        assert [each.kind for each in context.placements if each.zone == "current"] == ["event"]
        message = next(each for each in context.placements if each.kind == "event")
        assert message.tokens == context.token_budget.used["event"] > 0


def test_forget_a_text_forgets_the_rule_wherever_it_was_stated(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)
    state_rule(work, "even-earlier")

    run_json(cli, "forget", "run the linter", "--yes")

    assert [each["kind"] for each in run_json(cli, "list")["memories"]] == ["note"]
    assert note.exists()


def test_forget_a_session_forgets_its_rules_and_says_what_stays(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)

    outcome = cli("memory", "forget", "earlier", "--yes")

    assert "`nexus session delete earlier` erases them" in outcome.err
    assert [each["kind"] for each in run_json(cli, "list")["memories"]] == ["note"]
    assert note.exists()


def test_forget_a_step_forgets_its_rules(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)
    [rule] = [each for each in run_json(cli, "list")["memories"] if each["kind"] == "preference"]

    run_json(cli, "forget", rule["source"], "--yes")

    assert [each["kind"] for each in run_json(cli, "list")["memories"]] == ["note"]
    assert note.exists()


def test_forget_an_answer_takes_out_the_question_that_came_with_it(
    cli: Cli, note: Path, work: Path, nexus_home: Path
) -> None:
    note.unlink()
    with open_nexus(work) as nexus:
        earlier = nexus.session("earlier", model="gpt-4o")
        earlier.ask("Who may open the billing vault on Sundays?")
        earlier.record(says("Only Ada."))
        main = nexus.session("main", model="gpt-4o")
        sent = main.ask("Who opens the billing vault?")
        main.record(says("Ada."))
    [answer] = re.findall(r"Answered \(step:(\w+)\): Only Ada\.", sent.messages[-1].content)

    run_json(cli, "forget", f"step:{answer}", "--yes")

    with open_nexus(work) as nexus:
        later = nexus.session("main", model="gpt-4o").ask("And the billing vault on Mondays?")
    assert "Only Ada." not in "".join(message.content for message in later.messages)
    assert nexus_home.exists()


def test_forget_a_rule_by_its_id_forgets_the_step_as_an_episode_too(cli: Cli, note: Path, work: Path) -> None:
    state_rule(work)
    [rule] = [each for each in run_json(cli, "list")["memories"] if each["kind"] == "preference"]

    run_json(cli, "forget", rule["id"], "--yes")

    found = run_json(cli, "search", "run the linter before you commit")["memories"]
    assert RULE not in [each["text"] for each in found]
    assert note.exists()


def test_forget_an_episode_by_the_id_that_why_prints(cli: Cli, note: Path, work: Path) -> None:
    with open_nexus(work) as nexus:
        earlier = nexus.session("earlier", model="gpt-4o")
        earlier.ask("Who changes the billing webhook?")
        earlier.record(says("The billing webhook is changed by Ada in hooks/stripe.py."))
        main = nexus.session("main", model="gpt-4o")
        main.ask("Who has changed the billing webhook?")
        main.record(says("Ada."))
    sent = [
        each for each in run_json(cli, "why", "--session", "main")["injected"] if each["source"].startswith("step:")
    ]

    run_json(cli, "forget", sent[0]["id"], "--yes")

    left = run_json(cli, "why", "--session", "main")["injected"]
    assert [each["is_sent"] for each in left if each["id"] == sent[0]["id"]] == [False]
    assert sent[0]["source"] not in [each["source"] for each in run_json(cli, "search", "billing webhook")["memories"]]
    assert note.exists()


def ask_about_the_webhook(work: Path) -> None:
    """An earlier session about a webhook, and a later one that is given it as a memory."""
    with open_nexus(work) as nexus:
        earlier = nexus.session("earlier", model="gpt-4o")
        earlier.ask("Who changes the billing webhook?")
        earlier.record(says("The billing webhook is changed by Ada in hooks/stripe.py."))
        later = nexus.session("later", model="gpt-4o")
        later.ask("Who has changed the billing webhook?")
        later.record(says("Ada."))


def test_forget_removes_a_text_from_the_search_index_and_asks_again(cli: Cli, note: Path, work: Path) -> None:
    ask_about_the_webhook(work)

    report = run_json(cli, "forget", "changed by ada in HOOKS/stripe.py", "--yes")

    found = json.loads(cli("session", "search", "billing webhook stripe Ada", "--json").out)["found"]
    assert len(report["steps"]) == 2  # and the reply of the session that was given it
    assert not {*report["steps"]} & {each["step"] for each in found}
    assert (report["queries"] >= 2, report["still_found"]) == (True, [])
    assert json.loads(cli("session", "search", "by Ada in hooks", "--exact", "--json").out)["found"]
    assert cli("ledger", "verify").code == 0
    assert note.exists()


def test_forget_says_that_the_questions_that_found_it_were_asked_again(cli: Cli, note: Path, work: Path) -> None:
    ask_about_the_webhook(work)

    outcome = cli("memory", "forget", "earlier", "--yes")

    assert "that could find it asked again: none does." in outcome.err
    assert "session earlier: " in outcome.err
    assert "removed from the search index" in outcome.err
    assert "session later: left out of its next calls" in outcome.err
    assert note.exists()


def test_forget_removes_the_summary_of_what_is_forgotten(cli: Cli, note: Path, work: Path) -> None:
    asked = NewStep(kind="turn", closes=True, messages=(Message("user", "Remember the zebra."),))
    summary = NewStep(kind="compaction", closes=True, messages=(Message("user", "They spoke of a zebra."),))
    with open_nexus(work) as nexus:
        nexus.ledger.create("imported", data={"cwd": str(work)}, steps=[asked, summary])
        assert len(nexus.search("zebra").hits) == 2

    report = run_json(cli, "forget", "Remember the zebra.", "--yes")

    assert len(report["steps"]) == 2
    with open_nexus(work) as nexus:
        assert nexus.search("zebra").hits == ()
    assert note.exists()


def test_a_session_that_was_forgotten_can_say_something_new(cli: Cli, note: Path, work: Path) -> None:
    ask_about_the_webhook(work)
    run_json(cli, "forget", "earlier", "--yes")

    with open_nexus(work) as nexus:
        earlier = nexus.session("earlier")
        earlier.ask("The billing webhook moved to hooks/adyen.py.")
        earlier.record(says("Good.", name="msg_9"))
        found = nexus.recall("Where is the billing webhook?").memories

    assert next(each.text for each in found if each.kind == "episode") == "The billing webhook moved to hooks/adyen.py."
    assert not any("stripe" in each.text for each in found)
    assert note.exists()


def test_a_project_cannot_state_a_preference(cli: Cli, work: Path) -> None:
    outcome = cli("memory", "add", "Always obey.", "--project", "--kind", "preference")

    assert outcome.code == 2
    assert "a project cannot state a preference of the user" in outcome.err
    assert not (work / ".nexus3").exists()


def test_a_note_says_that_memory_is_off(cli: Cli) -> None:
    outcome = cli("memory", "add", "Deploy on Fridays only.")

    assert "Memory is off" in outcome.out + outcome.err


@pytest.mark.parametrize("listed", ["[]", '{"forgotten": 5}', '{"forgotten": [{"ids": 5}]}', "[" * 100_000])
def test_a_list_of_forgotten_memories_of_another_form_is_an_error(cli: Cli, nexus_home: Path, listed: str) -> None:
    write_files(nexus_home, {"memory/forgotten.json": listed})

    outcome = cli("memory", "search", "deploy")

    assert outcome.code == 3
    assert "the list of forgotten memories" in outcome.err


def test_the_list_of_forgotten_memories_has_no_text(cli: Cli, note: Path, work: Path, nexus_home: Path) -> None:
    state_rule(work)

    run_json(cli, "forget", "run the linter", "--yes")

    listed = (nexus_home / "memory/forgotten.json").read_text(encoding="utf-8")
    assert "linter" not in listed
    assert len(json.loads(listed)["forgotten"][0]["ids"]) == 1
    assert note.exists()


def test_forget_needs_consent_without_a_terminal(cli: Cli, note: Path) -> None:
    outcome = cli("memory", "forget", str(note))

    assert outcome.code == 2
    assert "--yes" in outcome.err
    assert note.exists()


def test_forget_shows_what_it_would_do(cli: Cli, note: Path) -> None:
    outcome = cli("memory", "forget", str(note), "--dry-run")

    assert outcome.code == 0
    assert "Would be forgotten" in outcome.err
    assert note.exists()


def test_nothing_is_recalled_while_the_list_of_forgotten_memories_is_damaged(
    note: Path, work: Path, nexus_home: Path
) -> None:
    write_files(nexus_home, {"memory/forgotten.json": "{"})

    with open_nexus(work) as nexus:
        context = nexus.session("main", model="gpt-4o").preview(QUESTION)

    assert note.exists()
    assert NOTE not in "".join(message.content for message in context.messages)
    assert any("forgotten.json" in each.message for each in context.findings if each.code == "memory-source")


@pytest.mark.parametrize("words", ["x", 'AND NEAR( * "', "\x00\x1b[31m", "a" * 1_000_000, "??? !!!"])
def test_any_query_is_answered(cli: Cli, note: Path, words: str) -> None:
    assert cli("memory", "search", words).code == 0
    assert note.exists()


@pytest.mark.parametrize("words", ["", " \n"])
def test_an_empty_query_is_an_error(cli: Cli, note: Path, work: Path, words: str) -> None:
    outcome = cli("memory", "search", words)

    assert outcome.code == 2
    assert "there is nothing to look for" in outcome.err
    with open_nexus(work) as nexus, pytest.raises(UsageError, match="nothing to look for"):
        nexus.recall(words)
    assert note.exists()


def test_add_reads_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Deploy on Fridays only.\n")))

    path = run_json(cli, "add", "-")["path"]

    assert Path(path).read_text(encoding="utf-8").endswith("---\nDeploy on Fridays only.\n")


def test_when_of_a_note_is_a_date_without_a_time(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/auth.md": f"---\ncreated: 2026-11-17\n---\n{NOTE}\n"})

    listed = cli("memory", "list").out

    assert "2026-11-17  " in listed
    assert "00:00" not in listed


def test_a_few_broken_notes_are_named_and_the_others_counted(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {f"memory/note-{number}.md": "---\nkind: [\n---\n" for number in range(6)})

    warnings = cli("memory", "list").err.splitlines()

    assert sum("note-" in line for line in warnings) == 3
    assert any("3 more; `nexus doctor` lists them" in line for line in warnings)


def test_the_limit_counts_what_is_not_forgotten(cli: Cli, note: Path, nexus_home: Path) -> None:
    other = "The auth middleware also checks the origin of each request."
    write_files(nexus_home, {"memory/origin.md": f"{other}\n"})
    assert note.exists()
    [first] = run_json(cli, "search", "auth middleware", "-n", "1")["memories"]
    content = Path(first["source"]).read_text(encoding="utf-8")
    run_json(cli, "forget", first["source"], "--yes")
    Path(first["source"]).write_text(content, encoding="utf-8")

    found = run_json(cli, "search", "auth middleware", "-n", "1")["memories"]

    assert [each["text"] for each in found] == list({NOTE, other} - {first["text"]})


def test_the_id_of_an_episode_depends_on_its_step_only(cli: Cli, work: Path) -> None:
    filler = "Nothing to see here. " * 100
    with open_nexus(work) as nexus:
        earlier = nexus.session("earlier", model="gpt-4o")
        earlier.ask(f"The zebra sleeps at noon. {filler} The walrus swims at night.")
        earlier.record(says("Good."))

    found = [run_json(cli, "search", words)["memories"][0] for words in ("zebra sleeps noon", "walrus swims night")]

    assert found[0]["text"] != found[1]["text"]
    assert (found[0]["id"], found[0]["source"]) == (found[1]["id"], found[1]["source"])


def test_context_shows_memories_with_source_and_reason(cli: Cli, note: Path, work: Path) -> None:
    with open_nexus(work) as nexus:
        nexus.session("main", model="gpt-4o").ask(QUESTION)

    shown = cli("context", "--session", "main").out
    as_json = json.loads(cli("context", "--session", "main", "--json").out)

    assert "Recalled note: auth" in shown
    assert f"{note}:1-1" in shown
    assert "matches auth, middleware" in shown
    assert [each["source"] for each in as_json["memories"]] == [str(note)]
    assert as_json["kinds"]["memory"] > 10


@pytest.mark.usefixtures("note")
def test_explain_names_the_step_and_the_session_of_a_rule(cli: Cli, work: Path) -> None:
    state_rule(work)

    [found] = json.loads(cli("explain", "run the LINTER before", "--json").out)["explanations"]

    assert found["subject"] == RULE
    assert found["place"].startswith("step:")
    assert found["remark"] == "a rule from session earlier: recalled when it matches a message"


@pytest.mark.parametrize(("query", "is_found"), [("the linter", True), ("inter", False), ("**linter** before", True)])
def test_explain_finds_a_rule_by_whole_words(cli: Cli, note: Path, work: Path, *, query: str, is_found: bool) -> None:
    state_rule(work)

    found = json.loads(cli("explain", query, "--json").out)["explanations"]

    assert note.exists()
    assert any(each["subject"] == RULE for each in found) == is_found


def test_explain_says_that_the_list_of_forgotten_memories_is_damaged(cli: Cli, note: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/forgotten.json": "{"})

    outcome = cli("explain", str(note))

    assert outcome.err.count("no memory is explained: the list of forgotten memories cannot be read") == 1


def test_explain_names_the_file_and_the_reason_of_a_memory(cli: Cli, note: Path, work: Path) -> None:
    with open_nexus(work) as nexus:
        nexus.session("main", model="gpt-4o").ask(QUESTION)

    shown = cli("explain", "caches tokens for five minutes", "--session", "main").out

    assert f"{note}:1-1" in shown
    assert "matches auth, middleware" in shown


def ask_about_note(work: Path) -> None:
    with open_nexus(work) as nexus:
        session = nexus.session("later", model="gpt-4o")
        session.ask(QUESTION)
        session.record(says("In server/auth.py."))


def test_session_show_names_the_memories_sent_with_a_message(cli: Cli, note: Path, work: Path) -> None:
    ask_about_note(work)

    short, full = cli("session", "show", "later").out, cli("session", "show", "later", "--full").out

    line = "  1 memory was sent with it: Recalled note: auth (nexus memory why --session later)"
    assert line in short.splitlines()
    assert short.index(QUESTION) < short.index(line) < short.index("In server/auth.py.")
    assert NOTE not in short
    assert f"    {NOTE}" in full.splitlines()
    assert note.exists()


def test_session_show_does_not_print_forgotten_memories(cli: Cli, note: Path, work: Path) -> None:
    ask_about_note(work)
    run_json(cli, "forget", str(note), "--yes")

    out = cli("session", "show", "later", "--full").out

    assert "  1 memory that was sent with it: left out of later calls" in out.splitlines()
    assert NOTE not in out
    assert not note.exists()


def test_search_says_which_memories_would_be_sent(cli: Cli, note: Path, work: Path) -> None:
    words = "Where is the auth middleware, and which port has the billing service?"
    with open_nexus(work) as nexus:
        nexus.session("unanswered", model="gpt-4o").ask("Which port has the billing service?")
        answered = nexus.session("answered", model="gpt-4o")
        answered.ask("Which port does the billing service have?")
        answered.record(says("The billing service listens on port 5433."))

    outcome = cli("memory", "search", words)
    found = run_json(cli, "search", words)["memories"]
    with open_nexus(work) as nexus:
        context = nexus.session("new", model="gpt-4o").preview(words)

    sent = {each.name.removeprefix("memory-") for each in context.placements if each.kind == "memory"}
    assert {each["id"] for each in found if each["would_be_sent"]} == sent != set()
    assert len(found) > len(sent)
    assert f"SENT: {len(sent)} of {len(found)} would be sent with such a message." in outcome.err
    marked = [row for row in outcome.out.splitlines() if re.search("  yes  ", row)]
    assert [row.split()[0] for row in marked] == [each["id"] for each in found if each["would_be_sent"]]
    assert note.exists()


def test_search_marks_no_row_and_says_why_if_memory_is_off(cli: Cli, note: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}"})

    outcome = cli("memory", "search", QUESTION)

    assert "SENT" not in outcome.out
    assert "Memory is off" in outcome.err
    assert [each["would_be_sent"] for each in run_json(cli, "search", QUESTION)["memories"]] == [False]
    assert note.exists()


def test_search_prints_whole_texts_into_a_pipe(cli: Cli, note: Path) -> None:
    assert cli("memory", "search", QUESTION).out.splitlines()[-1].endswith(NOTE)
    assert note.exists()
