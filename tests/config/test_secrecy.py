"""No error shows a line that may hold a secret."""

import pytest

from nexus_core.config.lines import Lines, Position
from nexus_core.config.secrecy import secret_lines, secret_lines_around


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
    assert list(secret_lines(Lines(text))) == numbers


@pytest.mark.parametrize("word", ["mcp_servers", '"mcpServers"', "MCP_SERVERS", "m\0c\0p\0_\0s\0e\0r\0v\0e\0r\0s\0"])
def test_in_what_is_no_json_everything_after_the_first_mention_is_secret(word: str) -> None:
    assert list(secret_lines(Lines(f"{{\n1\n{word}: [\n2\n}}"))) == [3, 4, 5]


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
    assert secret_lines_around(Lines(text), Position(2, 1)) == numbers


@pytest.mark.acceptance("T10")
def test_a_key_is_found_at_the_end_of_a_long_line_if_that_is_what_is_shown() -> None:
    line = f'{{"a": "{"x " * 5000}", "b": "ghp_{"a1" * 18}"}}'

    assert secret_lines_around(Lines(line), Position(1, len(line))) == {1}
    assert secret_lines_around(Lines(line), Position(1, 1)) == frozenset()
