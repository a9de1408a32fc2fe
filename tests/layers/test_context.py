"""What is loaded for a directory as a whole, and what a subagent gets of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import ConfigError, FileError, Nexus, UsageError, hookimpl
from nexus_core.context import ContextLayer, ContextLoader, LoadedContext
from nexus_core.plugin import Layer, LayerConfig, LayerText
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.effort import examples
from tests.trees import FULL_CONTEXT, servers

GOLDEN = Path(__file__).parents[1] / "golden"
REPL = "Terminal: vscode (xterm-256color)\nMode: Interactive REPL\n"
"""What is said of an agent in a REPL, and not of its subagents."""


@pytest.fixture
def company(make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedContext:
    monkeypatch.setattr("nexus_plugins.environment.get_operating_system", lambda: "Linux (WSL2 on Windows)")
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

    monkeypatch.setattr("nexus_core.config.validate.build_config", fail)

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


SECRET = "sk-planted-0123"  # noqa: S105 - nobody's
OWN_SERVERS = {"mcpServers": {"web": {"url": "https://example.com", "headers": {"Authorization": SECRET}}}}
PROJECT_SETTINGS = {"_comment": "ours", "provider": {"base_url": "https://evil.example", "model": "m"}}


def by_name(context: LoadedContext) -> dict[str, ContextLayer]:
    return {layer.name: layer for layer in context.layers}


@pytest.mark.acceptance("L-13")
def test_a_layer_has_the_fields_of_the_specification_in_their_order() -> None:
    assert [field.name for field in dataclasses.fields(ContextLayer)] == ["name", "path", "prompt", "config", "mcp"]


@pytest.mark.acceptance("L-13", "L-12", "L-01")
def test_layers_come_in_the_order_of_the_load_each_with_what_it_has(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    write_files(nexus_home, {"NEXUS.md": "Own.\n", "mcp.json": json.dumps(OWN_SERVERS)})
    files = {
        "a/.nexus3/config.json": '{"provider": {"model": "m"}}',
        "a/b/.nexus3/NEXUS.md": "Of b.\n",
        "a/b/.nexus3/mcp.json": '{"servers": []}',
        "a/b/c/.nexus3/NEXUS.md": "Of c.\n",
        "a/b/c/.nexus3/config.json": json.dumps(PROJECT_SETTINGS),
    }

    layers = make_nexus(files=files, cwd="a/b/c").context().layers

    work = tmp_path / "work"
    assert isinstance(layers, tuple)
    assert layers == (
        ContextLayer("global", nexus_home, "Own.\n", None, OWN_SERVERS),
        ContextLayer("ancestor:a", work / "a/.nexus3", None, {"provider": {"model": "m"}}, None),
        ContextLayer("ancestor:b", work / "a/b/.nexus3", "Of b.\n", None, {"servers": []}),
        ContextLayer("local", work / "a/b/c/.nexus3", "Of c.\n", PROJECT_SETTINGS, None),
    )


@pytest.mark.acceptance("L-13", "L-02")
@pytest.mark.parametrize("only", ["NEXUS.md", "config.json", "mcp.json"])
def test_each_of_the_three_may_be_there_alone(make_nexus: MakeNexus, only: str) -> None:
    context = make_nexus(files={f".nexus3/{only}": "{}"}).context()

    layer = by_name(context)["local"]

    present = {"NEXUS.md": layer.prompt, "config.json": layer.config, "mcp.json": layer.mcp}
    assert {name for name, value in present.items() if value is not None} == {only}


@pytest.mark.acceptance("L-13")
def test_a_directory_with_nothing_in_it_is_a_layer_with_nothing_in_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/.nexus3").mkdir(parents=True)

    layer = by_name(make_nexus().context())["local"]

    assert (layer.prompt, layer.config, layer.mcp) == (None, None, None)


@pytest.mark.acceptance("L-10", "L-11")
def test_a_place_that_is_not_there_is_no_layer(make_nexus: MakeNexus) -> None:
    context = make_nexus(cwd="a/b").context()

    assert list(by_name(context)) == ["global"]
    assert (context.sources.ancestor_dirs, context.sources.local_dir) == ([], None)


def test_a_text_without_a_layer_directory_has_the_directory_it_lies_in(make_nexus: MakeNexus, tmp_path: Path) -> None:
    context = make_nexus(files={"NEXUS.md": "Here."}).context()

    assert by_name(context)["local"].path == tmp_path / "work"
    assert context.sources.local_dir == tmp_path / "work"


def test_workspace_rules_and_documentation_are_no_prompt_of_a_layer(make_nexus: MakeNexus) -> None:
    files = {
        "AGENTS.md": "Rules.",
        ".git/HEAD": "",
        "sub/.nexus3/config.json": '{"context": {"include_readme": true}}',
        "sub/README.md": "# Sub",
    }

    context = make_nexus(files=files, cwd="sub").context()

    assert [text.path.name for text in context.texts] == ["AGENTS.md", "README.md"]
    assert {name: layer.prompt for name, layer in by_name(context).items()} == {"global": None, "local": None}


@pytest.mark.acceptance("L-13", "F-10")
def test_an_empty_file_is_the_least_that_is_valid(make_nexus: MakeNexus) -> None:
    context = make_nexus(files={".nexus3/config.json": "", ".nexus3/mcp.json": " \n"}).context()

    layer = by_name(context)["local"]

    assert (layer.config, layer.mcp) == ({}, {"servers": []})


def test_what_was_held_back_is_still_in_the_layer_and_not_in_the_settings(make_nexus: MakeNexus) -> None:
    context = make_nexus(files={".nexus3/config.json": json.dumps(PROJECT_SETTINGS)}).context()

    assert by_name(context)["local"].config == PROJECT_SETTINGS
    assert context.config.provider.base_url is None


def test_the_defaults_are_a_layer_where_they_stand_in(make_nexus: MakeNexus) -> None:
    context = make_nexus(defaults=True).context()

    layer = by_name(context)["defaults"]

    assert layer.prompt == (layer.path / "NEXUS.md").read_text(encoding="utf-8")


def test_changing_what_a_layer_says_changes_nothing_else(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "m"}}'})
    context = make_nexus().context()
    config = by_name(context)["global"].config
    assert config is not None

    config["provider"]["model"] = "other"

    assert by_name(context)["global"].config == {"provider": {"model": "m"}}
    assert context.config.provider.model == "m"


def test_a_layer_is_as_it_was_when_it_was_loaded(make_nexus: MakeNexus, tmp_path: Path) -> None:
    context = make_nexus(files={".nexus3/config.json": "{}", ".nexus3/mcp.json": '{"servers": []}'}).context()

    write_files(tmp_path / "work", {".nexus3/config.json": "broken", ".nexus3/mcp.json": "broken"})

    layer = by_name(context)["local"]
    assert (layer.config, layer.mcp) == ({}, {"servers": []})


@pytest.mark.acceptance("T10")
def test_a_printed_layer_shows_no_secret(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": json.dumps(OWN_SERVERS), "config.json": f'{{"_token": "{SECRET}"}}'})

    layers = make_nexus().context().layers

    assert SECRET not in repr(layers)
    assert SECRET in json.dumps(layers[0].mcp)


def test_settings_that_a_plugin_finds_in_a_layer_belong_to_it(make_nexus: MakeNexus) -> None:
    class Toml:
        """Another file with settings, and another text that speaks for the layer."""

        @hookimpl
        def nexus_layer_config(self, layer: Layer) -> list[LayerConfig]:
            return [LayerConfig(layer.directory / "settings.toml", {"provider": {"model": layer.name}})]

        @hookimpl
        def nexus_layer_texts(self, layer: Layer) -> list[LayerText]:
            return [LayerText(layer.directory / "MORE.md", f"More about {layer.name}.")]

    files = {".nexus3/NEXUS.md": "First.", ".nexus3/config.json": '{"provider": {"context_window": 9}}'}

    context = make_nexus(files=files, plugins=[Toml()]).context()

    layer = by_name(context)["local"]
    assert layer.config == {"provider": {"model": "local", "context_window": 9}}
    assert layer.prompt == "More about local.\n\nFirst."
    assert [path.name for path in context.sources.config_sources] == ["settings.toml", "settings.toml", "config.json"]


def test_layers_are_put_together_only_for_whoever_asks(make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("asked for")

    monkeypatch.setattr("nexus_core.layers.context.build_context_layers", fail)
    context = make_nexus(files={".nexus3/config.json": "{}"}).context()

    assert context.system_prompt
    with pytest.raises(AssertionError, match="asked for"):
        _ = context.layers


def test_a_loader_gives_the_layers_too(nexus_home: Path, tmp_path: Path) -> None:  # noqa: ARG001 - the home must be in place
    write_files(tmp_path / "work", {".nexus3/NEXUS.md": "Here."})

    layers = ContextLoader(tmp_path / "work").load().layers

    assert [layer.name for layer in layers] == ["defaults", "global", "local"]


def own(path: Path, text: str) -> str:
    return f"## Subagent Configuration\nSource: {path}\n\n{text}\n\n"


def headings(context: LoadedContext) -> list[str]:
    return [line for line in context.system_prompt.splitlines() if line.startswith(("# ", "## "))]


def paths(context: LoadedContext) -> list[Path]:
    return [source.path for source in context.sources.prompt_sources]


# ---- which instructions ------------------------------------------------------------------------------------


@pytest.mark.acceptance("S-01", "S-04", "S-07")
def test_its_own_instructions_are_its_nexus_md_and_nothing_else(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {
        "p/.nexus3/NEXUS.md": "Of p.",
        "p/AGENTS.md": "Rules of p.",
        "q/NEXUS.md": "Of q.",
        "q/s/.nexus3/NEXUS.md": "Of s.",
        "q/s/AGENTS.md": "Rules of s.",
        "q/s/README.md": "Readme of s.",
    }
    parent = make_nexus(files=files, cwd="p").context()
    here = tmp_path / "work/q/s"

    prompt = parent.for_subagent(here).system_prompt

    expected = parent.system_prompt.replace(str(parent.cwd) + "\nOperating", str(here) + "\nOperating")
    assert prompt == own(here / ".nexus3/NEXUS.md", "Of s.") + expected
    assert [text for text in ("Of q.", "Rules of s.", "Readme of s.") if text in prompt] == []


@pytest.mark.acceptance("S-03")
def test_what_the_parent_has_read_as_an_ancestor_is_not_new(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"p/.nexus3/NEXUS.md": "Of p.", "p/s/.nexus3/NEXUS.md": "Of s."}
    parent = make_nexus(files=files, cwd="p/s").context()

    child = parent.for_subagent(tmp_path / "work/p")

    assert child.subagent_sections == ()
    assert child.layer_sections == parent.layer_sections


@pytest.mark.acceptance("S-04", "B-15", "C-08")
def test_of_the_directories_between_nothing_is_taken_unless_asked_for(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {f"{place}/.nexus3/NEXUS.md": f"In {place}." for place in ("p", "p/s", "p/s/t")}
    parent = make_nexus(files=files, cwd="p").context()
    work, child = tmp_path / "work", tmp_path / "work/p/s/t"

    plain, full = parent.for_subagent(child), parent.for_subagent(child, include_ancestors=True)

    own_text = own(child / ".nexus3/NEXUS.md", "In p/s/t.")
    assert plain.system_prompt.startswith(own_text + "# System Configuration\n")
    assert full.system_prompt.startswith(own_text + own(work / "p/s/.nexus3/NEXUS.md", "In p/s.") + "# System")
    assert full.system_prompt.count("In p.") == 1


@pytest.mark.acceptance("C-08")
def test_only_ancestors_that_the_parent_lacks_are_added(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {f"{place}/.nexus3/NEXUS.md": f"In {place}." for place in ("p", "p/s", "p/s/t")}
    parent = make_nexus(files=files, cwd="p/s").context()

    child = parent.for_subagent(tmp_path / "work/p/s/t", include_ancestors=True)

    assert [section.text for section in child.subagent_sections] == ["In p/s/t."]


@pytest.mark.acceptance("B-17", "R-02")
@pytest.mark.parametrize(
    ("files", "added"),
    [
        ({"README.md": "# Read"}, ["README.md"]),
        ({"README.md": "# Read", ".nexus3/NEXUS.md": "Own."}, ["NEXUS.md"]),
        ({"README.md": "# Read", "AGENTS.md": "Rules."}, []),
        ({"README.md": "# Read", "NEXUS.md": " \n"}, ["README.md"]),
    ],
)
def test_a_readme_stands_in_for_missing_instructions(
    make_nexus: MakeNexus, tmp_path: Path, files: dict[str, str], added: list[str]
) -> None:
    parent = make_nexus(files={f"s/{name}": text for name, text in files.items()}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert [text.path.name for text in child.added] == added
    assert all(text.text.startswith("----- BEGIN DOCUMENTATION") for text in child.added if "README" in text.path.name)


@pytest.mark.acceptance("R-01", "R-03")
@pytest.mark.parametrize(
    ("switches", "added"),
    [
        ({"include_readme": True}, ["NEXUS.md", "README.md"]),
        ({"include_readme": False, "readme_as_fallback": False}, ["NEXUS.md"]),
    ],
)
def test_a_readme_follows_the_instructions_where_it_is_wanted_always(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, switches: dict[str, bool], added: list[str]
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"context": switches})})
    parent = make_nexus(files={"s/NEXUS.md": "Own.", "s/README.md": "# Read"}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert [text.path.name for text in child.added] == added


@pytest.mark.acceptance("S-05")
def test_without_instructions_of_its_own_it_has_those_of_its_parent(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files={"p/NEXUS.md": "Of p.", "s/x": ""}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert child.system_prompt == parent.system_prompt.replace(f"{tmp_path}/work/p\n", f"{tmp_path}/work/s\n")
    assert paths(child) == paths(parent)


# ---- nothing twice -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("B-16", "S-06")
@pytest.mark.parametrize("linked", ["p", "p/.nexus3", "p/.nexus3/NEXUS.md"])
def test_the_same_file_reached_in_another_way_is_there_once(make_nexus: MakeNexus, tmp_path: Path, linked: str) -> None:
    files = {".git/HEAD": "", "p/.nexus3/NEXUS.md": "Once."}
    parent = make_nexus(files=files, cwd="p").context()
    link = tmp_path / "work" / linked.replace("p", "link", 1)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "work" / linked)

    child = parent.for_subagent(tmp_path / "work/link")

    assert child.system_prompt.count("Once.") == 1


@pytest.mark.acceptance("S-06")
@pytest.mark.parametrize("copied", ["The same.", "The same.\n", "\nThe same.\n\n"])
def test_a_copy_of_what_the_parent_reads_is_not_read_again(make_nexus: MakeNexus, tmp_path: Path, copied: str) -> None:
    parent = make_nexus(files={"p/NEXUS.md": "The same.\n", "s/NEXUS.md": copied}, cwd="p").context()

    assert parent.for_subagent(tmp_path / "work/s").system_prompt.count("The same.") == 1


@pytest.mark.acceptance("S-06")
def test_what_the_parent_imports_is_not_read_again(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"p/NEXUS.md": "Parts:\n@s/NEXUS.md\n", "p/s/NEXUS.md": "Imported."}
    parent = make_nexus(files=files, cwd="p").context()

    assert parent.for_subagent(tmp_path / "work/p/s").system_prompt.count("Imported.") == 1


@pytest.mark.acceptance("S-04", "S-06")
@pytest.mark.parametrize("include_ancestors", [True, False])
def test_what_only_repeats_its_own_surroundings_is_new_to_its_parent(
    make_nexus: MakeNexus, tmp_path: Path, *, include_ancestors: bool
) -> None:
    files = {"q/NEXUS.md": "Said twice.", "q/s/NEXUS.md": "Said twice.", "p/x": ""}
    parent = make_nexus(files=files, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/q/s", include_ancestors=include_ancestors)

    assert [text.path for text in child.added] == [tmp_path / "work/q/s/NEXUS.md"]


# ---- subagents of subagents --------------------------------------------------------------------------------

CHAIN = {"a/NEXUS.md": "Of a.", "b/NEXUS.md": "Of b.", "c/NEXUS.md": "Of c."}


@pytest.mark.acceptance("S-04")
def test_a_subagent_of_a_subagent_has_its_own_before_all_that_it_inherits(
    make_nexus: MakeNexus, tmp_path: Path
) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    child = parent.for_subagent(work / "b")
    grandchild = child.for_subagent(work / "c")

    inherited = child.system_prompt.replace(f"{work}/b\nOperating", f"{work}/c\nOperating")
    assert grandchild.system_prompt == own(work / "c/NEXUS.md", "Of c.") + inherited
    assert paths(grandchild) == [work / "c/NEXUS.md", work / "b/NEXUS.md", work / "a/NEXUS.md"]


@pytest.mark.acceptance("S-03", "S-06")
def test_one_that_comes_back_to_where_it_began_reads_nothing_again(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    back = parent.for_subagent(work / "b").for_subagent(work / "a").for_subagent(work / "b")

    assert [back.system_prompt.count(text) for text in ("Of a.", "Of b.")] == [1, 1]


@pytest.mark.acceptance("S-04")
def test_what_its_parent_only_passed_by_is_new_to_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"a/NEXUS.md": "Of a.", "q/NEXUS.md": "Of q.", "q/s/NEXUS.md": "Of s."}
    parent = make_nexus(files=files, cwd="a").context()

    child = parent.for_subagent(tmp_path / "work/q/s")
    grandchild = child.for_subagent(tmp_path / "work/q")

    assert "Of q." not in child.system_prompt
    assert grandchild.system_prompt.startswith(own(tmp_path / "work/q/NEXUS.md", "Of q."))


NAMES = ["a", "b", "a/c", "a/c/d", "b/e"]


@pytest.mark.acceptance("S-06")
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    texts=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["One.", "Two.", "Three."])),
    journey=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=4),
)
def test_no_text_is_ever_there_twice(
    tmp_path_factory: pytest.TempPathFactory,
    nexus_home: Path,
    texts: dict[str, str],
    journey: list[tuple[str, bool]],
) -> None:
    work = tmp_path_factory.mktemp("work")
    for name in NAMES:
        (work / name).mkdir(parents=True, exist_ok=True)
    write_files(work, {f"{name}/NEXUS.md": text for name, text in texts.items()})

    with Nexus(work / journey[0][0], home=nexus_home, defaults=False) as nexus:
        context = nexus.context()
        for name, include_ancestors in journey[1:]:
            context = context.for_subagent(work / name, include_ancestors=include_ancestors)

    prompt = context.system_prompt
    assert all(prompt.count(text) <= 1 for text in texts.values())
    assert texts.get(journey[-1][0], "") in prompt
    assert prompt.count("\n## Environment\n") == 1
    assert prompt.count(f"Working directory: {work / journey[-1][0]}\n") == 1


# ---- its own place -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("B-04")
def test_what_looks_like_the_environment_in_a_text_stays_where_it_is(make_nexus: MakeNexus, tmp_path: Path) -> None:
    text = "First.\n\n## Environment variables\n\nWorking directory: nowhere\n\n## Environment\n\nThe last rule."
    parent = make_nexus(files={"p/NEXUS.md": text, "p/s/NEXUS.md": text.replace("First", "Second")}, cwd="p").context()

    prompt = parent.for_subagent(tmp_path / "work/p/s").system_prompt

    kept = text.replace("\n## Environment\n", "\n\\## Environment\n")
    assert kept in prompt
    assert kept.replace("First", "Second") in prompt
    assert prompt.count("\n## Environment\n") == 1
    assert f"\n## Environment\nWorking directory: {tmp_path}/work/p/s\n" in prompt
    assert f"Working directory: {tmp_path}/work/p\n" not in prompt


@pytest.mark.acceptance("C-08", "S-01", "M-08")
def test_settings_are_those_of_its_own_directory_and_there_are_no_servers(
    make_nexus: MakeNexus, tmp_path: Path
) -> None:
    files = {
        "p/.nexus3/config.json": '{"provider": {"model": "of-p"}}',
        "s/.nexus3/config.json": '{"provider": {"model": "of-s"}, "permissions": {"level": "sandboxed"}}',
        "s/.nexus3/mcp.json": '{"servers": [{"name": "of-s", "command": ["x"]}]}',
    }
    parent = make_nexus(files=files, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert "Model: of-s\nPermission level: sandboxed\n" in child.system_prompt
    assert "of-p" not in child.system_prompt
    assert (child.config.provider.model, child.config.permissions.level) == ("of-s", "sandboxed")
    assert child.mcp_servers == []
    assert child.sources.local_dir == tmp_path / "work/s/.nexus3"
    assert headings(child)[-3:] == ["# System Configuration", "## Environment", "## Active Configuration"]


@pytest.mark.acceptance("S-01", "P-07")
def test_it_is_driven_as_its_parent_is_by_a_server(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus().context(mode="server")

    assert "Mode: HTTP JSON-RPC Server" in parent.for_subagent(tmp_path / "work/s").system_prompt


@pytest.mark.acceptance("P-07")
def test_it_is_in_no_repl_although_its_parent_is(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus().context(mode="repl")

    child = parent.for_subagent(tmp_path / "work/s").system_prompt

    assert "Mode: Interactive REPL" in parent.system_prompt
    assert ("Mode: " in child, "Terminal: " in child) == (False, False)


def test_the_parent_is_not_changed(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    before = parent.system_prompt

    parent.for_subagent(tmp_path / "work/b")

    assert parent.system_prompt == before


def test_a_directory_may_be_given_as_text(
    make_nexus: MakeNexus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    monkeypatch.chdir(tmp_path / "work")

    assert parent.for_subagent("b").cwd == tmp_path / "work/b"


def test_a_directory_that_is_not_there_is_an_error_that_names_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory") as caught:
        make_nexus().context().for_subagent(tmp_path / "work/missing")

    assert caught.value.where == str(tmp_path / "work/missing")


def test_what_is_not_a_path_is_an_error_in_words(make_nexus: MakeNexus) -> None:
    context = make_nexus().context()

    with pytest.raises(UsageError, match="a directory must be given as a path, not as NoneType"):
        context.for_subagent(None)  # type: ignore[arg-type]


def test_a_blank_text_of_a_plugin_is_not_added(make_nexus: MakeNexus, tmp_path: Path) -> None:
    class Blank:
        @hookimpl
        def nexus_layer_texts(self) -> list[LayerText]:
            return [LayerText(tmp_path / "blank.md", " \n")]

    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus(plugins=[Blank()]).context()

    assert "Subagent Configuration" not in parent.for_subagent(tmp_path / "work/s").system_prompt


# ---- a prompt given by hand --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-02", "C-34")
@pytest.mark.parametrize("prompt", ["Just this.", "", "## Environment\nMine."])
def test_a_prompt_given_by_hand_is_the_whole_prompt(make_nexus: MakeNexus, tmp_path: Path, prompt: str) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()

    child = parent.for_subagent(tmp_path / "work/b", prompt)

    assert child.system_prompt == prompt
    assert (child.sections, child.texts, child.sources.prompt_sources) == ((), (), [])
    assert child.cwd == tmp_path / "work/b"


@pytest.mark.acceptance("S-02", "S-04")
def test_a_prompt_given_by_hand_is_what_its_subagents_inherit(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    child = parent.for_subagent(work / "b", "Just this.")
    grandchild = child.for_subagent(work / "a")

    assert grandchild.system_prompt == own(work / "a/NEXUS.md", "Of a.") + "Just this."
    assert grandchild.for_subagent(work / "a").system_prompt == grandchild.system_prompt
