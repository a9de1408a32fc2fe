"""A place with secrets outside it, a hostile repository in it, and the driver that runs the commands there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from nexus_core.testing import write_files
from tests.hostile.repositories import CANARY, Places, Repository

DRIVER = Path(__file__).with_name("driver.py")
TIME_LIMIT = 600  # seconds for all commands, on a busy machine too; what hangs is ended


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    command: str
    code: object
    out: str
    err: str
    effort: float


@dataclass(frozen=True)
class Report:
    """What all commands did in one repository."""

    events: tuple[dict[str, str], ...]
    commands: tuple[Ran, ...]
    memory: int
    places: Places

    def kinds(self) -> set[str]:
        return {event["kind"] for event in self.events}

    @property
    def printed(self) -> str:
        return "".join(ran.out + ran.err for ran in self.commands)

    def command(self, line: str) -> Ran:
        return next(ran for ran in self.commands if ran.command == line)


class Visit(Protocol):
    def __call__(
        self,
        repository: Repository,
        *,
        stream: str = ...,
        prefix: Sequence[str] = ...,
        variables: Mapping[str, str] | None = ...,
    ) -> Report: ...


@pytest.fixture
def visit(tmp_path: Path) -> Visit:
    """Write a repository and run every command in it, all in one process of their own."""
    outside = write_files(
        tmp_path / "outside",
        {
            "secret.md": f"{CANARY}\n",
            "wrong.json": json.dumps({"context": {"ancestor_depth": CANARY}, CANARY: CANARY}, indent=2),
            ".ssh/id_rsa": f"-----BEGIN KEY-----\n{CANARY}\n-----END KEY-----\n",
            ".git/HEAD": "",
            ".git/worktrees/repo/gitdir": "",
            ".nexus3/NEXUS.md": f"{CANARY}\n",
            ".nexus3/config.json": json.dumps({"provider": {"model": CANARY}}),
            ".nexus3/mcp.json": json.dumps({"servers": [{"name": CANARY, "command": ["true"]}]}),
        },
    )
    home = write_files(
        tmp_path / "home", {"secret.md": f"{CANARY}\n", ".ssh/id_rsa": f"{CANARY}\n", ".nexus3/NEXUS.md": "Be brief.\n"}
    )
    marks = tmp_path / "marks"
    marks.mkdir()

    def call(
        repository: Repository,
        *,
        stream: str = "plain",
        prefix: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> Report:
        parent = tmp_path / "shared"
        places = Places(parent / repository.name, parent, outside, marks)
        cwd = repository.write(places)
        before = snapshot(places.parent)
        environment = {
            "HOME": str(home),
            "NEXUS_HOME": str(home / ".nexus3"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "SERVICE_TOKEN": CANARY,
            "TERM": "xterm",
            **(variables or {}),
        }
        finished = subprocess.run(
            [*prefix, sys.executable, DRIVER, places.parent, outside, stream],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        assert (finished.returncode, finished.stderr) == (0, "")
        assert snapshot(places.parent) == before
        document: dict[str, Any] = json.loads(finished.stdout)
        commands = tuple(Ran(**ran) for ran in document["commands"])
        return Report(tuple(document["events"]), commands, document["memory"], places)

    return call


def snapshot(directory: Path) -> dict[str, tuple[int, int, int]]:
    """Everything below a directory, with what changes when it does."""
    facts = {path: path.lstat() for path in directory.rglob("*")}
    return {os.fsdecode(path): (each.st_mode, each.st_size, each.st_mtime_ns) for path, each in facts.items()}
