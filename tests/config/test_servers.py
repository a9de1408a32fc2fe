"""Servers in config.json, and wherever else a plugin finds some: the same shapes as in mcp.json, through one reader."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from nexus_core import ConfigError, Finding, hookimpl
from nexus_core.config.load import read_json
from nexus_core.config.servers import MAX_NOTES, normalize_servers
from nexus_core.plugin import Layer, LayerConfig, SkippedFile
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp import nexus_layer_config
from tests.conftest import Cli
from tests.plugins.mcp.test_files import SECRET, SERVERS, request_in

NPX = {"name": "a", "type": "stdio", "command": ["npx", "-y", "x"], "enabled": True}
SHAPES: dict[str, object] = {
    "a list": [{"name": "a", "command": ["npx", "-y", "x"]}],
    "a list with args": [{"name": "a", "command": "npx", "args": ["-y", "x"]}],
    "an object": {"a": {"command": ["npx", "-y", "x"]}},
    "an object with args": {"a": {"command": "npx", "args": ["-y", "x"], "type": "stdio"}},
    "other names": {"a": {"command": "npx", "args": ["-y", "x"], "transport": {"type": "stdio"}, "disabled": False}},
    "comments": {"_comment": "ours", "_old": {"command": "y"}, "a": {"_why": "", "command": ["npx", "-y", "x"]}},
    "null": [{"name": "a", "command": ["npx", "-y", "x"], "url": None, "env": None}],
}


def read(root: Path, text: str, skipped: list[SkippedFile] | None = None) -> LayerConfig:
    path = root / "config.json"
    path.write_text(text, encoding="utf-8")
    document: Any = read_json(path, empty={})
    config = LayerConfig(path, document.value, document.position, Layer("local", root, "local"))
    (normal,) = normalize_servers([config], [] if skipped is None else skipped)
    return normal


def refusal(root: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(root, text)
    return caught.value


@pytest.mark.acceptance("M-10", "M-01")
@pytest.mark.parametrize("key", ["mcp_servers", "mcpServers"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_shape_becomes_the_one_form(tmp_path: Path, key: str, shape: object) -> None:
    assert read(tmp_path, json.dumps({key: shape})).settings == {"mcp_servers": [NPX]}


@pytest.mark.acceptance("M-10")
@settings(deadline=None)
@given(SERVERS)
def test_config_json_and_mcp_json_are_read_alike(servers: object) -> None:
    """The same servers, what is not used, and errors."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "mcp.json").write_text(json.dumps({"servers": servers}))

        outcomes: list[object] = []
        for found in (
            nexus_layer_config(Layer("local", root, "local"), request_in(root)),
            [LayerConfig(root / "config.json", {"mcp_servers": servers})],
            [LayerConfig(root / "config.json", {"mcpServers": servers})],
        ):
            skipped: list[SkippedFile] = []
            configs = [each for each in found if isinstance(each, LayerConfig)]
            try:
                (config,) = normalize_servers(configs, skipped)
                outcomes.append((config.settings["mcp_servers"], [each.reason for each in skipped]))
            except ConfigError as error:
                outcomes.append((error.what, error.hint))

    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.acceptance("M-10")
def test_what_is_in_one_form_already_stays(tmp_path: Path) -> None:
    once = read(tmp_path, json.dumps({"mcp_servers": SHAPES["other names"]}))

    (twice,) = normalize_servers([once], [])

    assert twice.settings == once.settings


def test_settings_without_servers_are_the_same_object() -> None:
    configs = [LayerConfig(Path("/a"), {"provider": {}}), LayerConfig(Path("/b"), {"mcp_servers": []})]

    assert [one is other for one, other in zip(normalize_servers(configs, []), configs, strict=True)] == [True, True]


def test_an_empty_one_of_two_names_gives_way(tmp_path: Path) -> None:
    config = read(tmp_path, '{"mcp_servers": [], "mcpServers": {"a": {"command": ["npx", "-y", "x"]}}}')

    assert config.settings == {"mcp_servers": [NPX]}


