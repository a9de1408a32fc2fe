import json
import os
import pty
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from tests.cli.conftest import Answer
from tests.conftest import Cli, Outcome

TOKEN = "ghp_planted0in0env"  # noqa: S105 - planted, to be looked for
BEARER = "planted-in-headers"

GITHUB: dict[str, object] = {
    "name": "github",
    "command": ["npx", "-y", "server-github"],
    "env": {"GITHUB_TOKEN": TOKEN},
}
REMOTE: dict[str, object] = {
    "name": "remote",
    "url": "https://mcp.example.com/v1",
    "headers": {"Authorization": BEARER},
}


class Servers(list[dict[str, object]]):
    """The servers of a project, each on a line of its mcp.json, the first on the third."""

    def __init__(self, path: Path) -> None:
        super().__init__([GITHUB, REMOTE])
        self._path = path
        self._write()

    def __setitem__(self, place: Any, value: Any) -> None:
        super().__setitem__(place, value)
        self._write()

    def _write(self) -> None:
        lines = ",\n".join(map(json.dumps, self))
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(f'{{\n"servers": [\n{lines}\n]}}\n')


@pytest.fixture
def servers(work: Path) -> Servers:
    """The servers of the project; whoever sets one of them changes its mcp.json."""
    return Servers(work / ".nexus3/mcp.json")


def decisions(cli: Cli) -> dict[str, str]:
    parts = json.loads(cli("trust", "status", "--json").out)["parts"]
    return {part["pointer"].rpartition("/")[2]: part["decision"] for part in parts}


# ---- status -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("servers")
def test_the_status_says_what_each_setting_would_do_and_where_it_stands(cli: Cli, work: Path) -> None:
    outcome = cli("trust", "status")

    heading, github, remote = outcome.out.splitlines()
    assert outcome.code == 0
    assert heading.split() == ["DECISION", "SETTING", "WHERE", "WOULD"]
    assert github.split(maxsplit=3) == [
        "pending",
        "/mcp_servers/github",
        f"{work}/.nexus3/mcp.json:3",
        "run npx -y server-github; environment: GITHUB_TOKEN",
    ]
    assert remote.endswith("connect to https://mcp.example.com/v1; headers: Authorization")


@pytest.mark.usefixtures("servers")
def test_the_status_as_json(cli: Cli, work: Path) -> None:
    outcome = cli("trust", "status", "--json")

    assert json.loads(outcome.out)["schema"] == 1
    assert json.loads(outcome.out)["parts"][1] == {
        "decision": "pending",
        "pointer": "/mcp_servers/remote",
        "layer": "local",
        "path": f"{work}/.nexus3/mcp.json",
        "line": 4,
        "enabled": True,
        "summary": "https://mcp.example.com/v1; headers: Authorization",
    }


def test_a_project_without_active_settings_has_nothing_to_approve(cli: Cli, servers: Servers) -> None:
    servers[:] = []

    outcome = cli("trust", "status")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "No setting here needs your approval.\n"


@pytest.mark.usefixtures("servers")
def test_a_store_that_cannot_be_used_is_said_and_trusts_nothing(cli: Cli, nexus_home: Path) -> None:
    cli("trust", "allow", "--all", "--yes")
    (nexus_home / "trust.json").chmod(0o666)

    outcome = cli("trust", "status")

    assert outcome.code == 0
    assert outcome.out.count("pending") == 2
    assert f"other users may write to the trust store ({nexus_home}/trust.json); nothing is trusted" in outcome.err


# ---- allow ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("servers")
def test_on_a_terminal_each_setting_is_shown_and_asked_about(cli: Cli, answer: Answer, work: Path) -> None:
    answer("y\nn\n")

    outcome = cli("trust", "allow")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines() == [
        f"/mcp_servers/github in {work}/.nexus3/mcp.json:3",
        "  This would run: npx -y server-github; environment: GITHUB_TOKEN",
        "  Allow it? [y/N]",
        "Allowed /mcp_servers/github.",
        f"/mcp_servers/remote in {work}/.nexus3/mcp.json:4",
        "  This would connect to: https://mcp.example.com/v1; headers: Authorization",
        "  Allow it? [y/N]",
        "Left /mcp_servers/remote as it was.",
    ]
    assert decisions(cli) == {"github": "allowed", "remote": "pending"}


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("text", ["", "\n", "n\n", "x\n", "no\n", "yolo\n"])
def test_anything_but_yes_is_no(cli: Cli, answer: Answer, text: str) -> None:
    answer(text)

    cli("trust", "allow", "mcp_servers/github")

    assert decisions(cli)["github"] == "pending"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("arguments", [[], ["--all"], ["mcp_servers/github"]])
