"""Verification, repair and copies of a ledger."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.types.ledger import Step
from tests.cli.conftest import Watch
from tests.cli.session.conftest import Talk
from tests.conftest import Cli, InstallPlugin

pytestmark = pytest.mark.usefixtures("no_session_start")

Steps = list[Step]


@pytest.fixture
def steps(talk: Talk, nexus: Nexus) -> Steps:
    """Those of a session whose program has ended."""
    talk("main", "one", "two", "three")
    found = list(nexus.ledger.steps())
    nexus.close()
    return found


@pytest.fixture
def path(nexus_home: Path) -> Path:
    return nexus_home / "ledger.db"


def tamper(path: Path, statement: str, *bound: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"drop trigger {name}")
        connection.execute(statement, bound)
        for _, text in triggers:
            connection.execute(text)
        connection.commit()


def overwrite_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:100] = b"x" * 100
    path.write_bytes(content)


# ---- verify ---------------------------------------------------------------------------------------------------------


def test_a_sound_ledger_is_said_to_be_sound_with_what_was_looked_at(cli: Cli, steps: Steps, path: Path) -> None:
    outcome = cli("ledger", "verify")

    assert (outcome.code, outcome.out) == (0, "")
    what = f"Looked at {len(steps)} steps and 1 session in sqlite:///{path}: everything is as it was recorded.\n"
    assert outcome.err == what


def test_a_step_that_was_changed_is_named(cli: Cli, steps: Steps, path: Path) -> None:
    tamper(path, "update steps set tokens = 99 where id = ?", steps[2].id)

    outcome = cli("ledger", "verify")
    document = json.loads(cli("ledger", "verify", "--json").out)

    assert outcome.code == 1
    assert f"step {steps[2].id} of turn {steps[2].turn}" in outcome.out
    assert outcome.out.splitlines()[0].endswith("its content is not what was recorded [step-changed]")
    assert (document["schema"], document["steps"], document["sessions"]) == (1, len(steps), 1)
    assert f"Looked at {len(steps)} steps and 1 session in " in outcome.err
    assert document["findings"][0]["code"] == "step-changed"
    assert document["findings"][0]["step"] == steps[2].id


def test_a_step_that_was_deleted_is_named(cli: Cli, steps: Steps, path: Path) -> None:
    tamper(path, "delete from steps where id = ?", steps[2].id)

    findings = json.loads(cli("ledger", "verify", "--json").out)["findings"]

    assert any(each["code"] == "step-missing" and each["step"] for each in findings)
    assert steps[2].id in str(findings)


def test_verify_of_one_session_tells_only_what_concerns_it(
    cli: Cli, steps: Steps, path: Path, nexus_home: Path
) -> None:
    with Nexus(path.parent.parent, home=nexus_home) as nexus:
        other = nexus.session("other", model="gpt-4o")
        other.ask("Why?")
        record = nexus.ledger.session("other")
        assert record is not None
    tamper(path, "update steps set tokens = 99 where id = ?", steps[2].id)

    main = cli("ledger", "verify", "main")
    sound = cli("ledger", "verify", "oth")
    document = json.loads(cli("ledger", "verify", "main", "--json").out)

    assert main.code == 1
    assert f"step {steps[2].id} of turn" in main.out
    assert (document["session"], document["sessions"], document["steps"]) == ("main", 1, len(steps))
    assert (sound.code, sound.out) == (0, "")
    assert sound.err.startswith("session other: Looked at 2 steps and 1 session in ")
    assert cli("ledger", "verify", "nobody").code == 2


def test_verify_of_a_session_whose_record_was_changed_says_so(cli: Cli, steps: Steps, path: Path) -> None:  # noqa: ARG001 - to be changed
    tamper(path, "update sessions set data = '{}' where label = ?", "main")

    outcome = cli("ledger", "verify", "main")

    assert outcome.code == 1
    assert "session 'main': its record was changed [session-changed]" in outcome.out


def test_a_file_that_cannot_be_opened_is_a_finding(cli: Cli, steps: Steps, path: Path) -> None:  # noqa: ARG001 - to be damaged
    overwrite_header(path)

    outcome = cli("ledger", "verify")

    assert outcome.code == 1
    assert outcome.out.endswith("[ledger-unreadable]\n")
    assert "`nexus ledger repair NEW` saves what is whole." in outcome.err


def test_a_ledger_that_cannot_be_reached_is_no_finding(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_plugins.ledger.postgres.store.RECONNECT_TIMEOUT_SECONDS", 0.0)
    nowhere = ("--ledger", "postgresql://me:secret@127.0.0.1:1/nexus")

    outcome = cli("ledger", "verify", *nowhere)

    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("Error: the ledger cannot be used: ")
    assert "repair" not in outcome.err
    assert cli("session", "list", *nowhere).code == 3


def test_verifying_changes_nothing(cli: Cli, steps: Steps, path: Path) -> None:  # noqa: ARG001 - as above
    before = path.read_bytes()

    cli("ledger", "verify")

    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["config.json", "ledger.db"]


# ---- repair ---------------------------------------------------------------------------------------------------------


def forget_version(path: Path) -> None:
    """Nothing else opens such a file."""
    tamper(path, "pragma user_version = 0")


@pytest.mark.parametrize("damage", [forget_version, lambda _path: None], ids=["no version", "none"])
def test_everything_is_saved_from_a_file_whose_rows_are_whole(
    cli: Cli, steps: Steps, path: Path, work: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    before = path.read_bytes()

    outcome = cli("ledger", "repair", "saved.db")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith(f"Saved 3 turns ({len(steps)} steps), 1 session and ")
    assert outcome.err.endswith(f" in sqlite:///{work}/saved.db.\n")
    assert path.read_bytes() == before
    assert cli("ledger", "verify", "--ledger", "saved.db").code == 0
    assert "re three" in cli("session", "show", "main", "--ledger", "saved.db").out


@pytest.mark.usefixtures("steps")
def test_repair_of_a_file_without_its_header_names_recover(cli: Cli, path: Path, work: Path) -> None:
    overwrite_header(path)
    before = path.read_bytes()

    outcome = cli("ledger", "repair", "saved.db")

    assert (outcome.code, outcome.out) == (3, "")
    assert f"`sqlite3 {path} .recover` may find more" in outcome.err
    assert path.read_bytes() == before
    assert not (work / "saved.db").exists()


def test_a_sound_ledger_is_copied_with_every_step(cli: Cli, steps: Steps, work: Path) -> None:
    tried = cli("ledger", "copy", "copied.db", "--dry-run")
    copied = cli("ledger", "copy", "copied.db")

    assert (tried.code, copied.code) == (0, 0)
    assert copied.err.endswith(f" in sqlite:///{work}/copied.db.\n")
    with Nexus(ledger=f"sqlite:///{work}/copied.db") as nexus:
        assert [step.chain for step in nexus.ledger.thread(steps[-1].id)] == [step.chain for step in steps]


def test_what_is_lost_is_told_and_the_rest_is_saved(cli: Cli, steps: Steps, path: Path) -> None:
    turn = steps[3].turn
    tamper(path, "update steps set tokens = 99 where id = ?", steps[4].id)

    outcome = cli("ledger", "repair", "saved.db", "--json")

    document = json.loads(outcome.out)
    assert outcome.code == 1
    assert [(each["code"], each["step"]) for each in document["lost"]] == [("turn-lost", turn)]
    assert document["saved"]["turns"] == 2
    shown = cli("session", "show", "main", "--ledger", "saved.db").out
    assert ("re one" in shown, "re two" in shown, "re three" in shown) == (True, False, True)


def test_a_repaired_ledger_does_not_count_what_was_lost(cli: Cli, steps: Steps, path: Path) -> None:
    before = json.loads(cli("session", "list", "--json").out)["sessions"][0]
    tamper(path, "update steps set tokens = 99 where id = ?", steps[4].id)
    cli("ledger", "repair", "saved.db")

    (after,) = json.loads(cli("session", "list", "--ledger", "saved.db", "--json").out)["sessions"]

    assert (before["turns"], after["turns"]) == (3, 2)
    assert before["usage"]["input_tokens"] > after["usage"]["input_tokens"] > 0
    assert 3 * after["usage"]["input_tokens"] == 2 * before["usage"]["input_tokens"]
    assert "earlier turn" not in cli("session", "show", "main", "--ledger", "saved.db").out


def test_trying_out_says_the_same_and_writes_nothing(cli: Cli, steps: Steps, path: Path, work: Path) -> None:
    tamper(path, "update steps set tokens = 99 where id = ?", steps[4].id)

    tried = cli("ledger", "repair", "saved.db", "--dry-run")

    assert tried.code == 1
    assert tried.err.startswith("Would save 2 turns (")
    assert list(work.iterdir()) == []
    assert tried.out == cli("ledger", "repair", "saved.db").out


def test_nothing_is_written_over(cli: Cli, steps: Steps, work: Path) -> None:  # noqa: ARG001 - to be repaired
    (work / "notes.txt").write_text("mine")
    cli("ledger", "repair", "saved.db")

    assert "there is something in it already" in cli("ledger", "repair", "saved.db").err
    assert cli("ledger", "repair", "notes.txt").code == 3
    assert (work / "notes.txt").read_text() == "mine"


def test_a_ledger_is_not_repaired_into_itself(cli: Cli, steps: Steps, path: Path) -> None:  # noqa: ARG001 - as above
    assert cli("ledger", "repair", str(path)).code == 3


def test_a_file_in_which_nothing_is_whole_makes_no_new_one(cli: Cli, work: Path) -> None:
    (work / "words.db").write_text("no ledger at all" * 1000)

    outcome = cli("ledger", "repair", "saved.db", "--ledger", "words.db")

    assert outcome.code == 3
    assert "SQLite cannot read the file" in outcome.err
    assert not (work / "saved.db").exists()


SHELF = """
from nexus_core import hookimpl
from tests.cli.session.test_ledger import Shelf

