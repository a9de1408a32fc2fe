"""What `nexus init` writes is what the program loads: the rows I of the specification, from both ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nexus_core.context import Config, ContextLoader
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli

THREE = ["NEXUS.md", "config.json", "mcp.json"]
pytestmark = pytest.mark.usefixtures("user")


@pytest.fixture
def user(nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else than the person who runs the tests."""
    monkeypatch.setenv("HOME", str(nexus_home.parent))


@pytest.mark.acceptance("B-05", "I-08", "F-14", "C-02")
@pytest.mark.parametrize(
    "commands", [["init"], ["init --global"], ["--init-global"], ["init --global", "init"]], ids=str
)
def test_what_init_has_written_loads_as_the_defaults(cli: Cli, work: Path, commands: list[str]) -> None:
    for command in commands:
        assert cli(*command.split()).code == 0

    context = ContextLoader(work).load()

    assert context.config == Config()
    assert (context.mcp_servers, context.loaded.findings) == ([], ())
    assert cli("doctor").code == 0
    assert cli("config", "validate").code == 0


@pytest.mark.acceptance("I-05", "I-06", "I-07", "M-09")
def test_the_templates_for_a_project_have_the_parts_of_the_specification(cli: Cli, work: Path) -> None:
    cli("init")

    text = (work / ".nexus3/NEXUS.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    settings = json.loads((work / ".nexus3/config.json").read_text(encoding="utf-8"))
    headings = [line for line in lines if line.startswith("#")]
    assert headings == ["# Project Configuration", "## Overview", "## Key Files", "## Conventions", "## Notes"]
    hints = [lines[lines.index(heading) + 1] for heading in headings[1:]]
    assert all(hint.startswith("<!-- ") and hint.endswith(" -->") for hint in hints)
    assert list(settings) == ["_comment", "provider", "permissions"]
    assert [list(settings[group]) for group in ("provider", "permissions")] == [["_comment"], ["_comment"]]
    assert json.loads((work / ".nexus3/mcp.json").read_text(encoding="utf-8")) == {"servers": []}


@pytest.mark.acceptance("I-01", "I-02", "C-26")
@pytest.mark.parametrize("command", ["init --global", "--init-global"])
def test_the_users_own_directory_is_a_copy_of_the_defaults(cli: Cli, nexus_home: Path, command: str) -> None:
    assert cli(*command.split()).code == 0

    written = {path.name: path.read_bytes() for path in nexus_home.iterdir()}
    assert written == {name: (ROOT / "defaults" / name).read_bytes() for name in THREE}


@pytest.mark.acceptance("I-03", "C-26", "C-32")
@pytest.mark.parametrize("command", ["init --global", "--init-global"])
@pytest.mark.parametrize("name", [*THREE, "trust.json"])
def test_any_of_the_three_files_stops_it_and_force_overrules(
    cli: Cli, nexus_home: Path, command: str, name: str
) -> None:
    write_files(nexus_home, {name: "{}"})
    is_one = name in THREE

    refused = cli(*command.split())
    left = (nexus_home / name).read_text()
    forced = cli(*command.split(), "--force")

    assert (refused.code, left) == (3 if is_one else 0, "{}")
    assert forced.code == 0
    assert sorted(path.name for path in nexus_home.iterdir() if not path.name.endswith(".bak")) == sorted(
        {*THREE, name}
    )
    assert ((nexus_home / name).read_text() == "{}") is (not is_one)


@pytest.mark.acceptance("I-04")
def test_servers_that_are_there_already_are_copied_when_asked_for(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {"servers.json": '{"mcpServers": {"files": {"command": "npx", "args": ["files"]}}}'})

    assert cli("init", "--global", "--copy-mcp", "servers.json").code == 0

    (server,) = ContextLoader(work).load().mcp_servers
    assert (server.config.name, server.config.command, server.origin) == ("files", ("npx", "files"), "global")
    assert server.source_path == nexus_home / "mcp.json"


@pytest.mark.acceptance("T24", "I-02")
@pytest.mark.parametrize("command", ["init --global", "init --global --force"])
def test_nothing_that_is_written_for_the_user_can_be_read_by_others(cli: Cli, nexus_home: Path, command: str) -> None:
    if "--force" in command:
        write_files(nexus_home, dict.fromkeys(THREE, "{}"))
        for name in THREE:
            (nexus_home / name).chmod(0o666)
    before = os.umask(0)
    try:
        cli(*command.split())
    finally:
        os.umask(before)

    assert {path.name: oct(path.stat().st_mode & 0o077) for path in nexus_home.iterdir()} == dict.fromkeys(
        [path.name for path in nexus_home.iterdir()], "0o0"
    )
