import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.config.merge import is_comment
from nexus_core.config.schema import Config
from nexus_core.testing import write_files
from tests.cli.conftest import Answer
from tests.conftest import ROOT, Cli, InstallPlugin

DEFAULTS = ROOT / "defaults"
THREE = ["NEXUS.md", "config.json", "mcp.json"]

# To the letter of the specification.
TEXT = """\
# Project Configuration

## Overview
<!-- Describe this project and how the agent should approach it -->

## Key Files
<!-- List important files and their purposes -->

## Conventions
<!-- Project-specific conventions, coding standards, etc. -->

## Notes
<!-- Any other context the agent should know -->
"""
SETTINGS = """\
{
  "_comment": "Project-specific NEXUS3 configuration. All fields optional - extends global config.",
  "provider": {
    "_comment": "Override model settings for this project"
  },
  "permissions": {
    "_comment": "Project-specific permission overrides"
  }
}
"""
EMPTY = '{\n  "servers": []\n}\n'

TOKEN = "ghp_planted0in0env"  # noqa: S105 - planted, to be looked for
PLAIN = f"""{{
    // ours
    "servers": [
        {{"name": "github", "command": ["npx", "server-github"], "env": {{"GITHUB_TOKEN": "{TOKEN}"}}}},
        {{"name": "docs", "url": "https://mcp.example.com/{TOKEN}"}},
    ],
}}
"""
CLAUDE = f"""{{
  "numStartups": 7,
  "mcpServers": {{
    "github": {{"command": "npx", "args": ["server-github"], "env": {{"GITHUB_TOKEN": "{TOKEN}"}}}}
  }},
  "oauthAccount": {{"emailAddress": "me@example.com"}}
}}
"""
CLAUDE_SERVERS = """{
  "mcpServers": {
    "github": {"command": "npx", "args": ["server-github"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}
  }
}
"""
PLAIN_COPY = PLAIN.replace(f'"{TOKEN}"', '"${GITHUB_TOKEN}"')


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of somebody else than the person who runs the tests."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    return home


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# ---- what ships -------------------------------------------------------------------------------------------


@pytest.mark.acceptance("I-01", "M-09")
def test_the_defaults_hold_a_prompt_a_configuration_and_no_servers() -> None:
    assert (DEFAULTS / "NEXUS.md").read_text(encoding="utf-8").strip()
    assert isinstance(json.loads((DEFAULTS / "config.json").read_text(encoding="utf-8")), dict)
    assert (DEFAULTS / "mcp.json").read_text(encoding="utf-8") == EMPTY


@pytest.mark.acceptance("I-01")
def test_every_value_of_the_default_configuration_is_the_default() -> None:
    usual = Config().model_dump()

    def differing(values: dict[str, object], defaults: dict[str, object]) -> Iterator[str]:
        for key, value in values.items():
            if is_comment(key):
                continue
            default = defaults[key]
            if isinstance(value, dict) and isinstance(default, dict):
                yield from differing(value, default)
            elif value != default:
                yield key

    shipped = json.loads((DEFAULTS / "config.json").read_text(encoding="utf-8"))
    assert list(differing(shipped, usual)) == []


# ---- a project --------------------------------------------------------------------------------------------


@pytest.mark.acceptance("I-05", "I-06", "I-07", "M-09")
def test_a_project_gets_the_templates_of_the_specification(cli: Cli, work: Path) -> None:
    outcome = cli("init")

    assert outcome.code == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in (work / ".nexus3").iterdir()} == {
        "NEXUS.md": TEXT,
        "config.json": SETTINGS,
        "mcp.json": EMPTY,
    }


def test_the_paths_are_data_and_the_next_step_is_a_message(cli: Cli, work: Path) -> None:
    outcome = cli("init")

    assert outcome.out.splitlines() == [f"{work}/.nexus3/{name}" for name in THREE]
    assert outcome.err == "Next: fill in these files; `nexus show` prints the prompt that they make.\n"


def test_another_directory_can_be_named(cli: Cli, work: Path) -> None:
    (work / "sub").mkdir()

    cli("-C", "sub", "init")

    assert names(work / "sub/.nexus3") == THREE


@pytest.mark.acceptance("I-08", "F-14")
def test_what_is_written_for_a_project_loads(cli: Cli, work: Path) -> None:
    cli("init")

    with Nexus(work) as nexus:
        loaded, context, problems = nexus.load(), nexus.context(), nexus.problems

    assert [text.path for text in loaded.texts][-1] == work / ".nexus3/NEXUS.md"
    assert (loaded.findings, loaded.servers, problems) == ((), (), ())
    assert context.config == Config()


