"""The programs of the how-to run as they are, and it names every attribute of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import export
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.conftest import ROOT
from tests.dialects.support import Loopback, listening
from tests.session.wire import says

PAGE = (ROOT / "docs/how-to/watch-with-opentelemetry.md").read_text(encoding="utf-8")
SETTING_UP, TALKING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


@pytest.mark.usefixtures("seen", "nexus_home")
def test_the_programs_of_the_page_run_and_it_names_what_they_show(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exporter = InMemorySpanExporter()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("OPENAI_BASE_URL", loopback.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(export, "ConsoleSpanExporter", lambda: exporter)
    # A process can do so only once.
    monkeypatch.setattr(
        trace, "set_tracer_provider", lambda given: monkeypatch.setattr(trace, "get_tracer", given.get_tracer)
    )
    loopback.answer = says("openai", 1, "It expires.")
    names: dict[str, Any] = {}

    exec(SETTING_UP, names)  # noqa: S102 - our own page
    exec(TALKING, names)  # noqa: S102 - as above

    assert capsys.readouterr().out == "It expires.\n"
    (span,) = exporter.get_finished_spans()
    assert span.name == "chat gpt-4o"
    named = set(re.findall(r"`(nexus\.[\w.]+)`", PAGE))
    for first, *others in re.findall(r"^\| `(nexus\.[\w.]+?)\.\w+`((?:, `\.\w+`)+)", PAGE, re.MULTILINE):
        named |= {f"{first}{each}" for each in re.findall(r"`(\.\w+)`", others[0])}
    optional = {"nexus.decisions", "nexus.findings", "nexus.cache.expected_tokens", "nexus.cache.blame"}
    told = {name for name in span.attributes or {} if name.startswith("nexus.")}
    assert told - optional == named - optional
    assert optional <= named
    names["client"].close()
