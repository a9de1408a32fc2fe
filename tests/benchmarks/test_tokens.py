from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import tokens
from benchmarks.measuring.counts import build_count_rows
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
    assert code(**{start: 0.3, own: 1.0}) == 0
    assert code(**{start: 0.3, tokens.MESSAGES: 1.2}) == 1


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


# ---- recorded calls -------------------------------------------------------------------------------------------------


def write_transcript(path: Path, counted: Sequence[int], *, pause: int = 1) -> None:
    """A session of Claude Code with so many tokens counted for each call; each adds a thousand words."""
    lines: list[dict[str, Any]] = []
    for number, size in enumerate(counted):
        usage: dict[str, Any] = {
            "input_tokens": 10,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": size - 10,
        }
        asked: dict[str, Any] = {"role": "user", "content": f"{number}: " + "word " * 1000}
        reply: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-20250514",
        }
        said = {**reply, "content": [{"type": "text", "text": "So."}], "usage": {**usage, "output_tokens": 3}}
        for index, message in enumerate((asked, said)):
            minute, second = divmod(number * pause * 60 + index, 60)
            lines.append(
                {
                    "type": message["role"],
                    "uuid": f"{number}-{index}",
                    "parentUuid": f"{number}-0" if index else f"{number - 1}-1" if number else None,
                    "sessionId": "s",
                    "version": "2.0.0",
                    "timestamp": f"2026-03-02T09:{minute:02}:{second:02}.000Z",
                    "message": message,
                }
            )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def count_rows(folder: Path) -> dict[str, float]:
    return {row.name: row.value for row in build_count_rows(folder)}


def test_recorded_calls_are_predicted_from_the_call_before(tmp_path: Path) -> None:
    write_transcript(tmp_path / "a.jsonl", [20_000, 21_200, 22_400, 23_600])

    rows = count_rows(tmp_path)

    assert rows["all models: median error of a predicted call, from the second on"] < 0.005
    assert rows["all models: median error of a first count, by the table"] < 0.05
    assert rows["later calls judged to fit into a window one token too small"] == 0


def test_a_provider_that_counts_otherwise_shows_in_the_first_count(tmp_path: Path) -> None:
    write_transcript(tmp_path / "a.jsonl", [20_000, 22_400, 24_800, 27_200])

    assert count_rows(tmp_path)["all models: median error of a first count, by the table"] > 0.4


def test_tokens_that_no_recorded_byte_explains_are_not_in_the_first_count(tmp_path: Path) -> None:
    write_transcript(tmp_path / "a.jsonl", [20_000, 29_000, 30_200, 31_400, 32_600])

    assert count_rows(tmp_path)["all models: median error of a first count, by the table"] < 0.05


def test_a_pause_explains_what_was_not_cached(tmp_path: Path) -> None:
    write_transcript(tmp_path / "a.jsonl", [20_000, 21_200, 22_400], pause=6)

    rows = count_rows(tmp_path)

    assert rows["claude-code: cache reads that follow from the same beginning"] == 0
    assert rows["claude-code: the same, with the cache's lifetime"] == 1


def test_a_folder_without_counted_calls_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n", encoding="utf-8")

    assert count_rows(tmp_path) == {}
