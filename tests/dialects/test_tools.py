"""Definitions of tools: read in any shape, written in the one that an API wants."""

from typing import Any

import pytest
from anthropic.types import ToolUnionParam
from google.genai import types as gemini
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionToolUnionParam
from openai.types.responses import ToolParam
from pydantic import TypeAdapter

from nexus_core.dialects.registry import get_dialect
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.errors import MessageError
from nexus_core.types.messages import Tool
from tests.dialects.support import JSON, OBJECTS, StrictType, accepted, attempted, spoiled, values_of

UNHURRIED = settings(deadline=None)
APIS = ("openai", "responses", "anthropic", "gemini")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "openai",
        {"type": "function", "function": {"name": "ls", "description": "List.", "parameters": SCHEMA, "strict": True}},
    ),
    "responses": (
        "responses",
        {"type": "function", "name": "ls", "description": "List.", "parameters": SCHEMA, "strict": False},
    ),
    "anthropic": (
        "anthropic",
        {"name": "ls", "description": "List.", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
    ),
    "anthropic with a type": ("anthropic", {"type": "custom", "name": "ls", "input_schema": SCHEMA}),
    "gemini": (
        "gemini",
        {"functionDeclarations": [{"name": "ls", "description": "List.", "parametersJsonSchema": SCHEMA}]},
    ),
    "gemini by python names": (
        "gemini",
        {"function_declarations": [{"name": "ls", "parameters_json_schema": SCHEMA, "behavior": "BLOCKING"}]},
    ),
}
BUILT_IN: dict[str, tuple[str, dict[str, Any]]] = {
    "a search of Responses": ("responses", {"type": "web_search", "filters": None}),
    "a server of Responses": ("responses", {"type": "mcp", "server_label": "s", "server_url": "https://a"}),
    "a search of Anthropic": ("anthropic", {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
    "a shell of Anthropic": ("anthropic", {"type": "bash_20250124", "name": "bash"}),
    "a search of Gemini": ("gemini", {"googleSearch": {}}),
    "code of Gemini": ("gemini", {"code_execution": {}}),
}
VALIDATORS = {
    "openai": StrictType(list[ChatCompletionToolUnionParam]),
    "responses": StrictType(list[ToolParam]),
    "anthropic": StrictType(list[ToolUnionParam]),
}


@pytest.mark.parametrize(("api", "tool"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("asked", APIS)
def test_every_shape_is_read_by_every_dialect(asked: str, api: str, tool: dict[str, Any]) -> None:
    (read,) = get_dialect(asked).read_tools([tool])

    assert (read.name, read.parameters, read.api) == ("ls", SCHEMA, api)


@pytest.mark.parametrize(("api", "tool"), (SHAPES | BUILT_IN).values(), ids=SHAPES | BUILT_IN)
def test_a_tool_comes_back_to_its_own_api_as_it_was(api: str, tool: dict[str, Any]) -> None:
    assert write_tools(read_tools([tool], api), api) == [tool]


@pytest.mark.parametrize(("api", "tool"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("to", APIS)
def test_a_tool_of_one_api_is_written_for_every_other(to: str, api: str, tool: dict[str, Any]) -> None:
    written = write_tools(read_tools([tool], api), to)

    if to == "gemini":
        TypeAdapter(list[gemini.Tool]).validate_python(written)
    else:
        accepted(VALIDATORS[to], written)
    (read,) = read_tools(written, to)
    assert (read.name, read.parameters) == ("ls", SCHEMA)


@pytest.mark.parametrize(("api", "tool"), BUILT_IN.values(), ids=BUILT_IN)
@pytest.mark.parametrize("to", APIS)
def test_a_tool_that_a_provider_runs_is_left_out_for_others(to: str, api: str, tool: dict[str, Any]) -> None:
    written = write_tools(read_tools([tool], api), to)

    assert written == ([tool] if to == api else [])


@UNHURRIED
@given(st.lists(values_of(ChatCompletionToolUnionParam), max_size=2))
def test_chat_tools_come_back_as_they_were(tools: list[Any]) -> None:
    assert write_tools(read_tools(tools, "openai"), "openai") == tools


@UNHURRIED
@given(st.lists(values_of(ToolParam), max_size=2))
def test_tools_of_responses_come_back_as_they_were(tools: list[Any]) -> None:
    assert write_tools(read_tools(tools, "responses"), "responses") == tools


@UNHURRIED
@given(st.lists(values_of(ToolUnionParam), max_size=2))
def test_tools_of_anthropic_come_back_as_they_were(tools: list[Any]) -> None:
    assert write_tools(read_tools(tools, "anthropic"), "anthropic") == tools


@UNHURRIED
@given(
    st.sampled_from(APIS),
    st.lists(
        JSON | OBJECTS | spoiled(values_of(ChatCompletionToolUnionParam) | values_of(ToolParam)), min_size=1, max_size=2
    ),
)
def test_reading_refuses_or_understands_and_never_breaks(api: str, tools: list[Any]) -> None:
    read = attempted(get_dialect(api).read_tools, tools) or ()

    for to in APIS:
        assert len(write_tools(read, to)) <= len(read)


def test_gemini_declares_many_functions_in_one_element() -> None:
    tools: list[dict[str, Any]] = [
        {"functionDeclarations": [{"name": "a"}, {"name": "b", "response": {"type": "STRING"}}], "googleSearch": {}},
        {"functionDeclarations": [{"name": "c"}]},
        {"codeExecution": {}},
    ]

    read = read_tools(tools, "gemini")

    assert [tool.name for tool in read] == ["a", "b", "googleSearch", "c", "codeExecution"]
    assert write_tools(read, "gemini") == tools
    assert [tool["name"] for tool in write_tools(read, "anthropic")] == ["a", "b", "c"]


def test_functions_of_others_are_declared_to_gemini_together() -> None:
    made = [Tool(name="a", parameters=SCHEMA), Tool(name="b")]

    assert write_tools(made, "gemini") == [
        {"functionDeclarations": [{"name": "a", "parametersJsonSchema": SCHEMA}, {"name": "b"}]}
    ]


def test_an_object_of_geminis_sdk_is_read() -> None:
    declared = gemini.FunctionDeclaration(
        name="ls",
        parameters=gemini.Schema(
            type=gemini.Type.OBJECT,
            properties={"path": gemini.Schema(type=gemini.Type.STRING, nullable=True)},
            property_ordering=["path"],
        ),
    )

    (tool,) = read_tools([gemini.Tool(function_declarations=[declared])], "gemini")

    assert write_tools([tool], "anthropic") == [
        {
            "name": "ls",
            "input_schema": {"type": "object", "properties": {"path": {"type": ["string", "null"]}}},
        }
    ]


def test_geminis_schema_is_translated_only_where_it_is_a_schema() -> None:
    properties = {
        "type": {"type": "STRING", "enum": ["STRING"]},
        "list": {"type": "ARRAY", "min_items": 1, "items": {"any_of": [{"type": "INTEGER"}, {"type": "NULL"}]}},
    }
    tool = {"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": properties}}]}

    (written,) = write_tools(read_tools([tool], "gemini"), "anthropic")

    assert written["input_schema"] == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["STRING"]},
            "list": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        },
    }


