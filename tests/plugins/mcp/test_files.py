from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nexus_plugins.mcp
from nexus_core import ConfigError, FileError, Request
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import SERVER_FIELDS, normalize_servers
from nexus_core.plugin import Layer, LayerConfig, SkippedFile
from nexus_core.testing import check_plugin, write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp import nexus_layer_config
from tests.conftest import sample_files

SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - nobody's
SAMPLES = [path for path in sample_files("mcp") if path.suffix == ".json"]
CONTAINERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda servers: {"servers": [{"name": name, **server} for name, server in servers.items()]},
    "an object": lambda servers: {"servers": servers},
    "mcpServers": lambda servers: {"mcpServers": servers},
    "a list in mcpServers": lambda servers: {
        "mcpServers": [{"name": name, **server} for name, server in servers.items()]
    },
    "flat": lambda servers: servers,
}


def request_in(directory: Path) -> Request:
    return Request(cwd=directory, home=directory / "nobody")


class Mcp:
    """Writes the mcp.json of a layer, and has it read and brought into one form."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "mcp.json"
        self.layer = Layer("local", directory, "local")

    def answers(self, content: object) -> list[LayerConfig | SkippedFile]:
        text = content if isinstance(content, str) else json.dumps(content)
        self.path.write_text(text, encoding="utf-8", newline="\n")
        found = nexus_layer_config(self.layer, request_in(self.layer.directory))
        skipped = [answer for answer in found if isinstance(answer, SkippedFile)]
        configs = normalize_servers([answer for answer in found if isinstance(answer, LayerConfig)], skipped)
        return [*configs, *skipped]

    def config(self, content: object) -> LayerConfig:
        (config,) = [answer for answer in self.answers(content) if isinstance(answer, LayerConfig)]
        return config

    def servers(self, content: object) -> Any:
        return self.config(content).settings["mcp_servers"]

    def server(self, **fields: object) -> dict[str, object]:
        (server,) = self.servers({"servers": {"a": fields}})
        assert isinstance(server, dict)
        return server

    def skipped(self, content: object) -> list[tuple[int | None, str]]:
        return [(answer.line, answer.reason) for answer in self.answers(content) if isinstance(answer, SkippedFile)]

    def error(self, content: object) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.answers(content)
        return caught.value


@pytest.fixture
def mcp(tmp_path: Path) -> Mcp:
    return Mcp(tmp_path)


# ---- the file ---------------------------------------------------------------------------------------------


@pytest.mark.acceptance("M-01", "M-06")
def test_a_list_of_servers_with_commands_and_addresses_is_read(mcp: Mcp) -> None:
    content = """
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

    servers = mcp.servers(content)

    assert servers == [
        {
            "name": "filesystem",
            "type": "stdio",
            "command": ["npx", "@anthropic/mcp-server-filesystem"],
            "env": {"ALLOWED_PATHS": "/home/user"},
            "enabled": True,
        },
        {"name": "postgres", "type": "http", "url": "http://localhost:9000", "enabled": True},
    ]


@pytest.mark.acceptance("M-02")
def test_a_missing_file_is_skipped(mcp: Mcp) -> None:
    assert nexus_layer_config(mcp.layer, request_in(mcp.layer.directory)) == [SkippedFile(mcp.path, "not there")]


@pytest.mark.acceptance("M-02", "F-10")
@pytest.mark.parametrize("content", ["", " \n\t", '\ufeff{"servers": []}', "// nothing yet\n", "{}"])
def test_an_empty_file_has_no_servers(mcp: Mcp, content: str) -> None:
    assert mcp.answers(content) == [LayerConfig(mcp.path, {"mcp_servers": []})]


@pytest.mark.acceptance("M-09")
def test_the_empty_template_has_no_servers(mcp: Mcp) -> None:
    assert mcp.answers('{"servers": []}') == [LayerConfig(mcp.path, {"mcp_servers": []})]


@pytest.mark.acceptance("M-02", "F-09")
def test_a_file_that_is_not_json_is_an_error_in_the_usual_shape_without_the_values_in_it(mcp: Mcp) -> None:
    error = mcp.error('{"key": "secret",\n  "servers": [}\n')

    assert (error.what, error.where) == ("Expecting value", f"{mcp.path}:2:15")
    assert str(error) == (
        f"Configuration Error: Invalid JSON in {mcp.path}\n\n"
        "  Line 2, Column 15: Expecting value\n\n"
        '  1 | {"···": "······",\n  2 |   "servers": [}\n                    ^\n\n'
        "Fix the JSON syntax error and try again."
    )


