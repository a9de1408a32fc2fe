"""What the official SDKs send and read, Nexus sends and reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from nexus_core import AssembledContext, get_dialect
from nexus_core.plugin import CancelSignal, ProviderReply, ProviderToolCall, ReasoningDelta, TextDelta
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.wire import APIS, KEY, MODELS, VARIABLE, streamed, write_settings
from tests.plugins.providers.endpoints import Server, serving

CALL = ("add", {"a": 1, "b": "zwei, δύο"})
TOOL = {
    "name": "add",
    "description": "Add.",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
}


def ask_sdk(api: str, server: Server, context: AssembledContext) -> Any:
    """The reply as the maker's SDK gives it, streamed."""
    arguments = context.to(api)
    if api == "gemini":
        with genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url)) as google:
            return list(google.models.generate_content_stream(**arguments))
    if api == "anthropic":
        with (
            anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0) as claude,
            claude.messages.stream(**arguments) as events,
        ):
            return events.get_final_message()
    with openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client:
        if api == "responses":
            with client.responses.stream(**arguments) as responses:
                return responses.get_final_response()
        return list(client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))


@pytest.fixture
def heard(
    request: pytest.FixtureRequest, make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The same call, sent by the SDK and by Nexus, and what each made of the same bytes."""
    api = request.param
    monkeypatch.setenv(VARIABLE, KEY)
    with serving(streamed(api, "Let me see…", CALL)) as server:
        write_settings(nexus_home, server.url, api)
        nexus = make_nexus()
        context = nexus.session("sums", model=MODELS[api], tools=[TOOL], system_prompt="You add.").ask("1 + 2?")
        theirs = ask_sdk(api, server, context)
        provider = nexus.host.providers(nexus.load()).get(api)
        ours = list(provider.stream(context, CancelSignal()))
    return {"api": api, "server": server, "theirs": theirs, "ours": ours}


EACH_API = pytest.mark.parametrize("heard", APIS, indirect=True)


@EACH_API
def test_the_same_bytes_are_the_same_reply(heard: dict[str, Any]) -> None:
    reply = heard["ours"][-1]

    assert isinstance(reply, ProviderReply)
    read = get_dialect(heard["api"]).read_reply(heard["theirs"])
    assert reply.reply.messages == read.messages
    assert (reply.reply.usage, reply.reply.id, reply.reply.stop) == (read.usage, read.id, "tools")


@EACH_API
def test_the_request_is_the_one_that_the_sdk_sends(heard: dict[str, Any]) -> None:
    theirs, ours = heard["server"].bodies

    if heard["api"] == "gemini":  # its SDK adds a role that means nothing there, and mixes two spellings
        theirs = json.loads(json.dumps(theirs).replace("parameters_json_schema", "parametersJsonSchema"))
        assert (theirs.pop("generationConfig"), theirs["systemInstruction"].pop("role")) == ({}, "user")
    assert ours == theirs
    assert heard["server"].paths[1] == heard["server"].paths[0]


@EACH_API
def test_the_key_is_in_one_header_and_nowhere_else(heard: dict[str, Any]) -> None:
    server = heard["server"]
    headers = [name for name, value in server.headers[1].items() if KEY in value]

    assert [name.lower() for name in headers] == [
        {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(heard["api"], "authorization")
    ]
    assert KEY not in json.dumps(server.bodies[1]) + server.paths[1]


@EACH_API
def test_pieces_arrive_before_the_end_and_add_up(heard: dict[str, Any]) -> None:
    events = heard["ours"]

    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Let me see…"
    assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) in ("Hm.", "")
    assert sum(isinstance(each, TextDelta) for each in events) > 1
    (called,) = (each.call for each in events if isinstance(each, ProviderToolCall))
    assert (called.name, called.arguments) == CALL
