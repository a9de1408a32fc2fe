"""The ledger: what is recorded now is what was recorded when the goldens were begun."""

from __future__ import annotations

import json
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
COMPACTED = ("compacted", "undone", "automatic", "refused")
"""Conversations that were summarised. How that is done may change, and with it the sizes of later calls. The replays
prove that the stored summaries are still sent as they are."""
SUMMARIZED = {
    "summary",
    "prose",
    "facts",
    "words",
    "fidelity",
    "first_kept",
    "pinned",
    "tokens_before",
    "tokens_after",
    "gains",
    "sent",
}
"""The data of a step that depends on it."""
COUNTED_COLUMNS, COUNTED = ("tokens", "total", "counter"), {"all_tokens", "sizes"}
"""Where the tokenizer of a model is not public, or none is used, as in imports, tokens are estimated. How that is done
may change; a step has the name of its counter, and is counted again by another one."""
SENT = {"sent"}
"""The size of a call, which had a safety margin for estimates when the goldens were begun."""
ADDED = {"sender"}
"""What is recorded since then in addition: the sender for whom a worker was created."""
_TOKENS = re.compile(r'"tokens": \d+')
_DIGEST = re.compile(r"\b[0-9a-f]{32,}\b")


def rows(database: Path, label: str, *, is_estimated: bool) -> str:
    """A session and its steps, column by column; digests by their place, since most are of texts with a path."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("select * from sessions where label = ?", (label,)).fetchall()
        for step, _ in thread(database, label):
            found += connection.execute("select * from steps where id = ?", (step,)).fetchall()
        held = sorted(row["name"] for row in connection.execute("select name from sqlite_schema"))
    left_out = SENT | ADDED | (SUMMARIZED if label in COMPACTED else set()) | (COUNTED if is_estimated else set())
    told = "\n\n".join("\n".join(f"{name}: {column(row, name, left_out)}" for name in row.keys()) for row in found)  # noqa: SIM118 - a Row
    places: dict[str, str] = {}
    told = _DIGEST.sub(lambda digest: places.setdefault(digest[0], f"<digest {len(places)}>"), told)
    return re.sub(r"nexus-net-\d{3}", "nexus-net-000", f"{told}\n\n{held}")


def has_estimated_counts(database: Path, label: str) -> bool:
    """True if the counter of a step estimates, or corrects for a tokenizer that is not public."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        steps = [step for step, _ in thread(database, label)]
        found = [connection.execute("select counter from steps where id = ?", (step,)).fetchone() for step in steps]
    return any("*" in counter or counter == "estimate" for (counter,) in found)


def column(row: sqlite3.Row, name: str, left_out: set[str]) -> object:
    """A value of a row, without what may change: some of the data of a step, and counts that are estimates."""
    if name in COUNTED_COLUMNS and left_out >= COUNTED:
        return "estimated"
    if name != "data":
        return row[name]
    data = json.dumps({key: value for key, value in json.loads(row[name]).items() if key not in left_out})
    return _TOKENS.sub("", data) if left_out >= COUNTED else data


@pytest.mark.parametrize("label", [*REPLIES, *IMPORTED])
def test_a_session_is_recorded_as_it_was(
    label: str, stored: dict[Path, Path], fresh: dict[Path, Path], worlds: list[World]
) -> None:
    root = worlds[0].root
    is_estimated = has_estimated_counts(fresh[root], label)
    now, then = (rows(each[root], label, is_estimated=is_estimated) for each in (fresh, stored))

    assert now.splitlines() == then.splitlines()


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