@pytest.mark.acceptance("F-09")
@pytest.mark.parametrize(
    ("content", "place", "message", "closing"),
    [
        (
            '{"a": {\n"command": "x", "url": "y"}}',
            "Line 1, Column 2",
            "server 'a' has both 'command' and 'url'",
            "Keep one of them and try again.",
        ),
        (
            "[\n]",
            "Line 1, Column 1",
            "the file must hold an object",
            'Write {"servers": [{"name": "…", "command": ["…"]}]} and try again.',
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error_in_the_usual_shape(
    mcp: Mcp, content: str, place: str, message: str, closing: str
) -> None:
    assert str(mcp.error(content)) == (
        f"Configuration Error: Invalid setting in {mcp.path}\n\n  {place}: {message}\n\n{closing}"
    )


def test_a_file_that_is_not_utf_8_is_an_error_with_its_place(mcp: Mcp) -> None:
    mcp.path.write_bytes(b'{"servers": {"caf\xe9": {}}}')

    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        nexus_layer_config(mcp.layer, request_in(mcp.layer.directory))

    assert caught.value.where == f"{mcp.path}:1:18"


def test_a_directory_in_place_of_the_file_is_an_error_that_names_it(mcp: Mcp) -> None:
    mcp.path.mkdir()

    with pytest.raises(FileError) as caught:
        nexus_layer_config(mcp.layer, request_in(mcp.layer.directory))

    assert caught.value.where == str(mcp.path)


def test_comments_and_trailing_commas_are_allowed(mcp: Mcp) -> None:
    content = '{\n  // ours\n  "servers": {"a": {"command": ["x",], /* soon: */ },},\n}\n'

    assert mcp.servers(content) == [{"name": "a", "type": "stdio", "command": ["x"], "enabled": True}]


def test_a_layer_with_nothing_but_rules_is_not_looked_at(tmp_path: Path) -> None:
    write_files(tmp_path, {"mcp.json": "not JSON"})

    assert nexus_layer_config(Layer("ancestor:up", tmp_path, "ancestor", only_rules=True), request_in(tmp_path)) == []


@pytest.mark.acceptance("M-05")
def test_servers_know_the_file_and_the_layer_they_come_from(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {
        ".nexus3/mcp.json": '{"servers": {"a": {"url": "https://up.example"}}}',
        "down/.nexus3/mcp.json": '{"servers": {"a": {"url": "https://down.example"}}}',
    }
    # Under a name of its own, so that it makes no difference whether the bundled plugin is registered.
    reader = SimpleNamespace(__name__="reader", nexus_layer_config=nexus_layer_config)

    loaded = make_nexus(files=files, cwd="down", plugins=[reader], disable=["mcp"]).load()

    places = [
        (config.layer and config.layer.name, config.path) for config in loaded.configs if config.path.name == "mcp.json"
    ]
    assert places == [
        ("ancestor:work", tmp_path / "work/.nexus3/mcp.json"),
        ("local", tmp_path / "work/down/.nexus3/mcp.json"),
    ]


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(nexus_plugins.mcp) == []


# ---- what holds the servers -------------------------------------------------------------------------------


@pytest.mark.acceptance("M-01")
@pytest.mark.parametrize("wrap", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_servers_in_the_order_of_the_file(
    mcp: Mcp, wrap: Callable[[dict[str, Any]], object]
) -> None:
    content = wrap({"zoo": {"command": "npx", "args": ["-y", "zoo"]}, "ant/1": {"url": "https://ant.example/mcp"}})

    servers = mcp.servers(content)

    assert servers == [
        {"name": "zoo", "type": "stdio", "command": ["npx", "-y", "zoo"], "enabled": True},
        {"name": "ant/1", "type": "http", "url": "https://ant.example/mcp", "enabled": True},
    ]


def test_mcp_servers_with_something_in_them_win_over_servers(mcp: Mcp) -> None:
    content = '{\n"servers": {"a": {"url": "https://a"}},\n"mcpServers": {"b": {"url": "https://b"}}}'

    servers, skipped = mcp.servers(content), mcp.skipped(content)

    assert [server["name"] for server in servers] == ["b"]
    assert skipped == [(2, "'servers' is not read, because 'mcpServers' has servers")]


def test_very_many_unknown_keys_are_cut_short(mcp: Mcp) -> None:
    skipped = mcp.skipped({"servers": {}, **{f"k{number}": 0 for number in range(20_000)}})

    assert len(skipped) == 101
    assert skipped[-1] == (1, "19900 more from here on")


def test_empty_mcp_servers_give_way_to_servers(mcp: Mcp) -> None:
    content = {"mcpServers": {}, "servers": [{"name": "a", "url": "https://a"}]}

    assert [server["name"] for server in mcp.servers(content)] == ["a"]
    assert mcp.skipped(content) == []


def test_an_unknown_key_beside_the_servers_is_reported(mcp: Mcp) -> None:
    assert mcp.skipped('{"servers": {},\n "inputs": []}') == [(2, "unknown key 'inputs'")]


@pytest.mark.parametrize(
    "content",
    [
        {"$schema": "https://example.org/mcp.json", "_comment": "ours", "servers": {}},
        {"$schema": "https://example.org/mcp.json", "_comment": "ours"},
        {"servers": {"_comment": "ours", "_old": {"command": "x"}}},
        {"servers": {"a": {"command": "x", "_comment": "ours"}}},
    ],
)
def test_keys_for_people_and_editors_are_passed_over(mcp: Mcp, content: object) -> None:
    assert mcp.skipped(content) == []


def test_a_server_whose_name_begins_with_an_underscore_is_commented_out(mcp: Mcp) -> None:
    content = {"mcpServers": {"_old": {"command": "x"}, "new": {"command": "y", "env": {"_KEPT": "1"}}}}

    assert [(server["name"], server["env"]) for server in mcp.servers(content)] == [("new", {"_KEPT": "1"})]


# ---- one server -------------------------------------------------------------------------------------------


def test_a_server_has_only_what_the_file_says_and_the_defaults(mcp: Mcp) -> None:
    assert mcp.server(command=["x"]) == {"name": "a", "type": "stdio", "command": ["x"], "enabled": True}


def test_every_field_arrives(mcp: Mcp) -> None:
    server = mcp.server(url="https://a", type="sse", headers={"X-Key": "k"}, env={"A": "b"}, cwd="sub", enabled=False)

    assert server == {
        "name": "a",
        "type": "sse",
        "url": "https://a",
        "env": {"A": "b"},
        "headers": {"X-Key": "k"},
        "cwd": "sub",
        "enabled": False,
    }


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"command": ["npx", "-y", "x"]}, ["npx", "-y", "x"]),
        ({"command": "npx", "args": ["-y", "x"]}, ["npx", "-y", "x"]),
        ({"command": ["npx", "-y"], "args": ["x"]}, ["npx", "-y"]),
        ({"command": "npx -y x"}, ["npx -y x"]),
        (
            {"command": "serve", "args": ["--port", 8080, "--open", False]},
            ["serve", "--port", "8080", "--open", "false"],
        ),
    ],
)
def test_a_command_is_a_list_of_words_and_text_is_never_split(
    mcp: Mcp, fields: dict[str, object], command: list[str]
) -> None:
    assert mcp.server(**fields)["command"] == command


@pytest.mark.acceptance("M-06")
@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"command": ["x"]}, "stdio"),
        ({"command": ["x"], "type": "stdio"}, "stdio"),
        ({"url": "https://a"}, "http"),
        ({"httpUrl": "https://a"}, "http"),
        ({"url": "https://a", "type": "http"}, "http"),
        ({"url": "https://a", "type": "sse"}, "sse"),
        ({"url": "https://a", "transport": "streamable-http"}, "http"),
        ({"url": "https://a", "type": "streamableHttp"}, "http"),
        ({"url": "https://a", "type": "streamable_http"}, "http"),
        ({"transport": {"type": "sse", "url": "https://a"}}, "sse"),
        ({"transport": {"type": "stdio"}, "command": "x"}, "stdio"),
        ({"transport": {"url": "https://a"}}, "http"),
    ],
)
def test_a_command_means_stdio_and_an_address_http_unless_sse_is_said(
    mcp: Mcp, fields: dict[str, object], transport: str
) -> None:
    assert mcp.server(**fields)["type"] == transport


