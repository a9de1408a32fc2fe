"""The net itself: every command is in it, no golden is left over, and it holds."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import chain

import pytest

from tests.golden.cases import Case, gist
from tests.golden.goldens import ANY, NET, align, compare, path_of, write
from tests.golden.world import World

AREAS = {
    "assemble": ("test_assemble", "CASES"),
    "commands": ("test_commands", "CASES"),
    "compaction": ("test_compaction", "CASES"),
    "compaction-reports": ("test_compaction", "SUMMARIZERS"),
    "context": ("test_context", "CONTEXT"),
    "dialects": ("test_messages", "TRANSLATIONS"),
    "errors": ("test_errors", "WRONG"),
    "errors-of-commands": ("test_errors", "CASES"),
    "explain": ("test_context", "EXPLAIN"),
    "fit": ("test_messages", "FITS"),
    "repair": ("test_messages", "REPAIRS"),
    "replay": ("test_replay", "CASES"),
    "serve": ("test_serve", "CASES"),
    "sessions": ("test_sessions", "READ"),
    "sessions-written": ("test_sessions", "WRITE"),
    "show": ("test_show", "CASES"),
}
"""By folder: the module and the name of its cases."""
WITHOUT_JSON = {
    "acp",
    "config schema",
    "config set",
    "config unset",
    "mcp add",
    "mcp disable",
    "mcp enable",
    "mcp export",
    "mcp import",
    "mcp login",
    "mcp logout",
    "mcp approve",
    "mcp remove",
    "mcp serve",
    "plugin new",
    "trust allow",
    "trust deny",
}
"""Commands that print no JSON, or nothing else."""


def cases_of(area: str) -> dict[str, object]:
    module, name = AREAS[area]
    found: dict[str, object] = getattr(import_module(f"tests.golden.{module}"), name)
    return found


def commands_of(world: World, *group: str) -> list[str]:
    """The commands that a help page lists, those of groups below it included."""
    printed = world.run(*group, "--help").out
    _, _, listed = printed.partition("Commands:\n")
    names = re.findall(r"^  (\S+)", listed.partition("\n\n")[0], re.MULTILINE)
    return list(chain.from_iterable(commands_of(world, *group, name) for name in names)) or [" ".join(group)]


def test_every_command_has_a_golden(worlds: list[World]) -> None:
    with worlds[0].entered():
        commands = commands_of(worlds[0])
    cases = [case for area in AREAS for case in cases_of(area).values() if isinstance(case, Case)]
    lines = [f" {line} " for case in cases for line in case.lines]
    lines.append(" mcp serve ")

    missing = [
        command
        for command in commands
        if not any(f" {command} " in line and (" --json " in line or command in WITHOUT_JSON) for line in lines)
    ]

    assert len(commands) > 50
    assert missing == []


@pytest.mark.parametrize("area", AREAS)
def test_every_golden_has_its_case(area: str) -> None:
    assert sorted(path.stem for path in (NET / area).iterdir()) == sorted(cases_of(area))


def test_no_folder_is_left_over() -> None:
    assert sorted(path.name for path in NET.iterdir() if path.is_dir()) == sorted(AREAS)


def test_a_golden_that_differs_fails_with_the_difference() -> None:
    path = path_of("show", "acme")
    text = path.read_text(encoding="utf-8")

    with pytest.raises(pytest.fail.Exception, match=r"-Be brief[^\n]*\n\+Be loud|-You are a coding assistant"):
        compare(path, text.replace("Be brief", "Be loud"))
    compare(path, text)


def test_only_digests_may_depend_on_the_directory() -> None:
    path = NET / "never-written.txt"

    with pytest.raises(AssertionError, match="depends on the directory"):
        write(path, "a", "b")
    assert not path.exists()
    assert align(f"x {'0' * 32} {'1' * 64}", f"x {ANY} {'1' * 64}") == f"x {ANY} {'1' * 64}"


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        (
            "Warning: /a/b.json:5:16: provider.model is ignored [protected-setting]",
            "~ Warning: /a/b.json:5:16: provider.model [protected-setting]",
        ),
        ("did you mean 'tools'?", "~ 'tools'"),
        (
            "1,849 tokens of 200,000 (0.9%); `nexus trust allow` decides, or --yes",
            "~ 1,849 200,000 0.9% `nexus trust allow` --yes",
        ),
        ("nothing that counts", "~"),
    ],
)
def test_the_gist_of_a_sentence_survives_other_words(sentence: str, wanted: str) -> None:
    assert gist(sentence) == wanted
