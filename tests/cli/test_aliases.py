"""Other names of commands and options work, are in no help page, and old ones are warned of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.cli import aliases
from nexus_core.cli.aliases import OLD_COMMANDS, OLD_OPTIONS, SYNONYMS
from tests.cli.test_commands import every_help
from tests.conftest import Cli, InstallPlugin

PLUGIN = """
from nexus_core import hookimpl
from nexus_core.plugin import Command

@hookimpl
def nexus_commands():
    return [Command("git", "Print what git prints.", "nexus_git_cli:app")]
"""

PLUGIN_CLI = """
import typer

app = typer.Typer(no_args_is_help=True)

@app.command()
def log(
    ctx: typer.Context,
    loud: bool = typer.Option(False, "--loud"),
    depth: int = 1,
    name: list[str] = typer.Option([]),
):
    ctx.obj.console.text(f"{loud} {depth} {' '.join(name)}")

@app.command()
def status(ctx: typer.Context):
    ctx.obj.console.text("clean")
"""


@pytest.fixture
def git(install_plugin: InstallPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin with a group of commands, some of which have other names."""
    install_plugin("git", PLUGIN)
    (tmp_path / "site-packages/nexus_git_cli.py").write_text(PLUGIN_CLI)
    monkeypatch.setattr(aliases, "SYNONYMS", {"repo": "git"})
    monkeypatch.setattr(aliases, "OLD_COMMANDS", {"git history": "git log --depth 9", "git log --short": "git status"})
    old = {"--noisy": "--loud", "--level": "--depth", "--deepest": "--depth 99", "--who": "--name"}
    monkeypatch.setattr(aliases, "OLD_OPTIONS", {"git log": old})


@pytest.mark.parametrize("words", sorted({*SYNONYMS.values(), *OLD_COMMANDS.values()}))
def test_every_alias_leads_to_a_command_of_the_help_pages(cli: Cli, words: str) -> None:
    *group, name = words.partition(" --")[0].split()

    assert f"\n  {name} " in cli(*group, "--help").out


@pytest.mark.parametrize(
    ("command", "old", "new"), [(each, *pair) for each, pairs in OLD_OPTIONS.items() for pair in pairs.items()]
)
def test_every_old_option_has_a_new_one_in_the_help_page(cli: Cli, command: str, old: str, new: str) -> None:
    page = cli(*command.split(), "--help").out

    assert f"{new.partition(' ')[0]} " in page
    assert f"{old} " not in page


def test_no_help_page_has_an_old_name(cli: Cli) -> None:
    pages = dict(every_help(cli))

    assert not {*SYNONYMS, *OLD_COMMANDS} & pages.keys()
    assert not [name for name, page in pages.items() for old in OLD_COMMANDS if f"nexus {old}" in page]


