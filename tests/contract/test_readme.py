"""What the README and the first how-tos show is what happens; tests/packaging/test_first_use.py types the commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dialects.support import listening
from tests.session.wire import says

README = (ROOT / "README.md").read_text()
PLACE = "/home/you/nexus"


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(command: list[str], home: Path, **variables: str) -> str:
    environment = {**os.environ, "NEXUS_HOME": str(home), "NEXUS_PLUGINS": "none"}
    terminal = {"TERM_PROGRAM": "vscode", "TERM": "xterm-256color"}
    outcome = subprocess.run(
        command, cwd=ROOT, env=environment | terminal | variables, text=True, capture_output=True, check=True
    )
    return outcome.stdout


def test_every_command_is_in_the_readme_and_has_its_part_of_the_reference(tmp_path: Path) -> None:
    reference = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    _, _, listed = run([sys.executable, "-m", "nexus_core", "--help"], tmp_path).partition("\nCommands:\n")
    names = re.findall(r"^  (\w+) ", listed.partition("\n\n")[0], re.MULTILINE)

    assert len(names) > 15
    assert [name for name in names if f"`nexus {name}" not in README and f"`{name}`" not in README] == []
    assert sorted(re.findall(r"^### nexus (\w+)$", reference, re.MULTILINE)) == sorted(names)


@pytest.mark.slow
def test_the_first_program_of_the_readme_asks_a_model(tmp_path: Path) -> None:
    with listening() as loopback:
        loopback.answer = says("openai", 1, "The token expires.")
        variables = {"OPENAI_BASE_URL": loopback.url, "OPENAI_API_KEY": "none"}
        output = run([sys.executable, "-c", blocks("python")[0]], tmp_path, **variables)

    assert output == "The token expires.\n"


@pytest.mark.slow
def test_the_session_of_the_readme_is_kept(tmp_path: Path) -> None:
    with listening() as loopback:
        loopback.answer = says("openai", 1, "The token expires.")
        variables = {"OPENAI_BASE_URL": loopback.url, "OPENAI_API_KEY": "none"}
        output = run([sys.executable, "-c", blocks("python")[1]], tmp_path, **variables)
    shown = run([sys.executable, "-m", "nexus_core", "session", "show", "auth-bug-2"], tmp_path)

    assert output == "The token expires.\n"
    assert "  Why does login fail?\n" in shown
    assert "  The token expires.\n" in shown


@pytest.mark.slow
def test_the_session_of_the_readme_goes_on_after_a_failed_call(tmp_path: Path) -> None:
    with listening() as loopback:
        variables = {"OPENAI_BASE_URL": loopback.url, "OPENAI_API_KEY": "none"}
        loopback.answers = [{"error": {"message": "Overloaded"}}]
        loopback.answer = says("openai", 1, "The token expires.")
        with pytest.raises(subprocess.CalledProcessError):
            run([sys.executable, "-c", blocks("python")[1]], tmp_path, **variables)
        output = run([sys.executable, "-c", blocks("python")[1]], tmp_path, **variables)

    first, second = loopback.bodies
    assert output == "The token expires.\n"
    assert first["messages"] == second["messages"]


def test_the_conversation_of_the_readme_fits(tmp_path: Path) -> None:
    program = blocks("python")[2]
    *_, told = program.splitlines()

    output = run([sys.executable, "-c", program], tmp_path)

    assert told == f"# {output.strip()}"


def test_the_plugin_of_the_readme_is_in_the_prompt(tmp_path: Path) -> None:
    output = run([sys.executable, "-c", blocks("python")[3]], tmp_path)

    assert "## Motto\nMeasure twice in auth-service." in output


def test_the_plugin_of_the_plugins_page_keeps_the_contract(tmp_path: Path) -> None:
    (code,) = blocks("python", (ROOT / "plugins/README.md").read_text())
    (tmp_path / "nexus_git.py").write_text(code)
    check = "import nexus_git; from nexus_core.testing import check_plugin; print(check_plugin(nexus_git))"

    assert run([sys.executable, "-c", check], tmp_path, PYTHONPATH=str(tmp_path)) == "[]\n"


@pytest.mark.slow
def test_the_examples_of_the_testing_page_pass(tmp_path: Path) -> None:
    plain, with_pytest = blocks("python", (ROOT / "docs/how-to/test-a-plugin.md").read_text())
    (tmp_path / "test_motto.py").write_text(with_pytest)

    run([sys.executable, "-c", plain], tmp_path)
    output = run([sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", str(tmp_path)], tmp_path)

    assert "1 passed" in output


def test_the_examples_of_the_fitting_page_run(tmp_path: Path) -> None:
    fitting, managing = blocks("python", (ROOT / "docs/how-to/fit-a-conversation.md").read_text())

    assert run([sys.executable, "-c", fitting], tmp_path).startswith("True ")
    kept, prompt, _, request = run([sys.executable, "-c", managing], tmp_path).splitlines()
    assert (kept.split()[0], prompt) == ("5", "Be brief.")
    assert re.fullmatch(r"Current date: .*, Current time: .* user", request)


def test_the_counter_on_the_page_about_tokens_counts(tmp_path: Path) -> None:
    _, own = blocks("python", (ROOT / "docs/reference/tokens.md").read_text())

    assert run([sys.executable, "-c", own], tmp_path) == "7\n"


def test_the_readme_shows_the_thing_working_within_forty_lines() -> None:
    head = README.splitlines()[:40]

    assert any("docs/images/context-light.svg" in line for line in head)
    assert any("`nexus context`" in line for line in head)
    assert len(README.splitlines()) < 200


def test_every_program_of_the_readme_is_run_by_a_test_above() -> None:
    assert set(re.findall(r"^```(\w*)$", README, re.MULTILINE)) == {"", "console", "python"}
    assert len(blocks("python")) == 4
