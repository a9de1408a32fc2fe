"""The provider `bedrock` with the real boto3 and a server that answers as Bedrock does."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, ProviderError
from nexus_core.agents import DoneEvent, ReasoningDelta, TextDelta, ToolCallEvent
from nexus_core.testing.fixtures import MakeNexus
from tests.dialects.support import Loopback, listening
from tests.plugins.bedrock.converse import stream_of

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
USAGE = {"inputTokens": 36, "outputTokens": 20, "totalTokens": 56}
CALL: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2Vhb"}}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "Let me see."}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "add"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a": 1, '}}}},
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '"b": 2}'}}}},
    {"contentBlockStop": {"contentBlockIndex": 2}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}},
]
ANSWER: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "3"}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "."}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}},
]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


@pytest.fixture
def nexus(make_nexus: MakeNexus, nexus_home: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Nexus:
    variables = {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    settings = {"provider": {"provider": "bedrock", "model": CLAUDE, "base_url": server.url}}
    (nexus_home / "config.json").write_text(json.dumps(settings))
    return make_nexus()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_turn_with_one_tool_call(nexus: Nexus, server: Loopback) -> None:
    server.answers = [stream_of(CALL), stream_of(ANSWER)]

    events = list(nexus.agent("s", tools=[add]).run("1 + 2?"))

    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Let me see.3."
    assert [each.text for each in events if isinstance(each, ReasoningDelta)] == ["Hm."]
    assert [dict(each.call.arguments) for each in events if isinstance(each, ToolCallEvent)] == [{"a": 1, "b": 2}]
    assert isinstance(events[-1], DoneEvent)
    assert (events[-1].text, events[-1].usage.input_tokens) == ("3.", 72)
    assert all(path.endswith("/converse-stream") for path in server.paths)
    assert server.bodies[1]["messages"][-1]["content"][0]["toolResult"]["content"] == [{"text": "3"}]


def test_a_stream_that_ends_early_is_sent_again(nexus: Nexus, server: Loopback) -> None:
    server.answers = [stream_of(ANSWER[:2]), stream_of(ANSWER)]
    agent = nexus.agent("s")

    with pytest.raises(ProviderError, match="cut the stream before its end"):
        agent.answer("1 + 2?")

    assert next(each for each in agent.resume() if isinstance(each, DoneEvent)).text == "3."


def test_an_error_inside_the_stream(nexus: Nexus, server: Loopback) -> None:
    server.answers = [stream_of([*ANSWER[:2], {"modelStreamErrorException": {"message": "No power."}}])]

    with pytest.raises(ProviderError, match="bedrock answered modelStreamErrorException: No power"):
        nexus.agent("s").answer("1 + 2?")


def test_no_credentials(nexus: Nexus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(ProviderError, match="NoCredentialsError") as caught:
        nexus.agent("s").answer("1 + 2?")

    assert "AWS_ACCESS_KEY_ID" in str(caught.value)


def test_no_region(nexus: Nexus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(ProviderError, match="AWS_REGION"):
        nexus.agent("s").answer("1 + 2?")


def test_a_server_that_is_down(nexus: Nexus, nexus_home: Path, make_nexus: MakeNexus) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    settings = {"provider": {"provider": "bedrock", "model": CLAUDE, "base_url": url}}
    (nexus_home / "config.json").write_text(json.dumps(settings))

    with pytest.raises(ProviderError, match="bedrock could not be asked: EndpointConnectionError"):
        make_nexus().agent("s").answer("1 + 2?")

    assert nexus.session("s").is_open


def test_a_project_does_not_choose_the_address(make_nexus: MakeNexus) -> None:
    files = {".nexus3/config.json": json.dumps({"provider": {"base_url": "http://evil.example"}})}

    assert make_nexus(files).load().settings.get("provider.base_url") is None
