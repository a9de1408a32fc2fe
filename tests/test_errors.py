import pickle

import pytest

from nexus_core import ConfigError, MissingExtraError, NexusError, PluginError, UnknownNameError
from nexus_core.errors import did_you_mean
from nexus_core.plugin import Extra


def test_a_message_says_what_where_and_what_to_do() -> None:
    error = ConfigError("invalid JSON", where="config.json:3:1", hint="remove the comma")

    assert str(error) == "invalid JSON\n  at config.json:3:1\n  remove the comma"


def test_an_unknown_name_suggests_the_nearest() -> None:
    assert "did you mean 'environment'?" in str(UnknownNameError("plugin", "enviroment", ["environment", "tagged"]))


def test_an_unknown_name_far_from_all_lists_what_there_is() -> None:
    assert "known: environment, tagged" in str(UnknownNameError("plugin", "xyz", ["tagged", "environment"]))


def test_names_that_break_a_line_or_steer_a_terminal_are_listed_in_one_line() -> None:
    error = UnknownNameError("session", "zzz", ["plain", "two\nlines", "red\x1b[31m", "left\u202e"])

    assert error.hint == "known: 'left\\u202e', plain, 'red\\x1b[31m', 'two\\nlines'"
    assert len(str(error).splitlines()) == 2


def test_an_unknown_name_where_there_is_nothing_says_so() -> None:
    assert "no renderer exists" in str(UnknownNameError("renderer", "xyz", []))


def test_an_unknown_session_in_an_empty_ledger_names_what_creates_one() -> None:
    error = UnknownNameError("session", "xyz", [])

    assert error.hint == "no sessions yet; `nexus session import` or `session.ask()` creates one"


def test_an_endless_name_is_not_repeated_in_full() -> None:
    error = UnknownNameError("session", "x" * 100_000, ["a"])

    assert len(error.what) < 300
    assert error.name == "x" * 100_000


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert did_you_mean("xyz", ["environment"]) == ""


def test_a_missing_extra_says_what_to_install() -> None:
    error = MissingExtraError("mcp", Extra("mcp", modules=("mcp",)))

    assert "pip install 'nexusctx[mcp]'" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        NexusError("what", where="where", hint="hint"),
        PluginError("what", plugin="p", hook="h"),
        MissingExtraError("mcp", Extra("mcp", modules=("mcp",))),
        UnknownNameError("plugin", "a", ["ab"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_a_process_boundary(error: NexusError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_of_many_known_names_only_some_are_listed() -> None:
    error = UnknownNameError("setting", "zzz", [f"name{number:02}" for number in range(45)])

    assert str(error).endswith("name11 and 33 more")
