"""No command prints a secret of a server, wherever it is written, whatever goes wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli
from tests.effort import sampled
from tests.plugins.mcp.world import script
from tests.tables import count

running = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")
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
    "mcp pin run-0",
    "mcp export",
    "mcp export --to claude",
    "mcp export --to vscode",
    "mcp export --to codex",
    "mcp export --to cursor",
    "mcp export --to gemini",
    "mcp export --to opencode",
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
    for command in QUIET:
        outcome = cli("--debug", *command.split())
        if secrets := leaked(outcome.out, outcome.err):
            found[command] = secrets

    print_numbers(capsys, f"{whose} servers, {len(QUIET)} commands", [each for some in found.values() for each in some])
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

    monkeypatch.setattr("nexus_plugins.mcp._cli.looking.describe_server", fail)
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
