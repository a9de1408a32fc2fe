"""The program of the page for users of pydantic-ai, with the model that pydantic-ai has for tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import ROOT
from tests.contract.test_readme import blocks

PAGE = ROOT / "docs/how-to/adopt-from-pydantic-ai.md"


@pytest.mark.slow
@pytest.mark.usefixtures("nexus_home")
def test_the_programs_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pydantic_ai")
    write_files(tmp_path, {"work/AGENTS.md": "Answer in verse."})
    monkeypatch.chdir(tmp_path / "work")
    programs = blocks("python", PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}

    asyncio.set_event_loop(loop := asyncio.new_event_loop())  # pydantic-ai would leave its own open
    try:
        exec(programs[0].replace("openai:gpt-4o", "test"), names)  # noqa: S102 - a page of the documentation
        result = names["result"]
        exec(programs[1].replace("openai:gpt-4o", "test"), names)  # noqa: S102 - as above
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    exec(programs[2], names)  # noqa: S102 - as above

    assert len(programs) == 3
    assert "Answer in verse." in result.all_messages()[0].instructions  # type: ignore[attr-defined]
    assert capsys.readouterr().out.splitlines() == [*["success (no tool calls)"] * 2, "4 messages"]
