"""`nexus session compact`, `undo`, `expand` and `pin`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep, Step
from tests.cli.session.conftest import Talk
from tests.conftest import Cli, InstallPlugin
from tests.session.support import compaction_of

pytestmark = pytest.mark.usefixtures("no_session_start")

QUESTIONS = [f"Question {number} about src/part{number}.py: {'why is that so? ' * 30}" for number in range(6)]


def steps_of(nexus: Nexus, label: str) -> list[Step]:
    record = nexus.ledger.session(label)
    assert record is not None
    return nexus.ledger.thread(str(record.tip))


def compacted(cli: Cli, talk: Talk, nexus: Nexus) -> str:
    """A session whose first three turns are summarized; its compaction."""
    talk("main", *QUESTIONS)
    assert cli("session", "compact", "main").code == 0
    return steps_of(nexus, "main")[-1].id


# ---- compact --------------------------------------------------------------------------------------------------------


def test_what_was_done_is_shown(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)

    outcome = cli("session", "compact", "main", "--focus", "part2")

    step = steps_of(nexus, "main")[-1]
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["session", "main"]
    assert lines[1].split() == ["summarized", "3", "turns,", "6", "messages"]
    assert lines[2].endswith(f"everything from step {compaction_of(step).first_kept} on")
    assert f"{compaction_of(step).tokens_before:,} -> {compaction_of(step).tokens_after:,} of " in lines[3]
    assert lines[4].split() == ["summarizer", "extractive"]
    assert lines[5].split() == ["step", step.id]
    assert lines[7].split() == ["FACTS", "RETAINED", "RECOVERABLE", "LOST"]
    assert lines[8].split()[0] == "paths"
    assert compaction_of(step).focus == "part2"


def test_a_trial_writes_nothing(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")

    outcome = cli("session", "compact", "main", "--dry-run")

    assert outcome.code == 0
    assert "to summarize" in outcome.out
    assert " -> at most " in outcome.out
    assert "summarizer" not in outcome.out
    assert steps_of(nexus, "main") == before


def test_all_of_it_is_there_as_json(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)

    trial = json.loads(cli("session", "compact", "main", "--dry-run", "--json").out)
    done = json.loads(cli("session", "compact", "main", "--json").out)
    again = json.loads(cli("session", "compact", "main", "--json").out)

    assert (trial["schema"], trial["session"], trial["compaction"]["step"]) == (1, "main", None)
    report = done["compaction"]
    assert report["step"] == steps_of(nexus, "main")[-1].id
    assert report["first_kept"] == trial["compaction"]["first_kept"]
    assert report["summary"]
    assert set(report["fidelity"]["path"]) == {"retained", "recoverable", "lost"}
    assert again["compaction"] is None


def test_where_there_is_nothing_to_summarise_it_says_so(cli: Cli, talk: Talk) -> None:
    talk("main", "one", "two")

    outcome = cli("session", "compact", "main")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == (
        "There is nothing to summarize in main. The newest turns stay as they are "
        "(compaction.keep_turns, 3 by default).\n"
    )


def test_dry_run_prints_why_there_is_nothing_to_summarize(cli: Cli, talk: Talk) -> None:
    talk("main", "one", "two")

    outcome = cli("session", "compact", "main", "--dry-run")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == (
        "Would not compact main: there is nothing to summarize; the newest turns stay as they are (3 at least); "
        "set compaction.keep_turns to keep fewer.\n"
    )


def test_dry_run_prints_that_too_little_would_be_summarized(cli: Cli, talk: Talk) -> None:
    talk("main", "one", "two", "three", "four")

    outcome = cli("session", "compact", "main", "--dry-run")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("Would not compact main: only ")
    assert "and fewer than 100 are not worth it" in outcome.err


def test_dry_run_gives_its_reason_as_json(cli: Cli, talk: Talk) -> None:
    talk("main", "one", "two")

    found = json.loads(cli("session", "compact", "main", "--dry-run", "--json").out)

    assert (found["compaction"], found["reason"]["code"]) == (None, "nothing-to-summarize")
    assert set(found["reason"]) == {"code", "message", "hint"}
    assert found["automatic"]["code"] == "below-trigger"


def test_dry_run_prints_why_the_next_call_does_not_compact(cli: Cli, talk: Talk, nexus_home: Path) -> None:
    talk("main", *QUESTIONS)
    below = cli("session", "compact", "main", "--dry-run").out.splitlines()[-1]
    write_files(nexus_home, {"config.json": json.dumps({"compaction": {"enabled": False}})})
    disabled = cli("session", "compact", "main", "--dry-run").out.splitlines()[-1]
    write_files(nexus_home, {"config.json": json.dumps({"compaction": {"trigger_tokens": 500}})})
    due = cli("session", "compact", "main", "--dry-run").out.splitlines()[-1]

    assert below.startswith("automatic     no: the next call has ")
    assert disabled.startswith("automatic     no: compaction.enabled is false; ")
    assert due == "automatic     before the next call"


def test_dry_run_of_an_archived_session_is_an_error(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    nexus.ledger.update("main", status="archived")

    outcome = cli("session", "compact", "main", "--dry-run")

    assert (outcome.code, outcome.out) == (cli("session", "compact", "main").code, "")
    assert outcome.err.startswith("Error: session 'main' is archived")
    assert "nexus session unarchive main" in outcome.err


def test_a_summarizer_that_fails_is_an_error_of_its_own(cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path) -> None:
    talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")
    settings = {"compaction": {"summarizers": ["command"], "command": ["false"]}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})

    outcome = cli("session", "compact", "main")

    assert outcome.code == 5
    assert outcome.err.startswith("Error: the conversation could not be summarized: command ")
    assert "extractive" in outcome.err
    assert steps_of(nexus, "main") == before


def test_who_failed_before_is_named(cli: Cli, talk: Talk, nexus_home: Path) -> None:
    talk("main", *QUESTIONS)
    settings = {"compaction": {"summarizers": ["command", "extractive"], "command": ["false"]}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})

    outcome = cli("session", "compact", "main")

    assert outcome.code == 0
    assert outcome.err.startswith("Warning: command ")
    assert "extractive" in outcome.out


def test_a_session_is_compacted_in_the_directory_it_works_in(
    cli: Cli, talk: Talk, nexus: Nexus, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(work, {"NEXUS.md": "Be brief.\n"})
    talk("main", *QUESTIONS)
    write_files(work, {"NEXUS.md": "Be verbose.\n"})
    elsewhere = work.parent / "elsewhere"
    write_files(elsewhere, {"NEXUS.md": "Be wrong.\n"})
    monkeypatch.chdir(elsewhere)

    assert cli("session", "compact", "main").code == 0

    prompt = nexus.session("main").ask("And?").system_prompt
    assert "Be verbose." in prompt
    assert "Be wrong." not in prompt


PLANNER = """
from nexus_core import hookimpl
from nexus_core.plugin import CompactionPlan

