"""Plugins that watch hear of each call that is sent and each step that is recorded, and change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from nexus_core import (
    AgentResult,
    AssembledContext,
    CacheReport,
    ConfigError,
    ConflictError,
    Nexus,
    PluginError,
    TurnError,
    Usage,
    hookimpl,
)
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.plugin import HookCall, Problem, Step
from nexus_core.runner import Operation
from nexus_core.session.engine import Engine
from nexus_core.session.session import Session
from tests.session.conftest import Clock, OpenNexus
from tests.session.support import TOOLS, calls, kinds_of, says, steps_of

pytestmark = pytest.mark.usefixtures("no_session_start")


class Watcher:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.contexts: list[AssembledContext] = []
        self.steps: list[Step] = []
        self.costs: list[tuple[Usage | None, CacheReport]] = []

    @hookimpl
    def nexus_call_assembled(self, context: AssembledContext) -> None:
        self.heard.append((context.session_label, "assembled"))
        self.contexts.append(context)

    @hookimpl
    def nexus_step_recorded(self, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
        self.heard.append((session, step.kind))
        self.steps.append(step)
        self.costs.append((usage, cache))


class Listening:
    """Does something when it hears of a call or a step."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self._do = do

    @hookimpl
    def nexus_call_assembled(self, context: AssembledContext) -> Any:
        return self._do(context)

    @hookimpl
    def nexus_step_recorded(self, step: Step) -> Any:
        return self._do(step)


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def nexus(open_nexus: OpenNexus, watcher: Watcher) -> Nexus:
    return open_nexus(plugins=[watcher])


@pytest.fixture
def session(nexus: Nexus) -> Session:
    return nexus.session("s", model="claude-sonnet-4", tools=TOOLS)


def test_a_turn_is_told_call_by_call_and_step_by_step(session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("here"))
    session.next()
    session.record(says("Because.", name="msg_2"))

    kinds = ["assembled", "reply", "result", "assembled", "reply"]
    assert watcher.heard == [("s", kind) for kind in kinds]


def test_what_is_told_is_what_was_sent_and_what_was_recorded(
    session: Session, watcher: Watcher, ledger: StoreLedger
) -> None:
    context = session.ask("Why?")
    recorded = session.record(says("Because."))

    assert watcher.contexts[0].to("anthropic", max_tokens=9) == context.to("anthropic", max_tokens=9)
    assert watcher.contexts[0].turn_id == recorded.turn
    assert watcher.steps == steps_of(ledger, "s")[-1:]
    assert watcher.costs == [(recorded.usage, recorded.cache)]


