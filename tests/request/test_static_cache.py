"""What lies on disk is read again when it has changed, and not otherwise."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

import pytest

from nexus_core import Nexus
from nexus_core.request.static_context import MIN_FILE_AGE_NS, LayerCache
from nexus_core.testing import write_files

WATCHED: dict[int, list[str]] = {}
"""What is opened, by the thread that does it: others may have something to do as well."""


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and (heard := WATCHED.get(get_ident())) is not None:
        heard.append(str(arguments[0]))


sys.addaudithook(_listen)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    yield WATCHED.setdefault(get_ident(), [])
    del WATCHED[get_ident()]


def settle() -> None:
    """Wait until a change of what is there now is certain to show."""
    time.sleep(MIN_FILE_AGE_NS / 1e9 * 1.5)


@pytest.fixture
def fresh(tmp_path: Path, nexus_home: Path) -> Iterator[Callable[[], object]]:
    write_files(
        tmp_path / "work", {"NEXUS.md": "Be brief.\n@more.md\n", "more.md": "More.", ".nexus3/config.json": "{}"}
    )
    write_files(nexus_home, {"NEXUS.md": "Be kind.\n"})
    with Nexus(tmp_path / "work", defaults=False) as nexus:
        loads = LayerCache(lambda _cwd, mode: (request := nexus.request(mode=mode), nexus.load(request)))
        yield lambda: loads.get(nexus.cwd, "repl")[1]


def test_a_look_that_sees_nothing_changed_opens_no_file_and_gives_the_same(fresh: Callable[[], object]) -> None:
    settle()
    before = fresh()

    with opened_files() as heard:
        again = [fresh() for _ in range(5)]

    assert all(each is before for each in again)
    assert heard == []


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def exchange(path: Path, text: str) -> None:
    """Put another file in the place of one, as editors do."""
    path.with_suffix(".new").write_text(text, encoding="utf-8")
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda work, _home: write(work / "NEXUS.md", "Be verbo."),
        lambda work, _home: write(work / "more.md", "Less."),
        lambda work, _home: write(work / "AGENTS.md", "Rules."),
        lambda work, _home: (work / "NEXUS.md").unlink(),
        lambda work, _home: write(work / ".nexus3/config.json", '{"provider": {"model": "gpt-4o"}}'),
        lambda _work, home: write(home / "NEXUS.md", "Be rude."),
        lambda _work, home: write(home / "config.json", '{"provider": {"model": "gpt-4o"}}'),
        lambda work, _home: write_files(work.parent, {".nexus3/NEXUS.md": "Above."}),
        lambda work, _home: exchange(work / "NEXUS.md", "Be other."),
    ],
    ids=["text", "import", "new rules", "gone", "settings", "home text", "home settings", "layer above", "replaced"],
)
def test_every_change_is_seen(
    fresh: Callable[[], object], tmp_path: Path, nexus_home: Path, change: Callable[[Path, Path], object]
) -> None:
    settle()
    before = fresh()

    change(tmp_path / "work", nexus_home)

    assert fresh() is not before
    assert fresh() != before


def test_a_file_that_was_changed_a_moment_ago_is_read_again(fresh: Callable[[], object], tmp_path: Path) -> None:
    (tmp_path / "work/NEXUS.md").write_text("one")
    first = fresh()
    facts = (tmp_path / "work/NEXUS.md").stat()
    (tmp_path / "work/NEXUS.md").write_text("two")
    os.utime(tmp_path / "work/NEXUS.md", ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert fresh() != first


def test_what_was_only_touched_is_the_same(fresh: Callable[[], object], tmp_path: Path) -> None:
    settle()
    before = fresh()

    (tmp_path / "work/NEXUS.md").touch()

    assert fresh() is before