@pytest.mark.parametrize(
    "fields",
    [{"url": "https://a"}, {"httpUrl": "https://a"}, {"serverUrl": "https://a"}, {"transport": {"url": "https://a"}}],
)
def test_an_address_is_found_under_each_of_its_names(mcp: Mcp, fields: dict[str, object]) -> None:
    assert mcp.server(**fields)["url"] == "https://a"


@pytest.mark.parametrize("key", ["env", "environment"])
def test_the_environment_is_found_under_both_of_its_names(mcp: Mcp, key: str) -> None:
    assert mcp.server(command="x", **{key: {"A": "b"}})["env"] == {"A": "b"}


def test_numbers_and_booleans_in_the_environment_become_text_and_null_is_left_out(mcp: Mcp) -> None:
    server = mcp.server(command="x", env={"PORT": 3000, "DEBUG": True, "RATIO": 0.5, "UNSET": None})

    assert server["env"] == {"PORT": "3000", "DEBUG": "true", "RATIO": "0.5"}


@pytest.mark.acceptance("M-07")
@pytest.mark.parametrize(
    ("fields", "enabled"),
    [
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": False, "disabled": True}, False),
    ],
)
def test_a_disabled_server_is_kept_and_says_so(mcp: Mcp, fields: dict[str, object], enabled: bool) -> None:
    assert mcp.server(command="x", **fields)["enabled"] is enabled


