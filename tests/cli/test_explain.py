import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.types.ledger import NewStep, Step
from tests.conftest import Cli, Outcome
from tests.ledger.test_verify import tamper
from tests.session.support import says

RULE_AGENTS = "Cursor, GitHub Copilot, opencode, goose and Cline"


def test_a_setting_is_explained_with_what_it_overrode(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "own"}}'})
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "project"}}'})

    rows = [line.split() for line in cli("explain", "provider.model").out.splitlines()]

    assert rows == [
        ["provider.model", f"{work}/.nexus3/config.json:1", "'project'", "(local)"],
        ["provider.model", f"{nexus_home}/config.json:1", "overridden", "(global)"],
    ]


def test_of_a_group_that_several_files_make_up_none_is_called_overridden(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "own", "provider": "openai"}, "budget": {}}'})
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "project"}}'})

    rows = [line.split(maxsplit=2) for line in cli("explain", "provider").out.splitlines()]

    assert [row[2] for row in rows] == ["a group of settings (local)", "some of it (global)"]


def test_a_list_of_words_is_shown_whole_with_the_files_that_it_was_joined_from(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": '{"skills": {"disabled": ["a"]}}'})
    write_files(work, {".nexus3/config.json": '{"skills": {"disabled": ["b"]}}'})

    rows = [line.split(maxsplit=2) for line in cli("explain", "skills.disabled").out.splitlines()]

    assert [row[2] for row in rows] == ["['a', 'b'] (local)", "some of it (global)"]


def test_a_group_of_which_nothing_is_left_is_overridden(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"skills": {"disabled": ["a"]}}'})
    write_files(work, {".nexus3/config.json": '{"skills": {"disabled": {"$replace": ["b"]}}}'})

    assert "overridden (global)" in cli("explain", "skills.disabled").out


@pytest.mark.acceptance("T10")
def test_a_secret_is_not_told_by_whoever_says_where_it_comes_from(cli: Cli, nexus_home: Path) -> None:
    command = ["serve", "--token=ghp_abcdefghijklmnopqrstuvwxyz0123456789"]
    server = {"name": "docs", "command": command, "env": {"KEY": "planted"}}
    config = {"provider": {"options": {"api_key": "planted"}}, "mcp_servers": [server]}
    write_files(nexus_home, {"config.json": json.dumps(config)})
    keys = ["provider.options.api_key", "mcp_servers.0.env.KEY", "mcp_servers.0.command.1"]

    outcomes = [cli(*command, key) for command in [("explain",), ("config", "get")] for key in keys]

    assert [outcome.code for outcome in outcomes] == [0] * 6
    assert ["(hidden)" in outcome.out or "***" in outcome.out for outcome in outcomes] == [True] * 6
    assert not [outcome for outcome in outcomes if "planted" in outcome.out or "ghp_" in outcome.out]


@pytest.mark.parametrize("query", ["docs", "mcp_servers.docs"])
def test_a_server_is_explained_with_the_one_whose_place_it_takes(
    cli: Cli, work: Path, nexus_home: Path, query: str
) -> None:
    write_files(nexus_home, {"mcp.json": '{"servers": [{"name": "docs", "command": ["mine"]}]}'})
    write_files(work, {".nexus3/mcp.json": '{"servers": [\n{"name": "docs", "command": ["theirs"]}]}'})

    rows = [line.split(maxsplit=2) for line in cli("explain", query).out.splitlines()]

    assert rows == [
        ["mcp_servers.docs", f"{work}/.nexus3/mcp.json:2", "not approved (local)"],
        ["mcp_servers.docs", f"{nexus_home}/mcp.json:1", "overridden (global)"],
    ]


def test_a_long_question_is_not_repeated_in_the_answer(cli: Cli) -> None:
    outcome = cli("explain", "x" * 100_000)

    assert outcome.code == 1
    assert len(outcome.err) < 300


def test_a_setting_without_a_default_says_so(cli: Cli) -> None:
    outcome = cli("explain", "provider.model")

    assert "not set; no default" in outcome.out
    assert "None" not in outcome.out


def test_a_default_is_explained(cli: Cli) -> None:
    assert "not set; the default is 3" in cli("explain", "compaction.keep_turns").out


def test_a_protected_setting_says_why_it_has_no_effect(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"base_url": "https://evil"}}'})

    assert (
        "provider.base_url can only be set in your own config, not by a project; it is ignored"
        in cli("explain", "provider.base_url").out
    )


def test_a_sentence_is_traced_to_its_file_and_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "# Rules\n\nNever log a token.\n"})

    first, second = cli("explain", "log a token").out.splitlines()

    assert first.split() == ["Project", "Configuration", f"{work}/.nexus3/NEXUS.md:3", "in", "the", "prompt"]
    assert second == f"  Claude Code, Codex, Gemini CLI, {RULE_AGENTS} do not read NEXUS.md"


def test_a_computed_sentence_is_traced_to_its_plugin(cli: Cli) -> None:
    assert "plugin:environment" in cli("explain", "Operating system: ").out


