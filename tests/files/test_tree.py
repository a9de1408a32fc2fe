from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.files.tree import FileListing, list_files
from nexus_core.testing import write_files

if TYPE_CHECKING:
    from pathlib import Path


def names(tree: FileListing) -> list[str]:
    return [path.relative_to(tree.root).as_posix() for path in tree.files]


def test_list_files_has_the_nearest_first_and_sorted(tmp_path: Path) -> None:
    write_files(tmp_path, {"b/x": "", "a/y/z": "", "c": "", "a/x": "", "B": ""})

    assert names(list_files(tmp_path)) == ["B", "c", "a/x", "b/x", "a/y/z"]


def test_list_files_passes_over_what_programs_made_or_fetched(tmp_path: Path) -> None:
    made = ["node_modules/x.md", ".git/x.md", "env/pyvenv.cfg", "env/x.md", "target/CACHEDIR.TAG", "target/d/x.md"]
    write_files(tmp_path, dict.fromkeys([*made, ".claude/worktrees/a/x.md", ".claude/rules/x.md", "x.md"], ""))

    assert names(list_files(tmp_path)) == ["x.md", ".claude/rules/x.md"]


def test_list_files_follows_no_link(tmp_path: Path) -> None:
    write_files(tmp_path, {"outside/x": "", "root/y": ""})
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    (tmp_path / "root/file").symlink_to(tmp_path / "outside/x")

    tree = list_files(tmp_path / "root")

    assert names(tree) == ["y"]
    assert [path.name for path in tree.links] == ["file", "link"]


def test_list_files_says_when_a_limit_ended_it(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number}/x": "" for number in range(5)})

    few, narrow, whole = (
        list_files(tmp_path, max_files=2),
        list_files(tmp_path, max_directories=2),
        list_files(tmp_path),
    )

    assert (len(few.files), few.is_complete) == (2, False)
    assert (len(narrow.files), narrow.is_complete) == (1, False)
    assert (len(whole.files), whole.is_complete) == (5, True)


def test_list_files_of_a_directory_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list_files(tmp_path / "none") == FileListing(tmp_path / "none", (), (), is_complete=True)
