"""How a directory is set up: what is planned, and that all of it is written or nothing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from nexus_core import FileError, hookimpl
from nexus_core.host.discovery import PluginPolicy, build_given_candidates
from nexus_core.host.manager import Host
from nexus_core.layers.init import execute_init_plan, plan_init
from nexus_core.plugin import InitFile
from nexus_core.testing import write_files
from nexus_core.types.settings import InitScope

FILES = {"NEXUS.md": "new text\n", "config.json": "{}\n", "rules/style.md": "new rule\n"}
UNWRITABLE = "\ud800"  # cannot be encoded, so that writing it fails


class Offering:
    """A plugin with files for a new directory."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    @hookimpl
    def nexus_init_files(self) -> list[InitFile]:
        return [InitFile(name, text) for name, text in self._files.items()]


def host(files: dict[str, str]) -> Host:
    return Host(build_given_candidates([Offering(files)]), PluginPolicy())


def initialise(
    directory: Path, files: dict[str, str] = FILES, *, scope: InitScope = "local", force: bool = False
) -> None:
    execute_init_plan(plan_init(host(files), directory, scope, force=force))


def tree(root: Path) -> dict[str, str | None]:
    """Every path below `root`, with the content of the files."""
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- what is planned --------------------------------------------------------------------------------------


def test_a_plan_says_what_becomes_of_each_file_and_writes_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old text\n", "config.json": "{}\n"})

    plan = plan_init(host(FILES), tmp_path, "local", force=True)

    assert [(file.path, file.action, file.backup) for file in plan.files] == [
        (tmp_path / "NEXUS.md", "overwritten", tmp_path / "NEXUS.md.bak"),
        (tmp_path / "config.json", "unchanged", None),
        (tmp_path / "rules/style.md", "new", None),
    ]
    assert tree(tmp_path) == {"NEXUS.md": "old text\n", "config.json": "{}\n"}