@pytest.mark.parametrize("reference", ["${TOKEN}", "${env:TOKEN}", "${TOKEN:-none}", "${input:token}", "$TOKEN"])
def test_references_stay_as_they_are(mcp: Mcp, monkeypatch: pytest.MonkeyPatch, reference: str) -> None:
    monkeypatch.setenv("TOKEN", SECRET)

    server = mcp.server(url=f"https://a/{reference}", headers={"Authorization": reference}, env={"T": reference})

    assert (server["url"], server["headers"], server["env"]) == (
        f"https://a/{reference}",
        {"Authorization": reference},
        {"T": reference},
    )


def test_null_says_nothing(mcp: Mcp) -> None:
    server = mcp.server(command=["x"], url=None, env=None, headers=None, cwd=None, type=None, enabled=None)

    assert server == {"name": "a", "type": "stdio", "command": ["x"], "enabled": True}


def test_two_names_of_one_field_may_agree(mcp: Mcp) -> None:
    server = mcp.server(type="http", transport="streamable-http", url="https://a", httpUrl="https://a")

    assert (server["type"], server["url"]) == ("http", "https://a")


def test_an_unknown_key_of_a_server_is_reported_and_left_alone(mcp: Mcp) -> None:
    content = '{"servers": {\n"a": {\n"command": "x",\n"hedaers": {}}}}'

    answers = mcp.answers(content)

    assert answers == [
        LayerConfig(mcp.path, {"mcp_servers": [{"name": "a", "type": "stdio", "command": ["x"], "enabled": True}]}),
        SkippedFile(mcp.path, "unknown key 'hedaers' of server 'a'; did you mean 'headers'?", line=4, is_mistake=True),
    ]


def test_a_second_name_is_reported_and_the_key_counts(mcp: Mcp) -> None:
    content = {"servers": {"a": {"name": "A!", "command": "x"}, "b": {"name": "b", "command": "x"}}}

    assert [server["name"] for server in mcp.servers(content)] == ["a", "b"]
    assert mcp.skipped(content) == [(1, "'name' of server 'a' has no effect: its key is its name")]


@pytest.mark.parametrize("fields", [{"url": ""}, {"url": " "}, {"command": ""}, {"command": []}, {"command": [""]}])
def test_a_server_that_is_yet_to_be_filled_in_is_left_out_and_reported(mcp: Mcp, fields: dict[str, object]) -> None:
    content = {"servers": {"a": fields, "b": {"command": "x"}}}

    assert [server["name"] for server in mcp.servers(content)] == ["b"]
    assert mcp.skipped(content) == [(1, "server 'a' is left out, because its command or url is empty")]


def test_an_empty_field_does_not_contradict_a_filled_one(mcp: Mcp) -> None:
    server = mcp.server(command="", args=[], url="https://a")

    assert server == {"name": "a", "type": "http", "url": "https://a", "enabled": True}


def test_arguments_without_a_command_are_reported(mcp: Mcp) -> None:
    content = {"servers": {"a": {"url": "https://a", "args": ["-y"]}}}

    assert mcp.skipped(content) == [(1, "'args' of server 'a' is not used, because there is no command")]


# ---- places -----------------------------------------------------------------------------------------------


