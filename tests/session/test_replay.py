"""What was sent before a reply, put together again from what is kept alone."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.dialects.neutral import encode_value
from nexus_core.errors import LedgerError, TurnError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.testing import write_files
from nexus_core.thread.state import RecordedStep
from nexus_core.types.assembled import AgentResult, AssembledContext
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message
from tests.effort import examples
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import TOOLS, add_step, calls, compaction_of, says, steps_of
from tests.session.test_prefix import Words


def neutral(context: AssembledContext) -> str:
    """Everything that reaches the model, in no API's shape."""
    return json.dumps(
        [context.system_prompt, [encode_value(each) for each in (*context.messages, *context.tools)], context.model]
    )


def test_a_reply_says_what_was_sent(open_session: OpenSession, open_nexus: OpenNexus) -> None:
    session = open_session()
    first = session.ask("Why?", platform="slack", hook_data={"git": "clean"})
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("found"))
    second = session.next()
    last = session.record(says("Because.", name="msg_2"))

    assert neutral(session.replay(step.id)) == neutral(first)
    assert neutral(session.replay(last.id)) == neutral(second)
    assert neutral(open_nexus().replay(last.id)) == neutral(second)
    assert session.replay(last.id).to("anthropic", cache=False) == second.to("anthropic", cache=False)


def test_what_lies_on_disk_does_not_matter(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    nexus = open_nexus()
    session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
    sent = session.ask("Why?")
    reply = session.record(says("Because."))
    shutil.rmtree(tmp_path / "work")

    assert neutral(nexus.replay(reply.id)) == neutral(sent)
    assert nexus.replay(reply.id).token_budget.total == sent.token_budget.total


def test_a_step_that_there_is_not_is_named(open_session: OpenSession) -> None:
    with pytest.raises(UsageError, match="there is no step 'nowhere'"):
        open_session().replay("nowhere")


def test_a_turn_that_was_made_elsewhere_was_not_sent(open_session: OpenSession) -> None:
    session = open_session()
    step = session.record(AgentResult(messages=[Message("user", "Why?"), Message("assistant", "Because.")]))

    with pytest.raises(TurnError, match="nothing was sent"):
        session.replay(step.id)


def test_a_lost_prompt_is_an_error_that_names_it(open_nexus: OpenNexus, ledger: MemoryLedger) -> None:
    ledger.create("s")
    data: dict[str, Any] = {"epoch": "f00d", "model": "gpt-4o"}
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "Why?"),)))
    sealed = add_step(ledger, "s", NewStep(kind="sealed", data=data))

    with pytest.raises(LedgerError, match="there is no blob f00d"):
        open_nexus().replay(sealed.id)


