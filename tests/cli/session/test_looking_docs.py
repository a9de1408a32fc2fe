"""What docs/how-to/find-out-what-a-model-read.md shows is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.cli.session.conftest import Talk
from tests.conftest import ROOT, Cli
from tests.session.support import says

PAGE = (ROOT / "docs/how-to/find-out-what-a-model-read.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| .+ \| `nexus (.+)` \|$", PAGE, re.MULTILINE)
PROGRAM, REPORT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_says_something_and_makes_nothing(
    command: str, cli: Cli, talk: Talk, work: Path, nexus_home: Path
) -> None:
    write_files(work, {"NEXUS.md": "Be brief.\n", "AGENTS.md": "Be kind.\n", "CLAUDE.md": "Be quick.\n"})
    session = talk("auth-bug", "Why?")
    session.ask("And now?")
    step = session.record(says("re And now?", name="msg 2")).id
    before = {path.name for path in nexus_home.iterdir()}

    outcome = cli(*shlex.split(command.replace("STEP", step)))

    assert outcome.code == 0, outcome.err
    assert outcome.out
    assert {path.name for path in nexus_home.iterdir()} == before


def test_the_programs_of_the_page_run(cli: Cli, talk: Talk, nexus: Nexus, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("session", "list").code == 0
    session = talk("auth-bug", "Why?")
    session.ask("And now?")
    names: dict[str, Any] = {"step": session.record(says("re And now?", name="msg 2"))}
    nexus.close()

    exec(PROGRAM, names)  # noqa: S102 - our own page
    exec(REPORT, names)  # noqa: S102 - as above

    *placed, total, cache = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in placed] == ["static"] * 5 + ["history"] * 5 + ["current"]
    assert re.fullmatch(r"\d+ of 184000", total)
    assert cache.startswith("miss 200 of ")
