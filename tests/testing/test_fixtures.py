from __future__ import annotations

import os
from pathlib import Path

from nexus_core.testing.fixtures import MakeNexus


def test_the_home_of_a_test_is_empty_and_its_own(nexus_home: Path, tmp_path: Path) -> None:
    assert os.environ["NEXUS_HOME"] == str(nexus_home)
    assert nexus_home.is_relative_to(tmp_path)
    assert list(nexus_home.iterdir()) == []


def test_only_bundled_plugins_are_loaded(make_nexus: MakeNexus) -> None:
    assert all(plugin.bundled for plugin in make_nexus().plugins)


def test_a_nexus_starts_in_a_tree_of_the_tests_making(make_nexus: MakeNexus, tmp_path: Path) -> None:
    nexus = make_nexus(files={"a/.nexus3/NEXUS.md": "from a"}, cwd="a")

    assert nexus.cwd == tmp_path / "work/a"
    assert "from a" in nexus.system_prompt()


def test_the_defaults_stay_out_unless_asked_for(make_nexus: MakeNexus) -> None:
    assert "## Default Configuration" not in make_nexus().system_prompt()
    assert "## Default Configuration" in make_nexus(defaults=True).system_prompt()


def test_files_may_be_given_without_their_name(make_nexus: MakeNexus) -> None:
    nexus = make_nexus({".nexus3/NEXUS.md": "Be kind."})

    assert "Be kind." in nexus.system_prompt()
