"""Servers in the files of other tools, which are read where the settings say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import ConfigError
from nexus_core.config.servers import normalize_servers
from nexus_core.plugin import Layer, LayerConfig, SkippedFile
from nexus_core.plugin.settings import MCPServerConfig
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._files import FILE_FORMATS, detect_format, read_servers
from nexus_plugins.mcp._toml import parse_toml
from tests.conftest import Cli, sample_files

ALL = {"plugins": {"mcp": {"read": list(FILE_FORMATS)}}}
SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - nobody's


def read(*names: str) -> str:
    return json.dumps({"plugins": {"mcp": {"read": names}}})


def found(make_nexus: MakeNexus, files: dict[str, str]) -> dict[str, MCPServerConfig]:
    loaded = make_nexus(files={".nexus3/config.json": json.dumps(ALL), **files}).load()
    return {server.config.name: server.config for server in loaded.servers}


FILES = {
    ".mcp.json": '{"mcpServers": {"claude": {"command": "npx", "args": ["x"], "env": {"T": "${T:-none}"}}}}',
    ".vscode/mcp.json": '{"servers": {"vscode": {"type": "http", "url": "https://v.example/mcp"}}, "inputs": [],}',
    ".cursor/mcp.json": '{"mcpServers": {"cursor": {"command": "c"}}}',
    ".codex/config.toml": 'model = "o3"\n[mcp_servers.codex]\ncommand = "c"\nargs = ["-v"]\nenv_vars = ["TOKEN"]\n',
    ".gemini/settings.json": '{"ui": {}, "mcpServers": {"gemini": {"httpUrl": "https://g.example"}}}',
    "opencode.json": '{"mcp": {"opencode": {"type": "local", "command": ["o", "-v"], "environment": {"A": "b"}}}}',
}


def test_files_of_other_tools_are_not_read_unless_the_settings_say_so(make_nexus: MakeNexus) -> None:
    assert make_nexus(files=FILES).load().servers == ()


@pytest.mark.acceptance("M-03", "M-06")
def test_every_tool_is_read_where_the_project_says_so(make_nexus: MakeNexus) -> None:
    servers = found(make_nexus, FILES)

    assert servers == {
        "claude": MCPServerConfig(name="claude", type="stdio", command=("npx", "x"), env={"T": "${T:-none}"}),
        "vscode": MCPServerConfig(name="vscode", type="http", url="https://v.example/mcp"),
        "cursor": MCPServerConfig(name="cursor", type="stdio", command=("c",)),
        "codex": MCPServerConfig(name="codex", type="stdio", command=("c", "-v"), env={"TOKEN": "${TOKEN:-}"}),
        "gemini": MCPServerConfig(name="gemini", type="http", url="https://g.example"),
        "opencode": MCPServerConfig(name="opencode", type="stdio", command=("o", "-v"), env={"A": "b"}),
    }


def test_the_users_own_setting_counts_in_every_project(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": read("claude")})

    loaded = make_nexus(files=FILES).load()

    assert [(server.config.name, server.origin, server.approved) for server in loaded.servers] == [
        ("claude", "local", False)
    ]


def test_an_ancestor_has_no_say_in_it(make_nexus: MakeNexus) -> None:
    files = {".nexus3/config.json": read("claude"), "down/.mcp.json": FILES[".mcp.json"]}

    assert make_nexus(files=files, cwd="down").load().servers == ()


@pytest.mark.acceptance("M-04", "M-05")
def test_nexus_own_file_wins_over_that_of_another_tool(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {".nexus3/mcp.json": '{"servers": {"claude": {"command": "own"}}}', ".mcp.json": FILES[".mcp.json"]}

    (server,) = make_nexus(files={".nexus3/config.json": read("claude"), **files}).load().servers

    assert (server.config.command, server.source_path) == (("own",), tmp_path / "work/.nexus3/mcp.json")


def test_a_tool_that_is_not_known_is_refused_with_the_nearest(make_nexus: MakeNexus) -> None:
    with pytest.raises(ConfigError, match=r"plugins\.mcp\.read"):
        make_nexus(files={".nexus3/config.json": read("cloude")}).load()


# ---- words of their own -----------------------------------------------------------------------------------


def test_codex_variables_become_references(make_nexus: MakeNexus) -> None:
    toml = """
    [mcp_servers.remote]
    url = "https://r.example"
    bearer_token_env_var = "TOKEN"
    http_headers = { "X-A" = "a" }
    env_http_headers = { "X-B" = "B_VARIABLE" }
    """

    server = found(make_nexus, {".codex/config.toml": toml})["remote"]

    assert dict(server.headers) == {"Authorization": "Bearer ${TOKEN}", "X-A": "a", "X-B": "${B_VARIABLE}"}


def test_the_url_of_gemini_is_an_event_stream_and_its_variables_are_references(make_nexus: MakeNexus) -> None:
    settings = {"mcpServers": {"g": {"url": "https://g.example/$TENANT", "headers": {"A": "$KEY ${OTHER}"}}}}

    server = found(make_nexus, {".gemini/settings.json": json.dumps(settings)})["g"]

    assert (server.type, server.url) == ("sse", "https://g.example/${TENANT}")
    assert dict(server.headers) == {"A": "${KEY} ${OTHER}"}


@pytest.mark.parametrize("lists", [{"excluded": ["b"]}, {"allowed": ["a"]}, {"allowed": ["a", "b"], "excluded": ["b"]}])
def test_what_gemini_would_not_connect_to_is_switched_off(make_nexus: MakeNexus, lists: dict[str, Any]) -> None:
    settings = {"mcp": lists, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}

    servers = found(make_nexus, {".gemini/settings.json": json.dumps(settings)})

    assert {name: server.enabled for name, server in servers.items()} == {"a": True, "b": False}


@pytest.mark.parametrize("lists", [7, {}, {"excluded": None}, {"excluded": [7], "allowed": "a"}])
def test_lists_of_gemini_that_say_nothing_change_nothing(make_nexus: MakeNexus, lists: object) -> None:
    settings = {"mcp": lists, "mcpServers": {"a": {"command": "x"}}}

    assert found(make_nexus, {".gemini/settings.json": json.dumps(settings)})["a"].enabled


def test_references_of_opencode_are_understood(make_nexus: MakeNexus) -> None:
    settings = {"mcp": {"o": {"type": "remote", "url": "https://o.example", "headers": {"A": "Bearer {env:KEY}"}}}}

    server = found(make_nexus, {"opencode.jsonc": json.dumps(settings)})["o"]

    assert dict(server.headers) == {"A": "Bearer ${env:KEY}"}


def test_settings_of_a_tool_that_are_not_about_servers_are_passed_over(make_nexus: MakeNexus) -> None:
    files = {".nexus3/config.json": read("gemini"), ".gemini/settings.json": '{"ui": {"theme": "x"}, "general": {}}'}

    loaded = make_nexus(files=files).load()

    assert loaded.servers == ()
    assert [each.reason for each in loaded.skipped if each.path.name == "settings.json"] == []


# ---- faults -----------------------------------------------------------------------------------------------


@pytest.mark.acceptance("M-02")
def test_a_broken_toml_file_names_its_line_and_shows_none(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {".nexus3/config.json": read("codex"), ".codex/config.toml": f'[mcp_servers.a]\ncommand = "{SECRET}\n'}

    with pytest.raises(ConfigError, match="not TOML") as caught:
        make_nexus(files=files).load()

    assert str(caught.value.where).startswith(f"{tmp_path}/work/.codex/config.toml:2:")
    assert SECRET not in str(caught.value)


SOME_TOML = f'[mcp_servers.a]\ncommand = "x"\nenv = {{ "T" = "{SECRET}ü" }}\n'


@pytest.mark.acceptance("M-02")
@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (SOME_TOML.encode("latin-1"), "3:40", "Byte 0xfc at offset 69 is not UTF-8; the file looks like Latin-1"),
        (SOME_TOML.encode("utf-16"), "1:1", "Byte 0xff at offset 0 is not UTF-8; the file looks like UTF-16"),
        (SOME_TOML.encode().replace(b"x", b"\0"), "2:12", "Byte 0x00 at offset 27 is not text"),
        (b"#" * (1024 * 1024 + 1), "", "larger than 1 MiB"),
    ],
    ids=["latin-1", "utf-16", "nul", "large"],
)
def test_a_toml_file_that_is_no_text_is_an_error_with_its_place_and_shows_nothing(
    make_nexus: MakeNexus, tmp_path: Path, data: bytes, place: str, message: str
) -> None:
    nexus = make_nexus(files={".nexus3/config.json": read("codex"), ".codex/config.toml": ""})
    path = tmp_path / "work/.codex/config.toml"
    path.write_bytes(data)

    with pytest.raises(ConfigError) as caught:
        nexus.load()

    assert message in str(caught.value)
    assert str(caught.value.where).startswith(f"{path}:{place}" if place else str(path))
    assert SECRET not in str(caught.value.report)


def test_a_toml_file_of_windows_is_read(make_nexus: MakeNexus) -> None:
    toml = b"\xef\xbb\xbf" + b'# x\r\n[mcp_servers.a]\r\ncommand = "c"\r\n'
    nexus = make_nexus(files={".nexus3/config.json": read("codex"), ".codex/config.toml": ""})
    (nexus.cwd / ".codex/config.toml").write_bytes(toml)

    (server,) = nexus.load().servers

    assert (server.config.command, server.line) == (("c",), 2)


def test_a_server_of_codex_knows_its_line(make_nexus: MakeNexus) -> None:
    files = {".codex/config.toml": 'model = "x"\n\n[mcp_servers."a b"]\ncommand = "c"\n'}

    (server,) = make_nexus(files={".nexus3/config.json": read("codex"), **files}).load().servers

    assert server.line == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[mcp_servers.a]\nargs = []\ncommand = 7\n", 3),
        ("\nmcp_servers.a.command = 7\n", 2),
        ("\n[mcp_servers]\n\na = {command = 7}\n", 4),
        ("\n[ mcp_servers . 'a' ]\n  command = 7\n", 3),
        ('[mcp_servers."a"]\nargs = ["""\ncommand = 3\n"""]\ncommand = 7\n', 5),
        ('[[mcp_servers]]\nname = "b"\ncommand = "x"\n[[mcp_servers]]\nname = "a"\ncommand = 7\n', 6),
        ("[mcp_servers.b]\ncommand = 'x'\n[mcp_servers.a]\nurl = 'x'\nhttp_headers = 'hunter22'\n", 5),
        ("[mcp_servers.a]\ncommand = 'x'\nenv_vars = ['A', 7]\n", 3),
        ("model = 'o3'\nmcp_servers = 'hunter22'\n", 2),
    ],
)
def test_a_fault_in_a_toml_file_has_its_line(make_nexus: MakeNexus, text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        found(make_nexus, {".codex/config.toml": text})

    assert f"Line {line}, Column 1: " in str(caught.value.report)
    assert "hunter22" not in str(caught.value.report)


def test_every_table_of_a_toml_file_with_very_many_has_its_line() -> None:
    text = "[[other]]\n[[mcp_servers.a.b]]\n" * 2_000

    assert parse_toml(Path("config.toml"), text).position("/mcp_servers/a/b/1999") == (4_000, 1)


@pytest.mark.parametrize(
    ("file", "text", "example"),
    [
        (".codex/config.toml", "mcp_servers = 7", '[mcp_servers.NAME] and below it command = "…"'),
        (".gemini/settings.json", '{"mcpServers": 7}', '{"mcpServers": {"…": {"command": "…"}}}'),
        ("opencode.json", '{"mcp": 7}', '{"mcp": {"…": {"command": ["…"]}}}'),
        (".vscode/mcp.json", '{"servers": 7}', '{"servers": {"…": {"command": "…"}}}'),
    ],
)
def test_what_to_write_is_told_in_the_words_of_the_tool(
    make_nexus: MakeNexus, file: str, text: str, example: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        found(make_nexus, {file: text})

    assert f"Write {example} and try again." in str(caught.value.report)


def test_a_wrong_field_in_a_file_of_another_tool_is_named_without_its_value(make_nexus: MakeNexus) -> None:
    files = {".nexus3/config.json": read("codex"), ".codex/config.toml": f"[mcp_servers.a]\ncommand = {{x='{SECRET}'}}"}

    with pytest.raises(ConfigError, match="'command' of server 'a' must be a list or text") as caught:
        make_nexus(files=files).load()

    assert SECRET not in str(caught.value)


MISMATCHES = {
    ".cursor/mcp.json": ('{\n"servers": {"a": {"command": "x"}}}', "Cursor looks for 'mcpServers', not 'servers'"),
    ".mcp.json": ('{\n"mcpServers": {"a": {"command": ["x"]}}}', "Claude Code wants the command of 'a' as text"),
    ".vscode/mcp.json": ('{\n"mcpServers": {"a": {"command": "x"}}}', "VS Code looks for 'servers', not 'mcpServers'"),
    ".gemini/settings.json": (
        '{\n"mcpServers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}',
        "Gemini CLI does not ask for the ${input:…} of 'a'",
    ),
}


@pytest.mark.parametrize("file", MISMATCHES)
def test_the_doctor_says_what_the_tool_itself_would_not_understand(cli: Cli, work: Path, file: str) -> None:
    text, message = MISMATCHES[file]
    write_files(work, {".nexus3/config.json": json.dumps(ALL), file: text})

    findings = json.loads(cli("doctor", "--json").out)["findings"]

    (finding,) = (each for each in findings if each["code"] == "mcp-dialect")
    assert finding["message"].startswith(message)
    assert (finding["path"], finding["line"]) == (f"{work}/{file}", 2)


@pytest.mark.parametrize("file", FILES)
def test_the_doctor_finds_nothing_odd_about_what_each_tool_writes_itself(cli: Cli, work: Path, file: str) -> None:
    write_files(work, {".nexus3/config.json": json.dumps(ALL), file: FILES[file]})

    findings = json.loads(cli("doctor", "--json").out)["findings"]

    assert [each for each in findings if each["code"] == "mcp-dialect"] == []


# ---- real files -------------------------------------------------------------------------------------------


@pytest.mark.acceptance("R11")
@pytest.mark.parametrize("path", sample_files("mcp"), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_file_is_read_and_all_its_servers_have_one_form(path: Path, tmp_path: Path) -> None:
    dialect = next((each for each in FILE_FORMATS.values() if each.name == path.parent.name), detect_format("mcp.json"))
    copy = tmp_path / f"mcp{path.suffix}"
    copy.write_bytes(path.read_bytes())
    skipped: list[SkippedFile] = []

    answers = read_servers(copy, Layer("local", tmp_path, "local"), dialect)
    configs = normalize_servers([each for each in answers if isinstance(each, LayerConfig)], skipped)

    servers: Any = [server for config in configs for server in config.settings["mcp_servers"]]  # type: ignore[attr-defined]
    assert all(server["type"] in {"stdio", "http", "sse"} and server["name"] for server in servers)