@pytest.mark.acceptance("M-10")
@pytest.mark.parametrize(
    ("text", "place", "message", "advice"),
    [
        (
            '{"mcp_servers": {\n  "a": {"command": "x", "url": "y"}}}',
            (2, 3),
            "server 'a' has both 'command' and 'url'",
            "Keep one of them",
        ),
        (
            '{"mcp_servers": [\n  {"name": "a"}]}',
            (2, 3),
            "server 'a' has neither 'command' nor 'url'",
            "Give it one of them",
        ),
        (
            '{"mcp_servers": [{"name": "a", "command": "x"},\n{"name": "a", "command": "y"}]}',
            (2, 1),
            "two servers are named 'a'",
            "Rename or remove one of them",
        ),
        (
            '{"mcp_servers": {"a": {"command": "x"}},\n "mcpServers": {"b": {"command": "x"}}}',
            (2, 2),
            "'mcpServers' and 'mcp_servers' mean the same",
            "Keep one of them",
        ),
        (
            '{\n "mcp_servers": 7}',
            (2, 2),
            "'mcp_servers' must be a list or an object, not a number",
            'Write [{"name": "…", "command": ["…"]}]',
        ),
        (
            '{"mcpServers": {"a": {"command": "x", "env": {\n"A": []}}}}',
            (2, 1),
            "'A' in 'env' of server 'a' must be text, not a list",
            "Correct the setting",
        ),
        (
            '{"mcp_servers": {"$replace": [\n{"name": "a"}]}}',
            (2, 1),
            "server 'a' has neither 'command' nor 'url'",
            "Give it one of them",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_the_usual_shape_without_a_line_of_the_file(
    tmp_path: Path, text: str, place: tuple[int, int], message: str, advice: str
) -> None:
    assert str(refusal(tmp_path, text)) == (
        f"Configuration Error: Invalid setting in {tmp_path / 'config.json'}\n\n"
        f"  Line {place[0]}, Column {place[1]}: {message}\n\n"
        f"{advice} and try again."
    )


def test_everything_stands_where_it_is_written(tmp_path: Path) -> None:
    server = '{\n"command": "npx",\n"args": [\n"x"],\n"disabled": true}'
    text = f'{{"provider": {{\n"model": "m"}},\n"mcpServers": {{\n"a": {server}}}}}'

    config = read(tmp_path, text)

    pointers = [
        "/provider/model",
        "/mcp_servers",
        "/mcp_servers/0",
        "/mcp_servers/0/command/1",
        "/mcp_servers/0/enabled",
    ]
    assert [config.position(pointer)[0] for pointer in pointers] == [2, 3, 4, 7, 8]
    assert config.position("") == (1, 1)


def test_a_replacement_becomes_the_one_form_and_keeps_its_place(tmp_path: Path) -> None:
    config = read(tmp_path, '{"mcp_servers":\n{"$replace": [\n{"name": "a", "command": "npx", "args": ["-y", "x"]}]}}')

    assert config.settings == {"mcp_servers": {"$replace": [NPX]}}
    assert config.position("/mcp_servers/$replace/0")[0] == 3
    assert config.position("/mcp_servers/$replace")[0] == 2


def test_what_is_not_used_is_told_with_file_line_layer_and_plugin(make_nexus: MakeNexus, tmp_path: Path) -> None:
    text = '{"mcp_servers": {"a": {"command": "x",\n"colour": 5}}}'

    skipped = make_nexus(files={".nexus3/config.json": text}).load().skipped

    place = tmp_path / "work/.nexus3/config.json"
    assert (
        SkippedFile(place, "unknown key 'colour' of server 'a'", "local", "file_layers", 2, is_mistake=True) in skipped
    )


@pytest.mark.parametrize("name", ["config.json", "mcp.json"])
@pytest.mark.parametrize(
    ("field", "message"),
    [
        ('"colour": 5', "unknown key 'colour' of server 'a'"),
        (
            '"args": ["-y"]',
            "'args' of server 'a' is not used, because the command is a list, which has its own arguments",
        ),
        ('"name": "b"', "'name' of server 'a' has no effect: its key is its name"),
    ],
)
def test_load_finds_a_field_of_a_server_without_effect(
    make_nexus: MakeNexus, tmp_path: Path, name: str, field: str, message: str
) -> None:
    text = f'{{"mcpServers": {{"a": {{"command": ["x"],\n{field}}}}}}}'

    loaded = make_nexus(files={f".nexus3/{name}": text}).load()

    place = tmp_path / "work/.nexus3" / name
    assert loaded.findings[-1] == Finding("ignored-field", f"not used: {message}", place, 2)
    assert {finding.code for finding in loaded.findings[:-1]} == {"unapproved"}
    assert loaded.servers[0].config.command == ("x",)


def test_load_has_no_finding_for_a_field_of_another_tool(make_nexus: MakeNexus) -> None:
    text = '{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["read"], "description": "Reads."}}}'

    loaded = make_nexus(files={".nexus3/mcp.json": text}).load()

    assert {finding.code for finding in loaded.findings} == {"unapproved"}


def test_a_file_with_very_much_that_is_not_used_is_cut_short(tmp_path: Path) -> None:
    keys = {f"k{number}": 0 for number in range(MAX_NOTES + 20)}
    skipped: list[SkippedFile] = []

    read(tmp_path, json.dumps({"mcp_servers": {"a": {"command": "x", **keys}}}), skipped)

    assert len(skipped) == MAX_NOTES + 1
    assert skipped[-1].reason == "20 more from here on"


@pytest.mark.acceptance("M-10", "M-05")
def test_a_server_by_name_in_the_users_own_config_json_is_one(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"mcpServers": {\n"a": {"command": "npx", "args": ["x"]}}}'})

    (server,) = make_nexus().context().mcp_servers

    assert (server.config.command, server.origin, server.line, server.status) == (("npx", "x"), "global", 2, "enabled")


@pytest.mark.acceptance("M-10", "T5")
@pytest.mark.parametrize("key", ["mcp_servers", "mcpServers"])
def test_a_server_by_name_in_the_config_json_of_a_project_waits_for_approval(make_nexus: MakeNexus, key: str) -> None:
    text = json.dumps({key: {"a": {"command": "npx"}}})

    loaded = make_nexus(files={".nexus3/config.json": text}).load()

    assert [(part.pointer, part.decision) for part in loaded.active] == [("/mcp_servers/a", "pending")]
    assert [server.status for server in loaded.servers] == ["not approved"]


@pytest.mark.acceptance("T16")
@pytest.mark.parametrize("shape", [list, dict])
def test_a_file_with_thousands_of_servers_is_refused(make_nexus: MakeNexus, shape: type) -> None:
    named = {f"s{number}": {"command": "x"} for number in range(1001)}
    servers = named if shape is dict else [{"name": name, **server} for name, server in named.items()]
    nexus = make_nexus(files={".nexus3/mcp.json": json.dumps({"servers": servers})})

    with pytest.raises(ConfigError, match="more than 1,000 servers"):
        nexus.load()


@pytest.mark.parametrize("edit", ["$replace", "$remove"])
@pytest.mark.parametrize("key", ["mcp_servers", "mcpServers"])
def test_a_project_cannot_change_the_servers_of_the_user(
    make_nexus: MakeNexus, nexus_home: Path, edit: str, key: str
) -> None:
    write_files(nexus_home, {"config.json": '{"mcp_servers": {"mine": {"command": "x"}}}'})
    text = json.dumps({key: {edit: [{"name": "mine", "command": "evil"}]}})

    loaded = make_nexus(files={".nexus3/config.json": text}).load()

    assert [server.config.command for server in loaded.servers] == [("x",)]
    assert [finding.code for finding in loaded.findings] == ["protected-setting"]


@pytest.mark.parametrize("unwanted", ["b", {"name": "b"}, {"name": "b", "command": "else"}])
def test_a_server_is_taken_out_by_its_name(make_nexus: MakeNexus, nexus_home: Path, unwanted: object) -> None:
    class Extra:
        @hookimpl
        def nexus_layer_config(self, layer: Layer) -> list[LayerConfig]:
            return [LayerConfig(layer.directory / "x.toml", {"mcp_servers": {"$remove": [unwanted]}})]

    write_files(nexus_home, {"config.json": '{"mcp_servers": {"a": {"command": "x"}, "b": {"command": "y"}}}'})

    # Its name sorts after `file_layers`.
    loaded = make_nexus(plugins=[type("zz", (Extra,), {})()]).load()

    assert [server.config.name for server in loaded.servers] == ["a"]


def test_a_plugin_may_answer_in_any_shape(make_nexus: MakeNexus) -> None:
    class Codex:
        @hookimpl
        def nexus_layer_config(self, layer: Layer) -> list[LayerConfig]:
            servers = {"a": {"command": "npx", "args": ["x"]}}
            return [LayerConfig(layer.directory / "codex.toml", {"mcp_servers": servers})]

    (server,) = make_nexus(plugins=[Codex()]).load().servers

    assert server.config.command == ("npx", "x")


def test_a_setting_is_written_only_if_its_servers_can_be_read(cli: Cli, work: Path) -> None:
    good, bad = '{"a": {"command": "x"}}', '{"a": {"command": "x", "url": "y"}}'

    refused, accepted = cli("config", "set", "mcp_servers", bad), cli("config", "set", "mcp_servers", good)

    assert (refused.code, accepted.code) == (2, 0)
    assert "cannot set mcp_servers: server 'a' has both 'command' and 'url'" in refused.err
    assert json.loads((work / ".nexus3/config.json").read_text()) == {"mcp_servers": json.loads(good)}


@pytest.mark.parametrize(
    "servers",
    [
        [{"name": "a", "env": {"TOKEN": SECRET}}],
        {"a": {"command": "x", "env": {"TOKEN": [SECRET]}}},
        {"a": {"command": "x", "type": SECRET}},
        {"a": SECRET},
        SECRET,
    ],
)
def test_no_error_repeats_a_value_of_a_server(tmp_path: Path, servers: object) -> None:
    error = refusal(tmp_path, json.dumps({"mcp_servers": servers}))

    assert SECRET not in f"{error}{error!r}{error.__dict__}"
