"""The arguments of `client.converse`, both ways."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from nexus_core import MessageError, Tool, get_dialect
from tests.dialects.support import JSON, attempted, extended, spoiled
from tests.effort import conclude, concludes, mostly
from tests.plugins.bedrock.converse import BEDROCK, accepted, values_of

REQUESTS = values_of("ConverseRequest").filter(lambda body: "messages" in body)
SPEC = {"toolSpec": {"name": "look", "description": "Look.", "inputSchema": {"json": {"type": "object"}}}}
MARK = {"cachePoint": {"type": "default"}}
SEARCH = {"systemTool": {"name": "nova_grounding"}}
HI = {"role": "user", "content": [{"text": "Hi"}]}


@given(body=REQUESTS)
def test_whatever_the_api_allows_comes_back_as_it_was(body: Any) -> None:
    before = deepcopy(body)

    assert BEDROCK.write_request(BEDROCK.read_request(body)) == body
    assert body == before


@concludes(0.6)
@given(body=mostly(extended(REQUESTS), spoiled(REQUESTS) | JSON))
def test_anything_at_all_is_understood_or_refused(body: Any) -> None:
    read = attempted(BEDROCK.read_request, body)
    if read:
        written = BEDROCK.write_request(read)
        assert BEDROCK.write_request(BEDROCK.read_request(written)) == written
        conclude()


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [HI], "toolConfig": {"tools": [SPEC, MARK, SEARCH]}},
        {"messages": [HI], "toolConfig": {"tools": [MARK, SPEC, MARK, MARK], "toolChoice": {"tool": {"name": "look"}}}},
        {"messages": [HI], "toolConfig": {}},
        {"messages": [HI], "system": []},
        {"messages": [HI], "system": [{"text": "Be brief."}, MARK, {"guardContent": {"text": {"text": "x"}}}]},
        {"messages": [], "modelId": "m"},
        {
            "modelId": "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ",
            "promptVariables": {"a": {"text": "b"}},
        },
        {"messages": [HI], "additionalModelRequestFields": {"thinking": {"type": "enabled"}}, "_odd": {"new": [1]}},
    ],
)
def test_it_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert BEDROCK.write_request(BEDROCK.read_request(body)) == body


def test_what_is_read_of_a_request() -> None:
    body = accepted(
        {
            "modelId": "m",
            "system": [{"text": "Be brief."}],
            "messages": [HI],
            "toolConfig": {"tools": [SPEC, SEARCH], "toolChoice": {"auto": {}}},
            "inferenceConfig": {"maxTokens": 9},
        }
    )

    conversation = BEDROCK.read_request(body)

    assert [(message.role, message.content) for message in conversation.messages] == [
        ("system", "Be brief."),
        ("user", "Hi"),
    ]
    assert conversation.tools[0] == Tool(name="look", description="Look.", parameters={"type": "object"}, api="bedrock")
    assert conversation.tools[1].name == "nova_grounding"
    assert conversation.extra == {
        "modelId": "m",
        "inferenceConfig": {"maxTokens": 9},
        "toolConfig": {"toolChoice": {"auto": {}}},
    }


def test_tools_that_bedrock_runs_itself_go_to_bedrock_only() -> None:
    tools = BEDROCK.read_tools([SPEC, MARK, SEARCH])

    assert BEDROCK.write_tools(tools) == [SPEC, MARK, SEARCH]
    assert [tool["name"] for tool in get_dialect("anthropic").write_tools(tools)] == ["look"]


BAD: list[tuple[object, str, str]] = [
    ([], "", "the arguments of a call"),
    ({"modelId": "m"}, "messages", "there is no 'messages'"),
    ({"messages": iter([])}, "messages", "expected a list"),
    ({"messages": [HI, {"role": "user", "content": [{}]}]}, "messages[1].content[0]", "empty"),
    ({"messages": [HI], "system": "Be brief."}, "system", "expected a list"),
    ({"messages": [HI], "system": [{"text": 1}]}, "system[0].text", "expected text"),
    ({"messages": [HI], "toolConfig": []}, "toolConfig", "expected an object"),
    ({"messages": [HI], "toolConfig": {"tools": {"a": 1}}}, "toolConfig.tools", "expected a list"),
    ({"messages": [HI], "toolConfig": {"tools": [SPEC, {"toolSpec": {}}]}}, "toolConfig.tools[1].toolSpec.name", ""),
    ({"messages": [HI], "toolConfig": {"tools": [SPEC, {"x": 1}]}}, "toolConfig.tools[1]", "no API"),
    ({"messages": [HI], "toolConfig": {"tools": [print]}}, "toolConfig.tools[0]", "does not run functions"),
]


@pytest.mark.parametrize(("body", "path", "words"), BAD, ids=[path or "all" for _, path, _ in BAD])
def test_what_is_no_request_is_refused_with_its_place(body: object, path: str, words: str) -> None:
    with pytest.raises(MessageError) as refused:
        BEDROCK.read_request(body)

    assert refused.value.path == path
    assert words in str(refused.value)
