"""`nexus mcp` from the command line."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from nexus_plugins.mcp._files import EXPORT_TARGETS, FILE_FORMATS
from tests.conftest import ROOT, Cli
from tests.effort import sampled, some
from tests.plugins.mcp.world import EVIL, alive, define, script, survivors
from tests.tables import count

SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - nobody's
SERVERS: dict[str, list[dict[str, Any]]] = {
    "servers": [
        {"name": "files", "command": ["npx", "-y", "files"], "env": {"TOKEN": SECRET, "KEY": "${KEY}"}},
        {
            "name": "web",
            "url": "https://web.example/mcp",
            "headers": {"Authorization": "Bearer ${WEB}", "X-Key": SECRET},
        },
        {"name": "off", "command": ["x"], "enabled": False},
    ]
}
ODD: list[dict[str, Any]] = [
    {"name": "old", "type": "sse", "url": "https://old.example/sse"},
    {
        "name": "odd",
        "command": ["x"],
        "cwd": "sub",
        "env_file": ".env",
        "include_tools": ["a"],
        "exclude_tools": ["b"],
        "start_timeout": 3,
        "call_timeout": 7,
    },
]


def own(home: Path, content: object = SERVERS) -> Path:
    write_files(home, {"mcp.json": json.dumps(content)})
    return home / "mcp.json"


def servers_in(path: Path) -> Any:
    return json.loads(path.read_text())["servers"]


# ---- list -------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("P-11", "T10")
def test_the_list_says_what_there_is_and_shows_no_secret(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home)

    outcome = cli("mcp", "list")

    assert [line.split()[:4] for line in outcome.out.splitlines()] == [
        ["NAME", "TYPE", "ORIGIN", "STATUS"],
        ["files", "stdio", "global", "enabled"],
        ["web", "http", "global", "enabled"],
        ["off", "stdio", "global", "disabled"],
    ]
    assert "npx -y files" in outcome.out
    assert SECRET not in outcome.out + outcome.err + cli("mcp", "list", "--json").out


def test_the_list_for_programs_has_names_of_variables_only(cli: Cli, nexus_home: Path) -> None:
    path = own(nexus_home)

    rows = json.loads(cli("mcp", "list", "--json").out)["servers"]

    assert rows[0] == {
        "name": "files",
        "type": "stdio",
        "origin": "global",
        "status": "enabled",
        "path": str(path),
        "line": 1,
        "what": "npx -y files",
        "env": ["KEY", "TOKEN"],
        "headers": [],
        "include_tools": None,
        "exclude_tools": [],
        "start_timeout": None,
        "call_timeout": None,
        "shadows": None,
        "usable": True,
    }


@pytest.mark.acceptance("T1")
def test_a_server_of_a_project_is_listed_as_not_approved(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "theirs", "command": ["x"]}]}'})

    outcome = cli("mcp", "list")

    assert "not approved" in outcome.out
    assert "nexus trust allow" in outcome.err


@pytest.mark.parametrize("command", ["list", "tools", "test"])
def test_one_bad_server_among_good_ones_is_an_error_unless_one_is_lenient(
    cli: Cli, nexus_home: Path, command: str
) -> None:
    bad = json.dumps({"name": "bad", "command": 7, "env": {"T": SECRET}})
    text = f'{{"servers": [\n{bad},\n{{"name": "off", "command": ["x"], "enabled": false}}]}}'
    (nexus_home / "mcp.json").write_text(text)

    strict, lenient = cli("mcp", command), cli("mcp", command, "--lenient")

    assert (strict.code, lenient.code) == (3, 0)
    assert "'command' of server 'bad' must be a list or text" in strict.err
    assert f"{nexus_home}/mcp.json:2: 'command' of server 'bad'" in lenient.err
    assert SECRET not in strict.err + lenient.err


@pytest.mark.acceptance("T1", "T5")
@pytest.mark.parametrize(
    "command",
    [["list"], ["tools"], ["tools", "--refresh"], ["test"], ["export"], ["test", "theirs"], ["call", "theirs", "x"]],
)
def test_nothing_of_a_project_is_started_without_approval(
    cli: Cli, work: Path, tmp_path: Path, command: list[str]
) -> None:
    canary = tmp_path / "canary"
    write_files(
        work,
        {".nexus3/mcp.json": json.dumps({"servers": [{"name": "theirs", "command": ["/usr/bin/touch", str(canary)]}]})},
    )

    cli("mcp", *command)

    assert not canary.exists()


# ---- add, remove, enable, disable -------------------------------------------------------------------------


def test_a_server_is_added_to_a_new_file_of_the_project(cli: Cli, work: Path) -> None:
    outcome = cli("mcp", "add", "time", "--env", "TZ=${TZ}", "--", "uvx", "mcp-server-time", "--verbose")

    assert (outcome.code, outcome.out.strip()) == (0, f"{work}/.nexus3/mcp.json")
    assert "nexus trust allow" in outcome.err
    assert servers_in(work / ".nexus3/mcp.json") == [
        {"name": "time", "command": ["uvx", "mcp-server-time", "--verbose"], "env": {"TZ": "${TZ}"}}
    ]


def test_a_server_is_added_in_the_shape_that_the_file_has_and_comments_stay(cli: Cli, nexus_home: Path) -> None:
    path = nexus_home / "mcp.json"
    path.write_text('{\n  // ours\n  "mcpServers": {\n    "a": {"command": "x"}\n  }\n}\n')

    cli("mcp", "add", "--global", "web", "--url", "https://web.example", "--header", "A=Bearer ${B}")

    text = path.read_text()
    assert "// ours" in text
    assert '"a": {"command": "x"}' in text
    assert json.loads(text.replace("// ours", ""))["mcpServers"]["web"] == {
        "url": "https://web.example",
        "headers": {"A": "Bearer ${B}"},
    }


def test_a_header_may_be_written_as_it_is_sent(cli: Cli, work: Path) -> None:
    given = ["--header", "Authorization: Bearer ${T}", "--header", "X-Mode=a: b", "--header", "X-Other:c=d"]

    assert cli("mcp", "add", "a", "--url", "https://x.example", *given).code == 0

    assert servers_in(work / ".nexus3/mcp.json")[0]["headers"] == {
        "Authorization": "Bearer ${T}",
        "X-Mode": "a: b",
        "X-Other": "c=d",
    }


def test_a_secret_that_is_written_out_is_warned_about_and_not_repeated(cli: Cli) -> None:
    outcome = cli("mcp", "add", "a", "--env", f"API_TOKEN={SECRET}", "--env", "MODE=fast", "--env", "K=${K}", "--", "x")

    assert [line for line in outcome.err.splitlines() if line.startswith("Warning")] == [
        "Warning: the value of API_TOKEN is written out in the file; a reference such as ${NAME} would keep it out"
    ]
    assert SECRET not in outcome.out + outcome.err


@pytest.mark.parametrize("value", ["Bearer ${DOCS_TOKEN}", "${DOCS_TOKEN}", "token ${env:T}", "Bearer ${T:-}"])
def test_a_reference_is_not_warned_about(cli: Cli, value: str) -> None:
    outcome = cli("mcp", "add", "a", "--url", "https://x.example", "--header", f"Authorization={value}")

    assert (outcome.code, "Warning" in outcome.err) == (0, False)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (["--url", f"https://x.example?api_key={SECRET}"], "a key in its address"),
        (["--", "x", "--token", SECRET], "a key in its command"),
        (["--env", f"API_TOKEN=${{T:-{SECRET}}}", "--", "x"], "the default of API_TOKEN"),
        (["--url", "https://x.example", "--header", f"Authorization=Bearer {SECRET}"], "the value of Authorization"),
    ],
)
def test_whatever_is_written_out_is_warned_about(cli: Cli, given: list[str], what: str) -> None:
    outcome = cli("mcp", "add", "a", *given)

    assert f"Warning: {what} is written out in the file" in outcome.err
    assert SECRET not in outcome.out + outcome.err


def test_an_address_may_speak_the_older_protocol(cli: Cli, work: Path) -> None:
    assert cli("mcp", "add", "a", "--url", "https://x.example/sse", "--type", "sse").code == 0

    assert servers_in(work / ".nexus3/mcp.json") == [{"name": "a", "url": "https://x.example/sse", "type": "sse"}]


def test_a_dry_run_writes_nothing_and_prints_no_value(cli: Cli, work: Path) -> None:
    outcome = cli("mcp", "add", "a", "--env", f"T={SECRET}", "--dry-run", "--", "x")

    assert outcome.code == 0
    assert SECRET not in outcome.out + outcome.err
    assert not (work / ".nexus3").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "a"], "either a command or an address"),
        (["add", "a", "--url", "https://x", "--", "y"], "either a command or an address"),
        (["add", "a", "--env", "TOKEN", "--", "y"], "--env needs NAME=VALUE"),
        (["add", "a", "--url", "https://x", "--header", "oops"], "--header 'Authorization=Bearer ${TOKEN}'"),
        (["add", "a", "--url", "https://x", "--env", "A=b"], "--env and --cwd need a program"),
        (["add", "a", "--header", "A=b", "--", "y"], "--header needs an address"),
        (["add", "a", "https://x/mcp"], "nexus mcp add a --url https://x/mcp"),
        (["add", "a", "--", ""], "either a command or an address"),
        (["add", " ", "--", "x"], "a server needs a name"),
        (["add", "a", "--url", "ftp://x"], "this is not the address of a server"),
        (["add", "a", "--url", "https://"], "this is not the address of a server"),
        (["add", "a", "--url", "https://x y"], "this is not the address of a server"),
        (["add", "a", "--url", "https://x", "--type", "stdio"], "--type must be http or sse"),
        (["add", "a", "--type", "sse", "--", "y"], "--type must be http or sse, and needs --url"),
        (["add", "a", "npx", "-y", "x"], "nexus mcp add NAME -- COMMAND ARGS..."),
        (["add", "a", "--evn", "A=b", "npx"], "--env"),
        (["add", "--global", "files", "--", "y"], "already"),
        (["remove", "filez"], "did you mean 'files'?"),
        (["enable", "offf"], "did you mean 'off'?"),
        (["test", "wep"], "did you mean 'web'?"),
        (["export", "--format", "claud"], "did you mean 'claude'?"),
        (["call", "files", "read", "{a: 1}"], "must be a JSON object; column 2: Expecting property name"),
        (["call", "files", "read", "[1]"], "must be a JSON object\n"),
        (["import", "cloude"], "did you mean 'claude'?"),
    ],
)
def test_what_is_not_acceptable_is_refused_with_advice(
    cli: Cli, nexus_home: Path, arguments: list[str], message: str
) -> None:
    own(nexus_home)

    outcome = cli("mcp", *arguments)

    assert outcome.code == 2
    assert message in outcome.err


def test_a_server_is_switched_off_and_on_and_taken_out(cli: Cli, nexus_home: Path) -> None:
    path = own(nexus_home)

    assert cli("mcp", "disable", "files").code == 0
    assert servers_in(path)[0]["enabled"] is False
    assert cli("mcp", "enable", "files").code == 0
    assert servers_in(path)[0]["enabled"] is True
    assert cli("mcp", "remove", "files").code == 0
    assert [server["name"] for server in servers_in(path)] == ["web", "off"]


def test_a_file_of_another_tool_is_left_to_that_tool(cli: Cli, work: Path) -> None:
    write_files(
        work,
        {
            ".nexus3/config.json": '{"plugins": {"mcp": {"read": ["claude"]}}}',
            ".mcp.json": '{"mcpServers": {"a": {"command": "x"}}}',
        },
    )

    outcome = cli("mcp", "remove", "a")

    assert outcome.code == 3
    assert "this file belongs to Claude Code" in outcome.err


# ---- import, export ---------------------------------------------------------------------------------------


def test_servers_of_another_tool_are_copied_and_references_stay(cli: Cli, work: Path) -> None:
    write_files(work, {".codex/config.toml": '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["TOKEN"]\n'})

    outcome = cli("mcp", "import", "codex")

    assert outcome.code == 0
    assert servers_in(work / ".nexus3/mcp.json") == [{"name": "a", "command": ["x"], "env": {"TOKEN": "${TOKEN:-}"}}]


def test_import_writes_references_instead_of_secrets(cli: Cli, work: Path) -> None:
    env = {"API_TOKEN": SECRET, "OTHER": "${OTHER}", "LEVEL": "debug", "MY_KEY": f"${{MINE:-{SECRET}}}"}
    servers = {
        "a": {"command": "x", "args": ["--token", SECRET, "-v"], "env": env},
        "my-docs": {"url": "https://d.example", "headers": {"Authorization": f"Bearer {SECRET}", "X-Org": "acme"}},
        "maps": {"url": f"https://m.example?api_key={SECRET}"},
    }
    write_files(work, {".mcp.json": json.dumps({"mcpServers": servers})})

    outcome = cli("mcp", "import", "claude")

    written = (work / ".nexus3/mcp.json").read_text()
    assert SECRET not in written + outcome.out + outcome.err
    assert servers_in(work / ".nexus3/mcp.json") == [
        {
            "name": "a",
            "command": ["x", "--token", "${A_ARG_2}", "-v"],
            "env": {"API_TOKEN": "${API_TOKEN}", "OTHER": "${OTHER}", "LEVEL": "debug", "MY_KEY": "${MINE}"},
        },
        {
            "name": "my-docs",
            "url": "https://d.example",
            "headers": {"Authorization": "${MY_DOCS_AUTHORIZATION}", "X-Org": "acme"},
        },
        {"name": "maps", "url": "${MAPS_URL}"},
    ]
    assert "${API_TOKEN} stands for the value of API_TOKEN of server 'a'.\n" in outcome.err
    assert f"Set these variables where it is used; {work}/.mcp.json has their values.\n" in outcome.err


def test_import_gives_two_secrets_two_variables(cli: Cli, work: Path) -> None:
    other = SECRET[::-1]
    servers = {name: {"command": "x", "env": {"API_TOKEN": value}} for name, value in [("a", SECRET), ("b", other)]}
    servers["c"] = servers["a"]
    write_files(work, {".mcp.json": json.dumps({"mcpServers": servers})})

    cli("mcp", "import", "claude")

    tokens = [server["env"]["API_TOKEN"] for server in servers_in(work / ".nexus3/mcp.json")]
    assert tokens == ["${API_TOKEN}", "${B_API_TOKEN}", "${API_TOKEN}"]


def test_an_address_that_is_given_as_a_program_is_suggested_without_its_key(cli: Cli) -> None:
    outcome = cli("mcp", "add", "a", f"https://a.example/mcp?token={SECRET}")

    assert outcome.code == 2
    assert "nexus mcp add a --url https://a.example/mcp?token=***" in outcome.err
    assert SECRET not in outcome.err


def test_one_bad_server_stops_an_import_unless_it_is_lenient(cli: Cli, work: Path) -> None:
    write_files(work, {".mcp.json": '{"mcpServers": {"good": {"command": "x"}, "bad": {"command": 7}}}'})

    strict, lenient = cli("mcp", "import", "claude"), cli("mcp", "import", "claude", "--lenient")

    assert (strict.code, lenient.code) == (3, 0)
    assert "'command' of server 'bad'" in strict.err
    assert "'command' of server 'bad'" in lenient.err
    assert [server["name"] for server in servers_in(work / ".nexus3/mcp.json")] == ["good"]


def test_what_is_there_already_is_not_replaced_by_an_import(cli: Cli, nexus_home: Path, work: Path) -> None:
    path = own(nexus_home)
    write_files(work, {"other.json": '{"mcpServers": {"files": {"command": "y"}, "new": {"command": "z"}}}'})

    outcome = cli("mcp", "import", "--global", "other.json")

    assert "skips 'files', which exists already" in outcome.err
    assert [server["command"] for server in servers_in(path) if "command" in server] == [
        ["npx", "-y", "files"],
        ["x"],
        ["z"],
    ]


def claude_home(work: Path, **more: object) -> Path:
    """What Claude Code keeps for a person."""
    projects = {
        str(work): {"allowedTools": [], "mcpServers": {"here": {"type": "stdio", "command": "x", "args": ["-v"]}}},
        "/elsewhere": {"mcpServers": {"there": {"command": "y"}}},
    }
    everywhere = {"everywhere": {"type": "http", "url": "https://e.example/mcp"}}
    content = {"numStartups": 7, "mcpServers": everywhere, "projects": projects, **more}
    write_files(work.parent, {".claude.json": json.dumps(content)})
    return work.parent / ".claude.json"


def test_what_claude_code_has_for_this_directory_is_copied_for_it(cli: Cli, work: Path) -> None:
    path = claude_home(work)

    outcome = cli("mcp", "import", str(path))

    assert servers_in(work / ".nexus3/mcp.json") == [{"name": "here", "command": ["x", "-v"]}]
    assert outcome.err == "Import adds 'here'.\nServers of a project are started only after `nexus trust allow`.\n"


def test_what_claude_code_has_for_all_projects_is_copied_for_all(cli: Cli, work: Path, nexus_home: Path) -> None:
    path = claude_home(work)

    outcome = cli("mcp", "import", str(path), "--global")

    assert servers_in(nexus_home / "mcp.json") == [{"name": "everywhere", "url": "https://e.example/mcp"}]
    assert outcome.err == "Import adds 'everywhere'.\n"


def test_a_directory_that_claude_code_has_nothing_for_is_told_so(cli: Cli, work: Path) -> None:
    path = claude_home(work, projects={})

    outcome = cli("mcp", "import", str(path))

    assert outcome.code == 0
    assert outcome.err == "There are no servers in it for this directory; --global copies those for all projects.\n"
    assert not (work / ".nexus3/mcp.json").exists()


def test_a_fault_in_what_claude_code_keeps_has_its_place_and_shows_no_secret(cli: Cli, work: Path) -> None:
    path = work.parent / ".claude.json"
    servers = f'{{\n"bad": {{"command": 7, "env": {{"T": "{SECRET}"}}}}}}'
    path.write_text(f'{{"projects": {{"{work}": {{"mcpServers": {servers}}}}}}}')

    outcome = cli("mcp", "import", str(path))

    assert outcome.code == 3
    assert "Line 2, Column 9: 'command' of server 'bad' must be a list or text" in outcome.err
    assert SECRET not in outcome.err


@pytest.mark.parametrize("projects", [7, [], {"x": 7}, None])
def test_projects_of_claude_code_that_are_none_have_no_servers(cli: Cli, work: Path, projects: object) -> None:
    path = claude_home(work, projects={str(work): 7, **projects} if isinstance(projects, dict) else projects)

    assert cli("mcp", "import", str(path)).code in {0, 3}
    assert not (work / ".nexus3/mcp.json").exists()


def test_much_else_in_what_claude_code_keeps_does_no_harm(cli: Cli, work: Path) -> None:
    path = claude_home(work, history=["x" * 1_000] * 2_000)

    assert cli("mcp", "import", str(path)).code == 0
    assert servers_in(work / ".nexus3/mcp.json") == [{"name": "here", "command": ["x", "-v"]}]


@pytest.mark.parametrize("target", EXPORT_TARGETS)
def test_an_export_has_references_in_the_place_of_secrets(cli: Cli, nexus_home: Path, target: str) -> None:
    own(nexus_home)

    outcome = cli("mcp", "export", "--format", target)

    assert outcome.code == 0
    assert SECRET not in outcome.out
    assert "TOKEN" in outcome.err


def test_a_variable_that_need_not_be_set_need_not_be_set_elsewhere(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home, {"servers": [{"name": "a", "command": ["x"], "env": {"A": "${MODE:-}"}}]})

    outcome = cli("mcp", "export", "--format", "claude")

    assert json.loads(outcome.out)["mcpServers"]["a"]["env"] == {"A": "${MODE:-}"}
    assert outcome.err == ""


def test_claude_desktop_gets_programs_only_and_is_said_to_resolve_no_references(cli: Cli, nexus_home: Path) -> None:
    local = {"name": "local", "command": ["run", "-v"], "cwd": "/srv", "env": {"KEY": "${KEY}"}}
    own(nexus_home, {"servers": [local, {"name": "web", "url": "https://web.example/mcp"}]})

    outcome = cli("mcp", "export", "--format", "claude-desktop")

    entry = {"command": "run", "args": ["-v"], "env": {"KEY": "${KEY}"}}
    assert json.loads(outcome.out) == {"mcpServers": {"local": entry}}
    assert "Claude Desktop does not resolve the references in 'local'" in outcome.err
    assert "Claude Desktop has no 'cwd' in this file" in outcome.err
    assert "add 'web' as a connector in its settings" in outcome.err


def test_claude_is_told_apart_by_the_places_that_it_does_not_look_up(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home, {"servers": [{"name": "a", "command": ["${userHome}/x", "${workspaceFolder}"]}]})

    err = cli("mcp", "export", "--format", "claude").err

    assert "Claude Code does not resolve ${userHome}, ${workspaceFolder} in 'a'" in err


def test_a_key_in_a_command_or_an_address_is_neither_listed_nor_exported(cli: Cli, nexus_home: Path) -> None:
    key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    servers = [
        {"name": "a", "command": ["x", f"--token={key}"]},
        {"name": "b", "url": "https://me:hunter22@b.example/"},
    ]
    own(nexus_home, {"servers": servers})

    printed = "".join(cli("mcp", *words).out for words in (["list"], ["list", "--json"], ["export"]))

    assert key not in printed
    assert "hunter22" not in printed
    assert json.loads(cli("mcp", "export").out)["servers"][0]["command"] == ["x", "${A_ARG_1}"]


def test_codex_gets_its_own_words(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home)

    exported = tomllib.loads(cli("mcp", "export", "--format", "codex").out)["mcp_servers"]

    assert exported["files"] == {"command": "npx", "args": ["-y", "files"], "env_vars": ["TOKEN", "KEY"]}
    assert exported["web"] == {
        "url": "https://web.example/mcp",
        "bearer_token_env_var": "WEB",
        "env_http_headers": {"X-Key": "WEB_X_KEY"},
    }
    assert exported["off"]["enabled"] is False


def test_gemini_gets_its_own_words(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home, {"servers": [*SERVERS["servers"], *ODD]})

    exported = json.loads(cli("mcp", "export", "--format", "gemini").out)

    assert exported["mcpServers"]["files"] == {
        "command": "npx",
        "args": ["-y", "files"],
        "env": {"TOKEN": "${TOKEN}", "KEY": "${KEY}"},
    }
    assert exported["mcpServers"]["web"]["httpUrl"] == "https://web.example/mcp"
    assert exported["mcpServers"]["old"] == {"url": "https://old.example/sse"}
    assert exported["mcpServers"]["odd"] == {
        "command": "x",
        "args": [],
        "cwd": "sub",
        "includeTools": ["a"],
        "excludeTools": ["b"],
        "timeout": 7000,
    }
    assert exported["mcp"] == {"excluded": ["off"]}


def test_cursor_gets_its_own_words(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home, {"servers": [*SERVERS["servers"], *ODD]})

    exported = json.loads(cli("mcp", "export", "--format", "cursor").out)["mcpServers"]

    assert exported["files"]["env"] == {"TOKEN": "${env:TOKEN}", "KEY": "${env:KEY}"}
    assert exported["web"] == {
        "url": "https://web.example/mcp",
        "headers": {"Authorization": "Bearer ${env:WEB}", "X-Key": "${env:WEB_X_KEY}"},
    }
    assert exported["odd"] == {"command": "x", "args": [], "envFile": ".env"}


def test_opencode_gets_its_own_words(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home, {"servers": [*SERVERS["servers"], *ODD]})

    exported = json.loads(cli("mcp", "export", "--format", "opencode").out)["mcp"]

    assert exported["files"] == {
        "type": "local",
        "command": ["npx", "-y", "files"],
        "environment": {"TOKEN": "{env:TOKEN}", "KEY": "{env:KEY}"},
    }
    assert exported["web"]["headers"] == {"Authorization": "Bearer {env:WEB}", "X-Key": "{env:WEB_X_KEY}"}
    assert exported["old"] == {"type": "remote", "url": "https://old.example/sse"}
    assert exported["off"] == {"type": "local", "command": ["x"], "enabled": False}
    # A key that it does not know would make it refuse the whole file.
    assert exported["odd"] == {"type": "local", "command": ["x"], "timeout": 3000}


LOSSES = {
    "cursor": [
        "Cursor has no 'enabled' in this file: it would start 'off'",
        "Cursor cannot select tools in this file: it would offer all of 'odd'",
        "Cursor has its own timeouts for 'odd'",
        "Cursor has no 'cwd' in this file: it would start 'odd' where it runs itself",
    ],
    "gemini": [
        "Gemini CLI has its own timeouts for 'odd'",
        "Gemini CLI does not read the variables of 'odd' from a file",
    ],
    "opencode": [
        "opencode cannot select tools in this file: it would offer all of 'odd'",
        "opencode has its own timeouts for 'odd'",
        "opencode does not read the variables of 'odd' from a file",
        "opencode has no 'cwd' in this file: it would start 'odd' where it runs itself",
    ],
}


@pytest.mark.parametrize("target", LOSSES)
def test_what_another_tool_does_not_know_is_told(cli: Cli, nexus_home: Path, target: str) -> None:
    own(nexus_home, {"servers": [*SERVERS["servers"], *ODD]})

    err = cli("mcp", "export", "--format", target).err

    assert [line.removeprefix("Warning: ") for line in err.splitlines() if "Warning" in line] == LOSSES[target]


@pytest.mark.parametrize(
    ("target", "word", "told"),
    [
        ("cursor", "${userHome}/${HOME_DIR:-x}", "Cursor does not support defaults"),
        ("cursor", "${workspaceRoot}", "Cursor does not resolve ${workspaceRoot} in 'a'"),
        ("gemini", "${workspaceFolder}", "Gemini CLI does not resolve ${workspaceFolder} in 'a'"),
        ("gemini", "cost$USD", "Gemini CLI would resolve $USD in 'a', which is plain text in Nexus"),
        ("opencode", "${workspaceFolder}", "opencode does not resolve ${workspaceFolder} in 'a'"),
        ("opencode", "{env:X}", "opencode would resolve {env:X} in 'a', which is plain text in Nexus"),
    ],
)
def test_a_word_that_another_tool_reads_otherwise_is_told(
    cli: Cli, nexus_home: Path, target: str, word: str, told: str
) -> None:
    own(nexus_home, {"servers": [{"name": "a", "command": ["x", word]}]})

    assert told in cli("mcp", "export", "--format", target).err


@pytest.mark.parametrize("target", FILE_FORMATS)
def test_what_was_exported_is_imported_again_as_it_was(cli: Cli, nexus_home: Path, work: Path, target: str) -> None:
    kept = SERVERS["servers"] if target != "cursor" else SERVERS["servers"][:2]  # it would start what is off
    own(nexus_home, {"servers": kept})
    before = cli("mcp", "export", "--format", "nexus").out
    write_files(work, {FILE_FORMATS[target].files[0]: cli("mcp", "export", "--format", target).out})
    own(nexus_home, {"servers": []})

    assert cli("mcp", "import", "--global", target).code == 0

    again = cli("mcp", "export", "--format", "nexus").out
    again = again.replace(":-}", "}").replace("${env:", "${")  # Codex starts it without a variable, too
    assert json.loads(again) == json.loads(before)


# ---- servers that run -------------------------------------------------------------------------------------

running = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")


@running
def test_servers_are_tried_all_at_once_and_a_broken_one_is_told_apart(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, good=script(), broken=["/no/such/program"])

    outcome = cli("mcp", "test", "--json")

    rows = json.loads(outcome.out)["servers"]
    assert outcome.code == 1
    assert [(row["name"], row["ok"], row["tools"]) for row in rows] == [("good", True, 1), ("broken", False, 0)]
    assert "cannot be started" in rows[1]["error"]


def test_servers_that_are_not_tried_are_named(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, good=script(), off={"command": ["x"], "enabled": False})

    outcome = cli("mcp", "test")

    assert outcome.code == 0
    assert outcome.err == "Not started: off, disabled\n"


def test_a_server_that_waits_for_approval_is_not_tested_which_the_exit_code_says(cli: Cli, work: Path) -> None:
    define(work / ".nexus3", theirs=script())

    outcome, facts = cli("mcp", "test"), cli("mcp", "test", "--json")

    assert (outcome.code, facts.code, json.loads(facts.out)["servers"]) == (1, 1, [])
    assert outcome.err.startswith("Not started: theirs, not approved; `nexus trust allow` shows what it would do")


def test_a_server_that_has_changed_since_it_was_allowed_is_said_to_have(cli: Cli, work: Path) -> None:
    define(work / ".nexus3", theirs=script())
    assert cli("trust", "allow", "--all", "--yes").code == 0
    define(work / ".nexus3", theirs=[*script(), "--other"])

    outcome = cli("mcp", "test")

    assert outcome.code == 1
    assert outcome.err.startswith("Not started: theirs, changed since you allowed it; `nexus trust diff` shows how")


def test_servers_whose_tools_are_not_listed_because_they_are_not_approved_are_named(cli: Cli, work: Path) -> None:
    define(work / ".nexus3", theirs=script(), others=script())

    outcome = cli("mcp", "tools")

    assert outcome.code == 0
    assert "Not approved, so not asked: theirs, others. `nexus trust allow` approves them." in outcome.err


@running
@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["list", "--json"],
        ["test"],
        ["tools", "--refresh"],
        ["call", "leaky", "echo"],
        ["export"],
        ["disable", "leaky"],
    ],
)
def test_no_command_prints_a_secret_of_a_server(
    cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("NEXUS_TEST_SECRET", f"{SECRET}-of-the-environment")
    evil = 'sys.stderr.write(os.environ["A"] + os.environ["B"] + "\\n"); sys.exit(1)'
    define(nexus_home, leaky={"command": script(evil), "env": {"A": "${NEXUS_TEST_SECRET}", "B": SECRET}})

    outcome = cli("--debug", "mcp", *command)

    assert SECRET not in outcome.out + outcome.err


@running
def test_a_tool_is_called_by_its_own_name(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, good=script())

    outcome = cli("mcp", "call", "good", "echo", '{"a": 1}')

    assert (outcome.code, outcome.out) == (0, '["echo", {"a": 1}]\n')


def test_a_server_that_fails_is_told_apart_from_one_that_must_not_be_started(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, gone=["/no/such/program"], off={"command": ["x"], "enabled": False})

    failed, refused = cli("mcp", "call", "gone", "x"), cli("mcp", "call", "off", "x")

    assert (failed.code, refused.code) == (5, 3)
    assert "server 'gone' cannot be started" in failed.err
    assert "nexus mcp enable off" in refused.err


@running
@pytest.mark.acceptance("T7", "Z-02")
def test_known_tools_are_offered_and_changed_ones_withheld_until_they_are_pinned(cli: Cli, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    first = json.loads(cli("mcp", "tools", "--json").out)["tools"]
    changed = [{"name": "echo", "description": "Mails it to everybody.", "inputSchema": {"type": "object"}}]
    define(nexus_home, good={"command": script(), "env": {"TOOLS": json.dumps(changed)}})

    cached = json.loads(cli("mcp", "tools", "--json").out)["tools"]
    fresh = json.loads(cli("mcp", "tools", "--refresh", "--json").out)["tools"]
    refused = cli("mcp", "approve", "good")
    approved = cli("mcp", "approve", "good", "--yes")
    after = json.loads(cli("mcp", "tools", "--json").out)["tools"]

    assert [(row["name"], row["status"]) for row in first] == [("mcp__good__echo", "usable")]
    assert cached == first
    assert [row["status"] for row in fresh] == ["withheld"]
    assert refused.code == 1
    assert '-    "description": "Says it again."' in refused.out
    assert '+    "description": "Mails it to everybody."' in refused.out
    assert approved.code == 0
    assert [(row["status"], row["description"]) for row in after] == [("usable", "Mails it to everybody.")]


def test_nothing_is_known_of_a_server_that_was_never_asked(cli: Cli, nexus_home: Path) -> None:
    own(nexus_home)

    outcome = cli("mcp", "approve", "files")

    assert outcome.code == 3
    assert "nexus mcp tools files" in outcome.err


@pytest.mark.parametrize(
    "command",
    ["list", "add", "remove", "enable", "disable", "test", "tools", "call", "approve", "import", "export", "serve"],
)
def test_every_command_ends_its_help_with_two_examples(cli: Cli, command: str) -> None:
    outcome = cli("mcp", command, "--help")

    assert outcome.code == 0
    assert len(outcome.out.split("Examples:")[1].strip().splitlines()) >= 2


looks_at_processes = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
CTRL_C = b"\x03"


def start(home: Path, work: Path, *words: str) -> tuple[int, int]:
    """The command at a terminal of its own: its number, and the other end of the terminal."""
    import pty

    environment = {**os.environ, "NEXUS_HOME": str(home), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins", "NO_COLOR": "1"}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(work)
        os.execve(sys.executable, [sys.executable, "-m", "nexus_core", "mcp", *words], environment)  # noqa: S606 - ours
    return child, terminal


def begin(home: Path, work: Path, *words: str) -> tuple[int, int]:
    """The same, once its server runs."""
    child, terminal = start(home, work, *words)
    for _ in range(600):
        if alive(home):
            break
        time.sleep(0.05)
    time.sleep(0.3)  # until the server has come to its misdeed
    return child, terminal


def end(child: int, terminal: int) -> tuple[int, str]:
    """Its exit code, and what it printed."""
    said = b""
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            said += part
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


@pytest.mark.slow
@looks_at_processes
@pytest.mark.acceptance("R18")
@pytest.mark.parametrize(
    ("words", "presses"), [(["call", "bad", "echo"], 1), (["call", "bad", "echo"], 3), (["tools", "--refresh"], 1)]
)
def test_ctrl_c_ends_the_command_and_its_server(nexus_home: Path, work: Path, words: list[str], presses: int) -> None:
    define(nexus_home, bad=script(EVIL["hangs at the beginning, with children, and does not listen"]))
    child, terminal = begin(nexus_home, work, *words)

    for _ in range(presses):
        os.write(terminal, CTRL_C)
        time.sleep(0.05)
    code, said = end(child, terminal)

    assert code == 130
    assert said.replace("^C", "").strip() == "Error: interrupted"
    assert survivors(nexus_home) == []


@pytest.mark.slow
@looks_at_processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_end_ends_its_server_first(nexus_home: Path, work: Path, number: signal.Signals) -> None:
    define(nexus_home, bad=script(EVIL["hangs at the beginning, with children, and does not listen"]))
    child, terminal = begin(nexus_home, work, "call", "bad", "echo")

    os.kill(child, number)
    code, said = end(child, terminal)

    assert (code, said) == (128 + number, "")
    assert survivors(nexus_home) == []


@pytest.mark.slow
@looks_at_processes
def test_who_serves_at_a_terminal_is_told_what_is_waited_for(nexus_home: Path, work: Path) -> None:
    child, terminal = start(nexus_home, work, "serve")
    told = b""
    while b"\n" not in told:
        told += os.read(terminal, 4096)
    time.sleep(0.3)  # until it waits
    os.write(terminal, CTRL_C)
    code, said = end(child, terminal)

    assert told.decode().strip() == "Waiting for an MCP client on standard input; press Ctrl-C to stop."
    assert code == 130
    assert said.replace("^C", "").strip() == "Error: interrupted"


HEX, WORD = "0123456789abcdef", "Zq7Xw2Vt9Rk4Mn8Bp3Ls6Dj1Hg5Fc0Ya"
KINDS = {
    "anthropic": f"sk-ant-api03-{WORD}",
    "openai": f"sk-proj-{WORD}",
    "openai, old": f"sk-{WORD}",
    "google": f"AIza{WORD}abc",
    "github": f"ghp_{WORD}abcd",
    "github, fine": f"github_pat_{WORD}",
    "gitlab": f"glpat-{WORD[:20]}",
    "slack": f"xoxb-123456789012-{WORD}",
    "stripe": f"sk_live_{WORD}",
    "npm": f"npm_{WORD}abcd",
    "pypi": f"pypi-{WORD}{WORD}",
    "hugging face": f"hf_{WORD}",
    "groq": f"gsk_{WORD}{WORD[:16]}",
    "aws": f"AKIA{WORD[:16].upper()}",
    "aws, secret": f"{WORD[:20]}/{WORD[:19]}",
    "jwt": f"eyJ{WORD}.eyJ{WORD}.{WORD}",
    "uuid": "5f0c1b7e-93d2-4c1a-8e64-7b1f0a9d2c35",
    "hexadecimal": HEX * 3,
    "password": "hunter2-correct-horse",
    "storage": f"{WORD}{WORD}==",
}
FORMS = ("--token {}", "--api-key={}", "-e SERVICE_TOKEN={}", "--header|Authorization: Bearer {}", "--password {}")
"""How secrets are given to programs; `|` separates the words of one that has blanks in it."""


def planted(kind: str, place: str) -> str:
    """The secret of a kind in a place: another one for each, and of the same form."""
    digit = ("env", "header", "url", "args").index(place)
    secret = KINDS[kind]
    return f"{secret[:-1]}{digit if kind != 'aws' else 'QRST'[digit]}"


PLACES = ("env", "header", "url", "args")
SECRETS = [planted(kind, place) for kind in KINDS for place in PLACES]


def arguments(number: int, kind: str) -> list[str]:
    form = FORMS[number % len(FORMS)]
    return [word.format(planted(kind, "args")) for word in (form.split("|") if "|" in form else form.split())]


def definitions(program: list[str]) -> list[dict[str, Any]]:
    """For every kind, a server with a command and one with an address."""
    servers: list[dict[str, Any]] = []
    for number, kind in enumerate(KINDS):
        command = [*program, *arguments(number, kind)]
        servers.append({"name": f"run-{number}", "command": command, "env": {"VALUE": planted(kind, "env")}})
        url = f"http://me:{planted(kind, 'url').replace('/', '%2F')}@127.0.0.1:9/mcp"
        headers = {"Authorization": f"Bearer {planted(kind, 'header')}"}
        servers.append({"name": f"go-{number}", "url": url, "headers": headers})
    return servers


def leaked(*texts: str) -> list[str]:
    """The secrets in what was printed, also in the way in which an address or JSON would have them."""
    whole = "\n".join(texts)
    return [each for each in SECRETS if each in whole or each.replace("/", "%2F") in whole]


QUIET = [
    "mcp list",
    "mcp list --json",
    "mcp tools --json no-such",
    "mcp approve run-0",
    "mcp export",
    "mcp export --format claude",
    "mcp export --format vscode",
    "mcp export --format codex",
    "mcp export --format cursor",
    "mcp export --format gemini",
    "mcp export --format opencode",
    "mcp export --format claude-desktop",
    "mcp disable run-0 --dry-run",
    "mcp enable run-1",
    "mcp disable go-1",
    "mcp remove go-2",
    "mcp import other.json --dry-run",
    "mcp import --force other.json",
    "mcp call run-0 x {",
    "show",
    "show --json",
    "show --require-trusted",
    "trust status",
    "trust status --json",
    "status",
    "status --json",
    "doctor --json",
    "layers --json",
    "context --json",
    "assemble --json",
    "config show",
    "config show --json",
    "config get mcp_servers",
    "config explain mcp_servers",
    "explain mcp_servers",
]
"""Commands that start nothing."""


def print_numbers(capsys: pytest.CaptureFixture[str], what: str, found: list[str]) -> None:
    count(len(set(SECRETS)))
    with capsys.disabled():
        print(f"\nT10: {what}: {len(set(SECRETS))} secrets tried, {len(found)} printed")  # noqa: T201 - asked for


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("whose", sampled(["a project's", "the user's"], one_in=2))
def test_none_of_at_least_sixty_secrets_is_printed(
    cli: Cli, nexus_home: Path, work: Path, capsys: pytest.CaptureFixture[str], whose: str
) -> None:
    document = json.dumps({"servers": definitions(["server"])})
    write_files(nexus_home if whose == "the user's" else work / ".nexus3", {"mcp.json": document})
    write_files(work, {"other.json": document})

    found: dict[str, list[str]] = {}
    commands = some(QUIET)
    for command in commands:
        outcome = cli("--debug", *command.split())
        if secrets := leaked(outcome.out, outcome.err):
            found[command] = secrets

    print_numbers(
        capsys, f"{whose} servers, {len(commands)} commands", [each for these in found.values() for each in these]
    )
    assert len(set(SECRETS)) >= 60
    assert found == {}


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "broken",
    [
        '{"servers": [@] oops}',
        '{"servers": [@, 7]}',
        '{"servers": [@, {"name": "a", "command": 7}]}',
        '{"servers": [@, {"name": "a"}]}',
        '{"servers": [@, @]}',
        '{"servers": {"a": [@]}}',
        '{"servers": "@"}',
        '{"servers": [@], "more": [@]}',
        "[@]",
        '{"a": {"b": [@]}}',
    ],
)
def test_no_error_about_a_broken_file_prints_one(cli: Cli, nexus_home: Path, broken: str) -> None:
    servers = json.dumps(definitions(["server"]))[1:-1]
    write_files(nexus_home, {"mcp.json": broken.replace("@", servers)})

    printed = [cli("--debug", *command.split()) for command in ("mcp list", "mcp list --lenient", "show", "doctor")]

    assert any(outcome.code == 3 for outcome in printed) or "more" in broken
    assert leaked(*(outcome.out + outcome.err for outcome in printed)) == []


@pytest.mark.acceptance("T10")
def test_a_defect_of_nexus_prints_none_in_its_traceback(
    cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(nexus_home, {"mcp.json": json.dumps({"servers": definitions(["server"])})})

    def fail(server: dict[str, Any]) -> str:
        raise RuntimeError(f"{len(server)} fields")

    monkeypatch.setattr("nexus_plugins.mcp._cli.describe_server", fail)
    outcome = cli("--debug", "mcp", "list")

    assert "RuntimeError" in outcome.err
    assert leaked(outcome.out, outcome.err) == []


LEAKY = """
for word in [*sys.argv[1:], os.environ["VALUE"]]: sys.stderr.write(word + "\\n")
sys.stderr.flush(); sys.exit(1)
"""


@running
@pytest.mark.slow
@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("command", ["mcp test", "mcp test --json", "mcp tools --refresh"])
def test_servers_that_shout_their_secrets_are_not_repeated(
    cli: Cli, nexus_home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    write_files(nexus_home, {"mcp.json": json.dumps({"servers": definitions(script(LEAKY))})})

    outcome = cli("--debug", *command.split())

    found = leaked(outcome.out, outcome.err)
    print_numbers(capsys, command, found)
    assert "run-0" in outcome.out + outcome.err
    assert found == []


@running
@pytest.mark.acceptance("T10")
def test_a_server_that_shouts_its_secrets_is_not_repeated(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"mcp.json": json.dumps({"servers": definitions(script(LEAKY))[:4]})})

    outcomes = [cli("--debug", "mcp", "test", "run-0", "go-0"), cli("--debug", "mcp", "call", "run-1", "x")]

    assert [outcome.code for outcome in outcomes] == [1, 5]
    assert "it says:" in outcomes[1].err
    assert leaked(*(outcome.out + outcome.err for outcome in outcomes)) == []