def test_without_a_terminal_and_a_clear_word_nothing_is_allowed(cli: Cli, arguments: list[str]) -> None:
    outcome = cli("trust", "allow", *arguments)

    assert (outcome.code, outcome.out) == (2, "")
    assert "no terminal to ask on" in outcome.err
    assert decisions(cli) == {"github": "pending", "remote": "pending"}


@pytest.mark.usefixtures("servers")
def test_yes_without_names_lists_everything_that_waits_and_allows_it(cli: Cli) -> None:
    outcome = cli("trust", "allow", "--yes")

    listed, _, allowed = outcome.err.partition("Allowed ")
    assert (outcome.code, decisions(cli)) == (0, {"github": "allowed", "remote": "allowed"})
    assert all(name in listed for name in ("/mcp_servers/github", "/mcp_servers/remote"))
    assert "/mcp_servers/remote" in allowed


@pytest.mark.usefixtures("servers")
def test_yes_without_names_leaves_what_was_denied(cli: Cli) -> None:
    cli("trust", "deny", "github")

    cli("trust", "allow", "--yes")

    assert decisions(cli) == {"github": "denied", "remote": "allowed"}


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("pointer", ["github", "mcp_servers/github", "/mcp_servers/github"])
def test_a_named_setting_is_shown_and_allowed_without_asking(cli: Cli, pointer: str) -> None:
    outcome = cli("trust", "allow", pointer, "--yes")

    assert outcome.code == 0
    assert "This would run: npx -y server-github; environment: GITHUB_TOKEN" in outcome.err
    assert decisions(cli) == {"github": "allowed", "remote": "pending"}


@pytest.mark.usefixtures("servers")
def test_all_allows_what_is_undecided_and_leaves_what_was_denied(cli: Cli) -> None:
    cli("trust", "deny", "mcp_servers/remote")

    cli("trust", "allow", "--all", "--yes")

    assert decisions(cli) == {"github": "allowed", "remote": "denied"}


@pytest.mark.usefixtures("servers")
def test_a_denied_setting_can_be_allowed_by_name(cli: Cli) -> None:
    cli("trust", "deny", "--all")

    outcome = cli("trust", "allow", "mcp_servers/remote", "--yes")

    assert "You denied it before." in outcome.err
    assert decisions(cli) == {"github": "denied", "remote": "allowed"}


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("arguments", "words"), [(["--all"], "Nothing to allow."), (["mcp_servers/github"], "Already allowed.")]
)
def test_nothing_to_do_is_said(cli: Cli, arguments: list[str], words: str) -> None:
    cli("trust", "allow", "--all", "--yes")

    outcome = cli("trust", "allow", *arguments)

    assert (outcome.code, outcome.err) == (0, f"{words}\n")


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("command", [["allow", "--yes"], ["deny"], ["diff"]])
@pytest.mark.parametrize(("name", "nearest"), [("mcp_servers/githb", "/mcp_servers/github"), ("githb", "github")])
def test_an_unknown_setting_suggests_the_nearest(cli: Cli, command: list[str], name: str, nearest: str) -> None:
    outcome = cli("trust", *command, name)

    assert outcome.code == 2
    assert outcome.err == f"Error: unknown active setting {name!r}\n  did you mean {nearest!r}?\n"


def test_a_pointer_goes_before_a_server_that_has_it_for_its_name(cli: Cli, servers: Servers) -> None:
    servers[:] = [{"name": "mcp_servers/github", "command": ["evil"]}, GITHUB]

    cli("trust", "allow", "mcp_servers/github", "--yes")

    assert decisions(cli) == {"mcp_servers~1github": "pending", "github": "allowed"}


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("command", ["allow", "deny"])
def test_a_dry_run_says_what_it_would_decide_and_decides_nothing(cli: Cli, nexus_home: Path, command: str) -> None:
    outcome = cli("trust", command, "--all", "--dry-run")

    assert outcome.code == 0
    assert "/mcp_servers/github" in outcome.err
    assert decisions(cli) == {"github": "pending", "remote": "pending"}
    assert not (nexus_home / "trust.json").exists()


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("command", ["allow", "deny"])
def test_names_and_all_contradict_each_other(cli: Cli, command: str) -> None:
    outcome = cli("trust", command, "mcp_servers/github", "--all")

    assert outcome.code == 2
    assert decisions(cli)["github"] == "pending"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("command", [["allow", "--all", "--yes"], ["deny", "--all"]])
