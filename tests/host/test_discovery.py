import os
import sys
from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.host.discovery import PluginPolicy, find_installed_candidates, read_policy
from nexus_core.testing import write_files


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEXUS_PLUGINS", raising=False)
    monkeypatch.delenv("NEXUS_STRICT", raising=False)


def test_by_default_everything_loads_and_problems_do_not_stop_the_run() -> None:
    assert read_policy() == PluginPolicy(disabled=frozenset(), only_bundled=False, strict=False)


def test_names_with_a_minus_are_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "-git, -mcp")

    assert read_policy(["tagged"]).disabled == {"git", "mcp", "tagged"}


@pytest.mark.parametrize("value", ["git", "+git", "-", "none,all"])
def test_a_word_that_means_nothing_is_an_error_with_an_example(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", value)

    with pytest.raises(ConfigError, match="to disable a plugin") as caught:
        read_policy()

    assert caught.value.where == "the environment variable NEXUS_PLUGINS"


def test_none_leaves_the_bundled_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "none")

    assert read_policy().only_bundled


@pytest.mark.parametrize(("value", "strict"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_strictness_is_switched_on_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, *, strict: bool
) -> None:
    monkeypatch.setenv("NEXUS_STRICT", value)

    assert read_policy().strict is strict


def test_an_argument_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_STRICT", "1")

    assert read_policy(strict=False).strict is False


def distribution(name: str, points: str, version: str = "1.0") -> dict[str, str]:
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    return {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{folder}/entry_points.txt": points,
    }


def plugins(*names: str) -> str:
    return "[nexus.plugins]\n" + "".join(f"{name} = module_{name}\n" for name in names)


def test_plugins_are_sorted_by_distribution_and_name(tmp_path: Path) -> None:
    site = write_files(tmp_path, distribution("zeta", plugins("b", "a")) | distribution("alpha", plugins("z")))

    found = find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)])

    assert [(each.distribution, each.name) for each in found] == [("alpha", "z"), ("zeta", "a"), ("zeta", "b")]
    assert {each.version for each in found} == {"1.0"}


def test_other_entry_points_are_none_of_our_business(tmp_path: Path) -> None:
    site = write_files(tmp_path, distribution("tool", "[console_scripts]\ntool = tool:main\n"))

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)]) == []


def test_our_own_distribution_is_left_to_the_manifest(tmp_path: Path) -> None:
    site = write_files(tmp_path, distribution("nexusctx", plugins("environment")))

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)]) == []


def test_the_first_of_two_installations_of_one_distribution_counts(tmp_path: Path) -> None:
    first = write_files(tmp_path / "first", distribution("git", plugins("git"), version="2.0"))
    second = write_files(tmp_path / "second", distribution("git", plugins("git"), version="1.0"))

    found = find_installed_candidates(outside=tmp_path / "work", search_path=[str(first), str(second)])

    assert [each.version for each in found] == ["2.0"]


@pytest.mark.parametrize(
    "damage",
    [
        {"METADATA": ""},
        {"METADATA": "Metadata-Version: 2.1\n"},
        {"entry_points.txt": "[nexus.plugins]\ngit\n"},
    ],
)
def test_damaged_metadata_becomes_a_candidate_that_fails_to_load(tmp_path: Path, damage: dict[str, str]) -> None:
    site = write_files(tmp_path, distribution("git", plugins("git")))
    write_files(site / "git-1.0.dist-info", damage)

    (found,) = find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)])

    assert (found.name, found.version) == ("git", "1.0")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the library raised, the loader will name it
        found.load()


def test_entry_points_that_are_not_text_become_a_candidate_that_fails_to_load(tmp_path: Path) -> None:
    site = write_files(tmp_path, distribution("git", ""))
    (site / "git-1.0.dist-info/entry_points.txt").write_bytes(b"[nexus.plugins]\ngit = \xff\xfe\n")

    (found,) = find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)])

    with pytest.raises(UnicodeDecodeError):
        found.load()


def test_what_an_interrupted_uninstall_left_behind_is_not_a_plugin(tmp_path: Path) -> None:
    site = write_files(tmp_path, distribution("~it", plugins("git")))

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(site)]) == []


def test_a_newer_distribution_without_plugins_hides_an_older_one_with_some(tmp_path: Path) -> None:
    first = write_files(tmp_path / "first", distribution("git", "[console_scripts]\n", version="2.0"))
    second = write_files(tmp_path / "second", distribution("git", plugins("git"), version="1.0"))

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(first), str(second)]) == []


def test_names_that_differ_in_case_or_dots_are_one_distribution(tmp_path: Path) -> None:
    first = write_files(tmp_path / "first", distribution("My.Git", plugins("git")))
    second = write_files(tmp_path / "second", distribution("my-git", plugins("git")))

    assert len(find_installed_candidates(outside=tmp_path / "work", search_path=[str(first), str(second)])) == 1


def test_a_fifo_in_place_of_metadata_does_not_hang(tmp_path: Path) -> None:
    folder = tmp_path / "git-1.0.dist-info"
    folder.mkdir()
    os.mkfifo(folder / "entry_points.txt")

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(tmp_path)]) == []


def test_metadata_lying_in_the_working_directory_is_not_an_installation(tmp_path: Path) -> None:
    project = write_files(tmp_path, distribution("evil", plugins("evil")))

    assert find_installed_candidates(outside=project, search_path=[str(project)]) == []


def test_a_link_to_the_working_directory_does_not_make_it_an_installation(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", distribution("evil", plugins("evil")))
    link = tmp_path / "link"
    link.symlink_to(project)

    assert find_installed_candidates(outside=project, search_path=[str(link)]) == []


def test_metadata_lying_in_the_current_directory_is_not_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write_files(tmp_path / "project", distribution("evil", plugins("evil")))
    monkeypatch.chdir(project)

    assert find_installed_candidates(outside=tmp_path, search_path=["", ".", str(project)]) == []


def test_entries_that_are_not_directories_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").touch()

    found = find_installed_candidates(
        outside=tmp_path / "work", search_path=[str(tmp_path / "archive.zip"), str(tmp_path / "missing")]
    )

    assert found == []


def test_an_environment_without_plugins_never_imports_the_metadata_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "importlib_metadata", None)  # importing it would raise
    site = write_files(tmp_path, distribution("tool", "[console_scripts]\ntool = tool:main\n"))

    assert find_installed_candidates(outside=tmp_path / "work", search_path=[str(site), os.curdir]) == []
