from pathlib import Path

from nexus_core.testing import write_files
from tests.conftest import Cli


def test_rules_that_were_passed_over_are_named(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Run the tests.", "CLAUDE.md": "Never run the tests."})

    outcome = cli("doctor")

    assert outcome.code == 1
    assert f"{work}/CLAUDE.md: says something else, and is not used: AGENTS.md comes first [passed-over]" in outcome.out


def test_a_copy_or_a_mention_of_the_rules_is_fine(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Run the tests.", "CLAUDE.md": "@AGENTS.md\n", "GEMINI.md": "Run the tests.\n"})

    assert cli("doctor").code == 0
