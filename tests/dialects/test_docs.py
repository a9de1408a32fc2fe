"""The examples in docs/reference/dialects.md are true."""

import json
import re

import pytest

from nexus_core.dialects.neutral import message_from_json, message_to_json
from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/dialects.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(block("python"), {})  # noqa: S102 - our own page

    (request,) = capsys.readouterr().out.splitlines()
    assert "'input': [{'type': 'message', 'role': 'user', 'content': 'hello'}]" in request


def test_the_json_is_what_would_be_written() -> None:
    given = json.loads(block("json"))

    assert list(message_to_json(message_from_json(given)).items()) == list(given.items())