def test_a_store_that_cannot_be_used_stops_before_anything_is_asked(
    cli: Cli, nexus_home: Path, command: list[str]
) -> None:
    (nexus_home / "trust.json").write_text("damaged")

    outcome = cli("trust", *command)

    assert outcome.code == 3
    assert "the trust store is damaged" in outcome.err
    assert "This would" not in outcome.err
    assert (nexus_home / "trust.json").read_text() == "damaged"


@pytest.mark.usefixtures("servers")
def test_a_home_inside_the_workspace_can_allow_nothing(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(work / "home"))

    outcome = cli("trust", "allow", "--all", "--yes")

    assert outcome.code == 3
    assert "NEXUS_HOME lies inside the project" in outcome.err
    assert not (work / "home").exists()


def test_hidden_characters_are_shown_to_whoever_is_asked(cli: Cli, servers: Servers) -> None:
    servers[:] = [{"name": "a\u200bb\n\x1b[2K", "command": ["node", "\u202ex", "\x1b[1A"]}]

    outcomes = [cli("trust", "status"), cli("trust", "allow", "--all", "--yes"), cli("trust", "deny", "--all")]

    text = "".join(outcome.out + outcome.err for outcome in outcomes)
    assert not {"\x1b", "\u200b", "\u202e"} & set(text)
    assert "/mcp_servers/a\\u200bb\\n\\x1b[2K in " in text
    assert "This would run: node '\\u202ex' '\\x1b[1A'" in text


# ---- deny and diff ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("servers")
def test_a_setting_is_denied_without_asking(cli: Cli, work: Path) -> None:
    outcome = cli("trust", "deny", "mcp_servers/github")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"Denied /mcp_servers/github in {work}/.nexus3/mcp.json:3.\n"
    assert decisions(cli) == {"github": "denied", "remote": "pending"}


@pytest.mark.usefixtures("servers")
def test_denying_all_takes_back_what_was_allowed(cli: Cli) -> None:
    cli("trust", "allow", "--all", "--yes")

    cli("trust", "deny", "--all")

    assert set(decisions(cli).values()) == {"denied"}


@pytest.mark.usefixtures("servers")
def test_denying_nothing_is_a_usage_error(cli: Cli) -> None:
    outcome = cli("trust", "deny")

    assert outcome.code == 2
    assert "--all" in outcome.err


@pytest.mark.usefixtures("servers")
def test_denying_twice_is_said(cli: Cli) -> None:
    cli("trust", "deny", "mcp_servers/github")

    outcome = cli("trust", "deny", "mcp_servers/github")

    assert (outcome.code, outcome.err) == (0, "Already denied.\n")


@pytest.mark.usefixtures("servers")
def test_without_a_change_there_is_no_difference(cli: Cli) -> None:
    cli("trust", "allow", "mcp_servers/github", "--yes")

    outcome = cli("trust", "diff")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "Nothing differs from what you allowed.\n"


@pytest.mark.parametrize("pointer", [[], ["mcp_servers/github"]])
def test_a_changed_setting_is_shown_against_what_was_allowed(cli: Cli, servers: Servers, pointer: list[str]) -> None:
    cli("trust", "allow", "mcp_servers/github", "--yes")
    servers[0] = {**GITHUB, "command": ["npx", "-y", "server-evil"]}

    outcome = cli("trust", "diff", *pointer)

    assert outcome.code == 1
    assert '-    "server-github"\n' in outcome.out
    assert '+    "server-evil"\n' in outcome.out
    assert decisions(cli)["github"] == "changed"


def test_changes_are_there_for_programs_too(cli: Cli, servers: Servers) -> None:
    cli("trust", "allow", "--all", "--yes")
    unchanged = cli("trust", "diff", "--json")
    servers[0] = {**GITHUB, "command": ["npx", "-y", "server-evil"]}

    changed = cli("trust", "diff", "--json")

    (change,) = json.loads(changed.out)["changes"]
    assert (unchanged.code, json.loads(unchanged.out)) == (0, {"schema": 1, "changes": []})
    assert (changed.code, change["pointer"], change["decision"]) == (1, "/mcp_servers/github", "changed")
    assert '+    "server-evil"' in change["diff"]


def test_a_changed_setting_that_was_not_named_is_not_compared(cli: Cli, servers: Servers) -> None:
    cli("trust", "allow", "--all", "--yes")
    servers[0] = {**GITHUB, "command": ["npx", "-y", "server-evil"]}

    outcome = cli("trust", "diff", "mcp_servers/remote")

    assert (outcome.code, outcome.out) == (0, "")


