"""`fit`, `check` and `repair` depend on their arguments only: not on files, settings or the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core.testing import write_files

SCRIPT = """
import os, sys
import nexus_core
from nexus_core import check, fit, repair

private = [os.path.realpath(path) for path in sys.argv[1:]]
opened = []

def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str):
        path = os.path.realpath(arguments[0])
        opened.extend(path for each in private if path == each or path.startswith(each + os.sep))

sys.addaudithook(watch)
call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
messages = [{"role": "user", "content": f"message {number}"} for number in range(40)]
messages += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "user", "content": "go on"}]
fitted = fit(messages, model="gpt-4o", budget=100)
print(fitted.messages, fitted.decisions, fitted.budget, check(messages), repair(messages), opened)
"""


def run(cwd: Path, home: Path, **variables: str) -> str:
    base = {name: value for name, value in os.environ.items() if not name.startswith(("NEXUS_", "XDG_"))}
    outcome = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(cwd), str(home)],
        cwd=cwd,
        env={**base, "HOME": str(home), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    cwd, home = tmp_path / "project", tmp_path / "home"
    cwd.mkdir()
    home.mkdir()
    return cwd, home


def test_fit_opens_no_file_of_the_project_or_the_home(places: tuple[Path, Path]) -> None:
    assert run(*places).rstrip().endswith(" []")


@pytest.mark.slow
def test_fit_gives_the_same_whatever_settings_and_variables_there_are(places: tuple[Path, Path]) -> None:
    cwd, home = places
    usual = run(cwd, home)
    write_files(home, {".nexus3/config.json": "{", ".nexus/config.json": "{"})
    write_files(cwd, {".nexus3/config.json": '{"truncation": {"strategy": "middle_out"}}', "config.json": "{"})

    odd = {"NEXUS_PLUGINS": "what?", "NEXUS_STRICT": "1", "NEXUS_HOME": str(cwd), "XDG_CACHE_HOME": str(cwd)}
    assert run(cwd, home) == usual
    assert run(cwd, home, **odd) == usual
