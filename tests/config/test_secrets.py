"""Broken files with passwords in them, as they are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.config.load import LineIndex, TextPosition
from nexus_core.config.secrets import cover_text, find_secret_lines, find_server_lines
from nexus_core.testing import write_files
from tests.conftest import Cli

PIECES = st.sampled_from(
    ['"', "\\", "\n", "\r\n", " ", "{", "}", "[", "]", ",", ":", "//", "/*", "\t", "env", "hunter2"]
)
SHOWN = re.compile(r'[\s{}\[\],:"·]+|servers|name|type|command|args|env|cwd|url|headers|enabled|true|false|null')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"env": {"TOKEN": "hunter2"}', '"env": {"·····": "·······"}'),
        ('"args": ["--token", "a\\"b"],', '"args": ["·······", "····"],'),
        ('"command": "hunter2', '"command": "·······'),
        ('"enabled": true, // hunter2: 1', '"enabled": true, ·············'),
        ("token: hunter2\n'hunter2'", "·····: ·······\n·········"),
        ('"environment": "url"', '"···········": "url"'),
    ],
)
def test_words_are_covered_and_the_shape_of_a_line_is_not(text: str, shown: str) -> None:
    assert cover_text(text, len(text)) == shown


@given(st.lists(PIECES | st.text(max_size=8)).map("".join))
def test_nothing_but_the_shape_and_names_of_fields_is_left_of_any_text(text: str) -> None:
    covered = cover_text(text, len(text))

    assert len(covered) == len(text)
    assert [place for place, each in enumerate(covered) if each in "\r\n"] == [
        place for place, each in enumerate(text) if each in "\r\n"
    ]
    assert SHOWN.sub("", covered) == ""


@pytest.mark.acceptance("M-02", "R10", "T10")
def test_a_broken_file_of_servers_is_shown_with_a_caret_and_without_its_values(cli: Cli, work: Path) -> None:
    broken = '{"mcpServers": {"a": {\n  "command": ["run", "--key", "hunter2"]\n  "env": {"TOKEN": "hunter2"}\n}}}\n'

    write_files(work, {".nexus3/mcp.json": broken})

    outcome = cli("mcp", "list")

    assert outcome.code == 3
    assert outcome.err.splitlines()[4:8] == [
        '  2 |   "command": ["···", "·····", "·······"]',
        '  3 |   "env": {"·····": "·······"}',
        "        ^",
        "  4 | }}}",
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('{\n"provider": {}\n}', []),
        ('{\n"mcp_servers": [\n{}\n],\n"provider": {}\n}', [2, 3, 4]),
        ('{\n"provider": {},\n"mcpServers": {"a": {}}\n}', [3]),
        ('{"mcp_servers": [],\n"provider": {},\n"mcpServers": {}\n}', [1, 2, 3]),
        ('{"mcp_servers": [], "provider": {}}', [1]),
        ('{\n"_comment": "mcp_servers are elsewhere"\n}', [2, 3]),
        ('{\n"plugins": {"x": {"mcp_servers": [\n]}}\n}', [2, 3, 4]),
    ],
)
def test_the_lines_of_servers_are_secret(text: str, numbers: list[int]) -> None:
    assert list(find_server_lines(LineIndex(text))) == numbers


@pytest.mark.parametrize("word", ["mcp_servers", '"mcpServers"', "MCP_SERVERS", "m\0c\0p\0_\0s\0e\0r\0v\0e\0r\0s\0"])
def test_in_what_is_no_json_everything_after_the_first_mention_is_secret(word: str) -> None:
    assert list(find_server_lines(LineIndex(f"{{\n1\n{word}: [\n2\n}}"))) == [3, 4, 5]


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('{\n"provider": {\n"model": "x"\n}', set()),
        ('{\n"api_key_env": "whatever it is",\n"model": "x"\n}', {2}),
        ('{\n"model": "x",\n"key_env": "KEY"\n}', {3}),
        ('{"a": "https://me:secret-4711@example.org",\n"model": "x"\n}', {1}),
        (f'{{\n"token": "ghp_{"a1" * 18}"\n}}', {2}),
        ('{"mcp_servers": [\n{},\n{}]}', {1, 2, 3}),
    ],
)
def test_of_a_line_and_its_neighbours_those_are_secret_that_hold_a_key_or_may(text: str, numbers: set[int]) -> None:
    assert find_secret_lines(LineIndex(text), TextPosition(2, 1)) == numbers


@pytest.mark.acceptance("T10")
def test_a_key_is_found_at_the_end_of_a_long_line_if_that_is_what_is_shown() -> None:
    line = f'{{"a": "{"x " * 5000}", "b": "ghp_{"a1" * 18}"}}'

    assert find_secret_lines(LineIndex(line), TextPosition(1, len(line))) == {1}
    assert find_secret_lines(LineIndex(line), TextPosition(1, 1)) == frozenset()
