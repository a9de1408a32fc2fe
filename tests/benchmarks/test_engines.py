from __future__ import annotations

from benchmarks import engines
from benchmarks.measuring.reports import exit_code
from benchmarks.measuring.rows import compare


def test_everything_that_is_compared_is_measured() -> None:
    inside = {engines.OWN_MESSAGES, engines.NEW_MESSAGES, engines.MESSAGES}

    assert {name for row in engines.COMPARISONS for name in row[:2]} == engines.STARTS.keys() | inside


def test_a_missed_goal_is_the_exit_code() -> None:
    even = dict.fromkeys({name for row in engines.COMPARISONS for name in row[:2]}, 1.0)

    def code(**times: float) -> int:
        return exit_code(compare(even | times, engines.COMPARISONS))

    assert code(**{engines.START: 0.2, engines.NEW_MESSAGES: 0.5}) == 0
    assert code(**{engines.START: 0.3, engines.NEW_MESSAGES: 0.5}) == 1
    assert code(**{engines.START: 0.2, engines.NEW_MESSAGES: 0.6}) == 1
