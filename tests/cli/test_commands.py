"""Conventions that hold for every command."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus, __version__
from nexus_core.cli.commands.session.group import SessionGroup
from nexus_core.cli.root import RootGroup
from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin
from tests.effort import sampled
from tests.text.secret_samples import SAMPLES

GIT = """
from nexus_core import hookimpl
from nexus_core.plugin import Command

@hookimpl
def nexus_commands():
    return [Command("git", "What git says.", "nexus_git_cli:app")]
"""

GIT_CLI = """
import typer

app = typer.Typer()

@app.command()
def git(ctx: typer.Context, loud: bool = False):
    ctx.obj.console.text(f"git in {ctx.obj.cwd.name}" + ("!" if loud else ""))
"""


def every_help(cli: Cli, *command: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it, by what is typed."""
    outcome = cli(*command, "--help")
    assert outcome.code == 0
    yield " ".join(command), outcome.out
    _, _, listed = outcome.out.partition("\nCommands:\n")
    for name in re.findall(r"^  (\w+) ", listed.partition("\n\n")[0], re.MULTILINE):
        yield from every_help(cli, *command, name)


def test_every_help_ends_with_two_examples_of_its_command(cli: Cli) -> None:
    found = {name: out.rpartition("Examples:\n")[2].splitlines() for name, out in every_help(cli)}
    words = {name: name for name in found} | {"status": ""}  # which is `nexus` alone

    wrong = {
        name: examples
        for name, examples in found.items()
        if len(examples) != 2 or not all(re.search(rf"\bnexus\b.*{words[name]}", each) for each in examples)
    }
    assert len(found) > 60
    assert wrong == {}


def test_every_help_begins_with_one_short_sentence(cli: Cli) -> None:
    pages = dict(every_help(cli))
    first = {name: re.findall(r"\n\n  (\S.*(?:\n  \S.*)*)", page)[0] for name, page in pages.items()}

    assert {name: line for name, line in first.items() if not re.fullmatch(r"[A-Z][^;\n]{1,58}\.", line)} == {}
    assert [name for name, page in pages.items() if re.search(r"^  \w+ .*\.\.\.$", page, re.MULTILINE)] == []
    for group, core in (("", RootGroup.core), ("session ", SessionGroup.core)):
        assert {name: command.help for name, command in core.items()} == {name: first[group + name] for name in core}


def test_every_usage_line_has_bare_and_bracketed_arguments(cli: Cli) -> None:
    usages = {name: page.partition("\n\n")[0] for name, page in every_help(cli)}
    options = [line for _, page in every_help(cli) for line in re.findall(r"^  -.*", page, re.MULTILINE)]

    assert usages["session fork"] == "Usage: nexus session fork [OPTIONS] NAME NEW"
    assert usages["session tree"] == "Usage: nexus session tree [OPTIONS] [NAME]"
    assert [usage for usage in usages.values() if "{" in usage or "LABEL" in usage] == []
    assert [line for line in options if re.search(r"--[a-z-]+ (<|LABEL)", line)] == []


def test_help_lists_every_command_with_one_line(cli: Cli) -> None:
    out = cli("--help").out

    for command in RootGroup.core.values():
        assert f"{command.name} " in out
        assert command.help in out
    assert "mcp  " in out


def test_environment_is_in_no_help_page_and_works(cli: Cli, work: Path) -> None:
    assert "\n  environment " not in cli("--help").out
    assert f"Working directory  {work}" in cli("environment").out


def test_an_unknown_command_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("shwo")

    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'show'?" in outcome.err


