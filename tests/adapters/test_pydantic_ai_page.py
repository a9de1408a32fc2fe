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
def test_an_agent_reads_the_instructions_of_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pydantic_ai")
    write_files(tmp_path, {"work/AGENTS.md": "Answer in verse."})
    monkeypatch.chdir(tmp_path / "work")
    (program,) = blocks("python", PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}

    asyncio.set_event_loop(loop := asyncio.new_event_loop())  # pydantic-ai would leave its own open
    try:
        exec(program.replace("openai:gpt-4o", "test"), names)  # noqa: S102 - a page of the documentation
    finally:
        loop.close()
        asyncio.set_event_loop(None)

    result = names["result"]
    assert "Answer in verse." in result.all_messages()[0].instructions  # type: ignore[attr-defined]
    assert capsys.readouterr().out.strip() == "success (no tool calls)"
