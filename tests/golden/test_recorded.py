"""The ledger: what is recorded now is what was recorded when the goldens were begun."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.golden.cases import thread
from tests.golden.test_replay import REPLIES
from tests.golden.world import World

IMPORTED = (
    "claude-bakery-1",
    "claude-bakery-1/agent-agent-7",
    "claude-bakery-1/fork-1",
    "codex-0199-weather",
    "codex-0199-weather/rolled-back-1",
    "pi-5d0c-garden",
    "pi-5d0c-garden/fork-1",
    "chatgpt-walk-1",
    "chatgpt-walk-1/fork-1",
    "messages",
)
_DIGEST = re.compile(r"\b[0-9a-f]{32,}\b")


def rows(database: Path, label: str) -> str:
    """A session and its steps, column by column; digests by their place, since most are of texts with a path."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("select * from sessions where label = ?", (label,)).fetchall()
        for step, _ in thread(database, label):
            found += connection.execute("select * from steps where id = ?", (step,)).fetchall()
        held = sorted(row["name"] for row in connection.execute("select name from sqlite_schema"))
    told = "\n\n".join("\n".join(f"{name}: {row[name]}" for name in row.keys()) for row in found)  # noqa: SIM118 - a Row
    places: dict[str, str] = {}
    told = _DIGEST.sub(lambda digest: places.setdefault(digest[0], f"<digest {len(places)}>"), told)
    return re.sub(r"nexus-net-\d{3}", "nexus-net-000", f"{told}\n\n{held}")


@pytest.mark.parametrize("label", [*REPLIES, *IMPORTED])
def test_a_session_is_recorded_as_it_was(
    label: str, stored: dict[Path, Path], fresh: dict[Path, Path], worlds: list[World]
) -> None:
    root = worlds[0].root

    assert rows(fresh[root], label).splitlines() == rows(stored[root], label).splitlines()


def test_every_session_is_compared(stored: dict[Path, Path], worlds: list[World]) -> None:
    with closing(sqlite3.connect(stored[worlds[0].root])) as connection:
        labels = {label for (label,) in connection.execute("select label from sessions")}

    assert {label for label in labels if not label.startswith("manager/")} == {*REPLIES, *IMPORTED}


def test_every_reply_of_the_stored_ledger_is_replayed(stored: dict[Path, Path], worlds: list[World]) -> None:
    """What was sent before each reply is written as a body for its own API, which checks it as a call is checked."""
    (world, *_) = worlds
    replies = [step for label in REPLIES for step, kind in thread(stored[world.root], label) if kind == "reply"]
    with world.entered(), Nexus(world.root / "work", ledger=f"sqlite:///{stored[world.root]}") as nexus:
        bodies = [nexus.replay(step).to("anthropic") for step in replies]

    assert len(bodies) == sum(REPLIES.values())
    assert all(body["messages"] for body in bodies)
