"""Which tools a model was offered when it gave a reply, told from what is kept alone."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core.errors import LedgerError, TurnError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.plugin.ledgers import NewStep, tools_offered
from nexus_core.types.assembled import AgentResult
from nexus_core.types.messages import Message
from tests.session.conftest import OpenNexus
from tests.session.support import TOOLS, add_step, calls, says

OTHER = [{**TOOLS[0], "name": "other"}]


def test_each_reply_was_offered_what_was_sent_before_it(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    sent, steps = [], []
    for number, tools in enumerate([TOOLS, OTHER, [], [*TOOLS, *OTHER]]):
        session = nexus.session("s", model="claude-sonnet-4", tools=tools)
        sent.append(session.ask(f"question {number}").tools)
        steps.append(session.record(says("Because.", name=f"msg_{number}")))

    assert [tools_offered(nexus.ledger, step.id) for step in steps] == sent
    assert [[tool.name for tool in tools] for tools in sent] == [["look"], ["other"], [], ["look", "other"]]


def test_tools_that_change_in_a_turn_count_for_the_replies_after_it(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask("Why?")
    first = session.record(calls("t1"))
    session.record(first.tool_calls[0].result("found"))
    session = nexus.session("s", model="claude-sonnet-4", tools=OTHER)
    then = session.next().tools
    second = session.record(calls("t2", name="msg_2"))

    assert [tool.name for tool in tools_offered(nexus.ledger, first.tool_calls[0].key.step)] == ["look"]
    assert tools_offered(nexus.ledger, second.tool_calls[0].key.step) == then


def test_a_step_that_there_is_not_was_offered_nothing(open_nexus: OpenNexus) -> None:
    with pytest.raises(UsageError, match="there is no step 'nowhere'"):
        tools_offered(open_nexus().ledger, "nowhere")


def test_nobody_knows_what_was_offered_elsewhere(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    result = AgentResult(messages=[Message("user", "Why?"), Message("assistant", "Because.")])
    step = nexus.session("s", model="claude-sonnet-4").record(result)

    with pytest.raises(TurnError, match="nothing was sent by Nexus"):
        tools_offered(nexus.ledger, step.id)


def test_what_was_offered_and_is_lost_is_an_error_that_names_it(open_nexus: OpenNexus, ledger: MemoryLedger) -> None:
    ledger.create("s")
    data: dict[str, Any] = {"epoch": "f00d", "model": "gpt-4o"}
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "Why?"),)))
    sealed = add_step(ledger, "s", NewStep(kind="sealed", data=data))

    with pytest.raises(LedgerError, match="there is no blob f00d"):
        tools_offered(open_nexus().ledger, sealed.id)
