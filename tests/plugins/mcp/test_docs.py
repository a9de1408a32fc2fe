"""The program of docs/how-to/use-mcp-servers.md runs as it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_plugins.mcp._tools import ToolDefinition, store_catalog
from tests.conftest import ROOT
from tests.dialects.support import Loopback, listening
from tests.plugins.mcp.world import define, script, servers_of, survivors
from tests.session.wire import asks, says

PAGE = (ROOT / "docs/how-to/use-mcp-servers.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as server:
        yield server


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_a_loop_with_the_tools_of_a_server(
    work: Path,
    nexus_home: Path,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(work)
    monkeypatch.setenv("OPENAI_BASE_URL", loopback.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    define(nexus_home, time=script())
    with Nexus(work) as nexus:
        store_catalog(
            nexus_home, servers_of(nexus)["time"], [ToolDefinition("echo", "Says it again.", {"type": "object"})]
        )
    loopback.answers = [asks("openai", 1, "mcp__time__echo", zone="Vienna"), says("openai", 2, "Noon.")]

    names: dict[str, Any] = {}
    exec(PROGRAM, names)  # noqa: S102 - our own page
    names["client"].close()

    first, second = loopback.bodies
    assert [tool["function"]["name"] for tool in first["tools"]] == ["mcp__time__echo"]
    assert second["messages"][-1]["content"] == '["echo", {"zone": "Vienna"}]'
    assert capsys.readouterr().out == "Noon.\n"
    assert survivors(nexus_home) == []
