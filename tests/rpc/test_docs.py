"""The program of docs/how-to/run-many-agents.md runs, and its tables name what there is."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from nexus_core.rpc import AgentConfig, SharedComponents
from nexus_core.rpc.dispatcher import METHODS, STREAMS
from nexus_core.rpc.manager_tools import build_manager_tools
from nexus_core.testing import write_files
from tests.agents.wire import KEY, VARIABLE, streamed, write_settings
from tests.conftest import ROOT
from tests.plugins.providers.endpoints import serving

PAGE = (ROOT / "docs/how-to/run-many-agents.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_program_runs(
    work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(work, {"shop/NEXUS.md": "Sell cakes.\n"})
    monkeypatch.chdir(work)
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setattr(sys, "argv", ["agents.py", "What do you do?"])
    with serving(*(streamed("anthropic", "I work.", None, name) for name in ("r1", "r2"))) as server:
        write_settings(nexus_home, server.url)
        exec(PROGRAM, {})  # noqa: S102 - our own page

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["baker: I work.", "seller: I work."]
    assert sorted("Sell cakes." in str(body["system"]) for body in server.bodies) == [False, True]


def test_the_tables_name_every_option_method_and_tool() -> None:
    named = set(re.findall(r"`(\w+)[`(]", PAGE))
    tools = [each.name for role in ("manager", "worker") for each in build_manager_tools(None, None, role)]  # type: ignore[arg-type]
    options = [each.name for kind in (AgentConfig, SharedComponents) for each in fields(kind)]

    assert {*options, *tools, *METHODS, *STREAMS} - named - {"contained"} == set()