def test_a_tool_of_mcp_is_read() -> None:
    tool = {"name": "ls", "description": "List.", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}

    (read,) = read_tools([tool], "openai")

    assert write_tools([read], "openai") == [
        {"type": "function", "function": {"name": "ls", "description": "List.", "parameters": SCHEMA}}
    ]


def test_a_custom_tool_crosses_between_openais_apis_and_is_a_function_elsewhere() -> None:
    grammar = {"syntax": "lark", "definition": "x"}
    chat = {"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar", "grammar": grammar}}}
    flat = {"type": "custom", "name": "sql", "format": {"type": "grammar", **grammar}}

    assert write_tools(read_tools([chat], "openai"), "responses") == [flat]
    assert write_tools(read_tools([flat], "responses"), "openai") == [chat]
    (foreign,) = write_tools(read_tools([chat], "openai"), "anthropic")
    assert foreign["input_schema"]["required"] == ["input"]


@pytest.mark.parametrize("strict", [True, False])
def test_responses_is_told_how_strict_a_function_is(strict: bool) -> None:
    tool = {"type": "function", "function": {"name": "ls"} | ({"strict": True} if strict else {})}

    (written,) = write_tools(read_tools([tool], "openai"), "responses")

    assert written == {"type": "function", "name": "ls", "parameters": None, "strict": strict}


def test_a_tool_without_arguments_is_valid_everywhere() -> None:
    made = [Tool(name="now")]

    for api, validator in VALIDATORS.items():
        accepted(validator, write_tools(made, api))


@pytest.mark.parametrize(
    ("tool", "path", "what"),
    [
        ("ls", "tools[0]", "expected an object, not the text 'ls'"),
        ({}, "tools[0]", "no API defines a tool this way: []"),
        ({"type": "function", "function": {"name": 1}}, "tools[0].function.name", "expected text, not the number 1"),
        ({"type": "function", "name": "f", "parameters": []}, "tools[0].parameters", "expected an object, not a list"),
        ({"name": "f", "input_schema": "x"}, "tools[0].input_schema", "expected an object, not the text 'x'"),
        (
            {"functionDeclarations": [{"description": "x"}]},
            "tools[0].functionDeclarations[0].name",
            "there is no 'name'",
        ),
    ],
)
def test_what_is_no_tool_is_refused_with_the_place(tool: object, path: str, what: str) -> None:
    with pytest.raises(MessageError) as caught:
        read_tools([tool], "openai")

    assert (caught.value.path, caught.value.what) == (path, what)
