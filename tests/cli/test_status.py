import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin

SERVERS = {
    "servers": [
        {"name": "github", "command": ["npx", "server-github"]},
        {"name": "docs", "url": "https://mcp.example.com", "enabled": False},
    ]
}


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of somebody else than the person who runs the tests."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    return home


def rows(out: str) -> dict[str, str]:
    """What is said, by heading; a line without a heading belongs to the one above it."""
    found: dict[str, str] = {}
    heading = ""
    for line in out.splitlines():
        heading = line[:14].strip() or heading
        found[heading] = f"{found.get(heading, '')}\n{line[14:]}".strip()
    return found


def test_nexus_alone_is_the_status_in_at_most_ten_lines(cli: Cli, work: Path) -> None:
    outcome = cli()

    assert outcome == cli("status")
    assert outcome.code == 0
    assert str(work) in outcome.out
    assert len(outcome.out.splitlines()) <= 10


def test_json_has_a_schema(cli: Cli, work: Path) -> None:
    document = json.loads(cli("status", "--json").out)

    assert cli("--json") == cli("status", "--json")
    assert (document["schema"], document["directory"]) == (1, str(work))
    assert {"environment", "file_layers", "mcp", "readme_fallback"} <= set(document["plugins_active"])


def test_sections_are_listed_in_the_order_of_the_prompt(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "zebra",
        "from nexus_core import Section, hookimpl\n"
        "@hookimpl\n"
        "def nexus_static_sections(): return [Section('z', title='Zebra', text='z', order=1)]\n",
    )

    assert json.loads(cli("status", "--json").out)["sections"][0] == "Zebra"


def test_what_went_wrong_is_in_the_status(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    document = json.loads(cli("status", "--json").out)

    assert document["plugins_inactive"] == ["bad (failed)"]
    assert "boom" in document["warnings"][0]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("AGENTS.md", "Claude, Codex, Cursor, Copilot, opencode, goose, Cline: AGENTS.md; Gemini: none"),
        ("CLAUDE.md", "Claude, Copilot, opencode: CLAUDE.md; Codex, Gemini, Cursor, goose, Cline: none"),
    ],
)
def test_a_repository_with_nothing_but_the_rules_of_other_tools_gives_a_picture(
    cli: Cli, work: Path, name: str, others: str
) -> None:
    write_files(work, {".git/HEAD": "", name: "Run make test."})

    picture = rows(cli().out)

    assert picture["Directory"] == str(work)
    assert picture["Layers"].startswith("defaults (")
    assert picture["Layers"].endswith("), local (14); in characters")
    assert picture["Reads"] == f"NEXUS.md (default), {name}"
    assert picture["Other agents"] == others
    assert picture["MCP servers"] == "none"
    assert picture["Settings"] == "model: none set; permission level: trusted"
    assert picture["Warnings"] == "none"
    assert [line.split("  ")[0] for line in picture["Next"].splitlines()] == ["nexus show", "nexus layers --all"]


def test_sizes_are_those_of_the_prompt(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "x" * 40_000})
    characters = len(cli("show").out)

    facts = json.loads(cli("--json").out)

    assert facts["prompt_characters"] == characters
    tokens = facts["prompt_tokens_estimate"]
    assert f"about {tokens:,} tokens ({characters:,} characters), by {facts['counter']}" in cli().out


def test_files_are_named_as_one_would_type_them(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "mine"})
    write_files(work, {".git/HEAD": "", "AGENTS.md": "root", "services/auth/AGENTS.md": "auth"})

    picture = rows(cli("-C", "services/auth").out)

    assert picture["Reads"] == "~/.nexus3/NEXUS.md, ../../AGENTS.md, AGENTS.md"
    assert picture["Directory"] == str(work / "services/auth")


def test_layers_that_say_nothing_are_not_named(cli: Cli, work: Path) -> None:
    write_files(
        work, {"src/src/src/.nexus3/NEXUS.md": "abc", "src/src/NEXUS.md": "ab", "src/.nexus3/config.json": "{}"}
    )

    picture = rows(cli("-C", "src/src/src").out)

    assert picture["Layers"].endswith("), ancestor:src (2), local (3); in characters")
    assert picture["Layers"].count("ancestor") == 1


