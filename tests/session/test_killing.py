"""A program in the middle of a tool loop is killed, again and again; nothing is lost and nothing is done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.types.messages import Message
from tests.conftest import ROOT
from tests.ledger.backends import figure
from tests.session.program import main
from tests.tables import count

ROUNDS = 30
MOST_STARTS = 40

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger that several processes can open."""
    kept: str = (
        request.getfixturevalue("database") if request.param == "postgres" else f"sqlite:///{tmp_path}/ledger.db"
    )
    return kept


@pytest.mark.acceptance("R1")
def test_a_loop_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, nexus_home: Path, url: str
) -> None:
    assert nexus_home.is_dir()
    work = tmp_path / "work"
    work.mkdir()
    whole = f"sqlite:///{tmp_path / 'whole'}.db"
    main(str(work), whole, ROUNDS)
    chance = random.Random(7)  # noqa: S311 - the same moments in every run

    acknowledged: list[str] = []
    kills = 0
    for _ in range(MOST_STARTS):
        told, was_killed = run_and_kill(work, url, chance)
        acknowledged += told
        kills += was_killed
        if not was_killed:
            break

    with Nexus(work, ledger=url, layers=False) as nexus, Nexus(work, ledger=whole, layers=False) as other:
        steps = nexus.ledger.thread(str(nexus.ledger.session("s").tip))  # type: ignore[union-attr]
        missing = set(acknowledged) - {step.id for step in steps}
        spoken = nexus.session("s").messages
        twice = sum(times - 1 for times in (calls_in(spoken) + results_in(spoken)).values())
        count(kills)
        figure(f"{kills} kills, {len(acknowledged)} acknowledged steps, {len(missing)} missing, {twice} calls twice")
        assert kills >= 3
        assert not missing
        assert twice == 0
        assert spoken[0].content.startswith("[Session started: ")  # once, however often it was killed
        assert spoken[1].content.endswith("Why?")  # and, before it, when that was
        assert spoken[2:] == other.session("s").messages[2:]
        assert nexus.session("s").usage == other.session("s").usage
        assert list(nexus.ledger.verify()) == []


def calls_in(messages: Iterable[Message]) -> Counter[str]:
    return Counter(f"call {call.id}" for message in messages for call in message.tool_calls)


def results_in(messages: Iterable[Message]) -> Counter[str]:
    return Counter(f"result {result.call_id}" for message in messages for result in message.tool_results)


def run_and_kill(work: Path, url: str, chance: random.Random) -> tuple[list[str], bool]:
    """What a program acknowledged before it was killed, and whether it had to be."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"}
    command = [sys.executable, "-m", "tests.session.program", str(work), url, str(ROUNDS)]
    program = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    told = [line.strip() for _, line in zip(range(chance.randint(1, 9)), program.stdout, strict=False)]
    time.sleep(chance.random() / 100)
    program.send_signal(signal.SIGKILL)
    told += [line.strip() for line in program.stdout]
    program.stdout.close()
    return [line for line in told if len(line) == 26], program.wait() == -signal.SIGKILL
