"""The tool by which a model without a shell reads guides."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import Nexus, UnknownNameError, UsageError
from nexus_core.plugin import Text, ToolResult
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.skills._guides import read_used_guides
from nexus_plugins.skills.call import SkillGuideTool

FILES = {
    f".agents/skills/{name}/SKILL.md": f"---\ndescription: About {name}.\n---\n# How to {name}\n"
    for name in ("deploy", "mail")
}
ON = '{"plugins": {"skills": {"tool": true}}}'


def record_call(nexus: Nexus, name: str = "read_skill", arguments: str = '{"name": "deploy"}') -> ToolResult:
    """Let a model call a tool in a session, and return what the guides answer."""
    guides = SkillGuideTool(nexus)
    session = nexus.session("s", model="gpt-4o", tools=[guides.tool])
    session.ask("Ship it.")
    function = {"name": name, "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    (call,) = session.record(message).tool_calls
    result = guides.run(call)
    session.record(result)
    return result.result


def test_a_session_offers_the_tool_that_it_is_given(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files=FILES)

    context = nexus.session("s", model="gpt-4o", tools=[SkillGuideTool(nexus).tool]).ask("Ship it.")

    assert [tool.name for tool in context.tools] == ["read_skill"]
    assert "\nCall the tool `read_skill` with a name to get the whole guide to a capability.\n" in context.system_prompt
    assert "nexus skill show" not in context.system_prompt


def test_a_setting_of_the_user_offers_the_tool(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": ON})

    context = make_nexus(files=FILES).session("s", model="gpt-4o").ask("Ship it.")

    assert [tool.name for tool in context.tools] == ["read_skill"]
    assert "Call the tool `read_skill`" in context.system_prompt


@pytest.mark.acceptance("T13")
def test_a_project_cannot_have_the_tool_offered(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={**FILES, ".nexus3/config.json": ON})

    assert nexus.session("s", model="gpt-4o").ask("Ship it.").tools == ()
    assert [finding.code for finding in nexus.load().findings] == ["protected-setting"]


def test_without_skills_there_is_no_tool(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": ON})

    assert make_nexus().session("s", model="gpt-4o").ask("Ship it.").tools == ()


@pytest.mark.acceptance("Y-12")
def test_run_answers_a_call_with_the_guide_and_its_source(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make_nexus(files=FILES)

    result = record_call(nexus)

    path = nexus.cwd / ".agents/skills/deploy/SKILL.md"
    assert result.parts == (Text(f"Skill: deploy (of the project, layer local)\nSource: {path}\n\n# How to deploy"),)
    assert not result.is_error
    assert read_used_guides(nexus_home) == {str(path)}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("read_skill", '{"name": "deplyo"}', "unknown skill 'deplyo'"),
        ("read_skill", '{"name": 5}', "call read_skill with the name of a skill"),
        ("read_skill", "{}", "call read_skill with the name of a skill"),
        ("read_skill", '{"name": "dep', "call read_skill with the name of a skill"),
        ("read_file", '{"name": "deploy"}', "call read_skill with the name of a skill"),
    ],
)
def test_run_tells_the_model_what_is_wrong(make_nexus: MakeNexus, name: str, arguments: str, message: str) -> None:
    result = record_call(make_nexus(files=FILES), name, arguments)

    assert result.is_error
    assert message in str(result.parts)


def test_read_gives_only_the_skills_that_it_is_limited_to(make_nexus: MakeNexus) -> None:
    guides = SkillGuideTool(make_nexus(files=FILES), names=["mail"])

    assert guides.read("mail").endswith("# How to mail")
    with pytest.raises(UnknownNameError, match="unknown skill 'deploy'"):
        guides.read("deploy")


def test_read_refuses_a_skill_that_is_switched_off(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"skills": {"disabled": ["deploy"]}}'})

    with pytest.raises(UsageError, match="skill 'deploy' is switched off"):
        SkillGuideTool(make_nexus(files=FILES)).read("deploy")
