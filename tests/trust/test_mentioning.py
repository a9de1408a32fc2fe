"""Active parts as they are mentioned in passing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nexus_core.trust.fingerprint import setting_content
from nexus_core.trust.mentioning import is_off, is_waiting, mention
from nexus_core.values.trust import ActivePart, Decision
from tests.trust.conftest import HTTP, STDIO, server_part

KEY = "sk-live-0123456789abcdef0123"


@pytest.mark.parametrize("server", [STDIO, HTTP], ids=["a command", "an address"])
def test_what_has_no_key_in_it_is_mentioned_as_it_is(project: Path, server: dict[str, object]) -> None:
    part = server_part(server, project)

    assert mention(part) == part.summary


@pytest.mark.parametrize(
    ("said", "mentioned"),
    [
        ({"command": ["x", "--token", KEY], "args": None}, "x --token '***'"),
        ({"command": "x", "args": [f"--api-key={KEY}", "y"]}, "x '--api-key=***' y"),
        ({"command": None, "args": None, "url": f"https://x.example/?token={KEY}"}, "'https://x.example/?token=***'"),
        ({"command": None, "args": None, "url": f"https://me:{KEY}@x.example/"}, "'https://me:***@x.example/'"),
    ],
)
def test_a_key_is_not_mentioned(project: Path, said: dict[str, object], mentioned: str) -> None:
    part = server_part({**STDIO, "env": None, "cwd": None, **said}, project)

    assert mention(part) == mentioned
    assert KEY in part.summary or "@" in mentioned


def test_a_setting_that_is_no_server_is_mentioned_without_its_key() -> None:
    content = setting_content("/compaction/command", ["x"])
    part = ActivePart(path=Path("/x"), layer="local", pointer="/x", line=1, summary=f"x --token {KEY}", content=content)

    assert mention(part) == "x --token ***"
    assert not is_off(part)


@pytest.mark.parametrize(
    ("decision", "waits"), [("pending", True), ("changed", True), ("allowed", False), ("denied", False)]
)
def test_what_is_undecided_waits_unless_it_is_off(project: Path, decision: Decision, *, waits: bool) -> None:
    on, off = (server_part({**STDIO, "enabled": each}, project) for each in (True, False))

    assert is_waiting(replace(on, decision=decision)) is waits
    assert not is_waiting(replace(off, decision=decision))
    assert (is_off(on), is_off(off)) == (False, True)


@pytest.mark.parametrize("content", ["", "[]", "7", "{broken"])
def test_content_that_nobody_can_read_is_taken_for_something_that_waits(project: Path, content: str) -> None:
    part = replace(server_part(STDIO, project), content=content)

    assert is_waiting(part)
    assert mention(part) == part.summary
