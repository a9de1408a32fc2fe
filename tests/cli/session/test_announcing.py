"""Commands that only look are not heard of by plugins that watch; `session record` is."""

from __future__ import annotations

import re

import pytest

from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import Cli


def heard(outcome_err: str) -> list[str]:
    """The hooks that announce, as --trace-hooks lists them."""
    return re.findall(r"^(nexus_(?:call_assembled|step_recorded)) +telemetry .* ms  told$", outcome_err, re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("context",),
        ("assemble", "Why?"),
        ("assemble", "--session", "s", "And?"),
        ("assemble", "--session", "new", "And?"),
        ("assemble", "--session", "s", "--json"),
        ("diff", "s", "s"),
        ("explain", "--session", "s", "Why"),
        ("session", "show", "s"),
        ("session", "list"),
    ],
    ids=" ".join,
)
def test_a_command_that_only_looks_is_not_heard(cli: Cli, talk: Talk, command: tuple[str, ...]) -> None:
    talk("s", "Why?")

    outcome = cli("--trace-hooks", *command)

    assert (outcome.code, heard(outcome.err)) == (0, [])


def test_what_is_recorded_and_what_is_to_be_sent_then_is_heard_once(cli: Cli, type_in: TypeIn) -> None:
    type_in("Why?")
    asked = cli("--trace-hooks", "session", "record", "s", "-", "--role", "user", "--json", "--api", "openai")
    type_in("Because.")
    answered = cli("--trace-hooks", "session", "record", "s", "-", "--role", "assistant")

    assert (asked.code, heard(asked.err)) == (0, ["nexus_call_assembled"])
    assert (answered.code, heard(answered.err)) == (0, ["nexus_step_recorded"])
