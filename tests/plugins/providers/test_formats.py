"""What endpoints are sent, held against the types of the SDKs, and what is read from what they answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import MessageCreateParams
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from nexus_core.types.budget import Model
from nexus_core.types.messages import Message
from nexus_plugins.providers import EndpointError
from nexus_plugins.providers._formats import FORMATS
from tests.dialects.support import StrictType, accepted
from tests.plugins.providers.endpoints import GOOD, KEY, SUMMARY, Answer, chat, message, request, serving, summarizer
from tests.request.contexts import CLAUDE, DEEPSEEK, GPT, asks, brings, context_of, marked_paths, says, user

CHAT = StrictType(CompletionCreateParamsNonStreaming)
MESSAGES = StrictType(MessageCreateParams.__args__[0])  # type: ignore[attr-defined]
TYPES = {"openai": CHAT, "anthropic": MESSAGES}
TALK = [user("Fix login."), asks("a"), brings("a"), says("Done."), user("And now?")]


def sent(api: str, **fields: Any) -> Any:
    """The body that arrives."""
    asked = fields.pop("request", request())
    with serving(GOOD[api]) as server:
        assert summarizer(server.url, api, **fields)(asked) == SUMMARY
        return server.body


def said(body: Any) -> list[Any]:
    """What is said in a call, block by block, without what its provider is told about its cache."""
    blocks: list[Any] = [("system", each) for each in _blocks(body.get("system"))]
    for each in body["messages"]:
        rest = {key: value for key, value in each.items() if key != "content"}
        blocks += [(rest, block) for block in _blocks(each.get("content"))] or [(rest, None)]
    return blocks


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    marks = ("cache_control", "prompt_cache_breakpoint")
    return [{key: value for key, value in block.items() if key not in marks} for block in content or ()]


LAST = ({"role": "user"}, {"type": "text", "text": "Summarize."})


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_the_prompt_alone_is_sent_as_the_sdk_would(api: str) -> None:
    body = sent(api)

    accepted(TYPES[api], body)
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Summarise: he fixed login.py."}],
        "max_tokens": 500,
    }


def test_chat_completions_have_the_key_as_a_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", f"{KEY}\n")

    with serving(GOOD["openai"]) as server:
        summarizer(f"{server.url}/v1/", key_env="SOME_KEY")(request())

    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_messages_have_the_key_in_its_own_header_and_a_version(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)

    with serving(GOOD["anthropic"]) as server:
        summarizer(f"{server.url}{path}", "anthropic", key_env="SOME_KEY")(request())

    assert server.paths == ["/v1/messages"]
    assert (server.headers[0]["x-api-key"], server.headers[0]["anthropic-version"]) == (KEY, "2023-06-01")
    assert "Authorization" not in server.headers[0]


def test_a_server_without_a_key_gets_none() -> None:
    with serving(GOOD["openai"]) as server:
        summarizer(server.url)(request())

    assert "Authorization" not in server.headers[0]


def test_further_headers_come_from_the_environment_and_go_before_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setenv("OTHER", "Token abc")

    with serving(GOOD["openai"]) as server:
        summarizer(server.url, key_env="SOME_KEY", headers={"Authorization": "OTHER", "X-Title": "OTHER"})(request())

    assert server.headers[0].get_all("Authorization") == ["Token abc"]
    assert server.headers[0]["X-Title"] == "Token abc"


def test_options_are_sent_along_and_null_takes_something_out() -> None:
    body = sent("openai", options={"reasoning_effort": "low", "max_tokens": None, "max_completion_tokens": 9})

    accepted(CHAT, body)
    assert "max_tokens" not in body
    assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("low", 9)


def test_openai_itself_gets_the_new_name_of_the_limit_and_room_for_thoughts() -> None:
    body = FORMATS["openai"].write(request(), "gpt-5.6", FORMATS["openai"].ADDRESS)

    accepted(CHAT, body)
    assert (body.get("max_tokens"), body["max_completion_tokens"]) == (None, 8500)


@pytest.mark.parametrize(("api", "model"), [("openai", GPT), ("openai", DEEPSEEK), ("anthropic", CLAUDE)])
def test_a_conversation_is_gone_on_from_with_the_same_beginning(api: str, model: Model) -> None:
    context = context_of(TALK, past=4, model=model)

    body = sent(api, model=model.name, request=request(context=context))

    begun = context.to(api)
    accepted(TYPES[api], body)
    assert said(body) == [*said(begun), LAST]
    assert body["tools"] == begun["tools"]
    assert body.get("prompt_cache_key") == begun.get("prompt_cache_key")


def test_anthropic_is_told_where_its_cache_may_have_the_conversation() -> None:
    context = context_of(TALK, past=4, model=CLAUDE)

    body = sent("anthropic", model="claude-opus-5", request=request(context=context))

    assert {"system[0]", "messages[3].content[0]"} <= set(marked_paths(body))


def test_what_is_still_waited_for_does_not_make_the_call_invalid() -> None:
    context = context_of([user("Fix login."), asks("a")], model=DEEPSEEK)

    body = sent("openai", request=request(context=context))

    accepted(CHAT, body)
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_options_of_the_session_that_make_something_else_of_an_answer_are_left_out(api: str) -> None:
    options = {
        "stream": True,
        "tool_choice": "required",
        "response_format": {"type": "json_object"},
        "n": 3,
        "stop": "#",
        "stop_sequences": ["#"],
        "timeout": 5,
        "extra_headers": {"a": "b"},
        "extra_body": {"c": 1},
    }

    body = sent(api, request=request(context=context_of(TALK, past=4, model_config=options)))

    accepted(TYPES[api], body)
    assert not set(body) & set(options)


@pytest.mark.parametrize(
    ("thinking", "tokens"),
    [
        ({"type": "enabled", "budget_tokens": 4000}, 4500),
        ({"type": "adaptive"}, 8500),
        ({"type": "disabled"}, 500),
        (None, 500),
    ],
)
def test_who_thinks_as_before_has_room_for_it(thinking: dict[str, Any] | None, tokens: int) -> None:
    options = {} if thinking is None else {"thinking": thinking}

    body = sent("anthropic", request=request(context=context_of(TALK, past=4, model_config=options)))

    assert (body.get("thinking"), body["max_tokens"]) == (thinking, tokens)


@pytest.mark.parametrize("form", ["standalone", "cached"])
def test_the_model_is_that_of_the_endpoint_else_of_the_settings_else_of_the_conversation(form: str) -> None:
    context = context_of(TALK, past=4, model=GPT) if form == "cached" else None
    asked = request(context=context, model="gpt-5.6")

    named = sent("openai", otherwise="small", request=asked)
    set_apart = sent("openai", model=None, otherwise="small", request=asked)
    inherited = sent("openai", model=None, request=asked)

    assert [body["model"] for body in (named, set_apart, inherited)] == ["m", "small", "gpt-5.6"]


def test_nobody_is_asked_where_nobody_names_a_model() -> None:
    with serving(GOOD["openai"]) as server, pytest.raises(EndpointError, match="does not know which model to ask"):
        summarizer(server.url, model=None)(request())

    assert server.bodies == []


def test_half_characters_are_sent_whole() -> None:
    body = sent("openai", request=request("a \ud83d\ude00 b \ud83d c"))

    assert body["messages"][0]["content"] == "a \U0001f600 b \ufffd c"


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        (chat(f"  {SUMMARY}\n"), SUMMARY),
        (chat([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": SUMMARY}]), SUMMARY),
        (chat(f"<think>\nWhat did he say?\n</think>\n\n{SUMMARY}"), SUMMARY),
        (chat("He wrote <think>no</think> in it."), "He wrote <think>no</think> in it."),
        (chat(SUMMARY, ended="length"), f"{SUMMARY}\n[The summary was cut off here.]"),
        (chat(SUMMARY, reasoning_content="hm", tool_calls=[]), SUMMARY),
        (chat("a \ud83d\ude00 b \ud83d c"), "a \U0001f600 b \ufffd c"),
    ],
)
def test_the_summary_is_read_from_a_chat_completion(answer: dict[str, Any], summary: str) -> None:
    assert FORMATS["openai"].read(answer) == summary


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        (message(f"  {SUMMARY}\n"), SUMMARY),
        (message(SUMMARY, ended="max_tokens"), f"{SUMMARY}\n[The summary was cut off here.]"),
        (message() | {"content": [{"type": "thinking", "thinking": "hm"}, *message()["content"]]}, SUMMARY),
        (message("a \ud83d c"), "a \ufffd c"),
    ],
)
def test_the_summary_is_read_from_a_message(answer: dict[str, Any], summary: str) -> None:
    assert FORMATS["anthropic"].read(answer) == summary


def test_the_answers_of_these_tests_are_what_the_sdks_take_for_one() -> None:
    assert ChatCompletion.model_validate(chat(), strict=True).choices[0].message.content == SUMMARY
    assert AnthropicMessage.model_validate(message(), strict=True).stop_reason == "end_turn"


def test_what_is_sent_is_the_same_bytes_every_time() -> None:
    context = context_of([*TALK, Message("assistant", "é")], past=4, model=GPT)
    asked = request(context=context)

    with serving(Answer(chat())) as server:
        for _ in range(3):
            summarizer(server.url)(asked)

    assert len({json.dumps(body) for body in server.bodies}) == 1