def test_what_is_there_is_kept_and_what_is_missing_is_created(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "mine"})

    outcome = cli("init")

    assert (outcome.code, outcome.out) == (0, f"{work}/.nexus3/config.json\n{work}/.nexus3/mcp.json\n")
    assert "NEXUS.md is kept as it is; --force overwrites it.\n" in outcome.err
    assert (work / ".nexus3/NEXUS.md").read_text() == "mine"
    assert names(work / ".nexus3") == THREE


def test_where_all_files_are_there_nothing_is_overwritten(cli: Cli, work: Path) -> None:
    write_files(work / ".nexus3", dict.fromkeys(THREE, "{}"))

    outcome = cli("init")

    assert (outcome.code, outcome.out) == (3, "")
    assert "already exists: NEXUS.md, config.json, mcp.json" in outcome.err
    assert "--force" in outcome.err


def test_force_overwrites_and_says_where_the_former_file_is(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "mine", ".nexus3/mcp.json": EMPTY})

    outcome = cli("init", "--force")

    assert outcome.out.splitlines() == [f"{work}/.nexus3/NEXUS.md", f"{work}/.nexus3/config.json"]
    assert "The old NEXUS.md is kept as NEXUS.md.bak.\n" in outcome.err
    assert "mcp.json is unchanged: it already says this.\n" in outcome.err
    assert (work / ".nexus3/NEXUS.md.bak").read_text() == "mine"


def test_the_files_as_json(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "mine", ".nexus3/mcp.json": EMPTY})

    document = json.loads(cli("init", "--force", "--json").out)

    place = f"{work}/.nexus3"
    assert document == {
        "schema": 1,
        "scope": "local",
        "files": [
            {"path": f"{place}/NEXUS.md", "action": "overwritten", "backup": f"{place}/NEXUS.md.bak"},
            {"path": f"{place}/config.json", "action": "new", "backup": None},
            {"path": f"{place}/mcp.json", "action": "unchanged", "backup": None},
        ],
    }


def test_a_dry_run_lists_and_writes_nothing(cli: Cli, work: Path) -> None:
    outcome = cli("init", "--dry-run")

    assert outcome.out.splitlines() == [f"{work}/.nexus3/{name}" for name in THREE]
    assert outcome.err == "Nothing was written.\n"
    assert list(work.iterdir()) == []


def test_a_dry_run_fails_where_the_real_one_would(cli: Cli, work: Path) -> None:
    write_files(work / ".nexus3", dict.fromkeys(THREE, "mine"))

    assert cli("init", "--dry-run").code == 3


