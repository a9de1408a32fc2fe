"""A command that is killed at any call to the system leaves what was there before, or all that it was to leave."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from nexus_core.testing import write_files
from nexus_plugins.ledger.sqlite import open_sqlite, schema
from tests.conftest import ROOT, Cli
from tests.ledger.backends import figure, tell
from tests.ledger.experiments import LATER
from tests.ledger.killing import Killer
from tests.tables import count

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("meddler")]

LINES = 12
CHAT = [
    {"role": role, "content": f"{role} {number}: " + "the flour is in the cellar, and Anna counts the bags. " * 60}
    for number in range(LINES)
    for role in ("user", "assistant")
]
SERVER = {"servers": {"files": {"command": "files-server", "args": ["--all"]}}}


class Deed(NamedTuple):
    """Something that changes files.

    Attributes:
        command: What does it.
        before: Commands that have to be given before.
        look: What somebody sees of it, by other commands; each of them succeeds.
        again: The exit codes with which the command may end where it was killed before.
    """

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...]
    look: Callable[[Cli], object]
    again: tuple[int, ...] = (0,)


def told(cli: Cli, *arguments: str) -> dict[str, object]:
    outcome = cli(*arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    document: dict[str, object] = json.loads(outcome.out)
    return document


def sessions(cli: Cli) -> object:
    """How much is kept; all of it is as it was recorded, and whoever lists it hears of nothing else."""
    found = told(cli, "ledger", "verify")
    return found["steps"], found["sessions"], len(list(told(cli, "session", "list")["sessions"]))  # type: ignore[call-overload]


def decisions(cli: Cli) -> object:
    """What is allowed; nothing is said to be wrong with the approvals."""
    outcome = cli("doctor", "--json")
    assert outcome.err in {"No problems found.\n", "1 finding\n"}
    return [each["code"] for each in json.loads(outcome.out)["findings"]]


def model(cli: Cli) -> object:
    """The model that is asked."""
    return cli("config", "get", "provider.model").out


DEEDS = {
    "import": Deed(("session", "import", "chat.json"), (), sessions),
    "compaction": Deed(("session", "compact", "chat"), (("session", "import", "chat.json"),), sessions),
    "deletion": Deed(
        ("session", "delete", "chat", "--yes"),
        (("session", "import", "chat.json"), ("session", "fork", "chat", "other")),
        lambda cli: (sessions(cli), told(cli, "ledger", "verify")["deletions"]),
        (0, 2),
    ),
    "approval": Deed(("trust", "allow", "--all", "--yes"), (), decisions),
    "setting": Deed(
        ("config", "set", "--global", "provider.model", "new"),
        (("config", "set", "--global", "provider.model", "old"),),
        model,
    ),
}


@pytest.mark.acceptance("R2", "T24")
@pytest.mark.parametrize("name", DEEDS)
def test_a_command_that_is_killed_at_any_call_has_happened_or_has_not(
    cli: Cli, tmp_path: Path, nexus_home: Path, work: Path, name: str
) -> None:
    deed = DEEDS[name]
    write_files(work, {"chat.json": json.dumps({"messages": CHAT}), ".nexus3/mcp.json": json.dumps(SERVER)})
    for command in deed.before:
        assert cli(*command).code == 0
    pristine = shutil.copytree(nexus_home, tmp_path / "pristine")
    killer = Killer(("nexus_core", *deed.command), work)
    old = deed.look(cli)
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
    calls = killer.some_calls(tmp_path / "calls")
    new = deed.look(cli)
    outcomes = {"old": 0, "new": 0}

    for call in calls:
        shutil.rmtree(nexus_home)
        shutil.copytree(pristine, nexus_home)
        shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
        if not killer.kill_at(*call):
            continue
        seen = deed.look(cli)
        assert seen in (old, new), call
        outcomes["old" if seen == old else "new"] += 1
        assert cli(*deed.command).code in deed.again, call
        assert deed.look(cli) == new, call

    count(sum(outcomes.values()))
    figure(f"{sum(outcomes.values())} kills during a {name}: {outcomes['old']} old, {outcomes['new']} new, 0 between")
    assert old != new
    assert min(outcomes.values()) > 0
    assert sum(outcomes.values()) > len(calls) * 0.9


@pytest.mark.acceptance("R2")
def test_a_migration_that_is_killed_anywhere_leaves_the_old_or_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pristine, path = tmp_path / "pristine.db", tmp_path / "home" / "ledger.db"
    with closing(open_sqlite(f"sqlite:///{pristine}")) as ledger:
        ledger.create("work")
        tell(ledger, "work", *map(str, range(5)))
    known = schema.SCHEMA_VERSION
    monkeypatch.setattr(schema, "SCHEMA_VERSION", known + 1)
    monkeypatch.setitem(schema.MIGRATIONS, known, LATER)
    killer = Killer(("tests.ledger.disks", "migration", f"sqlite:///{path}", "0"), ROOT)

    def begin() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        shutil.copy(pristine, path)

    begin()
    calls = killer.some_calls(tmp_path / "calls")
    kills = 0
    for call in calls:
        begin()
        kills += killer.kill_at(*call)
        with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
            ledger.create("next")
            assert (len(list(ledger.steps())), list(ledger.verify())) == (5, []), call
        copy = shutil.copy(
            path.with_name(f"ledger.db.v{known}"), tmp_path / "copy.db"
        )  # to open it would make it new as well
        with closing(open_sqlite(f"sqlite:///{copy}")) as ledger:
            assert (len(list(ledger.steps())), list(ledger.verify())) == (5, []), call

    count(kills)
    figure(f"{kills} kills during a migration: 0 files that are neither old nor new")
    assert kills > len(calls) * 0.9
