"""Code that a user has approved runs as it was approved, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli
from tests.hostile.approved_code import (
    PYTHON,
    UNTRIED,
    WAYS,
    Way,
    apply,
    make,
    mark_of,
    plant_bytecode,
    run_without_nexus,
)
from tests.plugins.mcp.world import SERVER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.acceptance("T2"),
    pytest.mark.skipif(os.name != "posix", reason="shells, links and modes"),
]


def parameters() -> Iterator[object]:
    for name, way in WAYS.items():
        missing = [program for program in way.needs if shutil.which(program) is None]
        yield pytest.param(way, id=name, marks=pytest.mark.skipif(bool(missing), reason=f"needs {missing}"))


def approve(cli: Cli) -> None:
    assert cli("trust", "allow", "--yes").code == 0


def decision(cli: Cli) -> str:
    (part,) = json.loads(cli("trust", "status", "--json").out)["parts"]
    return str(part["decision"])


@pytest.mark.parametrize("way", list(parameters()))
def test_changed_code_of_an_approved_server_does_not_run(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    monkeypatch.chdir(make(work, way))
    approve(cli)
    assert decision(cli) == "allowed"
    apply(work, way)
    run_without_nexus(work, way)
    assert mark_of(work).exists()  # else it would prove nothing
    mark_of(work).unlink()

    outcome = cli("mcp", "test", "x")

    assert outcome.code != 0
    assert "changed since you allowed it" in outcome.out + outcome.err
    assert not mark_of(work).exists()
    assert decision(cli) == "changed"
    assert cli("trust", "diff").code == 1


@pytest.mark.parametrize("way", UNTRIED.values(), ids=UNTRIED)
def test_changed_code_of_a_known_program_asks_again(cli: Cli, work: Path, way: Way) -> None:
    make(work, way)
    approve(cli)
    assert decision(cli) == "allowed"

    apply(work, way)

    assert decision(cli) == "changed"


def test_there_are_enough_ways_to_change_code() -> None:
    assert len(WAYS) >= 100


def test_what_changed_is_named_by_file(cli: Cli, work: Path) -> None:
    make(work, Way({"command": ["sh", "tools/run"]}, {"tools/run": "true\n", "tools/a": "a", "tools/b": "b"}))
    approve(cli)
    write_files(work, {"tools/a": "other", "tools/c": "new"})
    (work / "tools/b").unlink()

    outcome = cli("trust", "diff")

    assert outcome.out.splitlines()[-3:] == ["file changed: tools/a", "file added: tools/c", "file removed: tools/b"]


HARMLESS: dict[str, tuple[list[str], dict[str, str]]] = {
    "a package that is fetched": (
        ["npx", "-y", "server-files", "."],
        {"src/a.js": "1", "README.md": "x", "index.md": "x"},
    ),
    "a package that is fetched, for Python": (["uvx", "mcp-server-git", "--repository", "."], {"src/a.py": "1"}),
    "a word that is also the name of a runner": (
        ["npx", "-y", "server-files", "--mode", "next", "--act"],
        {"src/a.js": "1", "next.config.js": "1"},
    ),
    "a module that is installed": ([PYTHON, "-m", "json.tool", "--help"], {"src/a.py": "1", "helper.py": "1"}),
    "a container": (["docker", "run", "-i", "--rm", "-v", "./data:/data", "image"], {"data/a": "1", "src/a.py": "1"}),
    "a package that is fetched by a shell": (["sh", "-c", "npx -y server-files . --fast"], {"src/a.js": "1"}),
    "a package that is fetched in time": (["timeout", "60", "npx", "-y", "server-files", "."], {"src/a.js": "1"}),
    "an installed program with the name of a directory": (["server-files", "--root", "src"], {"src/a.js": "1"}),
    "a script that enters its own directory": (["sh", "own/run"], {"src/a.py": "1", "README.md": "x"}),
    "a script elsewhere in the project": (["sh", "tools/run"], {"src/a.py": "1", "README.md": "x", "tool/x": "x"}),
    "what checkers and version control keep": (
        ["sh", "tools/run"],
        {"tools/.git/index": "x", "tools/.mypy_cache/x": "1"},
    ),
}


OWN = """#!/bin/sh
set -eu
NAME="${1:-server}"
cd "$(dirname "$0")"
export PORT=8080
exec python3 s.py "$@"
"""


@pytest.mark.parametrize(("command", "files"), HARMLESS.values(), ids=HARMLESS)
def test_work_on_other_files_does_not_ask_again(
    cli: Cli, work: Path, command: list[str], files: dict[str, str]
) -> None:
    make(
        work,
        Way({"command": command}, {"tools/run": "true\n", "own/run": OWN, "own/s.py": "", "data/x": "", "src/x": ""}),
    )
    approve(cli)

    write_files(work, files)

    assert decision(cli) == "allowed"


# ---- while a server is started ------------------------------------------------------------------------------

_armed: list[Callable[[], object]] = []


def _watch(event: str, _arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen" and _armed:
        _armed.pop()()


@pytest.fixture
def at_start() -> Iterator[list[Callable[[], object]]]:
    """What is put in here happens once, after the last look at the code and before the program is there."""
    if not getattr(_watch, "is_there", False):
        sys.addaudithook(_watch)
        _watch.is_there = True  # type: ignore[attr-defined]
    yield _armed
    _armed.clear()


BACK = """
import os, shutil
open({mark!r}, "w").close()
shutil.copy({good!r}, {script!r} + ".new")
os.replace({script!r} + ".new", {script!r})
"""


@pytest.mark.parametrize("is_put_back", [False, True], ids=["exchanged", "exchanged and put back"])
def test_code_that_is_exchanged_during_the_start_is_ended(
    cli: Cli, work: Path, at_start: list[Callable[[], object]], *, is_put_back: bool
) -> None:
    server = SERVER.replace("@EVIL@", "")
    make(work, Way({"command": [PYTHON, "-S", "tools/s.py"]}, {"tools/s.py": server}))
    approve(cli)
    assert cli("mcp", "test", "x").code == 0
    script, good, evil = work / "tools/s.py", work.parent / "good.py", work.parent / "evil.py"
    good.write_text(server)
    back = BACK.format(mark=str(mark_of(work)), good=str(good), script=str(script)) if is_put_back else ""
    evil.write_text(back + server)
    at_start.append(lambda: evil.replace(script))

    outcome = cli("mcp", "test", "x")

    assert at_start == []
    assert outcome.code != 0
    assert "its code changed while it was started" in outcome.out + outcome.err


def test_a_server_that_was_not_exchanged_starts_every_time(cli: Cli, work: Path) -> None:
    make(
        work,
        Way(
            {"command": [PYTHON, "-S", "tools/s.py"]},
            {"tools/s.py": SERVER.replace("@EVIL@", "import helper"), "tools/helper.py": ""},
        ),
    )
    approve(cli)

    assert [cli("mcp", "test", "x").code for _ in range(3)] == [0, 0, 0]
    assert not (work / "tools/__pycache__").exists()


def test_bytecode_that_passes_for_that_of_a_module_is_not_run(cli: Cli, work: Path) -> None:
    server, module = SERVER.replace("@EVIL@", "import helper"), "pass\n" + "#" * 400
    make(work, Way({"command": [PYTHON, "-S", "tools/s.py"]}, {"tools/s.py": server, "tools/helper.py": module}))
    approve(cli)
    plant_bytecode(work, "tools/helper.py", "TIMESTAMP")
    run_without_nexus(work, Way({"command": [PYTHON, "-S", "tools/s.py"]}, {}))
    assert mark_of(work).exists()  # else it would prove nothing
    mark_of(work).unlink()

    outcome = cli("mcp", "test", "x")

    assert outcome.code == 0, outcome.err
    assert not mark_of(work).exists()


def test_a_module_in_the_project_does_not_shadow_one_that_is_installed(cli: Cli, work: Path) -> None:
    make(work, Way({"command": [PYTHON, "-m", "calendar"]}, {"x": ""}))
    approve(cli)
    write_files(work, {"locale.py": f"open({str(mark_of(work))!r}, 'w').close()\n"})

    cli("mcp", "test", "x")

    assert decision(cli) == "allowed"
    assert not mark_of(work).exists()


# ---- more than is covered -----------------------------------------------------------------------------------


def test_what_is_beyond_the_limits_is_said_wherever_one_decides(cli: Cli, work: Path) -> None:
    files = {f"tools/data/{number:04}": "" for number in range(2_050)}
    make(work, Way({"command": ["sh", "tools/run"]}, {"tools/run": "true\n", **files}))

    shown = [cli("trust", "allow", "--dry-run"), cli("trust", "allow", "--yes"), cli("trust", "status"), cli("doctor")]

    for outcome in shown:
        assert "beyond the 2,000 files" in outcome.out + outcome.err
    assert "uncovered-code" in shown[-1].out


def test_a_new_file_beyond_the_limits_still_asks_again(cli: Cli, work: Path) -> None:
    files = {f"tools/data/{number:04}": "" for number in range(2_050)}
    make(work, Way({"command": ["sh", "tools/run"]}, {"tools/run": "true\n", **files}))
    approve(cli)

    write_files(work, {"tools/data/9999": ""})

    assert decision(cli) == "changed"


def test_a_link_to_the_outside_is_named_as_not_covered(cli: Cli, work: Path) -> None:
    write_files(work.parent, {"outside": "x"})
    make(work, Way({"command": ["sh", "tools/run"]}, {"tools/run": "true\n"}, links={"tools/away": "../../outside"}))

    outcome = cli("trust", "allow", "--yes")

    assert "links that lead outside the project: tools/away" in outcome.err