@hookimpl
def nexus_compaction_plan(thread):
    return CompactionPlan(first_kept=thread.turns[-1].first)
"""


@pytest.mark.acceptance("A-01")
def test_an_installed_plugin_decides_what_stays(cli: Cli, talk: Talk, install_plugin: InstallPlugin) -> None:
    talk("main", *QUESTIONS)
    bundled = json.loads(cli("session", "compact", "main", "--dry-run", "--json").out)["compaction"]
    install_plugin("brief", PLANNER)

    installed = json.loads(cli("session", "compact", "main", "--json").out)["compaction"]

    assert (bundled["planner"], bundled["turns"]) == ("compaction", 3)
    assert (installed["planner"], installed["turns"]) == ("brief", 5)


def test_a_plan_that_cannot_be_had_is_the_fault_of_its_plugin(
    cli: Cli, talk: Talk, nexus: Nexus, install_plugin: InstallPlugin
) -> None:
    talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")
    install_plugin("brief", PLANNER.replace("thread.turns[-1].first", "'nowhere'"))

    outcome = cli("session", "compact", "main")

    assert outcome.code == 3
    assert "plugin brief, nexus_compaction_plan: " in outcome.err
    assert "begins with step nowhere" in outcome.err
    assert steps_of(nexus, "main") == before


def test_without_a_plugin_that_says_what_stays_nothing_is_summarised(
    cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk("main", *QUESTIONS)
    monkeypatch.setenv("NEXUS_PLUGINS", "-compaction")

    assert cli("session", "compact", "main").err.startswith("There is nothing to summarize in main. ")


# ---- undo and expand ------------------------------------------------------------------------------------------------


def test_a_compaction_is_taken_back(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)
    trial = cli("session", "compact", "--undo", "main", "--dry-run", "--json")

    outcome = cli("session", "compact", "--undo", "main", "--json")

    assert trial.err == f"Would take back compaction {compaction} of main: everything is there in full.\n"
    assert json.loads(trial.out)["reverted"] == {"step": None, "compaction": compaction, "restored": None}
    assert outcome.err == f"Took back compaction {compaction} of main: everything is there in full.\n"
    assert json.loads(outcome.out)["reverted"]["step"] == steps_of(nexus, "main")[-1].id
    assert nexus.session("main").messages[0].content.endswith(QUESTIONS[0])
    assert cli("session", "compact", "--undo", "main").code == 0


def test_a_compaction_is_expanded(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)

    outcome = cli("session", "show", "--compacted", compaction)
    steps = json.loads(cli("session", "show", "--compacted", compaction, "--json").out)["steps"]

    assert outcome.code == 0
    assert [line.strip()[:10] for line in outcome.out.splitlines() if "about src/" in line] == [
        item for number in range(3) for item in (f"Question {number}", "re Questio")
    ]
    assert [step["id"] for step in steps] == [step.id for step in steps_of(nexus, "main")[:9]]
    unknown = cli("session", "show", "--compacted", "nowhere")
    assert unknown.code == 2
    assert "there is no step 'nowhere'" in unknown.err


def test_the_latest_compaction_of_a_session_is_expanded_by_its_label(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)

    document = json.loads(cli("session", "show", "--compacted", "main", "--json").out)

    assert (document["compaction"], len(document["steps"])) == (compaction, 9)
    cli("session", "compact", "--undo", "main")
    nothing, told = (
        cli("session", "show", "--compacted", "main"),
        cli("session", "show", "--compacted", "main", "--json"),
    )
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "Nothing is compacted in main: there is nothing to show.\n"
    assert (told.code, json.loads(told.out)) == (0, {"schema": 1, "compaction": None, "steps": []})


def test_a_compaction_that_replaced_no_steps_says_so(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")
    first, *_, tip = steps_of(nexus, "main")
    data = {"summary": "Nothing yet.", "first_kept": first.id}
    compaction = nexus.ledger.append("main", NewStep(kind="compaction", closes=True, data=data), after=tip.id)

    outcome, told = (cli("session", "show", "main", "--compacted", *options) for options in ([], ["--json"]))

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"Compaction {compaction.id} replaced no steps: there is nothing to show.\n"
    assert json.loads(told.out) == {"schema": 1, "compaction": compaction.id, "steps": []}


def test_undo_with_nothing_compacted_says_so_and_writes_nothing(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "Why?")
    nexus.ledger.create("empty")
    before = steps_of(nexus, "main")

    for label in ("main", "empty"):
        for options in ((), ("--dry-run",), ("--json",)):
            outcome = cli("session", "compact", "--undo", label, *options)

            assert (outcome.code, outcome.err) == (
                0,
                f"Nothing is compacted in {label}: there is nothing to undo.\n",
            )
            told = {"schema": 1, "session": label, "reverted": None}
            assert (json.loads(outcome.out) if outcome.out else None) == (told if options == ("--json",) else None)
    assert steps_of(nexus, "main") == before


def test_focus_with_undo_is_refused(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compacted(cli, talk, nexus)
    before = steps_of(nexus, "main")

    outcome = cli("session", "compact", "main", "--undo", "--focus", "tests")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "Error: --focus changes nothing with --undo\n  leave out --focus, or --undo\n"
    assert steps_of(nexus, "main") == before


@pytest.mark.parametrize(
    ("option", "named"), [(("--step", "4N6M1R"), "--step"), (("--limit", "1"), "--limit")], ids=["step", "limit"]
)
def test_compacted_beside_another_selection_is_refused(cli: Cli, option: tuple[str, str], named: str) -> None:
    outcome = cli("session", "show", "main", "--compacted", *option)

    assert (outcome.code, outcome.out) == (2, "")
    assert f"{named} and --compacted select different things" in outcome.err


# ---- pin ------------------------------------------------------------------------------------------------------------


def test_a_step_is_pinned_and_let_go_of(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    first = steps_of(nexus, "main")[0].id

    trial = cli("session", "pin", "main", first, "--dry-run", "--json")
    pinned = cli("session", "pin", "main", first, "--json")
    again = cli("session", "pin", "main", first)

    assert (trial.err, json.loads(trial.out)["pins"]) == (f"Would pin step {first} of main.\n", [])
    assert (pinned.err, json.loads(pinned.out)["pins"]) == (f"Pinned step {first} of main.\n", [first])
    assert again.err == f"Step {first} of main is pinned already.\n"
    assert cli("session", "pin", "main").out == f"{first}\n"
    assert "pinned" in cli("session", "compact", "main", "--dry-run").out
    assert cli("session", "compact", "main").code == 0
    assert nexus.session("main").messages[1].content.endswith(QUESTIONS[0])
    gone = cli("session", "unpin", "main", first)
    assert gone.err == f"Unpinned step {first} of main.\n"
    none = cli("session", "pin", "main")
    assert (none.out, none.err) == ("", "Nothing is pinned in main.\n")


def test_what_was_asked_in_a_turn_that_is_pinned_is_explained_as_sent(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    asked, sealed, answered, other, *_ = steps_of(nexus, "main")
    cli("session", "pin", "main", asked.id)
    cli("session", "compact", "main")
    compaction = steps_of(nexus, "main")[-1].id

    assert f"sent, as step {sealed.id} has it" in cli("explain", "--session", "main", asked.id).out
    assert cli("explain", "--session", "main", sealed.id).out.endswith("  sent\n")
    for step in (answered, other):
        out = cli("explain", "--session", "main", step.id).out
        assert f"not sent: compaction {compaction} stands for it" in out


def test_a_step_that_is_not_there_cannot_be_pinned(cli: Cli, talk: Talk) -> None:
    talk("main", "one")

    outcome = cli("session", "pin", "main", "nowhere")

    assert outcome.code == 2
    assert "there is no step 'nowhere' in session 'main'" in outcome.err


# ---- by a part of the name ------------------------------------------------------------------------------------------


def test_a_step_is_known_by_the_characters_that_a_summary_shows(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)
    steps = steps_of(nexus, "main")
    short, kept = compaction[-6:], steps[-2].id
    assert f"[{steps[1].id[-6:]}]" in str(compaction_of(steps[-1]).summary)

    expanded = json.loads(cli("session", "show", "--compacted", short, "--json").out)
    shown = json.loads(cli("session", "show", "main", "--step", steps[1].id[-6:], "--json").out)
    pinned = cli("session", "pin", "main", kept[-6:])

    assert expanded["compaction"] == compaction
    assert len(expanded["steps"]) == 9
    assert shown["step"]["id"] == steps[1].id
    assert pinned.err == f"Pinned step {kept} of main.\n"
    assert cli("session", "pin", "main").out == f"{kept}\n"
    assert cli("session", "unpin", "main", kept[-6:]).err == f"Unpinned step {kept} of main.\n"
    assert cli("session", "replay", kept[-6:]).out == cli("session", "replay", kept).out
    assert cli("diff", kept[-6:], kept).code == 0
    assert f"step {kept}" in cli("explain", "--session", "main", kept[-6:]).out
    assert cli("session", "fork", "main", "other", "--at", kept[-6:]).code == 0


def test_where_several_steps_could_be_meant_they_are_listed(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compacted(cli, talk, nexus)
    steps = steps_of(nexus, "main")
    same = steps[0].id[:5]
    assert all(step.id.startswith(same) for step in steps)

    for outcome in (cli("session", "show", "main", "--step", same), cli("session", "show", "--compacted", same)):
        assert outcome.code == 2
        assert f"{len(steps)} steps could be meant by '{same}': {steps[0].id}, {steps[1].id}" in outcome.err
        assert outcome.err.count(same) == 9
        assert "give more of the name" in outcome.err


@pytest.mark.parametrize("name", ["", "ABC", "nowhere", "ZZZZZZ", "é" * 6, "_%_%_%", "0" * 26, "0" * 300])
def test_a_part_of_no_name_names_nothing(cli: Cli, talk: Talk, name: str) -> None:
    talk("main", "one")

    outcome = cli("session", "show", "--compacted", name)

    assert outcome.code == 2
    assert "there is no step " in outcome.err


def test_a_step_of_another_session_is_not_meant(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")
    talk("other", "two")
    elsewhere = steps_of(nexus, "other")[0].id

    assert cli("session", "show", "main", "--step", elsewhere[-6:]).code == 2
    assert cli("session", "pin", "main", elsewhere[-6:]).code == 2


# ---- elsewhere ------------------------------------------------------------------------------------------------------


def test_compactions_and_pins_are_shown_with_what_they_did(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    cli("session", "pin", "main", steps_of(nexus, "main")[0].id)
    cli("session", "compact", "main")
    cli("session", "compact", "--undo", "main")

    shown = cli("session", "show", "main").out
    tree = cli("session", "tree", "main").out

    assert "pinned from now on: " in shown
    assert " tokens · by extractive" in shown
    assert [line[0] for line in tree.splitlines()[-3:]] == ["^", "#", "~"]
    assert cli("ledger", "verify").code == 0


def test_the_request_before_and_the_one_after_can_be_compared(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")[-1].id
    cli("session", "compact", "main")
    compaction = steps_of(nexus, "main")[-1].id
    session.ask("And?")
    after = steps_of(nexus, "main")[-1].id

    outcome = cli("diff", before, after)

    assert outcome.code == 0
    assert f"step:{compaction}" in outcome.out
    assert "gone" in outcome.out
