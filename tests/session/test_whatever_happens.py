"""Whatever is said, answered, given up and begun anew: calls go on from each other, and every call has its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.types.messages import Message
from tests.effort import examples
from tests.session.support import TOOLS, calls, says, steps_of


@given(
    script=st.lists(
        st.tuples(st.integers(0, 3), st.randoms(use_true_random=False), st.booleans(), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=examples(30), deadline=None)
def test_whatever_happens_each_call_begins_with_what_the_one_before_sent(
    script: list[tuple[int, Any, bool, bool]],
) -> None:
    ledger = MemoryLedger()
    with Nexus(layers=False, installed=False, ledger=ledger) as nexus:
        sent: tuple[Message, ...] = ()
        session = nexus.session("s", model="gpt-4o", tools=TOOLS)
        context = session.ask("begin")
        for number, (count, random, restart, interrupted) in enumerate(script):
            assert context.messages[: len(sent)] == sent
            sent = context.messages
            if restart:
                session = nexus.session("s", model="gpt-4o", tools=TOOLS)
                assert session.next() == context
            ids = [f"t{place}" for place in range(count)]
            reply = calls(*ids, name=f"msg_{number}") if ids else says("so", name=f"msg_{number}")
            step = session.record(reply, interrupted=interrupted)
            for call in random.sample(step.tool_calls, len(step.tool_calls)):
                session.record(call.result(f"result {call.id}"))
                assert session.record(call.result(f"result {call.id}")).duplicate
            context = session.ask(f"go on {number}") if step.done else session.next()
        assert list(ledger.verify()) == []
        assert unanswered(context.messages) == []
        finished = [step for step in steps_of(ledger, "s") if step.turn != ledger.session("s").open_turn]  # type: ignore[union-attr]
        for turn in {step.turn for step in finished}:
            assert unanswered(message for step in finished if step.turn == turn for message in step.messages) == []


def unanswered(messages: Iterable[Message]) -> list[str]:
    """The calls that have no result, or more than one."""
    spoken = list(messages)
    results = Counter(result.call_id for message in spoken for result in message.tool_results)
    wanted = Counter(call.id for message in spoken for call in message.tool_calls)
    return sorted(((wanted - results) + (results - wanted)).elements())
