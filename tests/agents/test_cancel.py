"""Cancelling ends a turn cleanly, soon, and keeps what was said."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nexus_core import TurnError
from nexus_core.agents import DoneEvent, ToolCallEvent
from nexus_core.plugin import TextDelta
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.agents.wire import KEY, VARIABLE, stream, write_settings
from tests.conftest import ROOT
from tests.plugins.providers.endpoints import Answer, serving

"""Seconds that a busy machine may take; the model and the tools of these tests would take thirty."""


def test_what_was_said_is_kept_and_the_turn_is_closed(make_nexus: MakeNexus) -> None:
    never = threading.Event()
    model = FakeModel(never, replied("Hello again."))
    agent = make_nexus().agent("s", provider=model.provider)
    events = []

    for event in agent.run("Hi"):
        events.append(event)
        if isinstance(event, TextDelta):
            agent.cancel()

    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert (done.text, done.cancelled) == ("So far", True)
    assert not agent.session.is_open
    assert agent.session.messages[-1].content == "So far"
    assert model.signals[0].is_set
    assert agent.answer("Still there?") == "Hello again."
    never.set()


def test_a_running_tool_is_not_waited_for(make_nexus: MakeNexus) -> None:
    never, finished = threading.Event(), threading.Event()

    def work() -> None:
        """Work for a long time."""
        never.wait(600)
        finished.set()

    agent = make_nexus().agent("s", tools=[work], provider=FakeModel(called("work", {})).provider)
    events = []

    for event in agent.run("Hi"):
        events.append(event)
        if isinstance(event, ToolCallEvent):
            threading.Timer(0.05, agent.cancel).start()

    assert not finished.is_set()
    assert events[-1] == DoneEvent(text="", cancelled=True, usage=events[-1].usage, calls=1)  # type: ignore[union-attr]
    assert (agent.session.is_open, agent.session.pending_calls) == (False, ())
    never.set()


def test_the_connection_is_closed(make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    whole = stream("anthropic", "Hello, how are you today?")
    slow = Answer(whole, headers={"Content-Type": "text/event-stream"}, pause=0.002)
    with serving(slow) as server:
        write_settings(nexus_home, server.url)
        agent = make_nexus().agent("s")
        for event in agent.run("Hi"):
            if isinstance(event, TextDelta):
                agent.cancel()
        calls = [each for each in threading.enumerate() if each.name == "nexus model call"]
        for call in calls:
            call.join(60)

    assert [call for call in calls if call.is_alive()] == []
    assert agent.session.messages[-1].content in ("Hello", "Hello, how")


def test_whoever_stops_listening_leaves_the_turn_open(make_nexus: MakeNexus) -> None:
    model = FakeModel(threading.Event(), replied("Hello."))
    agent = make_nexus().agent("s", provider=model.provider)

    events = agent.run("Hi")
    assert next(events) == TextDelta("So far")
    events.close()  # type: ignore[attr-defined]

    assert agent.session.is_open
    assert model.signals[0].is_set
    assert [each.text for each in agent.resume() if isinstance(each, DoneEvent)] == ["Hello."]


def test_one_agent_runs_one_turn_at_a_time(make_nexus: MakeNexus) -> None:
    agent = make_nexus().agent("s", provider=FakeModel(threading.Event()).provider)
    events = agent.run("Hi")
    next(events)

    with pytest.raises(TurnError, match="is running already"):
        list(agent.run("Hi"))

    agent.cancel()
    assert isinstance([*events][-1], DoneEvent)


def test_cancelling_nothing_does_nothing(make_nexus: MakeNexus) -> None:
    agent = make_nexus().agent("s", provider=FakeModel(replied("Hello.")).provider)

    agent.cancel()

    assert agent.answer("Hi") == "Hello."


def test_a_task_that_is_cancelled_keeps_what_was_said(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()
    agent = nexus.async_agent("s", provider=FakeModel(threading.Event()).provider)
    heard = asyncio.Event()

    async def listen() -> None:
        async for event in agent.run("Hi"):
            if isinstance(event, TextDelta):
                heard.set()

    async def main() -> None:
        task = asyncio.create_task(listen())
        await heard.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    session = nexus.session("s")
    assert (session.is_open, session.messages[-1].content) == (False, "So far")


PROGRAM = """
import os, signal, sys, threading, time
from nexus_core import Nexus
from tests.agents.fakes import FakeModel

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored

heard = threading.Event()

def interrupt():
    heard.wait()
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "wait":
        time.sleep(0.01)  # until the loop waits for the next event
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
with Nexus(sys.argv[1], home=sys.argv[1] + "/home") as nexus:
    agent = nexus.agent("s", provider=FakeModel(threading.Event()).provider)
    try:
        for event in agent.run("Hi"):
            print(event, flush=True)
            heard.set()
    except KeyboardInterrupt:
        print("interrupted", agent.session.is_open, agent.session.messages[-1].content, flush=True)
"""


def test_ctrl_c_keeps_what_was_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]

    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout

    event, interrupted = printed.splitlines()
    assert "So far" in event
    assert interrupted == "interrupted False So far"
