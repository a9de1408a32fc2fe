"""What is printed where, whatever the stream, the terminal or a plugin does."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin


def shell(line: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("nexus ", f"{sys.executable} -m nexus_core ")
    environment = {**os.environ, **variables}
    return subprocess.run(
        ["/bin/bash", "-c", command], cwd=cwd, env=environment, text=True, capture_output=True, check=False
    )


pytestmark = pytest.mark.usefixtures("nexus_home")


@pytest.mark.acceptance("R20")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_json_is_json_in_every_encoding(work: Path, encoding: str) -> None:
    write_files(work, {".nexus3/NEXUS.md": "é 日 \U0001f600"})

    outcome = shell("nexus show --json", work, PYTHONIOENCODING=encoding)

    assert "é 日 \U0001f600" in json.loads(outcome.stdout)["prompt"]


@pytest.mark.acceptance("R20")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nexus --version | true; exit ${PIPESTATUS[0]}", 0),
        ("nexus nope 2>&1 | true; exit ${PIPESTATUS[0]}", 2),
        ("nexus show >&-", 0),
        ("nexus show <&- >&-", 0),
        ("nexus show <&- >&- 2>&-", 0),
        ("nexus --version >&-", 0),
        ("nexus nope 2>&-", 2),
        ("nexus show >/dev/full", 3),
        ("nexus --version >/dev/full", 3),
    ],
)
def test_a_stream_that_is_closed_or_full_gives_no_traceback(work: Path, line: str, code: int) -> None:
    outcome = shell(line, work)

    assert outcome.returncode == code
    assert "Traceback" not in outcome.stderr
    assert "Exception ignored" not in outcome.stderr


def test_a_full_disk_is_named(work: Path) -> None:
    assert shell("nexus show >/dev/full", work).stderr == "Error: cannot print: No space left on device\n"


def test_messages_and_data_in_one_stream_keep_their_order(work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    lines = shell("nexus trust status 2>&1", work).stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["DECISION", "pending", "Decide"]


# ---- plugins that print -----------------------------------------------------------------------------------

NOISY = """
import os, subprocess, sys
import typer
from nexus_core import hookimpl
from nexus_core.plugin import Command

app = typer.Typer()
print("print at import")
os.write(1, b"descriptor at import\\n")

@app.command()
def noisy():
    print("print of a command", flush=True)
    subprocess.run(["echo", "child of a command"], check=True)

@hookimpl
def nexus_commands():
    return [Command("noisy", "Makes noise.", "noisy:app")]

@hookimpl
def nexus_static_sections():
    print("print")
    os.write(1, b"descriptor\\n")
    sys.__stdout__.write("dunder\\n")
    subprocess.run(["echo", "child"], check=True)
"""


@pytest.fixture
def noise(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has installed a plugin that prints in every possible way."""
    site = write_files(
        tmp_path / "site-packages",
        {
            "noisy.py": NOISY,
            "noisy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n",
            "noisy-1.0.dist-info/entry_points.txt": "[nexus.plugins]\nnoisy = noisy\n",
        },
    )
    return {"PYTHONPATH": str(site), "NEXUS_PLUGINS": ""}


@pytest.mark.parametrize("buffering", ["", "1"])
@pytest.mark.parametrize("line", ["nexus show --json | cat", "nexus show --json > file; cat file"])
def test_nothing_that_a_plugin_or_its_child_writes_gets_into_the_data(
    work: Path, noise: dict[str, str], line: str, buffering: str
) -> None:
    outcome = shell(line, work, **noise, PYTHONUNBUFFERED=buffering)

    assert json.loads(outcome.stdout)["schema"] == 1
    assert sorted(outcome.stderr.splitlines()) == [
        "child",
        "descriptor",
        "descriptor at import",
        "dunder",
        "print",
        "print at import",
    ]


@pytest.mark.parametrize("line", ["nexus --help", "nexus plugin test noisy", "nexus --version", "nexus nope"])
def test_nor_does_it_get_into_what_other_commands_print(work: Path, noise: dict[str, str], line: str) -> None:
    assert "import" not in shell(line, work, **noise).stdout


