"""What is loaded for a directory as a whole, and what a subagent gets of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.layers.context import LoadedContext
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.trees import FULL_CONTEXT, servers

GOLDEN = Path(__file__).parents[1] / "golden"
REPL = "Terminal: vscode (xterm-256color)\nMode: Interactive REPL\n"
"""What is said of an agent in a REPL, and not of its subagents."""


@pytest.fixture
def company(make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedContext:
    monkeypatch.setattr("nexus_plugins.environment._facts.operating_system", lambda: "Linux (WSL2 on Windows)")
    write_files(nexus_home, FULL_CONTEXT.home)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TERM_PROGRAM", "vscode")
    return make_nexus(files=FULL_CONTEXT.files, cwd=FULL_CONTEXT.cwd).context(mode="repl")


@pytest.mark.acceptance("P-02", "P-03", "P-04", "P-05", "P-10", "P-11", "P-14")
def test_the_full_prompt_byte_for_byte(company: LoadedContext, tmp_path: Path) -> None:
    prompt = company.system_prompt.replace(str(tmp_path), "/home/user")

    assert prompt == (GOLDEN / "full_context.md").read_text()


@pytest.mark.acceptance("P-13", "F-12", "L-14")
def test_the_sources_are_listed_in_the_order_of_merging(company: LoadedContext, nexus_home: Path) -> None:
    work = company.cwd.parents[1]

    sources = company.sources

    assert sources.global_dir == nexus_home
    assert sources.ancestor_dirs == [work / ".nexus3", work / "backend/.nexus3"]
    assert sources.local_dir == company.cwd / ".nexus3"
    assert [source.layer_name for source in sources.prompt_sources] == [
        "global",
        "ancestor:company",
        "ancestor:backend",
        "local",
        "local",
    ]
    assert sources.config_sources[-1] == nexus_home / "config.json"
    assert sources.mcp_sources == [
        nexus_home / "mcp.json",
        work / ".nexus3/mcp.json",
        company.cwd / ".nexus3/mcp.json",
    ]


@pytest.mark.acceptance("F-11", "F-12")
def test_the_settings_are_an_object_with_defaults(company: LoadedContext) -> None:
    assert company.config.provider.model == "anthropic/claude-sonnet-4"
    assert company.config.context.ancestor_depth == 2


@pytest.mark.acceptance("M-03", "M-05", "M-06", "M-07")
def test_servers_know_where_they_come_from(company: LoadedContext) -> None:
    rows = [(each.config.name, each.config.type, each.origin, each.status) for each in company.mcp_servers]

    assert rows == [
        ("filesystem", "stdio", "global", "enabled"),
        ("postgres", "http", "ancestor:company", "not approved"),
        ("auth", "stdio", "local", "not approved"),
        ("old", "stdio", "local", "disabled"),
    ]
    assert company.mcp_servers[1].source_path == company.cwd.parents[1] / ".nexus3/mcp.json"


@pytest.mark.acceptance("M-04")
def test_the_more_local_definition_of_a_server_wins_entirely(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": servers(a={"command": ["own"], "env": {"X": "1"}})})

    context = make_nexus(files={".nexus3/mcp.json": servers(a={"url": "https://project"})}).context()

    (server,) = context.mcp_servers
    assert (server.config.url, server.config.command, dict(server.config.env)) == ("https://project", (), {})
    assert server.origin == "local"


@pytest.mark.acceptance("M-10")
def test_servers_in_config_json_are_still_understood(make_nexus: MakeNexus, nexus_home: Path) -> None:
    text = '{"mcp_servers": [{"name": "old", "command": "npx", "args": ["x"]}, {"name": "web", "url": "https://x"}]}'
    write_files(nexus_home, {"config.json": text})

    rows = [(each.config.type, each.config.command) for each in make_nexus().context().mcp_servers]

    assert rows == [("stdio", ("npx", "x")), ("http", ())]


@pytest.mark.acceptance("P-12", "L-10", "L-11")
def test_nothing_stands_for_a_file_that_is_not_there(make_nexus: MakeNexus) -> None:
    prompt = make_nexus().context().system_prompt

    assert [line for line in prompt.splitlines() if line.startswith("#")] == [
        "# System Configuration",
        "## Environment",
        "## Active Configuration",
    ]


@pytest.mark.acceptance("L-09", "B-06")
def test_the_defaults_are_labelled_with_their_true_path(make_nexus: MakeNexus) -> None:
    context = make_nexus(defaults=True).context()

    (section,) = context.layer_sections
    assert section.title == "Default Configuration"
    assert section.source is not None
    assert Path(section.source.uri).is_file()


@pytest.mark.acceptance("F-07")
def test_an_unknown_setting_stops_the_load_with_its_place(make_nexus: MakeNexus, tmp_path: Path) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{"provder": {}}'})

    with pytest.raises(ConfigError, match="did you mean 'provider'") as caught:
        nexus.load()

    assert caught.value.where == f"{tmp_path}/work/.nexus3/config.json:1:2"


def test_valid_settings_are_checked_once(make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{"provider": {"model": "x"}}'})
    nexus.load()

    def fail(*_: object) -> None:
        raise AssertionError("checked again")

    monkeypatch.setattr("nexus_core.config.validation.build_config", fail)

    assert nexus.load().settings.get("provider.model") == "x"


@pytest.mark.acceptance("S-03")
def test_a_subagent_in_the_same_place_gets_the_same_prompt_without_servers_and_repl(company: LoadedContext) -> None:
    prompt = company.for_subagent(company.cwd).system_prompt

    assert prompt == company.system_prompt.split("\n## MCP Servers")[0].replace(REPL, "")


@pytest.mark.acceptance("S-01", "S-04")
def test_a_subagents_own_instructions_stand_before_those_of_its_parent(company: LoadedContext) -> None:
    child = company.cwd / "sub"

    prompt = company.for_subagent(child).system_prompt

    head = f"## Subagent Configuration\nSource: {child}/.nexus3/NEXUS.md\n\nOnly in sub.\n\n# System Configuration\n"
    assert prompt.startswith(head)
    assert "The auth-service handles authentication." in prompt


@pytest.mark.acceptance("S-05", "C-08")
def test_a_subagent_without_instructions_gets_its_parents_with_its_own_environment(company: LoadedContext) -> None:
    (company.cwd / "empty").mkdir()

    prompt = company.for_subagent(company.cwd / "empty").system_prompt

    expected = company.system_prompt.replace(
        f"Working directory: {company.cwd}\n", f"Working directory: {company.cwd}/empty\n"
    )
    assert prompt == expected.split("\n## MCP Servers")[0].replace(REPL, "")


@pytest.mark.acceptance("B-17", "R-02")
def test_a_subagent_with_a_readme_only_gets_that(company: LoadedContext) -> None:
    prompt = company.for_subagent(company.cwd / "docs").system_prompt

    assert prompt.startswith(
        f"## Subagent Configuration\nSource: {company.cwd}/docs/README.md\n\n----- BEGIN DOCUMENTATION"
    )


@pytest.mark.acceptance("S-02")
def test_a_prompt_given_by_hand_takes_the_place_of_everything(company: LoadedContext) -> None:
    assert company.for_subagent(company.cwd / "sub", "Just this.").system_prompt == "Just this."


@pytest.mark.acceptance("B-15", "C-08")
def test_missing_ancestors_of_a_subagent_can_be_added(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {f"{place}/.nexus3/NEXUS.md": f"In {place}." for place in ("p", "p/s", "p/s/t")}
    parent = make_nexus(files=files, cwd="p").context()
    child = tmp_path / "work/p/s/t"

    plain, full = parent.for_subagent(child), parent.for_subagent(child, include_ancestors=True)

    assert "In p/s." not in plain.system_prompt
    assert [section.text for section in full.subagent_sections] == ["In p/s/t.", "In p/s."]
    assert full.system_prompt.count("In p.") == 1


@pytest.mark.acceptance("B-04")
def test_a_heading_of_the_parent_that_looks_like_ours_loses_nothing(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"p/.nexus3/NEXUS.md": "A\n\n## Environment variables\n\nThe last rule.", "p/c/.nexus3/NEXUS.md": "C"}
    parent = make_nexus(files=files, cwd="p").context()

    assert "The last rule." in parent.for_subagent(tmp_path / "work/p/c").system_prompt


@pytest.mark.acceptance("B-16", "S-06")
def test_a_subagent_reached_through_a_link_reads_nothing_twice(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files={"p/.nexus3/NEXUS.md": "Once."}, cwd="p").context()
    (tmp_path / "link").symlink_to(tmp_path / "work/p")

    assert parent.for_subagent(tmp_path / "link").system_prompt.count("Once.") == 1
