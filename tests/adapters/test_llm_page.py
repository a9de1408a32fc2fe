"""The commands of the page for users of `llm`, with the real program and a model that repeats what it was sent."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/how-to/adopt-from-llm.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (llm .*?)(?: +#.*)?$", PAGE, re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path, nexus_home: Path) -> Path:
    assert nexus_home.is_dir()
    files = {"work/AGENTS.md": "Answer in verse, for $5.", "other/AGENTS.md": "Answer in prose."}
    write_files(tmp_path, files)
    return tmp_path / "work"


def run_llm(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.adapters.llm_program", *arguments]
    variables = {"LLM_USER_PATH": str(project.parent / "llm"), "PYTHONPATH": str(ROOT), "PWD": str(project)}
    return subprocess.run(
        program, cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_model_is_sent_the_prompt_of_the_directory(project: Path, command: str) -> None:
    with Nexus(project) as nexus, Nexus(project.parent / "other") as other:
        prompts = {False: nexus.system_prompt(), True: other.system_prompt()}
    arguments = [prompts[False] if each == "$(nexus show)" else each for each in shlex.split(command)[1:]]

    outcome = run_llm(project, *arguments)

    assert outcome.stderr == ""
    system, prompt = json.loads(outcome.stdout)
    assert system.strip() == prompts["other" in command].strip()
    assert prompt == "Why does login fail?"


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_a_whole_call_is_kept_and_the_next_one_continues_it(project: Path) -> None:
    lines = re.findall(r"^((?:echo|jq|nexus session) .*)$", PAGE, re.MULTILINE)
    message = {"role": "assistant", "content": "It expires."}
    reply = {"id": "r", "object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]}
    (project / "reply.json").write_text(json.dumps(reply))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    for line in [*lines, *lines[:2]]:
        command = ["sh", "-ec", line]
        subprocess.run(command, cwd=project, env={**os.environ, "PATH": path}, check=True)

    assert len(lines) == 3
    sent = json.loads((project / "request.json").read_text())
    assert sent["model"] == "gpt-4o"
    assert [each["role"] for each in sent["messages"]][-3:] == ["user", "assistant", "user"]
    assert sent["messages"][-2]["content"] == "It expires."


def test_missing_directory_is_an_error_of_llm(project: Path) -> None:
    outcome = run_llm(project, "-t", "nexus:nowhere", "Why?")

    assert outcome.returncode == 1
    assert outcome.stderr == "Error: Could not load template nexus:nowhere: there is no directory 'nowhere'\n"


def test_the_page_has_each_way() -> None:
    assert len(COMMANDS) == 4
