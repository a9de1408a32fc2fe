"""What a provider can cache: each call begins with the one before, between cuts, whatever happens."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Section, hookimpl
from nexus_core.dialects.neutral import encode_value
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.tokens.estimator import TextCounter
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.budget import Model
from tests.session.conftest import Clock, OpenNexus
from tests.session.support import TOOLS, calls, says, steps_of

TURNS = pytest.mark.parametrize("turns", [60, pytest.param(200, marks=pytest.mark.slow)])


class Words(TextCounter):
    """A model that counts words, with a window that some dozens of turns fill."""

    name = "words"
    exact = True

    def count(self, text: str) -> int:
        return len(text.split())

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="words", window=1800, api="anthropic")]

    @hookimpl
    def nexus_token_counter(self, model: str) -> Words | None:
        return self if model == "words" else None

    @hookimpl
    def nexus_current_sections(self) -> list[Section]:
        return [Section("mood", title="Mood", text=f"mood {random.random()}", kind="memory")]  # noqa: S311 - any number


def bytes_of(context: AssembledContext) -> str:
    """The neutral messages of a call."""
    return json.dumps([encode_value(message) for message in context.messages], ensure_ascii=False)[:-1]


def converse(session: Session, chance: random.Random, number: int, clock: Clock) -> list[AssembledContext]:
    """One turn with a loop of tools, some of it interrupted; what was sent."""
    clock.ms += chance.randint(1, 10**7)
    sent = [session.ask(f"question {number} " + "word " * chance.randint(0, 30), hook_data={"n": chance.random()})]
    for round_ in range(chance.randint(0, 4)):
        step = session.record(calls("a", "b", name=f"msg_{number}_{round_}"))
        for call in chance.sample(step.tool_calls, 2):
            session.record(call.result("found " * chance.randint(1, 20)))
        sent.append(session.next())
    session.record(says("so", name=f"msg_{number}"), interrupted=chance.random() < 0.1)
    return sent


@pytest.mark.slow
@pytest.mark.usefixtures("only_cuts")
@pytest.mark.acceptance("Y-05", "C-10")
@TURNS
@pytest.mark.parametrize("strategy", ["oldest_first", "middle_out"])
def test_over_many_turns_each_call_begins_with_the_one_before_between_cuts(
    open_nexus: OpenNexus, nexus_home: Path, ledger: StoreLedger, clock: Clock, *, strategy: str, turns: int
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"strategy": strategy}})})
    chance = random.Random(strategy)  # noqa: S311 - the same turns in every run
    nexus = open_nexus(plugins=[Words()])
    session = nexus.session("s", model="words", tools=TOOLS)
    before: AssembledContext | None = None
    cuts, moved = 0, []

    for number in range(turns):
        if chance.random() < 0.1:  # another program goes on
            session = nexus.session("s")
        for context in converse(session, chance, number, clock):
            assert context.token_budget.remaining >= 0
            if before is not None and not bytes_of(context).startswith(bytes_of(before)):
                moved.append(context)
                assert context.decisions != before.decisions
            before = context
    cuts = len({json.dumps(step.payload.cut, sort_keys=True) for step in steps_of(ledger, "s")}) - 1

    assert 2 <= len(moved) <= cuts <= turns / 4
    assert list(ledger.verify()) == []


@TURNS
@pytest.mark.acceptance("Y-05", "C-10")
def test_over_many_turns_each_call_begins_with_the_one_before_between_compactions(
    open_nexus: OpenNexus, ledger: StoreLedger, clock: Clock, turns: int
) -> None:
    chance = random.Random("compactions")  # noqa: S311 - the same turns in every run
    nexus = open_nexus(plugins=[Words()])
    session = nexus.session("s", model="words", tools=TOOLS)
    before: AssembledContext | None = None
    moved = 0

    for number in range(turns // 2):
        if chance.random() < 0.1:  # another program goes on
            session = nexus.session("s")
        for context in converse(session, chance, number, clock):
            assert context.token_budget.remaining >= 0
            assert context.decisions == ()
            if before is not None and not bytes_of(context).startswith(bytes_of(before)):
                moved += 1
                assert [finding.code for finding in context.findings] == ["compacted"]
            before = context
    compactions = sum(step.kind == "compaction" for step in steps_of(ledger, "s"))

    assert 2 <= moved == compactions <= turns / 8
    assert list(ledger.verify()) == []


@pytest.mark.usefixtures("only_cuts")
def test_a_cut_leaves_room_for_several_turns(open_nexus: OpenNexus, clock: Clock) -> None:
    session = open_nexus(plugins=[Words()]).session("s", model="words")
    dropped: list[Any] = []

    for number in range(60):
        clock.ms += 1000
        context = session.ask("word " * 50)
        session.record(says("word " * 50, name=f"msg_{number}"))
        dropped.append(context.decisions)

    lasting = [dropped.count(each) for each in dict.fromkeys(dropped) if each]
    assert len(lasting) >= 2
    assert min(lasting[:-1]) >= 3


@pytest.mark.usefixtures("only_cuts")
def test_a_larger_window_brings_back_what_was_left_out(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(plugins=[Words()])
    session = nexus.session("s", model="words")
    for number in range(30):
        session.ask("word " * 50)
        session.record(says("word " * 50, name=f"msg_{number}"))
    cut = session.preview("And?")

    whole = nexus.session("s", model="claude-sonnet-4").ask("And?")

    assert cut.decisions
    assert whole.decisions == ()
    assert len(whole.history) == 61


@pytest.mark.usefixtures("only_cuts")
def test_what_was_left_out_is_counted_in_steps_and_tokens(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus(plugins=[Words()]).session("s", model="words")
    for number in range(30):
        session.ask("word " * 50)
        session.record(says("word " * 50, name=f"msg_{number}"))

    context = session.ask("And?")

    (decision,) = context.decisions
    gone = steps_of(ledger, "s")[decision.first : decision.last + 1]
    assert (decision.action, decision.rule, decision.first) == ("dropped", "oldest_first", 0)
    assert decision.tokens_before == sum(step.tokens for step in gone)
    kept = {each.name for each in context.placements if each.zone == "history" and each.name}
    assert not kept & {step.id for step in gone}
    (left_out,) = [each for each in context.placements if each.decision.action == "dropped"]
    assert left_out.title == f"{len(gone)} earlier steps"
