"""`pytest --table faults`: the tests of some behaviours only, and how much was tried for each, and how much failed."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

BEHAVIOURS = Path(__file__).resolve().parents[1] / "docs/reference/acceptance.toml"
FUZZED = {
    "JSON reader": ["properties/test_json.py"],
    "merge": ["config/test_merge.py"],
    "tags": ["plugins/tagged/test_safety.py", "properties/test_sections.py", "properties/test_rendering.py"],
    "hidden characters, markers": ["properties/test_safe_text.py"],
    "secrets in texts": ["text/test_secrets.py", "config/test_secrets.py"],
    "repair": ["history/test_repair_properties.py", "history/test_validity.py"],
    "truncation": [
        "history/test_select.py",
        "history/test_fit_properties.py",
        "history/test_truncation_point.py",
        "compaction/test_selection.py",
        "compaction/test_planning.py",
    ],
    "transcripts": [
        "transcripts/test_properties.py",
        "transcripts/test_reader_fuzz.py",
        "transfer/test_import_properties.py",
    ],
    "exported sessions": ["transfer/test_damaged_exports.py", "transfer/test_exporter.py"],
    "MCP readers": [
        "plugins/mcp/test_files.py",
        "properties/test_servers_of_other_tools.py",
        "config/test_servers.py",
    ],
    "MCP server": ["plugins/mcp/test_server.py"],
    "RPC server": ["rpc/test_fuzz.py"],
}
"""What is tried with random input, and the files whose tests do so."""
ROWS = {
    "faults": [f"R{number}" for number in (*range(1, 10), *range(13, 19), *range(20, 24))],
    "hostile": [f"T{number}" for number in range(1, 25)],
    "fuzz": list(FUZZED),
}
"""What each table lists."""

_counted = [0]


def count(tried: int) -> None:
    """Say how many cases the running test has tried; a test that does not say so is one case."""
    _counted[0] += tried


@dataclass
class Row:
    tried: int = 0
    failed: int = 0
    skipped: int = 0


class Table:
    """Chooses tests, counts what they try, and prints it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Row] = defaultdict(Row, {row: Row() for row in ROWS[name]})

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        others = [item for item in items if not self.rows_of(item)]
        items[:] = [item for item in items if self.rows_of(item)]
        config.hook.pytest_deselected(items=others)

    def rows_of(self, item: pytest.Item) -> list[str]:
        """The rows of a test; what a case of it is marked with counts more than what all cases are."""
        if self.name == "fuzz":
            is_random = hasattr(getattr(item, "obj", None), "hypothesis") or "texts_come_back" in item.name
            return [row for row, files in FUZZED.items() if is_random and item.path.as_posix().endswith(tuple(files))]
        callspec = getattr(item, "callspec", None)
        own = [mark for mark in getattr(callspec, "marks", ()) if mark.name == "acceptance"]
        named = {row for mark in own or item.iter_markers("acceptance") for row in mark.args}
        return [row for row in ROWS[self.name] if row in named]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        item.user_properties.append(("rows", self.rows_of(item)))
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        _counted[0] = 0
        with examples_counted(item):
            try:
                return (yield)
            finally:
                item.user_properties.append(("tried", _counted[0] or 1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        told: dict[str, Any] = dict(report.user_properties)
        for row in told.get("rows", ()):
            if report.skipped:
                self.rows[row].skipped += 1
                continue
            self.rows[row].tried += told.get("tried", 1)
            self.rows[row].failed += report.failed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        behaviours = tomllib.loads(BEHAVIOURS.read_text(encoding="utf-8"))
        words = {row: said for group in behaviours["group"] for row, said in group["rows"].items()}
        width = max(map(len, self.rows), default=3)
        terminalreporter.section(self.name)
        terminalreporter.line(f"{'row':{width}}  {'tried':>9}  {'failed':>6}  {'skipped':>7}  what")
        for name, row in self.rows.items():
            planned = behaviours["planned"].get(name)
            what = f"planned: {planned}" if planned else words.get(name, "")
            terminalreporter.line(f"{name:{width}}  {row.tried:9,}  {row.failed:6,}  {row.skipped:7,}  {what}".rstrip())
        tried, failed = (sum(getattr(row, part) for row in self.rows.values()) for part in ("tried", "failed"))
        terminalreporter.line(f"{'all':{width}}  {tried:9,}  {failed:6,}")
        if seed := config.getoption("--hypothesis-seed", None):
            terminalreporter.line(f"seed {seed}: make {self.name} SEED={seed} tries the same again")


@contextmanager
def examples_counted(item: pytest.Item) -> Iterator[None]:
    """Each example that Hypothesis makes is a case."""
    handle: Any = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None:
        yield
        return
    inner = handle.inner_test

    @wraps(inner)
    def counting(*arguments: Any, **named: Any) -> Any:
        count(1)
        return inner(*arguments, **named)

    handle.inner_test = counting
    try:
        yield
    finally:
        handle.inner_test = inner


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", choices=ROWS, help="only the tests of these behaviours, with a table of what was tried")


def pytest_configure(config: pytest.Config) -> None:
    if name := config.getoption("--table"):
        config.pluginmanager.register(Table(name), "table")