def test_a_file_is_explained_whether_it_is_used_or_not(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Use me.", "README.md": "# Project"})

    assert "in the prompt (local)" in cli("explain", "NEXUS.md").out
    assert "not in the prompt: the layer has instructions" in cli("explain", "README.md").out


@pytest.mark.parametrize("name", ["NEXUS.md", ".nexus3/NEXUS.md"])
def test_a_file_in_the_layers_directory_is_found_by_its_name_alone(cli: Cli, work: Path, name: str) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Use me."})

    assert cli("explain", name).out.splitlines()[0] == f"{work}/.nexus3/NEXUS.md  in the prompt (local)"


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("link", ["AGENTS.md", ".nexus3"])
def test_what_lies_outside_the_project_is_not_searched_for_a_sentence(
    cli: Cli, work: Path, tmp_path: Path, link: str
) -> None:
    write_files(tmp_path, {"secrets/NEXUS.md": "The sauce is secret."})
    (work / link).symlink_to(tmp_path / "secrets" / ("NEXUS.md" if link == "AGENTS.md" else ""))

    assert cli("explain", "sauce is secret").code == 1


def test_links_that_form_a_circle_are_no_defect(cli: Cli, work: Path) -> None:
    (work / ".nexus3").symlink_to(".nexus3")

    assert cli("explain", "no such thing.md").code == 1


def test_a_part_of_a_file_that_is_not_used_is_explained_with_its_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": {},\n"inputs": []}'})

    out = cli("explain", ".nexus3/mcp.json").out

    assert f"{work}/.nexus3/mcp.json:2" in out
    assert "not used: unknown key 'inputs'" in out


def test_a_sentence_of_a_skipped_file_says_why_it_is_absent(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Use me.", "README.md": "# Project\n\nSecret sauce.\n"})

    assert f"{work}/README.md:3" in cli("explain", "Secret sauce").out


def test_what_is_nowhere_is_said_to_be_nowhere(cli: Cli) -> None:
    outcome = cli("explain", "no such thing at all")

    assert (outcome.code, outcome.out) == (1, "")
    assert "Nothing in the prompt or the settings" in outcome.err


def test_a_misspelt_setting_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("explain", "provider.modl")

    assert (outcome.code, "Did you mean 'provider.model'?" in outcome.err) == (1, True)


@pytest.mark.parametrize("query", ["", " "])
def test_nothing_cannot_be_explained(cli: Cli, query: str) -> None:
    assert cli("explain", query).code == 2


def test_explanations_as_json(cli: Cli) -> None:
    (row,) = json.loads(cli("explain", "context.ancestor_depth", "--json").out)["explanations"]

    assert row["subject"] == "context.ancestor_depth"


def test_a_sentence_of_an_imported_file_is_found_there(cli: Cli, work: Path) -> None:
    write_files(work, {"CLAUDE.md": "# Rules\n@style.md\n", "style.md": "One\nTwo spaces.\n"})

    outcome = cli("-C", str(work), "explain", "Two spaces")

    assert f"{work / 'style.md'}:2  in the prompt" in outcome.out


# ---- anywhere in the project -----------------------------------------------------------------------------------------

RULES = "# Rules\n\n1. Use tabs.\n\n- **Silently ignore** files that are\n  `generated`, [always](docs/why.md).\n"
UNREAD = ", which neither Nexus nor an agent that --as knows reads"


@pytest.fixture
def project(work: Path) -> Path:
    """A repository with instructions for several agents."""
    write_files(
        work,
        {
            ".git/HEAD": "",
            "AGENTS.md": RULES,
            "CLAUDE.md": "# For Claude\n\nBe brief.\n",
            "web/CLAUDE.md": "Web uses pnpm.\n",
            "api/AGENTS.md": "The API speaks JSON.\n",
            ".claude/rules/ts.md": "---\npaths: src/*.ts\n---\nNo enums.\n",
            ".cursor/rules/style.mdc": "---\nalwaysApply: true\n---\nCursor likes blue.\n",
            ".github/copilot-instructions.md": "Copilot likes green.\n",
            ".windsurf/rules/style.md": "Windsurf likes red.\n",
            "docs/why.md": "Because of the weather.\n",
        },
    )
    return work


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "sentence",
    [
        "- Silently ignore files that are generated, always.",
        "- **Silently ignore** files that are\n  `generated`, [always](docs/why.md).",
        "SILENTLY   IGNORE files\tthat are generated",
        "silently _ignore_ files that are generated, always",
        "- Silently ignore …",
        "> * Silently ignore files...",
        "generated, always.",
    ],
)
def test_a_sentence_is_found_whatever_its_case_its_breaks_and_its_decoration(
    cli: Cli, work: Path, sentence: str
) -> None:
    outcome = cli("explain", sentence)

    assert outcome.code == 0
    assert f"{work}/AGENTS.md:{6 if sentence.startswith('gen') else 5}  in the prompt\n" in outcome.out


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "- Use tabs."),
        ("- Use tabs.", "--json"),
        ("--as", "codex", "- Use tabs.", "--json"),
        ("--json", "--", "- Use tabs."),
        ("-Use tabs.", "--json"),
        ("-C", ".", "--json", "- Use tabs."),
    ],
)
def test_a_pasted_bullet_is_not_an_option(cli: Cli, work: Path, arguments: tuple[str, ...]) -> None:
    outcome = cli("explain", *arguments)

    assert outcome.code == (1 if arguments[0] == "-Use tabs." else 0), outcome.err
    if outcome.code == 0:
        assert json.loads(outcome.out)["explanations"][0]["place"] == f"{work}/AGENTS.md:3"


@pytest.mark.usefixtures("project")
def test_a_sentence_that_begins_with_an_option_is_a_sentence(cli: Cli, work: Path) -> None:
    write_files(work, {"docs/options.md": "--json prints JSON, -C names a directory.\n"})

    assert f"{work}/docs/options.md:1" in cli("explain", "--json prints JSON").out


def test_an_option_with_a_value_that_has_blanks_stays_an_option(cli: Cli, work: Path) -> None:
    write_files(work / "my place", {"NEXUS.md": "Be kind."})

    outcomes = [cli("explain", option, "Be kind") for option in (f"--directory={work}/my place", f"-C{work}/my place")]

    assert [f"{work}/my place/NEXUS.md:1" in outcome.out for outcome in outcomes] == [True, True]


