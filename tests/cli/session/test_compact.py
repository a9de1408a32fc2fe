"""`nexus session compact`, `undo`, `expand` and `pin`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.values.ledger import Step
from tests.cli.session.conftest import Talk
from tests.conftest import Cli

QUESTIONS = [f"Question {number} about src/part{number}.py: {'why is that so? ' * 30}" for number in range(6)]


def steps_of(nexus: Nexus, label: str) -> list[Step]:
    record = nexus.ledger.session(label)
    assert record is not None
    return nexus.ledger.thread(str(record.tip))


def compacted(cli: Cli, talk: Talk, nexus: Nexus) -> str:
    """A session whose first three turns are summarised; its compaction."""
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
    assert lines[1].split() == ["summarised", "3", "turns,", "6", "messages"]
    assert lines[2].endswith(f"everything from step {step.data['first_kept']} on")
    assert f"{step.data['tokens_before']:,} -> {step.data['tokens_after']:,} of " in lines[3]
    assert lines[4].split() == ["summariser", "extractive"]
    assert lines[5].split() == ["step", step.id]
    assert lines[7].split() == ["FACTS", "RETAINED", "RECOVERABLE", "LOST"]
    assert lines[8].split()[0] == "paths"
    assert step.data["focus"] == "part2"


def test_a_trial_writes_nothing(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")

    outcome = cli("session", "compact", "main", "--dry-run")

    assert outcome.code == 0
    assert "to summarise" in outcome.out
    assert " -> at most " in outcome.out
    assert "summariser" not in outcome.out
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

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "There is nothing to summarise in main.\n")


def test_a_summariser_that_fails_is_an_error_of_its_own(cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path) -> None:
    talk("main", *QUESTIONS)
    before = steps_of(nexus, "main")
    settings = {"compaction": {"summarisers": ["command"], "command": ["false"]}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})

    outcome = cli("session", "compact", "main")

    assert outcome.code == 5
    assert outcome.err.startswith("Error: the conversation could not be summarised: command ")
    assert "extractive" in outcome.err
    assert steps_of(nexus, "main") == before


def test_who_failed_before_is_named(cli: Cli, talk: Talk, nexus_home: Path) -> None:
    talk("main", *QUESTIONS)
    settings = {"compaction": {"summarisers": ["command", "extractive"], "command": ["false"]}}
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


# ---- undo and expand ------------------------------------------------------------------------------------------------


def test_a_compaction_is_taken_back(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)
    trial = cli("session", "undo", "main", "--dry-run", "--json")

    outcome = cli("session", "undo", "main", "--json")

    assert trial.err == f"Would take back compaction {compaction} of main: everything is there in full.\n"
    assert json.loads(trial.out)["reverted"] == {"step": None, "compaction": compaction, "restored": None}
    assert outcome.err == f"Took back compaction {compaction} of main: everything is there in full.\n"
    assert json.loads(outcome.out)["reverted"]["step"] == steps_of(nexus, "main")[-1].id
    assert nexus.session("main").messages[0].content.endswith(QUESTIONS[0])
    assert cli("session", "undo", "main").code == 3


def test_a_compaction_is_expanded(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    compaction = compacted(cli, talk, nexus)

    outcome = cli("session", "expand", compaction)
    steps = json.loads(cli("session", "expand", compaction, "--json").out)["steps"]

    assert outcome.code == 0
    assert [line.strip()[:10] for line in outcome.out.splitlines() if "about src/" in line] == [
        item for number in range(3) for item in (f"Question {number}", "re Questio")
    ]
    assert [step["id"] for step in steps] == [step.id for step in steps_of(nexus, "main")[:9]]
    unknown = cli("session", "expand", "nowhere")
    assert unknown.code == 2
    assert "there is no step 'nowhere'" in unknown.err


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
    gone = cli("session", "pin", "main", first, "--remove")
    assert gone.err == f"Let go of step {first} of main.\n"
    assert cli("session", "pin", "main").out == ""


def test_a_step_that_is_not_there_cannot_be_pinned(cli: Cli, talk: Talk) -> None:
    talk("main", "one")

    outcome = cli("session", "pin", "main", "nowhere")

    assert outcome.code == 2
    assert "there is no step 'nowhere' in session 'main'" in outcome.err


# ---- elsewhere ------------------------------------------------------------------------------------------------------


def test_compactions_and_pins_are_shown_with_what_they_did(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", *QUESTIONS)
    cli("session", "pin", "main", steps_of(nexus, "main")[0].id)
    cli("session", "compact", "main")
    cli("session", "undo", "main")

    shown = cli("session", "show", "main").out
    tree = cli("session", "tree", "main").out

    assert "pinned from now on: " in shown
    assert " tokens · by extractive" in shown
    assert [line[0] for line in tree.splitlines()[-3:]] == ["^", "#", "~"]
    assert cli("session", "verify").code == 0


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
