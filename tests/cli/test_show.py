import json
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli


def test_the_prompt_is_printed(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})

    outcome = cli("show")

    assert outcome.code == 0
    assert outcome.out.startswith("# System Configuration\n")
    assert f"## Project Configuration\nSource: {work}/.nexus3/NEXUS.md\n\nBe brief.\n" in outcome.out
    assert outcome.err == ""


@pytest.mark.parametrize("name", ["project configuration", "Project Configuration", "layer-00001"])
def test_section_prints_only_the_section_with_that_heading_or_id(cli: Cli, work: Path, name: str) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})

    outcome = cli("show", "--section", name)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"## Project Configuration\nSource: {work}/.nexus3/NEXUS.md\n\nBe brief.\n"
    assert outcome.out in cli("show").out


def test_section_as_json_has_that_section_only(cli: Cli) -> None:
    whole = json.loads(cli("show", "--json").out)

    document = json.loads(cli("show", "--section", "environment", "--json").out)

    assert document["sections"] == [each for each in whole["sections"] if each["id"] == "environment"]
    assert document["prompt"] == cli("show", "--section", "environment").out
    assert document.keys() == whole.keys()


@pytest.mark.parametrize("renderer", ["labelled", "tagged"])
def test_a_section_of_any_renderer_and_role_is_printed(cli: Cli, renderer: str) -> None:
    options = ("--renderer", renderer, "--role", "manager")
    ids = [each["id"] for each in json.loads(cli("show", *options, "--json").out)["sections"]]

    for name in ids:
        assert cli("show", *options, "--section", name).out.startswith("#")


def test_an_unknown_section_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("show", "--section", "enviroment")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "Error: unknown section 'enviroment'\n  did you mean 'Environment'?\n"


def test_json_has_a_schema_and_every_section_with_its_source(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})

    document = json.loads(cli("show", "--json").out)

    assert document["schema"] == 1
    assert document["prompt"].startswith("# System Configuration")
    assert [section["source"] for section in document["sections"]][1:] == [
        {"uri": f"{work}/.nexus3/NEXUS.md", "layer": "local", "plugin": "file_layers"},
        {"uri": "settings:", "layer": "", "plugin": ""},
        {"uri": "plugin:skills", "layer": "", "plugin": "skills"},
        {"uri": "plugin:environment", "layer": "", "plugin": "environment"},
    ]


def test_json_keeps_a_text_that_the_terminal_shows_escaped(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "red: \x1b[31m"})

    shown, document = cli("show").out, json.loads(cli("show", "--json").out)

    assert "red: \\x1b[31m" in shown
    assert "red: \x1b[31m" in document["prompt"]


@pytest.mark.acceptance("P-08")
@pytest.mark.parametrize(("mode", "line"), [("repl", "Interactive REPL"), ("server", "HTTP JSON-RPC Server")])
def test_a_mode_is_shown_where_it_is_named(cli: Cli, mode: str, line: str) -> None:
    assert f"Mode: {line}\n" in cli("show", "--mode", mode).out
    assert "Mode:" not in cli("show").out


def test_another_directory_can_be_shown_from_here(cli: Cli, tmp_path: Path) -> None:
    other = write_files(tmp_path / "other", {".nexus3/NEXUS.md": "Over there."})

    before, after = cli("-C", str(other), "show"), cli("show", "-C", str(other))

    assert "Over there." in before.out
    assert before == after


def test_the_same_directory_gives_the_same_bytes_twice(cli: Cli) -> None:
    assert cli("show") == cli("show")


