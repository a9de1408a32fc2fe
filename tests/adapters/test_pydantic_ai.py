"""The real pydantic-ai: what a model is sent fits, and conversations are sessions."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import Nexus, check
from nexus_core.errors import ConflictError, SessionExistsError, TurnError, UnknownNameError
from tests.conftest import ROOT, Cli

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nexus_home")]

KILLED = """
import asyncio, os, signal, sys
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelRequest, UserPromptPart
from nexus_core import Nexus
from nexus_core.adapters.pydantic_ai_conversations import NexusConversationStore

async def main():
    store = NexusConversationStore(Nexus(sys.argv[1], ledger=sys.argv[2]))
    talk = Conversation(conversation_id="talk")
    for number in range(3):
        talk.messages.append(ModelRequest([UserPromptPart(f"message {number}")]))
        await store.save(talk)
        print("saved", number, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def world() -> SimpleNamespace:
    """pydantic-ai, and the adapter for it."""
    names: dict[str, Any] = {}
    for module in (
        "pydantic_ai",
        "pydantic_ai.messages",
        "pydantic_ai.capabilities",
        "pydantic_ai.conversation",
        "pydantic_ai.conversation_store",
        "pydantic_ai.models.function",
        "nexus_core.adapters.pydantic_ai",
        "nexus_core.adapters.pydantic_ai_conversations",
    ):
        names |= vars(import_module(module))
    return SimpleNamespace(**names)


@pytest.fixture
def nexus(work: Path) -> Iterator[Nexus]:
    with Nexus(work) as opened:
        yield opened


def looking_agent(world: SimpleNamespace, rounds: int, sent: list[Any], **options: Any) -> Any:
    """An agent whose model calls a tool twice in each round, then answers."""

    async def reply(messages: list[Any], info: Any) -> Any:  # noqa: ARG001 - pydantic-ai's
        sent.append(list(messages))
        number = sum(isinstance(each, world.ModelResponse) for each in messages)
        if len(sent) > rounds:
            return world.ModelResponse([world.TextPart("Nothing.")])
        calls = [world.ToolCallPart("look", {"path": f"{number}{each}"}, f"c{len(sent)}{each}") for each in "ab"]
        return world.ModelResponse([world.TextPart(f"round {len(sent)}"), *calls])

    agent = world.Agent(world.FunctionModel(reply, model_name="gpt-4o"), instructions="Be thorough.", **options)

    def look(path: str) -> str:
        """Look at a file."""
        return f"There is nothing in {path}. " * 20

    agent.tool_plain(look)
    return agent


def shown(nexus: Nexus, name: str = "talk") -> list[str]:
    messages = nexus.session(name).messages
    return [message.content or "".join(result.text for result in message.tool_results) for message in messages]


def texts(world: SimpleNamespace, messages: Any) -> list[str]:
    """The texts of messages as a provider would get them."""
    bodies = [each.body for message in messages for each in world.convert_model_message(message)]
    return [body["content"] or "" for body in bodies]


def test_processor_keeps_every_call_of_a_long_loop_valid_and_within_the_budget(world: SimpleNamespace) -> None:
    sent: list[Any] = []
    fitting = world.ProcessHistory(world.fit_history(budget=2000))

    result = asyncio.run(looking_agent(world, 20, sent, capabilities=[fitting]).run("Look everywhere."))

    assert result.output == "Nothing."
    assert len(sent) == 21
    for messages in sent:
        chat = [each.body for message in messages for each in world.convert_model_message(message)]
        assert check(chat, api="openai") == ()
        assert "Look everywhere." in chat[0]["content"]
        assert messages[-1].instructions == "Be thorough."
        assert sum(len(str(body["content"])) for body in chat) < 2000 * 5
    assert 3 < len(sent[-1]) < 30


def test_messages_that_fit_are_the_callers_own(world: SimpleNamespace) -> None:
    messages = [
        world.ModelRequest([world.SystemPromptPart("Be kind."), world.UserPromptPart("Hello.")]),
        world.ModelResponse([world.ThinkingPart("Hm."), world.TextPart("Hi."), world.ToolCallPart("look", "{}", "c")]),
        world.ModelRequest([world.ToolReturnPart("look", {"a": 1}, "c"), world.UserPromptPart("And?")]),
    ]

    fitted = world.fit_model_messages(messages, budget=5000)

    assert all(one is other for one, other in zip(fitted, messages, strict=True))


def test_long_result_is_shortened_in_a_copy(world: SimpleNamespace) -> None:
    messages = [
        world.ModelRequest([world.UserPromptPart("Hello.")]),
        world.ModelResponse([world.ToolCallPart("look", "{}", "c")]),
        world.ModelRequest([world.ToolReturnPart("look", "long " * 3000, "c", metadata={"kept": True})]),
        world.ModelResponse([world.TextPart("I see.")]),
        world.ModelRequest([world.UserPromptPart("Good.")]),
    ]

    fitted = world.fit_model_messages(messages, budget=1000, result_tokens=200)

    part = fitted[2].parts[0]
    assert len(part.content) < 2000 < len(messages[2].parts[0].content)
    assert (part.tool_name, part.tool_call_id, part.metadata) == ("look", "c", {"kept": True})
    assert fitted[0] is messages[0]


def test_unknown_option_is_refused_at_once(world: SimpleNamespace) -> None:
    with pytest.raises(UnknownNameError, match="budgt"):
        world.fit_history(budgt=1)


def test_conversation_resumes_in_another_process_and_commands_read_it(
    world: SimpleNamespace, work: Path, cli: Cli
) -> None:
    async def ask(text: str, rounds: int) -> Any:
        with Nexus(work) as nexus:
            store = world.NexusConversationStore(nexus)
            talk = await store.load("talk") or world.Conversation(conversation_id="talk")
            result = await looking_agent(world, rounds, []).run(text, conversation=talk)
            await store.save(result)
            return result

    asyncio.run(ask("Where is the zebra?", 1))
    result = asyncio.run(ask("And now?", 0))

    with Nexus(work) as nexus:
        assert shown(nexus) == texts(world, result.all_messages())
        assert nexus.session("talk").usage.output_tokens == result.conversation.usage.output_tokens > 0
        (read,) = asyncio.run(world.NexusConversationStore(nexus).list_conversations())
        again = asyncio.run(world.NexusConversationStore(nexus).load("talk"))
    assert again.messages == result.all_messages()
    assert read.conversation_id == "talk"
    (listed,) = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert (listed["label"], listed["turns"]) == ("talk", 2)
    printed = cli("session", "show", "talk", "--limit", "all").out
    assert printed.index("Where is the zebra?") < printed.index("-> look") < printed.index("And now?")
    assert "Where is the zebra?" in cli("session", "search", "zebra").out
    assert cli("ledger", "verify").code == 0


def test_store_does_what_the_store_of_pydantic_ai_does(world: SimpleNamespace, nexus: Nexus) -> None:
    async def use(store: Any) -> Any:
        talk = world.Conversation(conversation_id="talk")
        for text in ("one", "two", "three"):
            talk.messages.append(world.ModelRequest([world.UserPromptPart(text)]))
            await store.save(talk, scope="ada")
        entries = await store.load_entries("talk")
        branched = await store.branch("talk", at=1, expected_revision=talk.revision)
        branched.messages.append(world.ModelRequest([world.UserPromptPart("other two")]))
        await store.save(branched)
        fork = await store.fork("talk", at=1, new_conversation_id="fork")
        fork.messages.append(world.ModelRequest([world.UserPromptPart("forked two")]))
        await store.save(fork)
        rewritten = world.Conversation(
            conversation_id="talk",
            messages=[world.ModelRequest([world.UserPromptPart("new one")])],
            revision=branched.revision,
        )
        await store.save(rewritten)
        conflicts = 0
        for old in (talk, world.Conversation(conversation_id="fork")):
            try:
                await store.save(old)
            except world.ConversationConflict:
                conflicts += 1
        windowed = await store.load("fork", limit=1)
        found = [
            [texts(world, (await store.load(name)).messages) for name in ("talk", "fork")],
            len((await store.list_conversations(scope="ada"))[0].branches),
            texts(world, [entry.message for entry in entries]),
            texts(world, windowed.messages),
            await store.load("none"),
            await store.load("talk", scope="bob"),
            conflicts,
            sorted(record.conversation_id for record in await store.list_conversations()),
        ]
        await store.delete("talk")
        return [*found, await store.load("talk"), texts(world, (await store.load("fork")).messages)]

    ours, theirs = world.NexusConversationStore(nexus), world.InMemoryConversationStore()

    assert asyncio.run(use(ours)) == asyncio.run(use(theirs))
    assert shown(nexus, "fork") == ["one", "forked two"]


def test_session_shows_the_branch_that_a_conversation_is_on(world: SimpleNamespace, nexus: Nexus) -> None:
    async def use() -> Any:
        store = world.NexusConversationStore(nexus)
        talk = world.Conversation(conversation_id="talk")
        for text in ("one", "two", "three"):
            talk.messages.append(world.ModelRequest([world.UserPromptPart(text)]))
        await store.save(talk)
        tip = (await store.load_entries("talk"))[-1].id
        branched = await store.branch("talk", at=1, expected_revision=talk.revision)
        before = shown(nexus)
        await store.branch("talk", from_entry=tip, expected_revision=branched.revision)
        return before

    assert asyncio.run(use()) == ["one"]
    assert shown(nexus) == ["one", "two", "three"]


def test_killed_program_loses_no_saved_message(world: SimpleNamespace, work: Path) -> None:
    url = f"sqlite:///{work}/ledger.db"

    outcome = subprocess.run(
        [sys.executable, "-c", KILLED, str(work), url], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (outcome.returncode, outcome.stdout.count("saved")) == (-9, 3)
    with Nexus(work, ledger=url) as nexus:
        talk = asyncio.run(world.NexusConversationStore(nexus).load("talk"))
    assert texts(world, talk.messages) == ["message 0", "message 1", "message 2"]


def test_messages_of_every_kind_come_back_as_they_were(world: SimpleNamespace, nexus: Nexus) -> None:
    picture = world.BinaryImage(b"\x89PNG\x00", media_type="image/png")
    messages = [
        world.ModelRequest([world.SystemPromptPart("Be kind."), world.UserPromptPart(["Look:", picture])]),
        world.ModelResponse(
            [
                world.ThinkingPart("Hm.", signature="sealed"),
                world.NativeToolCallPart("web_search", {"q": "é\x00"}, "n"),
                world.ToolCallPart("look", '{"broken', "c"),
            ],
            model_name="gpt-4o",
            provider_details={"x": [1, None]},
        ),
        world.ModelRequest([world.ToolReturnPart("look", "Not JSON.", "c", outcome="retried")]),
        world.ModelResponse([]),
        world.ModelRequest([world.RetryFeedbackPart("Say something.", retry=world.RetryInfo("no_output"))]),
    ]
    talk = world.Conversation(conversation_id="talk", messages=messages)

    async def use() -> Any:
        await world.NexusConversationStore(nexus).save(talk)
        return await world.NexusConversationStore(nexus).load("talk")

    assert asyncio.run(use()).messages == messages
    assert "Not JSON." in "".join(shown(nexus))


def test_session_of_another_program_and_one_with_an_open_turn_are_refused(world: SimpleNamespace, nexus: Nexus) -> None:
    nexus.session("chat").ask("Hello.")
    store = world.NexusConversationStore(nexus)
    talk = world.Conversation(conversation_id="talk")
    asyncio.run(store.save(talk))
    nexus.session("talk").ask("Hello.")

    with pytest.raises(SessionExistsError, match="'chat' was not created by pydantic-ai"):
        asyncio.run(store.load("chat"))
    with pytest.raises(TurnError, match="a turn is open"):
        asyncio.run(store.save(talk))


def test_messages_of_another_program_are_a_conflict_and_not_left_out(world: SimpleNamespace, nexus: Nexus) -> None:
    store = world.NexusConversationStore(nexus)
    talk = world.Conversation(conversation_id="talk")
    asyncio.run(store.save(talk))
    session = nexus.session("talk")
    session.ask("Hello.")
    session.record({"role": "assistant", "content": "Hi."})

    for load in (store.load, store.load_entries):
        with pytest.raises(ConflictError, match="'talk' also has messages that pydantic-ai did not save"):
            asyncio.run(load("talk"))
    talk.messages.append(world.ModelRequest([world.UserPromptPart("And?")]))
    with pytest.raises(world.ConversationConflict):
        asyncio.run(store.save(talk))
    asyncio.run(store.delete("talk"))
    assert nexus.ledger.session("talk") is None


def test_store_without_a_nexus_closes_its_own(
    world: SimpleNamespace, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    store = world.NexusConversationStore()
    asyncio.run(store.save(world.Conversation(conversation_id="talk")))
    store.close()

    again = world.NexusConversationStore()
    read = asyncio.run(again.load("talk"))
    again.close()

    assert read.messages == []
