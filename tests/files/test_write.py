import os
import socket
import stat
from pathlib import Path

import pytest

from nexus_core import FileError
from nexus_core.files.write import write_text_atomically, write_tree


def test_a_tree_is_written_with_its_directories(tmp_path: Path) -> None:
    root = tmp_path / "new"

    write_tree(root, {"a.txt": "A\n", "b/c.txt": "C\n"})

    assert (root / "a.txt").read_text() == "A\n"
    assert (root / "b/c.txt").read_text() == "C\n"


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "old"
    root.mkdir()

    with pytest.raises(FileError, match="already exists"):
        write_tree(root, {"a.txt": "A\n"})

    assert list(root.iterdir()) == []


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "link"
    root.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileError, match="already exists"):
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


# ---- one file ---------------------------------------------------------------------------------------------


def test_a_file_is_written_as_utf8_without_changing_line_ends(tmp_path: Path) -> None:
    write_text_atomically(tmp_path / "a.txt", "é\r\nb\n")

    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\r\nb\n"


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old, and longer")

    write_text_atomically(tmp_path / "a.txt", "new")

    assert (tmp_path / "a.txt").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_a_file_has_the_mode_that_was_asked_for_whatever_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_text_atomically(tmp_path / "a.txt", "text", mode=mode)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


def test_a_file_is_private_unless_said_otherwise_even_if_the_old_one_was_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o666)

    write_text_atomically(tmp_path / "a.txt", "new")

    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


@pytest.mark.parametrize("target", ["there.txt", "missing.txt"])
def test_a_link_is_refused_and_its_target_left_alone(tmp_path: Path, target: str) -> None:
    (tmp_path / "there.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(target)

    with pytest.raises(FileError, match="is a link"):
        write_text_atomically(tmp_path / "link.txt", "new")

    assert (tmp_path / "there.txt").read_text() == "old"
    assert not (tmp_path / "missing.txt").exists()


@pytest.mark.parametrize("call", ["fsync", "replace", "fdopen"])
@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, failure: BaseException
) -> None:
    (tmp_path / "a.txt").write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise failure

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises((FileError, KeyboardInterrupt)):
            write_text_atomically(tmp_path / "a.txt", "new")

    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_content_and_directory_are_on_disk_before_the_function_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        events.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def spy_replace(source: str, target: Path) -> None:
        assert Path(source).read_text() == "new"
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)

    write_text_atomically(tmp_path / "a.txt", "new")

    assert events == ["file", "rename", "directory"]


def test_a_file_whose_directory_does_not_exist_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot write: No such file") as caught:
        write_text_atomically(tmp_path / "missing/a.txt", "new")

    assert caught.value.where == str(tmp_path / "missing/a.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_refused_and_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(FileError, match="is not a regular file"):
        write_text_atomically(pipe, "x")

    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_socket_is_refused_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("door")

        with pytest.raises(FileError, match="is not a regular file"):
            write_text_atomically(Path("door"), "x")

    assert stat.S_ISSOCK((tmp_path / "door").stat().st_mode)


def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    with pytest.raises(FileError, match="is not a regular file"):
        write_text_atomically(tmp_path / "a", "new")

    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_text_that_cannot_be_encoded_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="surrogates not allowed"):
        write_text_atomically(tmp_path / "a.txt", "\ud800")

    assert list(tmp_path.iterdir()) == []
