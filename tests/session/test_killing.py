"""A program in the middle of a tool loop is killed, again and again, with a real file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from nexus_core import Nexus
from tests.conftest import ROOT
from tests.session.program import main

ROUNDS = 12
MOST_STARTS = 40


def test_a_loop_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, nexus_home: Path
) -> None:
    assert nexus_home.is_dir()
    work = tmp_path / "work"
    work.mkdir()
    disturbed, whole = (f"sqlite:///{tmp_path / name}.db" for name in ("disturbed", "whole"))
    main(str(work), whole, ROUNDS)
    chance = random.Random(7)  # noqa: S311 - the same moments in every run

    acknowledged: list[str] = []
    kills = 0
    for _ in range(MOST_STARTS):
        told, was_killed = run_and_kill(work, disturbed, chance)
        acknowledged += told
        kills += was_killed
        if not was_killed:
            break

    with Nexus(work, ledger=disturbed, layers=False) as nexus, Nexus(work, ledger=whole, layers=False) as other:
        steps = nexus.ledger.thread(str(nexus.ledger.session("s").tip))  # type: ignore[union-attr]
        names = [step.id for step in steps]
        missing = set(acknowledged) - set(names)
        print(f"{kills} kills, {len(acknowledged)} acknowledged steps, {len(missing)} missing")  # noqa: T201 - the figure
        assert kills >= 3
        assert not missing
        assert nexus.session("s").messages == other.session("s").messages
        assert nexus.session("s").usage == other.session("s").usage
        assert list(nexus.ledger.verify()) == []


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
