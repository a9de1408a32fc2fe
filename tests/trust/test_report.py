"""Active parts as they are mentioned in passing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nexus_core.trust.fingerprint import build_server_content, build_setting_content, canonical
from nexus_core.trust.report import diff_contents, is_disabled, is_waiting, summarize_setting
from nexus_core.types.mcp import ActiveSetting, TrustDecision
from tests.trust.conftest import HTTP, STDIO, server_part

KEY = "sk-live-0123456789abcdef0123"


@pytest.mark.parametrize("server", [STDIO, HTTP], ids=["a command", "an address"])
def test_what_has_no_key_in_it_is_mentioned_as_it_is(project: Path, server: dict[str, object]) -> None:
    part = server_part(server, project)

    assert summarize_setting(part) == part.summary


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

    assert summarize_setting(part) == mentioned
    assert KEY in part.summary or "@" in mentioned


def test_a_setting_that_is_no_server_is_mentioned_without_its_key() -> None:
    content = build_setting_content("/compaction/command", ["x"])
    part = ActiveSetting(
        path=Path("/x"), layer="local", pointer="/x", line=1, summary=f"x --token {KEY}", content=content
    )

    assert summarize_setting(part) == "x --token ***"
    assert not is_disabled(part)


@pytest.mark.parametrize(
    ("decision", "waits"), [("pending", True), ("changed", True), ("allowed", False), ("denied", False)]
)
def test_what_is_undecided_waits_unless_it_is_off(project: Path, decision: TrustDecision, *, waits: bool) -> None:
    on, off = (server_part({**STDIO, "enabled": each}, project) for each in (True, False))

    assert is_waiting(replace(on, decision=decision)) is waits
    assert not is_waiting(replace(off, decision=decision))
    assert (is_disabled(on), is_disabled(off)) == (False, True)


@pytest.mark.parametrize("content", ["", "[]", "7", "{broken"])
def test_content_that_nobody_can_read_is_taken_for_something_that_waits(project: Path, content: str) -> None:
    part = replace(server_part(STDIO, project), content=content)

    assert is_waiting(part)
    assert summarize_setting(part) == part.summary


def changes(approved: str, present: str) -> list[str]:
    lines = diff_contents(approved, present, approved_name="old", present_name="new")
    return [line.replace(" ", "") for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"}]


def test_the_same_content_has_no_difference(project: Path) -> None:
    content = build_server_content(STDIO, project)

    assert diff_contents(content, content, approved_name="old", present_name="new") == []


def test_a_changed_argument_is_shown(project: Path) -> None:
    approved = build_server_content(STDIO, project)
    present = build_server_content({**STDIO, "args": [*STDIO["args"][:-1], "8081"]}, project)

    assert changes(approved, present) == ['-"8080"', '+"8081"']


def test_a_changed_value_of_the_environment_is_shown_by_the_start_of_its_digest(project: Path) -> None:
    approved = build_server_content(STDIO, project)
    present = build_server_content({**STDIO, "env": {**STDIO["env"], "MODE": "slow"}}, project)

    old, new = (json.loads(content)["env"]["MODE"][:23] for content in (approved, present))
    assert changes(approved, present) == [f'-"MODE":"{old}..."', f'+"MODE":"{new}..."']


def test_what_looks_like_a_digest_in_a_command_is_not_shortened() -> None:
    approved, present = (canonical({"args": [f"sha256:{'0' * 63}{end}"]}) for end in "12")

    assert changes(approved, present) == [f'-"sha256:{"0" * 63}1"', f'+"sha256:{"0" * 63}2"']


def test_characters_that_look_alike_are_told_apart() -> None:
    assert changes(canonical({"args": ["a"]}), canonical({"args": ["\u0430"]})) == ['-"a"', '+"\\u0430"']


def test_content_that_is_not_json_is_compared_as_it_is() -> None:
    assert changes("one", "two") == ["-one", "+two"]
