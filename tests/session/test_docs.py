"""The programs in the pages about sessions run as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.conftest import ROOT
from tests.dialects.support import Loopback
from tests.session.support import calls, says, streamed

HOW_TO = (ROOT / "docs/how-to/keep-a-session.md").read_text(encoding="utf-8")
PROGRAM, RESUMED, STREAMED = re.findall(r"```python\n(.*?)```", HOW_TO, re.DOTALL)


def test_the_programs_of_the_page_run(
    loopback: Loopback,
    nexus_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    answers = iter(
        [calls("t1", "t2"), says("It expires.", name="msg_2"), streamed("It ", "does ", "too.", name="msg_4")]
    )
    names: dict[str, Any] = {}
    post = anthropic.resources.Messages.create

    def create(self: Any, **arguments: Any) -> Any:
        loopback.answer = next(answers)
        return post(self, **arguments)

    monkeypatch.setattr(anthropic.resources.Messages, "create", create)
    exec(PROGRAM, names)  # noqa: S102 - our own page
    exec(STREAMED, names)  # noqa: S102 - as above
    names["session"].ask("And?")
    names["session"].record(calls("t3", name="msg_3"))
    exec(RESUMED, names)  # noqa: S102 - as above

    assert capsys.readouterr().out == "It expires.\nIt does too.\n"
    assert (names["step"].text, names["step"].done) == ("It does too.", True)
    assert names["session"].pending_calls == ()
    assert (nexus_home / "ledger.db").is_file()
    names["client"].close()
    names["nexus"].close()
