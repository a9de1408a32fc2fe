"""What the pages for authors of instructions say is so: what is typed there is typed here, in the same tree."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT, Cli

WRITE = (ROOT / "docs/how-to/write-instructions.md").read_text(encoding="utf-8")
ADOPT = (ROOT / "docs/how-to/adopt-from-coding-agents.md").read_text(encoding="utf-8")
TYPED = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", WRITE, re.MULTILINE)
FILES = {line.removeprefix("cat "): text for line, text in TYPED if line.startswith("cat ")}


@pytest.fixture
def shop(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository of the page, which is the working directory."""
    root = work / "shop"
    write_files(root, {**FILES, ".git/HEAD": "ref: refs/heads/main\n"})
    monkeypatch.chdir(root)
    return root


def even(text: str) -> str:
    """A text without what aligns columns; other paths have other widths."""
    return re.sub(" +", " ", text)


@pytest.mark.parametrize(("line", "shown"), [each for each in TYPED if each[0].startswith("nexus ")])
def test_a_command_of_the_page_prints_what_the_page_says(
    cli: Cli, shop: Path, nexus_home: Path, line: str, shown: str
) -> None:
    places = {shop: "/home/you/shop", nexus_home: "/home/you/.nexus3", ROOT: "/home/you/nexus"}

    told = cli(*shlex.split(line)[1:]).out

    for place, name in places.items():
        told = told.replace(str(place), name)
    beginning, more, _ = shown.partition("…\n")
    assert even(told)[: len(even(beginning)) if more else None] == even(beginning)


def test_the_program_of_the_page_prints_the_prompt(
    shop: Path, nexus_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.is_dir()
    assert nexus_home.is_dir()
    (program,) = re.findall(r"^```python\n(.*?)^```$", WRITE, re.MULTILINE | re.DOTALL)

    exec(program, {})  # noqa: S102 - our own page

    assert "We use Python 3.12. Lines have 100 characters at most." in capsys.readouterr().out


def test_rules_of_your_own_for_another_agent_are_imported(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path, {".claude/CLAUDE.md": "Answer in verse.\n"})
    write_files(nexus_home, {"NEXUS.md": "@~/.claude/CLAUDE.md\n"})

    assert "`@~/.claude/CLAUDE.md`" in ADOPT
    assert "Answer in verse." in make_nexus().system_prompt()


def test_skills_of_another_agent_are_read_where_they_are(nexus_home: Path, work: Path) -> None:
    (row,) = (line for line in ADOPT.splitlines() if "`.codex/skills`" in line and "`.claude/skills`" in line)
    places = re.findall(r"`(\.\w+/skills)`", row)
    for place in places:
        name = place[1:].partition("/")[0]
        write_files(work, {f"{place}/{name}/SKILL.md": "---\ndescription: Ships it.\n---\n\nRun it.\n"})

    assert nexus_home.is_dir()
    assert places == [".claude/skills", ".agents/skills", ".codex/skills"]
    with Nexus(work) as nexus:
        assert "Other: agents, claude, codex ⭐ (ready)" in nexus.system_prompt()


def test_servers_of_another_agent_are_read_where_they_are(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {".mcp.json": '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'})
    (setting,) = re.findall(r"`(\{\"plugins\".*?\}\}\})`", ADOPT)
    write_files(nexus_home, {"config.json": setting})

    assert re.search(r"^time +.*not approved", cli("mcp", "list").out, re.MULTILINE)