@pytest.mark.usefixtures("project")
def test_a_sentence_says_who_reads_its_file_and_who_does_not(cli: Cli, work: Path) -> None:
    assert cli("explain", "Use tabs.").out.splitlines() == [
        f"Workspace Rules (work)  {work}/AGENTS.md:3  in the prompt",
        f"  also read by Codex, {RULE_AGENTS}",
        "  Claude Code does not read AGENTS.md: CLAUDE.md comes first",
        "  Gemini CLI does not read AGENTS.md",
    ]
    assert cli("explain", "Be brief.").out.splitlines()[-4:] == [
        f"{work}/CLAUDE.md:3  not in the prompt: AGENTS.md comes first",
        "  read by Claude Code and GitHub Copilot",
        "  Codex, Gemini CLI, Cursor, goose and Cline do not read CLAUDE.md",
        "  opencode does not read CLAUDE.md: AGENTS.md comes first",
    ]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("sentence", "lines"),
    [
        (
            "Web uses pnpm",
            [
                "{work}/web/CLAUDE.md:1  not in the prompt here: read only in {work}/web and below",
                "  Claude Code loads it on demand, when it reads or changes a file in web/",
                "  Codex, Gemini CLI, Cursor, GitHub Copilot, goose and Cline do not read CLAUDE.md",
                "  opencode loads it on demand, when it reads a file in web/",
            ],
        ),
        (
            "The API speaks JSON",
            [
                "{work}/api/AGENTS.md:1  not in the prompt here: read only in {work}/api and below",
                "  Claude Code does not read AGENTS.md: CLAUDE.md comes first",
                "  Codex reads it only in {work}/api and below",
                "  Cursor, GitHub Copilot and goose load it on demand, when it works on a file in api/",
                "  Gemini CLI does not read AGENTS.md",
                "  opencode loads it on demand, when it reads a file in api/",
                "  read by Cline",
            ],
        ),
        (
            "No enums.",
            [
                "{work}/.claude/rules/ts.md:4  not in the prompt: Nexus does not read ts.md",
                "  Claude Code loads it on demand, for files that match src/*.ts",
                f"  Codex, Gemini CLI, {RULE_AGENTS} do not read ts.md",
            ],
        ),
        (
            "Cursor likes blue",
            [
                "{work}/.cursor/rules/style.mdc:4  not in the prompt: Nexus does not read style.mdc",
                "  read by Cursor and Cline",
                "  Claude Code, Codex, Gemini CLI, GitHub Copilot, opencode and goose do not read style.mdc",
            ],
        ),
        (
            "copilot likes **green**",
            [
                (
                    "{work}/.github/copilot-instructions.md:1  not in the prompt: Nexus does not read"
                    " copilot-instructions.md"
                ),
                "  read by GitHub Copilot",
                (
                    "  Claude Code, Codex, Gemini CLI, Cursor, opencode, goose and Cline do not read"
                    " copilot-instructions.md"
                ),
            ],
        ),
        (
            "windsurf likes red",
            [f"{{work}}/.windsurf/rules/style.md:1  not in the prompt: a file for Windsurf{UNREAD}"],
        ),
        ("because of the weather", ["{work}/docs/why.md:1  not in the prompt: no agent reads this file by itself"]),
    ],
)
def test_a_sentence_that_is_not_in_the_prompt_says_why(cli: Cli, work: Path, sentence: str, lines: list[str]) -> None:
    outcome = cli("explain", sentence)

    assert outcome.code == 0
    first, *rest = outcome.out.splitlines()
    assert [first, *sorted(rest)] == [lines[0].format(work=work), *sorted(line.format(work=work) for line in lines[1:])]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        (".cursor/rules", "{work}/.cursor/rules/style.mdc  not in the prompt: Nexus does not read style.mdc"),
        (".windsurf/rules", "{work}/.windsurf/rules/style.md  not in the prompt: a file for Windsurf"),
        ("web/CLAUDE.md", "{work}/web/CLAUDE.md  not in the prompt here: read only in {work}/web and below"),
        ("docs/", "{work}/docs/why.md  not in the prompt: no agent reads this file by itself"),
        ("AGENTS.md", "{work}/AGENTS.md  in the prompt (local)"),
    ],
)
def test_a_path_is_explained_with_those_who_read_it(cli: Cli, work: Path, path: str, line: str) -> None:
    assert cli("explain", path).out.startswith(line.format(work=work))


@pytest.mark.usefixtures("project")
def test_a_file_of_the_repository_is_found_from_a_directory_inside(cli: Cli, work: Path) -> None:
    outcomes = [cli("-C", "web", "explain", query) for query in ("api/AGENTS.md", "The API speaks JSON")]

    assert [f"{work}/api/AGENTS.md" in outcome.out for outcome in outcomes] == [True, True]


@pytest.mark.usefixtures("project")
def test_for_another_agent_only_that_one_answers(cli: Cli, work: Path) -> None:
    assert cli("explain", "--as", "codex", "Be brief.").out == (
        f"{work}/CLAUDE.md:3  not in the prompt: Codex does not read CLAUDE.md\n"
    )
    assert cli("explain", "--as", "claude", "No enums").out == (
        f"{work}/.claude/rules/ts.md:4  loaded on demand, for files that match src/*.ts\n"
    )
    assert cli("explain", "--as", "claude", "Use tabs").out == (
        f"{work}/AGENTS.md:3  not in the prompt: CLAUDE.md comes first\n"
    )


@pytest.mark.usefixtures("project")
def test_a_rule_is_in_the_prompt_of_another_agent_for_a_file_that_it_matches(cli: Cli, work: Path) -> None:
    outcomes = [cli("explain", "--as", "claude", "--file", f"src/{name}", "No enums").out for name in ("a.ts", "a.py")]

    assert f"{work}/.claude/rules/ts.md:4  in the prompt" in outcomes[0]
    assert outcomes[1] == f"{work}/.claude/rules/ts.md:4  loaded on demand, for files that match src/*.ts\n"


