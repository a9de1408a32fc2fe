"""What other tools write about a server: which tools it offers, how long it may take, and what Nexus does not do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_core.plugin.settings import MCPServerConfig
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._connections import ServerTimeouts
from nexus_plugins.mcp._tools import ToolDefinition, store_catalog
from nexus_plugins.mcp.call import connect
from tests.conftest import Cli
from tests.plugins.mcp.test_other_tools import ALL
from tests.plugins.mcp.world import EVIL, define, script, servers_of, survivors

running = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")


def read(make_nexus: MakeNexus, file: str, text: str) -> MCPServerConfig:
    nexus = make_nexus(files={".nexus3/config.json": json.dumps(ALL), file: text})
    return servers_of(nexus)["a"].config


def entry(container: str, **said: object) -> str:
    return json.dumps({container: {"a": said}})


CODEX = """[mcp_servers.a]
command = "x"
enabled_tools = ["read", "list"]
disabled_tools = ["list"]
startup_timeout_sec = 7.5
tool_timeout_sec = 90
"""
WRITTEN: dict[str, tuple[str, str, dict[str, object]]] = {
    "Codex": (
        ".codex/config.toml",
        CODEX,
        {"include": ("read", "list"), "exclude": ("list",), "start": 7.5, "call": 90},
    ),
    "Codex, old": (
        ".codex/config.toml",
        '[mcp_servers.a]\ncommand = "x"\nstartup_timeout_ms = 15000\n',
        {"start": 15},
    ),
    "Codex, both": (
        ".codex/config.toml",
        '[mcp_servers.a]\ncommand = "x"\nstartup_timeout_sec = 5\nstartup_timeout_ms = 15000\n',
        {"start": 5},
    ),
    "Gemini": (
        ".gemini/settings.json",
        entry(
            "mcpServers", command="x", includeTools=["read(path)"], excludeTools=["mail"], timeout=30000, trust=False
        ),
        {"include": ("read",), "exclude": ("mail",), "call": 30},
    ),
    "Claude": (".mcp.json", entry("mcpServers", command="x", timeout=600000), {"call": 600}),
    "Copilot": (".mcp.json", entry("mcpServers", command="x", tools=["read"]), {"include": ("read",)}),
    "Copilot, all": (".mcp.json", entry("mcpServers", command="x", tools=["*"]), {}),
    "Kiro": (".mcp.json", entry("mcpServers", command="x", disabledTools=["mail"]), {"exclude": ("mail",)}),
    "opencode": ("opencode.json", entry("mcp", type="local", command=["x"], timeout=9000), {"start": 9}),
    "opencode 2": (
        "opencode.jsonc",
        json.dumps(
            {
                "mcp": {
                    "servers": {
                        "a": {"type": "local", "command": ["x"], "timeout": {"startup": 9000, "request": 45000}}
                    }
                }
            }
        ),
        {"start": 9, "call": 45},
    ),
    "Nexus": (
        ".nexus3/mcp.json",
        entry("servers", command="x", include_tools=[], exclude_tools=["b"], start_timeout=0.5, call_timeout=2),
        {"include": (), "exclude": ("b",), "start": 0.5, "call": 2},
    ),
}


@pytest.mark.parametrize("tool", WRITTEN)
def test_choices_of_tools_and_limits_are_understood_as_each_tool_writes_them(make_nexus: MakeNexus, tool: str) -> None:
    file, text, said = WRITTEN[tool]

    config = read(make_nexus, file, text)

    assert {
        "include": config.include_tools,
        "exclude": config.exclude_tools,
        "start": config.start_timeout,
        "call": config.call_timeout,
    } == {"include": None, "exclude": (), "start": None, "call": None} | said


def test_variables_that_are_passed_through_refer_to_themselves_and_need_not_be_set(make_nexus: MakeNexus) -> None:
    codex = '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["ONE", {name = "TWO", source = "local"}]\nenv = {ONE = "1"}\n'

    assert read(make_nexus, ".codex/config.toml", codex).env == {"ONE": "1", "TWO": "${TWO:-}"}
    assert read(
        make_nexus, ".nexus3/mcp.json", entry("servers", command="x", env_passthrough=["ONE"], env={"A": "b"})
    ).env == {"ONE": "${ONE:-}", "A": "b"}


def test_a_server_of_opencode_that_is_only_switched_is_left_out(make_nexus: MakeNexus) -> None:
    text = json.dumps({"mcp": {"elsewhere": {"enabled": False}, "a": {"type": "local", "command": ["x"]}}})

    nexus = make_nexus(files={".nexus3/config.json": json.dumps(ALL), "opencode.json": text})
    loaded = nexus.load()

    assert [server.config.name for server in loaded.servers] == ["a"]
    assert any("'elsewhere' is left out" in skipped.reason for skipped in loaded.skipped)


# ---- what is not done -------------------------------------------------------------------------------------

UNHEEDED = {
    "trust": True,
    "alwaysAllow": ["read"],
    "autoApprove": ["*"],
    "default_tools_approval_mode": "approve",
    "tools": {"read": {"approval_mode": "approve"}},
    "oauth": {"clientSecret": "hunter22"},
    "headersHelper": "./headers.sh",
    "sandboxEnabled": True,
    "required": True,
}


@pytest.mark.acceptance("T1", "T10")
@pytest.mark.parametrize("field", UNHEEDED)
def test_what_would_loosen_something_is_not_obeyed_and_told(cli: Cli, nexus_home: Path, field: str) -> None:
    write_files(nexus_home, {"mcp.json": entry("servers", command="x", **{field: UNHEEDED[field]})})

    outcome = cli("mcp", "list")
    plain = json.loads(cli("mcp", "list", "--json").out)["servers"][0]
    write_files(nexus_home, {"mcp.json": entry("servers", command="x")})

    assert f"{nexus_home}/mcp.json:1: '{field}' of server 'a' has no effect: " in outcome.err
    assert "hunter22" not in outcome.err
    assert plain == json.loads(cli("mcp", "list", "--json").out)["servers"][0]


@pytest.mark.parametrize(
    "said", [{"trust": False}, {"alwaysAllow": []}, {"description": "Reads files."}, {"_why": "ours"}, {"oauth": None}]
)
def test_what_asks_for_nothing_is_not_mentioned(cli: Cli, nexus_home: Path, said: dict[str, object]) -> None:
    write_files(nexus_home, {"mcp.json": entry("servers", command="x", **said)})

    assert cli("mcp", "list").err == ""


@pytest.mark.parametrize("field", ["timeout", "start_timeout", "call_timeout", "startup_timeout_ms"])
@pytest.mark.parametrize("value", [0, -1, 1e30, 10**400])
def test_a_limit_that_is_none_is_told_and_the_usual_one_counts(make_nexus: MakeNexus, field: str, value: float) -> None:
    nexus = make_nexus(files={".nexus3/mcp.json": entry("servers", command="x", **{field: value})})

    loaded = nexus.load()

    assert ServerTimeouts().for_server(loaded.servers[0].config) == ServerTimeouts()
    assert any(f"'{field}' of server 'a' has no effect" in skipped.reason for skipped in loaded.skipped)


def test_seconds_in_the_place_of_milliseconds_are_told(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": entry("servers", command="x", timeout=60)})

    assert "'timeout' of server 'a' has no effect: it is in milliseconds" in cli("mcp", "list").err


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "includeTools": ({"includeTools": "read"}, "'includeTools' of server 'a' must be a list, not text"),
    "a tool": ({"excludeTools": ["x", 7]}, "item 2 in 'excludeTools' of server 'a' must be text, not a number"),
    "timeout": ({"timeout": "30s"}, "'timeout' of server 'a' must be a number, not text"),
    "a limit that is true": (
        {"call_timeout": True},
        "'call_timeout' of server 'a' must be a number, not true or false",
    ),
    "envFile": ({"envFile": {"TOKEN": "hunter22"}}, "'envFile' of server 'a' must be text, not an object"),
    "env_passthrough": ({"env_passthrough": "T"}, "'env_passthrough' of server 'a' must be a list, not text"),
    "two limits": ({"timeout": 5000, "call_timeout": 6}, "'call_timeout' of server 'a' contradicts its 'timeout'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_of_the_wrong_kind_names_file_line_and_field_and_no_value(
    cli: Cli, nexus_home: Path, case: str
) -> None:
    said, message = WRONG[case]
    write_files(nexus_home, {"mcp.json": '{"servers": {\n"a": ' + json.dumps({"command": "x", **said}) + "}}"})

    strict, lenient = cli("mcp", "list"), cli("mcp", "list", "--lenient")

    assert (strict.code, lenient.code) == (3, 0)
    assert "Line 2, Column" in strict.err
    assert message in strict.err
    assert f"{nexus_home}/mcp.json:2: {message}; the server is left out" in lenient.err
    assert "hunter22" not in strict.err + lenient.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServer": {"a": {"command": "x"}}}', "but servers inside it"),
        ('{"mcp": {"servers": {"a": {"command": "x"}}}}', "but servers inside it"),
        ('{"servers": {"a": {"comand": "x"}}}', "but 'comand'; did you mean 'command'?"),
        ('{"servers": {"a": {"httpURL": "x"}}}', "but 'httpURL'; did you mean 'httpUrl'?"),
        ('{"command": "npx", "args": ["x"]}', "Line 1, Column 2: this is one server, and it has no name"),
        ('{"servers": {"a": {"args": ["x"]}}}', "server 'a' has neither 'command' nor 'url'"),
    ],
)
def test_what_is_misspelt_is_told_with_what_was_meant(cli: Cli, nexus_home: Path, text: str, message: str) -> None:
    write_files(nexus_home, {"mcp.json": text})

    outcome = cli("mcp", "list")

    assert outcome.code == 3
    assert message in outcome.err


def test_an_unknown_field_is_told_with_the_nearest(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": entry("servers", command="x", enviroment={"A": "hunter22"})})

    outcome = cli("mcp", "list")

    assert "unknown key 'enviroment' of server 'a'; did you mean 'environment'?" in outcome.err
    assert "hunter22" not in outcome.err


# ---- where it counts --------------------------------------------------------------------------------------

NAMES = ("list", "mail", "read")


def know(make_nexus: MakeNexus, home: Path, **said: object) -> Any:
    define(home, files={"command": script(), **said})
    nexus = make_nexus()
    store_catalog(home, servers_of(nexus)["files"], [ToolDefinition(name, "", {"type": "object"}) for name in NAMES])
    return nexus


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ({}, ["list", "mail", "read"]),
        ({"include_tools": ["read", "list"]}, ["list", "read"]),
        ({"exclude_tools": ["mail"]}, ["list", "read"]),
        ({"include_tools": ["read", "mail"], "exclude_tools": ["mail"]}, ["read"]),
        ({"include_tools": []}, []),
        ({"include_tools": ["Read"]}, []),
    ],
)
def test_models_are_offered_the_chosen_tools_only(
    make_nexus: MakeNexus, nexus_home: Path, said: dict[str, object], offered: list[str]
) -> None:
    nexus = know(make_nexus, nexus_home, **said)

    context = nexus.assemble(nexus.request())

    assert [tool.name.removeprefix("mcp__files__") for tool in context.tools] == offered
    with connect(nexus) as servers:
        assert [name.removeprefix("mcp__files__") for name in servers] == offered


def test_tools_that_are_left_out_are_listed_as_such_and_names_of_none_are_told(
    cli: Cli, make_nexus: MakeNexus, nexus_home: Path
) -> None:
    know(make_nexus, nexus_home, include_tools=["read", "raed"])

    outcome = cli("mcp", "tools", "--json")

    rows = json.loads(outcome.out)["tools"]
    assert [(row["tool"], row["status"]) for row in rows] == [
        ("list", "left out"),
        ("mail", "left out"),
        ("read", "usable"),
    ]
    assert "server 'files' has no tool 'raed'" in outcome.err


@running
def test_the_limits_of_a_server_go_before_the_usual_ones(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(
        nexus_home,
        slow={"command": script(EVIL["never answers"]), "call_timeout": 0.3},
        late={"command": script(EVIL["hangs at the beginning"]), "start_timeout": 0.2},
    )
    nexus = make_nexus()
    for server in servers_of(nexus).values():
        store_catalog(nexus_home, server, [ToolDefinition("echo", "Says it again.", {"type": "object"})])

    with connect(nexus) as servers:
        told = [servers.call(f"mcp__{name}__echo", {}).content for name in ("slow", "late")]

    assert "within 0.3 s" in told[0]
    assert "within 0.2 s" in told[1]
    assert survivors(nexus_home) == []


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize(
    "change", [{"include_tools": ["read", "mail"]}, {"exclude_tools": []}, {"call_timeout": 9}, {"env_file": ".env"}]
)
def test_another_choice_of_tools_or_limit_asks_again(cli: Cli, work: Path, change: dict[str, object]) -> None:
    said: dict[str, object] = {"command": "x", "include_tools": ["read"], "exclude_tools": ["mail"], "call_timeout": 5}
    write_files(work, {".nexus3/mcp.json": entry("servers", **said)})
    assert cli("trust", "allow", "--all", "--yes").code == 0
    before = json.loads(cli("mcp", "list", "--json").out)["servers"][0]["status"]

    write_files(work, {".nexus3/mcp.json": entry("servers", **said | change)})

    assert before == "enabled"
    assert json.loads(cli("mcp", "list", "--json").out)["servers"][0]["status"] == "not approved"


# ---- export -----------------------------------------------------------------------------------------------

WHOLE = {
    "command": ["x", "${MODE:-fast}"],
    "cwd": "sub",
    "env": {
        "ONE": "${ONE}",
        "TWO": "${env:TWO}",
        "ASKED": "${input:key}",
        "WITH": "${WITH:-hunter22}",
        "LIT": "hunter22",
    },
    "env_file": ".env",
    "include_tools": ["read"],
    "exclude_tools": ["mail"],
    "start_timeout": 7.5,
    "call_timeout": 90,
    "enabled": False,
}


def exported(cli: Cli, home: Path, target: str) -> tuple[str, str]:
    write_files(home, {"mcp.json": entry("servers", **WHOLE)})
    outcome = cli("mcp", "export", "--format", target)
    assert outcome.code == 0
    assert "hunter22" not in outcome.out + outcome.err
    return outcome.out, outcome.err


def test_nexus_gets_everything(cli: Cli, nexus_home: Path) -> None:
    out, err = exported(cli, nexus_home, "nexus")

    env = {"ONE": "${ONE}", "TWO": "${TWO}", "ASKED": "${input:key}", "WITH": "${WITH}", "LIT": "${LIT}"}
    assert json.loads(out)["servers"] == [{"name": "a", **WHOLE, "env": env}]
    assert err == "Set these variables where it is used: WITH, LIT.\n"


def test_vs_code_gets_its_own_references_and_what_to_ask_for(cli: Cli, nexus_home: Path) -> None:
    out, err = exported(cli, nexus_home, "vscode")

    document = json.loads(out)
    assert document["inputs"] == [{"type": "promptString", "id": "key", "description": "key", "password": True}]
    server = document["servers"]["a"]
    assert server["env"] == {
        "ONE": "${env:ONE}",
        "TWO": "${env:TWO}",
        "ASKED": "${input:key}",
        "WITH": "${env:WITH}",
        "LIT": "${env:LIT}",
    }
    assert (server["args"], server["envFile"]) == (["${env:MODE}"], ".env")
    assert "VS Code cannot select tools in this file" in err
    assert "VS Code has no 'enabled' in this file: it would start 'a'" in err


def test_claude_gets_its_own_references_and_limit(cli: Cli, nexus_home: Path) -> None:
    out, err = exported(cli, nexus_home, "claude")

    server = json.loads(out)["mcpServers"]["a"]
    assert (server["env"]["TWO"], server["env"]["ASKED"]) == ("${TWO}", "${NEXUS_INPUT_KEY}")
    assert (server["args"], server["timeout"]) == (["${MODE:-fast}"], 90000)
    assert "NEXUS_INPUT_KEY" in err
    assert "Claude Code does not read the variables of 'a' from a file" in err


def test_codex_is_told_what_it_does_not_look_up(cli: Cli, nexus_home: Path) -> None:
    out, err = exported(cli, nexus_home, "codex")

    assert 'enabled_tools = [\n    "read",\n]' in out
    assert "tool_timeout_sec = 90" in out
    assert "Codex does not resolve the references in 'a'" in err
