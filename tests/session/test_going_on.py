"""Programs die between any two steps, and others go on; several at once do not get in each other's way."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident
from typing import Any

import pytest

from nexus_core.errors import ConflictError, PendingToolCallsError, TurnError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message
from tests.session.conftest import EVERYWHERE, OpenNexus, OpenSession
from tests.session.support import TOOLS, add_step, calls, kinds_of, says, spoken, steps_of

pytestmark = [EVERYWHERE, pytest.mark.usefixtures("no_session_start")]

REPLIES = [calls("t1", "t2", name="msg_1"), calls("t3", name="msg_2"), says("Because.", name="msg_3")]


class Killed(Exception):  # noqa: N818 - it reads as what happened
    """The program was ended."""


class Mortal:
    """A ledger in which a program writes so many times and no more."""

    def __init__(self, ledger: StoreLedger, writes: int) -> None:
        self._ledger = ledger
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        if self._left == 0:
            raise Killed
        self._left -= 1
        return self._ledger.append(label, step, after=after)


def work(session: Session, seen: list[str]) -> str:
    """A program that begins the conversation, or goes on with it, whatever was recorded before."""
    try:
        context = session.next()
    except PendingToolCallsError:
        context = finish(session)
    except TurnError:
        if session.messages:
            return session.messages[-1].content
        context = session.ask("Why?")
    while True:
        seen.append(json.dumps(context.to("anthropic", max_tokens=9)))
        step = session.record(answer_to(context.progress))
        if step.done:
            return step.text
        context = finish(session)


def finish(session: Session) -> Any:
    for call in reversed(session.pending_calls):
        session.record(call.result(f"result {call.id}"))
    return session.next()


def answer_to(progress: tuple[Message, ...]) -> dict[str, Any]:
    """What the model says next."""
    return REPLIES[sum(message.role == "assistant" for message in progress)]


def test_a_program_that_dies_between_any_two_steps_can_be_followed_by_another(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    def program(label: str, ledger: object, seen: list[str]) -> str:
        return work(open_nexus(ledger=ledger).session(label, model="claude-sonnet-4", tools=TOOLS), seen)

    undisturbed: list[str] = []
    program("whole", ledger, undisturbed)
    messages = [step.messages for step in steps_of(ledger, "whole")]

    for writes in range(len(messages) + 1):
        label = f"dies after {writes}"
        seen: list[str] = []
        try:
            program(label, Mortal(ledger, writes), seen)
        except Killed:
            # Read before the next program: what that sends must be what the first would have sent.
            assert len(steps_of(ledger, label)) == writes
            assert program(label, ledger, seen) == "Because."

        assert [step.messages for step in steps_of(ledger, label)] == messages
        assert set(seen) == set(undisturbed)


def test_next_gives_the_same_bytes_in_another_program(open_session: OpenSession) -> None:
    context = open_session().ask("Why?")

    again = open_session().next()

    assert again == context
    assert json.dumps(again.to("openai")) == json.dumps(context.to("openai"))


def test_an_input_that_was_not_sealed_is_sealed_by_the_next_program(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    ledger.create("s")
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "Why?"),)))

    context = open_session().next()

    assert spoken(context.current_message) == "Why?"
    assert kinds_of(ledger, "s") == ["input", "sealed"]


def test_a_call_of_another_program_can_be_answered(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))

    other = open_session()
    (call,) = other.pending_calls
    other.record(call.result("found"))

    assert session.pending_calls == ()
    assert session.next() == other.next()


# ---- several at once ----------------------------------------------------------------------------------------------


def test_of_two_programs_that_ask_one_wins_and_the_other_is_told(open_session: OpenSession) -> None:
    together = Barrier(8)

    def ask(number: int) -> object:
        session = open_session()
        together.wait()
        try:
            return session.ask(f"question {number}")
        except TurnError as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask, range(8)))

    lost = [outcome for outcome in outcomes if isinstance(outcome, TurnError)]
    assert len(lost) == 7
    assert all("next() goes on with it" in str(error) for error in lost)


def test_of_two_programs_that_answer_one_wins_and_the_other_is_told(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    open_session().ask("Why?")
    one, other = open_session(), open_session()
    one.next()
    other.next()
    step = one.record(calls("t1", name="msg_of_one"))

    with pytest.raises(TurnError, match="another reply is recorded already") as caught:
        other.record(says("Because.", name="msg_of_other"))

    assert "if another program works on this session" in str(caught.value)
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply"]
    one.record(step.tool_calls[0].result("found"))


def test_a_reply_to_what_has_been_answered_meanwhile_is_refused(open_session: OpenSession, ledger: StoreLedger) -> None:
    slow, quick = open_session(), open_session()
    slow.ask("Why?")
    step = quick.record(calls("t1"))
    quick.record(step.tool_calls[0].result("found"))

    with pytest.raises(ConflictError, match="somebody else has gone on with session 's'") as caught:
        slow.record(says("I do not know yet.", name="msg_stale"))

    assert "call next()" in str(caught.value)
    assert kinds_of(ledger, "s")[-1] == "result"
    slow.next()
    assert slow.record(says("Because.", name="msg_2")).done


def test_results_from_many_threads_are_all_there(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls(*(f"t{number}" for number in range(24))))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda call: session.record(call.result(f"result {call.id}")), step.tool_calls))

    results = [result for message in session.next().progress for result in message.tool_results]
    assert [result.call_id for result in results] == [f"t{number}" for number in range(24)]
    assert kinds_of(ledger, "s").count("result") == 24


def test_the_same_result_from_many_threads_is_there_once(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls

    with ThreadPoolExecutor(8) as pool:
        steps = list(pool.map(lambda _: session.record(call.result("found")), range(16)))

    assert len({step.id for step in steps}) == 1
    assert [step.duplicate for step in steps].count(False) == 1
    assert kinds_of(ledger, "s").count("result") == 1


# ---- awaited ------------------------------------------------------------------------------------------------------


def test_every_verb_can_be_awaited(open_nexus: OpenNexus) -> None:
    async def converse() -> None:
        session = open_nexus().async_session("s", model="claude-sonnet-4", tools=TOOLS)
        preview = await session.preview("Why?")
        assert await session.ask("Why?") == preview
        step = await session.record(calls("t1"))
        assert [call.id for call in await session.pending_calls] == ["t1"]
        assert await session.is_open
        with pytest.raises(PendingToolCallsError):
            await session.next()
        await session.record(step.tool_calls[0].result("found"))
        await session.next()
        await session.record(says("Because.", name="msg_2"))
        fork = await session.fork("f")
        await fork.ask("But?")
        interrupted = await fork.interrupt()
        assert interrupted is not None
        assert interrupted.done
        assert [message.role for message in await session.messages] == ["user", "assistant", "tool", "assistant"]
        assert (await session.usage).output_tokens == 100
        with pytest.raises(Killed):
            await session.recover(Killed())

    asyncio.run(converse())


def test_the_loop_is_not_held_up_by_the_ledger(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    writers: set[int] = set()

    class Watched(Mortal):
        def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
            writers.add(get_ident())
            return super().append(label, step, after=after)

    async def converse() -> int:
        session = open_nexus(ledger=Watched(ledger, -1)).async_session("s", model="claude-sonnet-4")
        await session.ask("Why?")
        await session.record(says("Because."))
        return get_ident()

    loop = asyncio.run(converse())

    assert writers
    assert loop not in writers


def test_a_task_that_is_cancelled_leaves_a_session_that_goes_on(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus().async_session("s", model="claude-sonnet-4")

    async def give_up() -> None:
        task = asyncio.create_task(session.ask("Why?"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def go_on() -> str:
        if ledger.session("s") is None or not steps_of(ledger, "s"):
            await session.ask("Why?")
        else:
            await session.next()
        return (await session.record(says("Because."))).text

    asyncio.run(give_up())  # which returns when its threads have

    assert asyncio.run(go_on()) == "Because."
