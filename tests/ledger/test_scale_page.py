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


def test_the_figures_of_the_page_are_no_better_than_those_of_the_results() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    row = r"^\| time of a step with 64 writers / .* \| ([\d,]+) steps/s, median ([\d.]+) ms, 99 % within ([\d.]+) ms;"
    ((rate, median, most),) = re.findall(row, results, re.MULTILINE)
    lost = re.findall(r"^\| of [\d,]+ steps to .*, (?:lost|kept twice) \| (\d+) ", results, re.MULTILINE)

    told = (
        "over 1,000 steps per second, half of them within 30 ms and 99 % within\n200 ms; none was lost or stored twice"
    )
    assert told in PAGE
    assert int(rate.replace(",", "")) > 1000
    assert (float(median) <= 30, float(most) <= 200) == (True, True)
    assert lost == ["0"] * 4


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
