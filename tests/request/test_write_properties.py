"""Whatever was said: what is written is accepted, and the next call finds what this one left in the cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from nexus_core.dialects.registry import get_dialect
from nexus_core.history.repair import check_messages
from nexus_core.history.repair.findings import UNREPAIRED_CODES
from nexus_core.types.messages import File, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from tests.dialects.support import StrictType, accepted
from tests.effort import examples
from tests.history.broken import ANYTHING, ENCODERS, MESSAGES
from tests.history.oracles import ORACLES, cache_marks
from tests.request.contexts import FOR_API, LOOK, Cache, blocks_of, context_of

APIS = ["openai", "responses", "anthropic", "gemini"]
EVERY_API = pytest.mark.parametrize("api", APIS)
SAID = {"openai": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}
REQUESTS = {
    "openai": StrictType(CompletionCreateParamsNonStreaming),
    "responses": StrictType(ResponseCreateParamsNonStreaming),
    "anthropic": StrictType(MessageCreateParamsNonStreaming),
}
WORDS = st.text("abc ", min_size=1, max_size=8).filter(str.strip)
MARKS = st.sampled_from([{}, {}, {}, {"cache_control": {"type": "ephemeral"}}, {"cache_control": None}]) | st.just(
    {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
)
TOOLS = st.lists(
    st.just(LOOK)
    | st.builds(
        Tool, name=st.just("mine"), parameters=st.just({"type": "object"}), api=st.just("anthropic"), extra=MARKS
    ),
    max_size=6,
)
PICTURE = Image(mime="image/png", data="AAAA")
PAPER = File(name="a.pdf", mime="application/pdf", data="AAAA")
THOUGHT = Reasoning(text="hm", signature="s", api="anthropic")


@st.composite
def inputs(draw: st.DrawFn) -> Message:
    """What a user says: words and pictures, with marks of the caller's own where it is in Anthropic's shape."""
    if draw(st.booleans()):
        media: list[Part] = draw(st.lists(st.sampled_from([PICTURE, PAPER]), max_size=2))
        return Message("user", [Text(draw(WORDS)), *media])
    texts = draw(st.lists(st.builds(Text, WORDS, MARKS), min_size=1, max_size=3))
    return Message("user", texts, api="anthropic")


@st.composite
def turns(draw: st.DrawFn) -> list[list[Message]]:
    """Turns of a session, each a list that a call could end after: loops of tools, given up or not, and answers."""
    number, found = 0, []
    for _ in range(draw(st.integers(1, 4))):
        steps: list[list[Message]] = [[draw(inputs())]]
        for _ in range(draw(st.integers(0, 3))):
            ids = [f"call_{number + each}" for each in range(draw(st.sampled_from([1, 2, 25])))]
            number += len(ids)
            said: list[Part] = [THOUGHT] if draw(st.booleans()) else []
            said += [Text(draw(WORDS))] if draw(st.booleans()) else []
            results = [ToolResult(each, draw(WORDS)) for each in ids]
            together = draw(st.booleans())
            steps.append(
                [
                    Message("assistant", [*said, *(ToolCall(each, "look", {}) for each in ids)], api="anthropic"),
                    *([Message("tool", results)] if together else [Message("tool", (each,)) for each in results]),
                ]
            )
        if draw(st.booleans()):  # otherwise it was interrupted
            steps.append([Message("assistant", draw(WORDS))])
        found.append([message for step in steps for message in [*step, Message("system", "|")]])
    return found


def calls_of(session: list[list[Message]]) -> list[tuple[list[Message], int]]:
    """The messages of each call of a session, and how many of them are of earlier turns."""
    calls, sent = [], list[Message]()
    for turn in session:
        past = len(sent)
        for message in turn:
            if message.role != "system":
                sent.append(message)
            elif sent[-1].role != "assistant":
                calls.append((list(sent), past))
    return calls


def written(api: str, messages: list[Message], past: int, **fields: Any) -> dict[str, Any]:
    return context_of(messages, past=past, model=FOR_API[api], **fields).to(api)


def require_accepted(api: str, body: dict[str, Any]) -> None:
    """As the SDK's types want it, as the API wants it, and nothing for `check` to find."""
    assert ORACLES[api](body[SAID[api]]) == []
    assert check_messages(body[SAID[api]], api, source=api) == ()
    if api == "gemini":
        types.GenerateContentConfig.model_validate(body["config"])
        for content in body["contents"]:
            types.Content.model_validate(content)
    else:
        accepted(REQUESTS[api], body)
    if api == "anthropic":
        assert cache_marks(body.get("tools", []), body.get("system", []), body["messages"]) == []


@EVERY_API
@settings(max_examples=examples(40))
@given(turns(), TOOLS, st.sampled_from(["5m", "1h"]), st.sampled_from(["", "Be brief."]))
def test_every_call_of_a_session_is_accepted(
    api: str, session: list[list[Message]], tools: list[Tool], ttl: str, system: str
) -> None:
    for messages, past in calls_of(session):
        body = written(api, messages, past, tools=tools, ttl=ttl, system=system)
        if api == "gemini" and not body.get("config"):
            body["config"] = {}

        require_accepted(api, body)


@EVERY_API
@settings(max_examples=examples(60))
@given(st.one_of(MESSAGES, ANYTHING.map(ENCODERS["anthropic"])), st.integers(0, 10))
def test_anything_is_made_what_the_api_accepts(api: str, given_: list[Any], past: int) -> None:
    messages = [each if isinstance(each, Message) else get_dialect("anthropic").read(each) for each in given_]
    foreign = any(isinstance(part, Opaque) for message in messages for part in message.parts)

    body = written(api, messages, min(past, len(messages)))

    assert ORACLES[api](body[SAID[api]]) == []
    found = check_messages(body[SAID[api]], api, source=api)
    assert foreign or [finding for finding in found if finding.code not in UNREPAIRED_CODES] == []
    assert cache_marks(body.get("tools", []), body.get("system", []), body[SAID[api]]) == []
    assert json.dumps(body) == json.dumps(written(api, messages, min(past, len(messages))))


@settings(max_examples=examples(60))
@given(turns())
def test_each_call_of_a_session_finds_all_that_the_call_before_it_was(session: list[list[Message]]) -> None:
    cache, before = Cache(), 0

    for messages, past in calls_of([[_unmarked(message) for message in turn] for turn in session]):
        body = written("anthropic", messages, past)
        assert cache.read(body) == before
        before = len(blocks_of(body))


def _unmarked(message: Message) -> Message:
    parts = [Text(part.text) if isinstance(part, Text) else part for part in message.parts]
    return Message(message.role, parts, api=message.api)
