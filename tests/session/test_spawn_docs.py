"""The programs of docs/how-to/spawn-a-worker.md run as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from tests.conftest import ROOT
from tests.dialects.support import Loopback
from tests.session.wire import asks, says

PAGE = (ROOT / "docs/how-to/spawn-a-worker.md").read_text(encoding="utf-8")
PROGRAM, AT_ONCE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def place(work: Path, nexus_home: Path, loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert nexus_home.is_dir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return work


def delegates(number: int, *tasks: str) -> dict[str, Any]:
    reply, *others = [asks("anthropic", number + at, "delegate", task=task) for at, task in enumerate(tasks)]
    reply["content"] += [block for other in others for block in other["content"]]
    return reply


def results(body: dict[str, Any]) -> list[str]:
    return [str(block["content"]) for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]


def test_a_manager_and_its_worker_answer(loopback: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    loopback.answers = [
        delegates(1, "Read the log."),
        asks("anthropic", 11, "look", path="login.log"),
        says("anthropic", 12, "The token expires."),
        says("anthropic", 2, "It expires after an hour."),
    ]

    names: dict[str, Any] = {}
    exec(PROGRAM, names)  # noqa: S102 - our own page

    _, first, second, last = loopback.bodies
    assert capsys.readouterr().out == "It expires after an hour.\n"
    assert "Read the log." in str(first["system"])
    assert "There is nothing in login.log." in str(results(second))
    assert "The token expires." in str(results(last))
    names["client"].close()


def test_after_a_crash_the_worker_goes_on(loopback: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    head, question, tail = PROGRAM.partition('    session.ask("Why does login fail after an hour?")\n')
    with Nexus() as nexus:
        exec(head.partition("with Nexus")[0], names)  # noqa: S102 - as above
        session = nexus.session("support", model="claude-sonnet-5", tools=names["TOOLS"], role="manager")
        session.ask("Why does login fail after an hour?")
        (call,) = session.record(delegates(1, "Read the log.")).tool_calls
        worker = session.spawn(str(call.arguments["task"]), call=call)
        worker.ask("Begin.")
        worker.record(asks("anthropic", 11, "look", path="login.log"))
    loopback.answers = [says("anthropic", 12, "The token expires."), says("anthropic", 2, "It expires.")]

    exec(head + tail, names)  # noqa: S102 - as above

    assert question
    assert capsys.readouterr().out == "It expires.\n"
    assert ["There is nothing in login.log." in str(results(body)) for body in loopback.bodies] == [True, False]
    names["client"].close()


def test_several_workers_answer_at_once(loopback: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    loopback.answers = [
        says("anthropic", 1, "It expires."),
        delegates(2, "Ask the phone.", "Read the log."),
        says("anthropic", 11, "A report."),
        says("anthropic", 12, "A report."),
        says("anthropic", 4, "It is the same."),
    ]

    names: dict[str, Any] = {}
    exec(PROGRAM, names)  # noqa: S102 - as above
    exec(AT_ONCE, names)  # noqa: S102 - as above

    assert capsys.readouterr().out == "It expires.\nIt is the same.\n"
    assert ["A report." in each for each in results(loopback.bodies[-1])] == [True, True]
    names["client"].close()
