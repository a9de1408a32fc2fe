"""`context.instruction_files`: the files of which a layer of a project contributes the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import ConfigError, Nexus
from nexus_core.testing import write_files


def prompt(work: Path, home: Path, names: str, files: dict[str, str]) -> str:
    write_files(work, {".nexus3/config.json": f'{{"context": {{"instruction_files": {names}}}}}', **files})
    return Nexus(work, home=home).system_prompt()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ('["AGENTS.md", "NEXUS.md"]', "from agents"),
        ('["NEXUS.md", "AGENTS.md"]', "from nexus"),
        ('["TEAM.md", "CLAUDE.md"]', "from claude"),
        ('["TEAM.md", "README.md"]', "from readme"),
    ],
)
def test_the_first_file_of_the_list_is_read_and_no_other(work: Path, nexus_home: Path, names: str, found: str) -> None:
    files = {
        ".nexus3/NEXUS.md": "from nexus",
        "AGENTS.md": "from agents",
        ".claude/CLAUDE.md": "from claude",
        "README.md": "from readme",
    }

    shown = prompt(work, nexus_home, names, files)

    assert [word for word in ("from nexus", "from agents", "from claude", "from readme") if word in shown] == [found]


def test_instruction_files_that_are_an_empty_list_are_none(work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "from home"})
    files = {".nexus3/NEXUS.md": "from nexus", "AGENTS.md": "from agents", "README.md": "from readme"}

    shown = prompt(work, nexus_home, "[]", files)

    assert "from home" in shown
    assert not [word for word in ("from nexus", "from agents", "from readme") if word in shown]


def test_the_directory_of_the_layer_comes_before_that_of_a_program_and_the_project(
    work: Path, nexus_home: Path
) -> None:
    files = {".nexus3/AGENTS.md": "in nexus3", ".agents/AGENTS.md": "in agents", "AGENTS.md": "in project"}

    shown = prompt(work, nexus_home, '["AGENTS.md"]', files)

    assert ("in nexus3" in shown, "in agents" in shown, "in project" in shown) == (True, False, False)


def test_a_readme_in_the_list_is_marked_as_documentation(work: Path, nexus_home: Path) -> None:
    listed = prompt(work, nexus_home, '["README.md"]', {"README.md": "Run me."})

    assert "DOCUMENTATION" in listed.upper()
    assert "Run me." in listed


def test_a_project_does_not_choose_among_the_users_own_instructions(work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "My own rules."})

    assert "My own rules." in prompt(work, nexus_home, '["AGENTS.md"]', {"AGENTS.md": "Theirs."})


@pytest.mark.parametrize("name", ["../NEXUS.md", "docs/NEXUS.md", "notes.txt", "a..md"])
def test_a_name_that_leads_elsewhere_is_refused(work: Path, nexus_home: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"must be the name of a \.md file"):
        prompt(work, nexus_home, f'["{name}"]', {"docs/NEXUS.md": "x"})
