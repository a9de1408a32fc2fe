"""The programs of docs/how-to/speak-another-api.md run as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs/how-to/speak-another-api.md").read_text(encoding="utf-8")
PLUGIN, TALKING, CHECKING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, nexus_home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - nothing else is installed
    """The plugin of the page, where it can be imported."""
    (tmp_path / "acme.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "acme", None)
    monkeypatch.delitem(sys.modules, "acme")
    monkeypatch.chdir(work)


def test_a_session_speaks_it(capsys: pytest.CaptureFixture[str]) -> None:
    exec(TALKING, {})  # noqa: S102 - our own page

    *_, told = TALKING.splitlines()
    assert told == f"# {capsys.readouterr().out.strip()}"


def test_it_keeps_the_contract() -> None:
    exec(CHECKING, {})  # noqa: S102 - as above