@pytest.mark.parametrize(
    "line",
    [
        "session show nowhere",
        "session replay nowhere",
        "session list --ledger nowhere.db",
        "ledger verify --ledger nowhere.db",
        "session import nowhere.jsonl",
        "session import nowhere.jsonl --json",
        "session record s nowhere.json",
        "context nowhere.jsonl",
        "check nowhere.json",
        "tokens nowhere.md",
        "diff file:nowhere.json model:gpt-4o",
        "assemble Hi --tools nowhere.json",
        "init --global --copy-mcp nowhere.json",
        "mcp import nowhere.json",
        "mcp import codex",
        "mcp tools nowhere",
        "skill show nowhere",
        "plugin info nowhere",
    ],
)
def test_a_name_of_something_that_does_not_exist_exits_with_2(cli: Cli, line: str) -> None:
    outcome = cli(*line.split())

    assert outcome.code == 2
    assert "Error: " in outcome.err


def test_an_unknown_option_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("show", "--jsn")

    assert outcome.code == 2
    assert "--json" in outcome.err


def test_help_on_sessions_lists_every_command_with_a_whole_sentence(cli: Cli) -> None:
    page = cli("session", "--help").out

    listed = [line.split(maxsplit=1) for line in page.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()]
    assert listed == [[command.name, command.help] for command in SessionGroup.core.values()]


def test_a_group_without_a_command_shows_its_help(cli: Cli) -> None:
    outcome = cli("plugin")

    assert outcome.code == 2
    assert outcome.err.startswith("Usage: nexus plugin")


@pytest.mark.parametrize("group", ["", "config", "trust", "plugin"])
def test_every_command_is_described_in_a_line_that_is_not_cut(cli: Cli, group: str) -> None:
    assert "..." not in cli(*filter(None, [group]), "--help").out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "show"], "nexus show --json"),
        (["--brief", "layers"], "nexus layers --brief"),
        (["--force"], "nexus init --force"),
        (["--force", "show"], "nexus init --force"),
    ],
    ids=" ".join,
)
def test_an_option_that_would_do_nothing_is_a_usage_error(cli: Cli, arguments: list[str], words: str) -> None:
    outcome = cli(*arguments)

    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


TRUSTING = [
    ["show"],
    ["layers"],
    ["explain", "provider.model"],
    ["config", "show"],
    ["config", "get", "provider"],
    ["status"],
]


@pytest.mark.acceptance("T5")
@pytest.mark.parametrize("command", TRUSTING, ids=" ".join)
def test_every_command_that_depends_on_active_parts_can_insist_on_approval(
    cli: Cli, work: Path, command: list[str]
) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}'})

    refused = cli(*command, "--require-trusted")
    relaxed = cli(*command)
    cli("trust", "allow", "--all", "--yes")

    assert (refused.code, refused.out, relaxed.code) == (3, "", 0)
    assert f"{work}/.nexus3/mcp.json:1: npx x" in refused.err
    assert cli(*command, "--require-trusted").code == 0


# ---- the user's own directory -----------------------------------------------------------------------------


@pytest.mark.acceptance("T4")
@pytest.mark.parametrize(
    "command", [[], ["trust", "status"], ["doctor"], ["init"], ["init", "--global"], *TRUSTING], ids=" ".join
)
def test_a_project_does_not_become_the_users_own_directory(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    write_files(work, {".envrc": "export NEXUS_HOME=$PWD/home", "home/NEXUS.md": "Obey.", "home/config.json": "{"})
    monkeypatch.setenv("NEXUS_HOME", str(work / "home"))

    outcome = cli(*command)

    assert (outcome.code, outcome.out) == (3, "")
    assert "Error: NEXUS_HOME lies inside the project" in outcome.err
    assert sorted(path.name for path in work.iterdir()) == [".envrc", "home"]


@pytest.mark.acceptance("T4")
def test_who_names_a_home_inside_the_project_means_it(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(work, {"home/NEXUS.md": "Obey."})
    monkeypatch.setenv("NEXUS_HOME", str(work / "home"))

    before, after = cli("--home", "home", "show"), cli("show", "--home", "home")

    assert f"## Global Configuration\nSource: {work}/home/NEXUS.md\n\nObey.\n" in before.out
    assert before == after


@pytest.mark.acceptance("T4")
def test_even_then_it_approves_nothing(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "a", "command": ["npx", "x"]}]}', "home/x": ""})

    outcome = cli("--home", "home", "trust", "allow", "--all", "--yes")

    assert outcome.code == 3
    assert "the trust store lies inside the project" in outcome.err


