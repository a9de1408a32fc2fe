"""The program of docs/how-to/run-an-agent.md prints what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.agents.wire import KEY, VARIABLE, streamed, write_settings
from tests.conftest import ROOT
from tests.plugins.providers.endpoints import Answer, serving

PAGE = (ROOT / "docs/how-to/run-an-agent.md").read_text(encoding="utf-8")
PROGRAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
COMMAND, PRINTED = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)[0]
QUESTION = COMMAND.split('"')[1]


@pytest.fixture(autouse=True)
def place(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setattr(sys, "argv", ["agent.py", QUESTION])
    write_files(work, {"prices.csv": "item,price\ncroissant,1.80\n"})


def answers() -> tuple[Answer, Answer]:
    look = streamed("anthropic", "Let me look.", ("read_file", {"path": "prices.csv"}), "r1")
    return look, streamed("anthropic", "A croissant costs 1.80.", None, "r2")


def test_it_prints_what_the_page_says(nexus_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(*answers()) as server:
        write_settings(nexus_home, server.url)
        exec(PROGRAM, {})  # noqa: S102 - our own page

    assert capsys.readouterr().out == PRINTED
    assert "croissant,1.80" in str(server.bodies[1]["messages"][-1])


def test_after_a_failure_the_same_program_goes_on(nexus_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    look, answer = answers()
    with serving(look, Answer({"error": {"message": "No."}}, 400), answer) as server:
        write_settings(nexus_home, server.url)
        with pytest.raises(Exception, match="answered 400: No"):
            exec(PROGRAM, {})  # noqa: S102 - as above
        capsys.readouterr()
        exec(PROGRAM, {})  # noqa: S102 - as above

    lines = ["Going on with the turn that was left open.", "A croissant costs 1.80.", "18 tokens in 1 calls"]
    assert capsys.readouterr().out.splitlines() == lines
    assert len(server.bodies) == 3
