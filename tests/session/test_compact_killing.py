"""A program is killed while it compacts: there is the old state or the new one, and nothing between."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.thread.projection import DEFAULT_MARKER
from tests.conftest import ROOT
from tests.effort import rounds
from tests.ledger.backends import figure
from tests.session.compacted import Words
from tests.session.support import compaction_of
from tests.tables import count

pytestmark = pytest.mark.slow

KILLS = rounds(25)


@pytest.mark.acceptance("R2")
def test_a_compaction_that_is_killed_has_happened_or_has_not(tmp_path: Path, nexus_home: Path) -> None:
    assert nexus_home.is_dir()
    work = tmp_path / "work"
    work.mkdir()
    url = f"sqlite:///{tmp_path}/ledger.db"
    chance = random.Random(3)  # noqa: S311 - the same moments in every run

    told: set[str] = set()
    while_summarising = 0
    for number in range(KILLS):
        lines = run_and_kill(work, url, chance, hold=number % 5 == 0)
        told |= {line.split()[1] for line in lines if line.startswith("compacted")}
        while_summarising += lines[-1:] == ["summarizing"]
        with Nexus(work, ledger=url, layers=False, plugins=[Words()]) as nexus:
            record = nexus.ledger.session("s")
            assert record is not None
            steps = nexus.ledger.thread(str(record.tip))
            assert told <= {step.id for step in steps if step.kind == "compaction"}
            for step in steps:
                if step.kind == "compaction":
                    made = compaction_of(step)
                    assert made.summary
                    assert (made.tokens_after or 0) < (made.tokens_before or 0)
                    assert nexus.ledger.blob(made.epoch) is not None
            if steps[-1].compaction is not None:
                assert nexus.session("s").messages[0].content.startswith(DEFAULT_MARKER)
            assert list(nexus.ledger.verify()) == []
    count(KILLS)
    figure(f"{KILLS} kills, {while_summarising} while summarizing, {len(told)} compactions acknowledged, 0 missing")
    assert told
    assert while_summarising >= KILLS / 5


def run_and_kill(work: Path, url: str, chance: random.Random, *, hold: bool) -> list[str]:
    """What a program said before it was killed; with `hold`, it was in the middle of a summary."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"}
    command = [sys.executable, "-m", "tests.session.compacting_program", str(work), url, *["hold"] * hold]
    program = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    lines = [line.strip() for _, line in zip(range(1 if hold else chance.randint(1, 6)), program.stdout, strict=False)]
    time.sleep(chance.random() / 50)
    program.send_signal(signal.SIGKILL)
    lines += [line.strip() for line in program.stdout]
    program.stdout.close()
    program.wait()
    return lines