def test_servers_of_a_list_stand_where_their_objects_begin(mcp: Mcp) -> None:
    config = mcp.config(
        '{"servers": [\n  {"url": "https://a",\n   "name": "a"},\n    {"name": "b", "command": "x"}\n]}'
    )

    places = {pointer: config.position(pointer) for pointer in ("", "/mcp_servers", "/mcp_servers/0", "/mcp_servers/1")}

    assert places == {"": (1, 1), "/mcp_servers": (1, 2), "/mcp_servers/0": (2, 3), "/mcp_servers/1": (4, 5)}
    assert config.position("/mcp_servers/0/name") == (3, 4)
    assert config.position("/mcp_servers/0/url") == (2, 4)


def test_servers_of_an_object_stand_where_their_names_do(mcp: Mcp) -> None:
    config = mcp.config('{"mcpServers": {\n  "a/b": {"url": "https://a"}}}')

    assert config.position("/mcp_servers/0") == (2, 3)
    assert config.position("/mcp_servers/0/name") == (2, 3)


def test_what_a_server_leaves_open_stands_where_the_server_does(mcp: Mcp) -> None:
    config = mcp.config('{\n"a": {\n"url": "https://a"}}')

    assert config.position("/mcp_servers/0/type") == (2, 1)
    assert config.position("/mcp_servers/0/enabled") == (2, 1)


def test_a_field_stands_where_it_is_written_under_whatever_name(mcp: Mcp) -> None:
    config = mcp.config(
        '{"a": {\n"disabled": true,\n"transport": {\n"type": "stdio"},\n"environment": {\n"A/B": ""},\n"command": "x"}}'
    )

    places = [
        config.position(f"/mcp_servers/0/{field}")[0] for field in ("enabled", "type", "env", "env/A~1B", "command")
    ]

    assert places == [2, 4, 5, 6, 7]


def test_each_word_of_a_command_stands_where_it_is_written(mcp: Mcp) -> None:
    config = mcp.config('{"a": {\n"command": "npx",\n"args": [\n"-y",\n"x"]},\n"b": {"command": ["npx",\n"-y"]}}')

    first = [config.position(f"/mcp_servers/0/command/{index}")[0] for index in range(3)]
    second = [config.position(f"/mcp_servers/1/command/{index}")[0] for index in range(2)]

    assert (first, second) == ([2, 4, 5], [6, 7])


def test_a_place_that_does_not_exist_is_where_the_servers_are(mcp: Mcp) -> None:
    config = mcp.config('{\n"servers": {"a": {"command": "x"}}}')

    assert {config.position(pointer) for pointer in ("/mcp_servers/7", "/mcp_servers/x")} == {(2, 1)}
    assert config.position("/elsewhere") == (1, 1)