def test_servers_are_grouped_by_what_may_be_done_with_them(cli: Cli, work: Path, nexus_home: Path) -> None:
    own = {"servers": [{"name": "mine", "command": ["mine"]}]}
    write_files(nexus_home, {"mcp.json": json.dumps(own)})
    write_files(work, {".nexus3/mcp.json": json.dumps(SERVERS)})

    picture = rows(cli().out)

    assert picture["MCP servers"] == "1 not approved (github); 1 on (mine); 1 off (docs)"
    assert picture["Warnings"] == "1 unapproved"
    assert picture["Next"].startswith("nexus trust status")


def test_the_model_and_the_permission_level_are_those_that_count(cli: Cli, work: Path) -> None:
    settings = {"provider": {"model": "gpt-4o"}, "permissions": {"level": "sandboxed"}}
    write_files(work, {".nexus3/config.json": json.dumps(settings)})

    assert rows(cli().out)["Settings"] == "model: gpt-4o; permission level: sandboxed"


def test_what_needs_attention_comes_first(cli: Cli, work: Path) -> None:
    write_files(
        work,
        {
            "AGENTS.md": "Today is Monday.\nrun #12\nhid\u200bden\n",
            ".nexus3/config.json": '{"provider": {"base_url": "https://evil"}}',
            ".nexus3/mcp.json": json.dumps(SERVERS),
        },
    )

    outcome = cli()

    picture = rows(outcome.out)
    assert picture["Warnings"] == "1 unapproved, 1 hidden-characters, 1 protected-setting and 1 more"
    assert [line.split("  ")[0] for line in picture["Next"].splitlines()] == ["nexus trust status", "nexus doctor"]
    assert (outcome.code, outcome.err) == (0, "")


def test_the_warnings_are_the_findings_of_the_doctor(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Today is Monday.\n## Environment\n", "CLAUDE.md": "Something else."})

    warnings = json.loads(cli("--json").out)["warnings"]

    assert sorted(warnings) == sorted(cli("doctor").out.splitlines())
    assert len(warnings) == 3


@pytest.mark.parametrize("files", [{}, {"README.md": "# Project"}])
def test_where_nobody_has_instructed_anybody_init_is_suggested(cli: Cli, work: Path, files: dict[str, str]) -> None:
    write_files(work, files)

    assert rows(cli().out)["Next"].startswith("nexus init ")


def test_in_the_users_own_place_the_users_own_directory_is_suggested(cli: Cli, user_home: Path) -> None:
    before = rows(cli("-C", str(user_home)).out)
    cli("init", "--global")
    after = rows(cli("-C", str(user_home)).out)

    assert before["Next"].startswith("nexus init --global ")
    assert "nexus init" not in after["Next"]


def test_ten_lines_are_enough_whatever_there_is(cli: Cli, work: Path) -> None:
    deep = "/".join(f"level{number}" for number in range(12))
    servers = {"servers": [{"name": f"server\n{number}" + "x" * 200, "command": ["x"]} for number in range(30)]}
    rules = {"/".join(deep.split("/")[:number]) + "/AGENTS.md": f"level {number}" for number in range(1, 13)}
    settings = {"context": {"ancestor_depth": 10}, "provider": {"model": "m\n" * 100}}
    write_files(
        work,
        {
            ".git/HEAD": "",
            **rules,
            f"{deep}/.nexus3/mcp.json": json.dumps(servers),
            f"{deep}/.nexus3/config.json": json.dumps(settings),
            **{f"level0/.nexus3/x{number}": "" for number in range(3)},
        },
    )

    lines = cli("-C", deep).out.splitlines()

    assert len(lines) == 10
    assert max(map(len, lines)) < 250
    assert lines[3].startswith("Reads         9 more, ")
    assert lines[3].endswith("../../AGENTS.md, ../AGENTS.md, AGENTS.md")
    assert "30 not approved (" in lines[5]
    assert lines[5].endswith(" and 27 more)")


def test_a_line_is_enough_for_a_prompt_of_the_shell(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps(SERVERS), "AGENTS.md": "Today is Monday."})

    outcome = cli("--brief")

    tokens = json.loads(cli("--json").out)["prompt_tokens_estimate"]
    assert outcome.out == f"3 layers, about {tokens:,} tokens, 2 servers (1 not approved), 2 warnings\n"
    assert outcome == cli("status", "--brief")