def test_a_step_is_in_the_ledger_when_it_is_told(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    found: list[Step | None] = []
    listening = Listening(lambda heard: found.append(ledger.step(heard.id)) if isinstance(heard, Step) else None)
    session = open_nexus(plugins=[listening]).session("s", model="claude-sonnet-4")

    session.ask("Why?")
    session.record(says("Because."))

    assert found == steps_of(ledger, "s")[-1:]


def test_whoever_only_looks_is_not_heard(nexus: Nexus, session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    step = session.record(says("Because."))
    watcher.heard.clear()

    session.preview("And?")
    session.replay(step)
    nexus.replay(step)
    nexus.fit([{"role": "user", "content": "Why?"}])
    nexus.assemble(nexus.request(message="Why?"), announce=False)
    nexus.assemble(nexus.request(message="Why?"), must_fit=False)

    assert watcher.heard == []


def test_a_call_without_a_session_is_told(nexus: Nexus, watcher: Watcher) -> None:
    nexus.assemble(nexus.request(message="Why?"))

    assert watcher.heard == [("", "assembled")]
    assert watcher.contexts[0].turn_id == ""


def test_the_same_call_is_told_each_time_it_is_put_together(session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    session.next()

    assert watcher.heard == [("s", "assembled")] * 2


def test_what_was_recorded_before_is_not_told_again(session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls
    session.record(call.result("here"))
    watcher.heard.clear()

    again = [session.record(calls("t1")), session.record(call.result("here"))]

    assert [step.duplicate for step in again] == [True, True]
    assert watcher.heard == []


def test_what_another_program_has_recorded_is_told_there_and_nowhere_else(
    open_nexus: OpenNexus, session: Session, watcher: Watcher
) -> None:
    session.ask("Why?")
    open_nexus().session("s").record(says("Because."))

    assert session.record(says("Because.")).duplicate
    assert watcher.heard == [("s", "assembled")]


def test_what_is_refused_is_not_told(open_nexus: OpenNexus, session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    other = open_nexus(plugins=[watcher]).session("s")
    other.next()
    other.record(says("Because."))
    other.ask("And?")
    watcher.heard.clear()

    with pytest.raises(ConflictError):
        session.record(says("Why not?", name="msg_2"))
    with pytest.raises(TurnError):
        session.record({"role": "tool", "tool_call_id": "none", "content": "x"})

    assert watcher.heard == []


def test_a_whole_turn_is_told_once(session: Session, watcher: Watcher) -> None:
    said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    usage = Usage(input_tokens=3, output_tokens=2)

    for _ in range(2):
        session.record(AgentResult(messages=said, usage=usage, id="run_1"))

    assert watcher.heard == [("s", "turn")]
    assert watcher.costs == [(usage, CacheReport())]


@pytest.mark.parametrize("give_up", [Session.interrupt, lambda session: session.ask("No.", interrupt=True)])
def test_a_turn_that_is_given_up_is_told(
    session: Session, watcher: Watcher, give_up: Callable[[Session], object]
) -> None:
    session.ask("Why?")
    session.record(calls("t1"))
    watcher.heard.clear()

    give_up(session)

    assert watcher.heard[0] == ("s", "interrupted")


def test_a_workers_answer_is_told_before_what_it_is_the_result_of(session: Session, watcher: Watcher) -> None:
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls
    worker = session.spawn("Find out.", call=call, name="w")
    worker.ask("Begin.")
    watcher.heard.clear()

    worker.record(says("It is broken."))
    session.spawn("Find out.", call=call, name="w")

    assert watcher.heard == [("w", "reply"), ("s", "result")]


def test_an_awaited_session_tells_the_same(nexus: Nexus, watcher: Watcher) -> None:
    async def talk() -> None:
        session = nexus.async_session("a", model="claude-sonnet-4", tools=TOOLS)
        await session.ask("Why?")
        step = await session.record(calls("t1"))
        await session.record(step.tool_calls[0].result("here"))
        await session.next()
        await session.preview()
        await session.interrupt()
        await nexus.async_assemble(nexus.request(message="Why?"))

    asyncio.run(talk())

    kinds = ["assembled", "reply", "result", "assembled", "interrupted"]
    assert watcher.heard == [*(("a", kind) for kind in kinds), ("", "assembled")]


@pytest.mark.parametrize("error", [ValueError("boom"), ConfigError("boom"), SystemExit(3)], ids=repr)
def test_a_plugin_that_fails_is_named_and_the_turn_goes_on(
    open_nexus: OpenNexus, ledger: StoreLedger, watcher: Watcher, error: BaseException
) -> None:
    def fail(_: object) -> None:
        raise error

    problems: list[Problem] = []
    session = open_nexus(plugins=[Listening(fail), watcher], report=problems.append).session("s", model="gpt-4o")

    session.ask("Why?")
    step = session.record(says("Because."))

    assert (step.text, step.done) == ("Because.", True)
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply"]
    assert watcher.heard == [("s", "assembled"), ("s", "reply")]
    assert [problem.hook for problem in problems] == ["nexus_call_assembled", "nexus_step_recorded"]
    assert all("Nexus continues without it, because it " in str(problem) for problem in problems)


def test_an_answer_is_a_mistake_that_is_named(open_nexus: OpenNexus) -> None:
    problems: list[Problem] = []
    session = open_nexus(plugins=[Listening(lambda _: 42)], report=problems.append).session("s", model="gpt-4o")

    context = session.ask("Why?")

    assert context.session_label == "s"
    (problem,) = problems
    assert (problem.plugin, problem.hook) == ("Listening", "nexus_call_assembled")
    assert problem.message == "Nexus continues without it, because it returned int, expected None"


def test_strictness_stops_at_a_mistake_and_loses_nothing(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    listening = Listening(lambda heard: 1 / 0 if isinstance(heard, Step) else None)
    session = open_nexus(plugins=[listening], strict=True).session("s", model="gpt-4o")
    session.ask("Why?")

    with pytest.raises(PluginError) as caught:
        session.record(says("Because."))

    assert caught.value.what == "plugin Listening, nexus_step_recorded: it raised ZeroDivisionError: division by zero"
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply"]
    assert session.record(says("Because.")).duplicate


def test_whatever_a_plugin_does_with_what_it_was_told_nothing_else_is_sent(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    def scribble(heard: Any) -> None:
        if hasattr(heard, "data"):
            heard.data["model"] = "another"
            heard.messages[0].extra["scribble"] = "x"
            return
        heard.model_config["temperature"] = 2
        heard.system_context["x"] = 1
        heard.tools[0].parameters["properties"] = {}
        for message in heard.messages:
            message.extra["scribble"] = "x"
            for call in message.tool_calls:
                call.arguments["path"] = "/etc/passwd"

    def talk(label: str, *plugins: object) -> list[dict[str, Any]]:
        session = open_nexus(plugins=plugins).session(label, model="claude-sonnet-4", tools=TOOLS)
        sent = [session.ask("Why?")]
        step = session.record(calls("t1"))
        assert step.tool_calls[0].arguments == {"path": "t1"}
        session.record(step.tool_calls[0].result("here"))
        sent += [session.next(), session.next()]
        return [context.to("anthropic", max_tokens=9) for context in sent]

    assert talk("s", Listening(scribble)) == talk("t")
    assert steps_of(ledger, "s")[-2].payload.model == "claude-sonnet-4-20250514"


def test_plugins_hear_of_it_in_the_order_of_their_names(open_nexus: OpenNexus) -> None:
    order: list[str] = []

    class Beta(Watcher):
        @hookimpl
        def nexus_call_assembled(self, context: AssembledContext) -> None:  # noqa: ARG002 - only who hears matters
            order.append("Beta")

    class Alpha(Watcher):
        @hookimpl
        def nexus_call_assembled(self, context: AssembledContext) -> None:  # noqa: ARG002 - as above
            order.append("Alpha")

    open_nexus(plugins=[Beta(), Alpha()]).session("s", model="gpt-4o").ask("Why?")

    assert order == ["Alpha", "Beta"]


def test_a_plugin_may_use_the_session_while_it_is_told(open_nexus: OpenNexus) -> None:
    found: list[bool] = []
    used: Session = open_nexus(plugins=[Listening(lambda _: found.append(used.is_open))]).session("s")

    used.ask("Why?")
    used.record(says("Because."))

    assert found == [True, False]


def test_no_transaction_is_open_while_plugins_are_told(open_nexus: OpenNexus, tmp_path: Path, clock: Clock) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    other = open_nexus(ledger=url)

    def write(_: object) -> None:
        clock.ms += 1
        other.session(f"other-{clock.ms}").record(AgentResult(messages=[{"role": "assistant", "content": "Hi."}]))

    problems: list[Problem] = []
    session = open_nexus(ledger=url, plugins=[Listening(write)], report=problems.append).session("s", model="gpt-4o")
    session.ask("Why?")
    session.record(says("Because."))

    assert problems == []
    assert len(other.ledger.sessions()) == 3


def test_a_slow_plugin_keeps_nobody_else_waiting(open_nexus: OpenNexus) -> None:
    entered, done = Event(), Event()

    def wait(heard: Any) -> None:
        if getattr(heard, "session_label", "") == "slow":
            entered.set()
            assert done.wait(60)

    nexus = open_nexus(plugins=[Listening(wait)])
    slow = Thread(target=nexus.session("slow", model="gpt-4o").ask, args=["Why?"])
    slow.start()
    assert entered.wait(60)

    session = nexus.session("quick", model="gpt-4o")
    session.ask("Why?")
    step = session.record(says("Because."))

    assert (step.done, slow.is_alive()) == (True, True)
    done.set()
    slow.join()


def test_what_is_told_is_traced(open_nexus: OpenNexus, watcher: Watcher) -> None:
    traced: list[HookCall] = []
    session = open_nexus(plugins=[watcher], trace=traced.append).session("s", model="gpt-4o")

    session.ask("Why?")
    session.record(says("Because."))

    told = [(call.hook, call.failed) for call in traced if call.plugin == "Watcher"]
    assert told == [("nexus_call_assembled", False), ("nexus_step_recorded", False)]


def test_notifying_a_plugin_takes_no_wait_of_its_own(tmp_path: Path, nexus_home: Path) -> None:
    def steps_waited(work: Operation[Any]) -> int:
        """How often a pipeline waits, each of which is a thread in a program with a loop."""
        waited, value = 0, None
        try:
            while True:
                todo = work.send(value)
                waited, value = waited + 1, todo()
        except StopIteration:
            return waited

    def waits(*plugins: object) -> tuple[int, int]:
        with Nexus(
            tmp_path, home=nexus_home, ledger=MemoryLedger(), plugins=plugins, disable=["telemetry"], installed=False
        ) as nexus:
            pipeline: Engine = nexus.session("s", model="gpt-4o")._engine  # noqa: SLF001 - how often it waits cannot be seen from outside
            asked = steps_waited(pipeline.ask("Why?", interrupt=False, event={}))
            return asked, steps_waited(pipeline.record(says("Because."), interrupted=None))

    alone, watched = waits(), waits(Watcher())

    assert alone == watched
