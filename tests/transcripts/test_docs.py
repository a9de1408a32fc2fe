"""What docs/reference/transcripts.md says is true."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import get_args

import pytest

from nexus_core.transcripts.base import LineOutcome
from tests.conftest import ROOT
from tests.transcripts.support import SAMPLES, sample

PAGE = (ROOT / "docs/reference/transcripts.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "claude.jsonl", tmp_path / "session.jsonl")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(code, {})  # noqa: S102 - our own page

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("(21,) user Summary: the user wants the rye loaf")
    assert "'compaction': (20, 21), 'merged': (5, 6, 8)" in lines[-1]


def test_every_format_and_every_outcome_is_listed() -> None:
    formats = {sample(path.name).format for path in SAMPLES.iterdir()}

    assert {name for name in formats if f"| `{name}` |" not in PAGE} == set()
    assert {outcome for outcome in get_args(LineOutcome) if f"`{outcome}`" not in PAGE} == set()
