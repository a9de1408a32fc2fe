from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_plugins.mcp._tool_arguments import ToolArgument, format_arguments, list_arguments
from tests.conftest import Cli
from tests.plugins.mcp.world import define, script


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
        ({"type": "array"}, "list"),
        ({"enum": ["a", 1]}, '"a" or 1'),
        ({"enum": [1, 2, 3, 4, 5, 6]}, "1 or 2 or 3 or 4 or 2 more"),
        ({"const": "x"}, '"x"'),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Many"}]}, "string or list of number"),
        ({"$ref": "#/$defs/Self"}, "list of list of list of list of any"),
        ({"$ref": "https://example.com/schema"}, "any"),
        ({}, "any"),
        (True, "any"),
        ({"type": 7, "description": 7}, "any"),
    ],
)
def test_the_type_of_an_argument_is_described_in_a_few_words(schema: Any, type_: str) -> None:
    definitions = {
        "Many": {"type": "array", "items": {"type": "number"}},
        "Self": {"type": "array", "items": {"$ref": "#/$defs/Self"}},
    }

    (argument,) = list_arguments({"properties": {"x": schema}, "$defs": definitions})

    assert argument == ToolArgument("x", type_, required=False, description="")


def test_required_arguments_come_first_and_no_line_is_longer_than_80_characters() -> None:
    properties = {
        "limit": {"type": "integer", "description": "How many.\nAt most 100."},
        "a_very_long_name_of_an_argument_indeed": {"type": "string", "description": "y" * 200},
        "q": {"type": "string"},
    }

    arguments = list_arguments({"properties": properties, "required": ["q"]})
    lines = list(format_arguments(arguments))

    assert [each.name for each in arguments] == ["q", "limit", "a_very_long_name_of_an_argument_indeed"]
    assert lines[0].split() == ["q", "string", "required"]
    assert lines[1].split() == ["limit", "integer", "optional", "How", "many.", "At", "most", "100."]
    assert max(map(len, lines)) == 80


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {"x": 1}, "required": 7}])
def test_a_schema_without_usable_properties_is_no_error(schema: dict[str, Any]) -> None:
    assert [each.type for each in list_arguments(schema)] in ([], ["any"])


def test_the_tools_of_a_server_are_listed_with_their_arguments(cli: Cli, nexus_home: Path) -> None:
    properties = {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    tools = [{"name": "weather", "description": "Tells the weather.", "inputSchema": schema}]
    define(nexus_home, sky={"command": script(), "env": {"TOOLS": json.dumps(tools)}})

    text, document = cli("mcp", "tools").out, json.loads(cli("mcp", "tools", "--json").out)

    assert text.splitlines() == [
        "mcp__sky__weather (server sky)",
        "  Tells the weather.",
        "    city  string   required  Where.",
        "    days  integer  optional",
    ]
    assert document["tools"][0]["arguments"] == [
        {"name": "city", "type": "string", "required": True, "description": "Where."},
        {"name": "days", "type": "integer", "required": False, "description": ""},
    ]
