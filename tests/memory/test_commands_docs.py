"""What docs/how-to/use-memory.md shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli

PAGE = (ROOT / "docs/how-to/use-memory.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    line.removeprefix("nexus ")
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]
(NOTE,) = re.findall(r"```markdown\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.usefixtures("nexus_home")
def test_the_program_of_the_page_prints_what_the_page_shows(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    names: dict[str, Any] = {}

    for program in PROGRAMS:
        exec(program, names)  # noqa: S102 - our own page

    assert [capsys.readouterr().out] == SHOWN
    names["nexus"].close()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_answered(cli: Cli, nexus_home: Path, work: Path, command: str) -> None:
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}', "memory/auth.md": NOTE})
    with Nexus(work) as nexus:
        nexus.session("auth-bug", model="gpt-4o").ask("Where is the auth middleware?")

    outcome = cli(*shlex.split(command))

    assert outcome.code == 0, outcome.err
