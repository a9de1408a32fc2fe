from pathlib import Path

import pytest

from nexus_core import FileError
from nexus_core.files.writing import write_tree


def test_a_tree_is_written_with_its_directories(tmp_path: Path) -> None:
    root = tmp_path / "new"

    write_tree(root, {"a.txt": "A\n", "b/c.txt": "C\n"})

    assert (root / "a.txt").read_text() == "A\n"
    assert (root / "b/c.txt").read_text() == "C\n"


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "old"
    root.mkdir()

    with pytest.raises(FileError, match="exists already"):
        write_tree(root, {"a.txt": "A\n"})

    assert list(root.iterdir()) == []


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "link"
    root.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileError, match="exists already"):
        write_tree(root, {"a.txt": "A\n"})

    assert not (tmp_path / "elsewhere").exists()


def test_a_failure_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot write"):
        write_tree(tmp_path / "new", {"a": "file", "a/b": "below a file"})

    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory") as caught:
        write_tree(tmp_path / "missing" / "new", {"a": "A"})

    assert caught.value.where == str(tmp_path / "missing")