def test_a_sentence_that_a_limit_cuts_off_says_where(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "AGENTS.md": "x" * 33_000 + "\nBeyond the limit.\n"})

    sentence, file = cli("explain", "beyond the limit").out, cli("explain", "AGENTS.md").out

    cut = "Codex does not read all of AGENTS.md: cut at 32 KiB of all project files together, in line 1"
    assert f"{work}/AGENTS.md:2  in the prompt" in sentence
    assert cut in sentence
    assert cut in file
    assert "also read by Claude Code" in sentence


def test_a_file_for_which_a_limit_leaves_no_room_is_not_read_wherever_one_asks(
    cli: Cli, work: Path, tmp_path: Path
) -> None:
    config = tmp_path / "agents/codex/config.toml"
    write_files(config.parent, {config.name: "project_doc_max_bytes = 50\n"})
    write_files(work, {".git/HEAD": "", "AGENTS.md": "x" * 311 + "\n", "pkg/AGENTS.md": "Pack light.\n"})

    inside, above = (cli(*at, "explain", "pack light").out for at in (("-C", "pkg"), ()))
    layers = cli("-C", "pkg", "layers", "--as", "codex").out

    why = f"the files before it use up project_doc_max_bytes = 50 ({config})"
    assert f"  Codex does not read AGENTS.md: {why}\n" in inside
    assert f"  Codex does not read AGENTS.md: {why}\n" in above
    assert re.search(rf"(?m)^{re.escape(why)} +{re.escape(str(work))}/pkg/AGENTS.md", layers)
    assert "AGENTS.md (50 of 312 characters)" in layers
    assert "FOUND BY" not in layers
    assert f"Codex reads none of it: {why}" in cli("-C", "pkg", "show", "--as", "codex").err


@pytest.mark.usefixtures("project")
def test_a_sentence_is_not_found_inside_words(cli: Cli, work: Path) -> None:
    write_files(work, {"docs/rules.md": "**Unscoped** claude rule here.\n"})

    assert cli("explain", "Scoped claude rule").code == 1
    assert f"{work}/docs/rules.md:1" in cli("explain", "unscoped claude rule").out


SKILL = "---\nname: {0}\ndescription: Does the {0} thing.\n---\nPush the {0} button.\n"


@pytest.mark.parametrize(
    ("place", "readers"),
    [
        (".nexus3", ("", f"Claude Code, Codex, Gemini CLI, {RULE_AGENTS} do not read SKILL.md")),
        (".claude", (f"Claude Code, {RULE_AGENTS} load", "Codex and Gemini CLI do not read SKILL.md")),
        (
            ".agents",
            (
                "Codex, Gemini CLI, Cursor, GitHub Copilot, opencode and goose load",
                "Claude Code and Cline do not read SKILL.md",
            ),
        ),
        (
            ".codex",
            (
                "Codex and Cursor load",
                "Claude Code, Gemini CLI, GitHub Copilot, opencode, goose and Cline do not read SKILL.md",
            ),
        ),
    ],
)
@pytest.mark.parametrize("part", ["description", "guide", "path"])
def test_a_skill_is_described_in_the_prompt_and_read_on_demand(
    cli: Cli, work: Path, place: str, readers: tuple[str, str], part: str
) -> None:
    on_demand, unread = readers
    name = f"{place}/skills/x/SKILL.md"
    write_files(work, {".git/HEAD": "", name: SKILL.format("x")})
    query = {"description": "Does the x thing", "guide": "push the x button", "path": name}[part]

    lines = cli("explain", query).out.splitlines()

    described = "its description is in the prompt; the guide is read on demand (`nexus skill show x`)"
    assert (
        lines[0]
        == {
            "description": f"Nexus Environment  {work}/{name}:3  {described}",
            "guide": f"{work}/{name}:5  loaded on demand, by `nexus skill show x`",
            "path": f"{work}/{name}  loaded on demand, by `nexus skill show x`",
        }[part]
    )
    known = "; it has the description from the start" if part == "description" else ""
    loads = [f"  {on_demand} it on demand, when the skill is used{known}"] if on_demand else []
    assert sorted(lines[1:]) == sorted([*loads, f"  {unread}"])


def test_a_skill_of_the_user_is_found(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_files(tmp_path / "home", {".agents/skills/y/SKILL.md": SKILL.format("y")})

    description, guide = (cli("explain", query).out for query in ("Does the y thing", "push the y button"))

    path = f"{tmp_path}/home/.agents/skills/y/SKILL.md"
    assert f"{path}:3  its description is in the prompt" in description
    assert f"{path}:5  loaded on demand, by `nexus skill show y`\n" in guide
    loading = "Codex, Gemini CLI, Cursor, GitHub Copilot and opencode"
    assert f"  {loading} load it on demand, when the skill is used\n" in guide


def test_a_skill_that_is_turned_off_or_of_another_directory_is_said_to_be(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": '{"skills": {"disabled": ["x"]}}'})
    write_files(work, {".git/HEAD": "", ".agents/skills/x/SKILL.md": SKILL.format("x")})
    write_files(work, {"pkg/.agents/skills/z/SKILL.md": SKILL.format("z")})

    off, elsewhere = (cli("explain", f"push the {name} button").out for name in "xz")

    assert "not in the prompt: it is not among the skills in the prompt\n" in off
    assert f"not in the prompt here: read on demand, only in {work}/pkg and below\n" in elsewhere


def test_a_section_names_the_skills_that_it_came_from(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", ".claude/skills/x/SKILL.md": SKILL.format("x")})

    sections = {each["id"]: each for each in json.loads(cli("show", "--json").out)["sections"]}

    assert sections["nexus-environment"]["files"] == [
        {"path": f"{work}/.claude/skills/x/SKILL.md", "read_by": "`nexus skill show x`"}
    ]


def test_a_word_may_be_a_directory_and_a_word_of_a_sentence(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "AGENTS.md": "# Hammers\n", "hammers/AGENTS.md": "Use a mallet.\n"})

    lines = [line for line in cli("explain", "hammers").out.splitlines() if not line.startswith(" ")]

    assert lines == [
        f"Workspace Rules (work)  {work}/AGENTS.md:1  in the prompt",
        f"{work}/hammers/AGENTS.md  not in the prompt here: read only in {work}/hammers and below",
    ]


def test_a_sentence_in_a_comment_is_not_read_by_claude(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "CLAUDE.md": "Visible.\n<!-- Only for people. -->\n"})

    line = "Claude Code does not read all of CLAUDE.md: this is inside an HTML comment\n"
    assert line in cli("explain", "only for people").out


def test_a_link_to_the_file_that_holds_a_sentence_counts(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "AGENTS.md": "Shared rule.\n"})
    (work / "CLAUDE.md").symlink_to("AGENTS.md")

    assert f"read by Claude Code, as {work}/CLAUDE.md" in cli("explain", "shared rule").out