# ---- what cannot be meant ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("[]", "1:1", "the file must hold an object"),
        ("null", "1:1", "the file must hold an object"),
        ('{\n "servers": "x"}', "2:2", "'servers' must be a list or an object"),
        ('{\n "servers": null}', "2:2", "'servers' must be a list or an object"),
        ('{"mcpServers": {"a": {"command": "x"}},\n "servers": 7}', "2:2", "'servers' must be a list or an object"),
        ('{"servers": [\n "x"]}', "2:2", "server 1 of the list must be an object, not text"),
        ('{"servers": {\n "a": ["x"]}}', "2:2", "server 'a' must be an object, not a list"),
        ('{\n "a": true}', "2:2", "server 'a' must be an object, not true or false"),
        ('{"servers": [\n {"command": "x"}]}', "2:2", "server 1 of the list needs a 'name'"),
        ('{"servers": [\n {\n"name": 3}]}', "3:1", "server 1 of the list needs a 'name'"),
        ('{"servers": [\n {\n"name": " "}]}', "3:1", "server 1 of the list needs a 'name'"),
        ('{"servers": {\n "": {"command": "x"}}}', "2:2", "the name of a server must not be empty"),
        (
            '{"servers": [{"name": "a", "command": "x"},\n {"name": "a", "url": "https://a"}]}',
            "2:2",
            "two servers are named 'a'",
        ),
        ('{"servers": {\n "a": {"url": ""},\n "a": {"url": ""}}}', "3:2", "Duplicate key 'a'"),
        ('\n{"theme": "dark", "editor": {"size": 12}}', "2:1", "the file has settings in it, and no servers"),
        ('{"servers": {\n "a": {}}}', "2:2", "server 'a' has neither 'command' nor 'url'"),
        ('{"servers": {\n "a": {"command": "x", "url": "y"}}}', "2:2", "server 'a' has both 'command' and 'url'"),
        ('{"a": {"command": "x",\n "type": "http"}}', "2:2", "server 'a' has 'command', but its type is http"),
        ('{"a": {"url": "x",\n "type": "stdio"}}', "2:2", "server 'a' has 'url', but its type is stdio"),
        ('{"a": {"url": "x",\n "type": "carrier-pigeon"}}', "2:2", "'type' of server 'a' is not a known type"),
        ('{"a": {"url": "x",\n "transport": 1}}', "2:2", "'transport' of server 'a' must be text, not a number"),
        ('{"a": {\n "url": 1}}', "2:2", "'url' of server 'a' must be text, not a number"),
        ('{"a": {"url": "x",\n "httpUrl": "y"}}', "2:2", "'httpUrl' of server 'a' contradicts its 'url'"),
        ('{"a": {"url": "x",\n "transport": {\n"url": "y"}}}', "3:1", "'url' of server 'a' contradicts its 'url'"),
        ('{"a": {\n "command": {}}}', "2:2", "'command' of server 'a' must be a list or text, not an object"),
        ('{"a": {"command": [\n {}]}}', "2:2", "item 1 in 'command' of server 'a' must be text, not an object"),
        ('{"a": {"command": "x",\n "args": "y"}}', "2:2", "'args' of server 'a' must be a list, not text"),
        (
            '{"a": {"command": "x", "args": ["y",\n null]}}',
            "2:2",
            "item 2 in 'args' of server 'a' must be text, not null",
        ),
        ('{"a": {"command": "x",\n "env": ["A=b"]}}', "2:2", "'env' of server 'a' must be an object, not a list"),
        ('{"a": {"command": "x", "env": {\n "A": []}}}', "2:2", "'A' in 'env' of server 'a' must be text, not a list"),
        ('{"a": {"url": "x",\n "headers": 1.5}}', "2:2", "'headers' of server 'a' must be an object, not a number"),
        ('{"a": {"command": "x",\n "cwd": []}}', "2:2", "'cwd' of server 'a' must be text, not a list"),
        (
            '{"a": {"command": "x",\n "enabled": "yes"}}',
            "2:2",
            "'enabled' of server 'a' must be true or false, not text",
        ),
        (
            '{"a": {"command": "x",\n "disabled": 0}}',
            "2:2",
            "'disabled' of server 'a' must be true or false, not a number",
        ),
        (
            '{"a": {"command": "x", "enabled": true,\n "disabled": true}}',
            "2:2",
            "'disabled' of server 'a' contradicts its 'enabled'",
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_file_line_and_column(
    mcp: Mcp, content: str, place: str, words: str
) -> None:
    error = mcp.error(content)

    assert error.where == f"{mcp.path}:{place}"
    assert error.what.startswith(words)


def test_a_name_in_an_error_is_one_short_line(mcp: Mcp) -> None:
    error = mcp.error({"servers": {"a\n\u202e\x1b[2J" + "b" * 500: {}}})

    assert error.what.startswith(r"server 'a\n\u202e\x1b[2Jbbb")
    assert len(error.what) < 140


@pytest.mark.parametrize(
    "content",
    [
        f'{{"servers": {{"a": {{"command": "x",\n"env": {{"TOKEN": "{SECRET}"}}\n"cwd": "y"}}}}}}',
        f'{{"servers": {{"a": {{"command": "x",\n"env": {{"TOKEN": "{SECRET}}}}}}}}}',
        f'{{"servers": {{"a": {{"env": {{"TOKEN": "{SECRET}"}}}}}}}}',
        f'{{"servers": {{"a": {{"command": "x", "env": "{SECRET}"}}}}}}',
        f'{{"servers": {{"a": {{"command": "x", "env": ["TOKEN={SECRET}"]}}}}}}',
        f'{{"servers": {{"a": {{"command": "x", "env": {{"TOKEN": ["{SECRET}"]}}}}}}}}',
        f'{{"servers": {{"a": {{"command": "x", "args": "--token={SECRET}"}}}}}}',
        f'{{"servers": {{"a": {{"command": "x", "url": "https://{SECRET}@host"}}}}}}',
        f'{{"servers": {{"a": {{"url": "https://{SECRET}@host", "httpUrl": "https://host"}}}}}}',
        f'{{"servers": {{"a": {{"url": "x", "headers": {{"Authorization": {{"Bearer": "{SECRET}"}}}}}}}}}}',
        f'{{"servers": {{"a": {{"url": "x", "type": "{SECRET}"}}}}}}',
        f'{{"servers": {{"a": {{"url": "x", "enabled": "{SECRET}"}}}}}}',
        f'{{"servers": {{"a": "{SECRET}"}}}}',
        f'{{"servers": ["{SECRET}"]}}',
        f'{{"servers": "{SECRET}"}}',
        f'"{SECRET}"',
    ],
)
def test_no_error_repeats_a_value_of_the_file(mcp: Mcp, content: str) -> None:
    error = mcp.error(content)

    assert SECRET not in f"{error}{error!r}{error.__dict__}"


def test_no_report_repeats_a_value_of_the_file(mcp: Mcp) -> None:
    content = {"servers": {"a": {"url": " ", "args": [SECRET], "token": SECRET}}, "inputs": [SECRET]}

    assert SECRET not in str(mcp.skipped(content))


# ---- any file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_from_the_wild_is_read_or_refused_with_its_place(mcp: Mcp, path: Path) -> None:
    servers, place = outcome(mcp, path.read_text(encoding="utf-8"))

    assert all(is_normal(server) for server in servers)
    assert place is None or place.startswith(f"{mcp.path}:")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
WORDS = st.sampled_from(["", "npx", "a b", "https://a", "stdio", "http", "sse", "${A}"])
KEYS = st.sampled_from([*SERVER_FIELDS, "other", "_comment"])
VALUES = WORDS | st.booleans() | st.lists(WORDS) | st.dictionaries(KEYS, WORDS | st.booleans()) | ANY_JSON
ENTRIES = st.dictionaries(KEYS, VALUES) | ANY_JSON
SERVERS = st.lists(ENTRIES) | st.dictionaries(st.text(), ENTRIES)
DOCUMENTS = st.dictionaries(st.sampled_from(["servers", "mcpServers", "inputs"]), SERVERS) | SERVERS | ANY_JSON


_PASSED_ON = ("env_file", "call_timeout", "start_timeout", "include_tools", "exclude_tools")
"""Fields that not every tool has."""


def is_normal(server: dict[str, Any]) -> bool:
    """Whether it is a server as the rest of Nexus expects it."""
    target = server.get("command") if server["type"] == "stdio" else server.get("url")
    texts = [server["name"], *server.get("command", []), *server.get("env", {}).values()]
    return (
        ("command" in server) != ("url" in server)
        and bool(target)
        and bool(server["name"].strip())
        and all(isinstance(text, str) for text in texts)
        and server["type"] in {"stdio", "http", "sse"}
        and isinstance(server["enabled"], bool)
        and set(server) <= {"name", "type", "command", "url", "env", "headers", "cwd", "enabled", *_PASSED_ON}
    )


def outcome(mcp: Mcp, content: object) -> tuple[list[dict[str, Any]], str | None]:
    """The servers in a file, or none and the place of the error."""
    try:
        return mcp.servers(content), None
    except ConfigError as error:
        return [], error.where or ""


def pointers(value: object, pointer: str) -> Iterator[str]:
    """The JSON pointers of a value and of everything in it."""
    yield pointer
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield from pointers(each, pointer_to(pointer, key))


@given(DOCUMENTS)
def test_any_json_gives_servers_or_an_error_with_its_place(document: object) -> None:
    with tempfile.TemporaryDirectory() as directory:
        mcp = Mcp(Path(directory))

        servers, place = outcome(mcp, document)

    assert all(is_normal(server) for server in servers)
    assert len({server["name"] for server in servers}) == len(servers)
    assert place is None or place.startswith(f"{mcp.path}:1:")


@given(DOCUMENTS)
def test_the_same_file_gives_the_same_answer(document: object) -> None:
    with tempfile.TemporaryDirectory() as directory:
        mcp = Mcp(Path(directory))

        first, second = outcome(mcp, document), outcome(mcp, document)

    assert first == second


@given(DOCUMENTS)
def test_everything_that_is_read_has_a_place_in_the_file(document: object) -> None:
    with tempfile.TemporaryDirectory() as directory, suppress(ConfigError):
        config = Mcp(Path(directory)).config(json.dumps(document, indent=1))

        lines = [config.position(pointer)[0] for pointer in pointers(config.settings, "")]

        assert 0 not in lines