@hookimpl
def nexus_ledger(url):
    return Shelf(url) if url.startswith("shelf:") else None
"""


class Shelf:
    """A ledger of a stranger, which keeps conversations in a way of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._kept = MemoryLedger()

    def __getattr__(self, name: str) -> object:
        if name in ("repair", "store"):
            raise AttributeError(name)
        return getattr(self._kept, name)


def test_a_ledger_that_keeps_no_rows_says_that_it_cannot_be_repaired(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("shelf", SHELF)

    outcome = cli("ledger", "repair", "saved.db", "--ledger", "shelf:x")

    assert outcome.code == 3
    assert "this ledger cannot be repaired from outside" in outcome.err
    assert cli("session", "list", "--ledger", "shelf:x").code == 0


# ---- long work ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["ledger", "verify"], "Verifying"),
        (["ledger", "repair", "saved.db"], "Copying"),
        (["ledger", "copy", "saved.db"], "Copying"),
        (["session", "stats"], "Counting"),
        (["session", "search", "login"], ". Indexing"),
        (["session", "export", "main", "-o", "file"], "Exporting"),
        (["session", "compact", "main"], ". Summarizing"),
    ],
    ids=str,
)
def test_long_work_with_a_ledger_shows_progress_on_a_terminal(
    cli: Cli, steps: Steps, watch: Watch, command: list[str], shown: str
) -> None:
    assert steps
    terminal = watch()

    assert cli(*command).code == 0

    assert re.search(rf"\r\x1b\[2K{shown}.*\r\x1b\[2K", terminal.getvalue())  # drawn, and erased