def test_a_sentence_of_the_users_own_file_for_another_agent_is_found(cli: Cli, tmp_path: Path) -> None:
    write_files(tmp_path / "agents/claude", {"CLAUDE.md": "Call me Al.\n"})

    outcome = cli("explain", "call me al")

    assert f"{tmp_path}/agents/claude/CLAUDE.md:1  not in the prompt: Nexus does not read CLAUDE.md\n" in outcome.out
    assert "  read by Claude Code\n" in outcome.out


@pytest.mark.usefixtures("project")
def test_a_sentence_as_json_has_every_agent_and_how_far_the_search_went(cli: Cli, work: Path) -> None:
    document = json.loads(cli("explain", "cursor likes blue", "--json").out)

    (row,) = document["explanations"]
    assert sorted(row) == ["place", "readers", "remark", "subject"]
    assert [(each["agent"], each["name"], each["status"]) for each in row["readers"]] == [
        ("nexus", "Nexus", "unread"),
        ("claude", "Claude Code", "unread"),
        ("codex", "Codex", "unread"),
        ("gemini", "Gemini CLI", "unread"),
        ("cursor", "Cursor", "read"),
        ("copilot", "GitHub Copilot", "unread"),
        ("opencode", "opencode", "unread"),
        ("goose", "goose", "unread"),
        ("cline", "Cline", "read"),
    ]
    assert (document["searched"]["root"], document["searched"]["complete"]) == (str(work), True)
    assert sorted(document["searched"]) == ["bytes", "complete", "files", "root"]


def test_more_places_than_an_answer_has_are_said_to_be_there(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", **{f"docs/{number}.md": "The same everywhere.\n" for number in range(60)}})

    outcome = cli("explain", "the same everywhere")

    assert len(outcome.out.splitlines()) == 50
    assert "only the first 50 places are listed" in outcome.err


def test_of_places_that_no_agent_reads_a_few_are_listed_beside_one_that_is_read(cli: Cli, work: Path) -> None:
    repeated = {f"docs/{number}.md": "The same everywhere.\n" for number in range(12)}
    write_files(work, {".git/HEAD": "", "AGENTS.md": "The same everywhere.\n", **repeated})

    outcome = cli("explain", "the same everywhere")

    assert "AGENTS.md:1" in outcome.out
    assert outcome.out.count("no agent reads this file by itself") == 5
    assert "7 more places that no agent reads by itself; --json lists them" in outcome.err


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("name", [".env", ".git/config", "node_modules/x/README.md", "link.md", "linked/x.md"])
def test_what_is_private_fetched_or_outside_is_not_searched(cli: Cli, work: Path, tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"outside/x.md": "The sauce is secret."})
    write_files(work, {".git/HEAD": ""})
    if name.startswith("link"):
        target = tmp_path / "outside"
        (work / name.partition("/")[0]).symlink_to(target / "x.md" if name == "link.md" else target)
    else:
        write_files(work, {name: "The sauce is secret."})

    assert cli("explain", "sauce is secret").code == 1


def test_files_that_are_not_text_are_passed_over(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": ""})
    (work / "data.bin").write_bytes(b"\0The sauce is secret.")
    (work / "latin.txt").write_bytes(b"Caf\xe9: the sauce is here.\n")

    assert cli("explain", "sauce is secret").code == 1
    assert f"{work}/latin.txt:1" in cli("explain", "the sauce is here").out


def test_a_sentence_in_a_file_too_large_for_a_prompt_is_found(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "log.txt": "x\n" * 600_000 + "The sauce is here.\n"})

    assert f"{work}/log.txt:600001" in cli("explain", "the sauce is here").out


def test_a_file_that_could_not_be_searched_is_counted_as_missing(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_core.layers.explain.MAX_SEARCHED_BYTES", 10_000)
    write_files(work, {".git/HEAD": "", "log.txt": "x\n" * 10_000 + "The sauce is here.\n"})

    outcome = cli("explain", "the sauce is here", "--json")

    assert json.loads(outcome.out)["searched"]["complete"] is False
    assert "there are more files than" in outcome.err


@pytest.mark.parametrize(
    ("place", "agents"),
    [
        (".nexus3", ["nexus"]),
        (".claude", ["nexus", "claude", "cursor", "copilot", "opencode", "goose", "cline"]),
        (".agents", ["nexus", "codex", "gemini", "cursor", "copilot", "opencode", "goose"]),
        (".codex", ["nexus", "codex", "cursor"]),
        (".gemini", ["gemini"]),
    ],
)
def test_a_skill_is_loaded_on_demand_by_the_agents_that_look_there(
    cli: Cli, work: Path, place: str, agents: list[str]
) -> None:
    guide = f"{place}/skills/mail/SKILL.md"
    write_files(work, {".git/HEAD": "", guide: "---\nname: mail\ndescription: Mail.\n---\nSend it.\n"})

    (row,) = json.loads(cli("explain", guide, "--json").out)["explanations"]

    assert [each["agent"] for each in row["readers"] if each["status"] == "on-demand"] == agents


def test_the_users_home_is_not_searched_as_a_project(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "someone"))
    write_files(tmp_path / "someone", {"letters/x.md": "Dear all.\n"})

    outcome = cli("-C", str(tmp_path / "someone"), "explain", "dear all")

    assert (outcome.code, "no file below" in outcome.err) == (1, False)


