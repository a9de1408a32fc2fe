"""The programs in docs/how-to/use-the-tagged-format.md run as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nexus_plugins.tagged._settings import TaggedSettings
from tests.conftest import ROOT

PAGE = (ROOT / "docs/how-to/use-the-tagged-format.md").read_text(encoding="utf-8")
SESSION, PARSING, PARTS, BUILDER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_programs_about_sessions_run(
    work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nexus_home.is_dir()
    monkeypatch.chdir(work)
    names: dict[str, Any] = {}

    exec(SESSION, names)  # noqa: S102 - our own page
    blocks = capsys.readouterr().out
    exec(PARSING, names)  # noqa: S102 - as above

    assert blocks.startswith("[CAPABILITIES]\n")
    assert "\n\nAda likes green tea.\n" in blocks
    assert capsys.readouterr().out.startswith("Which tea was it? 20")


def test_the_program_of_the_parts_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PARTS, {})  # noqa: S102 - as above

    assert capsys.readouterr().out == "5 <current_time>2025-12-10 16:00:00+08:00</current_time>\n"


def test_the_program_with_a_bus_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(BUILDER, {})  # noqa: S102 - as above

    assert capsys.readouterr().out == "context.build.response success 5\n"


def test_every_setting_is_on_the_page_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", PAGE, re.MULTILINE))

    shown = {name: str(field.default).lower() for name, field in TaggedSettings.model_fields.items()}
    assert {name: default.strip('"').lower() for name, default in rows.items()} == shown