def test_allowing_a_change_says_that_it_is_one(cli: Cli, servers: Servers) -> None:
    cli("trust", "allow", "--all", "--yes")
    servers[0] = {**GITHUB, "command": ["npx", "-y", "server-evil"]}

    outcome = cli("trust", "allow", "--all", "--yes")

    assert "You allowed something else here before" in outcome.err
    assert "remote" not in outcome.err
    assert decisions(cli)["github"] == "allowed"


# ---- what is switched off, and keys that are written out -------------------------------------------------

KEY = "sk-live-0123456789abcdef0123"
OFF: dict[str, object] = {"name": "off", "command": ["npx", "--api-key", KEY], "enabled": False}


def _define(work: Path, *servers: dict[str, object]) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": servers})})


@pytest.mark.acceptance("M-07")
def test_a_server_that_is_switched_off_is_shown_as_disabled_and_waits_for_nobody(cli: Cli, work: Path) -> None:
    _define(work, OFF)

    outcome, (part,) = cli("trust", "status"), json.loads(cli("trust", "status", "--json").out)["parts"]

    assert outcome.out.splitlines()[1].split()[:2] == ["disabled", "/mcp_servers/off"]
    assert "Decide with" not in outcome.err
    assert (part["decision"], part["enabled"]) == ("pending", False)
    assert "unapproved" not in cli("doctor").out
    assert cli("show", "--require-trusted").code == 0


def test_a_server_that_is_switched_off_is_allowed_by_name_only(cli: Cli, work: Path) -> None:
    _define(work, OFF, GITHUB)

    cli("trust", "allow", "--all", "--yes")
    assert decisions(cli) == {"off": "pending", "github": "allowed"}

    cli("trust", "allow", "mcp_servers/off", "--yes")
    assert decisions(cli) == {"off": "allowed", "github": "allowed"}


def test_who_switches_an_approved_server_on_is_asked_again(cli: Cli, work: Path) -> None:
    _define(work, OFF)
    cli("trust", "allow", "mcp_servers/off", "--yes")

    _define(work, {**OFF, "enabled": True})

    assert decisions(cli) == {"off": "changed"}


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "said",
    [
        {"command": ["npx", "--api-key", KEY]},
        {"command": ["npx", f"--api-key={KEY}"]},
        {"url": f"https://x.example/mcp?token={KEY}"},
        {"url": f"https://x.example/mcp?token={KEY}", "headers": {"A": "b"}},
        {"url": f"https://user:{KEY}@x.example/mcp"},
        {"command": "npx", "args": ["--header", f"Authorization: Bearer {KEY}"]},
    ],
    ids=["option", "assignment", "query", "query and headers", "address", "header"],
)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_key_in_a_command_is_not_printed_in_passing(
    cli: Cli, work: Path, said: dict[str, object], *, enabled: bool
) -> None:
    _define(work, {"name": "a", **said, "enabled": enabled})

    commands = [["trust", "status"], ["trust", "status", "--json"], ["doctor"], ["doctor", "--json"]]
    commands += [["show", "--json"], ["show", "--require-trusted"], [], ["--json"]]
    outcomes = [cli(*command) for command in commands]

    assert [outcome for outcome in outcomes if KEY in outcome.out + outcome.err] == []
    assert "***" in outcomes[0].out


def test_whoever_approves_a_server_sees_all_of_it(cli: Cli, work: Path) -> None:
    _define(work, {**OFF, "enabled": True})

    assert f"run: npx --api-key {KEY}" in cli("trust", "allow", "--all", "--yes").err


# ---- conventions ------------------------------------------------------------------------------------------


def test_no_command_prints_a_secret(cli: Cli, servers: Servers, nexus_home: Path) -> None:
    outcomes: list[Outcome] = [cli("trust", "status"), cli("trust", "status", "--json")]
    outcomes.append(cli("trust", "allow", "--all", "--yes"))
    servers[:] = [
        {**GITHUB, "env": {"GITHUB_TOKEN": f"{TOKEN}2"}},
        {**REMOTE, "headers": {"Authorization": f"{BEARER}2"}},
    ]
    outcomes += [cli("--debug", "trust", *command) for command in (["diff"], ["allow"], ["deny", "--all"], ["status"])]

    text = "".join(outcome.out + outcome.err for outcome in outcomes)
    store = (nexus_home / "trust.json").read_text()
    assert "GITHUB_TOKEN" in text
    assert '+    "GITHUB_TOKEN": "sha256:' in text
    for secret in (TOKEN, BEARER):
        assert secret not in text
        assert secret not in store


