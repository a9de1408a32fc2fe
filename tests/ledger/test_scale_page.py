"""What docs/explanation/scale.md shows about a fleet happens."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")


def program(directory: Path) -> dict[str, Any]:
    """The program of the page, with ledgers in files."""
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    source = source.replace("postgresql://ledger-", f"sqlite:///{directory}/ledger-").replace('/nexus"', '.db"')
    (directory / "agent").mkdir(exist_ok=True)
    made: dict[str, Any] = {}
    exec(source.replace("/srv/agent", str(directory / "agent")), made)  # noqa: S102 - our own page
    return made


def test_labels_are_spread_over_the_ledgers_and_stay_where_they_are(tmp_path: Path) -> None:
    one, other = program(tmp_path), program(tmp_path)
    labels = [f"session-{number}" for number in range(200)]

    spread = Counter(map(one["shard_of"], labels))

    assert [*map(one["shard_of"], labels)] == [*map(other["shard_of"], labels)]
    assert set(spread) == set(one["SHARDS"])
    assert min(spread.values()) > 60


def test_a_session_is_kept_in_its_ledger_and_in_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = program(tmp_path)
    label = next(name for name in map(str, range(99)) if made["shard_of"](name) == made["SHARDS"][1])
    with made["nexus_for"](label) as nexus:
        nexus.session(label, model="gpt-4o").ask("Hello.")

    assert [path.name for path in sorted(tmp_path.glob("*.db"))] == ["ledger-1.db"]