@pytest.mark.acceptance("T5")
def test_without_a_terminal_active_parts_are_off_and_listed(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    outcome = cli("show", "--json")

    (waiting,) = json.loads(outcome.out)["skipped"]
    assert outcome.code == 0
    assert (waiting["pointer"], waiting["decision"], waiting["summary"]) == ("/mcp_servers/a", "pending", "npx x")


@pytest.mark.acceptance("T5")
@pytest.mark.parametrize("command", [("show",), ("assemble", "hi")])
def test_what_was_allowed_is_not_listed_as_left_out(cli: Cli, work: Path, command: tuple[str, ...]) -> None:
    servers = [{"name": name, "command": ["npx", name]} for name in ("a", "b")]
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": servers})})

    cli("trust", "allow", "/mcp_servers/a", "--yes")

    assert [each["pointer"] for each in json.loads(cli(*command, "--json").out)["skipped"]] == ["/mcp_servers/b"]


@pytest.mark.acceptance("T5")
def test_a_run_can_insist_on_approval(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    refused = cli("show", "--require-trusted")
    cli("trust", "allow", "--all", "--yes")

    assert (refused.code, refused.out) == (3, "")
    assert f"{work}/.nexus3/mcp.json:1: npx x" in refused.err
    assert cli("show", "--require-trusted").code == 0


@pytest.mark.acceptance("T5")
def test_what_was_denied_is_decided_and_stops_nothing(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    cli("trust", "deny", "--all")

    assert cli("show", "--require-trusted").code == 0
    assert json.loads(cli("show", "--json").out)["skipped"][0]["decision"] == "denied"


def test_a_home_that_is_not_absolute_is_no_defect(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "somewhere")

    assert [cli("show", "--as", name).code for name in ("claude", "codex", "gemini")] == [0, 0, 0]


def test_a_directory_can_be_seen_through_the_eyes_of_another_agent(
    cli: Cli, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    write_files(
        work, {".git/HEAD": "", "AGENTS.md": "For Codex.", "CLAUDE.md": "For Claude.", "NEXUS.md": "For Nexus."}
    )

    codex, claude = cli("show", "--as", "codex").out, cli("show", "--as", "claude").out

    assert ("For Codex." in codex, "For Claude." in codex, "For Nexus." in codex) == (True, False, False)
    assert "For Claude." in claude
    assert "in the prompt" in cli("explain", "--as", "claude", "CLAUDE.md").out
    assert "AGENTS.md" in cli("layers", "--as", "codex").out


def test_an_agent_that_reads_nothing_here_is_said_to(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "GEMINI.md": "For Gemini."})

    outcome = cli("show", "--as", "claude")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith(
        "Claude Code reads nothing here; `nexus layers --all --as claude` says where it looks\n"
    )


def test_another_agent_is_shown_with_its_own_settings_and_what_it_loads_on_demand(cli: Cli, work: Path) -> None:
    write_files(
        work,
        {
            ".git/HEAD": "",
            "CLAUDE.md": "For Claude.",
            ".claude/rules/api.md": "---\npaths: src/*.ts\n---\nFor the API.",
            ".claude/rules/git.md": "Always.",
            "web/CLAUDE.md": "For the web.",
        },
    )

    outcome = cli("show", "--as", "claude")
    document = json.loads(cli("show", "--as", "claude", "--json").out)

    assert ("Always." in outcome.out, "For the API." in outcome.out, "For the web." in outcome.out) == (
        True,
        False,
        False,
    )
    assert f"On demand: {work}/.claude/rules/api.md, for files that match src/*.ts\n" in outcome.err
    assert f"On demand: {work}/web/CLAUDE.md, when it reads or changes a file in web/\n" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("Not known: its version")
    assert document["agent"] == "Claude Code"
    assert [(each["path"], each["paths"]) for each in document["on_demand"]] == [
        (f"{work}/.claude/rules/api.md", ["src/*.ts"]),
        (f"{work}/web/CLAUDE.md", []),
    ]
    assert all(rule["source"].startswith("https://") for rule in document["rules"])
    assert f"{work}/web/CLAUDE.md" in cli("layers", "--as", "claude").out


@pytest.mark.parametrize(
    ("variable", "agent", "file"),
    [
        ("CLAUDE_CONFIG_DIR", "claude", "CLAUDE.md"),
        ("CODEX_HOME", "codex", "AGENTS.md"),
        ("GEMINI_CLI_HOME", "gemini", ".gemini/GEMINI.md"),
    ],
)
def test_the_home_of_another_agent_is_where_its_own_variable_says(
    *, variable: str, agent: str, file: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    write_files(tmp_path / "elsewhere", {file: "From my own home."})

    assert "From my own home." in cli("--home", str(tmp_path / "other"), "show", "--as", agent).out


def test_an_agent_that_is_not_known_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("show", "--as", "cluade")

    assert (outcome.code, "did you mean 'claude'?" in outcome.err) == (2, True)


def test_skills_that_another_agent_loads_on_demand_are_listed_as_explain_says(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", ".claude/skills/x/SKILL.md": "---\nname: x\ndescription: X.\n---\nDo x.\n"})

    shown, document = cli("show", "--as", "claude"), json.loads(cli("show", "--as", "claude", "--json").out)

    skill, when = f"{work}/.claude/skills/x/SKILL.md", "when the skill is used"
    assert f"On demand: {skill}, {when}" in shown.err
    assert document["on_demand"] == [{"path": skill, "when": when, "paths": []}]
    assert "not reproduced: the descriptions of skills" in document["unknown"]
    assert f"loaded on demand, {when}" in cli("explain", skill, "--as", "claude").out


def test_a_rule_for_some_files_is_shown_for_such_a_file_and_listed_otherwise(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", ".cursor/rules/ts.mdc": "---\nglobs: *.ts\n---\nUse strict types.\n"})

    apart, there = cli("show", "--as", "cursor"), cli("show", "--as", "cursor", "--file", "src/a.ts")

    assert "Use strict types." not in apart.out
    assert f"On demand: {work}/.cursor/rules/ts.mdc, for files that match *.ts" in apart.err
    assert "Use strict types." in there.out


@pytest.mark.parametrize(
    "command",
    [("show",), ("show", "--json"), ("layers",), ("doctor",), ("context",), ("explain", "Be brief.")],
    ids=" ".join,
)
def test_a_file_outside_the_project_is_noted(cli: Cli, work: Path, command: tuple[str, ...]) -> None:
    write_files(work, {".git/HEAD": "", "AGENTS.md": "Be brief.\n"})

    outside, inside = (cli(*command, "--as", "cursor", "--file", name) for name in ("../elsewhere.ts", "src/a.ts"))

    assert f"Outside the project: {work.parent}/elsewhere.ts; no rule of the project is for it" in outside.err
    assert "Outside the project" not in inside.err


def test_a_link_of_the_project_is_a_file_of_the_project(cli: Cli, work: Path) -> None:
    rule = "---\nglobs: src/*.ts\n---\nUse strict types.\n"
    write_files(work, {".git/HEAD": "", ".cursor/rules/ts.mdc": rule, "src/b.ts": ""})
    write_files(work.parent, {"elsewhere.ts": ""})
    (work / "src/a.ts").symlink_to(work.parent / "elsewhere.ts")

    shown = cli("show", "--as", "cursor", "--file", "src/a.ts")

    assert "Use strict types." in shown.out
    assert "Outside the project" not in shown.err


def test_an_empty_file_is_a_usage_error(cli: Cli) -> None:
    outcome = cli("show", "--as", "cursor", "--file", "")

    assert outcome.code == 2
    assert "--file must not be empty" in outcome.err


@pytest.mark.parametrize("command", [("show",), ("layers",), ("doctor",), ("context",), ("explain", "Be brief.")])
def test_a_file_without_another_agent_is_a_usage_error(cli: Cli, command: tuple[str, ...]) -> None:
    outcome = cli(*command, "--file", "a.ts")

    assert outcome.code == 2
    assert "--file is about the rules of another agent" in outcome.err
