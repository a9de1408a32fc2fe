"""What looks like a secret among the words of a command, or in an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.text.written_secrets import HIDDEN, hide_in_line, hide_secrets, secrets_in

SECRET = "hunter22!"  # noqa: S105 - nobody's


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "command",
    [
        ["x", "--token", SECRET],
        ["x", "--api-key", SECRET],
        ["x", "--apiKey", SECRET],
        ["x", f"--password={SECRET}"],
        ["docker", "run", "-e", f"GITHUB_TOKEN={SECRET}"],
        ["x", "--header", f"Authorization: Bearer {SECRET}"],
        ["x", "--header", f"X-Api-Key: {SECRET}"],
        ["x", f"--header=Authorization: {SECRET}"],
        ["x", "${API_TOKEN:-hunter22!}"],
        [f"https://me:{SECRET}@x.example/"],
        [f"https://{SECRET}@x.example/"],
        [f"https://x.example/mcp?a=1&token={SECRET}"],
        [f"postgresql://me:{SECRET}@db.example/x"],
    ],
)
def test_a_secret_is_found_by_what_stands_before_it(command: list[str]) -> None:
    assert SECRET not in " ".join(hide_secrets(command))
    assert HIDDEN in " ".join(hide_secrets(command))


@pytest.mark.parametrize(
    "command",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/home/me"],
        ["uvx", "mcp-server-time", "--local-timezone", "Europe/Vienna"],
        ["x", "--token", "${TOKEN}"],
        ["x", "--token=${env:TOKEN}"],
        ["x", "--header", "Authorization: Bearer ${TOKEN}"],
        ["docker", "run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server:v0.20"],
        ["x", "--keyboard=german-layout", "--author", "me@x.example", "--monkey", "long"],
        ["x", "--token", "--verbose"],
        ["https://x.example:8080/mcp?region=eu-west"],
        ["a-very-long-name-of-a-package-with-the-number-2-in-it"],
    ],
)
def test_ordinary_words_stay(command: list[str]) -> None:
    assert hide_secrets(command) == command


def test_a_command_in_one_line_is_read_word_by_word() -> None:
    assert hide_in_line(f"run x --token '{SECRET}' && y; environment: A") == "run x --token '***' && y; environment: A"
    assert hide_in_line(f"x 'open --token={SECRET}") == "x 'open --token=***"


@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_words_have_as_many_words_without_their_secrets(words: list[str]) -> None:
    hidden = hide_secrets(words)

    assert len(hidden) == len(words)
    assert all(not parts or HIDDEN in word for word, parts in zip(hidden, secrets_in(words), strict=True))


@given(st.sampled_from(["a", "=", "://", "@", "${", "?k=", "-", "token:"]), st.integers(1, 3000))
def test_long_words_do_not_take_longer_than_they_must(piece: str, times: int) -> None:
    assert len(hide_secrets([piece * times])) == 1
