import json
from pathlib import Path

from nexus_core.trust.comparison import compare
from nexus_core.trust.fingerprint import canonical, server_content
from tests.trust.conftest import STDIO


def changes(approved: str, present: str) -> list[str]:
    lines = compare(approved, present, approved_name="old", present_name="new")
    return [line.replace(" ", "") for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"}]


def test_the_same_content_has_no_difference(project: Path) -> None:
    content = server_content(STDIO, project)

    assert compare(content, content, approved_name="old", present_name="new") == []


def test_a_changed_argument_is_shown(project: Path) -> None:
    approved = server_content(STDIO, project)
    present = server_content({**STDIO, "args": [*STDIO["args"][:-1], "8081"]}, project)

    assert changes(approved, present) == ['-"8080"', '+"8081"']


def test_a_changed_value_of_the_environment_is_shown_by_the_start_of_its_digest(project: Path) -> None:
    approved = server_content(STDIO, project)
    present = server_content({**STDIO, "env": {**STDIO["env"], "MODE": "slow"}}, project)

    old, new = (json.loads(content)["env"]["MODE"][:23] for content in (approved, present))
    assert changes(approved, present) == [f'-"MODE":"{old}..."', f'+"MODE":"{new}..."']


def test_what_looks_like_a_digest_in_a_command_is_not_shortened() -> None:
    approved, present = (canonical({"args": [f"sha256:{'0' * 63}{end}"]}) for end in "12")

    assert changes(approved, present) == [f'-"sha256:{"0" * 63}1"', f'+"sha256:{"0" * 63}2"']


def test_characters_that_look_alike_are_told_apart() -> None:
    assert changes(canonical({"args": ["a"]}), canonical({"args": ["\u0430"]})) == ['-"a"', '+"\\u0430"']


def test_content_that_is_not_json_is_compared_as_it_is() -> None:
    assert changes("one", "two") == ["-one", "+two"]
