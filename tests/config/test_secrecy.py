"""No error shows a line that is about MCP servers."""

import pytest

from nexus_core.config.lines import Lines
from nexus_core.config.secrecy import secret_lines


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