def test_a_home_is_found_behind_a_tilde(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path, {"alt/NEXUS.md": "Mine."})

    assert "Mine." in cli("show", "--home=~/alt").out


def test_a_home_without_a_name_is_a_usage_error(cli: Cli) -> None:
    outcome = cli("show", "--home", "")

    assert (outcome.code, "it must name a directory" in outcome.err) == (2, True)


# ---- directories ------------------------------------------------------------------------------------------


def test_a_directory_that_does_not_exist_is_a_usage_error(cli: Cli) -> None:
    outcome = cli("-C", "missing", "show")

    assert outcome.code == 2
    assert "'missing' is not a directory" in outcome.err


def test_a_directory_reached_by_way_of_its_child_is_the_same_directory(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "work", "child/.nexus3/NEXUS.md": "child"})

    assert cli("-C", "child/..", "show") == cli("show")


def test_a_directory_reached_through_a_link_is_the_same_directory(cli: Cli, work: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"company/.nexus3/NEXUS.md": "company", "company/project/.nexus3/NEXUS.md": "project"})
    (work / "link").symlink_to(tmp_path / "company/project")

    assert cli("-C", "link", "show") == cli("-C", str(tmp_path / "company/project"), "show")


def test_the_short_form_of_help_is_understood(cli: Cli) -> None:
    assert cli("-h") == cli("--help")
    assert cli("show", "-h") == cli("show", "--help")


def test_a_broken_configuration_exits_with_three(cli: Cli, work: Path) -> None:
    (work / ".nexus3").mkdir()
    (work / ".nexus3/config.json").write_text("{")

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (3, "")
    assert f"Configuration Error: Invalid JSON in {work}/.nexus3/config.json\n\n  Line 1, Column 2: " in outcome.err


def test_the_version_is_printed(cli: Cli) -> None:
    assert cli("--version").out == f"nexus {__version__}\n"


def test_hooks_are_traced_on_standard_error(cli: Cli) -> None:
    plain, traced = cli("show"), cli("--trace-hooks", "show")

    lines = [line.split()[:2] for line in traced.err.splitlines()]
    assert traced.out == plain.out
    assert ["nexus_layers", "file_layers"] in lines
    assert ["nexus_static_sections", "environment"] in lines
    assert all(" ms  " in line for line in traced.err.splitlines())


def test_a_defect_of_ours_is_one_line_and_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("nexus_core.cli.commands.show._section_to_json", explode)

    outcome = cli("show", "--json")

    assert outcome.code == 70
    assert "unexpected ZeroDivisionError: oops" in outcome.err
    assert "Traceback" not in outcome.err
    assert "Traceback" in cli("--debug", "show", "--json").err


@pytest.mark.acceptance("R20")
def test_an_interrupt_exits_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nexus_core.cli.commands.show._section_to_json", interrupt)

    outcome = cli("show", "--json")

    assert (outcome.code, outcome.err) == (130, "Error: interrupted\n")


def test_a_plugin_adds_a_command(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path, work: Path) -> None:
    install_plugin("git", GIT)
    (tmp_path / "site-packages/nexus_git_cli.py").write_text(GIT_CLI)

    assert cli("git", "--loud", "-C", str(work)).out == "git in work!\n"
    assert "git       What git says." in cli("--help").out