def test_a_linked_directory_is_refused_even_by_force(cli: Cli, work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (work / ".nexus3").symlink_to(tmp_path / "elsewhere")

    outcome = cli("init", "--force")

    assert outcome.code == 3
    assert f"at {work}/.nexus3" in outcome.err
    assert names(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("place", ["", ".nexus3"])
def test_the_users_own_directory_does_not_become_a_project(
    cli: Cli, user_home: Path, nexus_home: Path, place: str
) -> None:
    outcome = cli("-C", str(user_home / place), "init")

    assert outcome.code == 2
    assert "nexus init --global" in outcome.err
    assert names(nexus_home) == []


@pytest.mark.parametrize("content", ["{", '{"context": {"ancestor_depth": "x"}}', '"x"', "\x00"])
def test_force_replaces_settings_that_cannot_be_used(cli: Cli, work: Path, content: str) -> None:
    write_files(work, {".nexus3/config.json": content})

    outcome = cli("init", "--force")

    assert outcome.code == 0
    assert (work / ".nexus3/config.json").read_text() == SETTINGS
    assert (work / ".nexus3/config.json.bak").read_text() == content
    assert cli("show").code == 0


def test_settings_that_cannot_be_used_are_not_overwritten_without_force(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    outcome = cli("init")

    assert (outcome.code, (work / ".nexus3/config.json").read_text()) == (0, "{")
    assert "config.json is kept as it is" in outcome.err
    assert "--force" in outcome.err


def test_settings_that_are_not_to_be_replaced_must_be_put_right_first(cli: Cli, nexus_home: Path, work: Path) -> None:
    write_files(nexus_home, {"config.json": "{"})

    outcome = cli("init", "--force")

    assert (outcome.code, list(work.iterdir())) == (3, [])
    assert f"Invalid JSON in {nexus_home}/config.json" in outcome.err


def test_a_plugin_adds_a_file(cli: Cli, install_plugin: InstallPlugin, work: Path) -> None:
    source = """
from nexus_core import hookimpl
from nexus_core.plugin import InitFile

@hookimpl
def nexus_init_files(scope):
    return [InitFile("RULES.md", f"Be kind, {scope}.")]
"""
    install_plugin("rules", source)

    cli("init")

    assert (work / ".nexus3/RULES.md").read_text() == "Be kind, local."


def test_its_help_ends_with_two_examples(cli: Cli) -> None:
    examples = cli("init", "--help").out.rpartition("Examples:\n")[2].splitlines()

    assert [example.strip().partition(" ")[0] for example in examples] == ["nexus", "nexus"]


# ---- the user's own directory -----------------------------------------------------------------------------


@pytest.mark.acceptance("I-02")
@pytest.mark.parametrize("command", [["init", "--global"], ["--init-global"]], ids=" ".join)
def test_the_users_own_directory_gets_copies_of_the_defaults(cli: Cli, nexus_home: Path, command: list[str]) -> None:
    nexus_home.rmdir()

    outcome = cli(*command)

    assert outcome.out.splitlines() == [str(nexus_home / name) for name in THREE]
    for name in THREE:
        assert (nexus_home / name).read_bytes() == (DEFAULTS / name).read_bytes()


@pytest.mark.acceptance("I-02")
def test_nobody_else_can_read_the_users_own_directory(cli: Cli, nexus_home: Path) -> None:
    nexus_home.rmdir()
    before = os.umask(0o000)
    try:
        cli("init", "--global")
    finally:
        os.umask(before)

    assert {path.name: oct(path.stat().st_mode & 0o777) for path in (nexus_home, *nexus_home.iterdir())} == {
        ".nexus3": "0o700",
        **dict.fromkeys(THREE, "0o600"),
    }


@pytest.mark.acceptance("I-03")
@pytest.mark.parametrize("name", THREE)
@pytest.mark.parametrize("command", [["init", "--global"], ["--init-global"]], ids=" ".join)
def test_each_of_the_three_files_stops_it(cli: Cli, nexus_home: Path, command: list[str], name: str) -> None:
    write_files(nexus_home, {name: "{}"})

    outcome = cli(*command)

    assert outcome.code == 3
    assert f"already exists: {name}" in outcome.err
    assert names(nexus_home) == [name]


@pytest.mark.acceptance("I-03")
def test_a_trust_store_does_not_stop_it(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"trust.json": "{}", "ledger.sqlite": ""})

    assert cli("init", "--global").code == 0
    assert (nexus_home / "trust.json").read_text() == "{}"


@pytest.mark.acceptance("I-03")
@pytest.mark.parametrize("command", [["init", "--global", "--force"], ["--init-global", "--force"]], ids=" ".join)
def test_force_overwrites_the_users_own_files(cli: Cli, nexus_home: Path, command: list[str]) -> None:
    write_files(nexus_home, {"NEXUS.md": "mine"})

    outcome = cli(*command)

    assert outcome.code == 0
    assert (nexus_home / "NEXUS.md").read_bytes() == (DEFAULTS / "NEXUS.md").read_bytes()
    assert (nexus_home / "NEXUS.md.bak").read_text() == "mine"


@pytest.mark.acceptance("I-03")
@pytest.mark.parametrize("arguments", [["init", "--global", "--force"], ["--init-global", "--force"]], ids=" ".join)
def test_force_replaces_the_users_own_settings_that_cannot_be_used(
    cli: Cli, nexus_home: Path, install_plugin: InstallPlugin, arguments: list[str]
) -> None:
    install_plugin("perhaps_disabled", "raise AssertionError('loaded')")
    write_files(nexus_home, {"config.json": "{"})

    outcome = cli(*arguments)

    assert outcome.code == 0
    assert "only plugins that ship with Nexus were asked" in outcome.err
    assert "perhaps_disabled" not in outcome.err
    assert (nexus_home / "config.json").read_bytes() == (DEFAULTS / "config.json").read_bytes()
    assert (nexus_home / "config.json.bak").read_text() == "{"


def test_what_is_wrong_with_the_project_does_not_stop_a_directory_of_ones_own(
    cli: Cli, nexus_home: Path, work: Path
) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    assert cli("init", "--global").code == 0
    assert names(nexus_home) == THREE


@pytest.mark.acceptance("I-08", "F-14")
def test_what_is_written_for_the_user_loads(cli: Cli, work: Path) -> None:
    cli("init", "--global")
    cli("init")

    with Nexus(work) as nexus:
        loaded, context, problems = nexus.load(), nexus.context(), nexus.problems

    assert [layer.name for layer in loaded.layers] == ["global", "local"]
    assert (loaded.findings, problems) == ((), ())
    assert context.config == Config()


# ---- MCP servers that are there already: --copy-mcp -------------------------------------------------------


@pytest.mark.acceptance("I-04")
def test_a_plain_file_is_copied_with_references_instead_of_secrets(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {"servers.json": PLAIN})

    outcome = cli("init", "--global", "--copy-mcp", "servers.json")

    assert outcome.code == 0
    assert (nexus_home / "mcp.json").read_text() == PLAIN_COPY
    assert "${GITHUB_TOKEN} stands for the value of GITHUB_TOKEN of server 'github'.\n" in outcome.err
    assert TOKEN not in outcome.out + outcome.err


@pytest.mark.acceptance("I-04")
def test_of_a_file_with_other_things_only_the_servers_are_copied(cli: Cli, user_home: Path, nexus_home: Path) -> None:
    write_files(user_home, {".claude.json": CLAUDE})

    cli("init", "--global", "--copy-mcp", str(user_home / ".claude.json"))

    assert (nexus_home / "mcp.json").read_text() == CLAUDE_SERVERS


@pytest.mark.acceptance("I-04", "I-08")
@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        CLAUDE,
        '{"github": {"command": "npx"}}',
        '{"inputs": [], "servers": {"github": {"type": "http", "url": "https://example.com"}}}',
        '\ufeff{"mcpServers": {"_comment": "ours", "github": {"command": "npx"}}}',
    ],
    ids=["list", "claude", "bare", "vscode", "mark"],
)
def test_copied_servers_load(cli: Cli, work: Path, text: str) -> None:
    write_files(work, {"servers.json": text})

    cli("init", "--global", "--copy-mcp", "servers.json")

    with Nexus(work) as nexus:
        assert nexus.load().servers[0].config.name == "github"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{{"mcpServers": {{"a": {{"command": "x", "url": "{TOKEN}"}}}}}}', "both 'command' and 'url'"),
        (f'{{"mcpServers": {{"a": "{TOKEN}"}}}}', "must be an object"),
        (f'{{"mcpServers": {{"a": {{"command": "{TOKEN}",\n}}}} oops', "Expecting ',' delimiter"),
        (f'{{"projects": {{"x": "{TOKEN}"}}}}', "holds no MCP servers"),
        (f'{{"servers": [], "token": "{TOKEN}"}}', "holds no MCP servers"),
        (f'["{TOKEN}"]', "holds no MCP servers"),
        ("", "holds no MCP servers"),
        (None, "no such file"),
    ],
    ids=["two targets", "no object", "no JSON", "other things", "empty list", "a list", "blank", "not there"],
)
def test_servers_that_would_not_load_are_refused_without_showing_a_value(
    cli: Cli, work: Path, nexus_home: Path, text: str | None, reason: str
) -> None:
    write_files(work, {} if text is None else {"servers.json": text})

    outcome = cli("init", "--global", "--copy-mcp", "servers.json")

    assert (outcome.code, outcome.out) == (2 if text is None else 3, "")
    assert reason in outcome.err
    assert f"{work}/servers.json" in outcome.err
    assert TOKEN not in outcome.err
    assert names(nexus_home) == []


