"""No command that shows or hands on a conversation prints a secret of it, whatever its shape, unless asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.types.assembled import AgentResult
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult
from tests.conftest import Cli
from tests.tables import count
from tests.text.secret_samples import SAMPLES, SecretSample

DOORS = {
    "show": ("session", "show", "all", "--limit", "all", "--full"),
    "show in short": ("session", "show", "all", "--limit", "all"),
    "show as JSON": ("session", "show", "all", "--limit", "all", "--json"),
    "tree": ("session", "tree", "all", "--limit", "all"),
    "tree as JSON": ("session", "tree", "all", "--limit", "all", "--json"),
    "search": ("session", "search", "Look", "--limit", "1000"),
    "search as JSON": ("session", "search", "Look", "--limit", "1000", "--json"),
    "context": ("context", "--session", "all", "-n", "1000"),
    "export for OpenAI": ("session", "export", "all", "--api", "openai"),
    "export for Responses": ("session", "export", "all", "--api", "responses"),
    "export for Anthropic": ("session", "export", "all", "--api", "anthropic"),
    "export for Gemini": ("session", "export", "all", "--api", "gemini"),
    "neutral export": ("session", "export", "all", "--api", "neutral"),
    "export as Markdown": ("session", "export", "all", "--format", "markdown"),
    "export as HTML": ("session", "export", "all", "--format", "html"),
}


def turn(number: int, sample: SecretSample) -> list[Message]:
    """What an agent does with a secret: it is told it, thinks of it, passes it to a tool and reads it again."""
    text = sample.text
    arguments = {"command": text, "input": json.dumps({"text": text}), "list": [text]}
    call = ToolCall(f"c{number}", "run", arguments)
    raw = ToolCall(f"r{number}", "run", {}, raw=json.dumps(arguments))
    return [
        Message("user", f"Look: {text}"),
        Message("assistant", (Reasoning(text=f"Look, {text}"), Text(f"Look:\n{text}"), call, raw)),
        Message("tool", (ToolResult(call.id, f"Look: {text}"),)),
        Message("tool", (ToolResult(raw.id, json.dumps({"Look": text})),)),
        Message("assistant", f"It was Look, and\n{text}"),
    ]


@pytest.fixture
def told(nexus: Nexus) -> Nexus:
    """Session `all`, in which every shape of secret was told."""
    messages = [each for number, sample in enumerate(SAMPLES.values()) for each in turn(number, sample)]
    nexus.session("all", model="claude-sonnet-4").record(AgentResult(messages=messages))
    return nexus


def leaked(text: str) -> list[str]:
    """The names of the shapes whose secrets can be read in a text."""
    plain = "".join(text.split())
    return [name for name, sample in SAMPLES.items() if any("".join(each.split()) in plain for each in sample.secrets)]


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.usefixtures("told")
def test_no_door_lets_a_secret_out(door: str, cli: Cli) -> None:
    count(len(SAMPLES))

    outcome = cli(*DOORS[door])

    assert outcome.code in (0, 1), outcome.err
    assert "[redacted:" in outcome.out
    assert leaked(outcome.out + outcome.err) == []


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "words", [("Quince",), ("Quince", "--exact"), ("Quince", "--json"), ("Quince", "--exact", "--json")]
)
def test_search_redacts_an_argument_that_only_its_name_gives_away(
    nexus: Nexus, cli: Cli, words: tuple[str, ...]
) -> None:
    call = ToolCall("c1", "login", {"user": "ada", "password": "Quince-Marmalade7", "more": {"pin": ["x"]}})
    messages = [Message("user", "Log in."), Message("assistant", (call,)), Message("tool", (ToolResult("c1", "ok"),))]
    nexus.session("work", model="gpt-4o").record(AgentResult(messages=[*messages, Message("assistant", "Done.")]))

    outcome = cli("session", "search", *words)

    assert "work" in outcome.out
    assert "Marmalade7" not in outcome.out


@pytest.mark.acceptance("T10")
@pytest.mark.usefixtures("told")
def test_the_ledger_keeps_what_was_said(cli: Cli) -> None:
    shown = cli("session", "show", "all", "--limit", "all", "--full", "--with-secrets").out
    document = cli("session", "show", "all", "--limit", "all", "--json", "--with-secrets").out

    assert len(leaked(shown)) > len(SAMPLES) * 0.95  # control characters are made visible
    assert "[redacted:" not in shown
    assert "[redacted:" not in document


@pytest.mark.acceptance("T10")
def test_context_of_a_transcript_shows_no_secret(cli: Cli, work: Path) -> None:
    lines = [{"role": "user", "content": sample.text} for sample in SAMPLES.values()]
    write_files(work, {"chat.json": json.dumps(lines)})

    outcome = cli("context", "chat.json", "-n", "1000")

    assert "[redacted:" in outcome.out
    assert leaked(outcome.out) == []
