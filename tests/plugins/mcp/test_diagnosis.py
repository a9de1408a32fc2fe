"""What `nexus doctor` says about servers that are about to tell a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli


def arguments_finding(cli: Cli, work: Path, command: list[str]) -> list[str]:
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": [{"name": "x", "command": command}]})})
    findings = json.loads(cli("doctor", "--json").out)["findings"]
    return [each["message"] for each in findings if each["code"] == "secret-in-arguments"]


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["x", "${env:GITHUB_TOKEN}"], "${GITHUB_TOKEN}"),
        (["x", "--api-key", "${X}"], "${X}"),
        (["x", "--header", "Authorization: Bearer ${Y}"], "${Y}"),
        (["x", "--api-key=${input:key}"], "${NEXUS_INPUT_KEY}"),
        (["x", "postgresql://me:${PASSWORD}@db/x"], "${PASSWORD}"),
        (["x", "--token", "ghp_planted0planted0planted"], "1 written out"),
    ],
)
def test_a_secret_in_the_arguments_of_a_server_is_found(cli: Cli, work: Path, command: list[str], named: str) -> None:
    (message,) = arguments_finding(cli, work, command)

    assert f"({named})" in message
    assert "planted" not in message
    assert "pass it in 'env'" in message


@pytest.mark.parametrize(
    "command",
    [["npx", "-y", "server", "."], ["x", "--port", "${PORT}"], ["x", "${workspaceFolder}/a"], ["x", "--root=${HOME}"]],
)
def test_other_arguments_are_not(cli: Cli, work: Path, command: list[str]) -> None:
    assert arguments_finding(cli, work, command) == []


@pytest.mark.acceptance("T10")
def test_a_secret_in_the_environment_of_a_server_is_not_in_its_arguments(cli: Cli, work: Path) -> None:
    server = {"name": "x", "command": ["x"], "env": {"TOKEN": "${GITHUB_TOKEN}"}}
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": [server]})})

    assert "secret-in-arguments" not in cli("doctor").out
