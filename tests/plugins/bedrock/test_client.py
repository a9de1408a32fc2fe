"""A whole tool loop in a session, with a real client of boto3 and a server that answers as Bedrock does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from nexus_core import MessageError, Nexus, Session, UnknownNameError, Usage
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import Cli
from tests.dialects.support import Loopback, listening
from tests.plugins.bedrock.converse import BEDROCK, accepted, client, in_json, stream_of

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOLS = [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2Vhb"}}}
SEALED = {"reasoningContent": {"redactedContent": "AAE="}}
CALLS = [
    {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"path": "a.py"}}},
    {"toolUse": {"toolUseId": "tooluse_2", "name": "look", "input": {"path": "b.py"}}},
]
USAGE = {"inputTokens": 36, "outputTokens": 20, "totalTokens": 120, "cacheReadInputTokens": 64}
ASKED: dict[str, Any] = {
    "output": {"message": {"role": "assistant", "content": [THOUGHT, SEALED, {"text": "Let me see."}, *CALLS]}},
    "stopReason": "tool_use",
    "usage": USAGE,
    "metrics": {"latencyMs": 1},
}
PIECES: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": b"\x00\x01"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "It expires "}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "too soon."}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


@pytest.fixture(scope="module")
def bedrock(server: Loopback) -> Iterator[Any]:
    """A client of boto3; making one takes longer than all that these tests do with it."""
    with closing(client(server.url)) as made:
        yield made


@pytest.fixture
def loopback(server: Loopback) -> Loopback:
    for heard in (server.bodies, server.paths, server.answers):
        heard.clear()
    return server


def answered(session: Session, loopback: Loopback, bedrock: Any) -> Any:
    """The last request of a turn in which the model looks at two files, and answers in a stream."""
    loopback.answers = [ASKED]
    loopback.answer = stream_of(PIECES)
    step = session.record(bedrock.converse(**session.ask("Why does the token expire?").to("bedrock")))
    session.record([call.result(f"the text of {call.arguments['path']}") for call in step.tool_calls])
    body = session.next().to("bedrock")
    session.record(list(bedrock.converse_stream(**body)["stream"]))
    return accepted(body)


def test_a_session_speaks_to_bedrock(make_nexus: MakeNexus, loopback: Loopback, bedrock: Any) -> None:
    session = make_nexus().session("main", model=CLAUDE, tools=TOOLS)

    body = answered(session, loopback, bedrock)

    assert loopback.paths[0].endswith("/converse")
    assert loopback.paths[1].endswith("/converse-stream")
    assert body["modelId"] == CLAUDE
    assert loopback.bodies[1]["messages"][1] == ASKED["output"]["message"]
    assert loopback.bodies[1]["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "the text of a.py"}]}},
        {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": "the text of b.py"}]}},
    ]
    assert not session.is_open
    assert session.messages[-1].content == "It expires too soon."
    assert session.usage == Usage(input_tokens=200, output_tokens=40, cached_input_tokens=128)


def test_another_program_goes_on_with_what_bedrock_said(
    make_nexus: MakeNexus, loopback: Loopback, bedrock: Any
) -> None:
    nexus = make_nexus()
    answered(nexus.session("main", model=CLAUDE, tools=TOOLS), loopback, bedrock)

    with Nexus(nexus.cwd, home=nexus.home) as other:
        body = accepted(other.session("main").ask("And now?").to("bedrock"))

    assert body["messages"][1]["content"][1] == {"reasoningContent": {"redactedContent": b"\x00\x01"}}
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"] * 2 + ["user"]


def test_another_provider_goes_on_where_bedrock_stopped(
    make_nexus: MakeNexus, loopback: Loopback, bedrock: Any
) -> None:
    session = make_nexus().session("main", model=CLAUDE, tools=TOOLS)
    answered(session, loopback, bedrock)

    body = session.ask("And now?").to("openai")

    assert [message["role"] for message in body["messages"]] == ["system", "user", "user", "assistant"] + [
        "tool"
    ] * 2 + [
        "assistant",
        "user",
    ]


def test_a_stream_that_breaks_off_is_not_recorded(make_nexus: MakeNexus, loopback: Loopback, bedrock: Any) -> None:
    session = make_nexus().session("main", model=CLAUDE)
    loopback.answer = stream_of(PIECES[:3])
    events = list(bedrock.converse_stream(**session.ask("Hi").to("bedrock"))["stream"])

    with pytest.raises(MessageError, match="the stream broke off"):
        session.record(events)

    assert session.is_open


def test_a_stream_that_was_not_read_is_refused(make_nexus: MakeNexus, loopback: Loopback, bedrock: Any) -> None:
    session = make_nexus().session("main", model=CLAUDE)
    loopback.answer = stream_of(PIECES)
    response = bedrock.converse_stream(**session.ask("Hi").to("bedrock"))

    with pytest.raises(MessageError, match=r"list\(response\['stream'\]\)"):
        BEDROCK.read_reply(response)
    with pytest.raises(MessageError, match=r"list\(…\['stream'\]\)"):
        session.record(response)

    assert list(response["stream"])[-1].keys() == {"metadata"}


def test_the_message_alone_is_recorded_too(make_nexus: MakeNexus) -> None:
    session = make_nexus().session("main", model=CLAUDE)
    session.ask("Hi")

    step = session.record({"role": "assistant", "content": [{"text": "Hello."}]})

    assert (step.text, step.done) == ("Hello.", True)


def test_the_callers_own_arguments_stand_where_converse_has_them(make_nexus: MakeNexus) -> None:
    context = make_nexus().session("main", model=CLAUDE, tools=TOOLS).ask("Hi")

    body = context.to("bedrock", model="amazon.nova-pro-v1:0", temperature=0.5, toolConfig={"toolChoice": {"any": {}}})

    assert accepted(body)["modelId"] == "amazon.nova-pro-v1:0"
    assert body["inferenceConfig"] == {"temperature": 0.5}
    assert body["toolConfig"] == {"tools": TOOLS, "toolChoice": {"any": {}}}


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("us.amazon.nova-pro-v1:0", ["text", "text", "cachePoint"]),
        (CLAUDE, ["text", "text", "cachePoint"]),
        ("anthropic.claude-3-haiku-20240307-v1:0", ["text", "text"]),
        ("mistral.mistral-large-2407-v1:0", ["text", "text"]),
    ],
)
def test_models_that_keep_what_they_read_are_told_what_to_keep(
    make_nexus: MakeNexus, model: str, kinds: list[str]
) -> None:
    body = accepted(make_nexus().session("main", model=model).ask("Why? " * 3000).to("bedrock"))

    assert [next(iter(block)) for block in body["messages"][0]["content"]] == kinds


def test_the_callers_own_marks_count(make_nexus: MakeNexus) -> None:
    mark = {"cachePoint": {"type": "default"}}
    content = [{"text": "Why? " * 3000}, mark, {"text": "How?"}, mark, {"text": "When?"}, mark, {"text": "Who?"}]

    context = make_nexus().session("main", model=CLAUDE, tools=[*TOOLS, mark]).ask({"role": "user", "content": content})
    body = accepted(context.to("bedrock"))

    assert body["toolConfig"]["tools"] == [*TOOLS, mark]
    assert json.dumps(body).count("cachePoint") == 4


def test_a_model_of_bedrock_is_asked_without_the_plugin_too(make_nexus: MakeNexus) -> None:
    session = make_nexus(disable={"bedrock"}).session("main", model="amazon.nova-pro-v1:0", tools=[{"name": "look"}])

    assert session.ask("Hi").to("openai")["tools"][0]["function"]["name"] == "look"


def test_a_picture_is_bytes_for_boto3_and_base64_on_a_terminal(make_nexus: MakeNexus, cli: Cli) -> None:
    nexus = make_nexus()
    picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}

    context = nexus.session("main").ask({"role": "user", "content": [{"text": "What is this?"}, picture]})
    body = accepted(context.to("bedrock", model="m"))
    outcome = cli("-C", str(nexus.cwd), "assemble", "--session", "main", "--api", "bedrock")

    assert picture in body["messages"][0]["content"]
    assert in_json(picture) in json.loads(outcome.out)["messages"][0]["content"]


def test_without_the_plugin_there_is_no_such_dialect(make_nexus: MakeNexus) -> None:
    context = make_nexus(disable={"bedrock"}).session("main").ask("Hi")

    with pytest.raises(UnknownNameError, match="bedrock"):
        context.to("bedrock")