@pytest.mark.acceptance("I-03")
def test_files_that_exist_are_listed_and_not_overwritten(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old", "rules/style.md": "old"})

    with pytest.raises(FileError, match=r"already exists: NEXUS\.md, rules/style\.md") as caught:
        plan_init(host(FILES), tmp_path, "global", force=False)

    assert caught.value.where == str(tmp_path)
    assert "--force" in str(caught.value)


def test_a_project_gets_the_files_that_it_lacks(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old"})

    plan = plan_init(host(FILES), tmp_path, "local", force=False)
    execute_init_plan(plan)

    assert {file.path.name: file.action for file in plan.files} == {
        "NEXUS.md": "kept",
        "config.json": "new",
        "style.md": "new",
    }
    assert (tmp_path / "NEXUS.md").read_text() == "old"
    assert (tmp_path / "rules/style.md").read_text() == "new rule\n"


def test_a_project_with_all_files_gets_none(tmp_path: Path) -> None:
    write_files(tmp_path, dict.fromkeys(FILES, "old"))

    with pytest.raises(FileError, match="already exists: "):
        plan_init(host(FILES), tmp_path, "local", force=False)


@pytest.mark.acceptance("I-03")
def test_other_files_in_the_directory_do_not_count(tmp_path: Path) -> None:
    write_files(tmp_path, {"trust.json": "{}", "ledger.sqlite": ""})

    initialise(tmp_path, scope="global")

    assert (tmp_path / "NEXUS.md").read_text() == "new text\n"


def test_a_given_content_takes_the_place_of_the_plugins(tmp_path: Path) -> None:
    plan = plan_init(host(FILES), tmp_path, "local", force=False, contents={"config.json": "other", "mcp.json": "more"})

    assert {file.path.name: file.text for file in plan.files} == {
        "NEXUS.md": "new text\n",
        "config.json": "other",
        "style.md": "new rule\n",
        "mcp.json": "more",
    }


def test_without_plugins_there_is_nothing_to_write(tmp_path: Path) -> None:
    initialise(tmp_path / ".nexus3", {})

    assert list(tmp_path.iterdir()) == []


# ---- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("link", ["", "config.json", "rules", "rules/style.md"])
@pytest.mark.parametrize("target", ["there", "missing"])
def test_a_link_is_refused_by_name_and_not_followed(tmp_path: Path, link: str, target: str, force: bool) -> None:
    (tmp_path / "there").mkdir()
    path = tmp_path / "new" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path / target)
    before = tree(tmp_path)

    with pytest.raises(FileError, match="is a link") as caught:
        initialise(tmp_path / "new", force=force)

    assert caught.value.where == str(path)
    assert tree(tmp_path) == before


def test_a_link_above_the_directory_is_the_users_own_affair(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")

    initialise(tmp_path / "home" / ".nexus3", scope="global")

    assert (tmp_path / "disk/.nexus3/NEXUS.md").is_file()


def test_a_link_that_comes_after_the_plan_is_refused(tmp_path: Path) -> None:
    plan = plan_init(host(FILES), tmp_path / "new", "local", force=False)
    (tmp_path / "new").symlink_to(tmp_path)

    with pytest.raises(FileError, match="is a link"):
        execute_init_plan(plan)

    assert not (tmp_path / "NEXUS.md").exists()


def test_a_file_that_comes_after_the_plan_is_not_overwritten(tmp_path: Path) -> None:
    plan = plan_init(host(FILES), tmp_path, "local", force=False)
    write_files(tmp_path, {"config.json": "somebody else's"})

    with pytest.raises(FileError, match="created by another process"):
        execute_init_plan(plan)

    assert tree(tmp_path) == {"config.json": "somebody else's"}


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".nexus3").write_text("file")

    with pytest.raises(FileError, match="not a directory"):
        initialise(tmp_path / ".nexus3", force=True)


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()

    with pytest.raises(FileError, match="not a regular file"):
        initialise(tmp_path, force=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_in_the_place_of_a_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")

    with pytest.raises(FileError, match="not a regular file"):
        initialise(tmp_path, force=True)


# ---- what is kept -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("I-03")
def test_what_is_overwritten_is_kept_beside_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old text\n"})

    initialise(tmp_path, {"NEXUS.md": "new text\n"}, force=True)

    assert tree(tmp_path) == {"NEXUS.md": "new text\n", "NEXUS.md.bak": "old text\n"}


def test_an_older_backup_is_never_overwritten(tmp_path: Path) -> None:
    for text in ("first", "second", "third", "fourth"):
        initialise(tmp_path, {"NEXUS.md": text}, force=True)

    assert tree(tmp_path) == {
        "NEXUS.md": "fourth",
        "NEXUS.md.bak": "first",
        "NEXUS.md.bak1": "second",
        "NEXUS.md.bak2": "third",
    }


def test_a_backup_that_comes_after_the_plan_is_not_overwritten(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old"})
    plan = plan_init(host({"NEXUS.md": "new"}), tmp_path, "local", force=True)
    write_files(tmp_path, {"NEXUS.md.bak": "somebody else's"})

    with pytest.raises(FileError, match="File exists"):
        execute_init_plan(plan)

    assert tree(tmp_path) == {"NEXUS.md": "old", "NEXUS.md.bak": "somebody else's"}


def test_a_file_that_says_the_same_already_is_left_alone(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    before = (tmp_path / "NEXUS.md").stat()

    initialise(tmp_path, force=True)

    assert (tmp_path / "NEXUS.md").stat().st_ino == before.st_ino
    assert set(tree(tmp_path)) == {*FILES, "rules"}


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "NEXUS.md").write_bytes(b"\xff\x00")

    initialise(tmp_path, force=True)

    assert (tmp_path / "NEXUS.md.bak").read_bytes() == b"\xff\x00"


def test_a_file_system_without_hard_links_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"NEXUS.md": "old"})
    monkeypatch.setattr(os, "link", _fail_once(PermissionError(1, "Operation not permitted"), os.link))

    initialise(tmp_path, {"NEXUS.md": "new"}, force=True)

    assert tree(tmp_path) == {"NEXUS.md": "new", "NEXUS.md.bak": "old"}


# ---- who may read it --------------------------------------------------------------------------------------


def test_the_users_own_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    with umask(0o000):
        initialise(tmp_path / "deep" / ".nexus3", scope="global")

    made = [tmp_path / "deep", *(tmp_path / "deep").rglob("*")]
    assert {path: mode(path) for path in made} == {path: 0o700 if path.is_dir() else 0o600 for path in made}


def test_a_backup_of_the_users_own_files_is_private_too(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "old"})
    (tmp_path / "NEXUS.md").chmod(0o666)

    initialise(tmp_path, scope="global", force=True)

    assert mode(tmp_path / "NEXUS.md.bak") == 0o600


