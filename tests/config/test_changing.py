"""What `change_setting` does to files that are odd, and to those of others."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexus_core import ConfigError, FileError, UsageError
from nexus_core.config.changing import change_setting

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".nexus3/config.json"


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    "data",
    [
        b'{\r\n  "provider": {"model": "old"}\r\n}\r\n',
        b'\xef\xbb\xbf{"provider": {"model": "old"}}',
        b'{\r"provider": {"model": "old"}}',
        b'{"_note": "\xc3\xa9 \\u00e9", "provider": {"model": "old"}}',
    ],
    ids=["CRLF", "byte order mark", "CR", "escapes"],
)
def test_every_other_byte_stays(path: Path, data: bytes) -> None:
    write(path, data)

    change_setting(path, "provider.model", "new")

    assert path.read_bytes() == data.replace(b"old", b"new")


@pytest.mark.acceptance("T24")
@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize(("own", "modes"), [(True, (0o700, 0o600)), (False, (0o755, 0o644))])
def test_nobody_else_may_write_to_what_is_made(path: Path, own: bool, modes: tuple[int, int]) -> None:
    change_setting(path, "provider.model", "x", own=own)

    assert (mode(path.parent), mode(path)) == modes


def test_a_linked_directory_is_not_written_through(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.parent.symlink_to(elsewhere)

    with pytest.raises(FileError, match="is a link"):
        change_setting(path, "provider.model", "x")

    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_place_of_the_directory_is_said(path: Path) -> None:
    path.parent.write_text("x")

    with pytest.raises(FileError, match="not a directory"):
        change_setting(path, "provider.model", "x")


@pytest.mark.parametrize("text", ["[]", "null", '"x"'])
def test_a_file_that_holds_no_object_is_shown(path: Path, text: str) -> None:
    write(path, text.encode())

    with pytest.raises(ConfigError, match="must be a JSON object"):
        change_setting(path, "provider.model", "x")

    assert path.read_text() == text


def test_a_setting_below_a_value_cannot_be_reached(path: Path) -> None:
    write(path, b'{"provider": "x"}')

    with pytest.raises(UsageError, match="'/provider' is a string"):
        change_setting(path, "provider.model", "x")


@pytest.mark.acceptance("T16")
def test_a_file_does_not_become_too_large_to_be_read(path: Path) -> None:
    data = b'{"_note": "' + b"x" * (1024 * 1024 - 20) + b'"}'
    write(path, data)

    with pytest.raises(UsageError, match="larger than 1 MiB"):
        change_setting(path, "provider.model", "x")

    assert path.read_bytes() == data


@pytest.mark.parametrize("key", ["plugins.", "plugins..a", "plugins.a.", "provider.", ""])
def test_a_name_with_nothing_between_two_dots_is_none(path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="unknown setting"):
        change_setting(path, key, "x")


@pytest.mark.parametrize("name", ["a/b", "a~b", "a~1b"])
def test_a_name_may_have_what_means_something_in_a_pointer(path: Path, name: str) -> None:
    change_setting(path, f"plugins.{name}.x", "1")

    assert json.loads(path.read_text()) == {"plugins": {name: {"x": 1}}}


def test_of_many_writers_none_is_lost(path: Path) -> None:
    keys = [f"plugins.p{number}.x" for number in range(24)]

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda key: change_setting(path, key, "1"), keys))

    assert len(json.loads(path.read_text())["plugins"]) == len(keys)
    assert [each.name for each in path.parent.iterdir()] == ["config.json"]
