from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nexus_core import Nexus, Section
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.environment._git import describe_checkout

COMMIT = "0123456789abcdef0123456789abcdef01234567"
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(directory: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    program = shutil.which("git") or "git"
    subprocess.run([program, *who, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of git's own making, with one commit."""
    place = write_files(tmp_path / "repository", {"sub/README.md": "x"})
    git(place, "init", "--initial-branch", "main")
    git(place, "add", ".")
    git(place, "commit", "-m", "first")
    return place


@needs_git
def test_the_branch_is_told_anywhere_in_the_repository(repository: Path) -> None:
    assert describe_checkout(repository) == describe_checkout(repository / "sub") == "Branch: main"


@needs_git
def test_a_branch_may_have_slashes_in_its_name(repository: Path) -> None:
    git(repository, "switch", "--create", "feature/log-in")

    assert describe_checkout(repository) == "Branch: feature/log-in"


@needs_git
def test_without_a_branch_the_commit_is_told(repository: Path) -> None:
    git(repository, "switch", "--detach")

    assert describe_checkout(repository).startswith("Commit: ")
    assert describe_checkout(repository).endswith(" (no branch)")


@needs_git
def test_a_linked_work_tree_has_a_branch_of_its_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-b", "fix", str(tmp_path / "linked"))

    assert describe_checkout(tmp_path / "linked") == "Branch: fix"
    assert describe_checkout(repository) == "Branch: main"


@needs_git
def test_a_submodule_has_a_branch_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = write_files(tmp_path / "outer", {"README.md": "x"})
    git(outer, "init", "--initial-branch", "trunk")
    git(outer, "submodule", "add", str(repository), "inner")
    git(outer / "inner", "switch", "--create", "patch")

    assert describe_checkout(outer / "inner") == "Branch: patch"


def test_outside_of_a_repository_nothing_is_told(tmp_path: Path) -> None:
    assert describe_checkout(tmp_path) == ""


@pytest.mark.parametrize(
    "head",
    [
        "",
        "\n",
        "ref: refs/heads/",
        "ref: refs/heads/.invalid",
        "ref: refs/heads/two words",
        "ref: refs/heads/x\x1b[31m",
        "ref: ../../secret",
        "root:x:0:0",
        COMMIT[:20],
        "ref: refs/heads/" + "x" * 300,
    ],
)
def test_a_head_that_git_would_not_write_tells_nothing(tmp_path: Path, head: str) -> None:
    assert describe_checkout(write_files(tmp_path, {".git/HEAD": head})) == ""


def test_a_branch_hides_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/HEAD": "ref: refs/heads/ma\u200bin\u202e\n"})

    assert describe_checkout(tmp_path) == "Branch: main"


@pytest.mark.acceptance("T6", "T11")
@pytest.mark.parametrize("marker", ["gitdir: {other}", "gitdir: {other}/worktrees/x", "gitdir: ../other/.git"])
def test_a_file_that_points_to_the_repository_of_somebody_else_tells_nothing(tmp_path: Path, marker: str) -> None:
    other = tmp_path / "other/.git"
    write_files(other, {"HEAD": "ref: refs/heads/secret", "worktrees/x/HEAD": "ref: refs/heads/secret"})
    write_files(other, {"worktrees/x/gitdir": "/elsewhere/.git\n"})
    planted = write_files(tmp_path / "planted", {".git": marker.format(other=other)})

    assert describe_checkout(planted) == ""


@pytest.mark.acceptance("T11")
def test_a_link_in_the_place_of_the_repository_tells_nothing(tmp_path: Path) -> None:
    write_files(tmp_path / "other", {".git/HEAD": "ref: refs/heads/secret"})
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted/.git").symlink_to(tmp_path / "other/.git")

    assert describe_checkout(tmp_path / "planted") == ""


@pytest.mark.parametrize("marker", ["", "gitdir: ", "gitdir: \0", "gitdir: " + "x" * 5000, "something else"])
def test_a_curious_marker_tells_nothing(tmp_path: Path, marker: str) -> None:
    assert describe_checkout(write_files(tmp_path, {".git": marker})) == ""


# ---- as a section -------------------------------------------------------------------------------------------


def current(nexus: Nexus) -> tuple[Section, ...]:
    request = nexus.request()
    return nexus.host.current_sections(request, nexus.load(request))


def test_the_branch_is_a_section_of_the_turn_where_it_is_wanted(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"plugins": {"environment": {"git": true}}}'})
    nexus = make_nexus(files={".git/HEAD": "ref: refs/heads/main\n"})

    (section,) = current(nexus)

    assert (section.title, section.text, section.kind, section.zone) == ("Git", "Branch: main", "event", "current")


def test_nobody_is_told_who_did_not_ask(make_nexus: MakeNexus) -> None:
    assert current(make_nexus(files={".git/HEAD": "ref: refs/heads/main\n"})) == ()


def test_outside_of_a_repository_there_is_no_section(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"plugins": {"environment": {"git": true}}}'})

    assert current(make_nexus()) == ()
