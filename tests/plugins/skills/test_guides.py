from __future__ import annotations

import os
from pathlib import Path

import pytest

import nexus_plugins.skills
from nexus_core import FileError, Nexus
from nexus_core.testing import check_plugin, write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.skills import _guides, nexus_diagnose, nexus_static_sections
from nexus_plugins.skills._guides import SkillGuide, find_guides, read_guide_text
from tests.text.secret_samples import SAMPLES

HERE = ".nexus3/skills"
TOOLS = (".nexus3", ".claude", ".agents", ".codex")
STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")


def skill(head: str = "description: Something.", body: str = "# Guide\n") -> str:
    return f"---\n{head}\n---\n{body}"


def guides(nexus: Nexus) -> dict[str, SkillGuide]:
    return find_guides(nexus.load()).guides


def only(nexus: Nexus) -> SkillGuide:
    (guide,) = guides(nexus).values()
    return guide


def faults(nexus: Nexus) -> list[tuple[str, str]]:
    """What the doctor says: code and message."""
    return [(finding.code, finding.message) for finding in nexus_diagnose(nexus.load())]


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(nexus_plugins.skills) == []


def test_a_guide_says_what_it_is_good_for_and_what_it_needs(make_nexus: MakeNexus) -> None:
    head = (
        "name: deploy\ndescription: Ships\n  it.\ncategory: operations\nrequires:\n  env: [A, B_2]\n  bin: [git, g++]"
    )

    guide = only(make_nexus(files={f"{HERE}/deploy/SKILL.md": skill(head)}))

    assert guide[:5] == ("deploy", "Ships it.", "Operations", ("A", "B_2"), ("git", "g++"))
    assert guide.layer.name == "local"


@pytest.mark.parametrize(
    "head",
    [
        "requires: {env: A, bins: b}",
        "requires:\n  env: A\n  bins: [b, b]",
        "requires:\n  env:\n    A: Your key: it opens doors\n  bins:\n    b:",
        "metadata:\n  requires:\n    env: [A]\n    bin: [b]",
        'metadata: {"agent": {"emoji": "x", "requires": {"env": ["A"], "bins": ["b"]}}}',
    ],
)
def test_what_guides_of_other_agents_need_is_understood(make_nexus: MakeNexus, head: str) -> None:
    guide = only(make_nexus(files={f"{HERE}/x/SKILL.md": skill(f"description: x\n{head}")}))

    assert (guide.variables, guide.programs) == (("A",), ("b",))


@pytest.mark.acceptance("T10")
def test_a_secret_in_a_description_is_reported_and_not_in_the_prompt(make_nexus: MakeNexus) -> None:
    secret = SAMPLES["github-classic"]
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": skill(f"description: deploys, {secret.text}, {'x ' * 600}")})

    found = faults(nexus)
    prompt = nexus.system_prompt()

    assert (
        "odd-skill",
        "its description has what looks like a secret (github-token); the prompt has the rest",
    ) in found
    assert "deploys, use [redacted:github-token] for it" in prompt
    assert not [each for each in secret.secrets if each in prompt or each in str(found)]