def test_a_setting_that_is_no_server_is_told_as_one_that_sets(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": json.dumps({"compaction": {"summarizers": ["a\u200b\nb"]}})})

    outcome = cli("trust", "allow", "--all", "--yes")

    assert "This would set: compaction.summarizers = 'a\\u200b\\nb'\n" in outcome.err


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(("typed", "is_allowed"), [(b"y\n", True), (b"\n", False), (b"\x04", False)])
def test_a_real_terminal_is_asked(work: Path, nexus_home: Path, typed: bytes, is_allowed: bool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nexus_core", "trust", "allow", "github"],
        cwd=work,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 1024)

    os.write(ours, typed)
    out, _ = process.communicate(timeout=30)
    os.close(ours)

    assert (process.returncode, out) == (0, b"")
    assert (nexus_home / "trust.json").exists() == is_allowed


# ---- approvals of version 1 -------------------------------------------------------------------------------

FIRST_VERSION = {
    "script": (
        '{"args":[],"command":["/bin/sh","tools/run"],"enabled":true,"env":{},"executable":"/bin/sh","files":{"tools/run":'
        '"sha256:a17fcf0a2f50e2d495e4f90ce263410edc183add6c62699a2facbccf60410f74"},"headers":{},"kind":"server",'
        '"name":"script","other":{},"type":"stdio","url":null}'
    ),
    "remote": (
        '{"args":[],"command":null,"enabled":true,"env":{},"executable":null,"files":{},"headers":{},"kind":"server",'
        '"name":"remote","other":{},"type":"http","url":"https://mcp.example.com/v1"}'
    ),
    "fetched": (
        '{"args":[],"command":["/bin/true","-y","x"],"enabled":true,"env":{},"executable":"/bin/true","files":{},'
        '"headers":{},"kind":"server","name":"fetched","other":{},"type":"stdio","url":null}'
    ),
}
"""Contents as they were written before approvals covered code."""


@pytest.fixture
def first_version(nexus_home: Path, work: Path) -> Path:
    """A project with three servers, and a trust.json of version 1 that allows them."""
    servers = [
        {"name": "script", "command": ["/bin/sh", "tools/run"]},
        {"name": "remote", "url": "https://mcp.example.com/v1"},
        {"name": "fetched", "command": ["/bin/true", "-y", "x"]},
    ]
    path = write_files(work, {".nexus3/mcp.json": json.dumps({"servers": servers}), "tools/run": "true\n"})
    place = str(path / ".nexus3/mcp.json")
    allowed = {
        sha256(f"{place}\n/mcp_servers/{name}\n{content}".encode()).hexdigest(): {
            "path": place,
            "pointer": f"/mcp_servers/{name}",
            "content": content,
        }
        for name, content in FIRST_VERSION.items()
    }
    denied = [{"path": place, "pointer": "/mcp_servers/other"}]
    store = write_files(nexus_home, {"trust.json": json.dumps({"version": 1, "allowed": allowed, "denied": denied})})
    (store / "trust.json").chmod(0o600)
    return store / "trust.json"


@pytest.mark.acceptance("T2")
@pytest.mark.usefixtures("first_version")
def test_an_approval_from_before_code_was_covered_is_asked_about_once_more(cli: Cli) -> None:
    assert decisions(cli) == {"script": "changed", "remote": "allowed", "fetched": "allowed"}
    assert "before approvals covered all the code" in cli("show").err
    assert "outdated-approval" in cli("doctor").out
    assert "before approvals covered the code" in cli("trust", "diff").out

    outcome = cli("trust", "allow", "--yes")

    assert "You allowed it before approvals covered this code, so you are asked once more." in outcome.err
    assert decisions(cli) == {"script": "allowed", "remote": "allowed", "fetched": "allowed"}
    assert "outdated-approval" not in cli("doctor").out


def test_a_store_of_the_first_version_is_written_as_the_second(cli: Cli, first_version: Path) -> None:
    before = json.loads(first_version.read_text())

    cli("trust", "allow", "script", "--yes")

    after = json.loads(first_version.read_text())
    kept = {key: each for key, each in before["allowed"].items() if not each["pointer"].endswith("script")}
    assert after["version"] == 2
    assert after["denied"] == before["denied"]
    assert kept.items() <= after["allowed"].items()
    assert len(after["allowed"]) == 3
