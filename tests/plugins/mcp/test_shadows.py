"""A server of a project that has the name of the user's own takes its place, and whoever looks is told so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli


def servers(*names: str, command: str) -> dict[str, str]:
    return {"mcp.json": json.dumps({"servers": [{"name": name, "command": [command]} for name in names]}, indent=1)}


@pytest.fixture
def both(nexus_home: Path, work: Path) -> None:
    write_files(nexus_home, servers("first", "time", command="mine"))
    write_files(work / ".nexus3", servers("time", "last", command="theirs"))


def listed(cli: Cli) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(cli("mcp", "list", "--json").out)["servers"]}


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_the_more_local_one_is_in_its_place_and_the_other_is_named(cli: Cli, nexus_home: Path) -> None:
    time = listed(cli)["time"]

    assert (time["what"], time["status"]) == ("theirs", "not approved")
    assert time["shadows"] == f"{nexus_home}/mcp.json:9"


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_the_list_and_the_doctor_say_which_file_and_how_to_undo_it(cli: Cli, nexus_home: Path, work: Path) -> None:
    told = (
        f"{work}/.nexus3/mcp.json:3: server 'time' takes the place of your own in {nexus_home}/mcp.json:9, "
        "which is off until you decide; `nexus trust deny /mcp_servers/time` brings it back"
    )

    assert told in cli("mcp", "list").err
    assert f"{told} [shadowed-server]" in cli("doctor").out


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_the_prompt_and_the_status_say_so(cli: Cli) -> None:
    prompt = cli("show").out

    assert "| time | stdio | local | not approved |" in prompt
    assert "time of .nexus3/mcp.json (local) takes the place of the user's own, which is off" in prompt
    assert "time, which hides your own" in cli("status").out
    assert json.loads(cli("status", "--json", "--brief").out)["warnings"]["shadowed-server"] == 1


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_what_is_denied_gives_it_back(cli: Cli, nexus_home: Path) -> None:
    assert cli("trust", "deny", "/mcp_servers/time").code == 0

    time = listed(cli)["time"]
    assert (time["what"], time["status"], time["shadows"]) == ("mine", "enabled", None)
    assert time["path"] == f"{nexus_home}/mcp.json"
    assert "takes the place" not in cli("show").out + cli("mcp", "list").err


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_what_stands_after_a_denied_one_keeps_its_line(cli: Cli) -> None:
    before = listed(cli)["last"]["line"]
    cli("trust", "deny", "/mcp_servers/time")

    assert listed(cli)["last"]["line"] == before == 9
    assert cli("trust", "allow", "/mcp_servers/last", "--yes").code == 0
    assert listed(cli)["last"]["status"] == "enabled"


@pytest.mark.usefixtures("both")
@pytest.mark.acceptance("M-04")
def test_what_is_allowed_takes_its_place_in_silence(cli: Cli) -> None:
    assert cli("trust", "allow", "/mcp_servers/time", "--yes").code == 0

    time = listed(cli)["time"]
    assert (time["what"], time["status"], time["shadows"]) == ("theirs", "enabled", None)


@pytest.mark.acceptance("M-04")
def test_what_is_denied_and_takes_nobodys_place_is_shown_as_denied(cli: Cli, work: Path) -> None:
    write_files(work / ".nexus3", servers("theirs", command="x"))
    cli("trust", "deny", "/mcp_servers/theirs")

    outcome = cli("mcp", "list")

    assert "denied" in outcome.out
    assert "nexus trust" not in outcome.err
    assert "| theirs | stdio | local | denied |" in cli("show").out


@pytest.mark.acceptance("M-04")
def test_an_ancestor_that_was_allowed_comes_back_too(cli: Cli, work: Path) -> None:
    write_files(work / ".nexus3", servers("time", command="above"))
    write_files(work / "sub/.nexus3", servers("time", command="below"))
    assert cli("trust", "allow", "--all", "--yes").code == 0

    here = json.loads(cli("-C", "sub", "mcp", "list", "--json").out)["servers"][0]
    assert (here["what"], here["shadows"]) == ("below", f"{work}/.nexus3/mcp.json:3")
    cli("-C", "sub", "trust", "deny", "/mcp_servers/time")
    assert json.loads(cli("-C", "sub", "mcp", "list", "--json").out)["servers"][0]["what"] == "above"
