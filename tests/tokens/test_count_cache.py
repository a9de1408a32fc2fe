"""Counts that processes share through a file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.tokens import count_cache as module
from nexus_core.tokens.count_cache import MAX_CACHE_BYTES, CountCache, get_shared_cache


def key_of(text: str) -> bytes:
    return CountCache.key("words", text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "counts"


def test_what_one_process_kept_another_finds(path: Path) -> None:
    CountCache(path).keep(key_of("text"), 42)

    assert CountCache(path).find(key_of("text")) == 42
    assert CountCache(path).find(key_of("other")) is None


def test_a_second_count_takes_the_place_of_the_first(path: Path) -> None:
    cache = CountCache(path)
    cache.keep(key_of("text"), 1)
    cache.keep(key_of("text"), 2)

    assert cache.find(key_of("text")) == 2


def test_counters_do_not_find_each_others_counts() -> None:
    assert CountCache.key("a", "text") != CountCache.key("b", "text")
    assert CountCache.key("a", "btext") != CountCache.key("ab", "text")


def test_half_a_character_has_a_key() -> None:
    assert len(key_of("\ud800")) == 16


def test_only_the_user_may_read_the_file(path: Path) -> None:
    CountCache(path).keep(key_of("text"), 1)

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_file_stays_below_its_limit_however_much_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUCKET_COUNT", 4)
    cache = CountCache(path)
    for number in range(1000):
        cache.keep(key_of(str(number)), number)

    found = [number for number in range(1000) if cache.find(key_of(str(number))) == number]
    assert path.stat().st_size <= 4 * 8 * 24
    assert len(found) == 4 * 8  # as many as there is room for
    assert 999 in found


def test_the_limit_is_3_megabytes(path: Path) -> None:
    cache = CountCache(path)
    cache.keep(b"\xff" * 16, 1)

    assert path.stat().st_size <= MAX_CACHE_BYTES < 3_200_000


def test_nothing_wrong_is_found_in_a_damaged_file(path: Path) -> None:
    kept = {key_of(str(number)): number for number in range(200)}
    cache = CountCache(path)
    for key, count in kept.items():
        cache.keep(key, count)
    content = bytearray(path.read_bytes())
    generator = random.Random(3)  # noqa: S311 - damage to be repeated, not a secret
    for _ in range(len(content) // 20):
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    path.write_bytes(content)

    assert all(CountCache(path).find(key) in {count, None} for key, count in kept.items())


@given(st.binary(max_size=500), st.binary(min_size=16, max_size=16).filter(any))
def test_whatever_lies_there_nothing_is_found_in_it(content: bytes, key: bytes) -> None:
    path = Path(os.environ["PYTEST_CACHE_SCRATCH"])
    path.write_bytes(content)

    cache = CountCache(path)
    assert cache.find(key) is None
    cache.keep(key, 7)
    assert cache.find(key) == 7


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_CACHE_SCRATCH", str(tmp_path / "scratch"))


def test_a_file_that_is_cut_off_loses_only_what_was_cut(path: Path) -> None:
    cache = CountCache(path)
    keys = [key_of(str(number)) for number in range(300)]
    for key in keys:
        cache.keep(key, 1)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size // 2)

    found = [CountCache(path).find(key) for key in keys]
    assert 0 < found.count(1) < 300
    assert set(found) == {1, None}


def test_a_read_only_file_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CountCache(path).keep(key_of("text"), 1)
    open_file = os.open

    def only_read(name: str, flags: int, mode: int = 0o777) -> int:  # root may write anywhere, so chmod proves nothing
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return open_file(name, flags, mode)

    with monkeypatch.context() as patch:  # pytest itself opens files when it removes the directory of the test
        patch.setattr(os, "open", only_read)
        cache = CountCache(path)
        cache.keep(key_of("other"), 2)

    assert cache.find(key_of("text")) == 1
    assert cache.find(key_of("other")) is None


def test_a_disk_that_fills_up_ends_the_keeping_and_not_the_finding(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    cache = CountCache(path)
    cache.keep(key_of("text"), 1)
    monkeypatch.setattr(os, "pwrite", full)
    cache.keep(key_of("other"), 2)

    assert cache.find(key_of("text")) == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path.parent / "elsewhere")])
def test_what_is_no_file_is_left_alone(path: Path, make: object) -> None:
    path.parent.mkdir()
    make(path)  # type: ignore[operator]

    cache = CountCache(path)
    cache.keep(key_of("text"), 1)

    assert cache.find(key_of("text")) is None
    assert not (path.parent / "elsewhere").exists()


def test_a_file_that_has_another_name_is_left_alone(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path.parent.mkdir()
    path.hardlink_to(precious)

    CountCache(path).keep(key_of("text"), 1)

    assert precious.read_text() == "mine"


def test_what_somebody_else_counted_is_not_believed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CountCache(path).keep(key_of("text"), 1)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)

    assert CountCache(path).find(key_of("text")) is None


def test_without_any_place_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    cache = CountCache(tmp_path / "file" / "counts")
    cache.keep(key_of("text"), 1)

    assert cache.find(key_of("text")) is None


def test_a_count_too_large_for_a_record_is_not_kept(path: Path) -> None:
    cache = CountCache(path)
    cache.keep(key_of("text"), 1 << 40)
    cache.keep(key_of("text"), -1)

    assert cache.find(key_of("text")) is None


def test_without_reads_at_a_place_files_are_read_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    monkeypatch.delattr(os, "pwrite")
    cache = CountCache(path)
    cache.keep(key_of("text"), 42)

    assert cache.find(key_of("text")) == 42


def test_processes_that_write_at_once_do_not_disturb_each_other(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nexus_core.tokens.count_cache import CountCache\n"
        "cache = CountCache(Path(sys.argv[1]))\n"
        "for number in range(2000): cache.keep(cache.key('words', str(number)), number)\n"
        "wrong = [n for n in range(2000) if cache.find(cache.key('words', str(n))) not in (n, None)]\n"
        "print(len(wrong))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]

    assert [process.communicate()[0] for process in running] == ["0\n"] * 4
    cache = CountCache(path)
    assert [cache.find(key_of(str(number))) for number in range(2000)] == list(range(2000))


def test_the_shared_cache_lies_in_the_users_cache_directory(nexus_home: Path, tmp_path: Path) -> None:  # noqa: ARG001 - it moves the cache
    get_shared_cache().keep(key_of("text"), 3)

    assert [path.name for path in (tmp_path / "cache/nexus").iterdir()] == ["token-counts-1"]
    assert get_shared_cache() is get_shared_cache()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the open files are counted through /proc")
def test_a_process_with_many_cache_directories_has_few_of_their_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(number)))
        get_shared_cache().keep(key_of("text"), number)

    is_open = [
        each for each in Path("/proc/self/fd").iterdir() if each.is_symlink() and str(tmp_path) in str(each.readlink())
    ]

    assert 1 <= len(is_open) <= 4
