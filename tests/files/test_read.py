"""What may be read on behalf of a layer, whatever happens to its files meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from nexus_core import FileError
from nexus_core.files import read as module
from nexus_core.plugin import Layer, SkippedFile, read_text
from nexus_core.plugin.files import LayerReader
from nexus_core.testing import write_files


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


CANARY = "CANARY"
STRANGER = 54321
OPEN_FILES = Path("/proc/self/fd")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository beside a directory that has files of the same names, with secrets in them."""
    inside = {"sub/.nexus3/NEXUS.md": "inside", "sub/AGENTS.md": "inside", "docs/NEXUS.md": "inside"}
    outside = {"sub/.nexus3/NEXUS.md": CANARY, ".nexus3/NEXUS.md": CANARY, "NEXUS.md": CANARY, "AGENTS.md": CANARY}
    write_files(tmp_path / "outside", outside)
    return write_files(tmp_path / "repo", {".git/HEAD": "", **inside})


# What an attacker changes: a path of the repository becomes a link to a place outside it.
SWAPS = {
    "the file": ("sub/.nexus3/NEXUS.md", "../../../outside/NEXUS.md"),
    "its directory": ("sub/.nexus3", "../../outside"),
    "the project": ("sub", "../outside/sub"),
}
# How the file is there before that.
FORMS: dict[str, Callable[[Path], None]] = {
    "a file": lambda _: None,
    "a link to a file": lambda repo: _put_link(repo / "sub/.nexus3/NEXUS.md", "../../docs/NEXUS.md"),
    "in a linked directory": lambda repo: _put_link(repo / "sub/.nexus3", "../docs"),
}


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("form", FORMS)
def test_whenever_a_path_becomes_a_link_nothing_is_read_from_outside(
    repo: Path, monkeypatch: pytest.MonkeyPatch, form: str, swap: str
) -> None:
    FORMS[form](repo)
    calls = len(read_while(repo, monkeypatch, {}).calls)
    toggle = toggler(repo, *SWAPS[swap])

    # Before every call, and for every time between two calls.
    moments = [(start, end) for start, end in combinations(range(calls + 3), 2)]
    results = [read_while(repo, monkeypatch, {start: toggle, end: toggle}).result for start, end in moments]

    assert calls >= 4
    assert not [result for result in results if CANARY in str(result)]
    assert "inside" in results


