"""Launch parameters: variable files, which are read at the start, and addresses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._errors import ServerRefusedError
from nexus_plugins.mcp._launch import find_address_error, prepare_launch, read_env_file
from tests.conftest import Cli
from tests.plugins.mcp.world import define, servers_of

SECRET = "hunter22-of-the-file"  # noqa: S105 - nobody's


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=b", {"A": "b"}),
        ("\ufeffA=b\r\nC=d\r\n", {"A": "b", "C": "d"}),
        ("# ours\n\n  export A = b  \n", {"A": "b"}),
        ("A=b # why", {"A": "b"}),
        ("A=", {"A": ""}),
        ("A= # nothing", {"A": ""}),
        ("A='b # c'", {"A": "b # c"}),
        ('A="b\\n\\"c\\" #"  # why', {"A": 'b\n"c" #'}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A=https://x.example/?y=1&z=2", {"A": "https://x.example/?y=1&z=2"}),
        ("A=${B}", {"A": "${B}"}),
        ("A=1\nA=2", {"A": "2"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_usual(tmp_path: Path, text: str, variables: dict[str, str]) -> None:
    (tmp_path / ".env").write_bytes(text.encode())

    assert read_env_file(tmp_path / ".env", "a", None) == variables


@pytest.mark.parametrize("line", ["just words", "=b", "1A=b", 'A="b', "A='b", "A-B=c", 'A="b" c'])
def test_a_line_that_is_not_understood_is_named_and_not_shown(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"T={SECRET}\n{line} {SECRET}\n")

    with pytest.raises(ConfigError) as caught:
        read_env_file(tmp_path / ".env", "a", None)

    assert caught.value.where == f"{tmp_path}/.env:2"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", ["missing", "a directory", "not text", "too large"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".env"
    if kind == "a directory":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"A=\xff" if kind == "not text" else b"A=" + b"b" * 2**21)

    with pytest.raises(ConfigError, match="variables of server 'a' cannot be read"):
        read_env_file(path, "a", None)


def project(work: Path, cli: Cli, text: str = f"TOKEN={SECRET}\nMODE=slow\n", file: str = ".env") -> None:
    server = {"command": ["x"], "env": {"MODE": "fast"}, "envFile": file}
    write_files(work, {".env": text, ".nexus3/mcp.json": json.dumps({"servers": {"a": server}})})
    assert cli("trust", "allow", "--all", "--yes").code == 0


def test_a_variable_that_is_passed_through_is_passed_if_it_is_set(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_TEST_SET", "1")
    monkeypatch.setenv("NEXUS_TEST_EMPTY", "")
    names = ["NEXUS_TEST_SET", "NEXUS_TEST_EMPTY", "NEXUS_TEST_UNSET"]
    define(nexus_home, a={"command": ["x"], "env_passthrough": names})
    nexus = make_nexus()
    request = nexus.request()

    launch = prepare_launch(servers_of(nexus)["a"], nexus.load(request), request)

    passed = {name: value for name, value in launch.env.items() if name in names}
    assert passed == {"NEXUS_TEST_SET": "1", "NEXUS_TEST_EMPTY": ""}


@pytest.mark.parametrize("file", [".env", "${workspaceFolder}/.env", "sub/../.env"])
def test_a_program_gets_the_variables_and_those_of_env_go_before(
    make_nexus: MakeNexus, work: Path, cli: Cli, file: str
) -> None:
    (work / "sub").mkdir()
    project(work, cli, file=file)
    nexus = make_nexus()
    request = nexus.request()

    launch = prepare_launch(servers_of(nexus)["a"], nexus.load(request), request)

    assert (launch.env["TOKEN"], launch.env["MODE"]) == (SECRET, "fast")
    assert launch.mask(f"it is {SECRET}") == "it is ***"


@pytest.mark.acceptance("T2")
def test_another_file_asks_again(make_nexus: MakeNexus, work: Path, cli: Cli) -> None:
    project(work, cli)
    before = servers_of(make_nexus())["a"].status

    (work / ".env").write_text("TOKEN=other\n")

    assert (before, servers_of(make_nexus())["a"].status) == ("enabled", "not approved")


@pytest.mark.acceptance("T1")
def test_nothing_outside_a_project_is_read_on_its_behalf(
    make_nexus: MakeNexus, work: Path, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "outside").write_text(f"TOKEN={SECRET}")
    (work / "link").symlink_to(tmp_path / "outside")
    for file in ("link", "../outside", str(tmp_path / "outside")):
        project(work, cli, file=file)
        nexus = make_nexus()
        request = nexus.request()

        with pytest.raises(ServerRefusedError, match="outside the project"):
            prepare_launch(servers_of(nexus)["a"], nexus.load(request), request)


@pytest.mark.acceptance("T1", "T2")
@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "DYLD_INSERT_LIBRARIES"]
)
def test_a_file_of_a_project_does_not_say_what_is_loaded(
    make_nexus: MakeNexus, work: Path, cli: Cli, name: str
) -> None:
    project(work, cli, f"{name}=./evil\n")
    nexus = make_nexus()
    request = nexus.request()

    with pytest.raises(ServerRefusedError, match=f"sets {name}"):
        prepare_launch(servers_of(nexus)["a"], nexus.load(request), request)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a FIFO")
@pytest.mark.acceptance("T1")
def test_it_is_not_opened_before_the_server_is_started(cli: Cli, work: Path) -> None:
    os.mkfifo(work / "pipe")  # whoever reads it waits for ever
    server = {"command": ["x"], "envFile": "pipe"}
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": {"a": server}})})

    for command in ("mcp list", "show", "doctor", "mcp export"):
        assert cli(*command.split()).code in {0, 1}


def test_whoever_approves_it_sees_the_file(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": {"a": {"command": "x", "envFile": ".env"}}})})

    assert "environment from: .env" in cli("trust", "status").out


REFUSED = [
    "http://example.com/mcp",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fe80::1]/mcp",
    "https://[::ffff:169.254.169.254]/mcp",
    "https://0.0.0.0/mcp",
    "https://[::]/mcp",
    "https://127.0.0.2/mcp",
    "https://[::ffff:127.0.0.1]/mcp",
    "https://224.0.0.1/mcp",
    "http://192.168.0.1/mcp",
    "http://10.0.0.1/mcp",
    "ftp://example.com/mcp",
    "file:///etc/passwd",
    "gopher://example.com",
    "javascript:alert(1)",
    "//example.com/mcp",
    "https://",
    "https://example.com:99999/mcp",
    "http://[::1",
]


@pytest.mark.acceptance("T23")
@pytest.mark.parametrize("url", REFUSED)
def test_a_project_does_not_lead_to_what_only_this_machine_can_reach(url: str) -> None:
    assert find_address_error(url, own=False)


@pytest.mark.parametrize("url", ["https://93.184.216.34/mcp", "http://localhost:9000", "http://127.0.0.1:9000/mcp"])
def test_an_encrypted_address_and_this_machine_by_its_own_name_are_fine(url: str) -> None:
    assert find_address_error(url, own=False) == ""


def test_the_user_may_connect_to_the_network_at_home() -> None:
    assert find_address_error("http://192.168.0.1/mcp", own=True) == ""


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://", "nonsense"])
def test_what_is_no_address_is_none_for_anybody(url: str) -> None:
    assert find_address_error(url, own=True)