@pytest.mark.parametrize(
    ("mask", "file", "directory"), [(0o000, 0o644, 0o755), (0o022, 0o644, 0o755), (0o077, 0o600, 0o700)]
)
def test_a_projects_files_follow_the_umask_and_only_their_owner_can_write(
    tmp_path: Path, mask: int, file: int, directory: int
) -> None:
    with umask(mask):
        initialise(tmp_path / ".nexus3")

    made = [tmp_path / ".nexus3", *(tmp_path / ".nexus3").rglob("*")]
    assert {path: mode(path) for path in made} == {path: directory if path.is_dir() else file for path in made}


def test_the_umask_is_as_before(tmp_path: Path) -> None:
    with umask(0o027):
        initialise(tmp_path)

        assert os.umask(0o027) == 0o027


# ---- all or nothing ---------------------------------------------------------------------------------------


def _fail_once(error: BaseException, real: Callable[..., object], *, after: int = 0) -> Callable[..., object]:
    """A function that works `after` times, fails, and works again."""
    calls = count()

    def call(*arguments: object, **options: object) -> object:
        if next(calls) == after:
            raise error
        return real(*arguments, **options)

    return call


def test_a_failing_write_takes_back_those_before_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "old a", "c.md": "old c", "c.md.bak": "older c"})
    before = tree(tmp_path)

    with pytest.raises(FileError, match="cannot write") as caught:
        initialise(
            tmp_path, {"a.md": "new a", "b/b.md": "new b", "c.md": "new c", "d.md": UNWRITABLE, "e.md": "e"}, force=True
        )

    assert caught.value.where == str(tmp_path / "d.md")
    assert tree(tmp_path) == before


def test_a_failing_write_takes_back_the_directories_too(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot write"):
        initialise(tmp_path / "deep" / ".nexus3", {"a.md": "a", "b/b.md": UNWRITABLE})

    assert list(tmp_path.iterdir()) == []


def test_what_is_taken_back_has_the_mode_it_had(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "old"})
    (tmp_path / "a.md").chmod(0o640)

    with pytest.raises(FileError):
        initialise(tmp_path, {"a.md": UNWRITABLE}, force=True)

    assert mode(tmp_path / "a.md") == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace", "link"])
@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "^C"])
def test_a_failure_at_any_step_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: int, failure: BaseException
) -> None:
    write_files(tmp_path, {"a.md": "old a", "b.md": "old b", "c.md": "old c"})
    before = tree(tmp_path)
    if call == "link":  # and then the copy fails
        monkeypatch.setattr(shutil, "copymode", _fail_once(failure, shutil.copymode))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, _fail_once(failure, getattr(os, call), after=after))
        with pytest.raises((FileError, KeyboardInterrupt)):
            initialise(tmp_path, {"a.md": "new a", "b.md": "new b", "c.md": "new c", "d.md": "new d"}, force=True)

    assert tree(tmp_path) == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FileError, match="cannot write: Not a directory") as caught:
        initialise(tmp_path / "file" / ".nexus3")

    assert str(tmp_path / "file") in str(caught.value.where)


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from nexus_core.layers.init import InitPlan, PlannedFile, execute_init_plan

left = int(sys.argv[2])

def dying(real):
    def call(*arguments, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), 9)
        left -= 1
        return real(*arguments, **options)
    return call

for name in ("link", "open", "chmod", "fsync", "replace", "rename"):
    setattr(os, name, dying(getattr(os, name)))
root = Path(sys.argv[1])
files = [PlannedFile(root / n, f"new {n}", "overwritten", root / f"{n}.bak") for n in ("a.md", "b.md")]
execute_init_plan(InitPlan(root, "global", (*files, PlannedFile(root / "c.md", "new c.md", "new"))))
"""


@pytest.mark.parametrize("after", range(23))
def test_a_process_that_is_killed_leaves_whole_files(tmp_path: Path, after: int) -> None:
    write_files(tmp_path, {"a.md": "old a.md", "b.md": "old b.md"})
    core = Path(__file__).parents[2]

    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(after), str(core)], stderr=subprocess.DEVNULL, check=False
    )

    found = tree(tmp_path)
    assert killed.returncode in {-9, 0}
    assert found["a.md"] in {"old a.md", "new a.md"}
    assert found["b.md"] in {"old b.md", "new b.md"}
    assert found.get("c.md") in {None, "new c.md"}
    for name in ("a.md", "b.md"):
        assert found.get(f"{name}.bak", "old " + name) == "old " + name
        assert found[name] == "old " + name or f"{name}.bak" in found
