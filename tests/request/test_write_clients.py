"""What the real clients send when they are given what was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nexus_core.types.messages import Image, Message, Reasoning, Text, ToolCall
from tests.dialects.support import Loopback, listening
from tests.request.contexts import FOR_API, GPT_4O, asks, brings, context_of, marked_paths, says, user
from tests.session.test_loop import SCRIPTS, client_of

BREAKPOINT = {"mode": "explicit"}
THOUGHT = Reasoning(text="hm", signature="s", api="anthropic")
LOOP = [
    Message("user", [Text("What is this?"), Image(mime="image/png", data="AAAA")]),
    Message("assistant", [THOUGHT, Text("A dot.")], api="anthropic"),
    user("Look again."),
    Message("assistant", [THOUGHT, ToolCall("a", "look", {"path": "a"})], api="anthropic"),
    brings("a"),
    asks("b", "c"),
    brings("b", "c"),
]


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


def sent(api: str, loopback: Loopback, messages: list[Message], past: int, **options: Any) -> Any:
    """The body that arrives when the API's client makes a call."""
    fields: dict[str, Any] = {name: options.pop(name) for name in ("ttl", "model", "model_config") if name in options}
    context = context_of(messages, past=past, **{"model": FOR_API[api]} | fields)
    loopback.answer = SCRIPTS[api][-1]
    with client_of(api, loopback.url) as create:
        create(**context.to(api, **options))
    return loopback.bodies[-1]


def test_anthropic_hears_four_marks_the_longer_lived_first(loopback: Loopback) -> None:
    body = sent("anthropic", loopback, LOOP, 2, ttl="1h")

    assert marked_paths(body) == [
        "system[0]",
        "messages[1].content[1]",
        "messages[4].content[0]",
        "messages[6].content[1]",
    ]
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert body["messages"][6]["content"][1]["cache_control"] == {"type": "ephemeral"}
    assert (body["model"], body["max_tokens"], body["tools"][0]["name"]) == ("claude-opus-5", 8000, "look")
    assert "cache" not in body


def test_anthropic_hears_no_mark_that_nobody_wanted(loopback: Loopback) -> None:
    body = sent("anthropic", loopback, LOOP, 2, cache=False)

    assert marked_paths(body) == []
    assert "cache" not in body


def test_chat_hears_the_key_and_the_marks(loopback: Loopback) -> None:
    body = sent("openai", loopback, LOOP, 2)

    assert body["prompt_cache_key"].startswith("nexus-")
    roles = [message["role"] for message in body["messages"]]
    told = [
        place
        for place, message in enumerate(body["messages"])
        if isinstance(message["content"], list) and message["content"][-1].get("prompt_cache_breakpoint") == BREAKPOINT
    ]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool", "tool"]
    assert told == [0, 5, 8]


def test_responses_hears_the_key_and_the_marks_and_keeps_nothing_itself(loopback: Loopback) -> None:
    body = sent("responses", loopback, LOOP, 2)

    assert body["prompt_cache_key"].startswith("nexus-")
    assert not {"instructions", "store", "previous_response_id"} & body.keys()
    told = [
        item
        for item in body["input"]
        if any(
            isinstance(parts, list) and parts[-1].get("prompt_cache_breakpoint") == BREAKPOINT
            for parts in (item.get("content"), item.get("output"))
        )
    ]
    assert [item.get("role") or item["call_id"] for item in told] == ["system", "a", "c"]


@pytest.mark.parametrize("api", ["openai", "responses"])
def test_older_models_hear_the_key_alone(loopback: Loopback, api: str) -> None:
    body = sent(api, loopback, LOOP, 2, model=GPT_4O, prompt_cache_key="mine")

    assert body["prompt_cache_key"] == "mine"
    assert "prompt_cache_breakpoint" not in str(body)


def test_gemini_hears_instructions_tools_and_settings(loopback: Loopback) -> None:
    body = sent("gemini", loopback, LOOP, 2, model_config={"temperature": 0.5, "thinking": {"type": "enabled"}}, seed=7)

    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert body["tools"][0]["functionDeclarations"][0]["name"] == "look"
    assert body["generationConfig"] == {"temperature": 0.5, "seed": 7}
    assert [content["role"] for content in body["contents"]] == ["user", "model"] * 3 + ["user"]


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini"])
def test_the_first_call_is_sent_as_well(loopback: Loopback, api: str) -> None:
    body = sent(api, loopback, [user()], 0)

    assert "Why?" in str(body)
    assert "Be brief." in str(body)


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini"])
def test_options_that_the_client_has_no_argument_for_go_into_its_extra_body(loopback: Loopback, api: str) -> None:
    if api == "gemini":
        body = sent(api, loopback, [user(), says(), user()], 2, http_options={"extra_body": {"brand_new": 1}})
    else:
        body = sent(api, loopback, [user(), says(), user()], 2, extra_body={"brand_new": 1})

    assert body["brand_new"] == 1