def test_servers_can_be_copied_later(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {"servers.json": PLAIN})
    cli("init", "--global")

    outcome = cli("init", "--global", "--force", "--copy-mcp", "servers.json")

    assert outcome.out == f"{nexus_home}/mcp.json\n"
    assert names(nexus_home) == [*THREE, "mcp.json.bak"]


@pytest.mark.parametrize("options", [(), ("--force",), ("--dry-run",)])
def test_a_missing_file_of_servers_is_named_also_where_files_exist(
    options: tuple[str, ...], cli: Cli, work: Path, nexus_home: Path
) -> None:
    cli("init", "--global")
    before = names(nexus_home)

    outcome = cli("init", "--global", "--copy-mcp", "servers.json", *options)

    assert (outcome.code, "no such file" in outcome.err, "already exists" in outcome.err) == (2, True, False)
    assert f"{work}/servers.json" in outcome.err
    assert names(nexus_home) == before


def test_servers_are_not_copied_into_a_project(cli: Cli, work: Path) -> None:
    write_files(work, {"servers.json": PLAIN})

    outcome = cli("init", "--copy-mcp", "servers.json")

    assert outcome.code == 2
    assert "--global" in outcome.err
    assert names(work) == ["servers.json"]


# ---- MCP servers that are there already: the question -----------------------------------------------------