NO_SKILLS = {
    "nexusEnv": {"capabilityCount": 0},
    "skills": {"capabilities": [], "credentials": {"configured": 0, "broken": []}, "unknown": []},
}


def test_the_numbers_as_json(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps(SERVERS), "AGENTS.md": "Today is Monday."})

    document = json.loads(cli("--json", "--brief").out)

    assert document == {
        "schema": 1,
        "directory": str(work),
        "layers": 3,
        "instructions": 2,
        "prompt_tokens_estimate": json.loads(cli("--json").out)["prompt_tokens_estimate"],
        "servers": {"not_approved": 1, "enabled": 0, "disabled": 1, "denied": 0},
        "facts": NO_SKILLS,
        "warnings": {"unapproved": 1, "volatile-text": 1},
    }


def test_the_facts_as_json(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps(SERVERS), "CLAUDE.md": "Be kind."})

    document = json.loads(cli("--json").out)

    assert document["layers"][-1] == {"name": "local", "directory": f"{work}/.nexus3", "characters": 8}
    assert document["instructions"][-1] == f"{work}/CLAUDE.md"
    readers = {name for name, files in document["other_agents"].items() if files == [f"{work}/CLAUDE.md"]}
    assert readers == {"claude", "copilot", "opencode"}
    assert document["other_agents"]["codex"] == []
    assert document["servers"][0] == {"name": "github", "status": "not approved", "layer": "local", "shadows": None}
    assert (document["model"], document["permission_level"]) == (None, "trusted")
    assert document["next"] == ["nexus trust status", "nexus show"]


def test_a_broken_plugin_is_a_warning_and_told_once(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    outcome = cli()

    assert rows(outcome.out)["Warnings"] == "1 plugin-problem"
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.usefixtures("nexus_home")
@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_warnings_have_a_colour_on_a_terminal(work: Path, no_color: str, is_coloured: bool) -> None:
    write_files(work, {"AGENTS.md": "Today is Monday."})
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": no_color}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "nexus_core"], cwd=work, env=environment, stdout=theirs)
    os.close(theirs)
    shown = b""
    while b"nexus show" not in shown:
        shown += os.read(ours, 4096)
    process.wait(timeout=30)
    os.close(ours)

    assert (b"\x1b[33mWarnings" in shown) == is_coloured
    assert shown.count(b"\x1b[") == 2 * is_coloured


@pytest.mark.acceptance("Y-13")
@pytest.mark.parametrize("brief", [[], ["--brief"]])
def test_what_sections_know_besides_their_words_is_there_for_programs(cli: Cli, work: Path, brief: list[str]) -> None:
    write_files(
        work, {".nexus3/skills/deploy/SKILL.md": "---\ndescription: x\n---\n", ".nexus3/SOUL.md": "Name: Atlas"}
    )

    document = json.loads(cli("status", "--json", *brief).out)

    assert document["facts"]["persona"] == {"id": "Atlas"}
    assert document["facts"]["nexusEnv"] == {"capabilityCount": 1}
    assert [each["name"] for each in document["facts"]["skills"]["capabilities"]] == ["deploy"]


@pytest.mark.acceptance("Y-13")
def test_without_skills_the_facts_count_none(cli: Cli) -> None:
    assert json.loads(cli("status", "--json", "--brief").out)["facts"] == NO_SKILLS


def test_memory_is_named_only_if_it_is_on(cli: Cli, nexus_home: Path) -> None:
    off = cli()
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}'})

    on = cli()

    assert "memory" not in rows(off.out)["Settings"]
    assert rows(on.out)["Settings"] == "model: none set; permission level: trusted; memory: on"
