"""What docs/how-to/use-the-prompt-cache.md shows is true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from nexus_core.types.assembled import BreakpointPlace
from tests.conftest import ROOT
from tests.dialects.support import Loopback, listening
from tests.session.support import says

PAGE = (ROOT / "docs/how-to/use-the-prompt-cache.md").read_text(encoding="utf-8")
PROGRAM, SHOWN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


@pytest.mark.usefixtures("nexus_home")
def test_the_programs_of_the_page_run(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "NEXUS.md").write_text("Be brief about it.\n" * 400)
    monkeypatch.chdir(work)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    loopback.answer = says("It expires.")
    names: dict[str, Any] = {}

    exec(PROGRAM, names)  # noqa: S102 - our own page
    exec(SHOWN, names)  # noqa: S102 - as above

    first, *places = capsys.readouterr().out.splitlines()
    assert first == "200 of 240 tokens came from the cache"
    assert [line.split()[:2] for line in places] == [["static", "-1"], ["history", "0"], ["newest", "1"]]
    assert all(line.endswith("tokens 5m") for line in places)
    names["client"].close()
    names["nexus"].close()


def test_every_place_is_on_the_page() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(get_args(BreakpointPlace))
