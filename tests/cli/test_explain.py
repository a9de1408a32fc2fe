import json
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli


def test_a_setting_is_explained_with_what_it_overrode(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "own"}}'})
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "project"}}'})

    rows = [line.split() for line in cli("explain", "provider.model").out.splitlines()]

    assert rows == [
        ["provider.model", f"{work}/.nexus3/config.json:1", "'project'", "(local)"],
        ["provider.model", f"{nexus_home}/config.json:1", "overridden", "(global)"],
    ]


def test_a_default_is_explained(cli: Cli) -> None:
    assert "nobody set it; the default is 3" in cli("explain", "compaction.keep_turns").out


def test_a_protected_setting_says_why_it_has_no_effect(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"base_url": "https://evil"}}'})

    assert (
        "provider.base_url is your own decision, not a project's; it is ignored"
        in cli("explain", "provider.base_url").out
    )


def test_a_sentence_is_traced_to_its_file_and_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "# Rules\n\nNever log a token.\n"})

    out = cli("explain", "log a token").out

    assert out.split() == ["Project", "Configuration", f"{work}/.nexus3/NEXUS.md:3", "in", "the", "prompt"]


def test_a_computed_sentence_is_traced_to_its_plugin(cli: Cli) -> None:
    assert "plugin:environment" in cli("explain", "Interactive REPL").out


def test_a_file_is_explained_whether_it_is_used_or_not(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Use me.", "README.md": "# Project"})

    assert "in the prompt (local)" in cli("explain", "NEXUS.md").out
    assert "not in the prompt: the layer has instructions" in cli("explain", "README.md").out


def test_a_part_of_a_file_that_is_not_used_is_explained_with_its_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": {},\n"inputs": []}'})

    out = cli("explain", ".nexus3/mcp.json").out

    assert f"{work}/.nexus3/mcp.json:2" in out
    assert "not used: unknown key 'inputs'" in out


def test_a_sentence_of_a_skipped_file_says_why_it_is_absent(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Use me.", "README.md": "# Project\n\nSecret sauce.\n"})

    assert f"{work}/README.md:3" in cli("explain", "Secret sauce").out


def test_what_is_nowhere_is_said_to_be_nowhere(cli: Cli) -> None:
    outcome = cli("explain", "no such thing at all")

    assert (outcome.code, outcome.out) == (1, "")
    assert "Nothing in the prompt or the settings" in outcome.err


def test_a_misspelt_setting_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("explain", "provider.modl")

    assert (outcome.code, "Did you mean 'provider.model'?" in outcome.err) == (1, True)


@pytest.mark.parametrize("query", ["", " "])
def test_nothing_cannot_be_explained(cli: Cli, query: str) -> None:
    assert cli("explain", query).code == 2


def test_explanations_as_json(cli: Cli) -> None:
    (row,) = json.loads(cli("explain", "context.ancestor_depth", "--json").out)["explanations"]

    assert row["subject"] == "context.ancestor_depth"
