import os
from pathlib import Path

import pytest

from nexus_core import FileError
from nexus_core.plugin import read_text


def test_a_file_that_is_not_there_reads_as_none(tmp_path: Path) -> None:
    assert read_text(tmp_path / "NEXUS.md") is None
    assert read_text(tmp_path / "file.md" / "NEXUS.md") is None


def test_a_path_through_a_file_reads_as_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert read_text(tmp_path / "file" / "NEXUS.md") is None


def test_a_byte_order_mark_and_windows_line_ends_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")

    assert read_text(path) == "one\ntwo\n"


def test_bytes_that_are_not_utf_8_are_named_with_their_offset(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.write_bytes("caf\xe9".encode("latin-1"))

    with pytest.raises(FileError, match="byte 0xe9 at offset 3") as caught:
        read_text(path)

    assert caught.value.where == str(path)


def test_the_offset_counts_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.write_bytes(b"\xef\xbb\xbfabc\xe9")

    with pytest.raises(FileError, match="byte 0xe9 at offset 6"):
        read_text(path)


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.write_text("x" * 10)

    assert read_text(path, max_bytes=10) == "x" * 10
    with pytest.raises(FileError, match="larger than 9 bytes"):
        read_text(path, max_bytes=9)


def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    os.mkfifo(path)

    with pytest.raises(FileError, match="not a regular file"):
        read_text(path)


def test_a_directory_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.mkdir()

    with pytest.raises(FileError, match="not a regular file"):
        read_text(path)


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("target", ["/proc/self/environ", "/proc/cpuinfo", "/sys/kernel/uevent_seqnum"])
def test_a_file_that_the_kernel_makes_up_is_refused(tmp_path: Path, target: str) -> None:
    path = tmp_path / "NEXUS.md"
    path.symlink_to(target)

    if Path(target).exists():
        with pytest.raises(FileError, match="not a regular file"):
            read_text(path)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match="no file can have this name"):
        read_text(tmp_path / name)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "NEXUS.md"
    path.symlink_to(path)

    with pytest.raises(FileError, match="cannot read"):
        read_text(path)
