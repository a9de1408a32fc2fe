"""Broken files with passwords in them, as they are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.config.covering import cover
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
    assert cover(text) == shown


@given(st.lists(PIECES | st.text(max_size=8)).map("".join))
def test_nothing_but_the_shape_and_names_of_fields_is_left_of_any_text(text: str) -> None:
    covered = cover(text)

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
