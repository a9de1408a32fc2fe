"""The program in docs/reference/dialects-bedrock.md runs as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.dialects.support import listening

PAGE = (ROOT / "docs/reference/dialects-bedrock.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def reply(reason: str, block: dict[str, Any]) -> dict[str, Any]:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    message = {"role": "assistant", "content": [block]}
    return {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}


def test_the_program_asks_until_the_model_has_answered(
    work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nexus_home.is_dir()
    (work / "a.txt").write_text("Tea.", encoding="utf-8")
    monkeypatch.chdir(work)
    names: dict[str, Any] = {}

    with listening() as loopback:
        for name, value in {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": loopback.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }.items():
            monkeypatch.setenv(name, value)
        loopback.answers = [
            reply("tool_use", {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"path": "a.txt"}}})
        ]
        loopback.answer = reply("end_turn", {"text": "Tea is in it."})
        exec(PROGRAM, names)  # noqa: S102 - our own page
        names["client"].close()

    assert loopback.bodies[1]["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "Tea."}]}}
    ]
    assert capsys.readouterr().out == "Tea is in it.\n"
