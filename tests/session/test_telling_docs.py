"""What docs/how-to/tell-something-each-turn.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs/how-to/tell-something-each-turn.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.usefixtures("nexus_home")
def test_the_programs_of_the_page_print_what_the_page_shows(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    names: dict[str, Any] = {}
    printed = []

    for program in PROGRAMS:
        exec(program, names)  # noqa: S102 - our own page
        printed.append(capsys.readouterr().out)

    assert printed == SHOWN
    names["nexus"].close()