PLACES = ["work/.nexus3/mcp.json", "work/.mcp.json"]


@pytest.mark.acceptance("I-04")
@pytest.mark.parametrize("place", [".claude.json", ".cursor/mcp.json"])
@pytest.mark.parametrize("command", [["init", "--global"], ["--init-global"]])
def test_the_servers_of_the_users_other_tools_are_copied(
    cli: Cli, user_home: Path, nexus_home: Path, place: str, command: list[str]
) -> None:
    write_files(user_home, {place: CLAUDE})

    outcome = cli(*command)

    assert (nexus_home / "mcp.json").read_text() == CLAUDE_SERVERS
    assert f"MCP servers were copied from {user_home}/{place}: github\n" in outcome.err
    assert "${GITHUB_TOKEN} stands for the value of GITHUB_TOKEN of server 'github'.\n" in outcome.err
    assert "[y/N]" not in outcome.err
    assert TOKEN not in outcome.out + outcome.err


def test_of_two_tools_the_first_is_copied_and_the_others_are_mentioned(
    cli: Cli, user_home: Path, nexus_home: Path
) -> None:
    others = {".cursor/mcp.json": '{"mcpServers": {"b": {"command": "x"}}}', ".codex/config.toml": "[mcp_servers.c]"}
    write_files(user_home, {".claude.json": CLAUDE, **others})

    outcome = cli("init", "--global")

    assert (nexus_home / "mcp.json").read_text() == CLAUDE_SERVERS
    for name in others:
        assert f"  To copy them: nexus mcp import {user_home}/{name} --global\n" in outcome.err


def test_init_reports_servers_that_are_not_an_object(cli: Cli, user_home: Path, nexus_home: Path) -> None:
    write_files(user_home, {".claude.json": '{"mcpServers": 5, "theme": "dark"}'})

    outcome = cli("init", "--global")

    assert f"{user_home}/.claude.json was skipped: `mcpServers` is not an object of servers" in outcome.err
    assert (nexus_home / "config.json").exists()


def test_no_servers_are_copied_if_that_is_not_wanted(cli: Cli, user_home: Path, nexus_home: Path) -> None:
    write_files(user_home, {".claude.json": CLAUDE})

    outcome = cli("init", "--global", "--no-copy-mcp")

    assert (nexus_home / "mcp.json").read_text() == EMPTY
    assert ".claude.json" not in outcome.err


def test_servers_that_would_not_load_are_left_where_they_are(cli: Cli, user_home: Path, nexus_home: Path) -> None:
    write_files(user_home, {".claude.json": f'{{"mcpServers": {{"a": {{"command": 5, "env": "{TOKEN}"}}}}}}'})

    outcome = cli("init", "--global")

    assert outcome.code == 0
    assert f"{user_home}/.claude.json was skipped: " in outcome.err
    assert f"nexus mcp import {user_home}/.claude.json --global --lenient\n" in outcome.err
    assert TOKEN not in outcome.err
    assert (nexus_home / "mcp.json").read_text() == EMPTY


@pytest.mark.acceptance("I-04", "T13")
@pytest.mark.parametrize("place", PLACES)
def test_without_a_terminal_servers_of_a_project_are_mentioned_and_not_copied(
    cli: Cli, tmp_path: Path, nexus_home: Path, place: str
) -> None:
    write_files(tmp_path, {place: CLAUDE})

    outcome = cli("init", "--global")

    assert f"There are MCP servers in {tmp_path}/{place}: github\n" in outcome.err
    assert f"nexus init --global --force --copy-mcp {tmp_path}/{place}\n" in outcome.err
    assert TOKEN not in outcome.out + outcome.err
    assert (nexus_home / "mcp.json").read_text() == EMPTY


