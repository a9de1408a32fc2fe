"""Calls of sessions arrive in OpenTelemetry's own SDK as the conventions for generative AI have it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from nexus_core import AgentResult, Nexus, Usage
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.discovery import PluginPolicy
from nexus_core.host.manager import Host
from nexus_core.testing import check_plugin, write_files
from nexus_core.types.messages import Message, ToolCall
from nexus_plugins import telemetry
from nexus_plugins.telemetry import _tracing
from tests.effort import some
from tests.plugins.telemetry.conftest import OpenNexus, Seen
from tests.session.support import TOOLS, calls, says
from tests.tables import count
from tests.text.secret_samples import SAMPLES

SECRET = "the launch code is 0000"  # noqa: S105 - what nobody should find in a span


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def error_of(span: ReadableSpan) -> tuple[StatusCode, object]:
    return span.status.status_code, told(span).get("error.type")


def test_a_call_is_one_client_span_by_the_conventions(open_nexus: OpenNexus, seen: Seen) -> None:
    session = open_nexus().session("auth-bug", model="claude-sonnet-4", tools=TOOLS)

    context = session.ask("Why?")
    assert not seen.spans
    step = session.record(says("Because."))

    (span,) = seen.spans
    assert (span.name, span.kind, span.status.status_code) == (
        "chat claude-sonnet-4",
        SpanKind.CLIENT,
        StatusCode.UNSET,
    )
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "nexus_core"
    known = {name: value for name, value in told(span).items() if name.startswith("gen_ai.")}
    assert known == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4",
        "gen_ai.conversation.id": "auth-bug",
        "gen_ai.response.model": "claude-sonnet-4-20250514",
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 240,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 200,
        "gen_ai.usage.cache_creation.input_tokens": 30,
        "gen_ai.usage.reasoning.output_tokens": 20,
    }
    assert told(span)["nexus.tokens.total"] == context.token_budget.total
    assert told(span)["nexus.step.id"] == step.id


def test_what_only_nexus_knows_is_told_too(open_nexus: OpenNexus, seen: Seen) -> None:
    session = open_nexus().session("s", model="acme-1", tools=TOOLS)
    context = session.ask("Why?")
    session.record(says("Because."))

    (span,) = seen.spans
    known = {name.removeprefix("nexus."): value for name, value in told(span).items() if name.startswith("nexus.")}

    budget = context.token_budget
    assert {name: known.pop(f"tokens.{name}") for name in budget.used} == budget.used
    assert known.pop("tokens.window") == budget.limit
    assert known.pop("tokens.available") == budget.available
    assert known.pop("findings") == tuple(finding.code for finding in context.findings) == ("unknown-model",)
    assert known.pop("epoch") == context.epoch
    assert known.pop("turn.id") == context.turn_id
    assert known.pop("cache.verdict") == "miss"
    assert known.pop("cache.blame") == "first"
    assert sorted(known) == [
        *("cache.expected_tokens", "messages", "role", "step.id", "tokens.estimated", "tokens.total", "turn.done"),
    ]


def test_the_options_in_the_settings_are_told_by_the_names_of_the_conventions(
    nexus_home: Path, open_nexus: OpenNexus, seen: Seen
) -> None:
    options = {"temperature": 0.5, "max_tokens": 9, "stop_sequences": [SECRET], "metadata": {"user": SECRET}}
    write_files(nexus_home, {"config.json": json.dumps({"provider": {"options": options}})})

    session = open_nexus().session("s", model="claude-sonnet-4")
    session.ask("Why?")
    session.record(says("Because."))

    (span,) = seen.spans
    asked = {name: value for name, value in told(span).items() if name.startswith("gen_ai.request.")}
    assert asked == {
        "gen_ai.request.model": "claude-sonnet-4",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
    }


def test_each_tool_is_a_span_from_the_reply_to_its_result(open_nexus: OpenNexus, seen: Seen) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask("Why?")
    first, second = session.record(calls("t1", "t2")).tool_calls
    session.record(second.result("gone", is_error=True))
    session.record(first.result("here"))
    session.next()
    session.record(says("Because.", name="msg_2"))

    chat, failed, fine, last = seen.spans
    names = [chat.name, failed.name, fine.name, last.name]
    assert names == ["chat claude-sonnet-4", "execute_tool look", "execute_tool look", "chat claude-sonnet-4"]
    assert told(fine) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "t1",
        "gen_ai.conversation.id": "s",
    }
    assert (fine.kind, error_of(fine)) == (SpanKind.INTERNAL, (StatusCode.UNSET, None))
    assert error_of(failed) == (StatusCode.ERROR, "tool_error")
    assert told(chat)["gen_ai.response.finish_reasons"] == ("tool_use",)
    assert told(chat)["nexus.turn.done"] is False
    assert all(span.start_time is not None and span.end_time is not None for span in seen.spans)
    assert fine.start_time == failed.start_time  # both were asked for at once


def test_what_was_said_is_nowhere(open_nexus: OpenNexus, tmp_path: Path, seen: Seen) -> None:
    nexus = open_nexus()
    write_files(tmp_path / "work", {"NEXUS.md": f"Nobody must know that {SECRET}.\n"})
    session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask(f"I heard that {SECRET}.")
    (call,) = session.record(calls(SECRET, text=SECRET)).tool_calls
    session.record(call.result(SECRET))
    session.next()
    session.record(says(SECRET, name="msg_2"))

    assert len(seen.spans) == 3
    found = [
        (span.name, name)
        for span in seen.spans
        for name, value in told(span).items()
        if SECRET in str(value) and name != "gen_ai.tool.call.id"  # an id that the provider chose
    ]
    assert found == []
    assert not any(span.events for span in seen.spans)


@pytest.mark.acceptance("T10", "T15")
def test_no_name_carries_a_secret_or_a_control_character_into_a_span(open_nexus: OpenNexus, seen: Seen) -> None:
    nexus = open_nexus()
    shapes = some([sample for sample in SAMPLES.values() if len(sample.text) < 400])  # a session's name has 500
    for number, sample in enumerate(shapes):
        hostile = f"x\x1b]0;title\x07 {sample.text}"
        tools = [ToolCall(f"call {number} {hostile}", hostile, {})]
        session = nexus.session(f"{number} {hostile}", model=f"model {hostile}", tools=TOOLS)
        session.ask("Why?")
        session.record(Message("assistant", tools))
        (call,) = session.pending_calls
        session.record(call.result("done"))
        session.next()
        session.record(Message("assistant", hostile))

    values = [text for span in seen.spans for text in (span.name, *map(str, told(span).values()))]

    count(len(shapes))
    assert len(seen.spans) == 3 * len(shapes)
    secrets = [secret for sample in shapes for secret in sample.secrets]
    assert not [secret for secret in secrets if any(secret in text for text in values)]
    assert not [text for text in values if not text.isprintable()]


def test_a_call_that_is_put_together_again_was_not_answered(open_nexus: OpenNexus, seen: Seen) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4")
    session.ask("Why?")
    session.next()
    session.record(says("Because."))

    unanswered, answered = seen.spans
    assert error_of(unanswered) == (StatusCode.ERROR, "unanswered")
    assert error_of(answered) == (StatusCode.UNSET, None)


def test_a_call_whose_turn_was_ended_by_another_program_was_not_answered(open_nexus: OpenNexus, seen: Seen) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="claude-sonnet-4")
    session.ask("Why?")
    with Nexus(nexus.cwd, home=nexus.home, ledger=nexus.ledger, disable=["telemetry"]) as other:
        other.session("s").interrupt()

    session.ask("And now?")

    (span,) = seen.spans
    assert error_of(span) == (StatusCode.ERROR, "unanswered")


@pytest.mark.parametrize("reply", [None, says("Bec", stop="max_tokens")])
def test_a_turn_that_is_given_up_ends_its_call_as_interrupted(
    open_nexus: OpenNexus, seen: Seen, reply: dict[str, Any] | None
) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4")
    session.ask("Why?")
    if reply is None:
        session.interrupt()
    else:
        session.record(reply, interrupted=True)

    (span,) = seen.spans
    assert error_of(span) == (StatusCode.ERROR, "interrupted")


def test_no_more_calls_are_followed_than_there_is_room_for(
    open_nexus: OpenNexus, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tracing, "MAX_TRACED_TURNS", 2)
    nexus = open_nexus()

    sessions = [nexus.session(label, model="claude-sonnet-4") for label in "abc"]
    for session in sessions:
        session.ask("Why?")
    for session in sessions:
        session.record(says("Because."))

    ended = [(told(span)["gen_ai.conversation.id"], error_of(span)[1]) for span in seen.spans]
    assert ended == [("a", "unanswered"), ("b", None), ("c", None)]


def test_sessions_of_one_name_in_two_ledgers_are_kept_apart(open_nexus: OpenNexus, seen: Seen) -> None:
    one, other = (open_nexus().session("s", model="claude-sonnet-4") for _ in range(2))
    one.ask("Why?")
    other.ask("Why?")
    one.record(says("Because.", name="msg_1"))
    other.record(says("Because.", name="msg_2"))

    assert [told(span)["gen_ai.response.id"] for span in seen.spans] == ["msg_1", "msg_2"]
    assert {error_of(span) for span in seen.spans} == {(StatusCode.UNSET, None)}


def test_many_threads_and_a_loop_may_talk_at_once(open_nexus: OpenNexus, seen: Seen) -> None:
    nexus = open_nexus()

    def talk(label: str) -> None:
        session = nexus.session(label, model="claude-sonnet-4")
        for turn in range(3):
            session.ask("Why?")
            session.record(says("Because.", name=f"msg_{turn}"))

    async def talk_later() -> None:
        session = nexus.async_session("loop", model="claude-sonnet-4")
        await session.ask("Why?")
        await session.record(says("Because."))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(talk, "abcdefgh"))
    asyncio.run(talk_later())

    assert len(seen.spans) == 8 * 3 + 1
    assert {error_of(span) for span in seen.spans} == {(StatusCode.UNSET, None)}


def test_a_call_belongs_to_what_the_program_is_doing(open_nexus: OpenNexus, seen: Seen) -> None:
    nexus = open_nexus()
    with trace.get_tracer("program").start_as_current_span("request") as around:
        session = nexus.session("s", model="claude-sonnet-4")
        session.ask("Why?")
        session.record(says("Because."))

    call = seen.spans[0]
    assert call.parent is not None
    assert call.parent.span_id == around.get_span_context().span_id


def test_tokens_are_counted_as_a_metric(open_nexus: OpenNexus, seen: Seen) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4")
    session.ask("Why?")
    session.record(says("Because."))
    said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    session.record(AgentResult(messages=said, usage=Usage(input_tokens=3, output_tokens=2)))

    name = "gen_ai.client.token.usage"
    assert seen.counted == {(name, "input"): 240 + 3, (name, "output"): 50 + 2}


def test_a_call_without_a_session_has_no_span(open_nexus: OpenNexus, seen: Seen) -> None:
    nexus = open_nexus()

    nexus.assemble(nexus.request(message="Why?", model="gpt-4o"))

    assert seen.spans == ()


def test_it_keeps_the_contract() -> None:
    assert check_plugin(telemetry) == []


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    host = Host(BUNDLED, PluginPolicy())

    (row,) = (plugin for plugin in host.plugins if plugin.name == "telemetry")
    assert (row.status, row.error) == ("needs-extra", "needs nexusctx[telemetry]")


def test_a_program_without_an_sdk_does_not_even_import_opentelemetry(tmp_path: Path, nexus_home: Path) -> None:
    program = (
        "import sys; from nexus_core import Nexus\n"
        f"with Nexus({str(tmp_path)!r}, home={str(nexus_home)!r}, ledger='memory:') as nexus:\n"
        "    session = nexus.session('s', model='gpt-4o'); session.ask('Why?')\n"
        "    session.record({'role': 'assistant', 'content': 'Because.'})\n"
        "    print([p.status for p in nexus.plugins if p.name == 'telemetry'], 'opentelemetry' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=False)

    assert (done.stdout, done.stderr) == ("['active'] False\n", "")