# ---- leaving out ----------------------------------------------------------------------------------------------------


def test_a_copy_without_a_session_says_what_is_left_out_and_what_is_still_there(
    cli: Cli, talk: Talk, nexus: Nexus, work: Path
) -> None:
    main = talk("main", "one")
    main.spawn("Look into it.", name="helper")
    main.fork("fork")
    talk("fork", "two")
    talk("other", "three")
    nexus.close()

    tried = cli("ledger", "copy", "new.db", "--without", "main", "--dry-run")
    told = json.loads(cli("ledger", "copy", "new.db", "--without", "main", "--json").out)
    clean = cli("ledger", "copy", "clean.db", "--without", "main", "--without", "fork")

    assert tried.code == clean.code == 0
    assert "Left out: helper, main.\n" in tried.err
    assert "Warning: steps that are also part of fork are still there; to get rid of them, add --without" in tried.err
    assert (told["left_out"], told["sharing"], told["lost"]) == (["helper", "main"], ["fork"], [])
    assert "Warning" not in clean.err
    assert [row.split()[0] for row in cli("session", "list", "--ledger", "clean.db").out.splitlines()[1:]] == ["other"]
    assert cli("ledger", "verify", "--ledger", "new.db").code == 0
    assert sorted(path.name for path in work.glob("*.db")) == ["clean.db", "new.db"]


def test_a_session_to_leave_out_that_is_not_there_makes_no_copy(cli: Cli, steps: Steps, work: Path) -> None:
    outcome = cli("ledger", "copy", "new.db", "--without", "mian")

    assert steps
    assert outcome.code == 2
    assert "did you mean 'main'?" in outcome.err
    assert list(work.glob("new.db*")) == []


# ---- blobs that are gone --------------------------------------------------------------------------------------------


@pytest.mark.acceptance("R8")
def test_verify_names_the_prompt_and_settings_that_are_gone(cli: Cli, steps: Steps, path: Path) -> None:
    tamper(path, "delete from blobs")

    whole, one = cli("ledger", "verify"), cli("ledger", "verify", "main")

    assert (whole.code, one.code) == (1, 1)
    for kind in ("system prompt and tools", "sections", "settings"):
        assert f"is gone: the {kind} of session 'main'; step {steps[1].id} and " in whole.out
        assert f"is gone: the {kind} of session 'main'; step " in one.out
    assert whole.out.count("[blob-missing]") == one.out.count("[blob-missing]") == 3


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("command", ["repair", "copy"])
def test_a_copy_lists_the_blobs_that_are_gone(cli: Cli, steps: Steps, path: Path, command: str) -> None:
    tamper(path, "delete from blobs")

    outcome = cli("ledger", command, "new.db")
    document = json.loads(cli("ledger", command, "other.db", "--json").out)

    assert outcome.code == 1
    assert outcome.out.count("[blob-missing]") == 3
    assert f"the system prompt and tools of session 'main'; step {steps[1].id} and " in outcome.out
    assert [each["code"] for each in document["lost"]] == ["blob-missing"] * 3
    assert document["saved"]["steps"] == len(steps)


def test_verify_of_one_session_reads_no_other(cli: Cli, steps: Steps, path: Path, nexus_home: Path) -> None:
    with Nexus(path.parent.parent, home=nexus_home) as nexus:
        nexus.session("other", model="gpt-4o").ask("Why?")

    outcome = cli("ledger", "verify", "other", "--json")

    assert json.loads(outcome.out)["steps"] == 2
    assert len(steps) > 2