@pytest.mark.slow  # three programs
def test_completion_offers_no_old_name(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - the home must be in place
    def complete(line: str) -> list[str]:
        variables = {"_NEXUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        command = [sys.executable, "-m", "nexus_core"]
        ran = subprocess.run(
            command, cwd=work, env={**os.environ, **variables}, capture_output=True, text=True, check=True
        )
        return ran.stdout.split()

    assert "verify" not in complete("nexus session v")
    assert "verify" in complete("nexus ledger v")
    assert "--dialect" not in complete("nexus assemble --d")


def test_an_old_command_does_what_the_new_one_does_and_warns(cli: Cli, nexus: Nexus) -> None:
    nexus.session("main").ask("Why?")
    nexus.close()

    old, new = cli("session", "verify", "main", "--json"), cli("ledger", "verify", "main", "--json")

    assert (old.code, old.out) == (new.code, new.out) == (0, new.out)
    assert json.loads(new.out)["session"] == "main"
    assert old.err == f"Warning: `nexus session verify` is deprecated, use `nexus ledger verify`\n{new.err}"


@pytest.mark.parametrize(
    ("typed", "new", "hint"),
    [
        ("plugins hooks", "plugin hooks", "`nexus plugins` is deprecated, use `nexus plugin`"),
        ("plugins check roles", "plugin test roles", "`nexus plugins check` is deprecated, use `nexus plugin test`"),
        ("plugin check roles", "plugin test roles", "`nexus plugin check` is deprecated, use `nexus plugin test`"),
    ],
)
def test_old_plugin_command_prints_the_same_after_one_hint(cli: Cli, typed: str, new: str, hint: str) -> None:
    old, current = cli(*typed.split()), cli(*new.split())

    assert (old.code, old.out) == (current.code, current.out)
    assert old.err == f"Warning: {hint}\n{current.err}"


@pytest.mark.parametrize(
    ("old", "new"),
    [("undo", "compact --undo"), ("expand", "show --compacted")],
)
def test_old_compaction_command_says_the_same_of_nothing_to_do(cli: Cli, nexus: Nexus, old: str, new: str) -> None:
    nexus.session("main").ask("Why?")
    nexus.close()

    before, after = cli("session", old, "main", "--json"), cli("session", *new.split(), "main", "--json")

    assert (before.code, before.out) == (after.code, after.out) == (0, after.out)
    assert before.err == f"Warning: `nexus session {old}` is deprecated, use `nexus session {new}`\n{after.err}"


def test_a_flag_may_have_become_a_command(cli: Cli, nexus: Nexus) -> None:
    nexus.session("main").ask("Why?")
    nexus.close()
    cli("session", "archive", "main")

    outcome = cli("session", "archive", "main", "--undo")

    assert (
        outcome.err == "Warning: `nexus session archive --undo` is deprecated, use `nexus session unarchive`\n"
        "Restored main.\n"
    )


def test_an_old_option_does_what_the_new_one_does_and_warns(cli: Cli) -> None:
    old, new = cli("assemble", "Hi", "--dialect", "gemini"), cli("assemble", "Hi", "--api", "gemini")
    # A second may pass between the two.
    old_body, new_body = (re.sub(r"Current time: [0-9T:Z-]+", "Current time: …", each.out) for each in (old, new))

    assert (old.code, old_body) == (new.code, new_body)
    assert old.err == f"Warning: `--dialect` is deprecated, use `--api`\n{new.err}"


@pytest.mark.parametrize(
    ("old", "new", "warned"),
    [
        ("export main --format openai", "export main --api openai", ("--format openai", "--api openai")),
        ("export main --all", "export main --with-forks", ("--all", "--with-forks")),
        (
            "export main --api openai --all",
            "export main --api openai --include-compacted",
            ("--all", "--include-compacted"),
        ),
        ("show main --all", "show main --limit all", ("--all", "--limit all")),
        ("show main --turns 1", "show main -n 1", ("--turns", "--limit")),
        ("tree --all", "tree --limit all", ("--all", "--limit all")),
        ("list --all", "list --include-archived", ("--all", "--include-archived")),
    ],
)
def test_old_options_of_sessions_print_the_same(
    cli: Cli, nexus: Nexus, old: str, new: str, warned: tuple[str, str]
) -> None:
    nexus.session("main").ask("Why?")
    nexus.close()

    before, after = cli("session", *old.split()), cli("session", *new.split())

    assert (before.code, before.out) == (after.code, after.out) == (0, after.out)
    assert before.err == "Warning: `{}` is deprecated, use `{}`\n".format(*warned) + after.err


def test_interrupted_without_a_file_discards_the_open_turn(cli: Cli, nexus: Nexus) -> None:
    nexus.session("main").ask("Why?")
    nexus.close()

    untouched = cli("session", "record", "main", "--interrupt", "--json")
    ended = cli("session", "record", "main", "--interrupted", "--json")

    assert json.loads(untouched.out)["done"] is False
    assert json.loads(ended.out)["done"] is True
    assert ended.err.startswith("Warning: `--interrupted` is deprecated, use `--discard-open-turn`\n")


def test_a_synonym_says_nothing(cli: Cli) -> None:
    assert cli("prompt") == cli("show")


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize(
    ("typed", "printed", "old"),
    [
        (["log", "--noisy"], "True 1 ", "--noisy"),
        (["log", "--level", "3"], "False 3 ", "--level"),
        (["log", "--level=3"], "False 3 ", "--level"),
        (["log", "--level", "3", "--depth", "5"], "False 5 ", "--level"),
        (["log", "--deepest"], "False 99 ", "--deepest"),
        (["log", "--who", "a", "--who", "b"], "False 1 a b", "--who"),
        (["history"], "False 9 ", "nexus git history"),
        (["history", "--depth", "2"], "False 2 ", "nexus git history"),
        (["log", "--short"], "clean", "nexus git log --short"),
    ],
    ids=" ".join,
)
def test_a_group_of_a_plugin_may_have_old_names(cli: Cli, typed: list[str], printed: str, old: str) -> None:
    outcome = cli("git", *typed)

    assert (outcome.code, outcome.out) == (0, f"{printed}\n")
    assert outcome.err.startswith(f"Warning: `{old}` is deprecated, use `")
    assert cli("repo", *typed) == outcome


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize("typed", [["log", "--depth", "4"], ["log", "--loud", "--name", "a"], ["status"]], ids=" ".join)
def test_a_new_name_is_not_warned_of(cli: Cli, typed: list[str]) -> None:
    assert cli("git", *typed).err == ""


@pytest.mark.usefixtures("git")
def test_a_wrong_value_of_an_old_option_is_a_usage_error_of_the_new_one(cli: Cli) -> None:
    outcome = cli("git", "log", "--level", "deep")

    assert (outcome.code, outcome.out) == (2, "")
    assert "'--depth'" in outcome.err


@pytest.mark.parametrize(
    ("typed", "command"),
    [("mcp pin --bogus", "nexus mcp approve"), ("session verify --bogus", "nexus ledger verify")],
)
def test_old_command_names_the_whole_new_one_in_its_error(cli: Cli, typed: str, command: str) -> None:
    assert f"'{command} --help' explains it" in cli(*typed.split()).err
