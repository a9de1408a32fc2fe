from pathlib import Path

import pytest

from nexus_core import ConfigError, FileError
from nexus_core.files.places import (
    cache_directory,
    defaults_directory,
    find_home_repository,
    find_nexus_home,
    find_workspace,
    resolve_directory,
)
from nexus_core.testing import write_files


def test_home_is_a_hidden_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find_nexus_home(tmp_path / "work") == tmp_path / ".nexus3"


def test_the_environment_replaces_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / "elsewhere"))

    assert find_nexus_home(tmp_path / "work") == tmp_path / "elsewhere"


def test_a_machine_without_a_home_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    with pytest.raises(ConfigError, match="set NEXUS_HOME"):
        find_nexus_home(tmp_path)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a home in it, and links that lead into it and out of it."""
    repository = write_files(tmp_path / "repo", {".git/HEAD": "", "home/NEXUS.md": "", "src/deep/x": ""})
    (tmp_path / "outside").mkdir()
    (tmp_path / "way-in").symlink_to(repository / "home")
    (tmp_path / "repo-link").symlink_to(repository)
    (repository / "way-out").symlink_to(tmp_path / "outside")
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    monkeypatch.chdir(repository)
    return repository


@pytest.mark.acceptance("T4")
@pytest.mark.parametrize("cwd", [".", "src/deep"])
@pytest.mark.parametrize(
    "home",
    [
        "{repo}",
        "{repo}/.nexus3",
        "{repo}/home",
        "{repo}/not/there",
        "home",
        "{repo}/way-out",
        "{repo}/way-out/.nexus3",
        "{outside}/../repo/home",
        "{outside}/../way-in",
        "{outside}/../repo-link/way-out",
    ],
)
def test_a_home_that_the_project_could_have_made_is_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch, home: str, cwd: str
) -> None:
    monkeypatch.setenv("NEXUS_HOME", home.format(repo=repository, outside=repository.parent / "outside"))

    with pytest.raises(ConfigError, match="NEXUS_HOME lies inside the project") as caught:
        find_nexus_home(repository / cwd)

    assert f"a directory outside {repository}" in str(caught.value)
    assert "--home DIR" in str(caught.value)


@pytest.mark.acceptance("T4")
@pytest.mark.parametrize("home", ["home", "src/deep", "not/there"])
def test_a_users_home_inside_the_project_is_refused_as_well(
    repository: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(repository / home))

    with pytest.raises(ConfigError, match="your home directory lies inside the project") as caught:
        find_nexus_home(repository)

    assert "set NEXUS_HOME to a directory outside" in str(caught.value)


@pytest.mark.acceptance("T4")
@pytest.mark.parametrize("marker", [".git", ".hg", ".jj", ".svn"])
@pytest.mark.parametrize("user", ["", "below/it"])
def test_a_home_in_a_repository_is_known_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str, user: str
) -> None:
    write_files(tmp_path, {f"repo/{marker}/x": "", "repo/below/it/x": "", "repo/link/x": "", "outside/x": ""})
    home = tmp_path / "repo" / user
    monkeypatch.setenv("HOME", str(home))

    assert find_home_repository(home / ".nexus3") == tmp_path / "repo"
    assert find_home_repository(tmp_path / "outside") is None


def test_a_home_in_no_repository_may_lead_into_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"me/dotfiles/.git/x": "", "me/dotfiles/nexus/x": ""})
    (tmp_path / "me/.nexus3").symlink_to("dotfiles/nexus")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    assert find_home_repository(tmp_path / "me/.nexus3") is None


@pytest.mark.acceptance("T4")
def test_without_a_repository_the_directory_itself_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / "work/home"))

    with pytest.raises(ConfigError, match="lies inside the project"):
        find_nexus_home(tmp_path / "work")


@pytest.mark.parametrize("home", ["{outside}", "{repo}-2", "{repo}/../outside", "../outside", "{repo}/home/../../new"])
def test_a_home_beside_the_project_is_nobodys_but_the_users(
    repository: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    outside = repository.parent / "outside"
    monkeypatch.setenv("NEXUS_HOME", home.format(repo=repository, outside=outside))

    assert repository not in find_nexus_home(repository).resolve().parents


@pytest.mark.acceptance("B-07")
@pytest.mark.parametrize("home", ["~/.nexus3", "~/.config/nexus"])
@pytest.mark.parametrize("cwd", ["", "user"])
def test_in_the_home_directory_and_above_it_there_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, cwd: str
) -> None:
    write_files(tmp_path / "user", {".git/HEAD": "", ".nexus3/NEXUS.md": ""})  # many keep their settings in git
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("NEXUS_HOME", home)

    assert find_nexus_home(tmp_path / cwd) == tmp_path / "user" / home[2:]
    assert find_workspace(tmp_path / cwd) is None


def test_the_usual_home_may_be_named_wherever_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"dotfiles/.git/HEAD": "", "dotfiles/nexus/NEXUS.md": ""})
    (tmp_path / ".nexus3").symlink_to(tmp_path / "dotfiles/nexus")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / ".nexus3"))

    assert find_nexus_home(tmp_path / "dotfiles") == tmp_path / ".nexus3"


def test_the_defaults_hold_a_prompt_of_at_most_sixty_lines() -> None:
    text = (defaults_directory() / "NEXUS.md").read_text()

    assert 10 < len(text.splitlines()) <= 60


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory") as caught:
        resolve_directory(tmp_path / "missing")

    assert caught.value.where == str(tmp_path / "missing")


def test_a_deleted_current_directory_is_an_error_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(FileError, match="no longer exists"):
        resolve_directory(".")


@pytest.mark.parametrize(("base", "usual"), [("relative", True), ("", True), ("/somewhere", False)])
def test_a_cache_directory_that_is_not_absolute_does_not_count(
    base: str,
    usual: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", base)

    assert cache_directory().is_relative_to("/home/somebody") is usual
