"""docs/reference/search.md: its commands and its program run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.conftest import Cli

PAGE = (Path(__file__).parents[3] / "docs/reference/search.md").read_text(encoding="utf-8")


@pytest.fixture
def session(nexus: Nexus) -> None:
    """A session in which something was said."""
    talk = nexus.session("auth-bug", model="gpt-4o")
    talk.ask("Where did we change the auth middleware?")
    talk.record({"role": "assistant", "content": "In src/auth.py. The key of the cache was wrong."})


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("command", re.findall(r"^\$ nexus (.*)$", PAGE, re.MULTILINE))
def test_command_of_the_page_is_answered(cli: Cli, command: str) -> None:
    assert cli(*shlex.split(command)).code == 0


@pytest.mark.usefixtures("session")
def test_program_of_the_page_prints_a_hit(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    exec(program, {})  # noqa: S102 - the program of our own page

    assert "auth-bug" in capsys.readouterr().out
