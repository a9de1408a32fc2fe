"""MCP servers as the layers name them: the rows M of the specification, through a whole load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.context import MCPServerConfig, MCPServerWithOrigin
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT

# To the letter of the specification.
EXAMPLE = """\
{
  "servers": [
    {
      "name": "filesystem",
      "command": ["npx", "@anthropic/mcp-server-filesystem"],
      "env": {"ALLOWED_PATHS": "/home/user"},
      "enabled": true
    },
    {
      "name": "postgres",
      "url": "http://localhost:9000",
      "enabled": true
    }
  ]
}
"""


def servers(*definitions: dict[str, object]) -> str:
    return json.dumps({"servers": definitions})


@pytest.mark.acceptance("M-01", "M-05", "M-06")
def test_the_example_of_the_specification_is_two_servers(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": EXAMPLE})

    first, second = make_nexus().context().mcp_servers

    assert (first.config, first.origin, first.source_path) == (
        MCPServerConfig(
            name="filesystem",
            type="stdio",
            command=("npx", "@anthropic/mcp-server-filesystem"),
            env={"ALLOWED_PATHS": "/home/user"},
        ),
        "global",
        nexus_home / "mcp.json",
    )
    assert second.config == MCPServerConfig(name="postgres", type="http", url="http://localhost:9000")
    assert isinstance(second, MCPServerWithOrigin)


@pytest.mark.acceptance("M-02")
@pytest.mark.parametrize("place", ["global", "ancestor", "local"])
def test_a_malformed_file_of_any_layer_stops_the_load_and_says_where(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, place: str
) -> None:
    work = tmp_path / "work"
    directory = {"global": nexus_home, "ancestor": work / ".nexus3", "local": work / "sub/.nexus3"}[place]
    write_files(directory, {"mcp.json": '{\n  "servers": [}\n'})

    with pytest.raises(ConfigError, match="Expecting value") as caught:
        make_nexus(cwd="sub").context()

    assert caught.value.where == f"{directory}/mcp.json:2:15"


@pytest.mark.acceptance("M-03", "M-05", "L-12")
def test_servers_of_all_layers_are_there_each_with_its_layer_and_file(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    write_files(nexus_home, {"mcp.json": servers({"name": "own", "command": ["x"]})})
    files = {
        f"{place}/.nexus3/mcp.json": servers({"name": place.replace("/", "-"), "command": ["x"]})
        for place in ("a", "a/b", "a/b/c")
    }

    found = make_nexus(files=files, cwd="a/b/c").context().mcp_servers

    work = tmp_path / "work"
    assert [(each.config.name, each.origin, each.source_path) for each in found] == [
        ("own", "global", nexus_home / "mcp.json"),
        ("a", "ancestor:a", work / "a/.nexus3/mcp.json"),
        ("a-b", "ancestor:b", work / "a/b/.nexus3/mcp.json"),
        ("a-b-c", "local", work / "a/b/c/.nexus3/mcp.json"),
    ]


DEFINITIONS: list[dict[str, object]] = [
    {"command": ["own"], "env": {"OWN": "1"}, "cwd": "own"},
    {"url": "https://above.example", "headers": {"Above": "1"}},
    {"command": ["here"], "enabled": False},
]


@pytest.mark.acceptance("M-04", "M-05")
@pytest.mark.parametrize("layers", [(0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_of_one_name_only_the_most_local_definition_is_left(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, layers: tuple[int, ...]
) -> None:
    places = [nexus_home, tmp_path / "work/.nexus3", tmp_path / "work/sub/.nexus3"]
    for layer in layers:
        other: dict[str, object] = {"name": f"other-{layer}", "command": ["x"]}
        write_files(places[layer], {"mcp.json": servers({"name": "same", **DEFINITIONS[layer]}, other)})

    found = make_nexus(cwd="sub").context().mcp_servers

    (same,) = (each for each in found if each.config.name == "same")
    winner = layers[-1]
    assert (same.origin, same.source_path) == (
        ("global", "ancestor:work", "local")[winner],
        places[winner] / "mcp.json",
    )
    said = {"command": list(same.config.command), "url": same.config.url, "env": dict(same.config.env)}
    said |= {"headers": dict(same.config.headers), "cwd": same.config.cwd}
    definition = {key: value for key, value in DEFINITIONS[winner].items() if key != "enabled"}
    assert {key: value for key, value in said.items() if value} == definition
    assert len(found) == len(layers) + 1


@pytest.mark.acceptance("M-07")
def test_a_disabled_server_is_kept_and_shown_as_such(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": servers({"name": "old", "command": ["x"], "enabled": False})})

    context = make_nexus().context()

    assert [(each.config.name, each.config.enabled) for each in context.mcp_servers] == [("old", False)]
    assert context.system_prompt.endswith("| old | stdio | global | disabled |\n")


@pytest.mark.acceptance("M-09")
def test_the_empty_template_names_no_server_and_adds_no_section(make_nexus: MakeNexus, nexus_home: Path) -> None:
    template = (ROOT / "defaults/mcp.json").read_text(encoding="utf-8")
    write_files(nexus_home, {"mcp.json": template})

    context = make_nexus().context()

    assert json.loads(template) == {"servers": []}
    assert context.mcp_servers == []
    assert "MCP Servers" not in context.system_prompt


@pytest.mark.acceptance("M-10", "M-04")
def test_servers_in_config_json_are_merged_with_those_of_mcp_json(make_nexus: MakeNexus, nexus_home: Path) -> None:
    legacy = {"mcp_servers": [{"name": "old", "command": ["x"]}, {"name": "both", "command": ["of-config"]}]}
    write_files(nexus_home, {"config.json": json.dumps(legacy)})
    files = {".nexus3/mcp.json": servers({"name": "both", "url": "https://here.example"})}

    context = make_nexus(files=files).context()

    assert [(each.config.name, each.origin) for each in context.mcp_servers] == [("old", "global"), ("both", "local")]
    assert context.mcp_servers[1].config.command == ()
    assert nexus_home / "config.json" in context.sources.mcp_sources


@pytest.mark.acceptance("M-05", "T1")
def test_loading_gives_no_server_that_the_user_has_not_approved_a_right_to_run(make_nexus: MakeNexus) -> None:
    context = make_nexus(files={".nexus3/mcp.json": EXAMPLE}).context()

    assert {each.config.name: each.approved for each in context.mcp_servers} == {"filesystem": False, "postgres": False}
