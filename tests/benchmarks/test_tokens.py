from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script puts the checkout first
    spec = importlib.util.spec_from_file_location("tokens_benchmark", ROOT / "benchmarks/tokens.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_everything_that_is_compared_is_measured(tokens: ModuleType, tmp_path: Path) -> None:
    commands = tokens.list_commands(tokens.Venv(tmp_path), tmp_path, tmp_path)
    speeds = {tokens.TEXT, tokens.OWN_TEXT, tokens.MESSAGES, tokens.OWN_MESSAGES, tokens.NEW_MESSAGES, tokens.ESTIMATE}
    measured = {command.name for command in commands} | speeds

    assert {name for row in tokens.COMPARISONS for name in row[:2]} <= measured


def test_a_missed_goal_is_the_exit_code(tokens: ModuleType) -> None:
    even = dict.fromkeys({name for row in tokens.COMPARISONS for name in row[:2]}, 1.0)
    start, own = tokens.START.format("o200k_base"), tokens.OWN_START.format("o200k_base")

    def code(**times: float) -> int:
        found: int = tokens.exit_code(tokens.compare(even | times, tokens.COMPARISONS))
        return found

    assert code() == 1
    assert code(**{start: 0.9, own: 1.0}) == 0
    assert code(**{start: 0.9, tokens.MESSAGES: 1.2}) == 1


def test_both_sides_count_the_same_megabyte(tokens: ModuleType) -> None:
    assert len(tokens.read_text()) == 1_000_000
    assert tokens.read_text() == tokens.read_text()
    assert len(tokens.read_messages()) == 2000
