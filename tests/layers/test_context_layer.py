"""Each layer by itself, as its files have it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from nexus_core import hookimpl
from nexus_core.context import ContextLayer, ContextLoader, LoadedContext
from nexus_core.plugin import Layer, LayerConfig, LayerText
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus

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

    monkeypatch.setattr("nexus_core.layers.context_layer.context_layers", fail)
    context = make_nexus(files={".nexus3/config.json": "{}"}).context()

    assert context.system_prompt
    with pytest.raises(AssertionError, match="asked for"):
        _ = context.layers


def test_a_loader_gives_the_layers_too(nexus_home: Path, tmp_path: Path) -> None:  # noqa: ARG001 - the home must be in place
    write_files(tmp_path / "work", {".nexus3/NEXUS.md": "Here."})

    layers = ContextLoader(tmp_path / "work").load().layers

    assert [layer.name for layer in layers] == ["defaults", "global", "local"]