@pytest.mark.parametrize("query", ["Never log a token.", "Never lo\u200bg a token."])
def test_explain_sees_across_characters_without_a_glyph(cli: Cli, work: Path, query: str) -> None:
    write_files(work, {"notes.md": "# Notes\n\nNever\u200b log a to\u00adken.\n"})

    outcome = cli("explain", query)

    assert outcome.code == 0
    assert f"{work}/notes.md:3" in outcome.out


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_explain_finds_a_sentence_in_a_utf_16_file(cli: Cli, work: Path, encoding: str) -> None:
    (work / "notes.md").write_bytes("\ufeffone\r\nNever log a token.".encode(encoding))

    outcome = cli("explain", "Never log a token.")

    assert outcome.code == 0
    assert f"{work}/notes.md:2" in outcome.out


# ---- in a session ---------------------------------------------------------------------------------------------------


@pytest.fixture
def session(work: Path, nexus_home: Path) -> Iterator[Session]:
    """A conversation in which a file was changed."""
    write_files(work, {".nexus3/NEXUS.md": "Speak plainly.\nNever log a token.\n"})
    with Nexus(work, home=nexus_home) as nexus:
        talk = nexus.session("auth-bug", model="claude-sonnet-4")
        talk.ask("Why does login fail?")
        talk.record(says("The cookie expires.", name="msg_1"))
        write_files(work, {".nexus3/NEXUS.md": "Speak softly.\nNever log a token.\n"})
        talk.ask("And then?")
        talk.record(says("Then it fails.", name="msg_2"))
        yield talk


def steps(work: Path, nexus_home: Path) -> list[Step]:
    """The steps of the session behind the one that says when it started."""
    with Nexus(work, home=nexus_home) as nexus:
        record = nexus.ledger.session("auth-bug")
        assert record is not None
        assert record.tip is not None
        return nexus.ledger.thread(record.tip)[1:]


def rows(outcome: Outcome) -> list[list[str]]:
    assert outcome.code == 0, outcome.err
    return [re.split(" {2,}", line) for line in outcome.out.splitlines()]


@pytest.mark.usefixtures("session")
def test_a_sentence_of_a_session_is_traced_to_its_section_and_to_the_step_that_told_it(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    told = steps(work, nexus_home)[4]

    assert rows(cli("explain", "--session", "auth-bug", "Speak plainly")) == [
        ["Project Configuration", f"{work}/.nexus3/NEXUS.md", "in the system prompt of the session"],
        ["Changed Instructions", "plugin:nexus", f"sent, in step {told.id}"],
    ]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    ("words", "place", "who"), [("login", 1, "said to the agent"), ("cookie", 2, "reply: assistant")]
)
def test_what_was_said_is_traced_to_its_step(
    *, words: str, place: int, who: str, cli: Cli, work: Path, nexus_home: Path
) -> None:
    step = steps(work, nexus_home)[place]

    assert rows(cli("explain", "--session", "auth-bug", words)) == [[who, f"step {step.id}", "sent"]]


@pytest.mark.usefixtures("session")
def test_an_input_is_sent_as_its_seal_has_it(cli: Cli, work: Path, nexus_home: Path) -> None:
    said, sealed, *_ = steps(work, nexus_home)

    ((name, who, fate),) = rows(cli("explain", "--session", "auth-bug", said.id))

    assert (name, who, fate) == (f"step {said.id}", "said to the agent", f"sent, as step {sealed.id} has it")


@pytest.mark.usefixtures("session")
def test_a_step_says_that_a_compaction_stands_for_it(cli: Cli, work: Path, nexus_home: Path) -> None:
    said = steps(work, nexus_home)
    with Nexus(work, home=nexus_home) as nexus:
        data = {"summary": "They talked.", "first_kept": said[3].id}
        made = nexus.ledger.append("auth-bug", NewStep(kind="compaction", closes=True, data=data), after=said[-1].id)

    assert rows(cli("explain", "--session", "auth-bug", said[2].id))[0][2] == (
        f"not sent: compaction {made.id} stands for it"
    )
    assert rows(cli("explain", "--session", "auth-bug", "- **the cookie** expires"))[0][2] == (
        f"not sent: compaction {made.id} stands for it"
    )
    assert rows(cli("explain", "--session", "auth-bug", said[5].id))[0][2] == "sent"
    assert rows(cli("explain", "--session", "auth-bug", made.id))[0][2] == "stands for what came before"


def test_a_step_says_that_it_was_left_out_so_that_the_rest_fits(
    cli: Cli, session: Session, work: Path, nexus_home: Path
) -> None:
    session.ask("word " * 500)
    session.record(says("So.", name="msg_3"))
    session.ask("And now?")
    session.record(says("Now it works.", name="msg_4"))
    write_files(work, {".nexus3/config.json": '{"models": {"claude-sonnet-4": {"window": 1390}}}'})

    outcome = cli("explain", "--session", "auth-bug", steps(work, nexus_home)[2].id)

    assert rows(outcome)[0][2] == "not sent: left out by oldest_first, so that the rest fits"


