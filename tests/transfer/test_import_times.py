"""Times of imported steps."""

from __future__ import annotations

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from tests.transfer.support import assistant, calls, import_lines, steps_of, user


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("2026-03-02T09:00:24.123Z", 1_772_442_024_123),
        ("2026-03-02T11:00:24.123+02:00", 1_772_442_024_123),
        ("2026-03-02T09:00:24.123456", 1_772_442_024_123),
        ("1772442024.123", 1_772_442_024_123),
        ("2026-03-02", 1_772_409_600_000),
    ],
)
def test_step_is_created_at_the_time_of_its_message(ledger: MemoryLedger, text: str, moment: int) -> None:
    import_lines(ledger, [user("u", None, timestamp=text)])

    assert [step.created for step in steps_of(ledger, "claude-s-1")] == [moment]


@pytest.mark.parametrize(
    "text", ["", "yesterday", "1969-12-31T23:59:59Z", "nan", "inf", "1e300", "-1", "0001-01-01T00:00:00+23:59"]
)
def test_step_with_an_impossible_time_is_created_with_the_step_before(ledger: MemoryLedger, text: str) -> None:
    before = user("u", None, timestamp="1970-01-01T00:00:05Z")
    import_lines(ledger, [before, assistant("a", "u") | {"timestamp": text}])

    assert [step.created for step in steps_of(ledger, "claude-s-1")] == [5000] * 2


def test_step_without_a_time_is_created_with_the_step_before(ledger: MemoryLedger) -> None:
    first = user("u", None)
    import_lines(ledger, [first, calls("a", "u", "t1") | {"timestamp": "1970-01-01T00:00:05Z"}, assistant("b", "a")])

    assert [step.created for step in steps_of(ledger, "claude-s-1")] == [5000] * 4


def test_times_do_not_change_the_order_of_steps(ledger: MemoryLedger) -> None:
    times = ("1970-01-01T00:00:09Z", "1970-01-01T00:00:01Z")
    import_lines(ledger, [user("u", None, timestamp=times[0]), assistant("a", "u") | {"timestamp": times[1]}])

    assert [(step.kind, step.created) for step in steps_of(ledger, "claude-s-1")] == [("input", 9000), ("reply", 1000)]
