"""Former names of settings work for one more release, with a finding that gives the new name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.conftest import Cli

OLD = '{"compaction": {\n  "summarisers": ["extractive"]}}'


def open_nexus(directory: Path, home: Path) -> Nexus:
    return Nexus(directory, home=home, installed=False)


def test_a_former_name_in_the_users_settings_has_its_effect_and_a_finding(tmp_path: Path) -> None:
    home = write_files(tmp_path / "home", {"config.json": OLD})
    work = write_files(tmp_path / "work", {"README.md": "x"})

    with open_nexus(work, home) as nexus:
        loaded = nexus.load()

    assert loaded.settings.get("compaction.summarizers") == ["extractive"]
    (finding,) = (each for each in loaded.findings if each.code == "renamed-setting")
    assert (finding.path, finding.line) == (home / "config.json", 2)
    assert "compaction.summarisers is called compaction.summarizers now" in finding.message


def test_a_former_name_in_a_project_waits_for_approval_as_the_new_one_does(tmp_path: Path) -> None:
    home = write_files(tmp_path / "home", {})
    work = write_files(tmp_path / "work", {".nexus3/config.json": OLD})

    with open_nexus(work, home) as nexus:
        loaded = nexus.load()

    assert loaded.settings.get("compaction.summarizers") is None
    (waiting,) = loaded.active
    assert (waiting.pointer, waiting.line) == ("/compaction/summarizers", 2)


def test_the_new_name_wins_over_a_former_one_in_the_same_file(tmp_path: Path) -> None:
    both = {"compaction": {"summarizers": ["extractive"], "summarisers": ["given"]}}
    home = write_files(tmp_path / "home", {"config.json": json.dumps(both)})
    work = write_files(tmp_path / "work", {"README.md": "x"})

    with open_nexus(work, home) as nexus:
        loaded = nexus.load()

    assert loaded.settings.get("compaction.summarizers") == ["extractive"]
    assert any("is not used beside" in each.message for each in loaded.findings)


def test_an_invalid_value_is_shown_at_its_place(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"compaction": {\n  "summarisers": 5}}'})

    outcome = cli("config", "validate")

    assert outcome.code != 0
    assert '2 |   "summarisers": 5}}\n        ^' in outcome.out


@pytest.mark.parametrize("verb", ["get", "set"])
def test_commands_take_a_former_name_with_a_hint(cli: Cli, nexus_home: Path, verb: str) -> None:
    words = ["--global", "compaction.summarisers", '["extractive"]'] if verb == "set" else ["compaction.summarisers"]

    outcome = cli("config", verb, *words)

    assert outcome.code == 0
    assert "compaction.summarisers is called compaction.summarizers now" in outcome.err
    if verb == "set":
        assert json.loads((nexus_home / "config.json").read_text()) == {"compaction": {"summarizers": ["extractive"]}}