class Story:
    """A random conversation: what was sent before each reply."""

    def __init__(self, nexus: Nexus, chance: random.Random, work: Path) -> None:
        self.nexus = nexus
        self.chance = chance
        self.work = work
        self.session = nexus.session("s", model="words", tools=TOOLS)
        self.forks = 0
        self.sent: dict[str, str] = {}

    def note(self, step: RecordedStep, context: AssembledContext) -> None:
        """Keep what was sent before a reply; everything in it was counted."""
        self.sent[step.id] = neutral(context)
        if context.model == "words":
            words = [Words().count_messages([message]) for message in context.messages]
            assert list(context.message_tokens) == words

    def turn(self, number: int) -> None:
        self.meddle()
        context = self.session.ask(f"question {number} " + "word " * self.chance.randint(0, 60))
        for round_ in range(self.chance.randint(0, 3)):
            step = self.session.record(calls("a", "b", name=f"msg_{number}_{round_}"))
            self.note(step, context)
            for call in self.chance.sample(step.tool_calls, 2):
                self.session.record(call.result("found " * self.chance.randint(1, 40)))
            if self.chance.random() < 0.2:
                self.meddle()
            context = self.session.next()
        last = self.session.record(says("so " * self.chance.randint(1, 60), name=f"msg_{number}"))
        self.note(last, context)

    def meddle(self) -> None:
        """Something changes between two calls."""
        happens = self.chance.randint(0, 12)
        if happens == 0:
            write_files(self.work, {"NEXUS.md": f"Rule {self.chance.random()}.\n"})
        elif happens == 1:
            tools = TOOLS if self.chance.random() < 0.5 else []
            self.session = self.nexus.session(self.session.name, tools=tools)
        elif happens == 2:
            self.session.reload()
        elif happens == 3:
            model = self.chance.choice(["words", "claude-sonnet-4"])
            self.session = self.nexus.session(self.session.name, model=model)
        elif happens == 4 and not self.is_open():
            self.forks += 1
            self.session = self.session.fork(f"fork {self.forks}")
        elif happens == 5:
            self.session.compact()
        elif happens == 6:
            with suppress(TurnError):  # nothing is compacted
                self.session.undo()
        elif happens == 7:
            step = self.chance.choice(steps_of(self.nexus.ledger, self.session.name) or [None])
            with suppress(TurnError, UsageError):  # a summary stands for it, or it says nothing
                self.session.pin(step.id if step else "")

    def is_open(self) -> bool:
        record = self.nexus.ledger.session(self.session.name)
        return record is None or record.open_turn is not None


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(8), deadline=None)
def test_every_reply_of_a_random_conversation_can_be_replayed(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    tell_and_replay(tmp_path_factory.mktemp("replay"), seed)


@pytest.mark.slow  # the random conversation above is its small form
def test_a_conversation_with_compactions_pins_and_reverts_can_be_replayed(tmp_path: Path) -> None:
    ledger = tell_and_replay(tmp_path, 4)

    kinds = Counter(step.kind for step in ledger.steps())
    assert kinds["compaction"] > 2
    assert kinds["revert"]
    assert any(compaction_of(step).pinned for step in ledger.steps() if step.kind == "compaction")
    assert list(ledger.verify()) == []


@pytest.mark.slow  # as above
@pytest.mark.usefixtures("only_cuts")
def test_a_conversation_with_cuts_epochs_and_forks_can_be_replayed(tmp_path: Path) -> None:
    ledger = tell_and_replay(tmp_path, 2)

    assert len({json.dumps(step.payload.cut) for step in ledger.steps()}) > 2
    assert len({step.payload.epoch for step in ledger.steps()}) > 3
    assert len(ledger.sessions()) > 2


def tell_and_replay(work: Path, seed: int) -> MemoryLedger:
    """Tell a random story, and replay every reply of it in another place."""
    ledger = MemoryLedger()
    strategy = ["oldest_first", "middle_out"][seed % 2]
    write_files(work / "home", {"config.json": json.dumps({"truncation": {"strategy": strategy}})})
    with Nexus(work, home=work / "home", defaults=False, installed=False, ledger=ledger, plugins=[Words()]) as nexus:
        story = Story(nexus, random.Random(seed), work)  # noqa: S311 - the same story for the same seed
        for number in range(30):
            story.turn(number)

    with Nexus(work, layers=False, installed=False, ledger=ledger, plugins=[Words()]) as other:
        for step, sent in story.sent.items():
            assert neutral(other.replay(step)) == sent
    return ledger


@pytest.mark.usefixtures("only_cuts")
def test_replaying_reads_no_more_than_was_sent(open_nexus: OpenNexus, ledger: MemoryLedger) -> None:
    session = open_nexus(plugins=[Words()]).session("s", model="words")
    replies = []
    for number in range(40):
        session.ask("word " * 50)
        replies.append(session.record(says("word " * 50, name=f"msg_{number}")).id)

    context = open_nexus(plugins=[Words()]).replay(replies[30])

    assert len(context.history) < 30
    assert len(steps_of(ledger, "s")) == 121


# ---- the same arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["anthropic", "openai", "responses", "gemini"])
def test_settings_that_are_gone_count_for_what_was_sent_with_them(
    open_nexus: OpenNexus, tmp_path: Path, nexus_home: Path, api: str
) -> None:
    said = {
        "models": {"mine": {"window": 100_000, "max_output": 500}},
        "provider": {"options": {"temperature": 0.5}},
        "budget": {"reserve_response": 400},
        "cache": {"ttl": "1h"},
    }
    write_files(nexus_home, {"config.json": json.dumps(said)})
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief. " * 2000})
    session = open_nexus().session("s", model="mine", tools=TOOLS)
    sent = session.ask("Why?").to(api)
    reply = session.record(says("Because."))
    (nexus_home / "config.json").unlink()

    assert open_nexus().session("s").replay(reply.id).to(api) == sent
    assert open_nexus().replay(reply.id).to(api) == sent
    assert "0.5" in json.dumps(sent)


def test_settings_that_change_inside_a_turn_count_from_then_on(open_nexus: OpenNexus, nexus_home: Path) -> None:
    def configure(temperature: float) -> None:
        said = {"provider": {"options": {"temperature": temperature}}}
        write_files(nexus_home, {"config.json": json.dumps(said)})

    configure(0.1)
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", tools=TOOLS)
    sent = [session.ask("Why?").to("openai")]
    replies = [session.record(calls("t1"))]
    session.record(replies[0].tool_calls[0].result("found"))
    configure(0.9)
    sent.append(session.next().to("openai"))
    replies.append(session.record(says("Because.", name="msg_2")))

    assert [each["temperature"] for each in sent] == [0.1, 0.9]
    assert [nexus.replay(reply.id).to("openai") for reply in replies] == sent


def test_the_session_counts_in_which_it_was_sent(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", tools=TOOLS)
    sent = session.ask("Why?")
    reply = session.record(says("Because."))
    fork = session.fork("f")
    nexus.ledger.rename("s", "other")

    for replayed in (nexus.replay(reply.id), fork.replay(reply.id), nexus.session("other").replay(reply.id)):
        assert replayed.session_label == "s"
        assert replayed.to("openai") == sent.to("openai")
        assert "prompt_cache_key" in replayed.to("openai")


def test_no_address_key_or_program_of_the_settings_is_kept(open_nexus: OpenNexus, nexus_home: Path) -> None:
    said = {
        "provider": {
            "base_url": "https://private.example",
            "api_key_env": "MY_KEY",
            "options": {"temperature": 0.5, "extra_headers": {"authorization": "Bearer hidden"}},
        },
        "compaction": {"command": ["summarize", "hidden"]},
    }
    write_files(nexus_home, {"config.json": json.dumps(said)})
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o")
    session.ask("Why?")

    (setup,) = {step.payload.settings_digest for step in steps_of(nexus.ledger, "s") if step.payload.settings_digest}
    kept = nexus.ledger.blob(str(setup))
    assert kept is not None
    assert json.loads(kept)["provider"] == {"options": {"temperature": 0.5}}
    assert not [word for word in ("private", "MY_KEY", "hidden") if word in kept.decode()]