@pytest.mark.usefixtures("session")
def test_what_a_session_does_not_know_is_looked_for_in_the_settings_and_files(cli: Cli) -> None:
    outcome = cli("explain", "--session", "auth-bug", "compaction.keep_turns")

    assert rows(outcome)[0][2] == "not set; the default is 3"
    assert cli("explain", "--session", "auth-bug", "nowhere to be found").code == 1


def test_an_unknown_session_is_refused(cli: Cli, session: Session) -> None:
    outcome = cli("explain", "--session", f"{session.name}s", "x")

    assert outcome.code == 2
    assert "did you mean 'auth-bug'?" in outcome.err


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("sentence", ["- why does LOGIN\n  fail?", "**Why** does login …"])
def test_what_was_said_is_found_whatever_its_decoration(cli: Cli, work: Path, nexus_home: Path, sentence: str) -> None:
    step = steps(work, nexus_home)[1]

    assert rows(cli("explain", "--session", "auth-bug", sentence)) == [["said to the agent", f"step {step.id}", "sent"]]


def test_explain_traces_the_description_of_a_skill_in_a_session_to_its_file(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    write_files(work, {".agents/skills/deploy/SKILL.md": "---\ndescription: Ship the release.\n---\n# How to\n"})
    with Nexus(work, home=nexus_home) as nexus:
        session = nexus.session("ship", model="gpt-4o")
        session.ask("Hello.")
        session.record(says("Hi."))

    outcome = cli("explain", "--session", "ship", "Ship the release.", "--json")

    (found,) = json.loads(outcome.out)["explanations"]
    assert found["place"] == f"{work}/.agents/skills/deploy/SKILL.md:2"
    assert found["remark"] == "in the system prompt of the session"


def test_an_imported_file_has_the_same_explanation_by_its_path_and_by_its_directory(cli: Cli, work: Path) -> None:
    files = {"AGENTS.md": "Rules.\n\n@docs/style.md\n", "CLAUDE.md": "More.\n\n@docs/style.md\n"}
    write_files(work, {**files, "docs/style.md": "Short lines.\n"})

    by_path, by_directory = cli("explain", "docs/style.md").out, cli("explain", "./docs").out

    assert by_path == by_directory
    assert sorted(by_path.splitlines()) == sorted(
        [
            f"{work}/docs/style.md  in the prompt, imported by {work}/AGENTS.md",
            f"  also read by goose, imported by {work}/AGENTS.md",
            f"  also read by Claude Code, imported by {work}/CLAUDE.md",
            "  Codex, Gemini CLI, Cursor, GitHub Copilot, opencode and Cline do not read style.md",
        ]
    )


def test_a_file_of_a_directory_is_explained_once_if_it_has_the_name_of_the_directory_in_it(
    cli: Cli, work: Path
) -> None:
    write_files(work, {".git/HEAD": "", "docs/style.md": "See docs.\n", "notes.md": "See docs.\n"})

    rows = [line.split()[0] for line in cli("explain", "docs").out.splitlines() if line.startswith("/")]

    assert rows == [f"{work}/docs/style.md", f"{work}/notes.md:1"]


def test_an_import_line_is_explained_by_the_file_that_replaces_it(cli: Cli, work: Path) -> None:
    files = {"AGENTS.md": "Rules.\n\nRead @docs/style.md.\n", "CLAUDE.md": "More.\n\n@docs/style.md\n"}
    write_files(work, {".git/HEAD": "", **files, "docs/style.md": "Short lines.\n"})

    lines = cli("explain", "@docs/style.md").out.splitlines()

    replaced = "an import, replaced by the content of docs/style.md"
    assert f"{work}/AGENTS.md:3  not in the prompt: {replaced}" in lines
    assert f"  Claude Code does not read all of CLAUDE.md: {replaced}" in lines


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        (".nexus3/config.json", "settings (local)"),
        (".nexus3/mcp.json", "settings (local)"),
        ("api/.nexus3/config.json", "not in the prompt: Nexus reads it as its settings, only in {work}/api and below"),
        (".claude/settings.json", "not in the prompt: Claude Code reads it as its settings"),
        (".claude/settings.local.json", "not in the prompt: Claude Code reads it as its settings"),
        (".gemini/settings.json", "not in the prompt: Gemini CLI reads it as its settings"),
        ("settings.json", "not in the prompt: no agent reads this file by itself"),
    ],
)
def test_a_settings_file_is_explained_by_the_agent_that_reads_it(cli: Cli, work: Path, name: str, remark: str) -> None:
    write_files(work, {".git/HEAD": "", name: "{}"})

    row = f"{work}/{name}  {remark.format(work=work)}"

    assert cli("explain", name).out.splitlines() == [row]
    assert row in cli("explain", ".").out.splitlines()