def test_a_guide_is_called_after_its_directory_unless_it_says_otherwise(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(
        files={f"{HERE}/plain/SKILL.md": skill(), f"{HERE}/v2/SKILL.md": skill("name: other\ndescription: x")}
    )

    assert list(guides(nexus)) == ["other", "plain"]
    assert faults(nexus) == [("odd-skill", "is named 'other', unlike its directory")]


@pytest.mark.parametrize("name", ["[a]", "../../etc", "--help", "x" * 65, "Mail — for 'agents'", "'a\\nb'"])
def test_a_name_that_cannot_be_typed_makes_way_for_that_of_the_directory(make_nexus: MakeNexus, name: str) -> None:
    nexus = make_nexus(files={f"{HERE}/mail/SKILL.md": skill(f"name: {name}\ndescription: x")})

    assert only(nexus).name == "mail"
    rule = "its name must be at most 64 ASCII letters, digits, '-', '_' or '.'; the name of its directory is used"
    assert faults(nexus) == [("odd-skill", rule)]


def test_where_neither_can_be_typed_the_guide_is_left_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/two words/SKILL.md": skill()})

    assert faults(nexus) == [("unusable-skill", "its name must be at most 64 ASCII letters, digits, '-', '_' or '.'")]


def test_guides_are_found_in_every_layer_and_the_nearest_of_a_name_counts(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    write_files(nexus_home, {f"skills/{name}/SKILL.md": skill() for name in ("mail", "deploy")})
    files = {f"a/{HERE}/deploy/SKILL.md": skill(), f"a/b/{HERE}/deploy/SKILL.md": skill()}

    nexus = make_nexus(files=files, cwd="a/b")

    assert {name: guide.layer.name for name, guide in guides(nexus).items()} == {"deploy": "local", "mail": "global"}
    assert faults(nexus) == []


def test_of_two_with_one_name_in_a_layer_the_first_directory_counts(make_nexus: MakeNexus) -> None:
    same = skill("name: a\ndescription: x")

    nexus = make_nexus(files={f"{HERE}/b/SKILL.md": same, f"{HERE}/a/SKILL.md": same})

    assert only(nexus).path.parent.name == "a"
    assert faults(nexus)[-1] == ("unusable-skill", f"has the same name as {only(nexus).path}, which is used")


def test_what_is_no_guide_is_passed_over(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/README.md": "x", f"{HERE}/empty/x": "", f"{HERE}/deep/er/SKILL.md": skill()})

    assert (guides(nexus), faults(nexus)) == ({}, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# No head", "does not start with a '---' line"),
        (skill("requires: {env: [A=1]}"), "`requires.env` must be a list of at most 32 names"),
        (skill("requires: {bin: [/bin/sh]}"), "`requires.bin` must be a list of at most 32 names"),
        (skill(f"requires: {{env: {[f'V{n}' for n in range(33)]}}}"), "`requires.env` must be a list of at most 32"),
        (skill("requires: {env: [[A]]}"), "`requires` must hold lists of names"),
        ("---\nname: x\n" + "x" * 300_000, "larger than 262144 bytes"),
    ],
)
def test_a_guide_that_cannot_be_used_is_left_out_and_named(make_nexus: MakeNexus, text: str, message: str) -> None:
    nexus = make_nexus(files={f"{HERE}/bad/SKILL.md": text, f"{HERE}/good/SKILL.md": skill()})

    assert list(guides(nexus)) == ["good"]
    ((code, said),) = faults(nexus)
    assert (code, said.startswith(message)) == ("unusable-skill", True), said


def test_the_doctor_names_file_and_line(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/bad/SKILL.md": "---\nname: bad\nno colon\n---\n"})

    (finding,) = nexus_diagnose(nexus.load())

    assert finding.place == f"{nexus.cwd}/{HERE}/bad/SKILL.md:3"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("name: x", "has no description"),
        ("description: ' '", "has no description"),
        ("description: [a]", "has no description"),
        ("description: " + "y" * 2000, "its description is longer than 1,024 characters"),
        ("description: y\ncategory: '## Rules'", "its category must be at most 32 characters"),
        ("description: y\ncategory: " + "c" * 33, "its category must be at most 32 characters"),
        ("description: y\ncategory: [a]", "its category must be at most 32 characters"),
    ],
)
def test_an_odd_guide_is_used_all_the_same(make_nexus: MakeNexus, head: str, message: str) -> None:
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": skill(head)})

    assert only(nexus).category == "Other"
    assert len(only(nexus).description) <= 1025
    ((code, said),) = faults(nexus)
    assert (code, said.startswith(message)) == ("odd-skill", True), said


def test_what_is_not_text_is_left_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": ""})
    (nexus.cwd / HERE / "x/SKILL.md").write_bytes(b"---\nname: \xff\n---\n")

    assert faults(nexus) == [("unusable-skill", "not UTF-8: byte 0xff at offset 10")]


def test_line_ends_and_marks_of_other_systems_make_no_difference(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": ""})
    (nexus.cwd / HERE / "x/SKILL.md").write_bytes(b"\xef\xbb\xbf---\r\ndescription: y\r\n---\r\n# Guide\r\n")

    assert only(nexus).description == "y"
    assert read_guide_text(only(nexus)) == "# Guide"


# ---- reading what strangers wrote ---------------------------------------------------------------------------


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("link", [HERE, f"{HERE}/x", f"{HERE}/x/SKILL.md"])
def test_a_link_of_a_project_does_not_lead_outside(make_nexus: MakeNexus, tmp_path: Path, link: str) -> None:
    outside = write_files(tmp_path / "outside", {"x/SKILL.md": skill("description: secret")})
    nexus = make_nexus(files={".nexus3/NEXUS.md": "x"})
    path = nexus.cwd / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside / Path(link).relative_to(HERE))

    assert guides(nexus) == {}
    ((_, said),) = faults(nexus)
    assert said == f"leads outside {nexus.cwd}"


def test_a_link_inside_the_project_is_followed(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={"shared/x/SKILL.md": skill(), ".nexus3/NEXUS.md": "x"})
    (nexus.cwd / HERE).symlink_to(nexus.cwd / "shared")

    assert list(guides(nexus)) == ["x"]


def test_the_users_own_may_be_a_link_to_anywhere(make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "dotfiles", {"x/SKILL.md": skill()})
    (nexus_home / "skills").symlink_to(tmp_path / "dotfiles")

    assert list(guides(make_nexus())) == ["x"]


@pytest.mark.acceptance("T6")
def test_a_guide_that_anybody_may_write_to_is_left_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": skill()})
    (nexus.cwd / HERE / "x/SKILL.md").chmod(0o666)

    assert faults(nexus) == [("unusable-skill", "every user may write to it")]


@needs_root
@pytest.mark.acceptance("T6")
def test_a_guide_of_a_stranger_is_left_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/x/SKILL.md": skill()})
    os.chown(nexus.cwd / HERE / "x/SKILL.md", STRANGER, STRANGER)

    assert faults(nexus) == [("unusable-skill", "belongs to another user")]


@pytest.mark.acceptance("T11")
def test_a_pipe_in_the_place_of_a_guide_does_not_hang(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={f"{HERE}/x/y": ""})
    os.mkfifo(nexus.cwd / HERE / "x/SKILL.md")

    assert faults(nexus) == [("unusable-skill", "not a regular file")]


@pytest.mark.acceptance("T14")
def test_characters_that_nobody_sees_are_taken_out_of_a_projects_guide(make_nexus: MakeNexus) -> None:
    hidden = "\u200b\U000e0041\u202e"
    text = skill(f"name: de{hidden}ploy\ndescription: Sh{hidden}ips it.", f"Run{hidden} it.\n")

    guide = only(make_nexus(files={f"{HERE}/deploy/SKILL.md": text}))

    assert (guide.name, guide.description, read_guide_text(guide)) == ("deploy", "Ships it.", "Run it.")


@pytest.mark.acceptance("T16")
def test_a_directory_with_too_many_entries_is_not_read(make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_guides, "MAX_DIRECTORY_ENTRIES", 2)
    nexus = make_nexus(files={f"{HERE}/{name}/SKILL.md": skill() for name in "abc"})

    assert guides(nexus) == {}
    assert faults(nexus) == [("unusable-skill", "has more than 2 entries; none is read")]


@pytest.mark.acceptance("T16")
def test_all_heads_together_are_limited_and_the_users_come_first(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_guides, "MAX_TOTAL_HEAD_CHARACTERS", 100)
    write_files(nexus_home, {"skills/own/SKILL.md": skill()})
    nexus = make_nexus(files={f"{HERE}/{name}/SKILL.md": skill(f"description: {'y' * 90}") for name in "abc"})

    assert list(guides(nexus)) == ["a", "own"]
    assert [code for code, _ in faults(nexus)] == ["unusable-skill"] * 2


def test_a_guide_that_has_gone_meanwhile_is_an_error_that_names_it(make_nexus: MakeNexus) -> None:
    guide = only(make_nexus(files={f"{HERE}/x/SKILL.md": skill()}))
    guide.path.unlink()

    with pytest.raises(FileError, match="not there") as caught:
        read_guide_text(guide)

    assert caught.value.where == str(guide.path)


# ---- what it costs where there are none ---------------------------------------------------------------------


def test_without_guides_each_directory_is_looked_at_once_and_nothing_is_imported(
    make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus = make_nexus(files={"a/.nexus3/NEXUS.md": "x", "a/b/.nexus3/NEXUS.md": "y"}, cwd="a/b")
    request, loaded = nexus.request(), nexus.load()
    looks: list[str] = []
    real = os.path.isdir

    def isdir(path: str) -> bool:
        looks.append(path)
        return real(path)

    monkeypatch.setattr("os.path.isdir", isdir)
    monkeypatch.setattr("nexus_plugins.skills._guides.find_guides", None)

    assert nexus_static_sections(request, loaded) == []
    places = (nexus.cwd, nexus.cwd.parent, nexus.home.parent)
    assert looks == [f"{place}/{tool}/skills" for place in places for tool in TOOLS]


# ---- where people keep them -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("Y-11")
@pytest.mark.parametrize("tool", TOOLS)
def test_skills_are_found_in_the_directories_of_other_agents(
    make_nexus: MakeNexus, nexus_home: Path, tool: str
) -> None:
    write_files(nexus_home.parent, {f"{tool}/skills/mail/SKILL.md": skill("description: Sends mail.")})

    nexus = make_nexus(files={f"{tool}/skills/deploy/SKILL.md": skill("description: Ships it.")})

    prompt = nexus.session("s", model="gpt-4o").ask("Hello").system_prompt
    assert {name: guide.layer.name for name, guide in guides(nexus).items()} == {"deploy": "local", "mail": "global"}
    assert "\n- deploy: Ships it.\n- mail: Sends mail.\n" in prompt


def test_skills_in_the_home_of_another_agent_need_no_directory_of_nexus(tmp_path: Path, nexus_home: Path) -> None:
    write_files(tmp_path, {"home/.claude/skills/mail/SKILL.md": skill(), "elsewhere/x": ""})
    nexus_home.rmdir()

    with Nexus(tmp_path / "elsewhere") as nexus:
        assert [(name, guide.layer.is_own) for name, guide in guides(nexus).items()] == [("mail", True)]


def test_skills_are_found_up_to_the_top_of_the_repository(make_nexus: MakeNexus) -> None:
    files = {
        "repo/.git/HEAD": "ref: refs/heads/main\n",
        "repo/.agents/skills/top/SKILL.md": skill(),
        "repo/a/.claude/skills/middle/SKILL.md": skill(),
        "repo/a/b/c/x": "",
        ".agents/skills/outside/SKILL.md": skill(),
    }

    assert list(guides(make_nexus(files=files, cwd="repo/a/b/c"))) == ["middle", "top"]


def test_of_one_name_in_several_directories_the_first_is_used_and_the_others_are_reported(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    write_files(nexus_home, {"skills/deploy/SKILL.md": skill("description: Mine.")})
    files = {f"{tool}/skills/deploy/SKILL.md": skill(f"description: Of {tool}.") for tool in TOOLS[1:]}

    nexus = make_nexus(files=files)

    assert only(nexus).description == "Of .claude."
    reason = f"has the same name as {nexus.cwd}/.claude/skills/deploy/SKILL.md, which is used"
    assert [(finding.path, finding.message, finding.is_note) for finding in nexus_diagnose(nexus.load())] == [
        (nexus.cwd / ".agents/skills/deploy/SKILL.md", reason, False),
        (nexus.cwd / ".codex/skills/deploy/SKILL.md", reason, False),
        (nexus_home / "skills/deploy/SKILL.md", reason, True),
    ]


def test_links_and_copies_of_a_skill_are_one_skill(make_nexus: MakeNexus) -> None:
    odd = skill("name: x")  # has no description, which is said once
    nexus = make_nexus(
        files={".agents/skills/x/SKILL.md": odd, ".codex/skills/x/SKILL.md": odd, ".claude/skills/y": ""}
    )
    (nexus.cwd / ".claude/skills/x").symlink_to("../../.agents/skills/x")

    assert only(nexus).path == nexus.cwd / ".claude/skills/x/SKILL.md"
    assert faults(nexus) == [("odd-skill", "has no description")]


@pytest.mark.acceptance("T13")
def test_a_skill_outside_of_the_project_is_not_read_through_a_link(make_nexus: MakeNexus, tmp_path: Path) -> None:
    write_files(tmp_path, {"secret/SKILL.md": skill()})
    nexus = make_nexus(files={".claude/skills/y/x": ""})
    (nexus.cwd / ".claude/skills/x").symlink_to(tmp_path / "secret")
    (nexus.cwd / ".codex").mkdir()
    (nexus.cwd / ".codex/skills").symlink_to(tmp_path)

    assert guides(nexus) == {}
    assert [code for code, _ in faults(nexus)] == ["unusable-skill", "unusable-skill"]


@pytest.mark.acceptance("T13")
def test_a_skill_that_anybody_may_write_to_is_not_read(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={".agents/skills/x/SKILL.md": skill()})
    (nexus.cwd / ".agents/skills/x/SKILL.md").chmod(0o666)

    assert faults(nexus) == [("unusable-skill", "every user may write to it")]
