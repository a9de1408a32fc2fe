"""An approval holds for exactly what was approved: nothing else asks again, and anything else does."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core.config.jsonc import parse_json
from nexus_core.testing import write_files
from nexus_core.trust.store import TrustStore
from tests.trust.conftest import HTTP, STDIO, server_part

Change = Callable[[dict[str, Any], Path], object]


def _append(root: Path, name: str, text: str) -> None:
    path = root / name
    path.write_text(path.read_text() + text)


def _relink(root: Path, name: str, target: str) -> None:
    (root / name).unlink()
    (root / name).symlink_to(root / target)


def _plant(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(b"\x01\x02\r\n\x01\0\0\0evil")


def _appear(root: Path, name: str) -> None:
    (root / name).write_text("new\n")


STDIO_MUTATIONS: dict[str, Change] = {
    "other name": lambda server, _: server.update(name="fi1es"),
    "other command": lambda server, _: server.update(command="./bin/other"),
    "command that does not exist": lambda server, _: server.update(command="./bin/missing"),
    "command as a list": lambda server, _: server.update(command=["./bin/serve"]),
    "command with an argument": lambda server, _: server.update(command="./bin/serve --evil"),
    "command with a blank": lambda server, _: server.update(command="./bin/serve "),
    "command from the path": lambda server, _: server.update(command="serve"),
    "no command": lambda server, _: server.pop("command"),
    "argument added at the end": lambda server, _: server["args"].append("--evil"),
    "argument added at the start": lambda server, _: server["args"].insert(0, "--evil"),
    "argument removed": lambda server, _: server["args"].pop(),
    "arguments exchanged": lambda server, _: server["args"].reverse(),
    "argument changed": lambda server, _: server["args"].__setitem__(3, "8081"),
    "argument in capitals": lambda server, _: server["args"].__setitem__(2, "--PORT"),
    "argument with a blank": lambda server, _: server["args"].__setitem__(3, "8080 "),
    "argument empty": lambda server, _: server["args"].__setitem__(3, ""),
    "argument as a number": lambda server, _: server["args"].__setitem__(3, 8080),
    "argument with a hidden character": lambda server, _: server["args"].__setitem__(3, "8080\u200b"),
    "two arguments joined": lambda server, _: server["args"].__setitem__(slice(2, 4), ["--port 8080"]),
    "no arguments": lambda server, _: server.pop("args"),
    "value of the environment": lambda server, _: server["env"].update(MODE="slow"),
    "value of the environment emptied": lambda server, _: server["env"].update(MODE=""),
    "name added to the environment": lambda server, _: server["env"].update(LD_PRELOAD="evil.so"),
    "name removed from the environment": lambda server, _: server["env"].pop("MODE"),
    "name changed in the environment": lambda server, _: server["env"].update(MODUS=server["env"].pop("MODE")),
    "values exchanged in the environment": lambda server, _: server["env"].update(
        GITHUB_TOKEN=server["env"]["MODE"], MODE=server["env"]["GITHUB_TOKEN"]
    ),
    "no environment": lambda server, _: server.pop("env"),
    "other directory": lambda server, _: server.update(cwd="."),
    "no directory": lambda server, _: server.pop("cwd"),
    "address besides the command": lambda server, _: server.update(url="https://evil.example.com"),
    "headers besides the command": lambda server, _: server.update(headers={"X": "y"}),
    "other transport": lambda server, _: server.update(type="sse"),
    "disabled": lambda server, _: server.update(enabled=False),
    "variable passed on": lambda server, _: server["env_passthrough"].append("AWS_SECRET_ACCESS_KEY"),
    "unknown setting changed": lambda server, _: server.update(timeout=31),
    "unknown setting added": lambda server, _: server.update(sandbox="off"),
    "script changed": lambda _, root: _append(root, "tools/server.js", "evil();\n"),
    "script deleted": lambda _, root: (root / "tools/server.js").unlink(),
    "script replaced by a link": lambda _, root: _relink(root, "tools/server.js", "tools/unrelated.js"),
    "file of an option changed": lambda _, root: _append(root, "tools/conf/app.ini", "evil = 1\n"),
    "program changed": lambda _, root: _append(root, "tools/bin/serve", "evil\n"),
    "program no longer a program": lambda _, root: (root / "tools/bin/serve").chmod(0o644),
    "script of that name in the root": lambda _, root: _appear(root, "server.js"),
    "file beside the script changed": lambda _, root: _append(root, "tools/sibling.js", "evil();\n"),
    "file beside the script deleted": lambda _, root: (root / "tools/sibling.js").unlink(),
    "file beside the script added": lambda _, root: _appear(root, "tools/new.js"),
    "bytecode that is compared with nothing": lambda _, root: _plant(root, "tools/__pycache__/y.cpython-313.pyc"),
    "program among Nexus's own files": lambda _, root: _plant(root, "tools/.nexus3/tool/run"),
    "file that an argument happened to name": lambda _, root: _appear(root, "tools/8080"),
}
HTTP_MUTATIONS: dict[str, Change] = {
    "other host": lambda server, _: server.update(url="https://mcp.examp1e.com/v1?tenant=a"),
    "other path": lambda server, _: server.update(url="https://mcp.example.com/v2?tenant=a"),
    "other query": lambda server, _: server.update(url="https://mcp.example.com/v1?tenant=b"),
    "other scheme": lambda server, _: server.update(url="http://mcp.example.com/v1?tenant=a"),
    "user in the address": lambda server, _: server.update(url="https://me@mcp.example.com/v1?tenant=a"),
    "value of a header": lambda server, _: server["headers"].update({"X-Team": "evil"}),
    "header added": lambda server, _: server["headers"].update({"X-Evil": "1"}),
    "header removed": lambda server, _: server["headers"].pop("X-Team"),
    "header renamed": lambda server, _: server["headers"].update({"X-Crew": server["headers"].pop("X-Team")}),
    "command besides the address": lambda server, _: server.update(command=["node"]),
}
MUTATIONS = [
    *(pytest.param(STDIO, change, id=name) for name, change in STDIO_MUTATIONS.items()),
    *(pytest.param(HTTP, change, id=name) for name, change in HTTP_MUTATIONS.items()),
]


def _reparsed(server: dict[str, Any], text: str) -> None:
    """Make of a server what a file with this text says."""
    value = parse_json(text, comments=True).value
    assert isinstance(value, dict)
    server.clear()
    server.update(value)


def _touch(root: Path, *names: str) -> None:
    for name in names:
        os.utime(root / name, (1, 1))


REFORMATTINGS: dict[str, Change] = {
    "indented": lambda server, _: _reparsed(server, json.dumps(server, indent=8)),
    "in one line": lambda server, _: _reparsed(server, json.dumps(server, separators=(",", ":"))),
    "keys sorted": lambda server, _: _reparsed(server, json.dumps(server, sort_keys=True)),
    "keys backwards": lambda server, _: _reparsed(server, json.dumps(dict(reversed(server.items())))),
    "environment backwards": lambda server, _: server.update(env=dict(reversed(server["env"].items()))),
    "comment": lambda server, _: _reparsed(server, json.dumps(server).replace("{", "{ // why\n", 1)),
    "comment as a key": lambda server, _: server.update(_comment="why", url=None, headers={}),
    "characters as escapes": lambda server, _: _reparsed(server, json.dumps(server).replace("s", "\\u0073")),
    "times of its files": lambda _, root: _touch(root, "tools/bin/serve", "tools/server.js", "tools/conf/app.ini"),
    "file elsewhere": lambda _, root: _append(root, "docs/unrelated.js", "more();\n"),
    "record of version control": lambda _, root: _append(root, "tools/.git/HEAD", "more\n"),
    "bytecode that Python wrote": lambda _, root: _append(root, "tools/__pycache__/x.cpython-313.pyc", "more\n"),
    "Nexus's own files": lambda _, root: write_files(
        root, {"tools/.nexus3/NEXUS.md": "x", "tools/.nexus3/mcp.json": "{}"}
    ),
}


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize(("server", "change"), MUTATIONS)
def test_any_change_to_an_approved_server_asks_again(
    project: Path, home: Path, server: dict[str, Any], change: Change
) -> None:
    approved, changed = copy.deepcopy(server), copy.deepcopy(server)
    TrustStore(home).allow([server_part(approved, project)])
    assert TrustStore(home).decide(server_part(approved, project)) == "allowed"

    change(changed, project)

    assert TrustStore(home).decide(server_part(changed, project)) == "changed"


@pytest.mark.acceptance("T2")
def test_no_fewer_than_forty_changes_are_tried() -> None:
    assert len(MUTATIONS) >= 40


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize("change", REFORMATTINGS.values(), ids=REFORMATTINGS)
def test_what_means_the_same_does_not_ask_again(project: Path, home: Path, change: Change) -> None:
    server = copy.deepcopy(STDIO)
    TrustStore(home).allow([server_part(server, project)])

    change(server, project)

    assert TrustStore(home).decide(server_part(server, project)) == "allowed"


@pytest.mark.acceptance("T2")
def test_another_program_first_in_the_path_asks_again(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    (second / "serve").write_text("#!/bin/sh\n")
    (second / "serve").chmod(0o755)
    monkeypatch.setenv("PATH", f"{first}:{second}")
    server = {"name": "files", "command": "serve"}
    TrustStore(home).allow([server_part(server, project)])

    (first / "serve").write_text("#!/bin/sh\n")
    (first / "serve").chmod(0o755)

    assert TrustStore(home).decide(server_part(server, project)) == "changed"


def test_the_same_server_in_another_project_is_not_approved(project: Path, home: Path, tmp_path: Path) -> None:
    part = server_part(STDIO, project)
    TrustStore(home).allow([part])
    clone = tmp_path / "clone"
    project.rename(clone)

    decision = TrustStore(home).decide(server_part(STDIO, clone))

    assert decision == "pending"


def test_a_project_reached_through_a_link_is_the_same_project(project: Path, home: Path, tmp_path: Path) -> None:
    TrustStore(home).allow([server_part(STDIO, project)])
    link = tmp_path / "link"
    link.symlink_to(project)

    decision = TrustStore(home).decide(server_part(STDIO, link))

    assert decision == "allowed"


def test_going_back_to_what_was_approved_before_the_last_approval_asks_again(project: Path, home: Path) -> None:
    old, new = server_part(STDIO, project), server_part({**STDIO, "args": []}, project)
    TrustStore(home).allow([old])
    TrustStore(home).allow([new])

    decision = TrustStore(home).decide(old)

    assert decision == "changed"
