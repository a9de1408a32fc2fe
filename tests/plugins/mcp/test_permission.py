"""Who has servers at all: no worker, and nobody below the permission level `trusted`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.values.request import Mode

SERVERS = json.dumps({"servers": [{"name": "a", "command": ["x"]}]})
HEADING = "## MCP Servers"


@pytest.mark.acceptance("M-08")
@pytest.mark.parametrize(("level", "there"), [("yolo", True), ("trusted", True), ("sandboxed", False)])
def test_servers_are_there_from_the_level_trusted_on(
    make_nexus: MakeNexus, nexus_home: Path, level: str, *, there: bool
) -> None:
    config = json.dumps({"permissions": {"level": level}})
    write_files(nexus_home, {"mcp.json": SERVERS, "config.json": config})

    assert (HEADING in make_nexus().system_prompt()) is there


@pytest.mark.acceptance("M-08")
@pytest.mark.parametrize(("mode", "there"), [("", True), ("repl", True), ("server", False)])
def test_servers_are_for_the_user_and_not_for_the_clients_of_a_server(
    make_nexus: MakeNexus, nexus_home: Path, mode: Mode, *, there: bool
) -> None:
    write_files(nexus_home, {"mcp.json": SERVERS})

    assert (HEADING in make_nexus().system_prompt(mode=mode)) is there


@pytest.mark.acceptance("M-08")
def test_a_worker_is_told_of_no_servers(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": SERVERS})
    nexus: Nexus = make_nexus()

    requests = [nexus.request(), nexus.request(role="worker", task="Look around.")]
    prompts = [nexus.assemble(request).system_prompt for request in requests]

    assert [HEADING in prompt for prompt in prompts] == [True, False]