@pytest.mark.acceptance("T11")
def test_without_descriptors_of_directories_links_are_resolved_first(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HAS_DIRECTORY_DESCRIPTORS", False)
    monkeypatch.setattr("nexus_core.files.read.HAS_DIRECTORY_DESCRIPTORS", False)
    _put_link(repo / "sub/AGENTS.md", "../../outside/AGENTS.md")
    _put_link(repo / "sub/.nexus3/NEXUS.md", "../../docs/NEXUS.md")
    admission = LayerReader(layer(repo))

    assert admission.read_text(repo / "docs/NEXUS.md") == "inside"
    assert admission.read_text(repo / "sub/.nexus3/NEXUS.md") == "inside"
    assert admission.read_text(repo / "sub/AGENTS.md") == SkippedFile(repo / "sub/AGENTS.md", f"leads outside {repo}")


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("path", ["sub/../../outside/NEXUS.md", "sub/.nexus3/../../../outside/NEXUS.md", "../outside"])
def test_two_dots_do_not_lead_outside(repo: Path, path: str) -> None:
    assert LayerReader(layer(repo)).read_bytes(repo / path) == SkippedFile(repo / path, f"leads outside {repo}")


def test_two_dots_may_stay_inside(repo: Path) -> None:
    assert LayerReader(layer(repo)).read_text(repo / "sub/../docs/NEXUS.md") == "inside"


@pytest.mark.acceptance("T11")
def test_another_limit_counts_for_the_users_own_layer_too(repo: Path) -> None:
    own = LayerReader(Layer("global", repo / "sub", "global"))
    _put_link(repo / "sub/AGENTS.md", "../docs/NEXUS.md")

    assert own.read_bytes(repo / "sub/AGENTS.md") == b"inside"
    assert own.read_bytes(repo / "sub/AGENTS.md", root=repo) == b"inside"
    assert isinstance(own.read_bytes(repo / "sub/AGENTS.md", root=repo / "sub"), SkippedFile)


@needs_root
@pytest.mark.acceptance("T6")
def test_what_a_stranger_keeps_from_being_opened_does_not_stop_the_work(repo: Path) -> None:
    path = repo / "sub/AGENTS.md"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        os.chown(path, STRANGER, STRANGER)

        assert LayerReader(layer(repo)).read_text(path) == SkippedFile(path, "belongs to another user")


@needs_root
@pytest.mark.acceptance("T6")
@pytest.mark.parametrize("foreign", ["docs", "docs/NEXUS.md", "sub/AGENTS.md"])
def test_of_a_link_the_owners_of_both_ends_count(repo: Path, foreign: str) -> None:
    _put_link(repo / "sub/AGENTS.md", "../docs/NEXUS.md")
    os.chown(repo / foreign, STRANGER, STRANGER, follow_symlinks=False)

    read = LayerReader(layer(repo)).read_text(repo / "sub/AGENTS.md")

    assert read == SkippedFile(repo / "sub/AGENTS.md", "belongs to another user")


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("secret", [".git/config", ".GIT/config", "sub/.env", ".env.local", ".envrc"])
@pytest.mark.parametrize("is_linked", [True, False])
def test_what_the_user_keeps_in_a_project_is_not_read_for_it(repo: Path, secret: str, is_linked: bool) -> None:
    write_files(repo, {secret: CANARY})
    path = repo / secret
    if is_linked:
        path = repo / "README.md"
        path.symlink_to(repo / secret)

    assert LayerReader(layer(repo)).read_text(path) == SkippedFile(path, "may hold your secrets")


@pytest.mark.parametrize("name", [".env.example", ".github/AGENTS.md", "env.md", ".environment"])
def test_what_only_looks_like_it_is_read(repo: Path, name: str) -> None:
    write_files(repo, {name: "inside"})

    assert LayerReader(layer(repo)).read_text(repo / name) == "inside"


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="open files cannot be counted here")
def test_nothing_stays_open(repo: Path) -> None:
    os.mkfifo(repo / "pipe.md")
    write_files(repo, {"large.md": "x" * (1024 * 1024 + 1), "open.md": "x"})
    (repo / "open.md").chmod(0o666)
    _put_link(repo / "out.md", "../outside/NEXUS.md")
    _put_link(repo / "in.md", "docs/NEXUS.md")
    _put_link(repo / "self.md", "self.md")
    admission = LayerReader(layer(repo))
    before = len(list(OPEN_FILES.iterdir()))

    for name in ("docs/NEXUS", "docs/x/y", "gone", "pipe", "large", "open", "out", "in", "self"):
        outcome(admission, repo / f"{name}.md")

    assert len(list(OPEN_FILES.iterdir())) == before


class Watched:
    """What came of a reading, and which calls of the system it took."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.result: object = None


def read_while(repo: Path, monkeypatch: pytest.MonkeyPatch, events: dict[int, Callable[[], None]]) -> Watched:
    """Read the text of a layer; before the calls with the given numbers, something happens."""
    watched = Watched()

    def watch(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*arguments: Any, **options: Any) -> Any:
            number = len(watched.calls)
            watched.calls.append(name)
            events.get(number, lambda: None)()
            return call(*arguments, **options)

        return watching

    admission = LayerReader(layer(repo))
    with monkeypatch.context() as patched:
        for name in ("open", "lstat", "stat", "fstat", "read", "readlink"):
            patched.setattr(os, name, watch(name, getattr(os, name)))
        watched.result = outcome(admission, repo / "sub/.nexus3/NEXUS.md")
    for number in sorted(events):
        if number >= len(watched.calls):  # it did not come to that
            events[number]()
    return watched


def outcome(admission: LayerReader, path: Path) -> object:
    try:
        return admission.read_text(path)
    except FileError as error:
        return error


def layer(repo: Path) -> Layer:
    return Layer("local", repo / "sub/.nexus3", "local", root=repo / "sub", boundary=repo, in_repository=True)


def toggler(repo: Path, name: str, target: str) -> Callable[[], None]:
    """What puts a link to `target` in the place of `name`, and the other way round."""
    path, spare, moving = repo / name, repo.parent / "spare", repo.parent / "moving"
    spare.symlink_to(target)

    def toggle() -> None:
        path.rename(moving)
        spare.rename(path)
        moving.rename(spare)

    return toggle


def _put_link(path: Path, target: str) -> None:
    if path.is_dir():
        path.rename(path.with_name(f"old-{path.name}"))
    path.unlink(missing_ok=True)
    path.symlink_to(target)