def test_the_command_of_a_plugin_may_print_as_it_likes(work: Path, noise: dict[str, str]) -> None:
    outcome = shell("nexus noisy", work, **noise)

    assert outcome.stdout == "print of a command\nchild of a command\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nexus show | head -1; exit ${PIPESTATUS[0]}", 0),
        ("nexus show | true; exit ${PIPESTATUS[0]}", 0),
        ("nexus show >&-", 0),
        ("nexus show >/dev/full", 3),
    ],
)
def test_a_stream_that_is_closed_or_full_is_so_beside_a_noisy_plugin_too(
    work: Path, noise: dict[str, str], line: str, code: int
) -> None:
    write_files(work, {"NEXUS.md": "long line\n" * 50_000})

    outcome = shell(line, work, **noise)

    assert outcome.returncode == code
    assert "Traceback" not in outcome.stderr
    assert "Exception ignored" not in outcome.stderr
    assert outcome.stdout in {"", "# System Configuration\n"}


def open_files() -> dict[int, tuple[int, int]]:
    found = {}
    for descriptor in range(64):
        with suppress(OSError):
            facts = os.fstat(descriptor)
            found[descriptor] = (facts.st_dev, facts.st_ino)
    return found


def test_afterwards_every_descriptor_is_as_it_was(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("failing", "raise ImportError('boom')")
    before = open_files()

    cli("show")

    assert open_files() == before


def test_a_plugin_that_prints_does_not_spoil_the_findings(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("noisy", "print('at import')\ndef nexus_layers(): ...")

    outcome = cli("plugin", "test", "--json")

    assert json.loads(outcome.out)["plugins"][0]["name"] == "noisy"
    assert "at import" in outcome.err


def test_help_is_there_when_the_configuration_is_broken(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    outcome = cli("--help")

    assert outcome.code == 0
    assert "show " in outcome.out
    assert "Warning: " in outcome.err


def test_completion_is_silent_when_something_is_broken(work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    outcome = shell("nexus ", work, _NEXUS_COMPLETE="complete_bash", COMP_WORDS="nexus pl", COMP_CWORD="1")

    assert outcome.stderr == ""


def test_a_plugins_help_cannot_steer_the_terminal(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "evil",
        "from nexus_core import hookimpl\nfrom nexus_core.plugin import Command\n"
        "@hookimpl\n"
        "def nexus_commands(): return [Command('evil', 'x\\x1b]0;owned\\x07', 'evil:app')]\n",
    )

    out = cli("--help").out

    assert "\x1b" not in out
    assert "x\\x1b]0;owned" in out


def test_a_plugin_that_changes_the_directory_does_not_change_what_the_command_is_about(
    cli: Cli, install_plugin: InstallPlugin, work: Path
) -> None:
    install_plugin("mover", "import os\nos.chdir('/')\n")

    assert f"Working directory  {work}" in cli("environment").out


@pytest.mark.parametrize("directory", ["x" * 300, "missing/x", "a\\0b"])
def test_a_directory_that_cannot_be_reached_is_a_usage_error(cli: Cli, directory: str) -> None:
    assert cli("-C", directory, "show").code == 2


def test_a_home_of_nobody_is_an_error_in_words(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_HOME", "~nobody-by-that-name/x")

    outcome = cli("show")

    assert outcome.code == 3
    assert "set NEXUS_HOME" in outcome.err


def test_an_empty_typer_application_of_a_plugin_is_named(
    cli: Cli, install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin(
        "git",
        "from nexus_core import hookimpl\nfrom nexus_core.plugin import Command\n"
        "@hookimpl\n"
        "def nexus_commands(): return [Command('git', 'x', 'nexus_git_empty:app')]\n",
    )
    (tmp_path / "site-packages/nexus_git_empty.py").write_text("import typer\napp = typer.Typer()\n")

    outcome = cli("git")

    assert outcome.code == 3
    assert "nexus_git_empty" in outcome.err
