"""The program of the documentation, with the real clients of four APIs, waiting and awaiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from nexus_core import Nexus
from nexus_core.thread.state import RecordedCall
from nexus_core.types.messages import Usage
from tests.dialects.support import Loopback
from tests.effort import sampled
from tests.session.conftest import EVERYWHERE, OpenNexus
from tests.session.support import TOOLS, calls, replied, says

pytestmark = EVERYWHERE

APIS = ("openai", "responses", "anthropic", "gemini")
MODELS = {"openai": "gpt-4o", "responses": "gpt-4o", "anthropic": "claude-sonnet-4", "gemini": "gemini-2.5-pro"}
OPTIONS: dict[str, dict[str, Any]] = {"openai": {}, "responses": {}, "anthropic": {"max_tokens": 8000}, "gemini": {}}
ANSWER = "It expires before it is issued."


def run(call: RecordedCall) -> str:
    return f"{call.name} {json.dumps(dict(call.arguments), sort_keys=True)}"


def chat(message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reason}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    }


def chat_call(name: str, path: str) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "look", "arguments": json.dumps({"path": path})}}


def response(name: str, *output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": 120,
        },
    }


def response_call(name: str, path: str) -> dict[str, Any]:
    arguments = json.dumps({"path": path})
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": name,
        "name": "look",
        "arguments": arguments,
        "status": "completed",
    }


def content(*parts: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "promptTokenCount": 100,
        "candidatesTokenCount": 13,
        "thoughtsTokenCount": 7,
        "cachedContentTokenCount": 64,
    }
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "gemini-2.5-pro",
    }


def function(path: str) -> dict[str, Any]:
    return {"functionCall": {"name": "look", "args": {"path": path}}}


SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        chat({"content": None, "tool_calls": [chat_call("c1", "a.py"), chat_call("c2", "b.py")]}, "tool_calls"),
        chat({"content": ANSWER}, "stop"),
    ],
    "responses": [
        response(
            "resp_1",
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
            response_call("c1", "a.py"),
            response_call("c2", "b.py"),
        ),
        response(
            "resp_2",
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
            },
        ),
    ],
    "anthropic": [calls("c1", "c2", text="Let me see."), says(ANSWER, name="msg_2")],
    "gemini": [content({"text": "Let me see."}, function("a.py"), function("b.py")), content({"text": ANSWER})],
}


@contextmanager
def client_of(api: str, url: str) -> Iterator[Any]:
    """The call of an SDK that asks a model."""
    if api == "anthropic":
        with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as claude:
            yield claude.messages.create
    elif api == "gemini":
        with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url)) as gemini:
            yield gemini.models.generate_content
    else:
        with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as gpt:
            yield gpt.chat.completions.create if api == "openai" else gpt.responses.create


@asynccontextmanager
async def async_client_of(api: str, url: str) -> AsyncIterator[Any]:
    """The same, awaited."""
    if api == "anthropic":
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as claude:
            yield claude.messages.create
    elif api == "gemini":
        async with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url)).aio as gemini:
            yield gemini.models.generate_content
    else:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as gpt:
            yield gpt.chat.completions.create if api == "openai" else gpt.responses.create


def loop(nexus: Nexus, api: str, loopback: Loopback) -> str:
    session = nexus.session("auth-bug", model=MODELS[api], tools=TOOLS)
    context = session.ask("Why does login fail?")
    with client_of(api, loopback.url) as create:
        for answer in SCRIPTS[api]:
            loopback.answer = answer
            step = session.record(create(**context.to(api, **OPTIONS[api])))
            if step.done:
                return step.text
            for call in reversed(step.tool_calls):
                session.record(call.result(run(call)))
            context = session.next()
    raise AssertionError("the loop did not end")


async def async_loop(nexus: Nexus, api: str, loopback: Loopback) -> str:
    session = nexus.async_session("auth-bug", model=MODELS[api], tools=TOOLS)
    context = await session.ask("Why does login fail?")
    async with async_client_of(api, loopback.url) as create:
        for answer in SCRIPTS[api]:
            loopback.answer = answer
            step = await session.record(await create(**context.to(api, **OPTIONS[api])))
            if step.done:
                return step.text
            await asyncio.gather(*(session.record(call.result(run(call))) for call in step.tool_calls))
            context = await session.next()
    raise AssertionError("the loop did not end")


def elements(body: dict[str, Any]) -> list[Any]:
    """The list that a request holds."""
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


@pytest.mark.parametrize("api", APIS)
def test_the_loop_runs_with_the_real_client(open_nexus: OpenNexus, loopback: Loopback, api: str) -> None:
    nexus = open_nexus()

    answer = loop(nexus, api, loopback)

    assert answer == ANSWER
    first, second = loopback.bodies
    assert elements(second)[: len(elements(first))] == elements(first)
    assert all(key in json.dumps(first) for key in ("look", "Look at a file.", "Why does login fail?"))


@pytest.mark.parametrize("api", APIS)
def test_the_loop_runs_with_the_real_async_client(open_nexus: OpenNexus, loopback: Loopback, api: str) -> None:
    answer = asyncio.run(async_loop(open_nexus(), api, loopback))

    assert answer == ANSWER
    assert len(loopback.bodies) == 2


@pytest.mark.parametrize("api", APIS)
def test_waiting_and_awaiting_send_the_same_bytes(open_nexus: OpenNexus, loopback: Loopback, api: str) -> None:
    loop(open_nexus(ledger="memory:"), api, loopback)
    asyncio.run(async_loop(open_nexus(ledger="memory:"), api, loopback))

    waited, awaited = loopback.bodies[:2], loopback.bodies[2:]
    assert json.dumps(waited) == json.dumps(awaited)


@pytest.mark.parametrize("api", APIS)
def test_results_stand_in_the_order_of_their_calls_in_every_api(
    open_nexus: OpenNexus, loopback: Loopback, api: str
) -> None:
    loop(open_nexus(), api, loopback)

    written = json.dumps(elements(loopback.bodies[1])[-2:] if api != "anthropic" else elements(loopback.bodies[1])[-1:])
    first, second = ("c1", "c2") if api == "anthropic" else ("a.py", "b.py")
    assert 0 < written.rindex(first) < written.rindex(second)


@pytest.mark.acceptance("D-10")
@pytest.mark.parametrize("api", APIS)
def test_what_the_calls_cost_is_added_up(open_nexus: OpenNexus, loopback: Loopback, api: str) -> None:
    nexus = open_nexus()

    loop(nexus, api, loopback)

    usage = nexus.session("auth-bug").usage
    if api == "anthropic":
        assert usage == Usage(
            input_tokens=480,
            output_tokens=100,
            cached_input_tokens=400,
            cache_write_tokens=60,
            reasoning_tokens=40,
        )
    else:
        assert usage == Usage(input_tokens=200, output_tokens=40, cached_input_tokens=128, reasoning_tokens=14)


@pytest.mark.parametrize(
    ("begun", "ended"), sampled([(one, other) for one in APIS for other in APIS if one != other], one_in=3)
)
def test_a_session_goes_on_with_another_provider(
    open_nexus: OpenNexus, loopback: Loopback, begun: str, ended: str
) -> None:
    nexus = open_nexus()
    loop(nexus, begun, loopback)
    session = nexus.session("auth-bug", model=MODELS[ended])

    context = session.ask("And now?")
    loopback.answer = SCRIPTS[ended][-1]
    with client_of(ended, loopback.url) as create:
        step = session.record(create(**context.to(ended, **OPTIONS[ended])))

    assert step.done
    assert "Why does login fail?" in json.dumps(loopback.bodies[-1])
    assert ANSWER in json.dumps(loopback.bodies[-1])


def test_a_streamed_reply_is_recorded_from_its_pieces(open_nexus: OpenNexus) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4")
    session.ask("Why?")
    start = replied([], name="msg_1", stop="") | {"stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]

    step = session.record(events)

    assert (step.text, step.done) == (ANSWER, True)