def test_a_plugins_group_may_normalize_the_names_of_its_commands(
    cli: Cli, install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin("git", GIT)
    group = (
        "import typer\n"
        "app = typer.Typer(context_settings={'token_normalize_func': str.lower})\n"
        "@app.command()\ndef hello(): print('Hello.')\n"
        "@app.command()\ndef bye(): print('Bye.')\n"
    )
    (tmp_path / "site-packages/nexus_git_cli.py").write_text(group)

    assert (cli("git", "HELLO").out, cli("git", "Bye").out) == ("Hello.\n", "Bye.\n")
    assert "unknown command 'HELO'" in cli("git", "HELO").err


def test_a_plugins_command_is_not_imported_for_the_help_page(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("git", GIT)  # its command's module does not exist

    outcome = cli("--help")

    assert (outcome.code, outcome.err) == (0, "")


def test_a_command_that_cannot_be_imported_names_its_plugin_and_its_module(
    cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin("git", GIT)

    outcome = cli("git")

    assert outcome.code == 3
    assert outcome.err == (
        "Error: plugin git: its command 'git' (nexus_git_cli:app) raised ModuleNotFoundError: "
        "No module named 'nexus_git_cli' while it was loaded\n"
    )


def test_a_command_that_is_no_typer_application_is_refused(
    cli: Cli, install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin("git", GIT)
    (tmp_path / "site-packages/nexus_git_cli.py").write_text("app = 42")

    assert "plugin git: its command 'git' (nexus_git_cli:app) is of type int, expected a typer.Typer" in cli("git").err


def test_a_plugin_cannot_replace_a_core_command_and_is_told_so(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("git", GIT.replace('"git"', '"show"'))

    outcome = cli("--help")

    assert "What git says." not in outcome.out
    assert "the command 'show' is taken by Nexus itself" in outcome.err
    assert cli("show").code == 0


def test_the_command_of_a_bundled_plugin_that_is_disabled_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "-mcp")

    outcome = cli("mcp", "list")

    assert outcome.code == 2
    assert outcome.err == (
        "Error: the command 'mcp' belongs to the plugin 'mcp', which is not active\n  nexus plugin info mcp\n"
    )
    assert "Status  disabled" in cli("plugin", "info", "mcp").out


def test_a_problem_is_printed_once_even_when_two_nexus_objects_meet_it(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    assert cli("environment").err.count("boom") == 1


def test_the_environment_command_prints_the_facts(cli: Cli, work: Path) -> None:
    assert f"Working directory  {work}" in cli("environment").out
    assert json.loads(cli("environment", "--json").out)["environment"]["working_directory"] == str(work)


def nexus(*arguments: str, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nexus_core", *arguments]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_python_m_runs_the_same_program(cli: Cli, work: Path) -> None:
    assert nexus("show", cwd=work).stdout == cli("show").out
    assert nexus("--version", cwd=work).stdout == f"nexus {__version__}\n"


@pytest.mark.parametrize("module", ["json", "pluggy", "typer", "typing", "dataclasses", "nexus_plugins"])
def test_nothing_is_imported_from_the_working_directory(cli: Cli, work: Path, module: str) -> None:
    (work / f"{module}.py").write_text("raise SystemExit('imported from the workspace')")

    outcome = nexus("plugin", "list", "--json", cwd=work)

    assert (outcome.returncode, outcome.stdout) == (0, cli("plugin", "list", "--json").out)


def test_a_project_that_is_installed_in_place_keeps_its_modules(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - the home must be in place
    (work / "installed_in_place.py").touch()
    code = (
        "import sys; sys.path.append(sys.argv.pop()); sys.argv.append('--version')\n"
        "from nexus_core.cli import main; main(); import installed_in_place"
    )

    outcome = subprocess.run(
        [sys.executable, "-P", "-c", code, str(work)], cwd=work, text=True, capture_output=True, check=False
    )

    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_reader_that_leaves_early_is_no_error(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - the home must be in place
    (work / ".nexus3").mkdir()
    (work / ".nexus3/NEXUS.md").write_text("long line\n" * 50_000)
    command = f"{sys.executable} -m nexus_core show | head -1; echo ${{PIPESTATUS[0]}}"

    outcome = subprocess.run(["bash", "-c", command], cwd=work, text=True, capture_output=True, check=True)  # noqa: S607 - bash is bash

    assert outcome.stdout == "# System Configuration\n0\n"
    assert outcome.stderr == ""


def test_an_ascii_terminal_gets_escapes_instead_of_an_error(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - as above
    (work / ".nexus3").mkdir()
    (work / ".nexus3/NEXUS.md").write_text("日本", encoding="utf-8")

    outcome = nexus("show", cwd=work, env={**os.environ, "PYTHONIOENCODING": "ascii"})

    assert outcome.returncode == 0
    assert "\\u65e5\\u672c" in outcome.stdout


def test_a_deleted_working_directory_is_an_error_in_words(cli: Cli, work: Path) -> None:
    work.rmdir()

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (3, "")
    assert "no longer exists" in outcome.err


def test_completion_offers_commands_and_plugins(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - as above
    def complete(line: str) -> list[str]:
        variables = {"_NEXUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        return nexus(cwd=work, env={**os.environ, **variables}).stdout.split()

    assert "show" in complete("nexus sh")
    assert "environment" in complete("nexus plugin info env")


@pytest.mark.acceptance("T10", "T15")
@pytest.mark.parametrize("shell", sampled(["complete_bash", "complete_zsh", "complete_fish"], one_in=3))
def test_completion_offers_no_name_that_a_shell_would_run_or_that_is_a_secret(
    work: Path, nexus_home: Path, shell: str
) -> None:
    secret = SAMPLES["github-classic"]
    token = secret.text.split()[1]
    names = [
        "plain",
        token,
        "$(touch run)",
        "`id`",
        "a;b",
        "a b",
        "a\nb",
        "x\x1b[31m",
        "-rf",
        "~root",
        "a\u202eb",
        "'q'",
    ]
    servers = {name: {"command": "true"} for name in names}
    write_files(work, {".nexus3/mcp.json": json.dumps({"mcpServers": servers})})
    with Nexus(work, home=nexus_home) as opened:
        for name in names:
            opened.session(name).ask("?")

    def complete(line: str) -> str:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
        more = {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_NEXUS_COMPLETE": shell}
        return nexus(cwd=work, env={**os.environ, **words, **more}).stdout

    for line in ("nexus mcp tools ", "nexus session show ", "nexus trust allow "):
        offered = complete(line)
        assert "plain" in offered, line
        assert not [
            sign for sign in ("$(", "touch", "\x1b", "`", ";b", "\n-rf", "~root", "\u202e", token) if sign in offered
        ]


def test_colours_are_for_terminals_only(cli: Cli) -> None:
    assert isinstance(sys.stdout, io.TextIOBase)
    assert "\x1b" not in cli("plugin", "list").out


@pytest.mark.parametrize(
    ("words", "option"), [(["version"], "--version"), (["help"], "--help"), (["session", "help"], "--help")]
)
def test_an_unknown_command_with_the_name_of_an_option_suggests_the_option(
    cli: Cli, words: list[str], option: str
) -> None:
    outcome = cli(*words)

    assert outcome.code == 2
    assert f"did you mean '{option}'?" in outcome.err


@pytest.mark.parametrize("name", ["foo", "environmen"])
def test_an_unknown_command_is_answered_without_hidden_ones(cli: Cli, name: str) -> None:
    outcome = cli(name)

    assert "known: acp, assemble, chat, check" in outcome.err
    assert "environment" not in outcome.err


@pytest.mark.slow
def test_a_thread_that_still_runs_does_not_crash_the_command_at_its_end(tmp_path: Path) -> None:
    code = """
import sys, threading, time
import pydantic
from nexus_core.cli import main

class Checked(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def take_time(cls, number):
        return number + sum(range(300)) * 0

def work():
    while True:
        Checked.model_validate({"number": 1})

class Lingering:
    def __del__(self, clock=time):
        end = clock.monotonic() + 0.5
        while clock.monotonic() < end:
            clock.sleep(0.01)

threading.Thread(target=work, daemon=True).start()
lingering = Lingering()
sys.argv = ["nexus", "layers"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "FATAL" not in done.stderr
