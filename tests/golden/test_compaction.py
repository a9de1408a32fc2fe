"""Compaction: what its reports say, what a model reads afterwards, and what is undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from nexus_core import CompactionReport, Nexus
from tests.golden.cases import Case, without_install
from tests.golden.conftest import Golden, GoldenCase
from tests.golden.recording import SECRET, SETTINGS, summarize
from tests.golden.trees import PLAIN
from tests.golden.world import World

AREA = "compaction"
LABELS = ("undone", "automatic", "refused", "compacted", "cut", "tools", "claude-bakery-1", "codex-0199-weather")
FRESH = {"user/.nexus3/config.json": json.dumps(SETTINGS) + "\n"}

CASES = {
    **{
        f"extractive-{label}": Case(
            f"""-C work session compact {label} --dry-run --json
            -C work session compact {label} --focus rounding --json
            -C work session show {label} --turns 0 --json
            -C work assemble 'And now?' --session {label} --api anthropic""",
            ledger="fresh",
            files=FRESH,
        )
        for label in LABELS
    },
    "text": Case("-C work session compact undone", ledger="fresh", files=FRESH, words=True),
    "nothing-to-compact": Case("-C work session compact chat --json", ledger="fresh", files=FRESH),
    "undo": Case(
        """-C work session compact compacted --undo --dry-run --json
        -C work session compact compacted --undo --json
        -C work session compact compacted --undo --json
        -C work assemble 'And now?' --session compacted --api openai""",
        ledger="fresh",
        files=FRESH,
    ),
    "pinned": Case(
        """-C work session pin undone @undone:reply:1 --json
        -C work session compact undone --json
        -C work assemble 'And now?' --session undone --api anthropic""",
        ledger="fresh",
        files=FRESH,
    ),
}


def _fails(_: object) -> str:
    raise RuntimeError("no model today")


SUMMARIZERS: dict[str, tuple[dict[str, Any], Callable[[Any], str] | None]] = {
    "given": ({}, summarize),
    "given-fails": ({}, _fails),
    "given-says-nothing": ({}, lambda _: ""),
    "given-repeats-a-secret": ({}, lambda _: f"The key is {SECRET}."),
    "extractive-alone": ({"summarisers": ["extractive"]}, None),
    "cached-form": ({"form": "cached"}, summarize),
    "without-evidence": ({"evidence": False}, summarize),
    "little-evidence": ({"evidence_tokens": 40, "user_tokens": 30}, summarize),
    "fidelity-only-warns": ({"fidelity": "warn"}, summarize),
    "fidelity-off": ({"fidelity": "off"}, summarize),
    "secrets-stay": ({"redact_secrets": False}, lambda _: f"The key is {SECRET}."),
    "keeps-three-turns": ({"keep_turns": 3}, summarize),
    "as-system": ({"summary_role": "system", "summary_marker": "[Earlier]"}, summarize),
}
"""By name: the settings, and who summarizes."""


def _reported(world: World, ledger: Path, name: str) -> str:
    """The report, what was asked of the summarizer, and what is sent next."""
    settings, summarizer = SUMMARIZERS[name]
    compaction = SETTINGS["compaction"] | settings  # type: ignore[operator]
    world.write(PLAIN | {"user/.nexus3/config.json": json.dumps(SETTINGS | {"compaction": compaction})})
    copy(ledger, world.home / "ledger.db")
    asked: list[str] = []

    def listening(request: Any) -> str:
        assert summarizer is not None
        asked.append(request.prompt)
        return summarizer(request)

    with Nexus(world.root / "work", summarize=listening if summarizer else None) as nexus:
        report = nexus.session("undone").compact(focus="the rounding")
        assert isinstance(report, CompactionReport)
        world.clock.move()
        body = nexus.session("undone").preview("And now?").to("openai")
    told = [*asked, json.dumps(plain(report), indent=2), json.dumps(body, indent=2, ensure_ascii=False)]
    return without_install(world.mask("\n\n".join(told) + "\n"))


def plain(value: Any) -> Any:
    """A value as JSON has it: records by the names of their fields."""
    fields = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None)
    if fields:
        return {name: plain(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@pytest.mark.parametrize("name", CASES)
def test_a_compaction_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case(AREA, name, CASES[name])


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_a_report_is_as_it_was(name: str, golden: Golden, fresh: dict[Path, Path]) -> None:
    golden("compaction-reports", name, lambda world: _reported(world, fresh[world.root], name))
