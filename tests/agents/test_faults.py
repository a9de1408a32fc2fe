"""Whatever a provider does wrong is a clear error within its time-out, and the turn can be resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import NexusError, ProviderError, TurnError, UnknownNameError, UsageError
from nexus_core.agents import Agent, CompactionEvent, DoneEvent
from nexus_core.plugin import Provider
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.agents.wire import APIS, KEY, MODELS, VARIABLE, sse, stream, streamed, write_settings
from tests.plugins.providers.endpoints import Answer, serving

EVENT_STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def endpoint_settings(home: Path, url: str, api: str = "openai", **fields: Any) -> None:
    endpoint = {"api": api, "base_url": url, "key_env": VARIABLE, **fields}
    settings = {
        "provider": {"provider": "mine", "model": MODELS[api]},
        "plugins": {"providers": {"endpoints": {"mine": endpoint}}},
    }
    write_files(home, {"config.json": json.dumps(settings)})


def failed(agent: Agent) -> NexusError:
    """The error that ends a run, after which the turn is open."""
    with pytest.raises(NexusError) as caught:
        list(agent.run("Hi"))
    assert agent.session.is_open
    assert KEY not in str(caught.value)
    return caught.value


def text_of(events: Any) -> str:
    *_, done = events
    assert isinstance(done, DoneEvent)
    return done.text


@pytest.mark.parametrize(
    ("api", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("responses", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_no_key(make_nexus: MakeNexus, api: str, variable: str) -> None:
    error = failed(make_nexus().agent("s", provider=api, model=MODELS[api]))

    assert error.what == f"the environment variable {variable} is not set"
    assert error.hint == "set it to the key, without quotes"


@pytest.mark.parametrize("api", APIS)
def test_a_wrong_key_then_a_right_one(make_nexus: MakeNexus, nexus_home: Path, api: str) -> None:
    refusal = Answer({"error": {"message": f"Incorrect API key: {KEY}"}}, 401)
    with serving(refusal, streamed(api, "Hello.")) as server:
        write_settings(nexus_home, server.url, api)
        agent = make_nexus().agent("s")
        error = failed(agent)
        text = text_of(agent.resume())

    assert isinstance(error, ProviderError)
    assert (error.status, error.hint) == (401, f"check the key in {VARIABLE}")
    assert (text, len(server.bodies)) == ("Hello.", 2)


def test_an_unknown_model(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(Answer({"error": {"message": "model: claude-x"}}, 404)) as server:
        write_settings(nexus_home, server.url)
        error = failed(make_nexus().agent("s", model="claude-x"))

    assert error.what == "the endpoint answered 404: model: claude-x"
    assert error.hint == "check base_url and model"


def test_a_model_of_nobody_knows_whom(make_nexus: MakeNexus) -> None:
    error = failed(make_nexus().agent("s", model="acme-1"))

    assert isinstance(error, UsageError)
    assert error.what == "it is not known which provider to call for the model 'acme-1'"


def test_an_unknown_provider_is_named_when_the_agent_is_opened(make_nexus: MakeNexus) -> None:
    with pytest.raises(UnknownNameError, match="unknown provider 'antropic'") as caught:
        make_nexus().agent("s", provider="antropic")

    assert caught.value.hint == "did you mean 'anthropic'?"


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_cut_then_sent_again(make_nexus: MakeNexus, nexus_home: Path, api: str) -> None:
    whole = stream(api, "Hello, how are you today?")
    cut = Answer(whole[: whole.index(b"how") + 8], headers={**EVENT_STREAM, "Content-Length": str(len(whole))})
    with serving(cut, streamed(api, "Hello again.")) as server:
        write_settings(nexus_home, server.url, api)
        agent = make_nexus().agent("s")
        error = failed(agent)
        text = text_of(agent.resume())

    assert "cut the stream before its end" in error.what
    assert "resume()" in (error.hint or "")
    assert text == "Hello again."
    assert [each.content for each in agent.session.messages][-1] == "Hello again."


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_ends_without_an_end(make_nexus: MakeNexus, nexus_home: Path, api: str) -> None:
    events = stream(api, "Hello.").split(b"\n\n")
    with serving(Answer(b"\n\n".join(events[:3]) + b"\n\n", headers=EVENT_STREAM)) as server:
        write_settings(nexus_home, server.url, api)
        error = failed(make_nexus().agent("s"))

    assert error.what == "the endpoint cut the stream before its end"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "garbage",
    [
        b"data: {nope\n\n",
        b"data: 5\n\n",
        b"data: []\n\n",
        b"<html>It works!</html>",
        b"",
        b"\x00\xff\xfe\n\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'data: {"type": 5, "choices": 7, "candidates": {}, "delta": []}\n\n',
    ],
)
def test_garbage(make_nexus: MakeNexus, nexus_home: Path, api: str, garbage: bytes) -> None:
    with serving(Answer(garbage, headers=EVENT_STREAM)) as server:
        write_settings(nexus_home, server.url, api)
        error = failed(make_nexus().agent("s"))

    assert isinstance(error, ProviderError)
    assert error.what.startswith("the endpoint ")


@pytest.mark.parametrize(
    ("api", "event", "what"),
    [
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}},
            "overloaded_error: Busy",
        ),
        ("openai", {"error": {"message": "Busy", "code": "server_error"}}, "server_error: Busy"),
        ("responses", {"type": "error", "message": "Busy", "code": "x"}, "Busy"),
        ("gemini", {"error": {"code": 503, "message": "Busy", "status": "UNAVAILABLE"}}, "UNAVAILABLE: Busy"),
    ],
)
def test_an_error_inside_the_stream(
    make_nexus: MakeNexus, nexus_home: Path, api: str, event: dict[str, Any], what: str
) -> None:
    with serving(Answer(sse([event]), headers=EVENT_STREAM)) as server:
        write_settings(nexus_home, server.url, api)
        error = failed(make_nexus().agent("s"))

    assert error.what == f"the endpoint reported an error: {what}"


def test_a_server_that_never_answers(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(Answer(b"", raw=True, pause=60)) as server:
        endpoint_settings(nexus_home, server.url, timeout=0.3)
        error = failed(make_nexus().agent("s"))

    assert error.what == "the endpoint gave no answer in 0.3 seconds"  # it would be another if it had closed


def test_a_server_that_falls_silent(make_nexus: MakeNexus, nexus_home: Path) -> None:
    headers = {**EVENT_STREAM, "Content-Length": "100000"}
    with serving(Answer(stream("openai", "Hello."), headers=headers, pause=0), streamed("openai", "Hi.")) as server:
        endpoint_settings(nexus_home, server.url, timeout=60)
        agent = make_nexus().agent("s")
        # It said [DONE]; what a server leaves open after that does not matter.
        assert text_of(agent.run("Hi")) == "Hello."


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_what_passes_is_tried_again(make_nexus: MakeNexus, nexus_home: Path, status: int) -> None:
    busy = Answer({"error": {"message": "Busy"}}, status, headers={"Retry-After": "0"})
    with serving(busy, busy, streamed("anthropic", "Hello.")) as server:
        write_settings(nexus_home, server.url)
        text = make_nexus().agent("s").answer("Hi")

    assert (text, len(server.bodies)) == ("Hello.", 3)


def test_a_wait_of_an_hour_is_not_waited_for(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(Answer({"error": {"message": "Busy"}}, 429, headers={"Retry-After": "3600"})) as server:
        write_settings(nexus_home, server.url)
        error = failed(make_nexus().agent("s"))

    assert error.hint == "it asks to be tried again in 3600 seconds"
    assert len(server.bodies) == 1


def test_a_server_that_does_not_stream(make_nexus: MakeNexus, nexus_home: Path) -> None:
    message = {"role": "assistant", "content": "Hello."}
    whole = {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    with serving(Answer(whole, headers={"Content-Type": "application/json"})) as server:
        write_settings(nexus_home, server.url, "openai")
        assert make_nexus().agent("s").answer("Hi") == "Hello."


def test_a_local_server_needs_no_key(make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(streamed("openai", "Hello.")) as server:
        provider = {"provider": "openai", "model": "llama3", "base_url": server.url}
        write_files(nexus_home, {"config.json": json.dumps({"provider": provider})})
        text = make_nexus().agent("s").answer("Hi")

    # The key of OpenAI is for OpenAI; an address of the user's own gets one only if `api_key_env` names it.
    assert (text, server.headers[0]["authorization"]) == ("Hello.", None)


def test_what_the_sdk_would_make_a_header_is_one(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(streamed("anthropic", "Hello.")) as server:
        options = {"betas": ["a-1", "b-2"], "extra_headers": {"X-Team": "red", "Host": "x"}, "extra_body": {"top_k": 5}}
        provider = {"provider": "anthropic", "model": "claude-sonnet-5", "base_url": server.url, "options": options}
        write_files(nexus_home, {"config.json": json.dumps({"provider": provider})})
        make_nexus().agent("s").answer("Hi")

    headers = server.headers[0]
    assert (headers["anthropic-beta"], headers["x-team"], headers["host"]) == ("a-1,b-2", "red", server.url[7:])
    assert {"betas", "extra_headers", "extra_body"}.isdisjoint(server.body)
    assert server.body["top_k"] == 5


def test_a_key_that_a_server_sends_back_is_in_no_error(make_nexus: MakeNexus, nexus_home: Path) -> None:
    escaped = "".join(f"\\u{ord(each):04x}" for each in KEY)
    event = f'data: {{"error": {{"message": "bad key {escaped}"}}}}\n\n'.encode()
    with serving(Answer(event, headers=EVENT_STREAM)) as server:
        write_settings(nexus_home, server.url, "openai")
        error = failed(make_nexus().agent("s"))

    assert error.what == "the endpoint reported an error: bad key [key]"


def test_an_overflow_is_recovered_from_once(make_nexus: MakeNexus) -> None:
    too_long = ProviderError("prompt is too long: 250000 tokens > 200000 maximum", status=400)
    says = [replied(f"Answer {number}. " + "word " * 400) for number in range(6)]
    model = FakeModel(*says, too_long, replied("Short."))
    agent = make_nexus().agent("s", model="claude-sonnet-5", provider=model.provider)
    for number in range(6):
        agent.answer(f"Question {number}? " + "word " * 400)

    events = list(agent.run("And now?"))

    assert [each.reason for each in events if isinstance(each, CompactionEvent)] == ["overflow_recovery"]
    assert text_of(events) == "Short."
    assert len(model.contexts[-1].messages) < len(model.contexts[-2].messages)


def test_an_overflow_that_stays_is_an_error(make_nexus: MakeNexus) -> None:
    too_long = ProviderError("prompt is too long: 250000 tokens > 200000 maximum", status=400)
    model = FakeModel(*(replied(f"{number}. " + "word " * 400) for number in range(6)), too_long, too_long)
    agent = make_nexus().agent("s", model="claude-sonnet-5", provider=model.provider)
    for number in range(6):
        agent.answer(f"Question {number}? " + "word " * 400)

    with pytest.raises(ProviderError, match="prompt is too long"):
        list(agent.run("And now?"))


def test_a_model_that_never_ends_is_ended(make_nexus: MakeNexus) -> None:
    def work() -> str:
        return "more"

    model = FakeModel(*(called("work", {}) for _ in range(5)), replied("Done."))
    agent = make_nexus().agent("s", tools=[work], provider=model.provider, max_calls=3)

    with pytest.raises(TurnError, match="the model was called 3 times without coming to an end"):
        list(agent.run("Go."))

    assert text_of(agent.resume()) == "Done."


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ([], "the provider 'odd' ended without a reply"),
        (["text"], "the provider 'odd' yielded str, which is no event"),
        (5, "the provider 'odd' failed: TypeError: 'int' object is not iterable"),
    ],
)
def test_a_provider_that_breaks_its_contract(make_nexus: MakeNexus, says: Any, what: str) -> None:
    odd = Provider(name="odd", stream=lambda _context, _cancel: says)

    error = failed(make_nexus().agent("s", provider=odd))

    assert (type(error), error.what) == (ProviderError, what)


def test_a_turn_that_is_open_is_not_started_again(make_nexus: MakeNexus) -> None:
    model = FakeModel(ProviderError("no"), replied("Other."))
    agent = make_nexus().agent("s", provider=model.provider)
    failed(agent)

    with pytest.raises(TurnError, match="a turn is open"):
        list(agent.run("Again"))

    assert agent.answer("Again", interrupt=True) == "Other."


def test_without_an_open_turn_there_is_nothing_to_resume(make_nexus: MakeNexus) -> None:
    with pytest.raises(TurnError, match="no turn is open"):
        list(make_nexus().agent("s").resume())
