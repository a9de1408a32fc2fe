from __future__ import annotations

from pathlib import Path

from benchmarks import tokens
from benchmarks.measuring.reports import exit_code
from benchmarks.measuring.rows import compare
from benchmarks.measuring.texts import read_messages, read_text
from benchmarks.measuring.venvs import Venv


def test_everything_that_is_compared_is_measured(tmp_path: Path) -> None:
    commands = tokens.list_commands(Venv(tmp_path), {}, tmp_path)
    speeds = {tokens.TEXT, tokens.OWN_TEXT, tokens.MESSAGES, tokens.OWN_MESSAGES, tokens.NEW_MESSAGES, tokens.ESTIMATE}
    measured = {command.name for command in commands} | speeds

    assert {name for row in tokens.COMPARISONS for name in row[:2]} <= measured


def test_a_missed_goal_is_the_exit_code() -> None:
    even = dict.fromkeys({name for row in tokens.COMPARISONS for name in row[:2]}, 1.0)
    start, own = tokens.START.format("o200k_base"), tokens.OWN_START.format("o200k_base")

    def code(**times: float) -> int:
        return exit_code(compare(even | times, tokens.COMPARISONS))

    assert code() == 1
    assert code(**{start: 0.7, own: 1.0}) == 0
    assert code(**{start: 0.7, tokens.MESSAGES: 1.2}) == 1


def test_both_sides_count_the_same_megabyte() -> None:
    assert len(read_text()) == 1_000_000
    assert read_text() == read_text()
    assert len(read_messages()) == 2000


def test_the_worst_text_of_each_way_to_estimate_is_told() -> None:
    shares = {"o200k_base": {"estimate": {"english": -0.2, "json": 0.047}, "characters / 4": {"chinese": 0.68}}}

    ours, theirs = tokens.estimate_rows(shares)

    assert (ours.value, ours.detail, [goal.id for goal in ours.goals]) == (0.047, "json; 2 kinds of text", ["P12"])
    assert (theirs.value, theirs.goals) == (0.68, ())


def test_an_estimate_that_is_too_high_is_not_below() -> None:
    [row] = tokens.estimate_rows({"o200k_base": {"estimate": {"english": -0.2}}})

    assert row.value == 0
