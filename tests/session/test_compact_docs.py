"""The programs in the page about compaction run as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.session.compacted import Fake, Words, long_session
from tests.session.conftest import OpenNexus
from tests.session.support import says

PAGE = (ROOT / "docs/how-to/compact-a-conversation.md").read_text(encoding="utf-8")
ASKING, GIVING, CALLING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_programs_of_the_page_run(
    nexus_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nexus_home.is_dir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    exec(compile(ASKING, "page", "exec"), {})  # noqa: S102 - our own page
    exec(compile(GIVING, "page", "exec"), {})  # noqa: S102 - as above

    assert capsys.readouterr().out == "None\n"


def test_a_refused_call_is_made_again_and_shorter(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8, words=40)
    names: dict[str, Any] = {}
    exec(compile(CALLING, "page", "exec"), names)  # noqa: S102 - as above
    sent: list[int] = []

    class Messages:
        """What answers what is short enough."""

        def create(self, *, messages: list[Any], **_: Any) -> Any:
            sent.append(len(messages))
            if len(sent) == 1:
                raise ValueError("prompt is too long")
            return says("Because.", name="msg_a")

    client = type("Client", (), {"messages": Messages()})

    reply = names["call"](client, session, session.ask("Why?"))

    assert sent[1] < sent[0]
    assert session.record(reply).text == "Because."


@pytest.mark.parametrize("setting", ["trigger_ratio", "trigger_tokens", "trigger_turns", "enabled"])
def test_every_way_to_say_when_is_in_the_page(setting: str) -> None:
    assert f'"{setting}": ' in PAGE