def test_the_settings_of_codex_are_explained_by_whether_it_trusts_the_project(
    cli: Cli, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    write_files(work, {".git/HEAD": "", ".codex/config.toml": "a = 1\n"})

    untrusted = cli("explain", ".codex/config.toml").out
    write_files(tmp_path, {"codex/config.toml": f'[projects."{work}"]\ntrust_level = "trusted"\n'})
    trusted = cli("explain", ".codex/config.toml").out

    assert "Codex does not read config.toml: Codex does not trust this project" in untrusted
    assert trusted == f"{work}/.codex/config.toml  not in the prompt: Codex reads it as its settings\n"


def test_the_approvals_of_the_user_are_explained(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}", "trust.json": "{}"})
    write_files(work, {".nexus3/trust.json": "{}"})

    assert "Nexus keeps your approvals in it" in cli("explain", str(nexus_home / "trust.json")).out
    assert "no agent reads this file" in cli("explain", ".nexus3/trust.json").out


def test_a_text_has_the_same_explanation_by_its_path_and_by_its_directory(cli: Cli, work: Path) -> None:
    write_files(work, {"docs/keep.txt": "", "AGENTS.md": "Rules.\n"})

    assert cli("explain", "AGENTS.md").out.splitlines()[0] in cli("explain", ".").out.splitlines()


def test_files_that_an_agent_reads_come_before_those_that_none_reads(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Read docs first.", "docs/a.md": "Nothing.", "docs/b.md": "Nothing."})

    places = [each["place"] for each in json.loads(cli("explain", "docs", "--json").out)["explanations"]]

    assert places == [f"{work}/NEXUS.md:1", f"{work}/docs/a.md", f"{work}/docs/b.md"]


@pytest.fixture
def notes(work: Path, nexus_home: Path) -> list[Path]:
    """Notes with the same words, of the user and of the project."""
    write_files(
        nexus_home, {"config.json": '{"memory": {"enabled": true}}', "memory/codes.md": "Codes live five minutes."}
    )
    write_files(work, {".nexus3/memory/auth.md": "# Auth\n\nTokens live five minutes."})
    return [nexus_home / "memory/codes.md", work / ".nexus3/memory/auth.md"]


def test_note_is_recalled_when_it_matches_and_names_its_sessions(cli: Cli, work: Path, notes: list[Path]) -> None:
    remark = "a note: recalled when it matches a message"
    before = cli("explain", "five minutes").out
    with Nexus(work) as nexus:
        nexus.session("s1", model="gpt-4o").ask("Do tokens and codes live five minutes?")

    by_sentence, by_path = cli("explain", "five minutes").out, cli("explain", ".nexus3/memory/auth.md").out

    assert {line.split("  ")[0] for line in by_sentence.splitlines()} == {f"{notes[0]}:1", f"{notes[1]}:3"}
    assert all(line.endswith(remark) for line in before.splitlines())
    assert all(line.endswith(f"{remark}; sent in session s1") for line in (*by_sentence.splitlines(), by_path.strip()))


def test_note_before_the_history_names_its_sessions(cli: Cli, work: Path, nexus_home: Path, notes: list[Path]) -> None:
    settings = {"memory": {"enabled": True, "position": "before_history"}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    with Nexus(work) as nexus:
        nexus.session("s1", model="gpt-4o").ask("Do codes live five minutes?")

    assert cli("explain", str(notes[0])).out.strip().endswith("; sent in session s1")


def test_note_names_its_sessions_beside_a_damaged_one(
    cli: Cli, work: Path, nexus_home: Path, notes: list[Path]
) -> None:
    with Nexus(work) as nexus:
        for name in ("s1", "torn"):
            nexus.session(name, model="gpt-4o").ask("Do tokens and codes live five minutes?")
        record = nexus.ledger.session("torn")
    edit = "update steps set data = '{' where id = ?"
    tamper(nexus_home / "ledger.db", lambda file: file.execute(edit, [record and record.tip]))

    outcome = cli("explain", str(notes[0]))

    assert outcome.out.strip().endswith("; sent in session s1")
    assert "session torn is not searched: " in outcome.err


def test_note_names_its_sessions_when_it_is_asked_for_through_a_link(cli: Cli, work: Path, notes: list[Path]) -> None:
    with Nexus(work) as nexus:
        nexus.session("s1", model="gpt-4o").ask("Do tokens live five minutes?")
    (work / "linked").symlink_to(notes[1].parent)

    assert cli("explain", "linked/auth.md").out.strip().endswith("; sent in session s1")


def test_note_without_memories_says_what_switches_them_on(cli: Cli, notes: list[Path], nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}"})

    assert "recalled when it matches a message, if memory.enabled is on" in cli("explain", str(notes[0])).out
    assert "a note" not in cli("explain", str(notes[0]), "--as", "claude").out


def test_all_notes_with_a_sentence_are_found_in_a_session(cli: Cli, work: Path, notes: list[Path]) -> None:
    with Nexus(work) as nexus:
        nexus.session("s1", model="gpt-4o").ask("Do tokens live five minutes?")

    found = json.loads(cli("explain", "live five minutes", "--session", "s1", "--json").out)["explanations"]

    assert [each["subject"] for each in found] == ["said to the agent", "Recalled note: auth", "Recalled note: codes"]
    assert {each["place"].partition(":")[0] for each in found[1:]} == {str(each) for each in notes}


def send_episode(work: Path, nexus_home: Path) -> None:
    """The answer in session first is sent as a memory in session second."""
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}'})
    with Nexus(work) as nexus:
        first = nexus.session("first", model="gpt-4o")
        first.ask("Which port does the database of the staging server use?")
        first.record(says("The staging database listens on port 5433."))
        nexus.session("second", model="gpt-4o").ask("What was the port of the staging database?")


def test_episode_names_the_sessions_in_which_it_was_sent(cli: Cli, work: Path, nexus_home: Path) -> None:
    send_episode(work, nexus_home)

    [found] = json.loads(cli("explain", "listens on port 5433", "--json").out)["explanations"]

    assert found["place"].startswith("step:")
    assert (found["subject"], found["remark"]) == ("assistant", "a turn of session first; sent in session second")


def test_turn_that_was_not_sent_is_not_explained_but_a_session_is_suggested(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    send_episode(work, nexus_home)

    outcome = cli("explain", "What was the port of the staging")

    assert outcome.code == 1
    assert "With --session NAME" in outcome.err


def test_status_of_a_memory_in_a_session_stands_beside_those_of_steps(cli: Cli, work: Path, nexus_home: Path) -> None:
    send_episode(work, nexus_home)
    with Nexus(work) as nexus:
        nexus.session("second").record(says("It listens on port 5433."))

    lines = cli("explain", "listens on port 5433", "--session", "second").out.splitlines()

    assert len(lines) == 2
    assert {line.index("  sent") for line in lines} == {max(line.index("  sent") for line in lines)}
    assert all(re.search(r"step.\w{26} {2,3}sent\b", line) for line in lines)
    assert "because it matches" in "".join(lines)