@pytest.mark.acceptance("I-04")
@pytest.mark.parametrize("place", PLACES)
def test_on_a_terminal_who_says_yes_gets_a_copy(
    cli: Cli, answer: Answer, tmp_path: Path, nexus_home: Path, place: str
) -> None:
    write_files(tmp_path, {place: CLAUDE})
    answer("y\n")

    outcome = cli("init", "--global")

    assert "need no approval" in outcome.err
    assert TOKEN not in outcome.out + outcome.err
    assert (nexus_home / "mcp.json").read_text() == CLAUDE_SERVERS


@pytest.mark.acceptance("I-04")
@pytest.mark.parametrize("typed", ["\n", "n\n", "", "what\n"])
def test_on_a_terminal_any_other_answer_is_no(
    cli: Cli, answer: Answer, work: Path, nexus_home: Path, typed: str
) -> None:
    write_files(work, {".mcp.json": PLAIN})
    answer(typed)

    cli("init", "--global")

    assert (nexus_home / "mcp.json").read_text() == EMPTY


def test_each_file_is_asked_about_until_one_is_taken(
    cli: Cli, answer: Answer, tmp_path: Path, nexus_home: Path
) -> None:
    write_files(tmp_path, {"work/.nexus3/mcp.json": PLAIN, "work/.mcp.json": CLAUDE})
    answer("n\ny\n")

    outcome = cli("init", "--global")

    assert outcome.err.count("[y/N]") == 2
    assert (nexus_home / "mcp.json").read_text() == CLAUDE_SERVERS


def test_who_has_servers_already_is_not_asked(cli: Cli, answer: Answer, work: Path, nexus_home: Path) -> None:
    write_files(work, {".mcp.json": PLAIN})
    write_files(nexus_home, {"mcp.json": "{}"})
    answer("y\n")

    outcome = cli("init", "--global", "--force")

    assert "There are MCP servers" not in outcome.err


def test_a_dry_run_asks_nothing(cli: Cli, answer: Answer, work: Path, nexus_home: Path) -> None:
    write_files(work, {".mcp.json": PLAIN})
    answer("y\n")

    outcome = cli("init", "--global", "--dry-run")

    assert "[y/N]" not in outcome.err
    assert f"nexus init --global --copy-mcp {work}/.mcp.json" in outcome.err
    assert names(nexus_home) == []


@pytest.mark.parametrize("text", [EMPTY, '{"numStartups": 7}', "[]", ""])
def test_a_file_without_servers_is_not_mentioned(cli: Cli, user_home: Path, text: str) -> None:
    write_files(user_home, {".claude.json": text})

    assert ".claude.json" not in cli("init", "--global").err


def test_a_file_that_cannot_be_read_does_not_stop_it(cli: Cli, user_home: Path, nexus_home: Path) -> None:
    write_files(user_home, {".claude.json": f'{{"mcpServers": {{"a": "{TOKEN}"'})

    outcome = cli("init", "--global")

    assert outcome.code == 0
    assert f"{user_home}/.claude.json was skipped" in outcome.err
    assert TOKEN not in outcome.err
    assert names(nexus_home) == THREE


def test_a_project_is_not_asked_about_servers(cli: Cli, work: Path) -> None:
    write_files(work, {".mcp.json": PLAIN})

    assert "MCP" not in cli("init").err


def test_a_name_cannot_fake_a_line_of_the_question(cli: Cli, work: Path) -> None:
    write_files(work, {".mcp.json": json.dumps({"mcpServers": {"a\n\x1b[2Kb\u200b": {"command": "x"}, "c" * 99: {}}})})

    outcome = cli("init", "--global")

    assert f".mcp.json: a\\n\\x1b[2Kb\\u200b, {'c' * 60}\n" in outcome.err


@pytest.mark.acceptance("I-04")
@pytest.mark.parametrize(("typed", "expected"), [(b"y\n", PLAIN_COPY), (b"\n", EMPTY), (b"\x04", EMPTY)])
def test_a_real_terminal_is_asked(work: Path, nexus_home: Path, typed: bytes, expected: str) -> None:
    write_files(work, {".mcp.json": PLAIN})
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nexus_core", "init", "--global"],
        cwd=work,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 1024)

    os.write(ours, typed)
    process.communicate(timeout=30)
    os.close(ours)

    assert process.returncode == 0
    assert (nexus_home / "mcp.json").read_text() == expected


def test_an_interrupted_question_writes_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, answer: Answer, work: Path, nexus_home: Path
) -> None:
    write_files(work, {".mcp.json": PLAIN})
    answer("")

    def interrupt() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdin, "readline", interrupt)

    assert cli("init", "--global").code == 130
    assert names(nexus_home) == []
