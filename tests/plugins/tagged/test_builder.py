"""The five messages from the services of a program, and the contract over a bus."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from nexus_core.values.settings import Settings
from nexus_plugins.tagged import CORE_IDENTITY, REQUEST, RESPONSE, Bus, BusMessage, ContextBuilder, Run, parse

HISTORY = [
    {"role": "AI", "content": "Hi.", "timestamp": "2025-12-10T07:31:00Z"},
    {"role": "HUMAN", "content": "Hello", "timestamp": "2025-12-10T07:30:00Z"},
]
TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}]
PROFILE = {"prompt_overrides": {"friends_profile": "Likes tea."}}
RUN = Run("ada", "How are you?", "2025-12-10T08:00:00Z", -480)


class Role(Enum):
    HUMAN = "HUMAN"
    AI = "AI"


@dataclass
class StoredMessage:
    """A message as a program with runs of its own keeps it."""

    role: Role
    content: str
    run_id: str = "run-1"


@dataclass
class BusRun:
    """A run that has its user message in a history, and what belongs to the client in its metadata."""

    history: list[StoredMessage]
    metadata: dict[str, object] = field(default_factory=dict)
    owner_key: str = "ada"
    id: str = "run-1"


class LocalBus:
    def __init__(self) -> None:
        self.handlers: dict[str, list[Callable[[BusMessage], Awaitable[None]]]] = {}
        self.sent: list[tuple[str, BusMessage]] = []

    def subscribe(self, topic: str, handler: Callable[[BusMessage], Awaitable[None]]) -> None:
        self.handlers.setdefault(topic, []).append(handler)

    async def publish(self, topic: str, message: BusMessage) -> None:
        self.sent.append((topic, message))
        for handler in self.handlers.get(topic, ()):
            await handler(message)


class Registry:
    def __init__(self, tools: Any = TOOLS) -> None:
        self.tools = tools

    def get_all_tool_definitions(self) -> Any:
        if isinstance(self.tools, Exception):
            raise self.tools
        return self.tools


class Persistence:
    def __init__(self, history: Any = HISTORY) -> None:
        self.history = history
        self.asked: list[tuple[str, int]] = []

    async def get_history(self, owner_key: str, limit: int) -> Any:
        self.asked.append((owner_key, limit))
        if isinstance(self.history, Exception):
            raise self.history
        return self.history


def builder(
    bus: Bus | None = None, *, tools: Any = TOOLS, history: Any = HISTORY, **settings: object
) -> ContextBuilder:
    config = Settings({"plugins": {"tagged": settings}})
    return ContextBuilder(bus or LocalBus(), Registry(tools), config, Persistence(history))


def build(run: Run = RUN, profile: Any = PROFILE, **options: Any) -> list[dict[str, str]]:
    return asyncio.run(builder(**options).build_context(run, profile))


def answer(content: Any, **options: Any) -> dict[str, Any]:
    bus = LocalBus()
    builder(bus, **options).subscribe_to_bus()
    asyncio.run(bus.publish(REQUEST, BusMessage(content, "run-1", "ada")))
    (_, (topic, response)) = bus.sent
    assert topic == RESPONSE
    assert (response.run_id, response.owner_key) == ("run-1", "ada")
    return dict(response.content)


@pytest.mark.acceptance("Z-01")
def test_there_are_exactly_five_messages_in_their_order() -> None:
    messages = build()

    assert [message["role"] for message in messages] == ["system", "user", "user", "user", "user"]
    assert messages[0]["content"] == CORE_IDENTITY
    starts = ("[CAPABILITIES]\n", "[SHARED_MEMORY count=2]\n", "[FRIENDS_INFO]\n", "[THIS_MOMENT]\n")
    assert all(message["content"].startswith(tag) for message, tag in zip(messages[1:], starts, strict=True))


@pytest.mark.acceptance("Z-01", "Z-10")
def test_the_messages_say_what_the_services_know() -> None:
    _, *blocks = build()

    dialogue = parse(*(block["content"] for block in blocks))

    assert [tool.name for tool in dialogue.capabilities] == ["look"]
    assert [(*line[:2], line.text) for line in dialogue.memory] == [
        ("2025-12-10 15:30", "Human", "Hello"),
        ("2025-12-10 15:31", "Nexus", "Hi."),
    ]
    assert (dialogue.friend, dialogue.time) == ("Likes tea.", "2025-12-10 16:00:00+08:00")
    assert dialogue.human_input == "How are you?"


@pytest.mark.acceptance("Z-06", "Z-08")
def test_without_history_profile_and_tools_there_are_still_five() -> None:
    messages = build(profile=None, tools=[], history=[])

    assert len(messages) == 5
    assert all("(" in message["content"] for message in messages[1:4])


def test_without_a_persistence_there_is_no_history() -> None:
    messages = asyncio.run(ContextBuilder(LocalBus(), Registry()).build_context(RUN, PROFILE))

    assert messages[2]["content"].startswith("[SHARED_MEMORY count=0]\n")


@pytest.mark.acceptance("Z-05")
def test_build_context_shows_no_more_history_than_the_limit() -> None:
    persistence = Persistence()
    settings = Settings({"plugins": {"tagged": {"limit": 1}}})

    messages = asyncio.run(ContextBuilder(LocalBus(), Registry(), settings, persistence).build_context(RUN, {}))

    assert persistence.asked == [("ada", 2)]  # one of them may be the message that is being answered
    assert messages[2]["content"].endswith("[2025-12-10 15:31] Nexus: Hi.")


@pytest.mark.acceptance("Z-10")
@pytest.mark.parametrize("timestamp", [None, "", "noon"])
def test_build_context_gives_no_time_where_the_run_has_none(timestamp: object) -> None:
    dialogue = parse(*(message["content"] for message in build(Run("ada", "x", timestamp))[1:]))

    assert (dialogue.time, dialogue.human_input) == ("", "x")


@pytest.mark.acceptance("Z-13")
def test_history_and_tools_are_fetched_at_the_same_time() -> None:
    history_began, tools_began = threading.Event(), threading.Event()

    class SlowRegistry:
        def get_all_tool_definitions(self) -> Any:
            tools_began.set()
            assert history_began.wait(30)
            return TOOLS

    class SlowPersistence:
        async def get_history(self, owner_key: str, limit: int) -> Any:  # noqa: ARG002 - the protocol's
            history_began.set()
            assert await asyncio.to_thread(tools_began.wait, 30)
            return HISTORY

    both = ContextBuilder(LocalBus(), SlowRegistry(), persistence_service=SlowPersistence())

    assert len(asyncio.run(both.build_context(RUN, PROFILE))) == 5


@pytest.mark.acceptance("Z-14")
def test_a_request_on_the_bus_is_answered_with_messages_and_tools() -> None:
    content = answer({"run": RUN, "user_profile": PROFILE})

    assert content == {"status": "success", "messages": build(), "tools": TOOLS}


@pytest.mark.acceptance("Z-14")
def test_handle_build_request_takes_a_run_as_content() -> None:
    said = [StoredMessage(Role.HUMAN, "How are you?"), StoredMessage(Role.AI, "Let me look.")]
    client = {"client_timestamp_utc": "2025-12-10T08:00:00Z", "client_timezone_offset": "-480"}

    content = answer(BusRun(said, {"user_profile": PROFILE, **client}))

    assert content == {"status": "success", "messages": build(), "tools": TOOLS}


@pytest.mark.acceptance("Z-14")
def test_handle_build_request_takes_a_run_that_was_json() -> None:
    run = {"id": "run-1", "owner_key": "ada", "history": [{"role": "human", "content": "How are you?"}]}

    dialogue = parse(*(message["content"] for message in answer(run)["messages"][1:]))

    assert (dialogue.human_input, dialogue.time, len(dialogue.memory)) == ("How are you?", "", 2)


@pytest.mark.acceptance("Z-10")
@pytest.mark.parametrize("offset", [None, "west", 99999, []])
def test_handle_build_request_takes_a_wrong_offset_of_a_client_for_utc(offset: object) -> None:
    client = {"client_timestamp_utc": "2025-12-10T08:00:00Z", "client_timezone_offset": offset}

    messages = answer(BusRun([StoredMessage(Role.HUMAN, "x")], client))["messages"]

    assert parse(*(message["content"] for message in messages[1:])).time == "2025-12-10 08:00:00+00:00"


@pytest.mark.acceptance("Z-03")
def test_handle_build_request_does_not_repeat_the_current_run_in_the_memory() -> None:
    current = [
        {"role": "AI", "content": "Let me look.", "timestamp": "2025-12-10T08:00:01Z", "run_id": "run-1"},
        {"role": "HUMAN", "content": "How are you?", "timestamp": "2025-12-10T08:00:00Z", "run_id": "run-1"},
    ]
    earlier = [{**message, "run_id": "run-0"} for message in HISTORY]

    with_current = answer({"run": RUN}, history=[*current, *earlier])

    assert with_current == answer({"run": RUN}, history=earlier)


@pytest.mark.acceptance("Z-03")
@pytest.mark.parametrize("is_newest_first", [True, False])
def test_build_context_recognises_the_current_message_without_a_run_id(*, is_newest_first: bool) -> None:
    current = {"role": "HUMAN", "content": "How are you? ", "timestamp": "2025-12-10T08:00:00Z"}
    history = [current, *HISTORY] if is_newest_first else [*reversed(HISTORY), current]

    assert build(history=history) == build()


@pytest.mark.acceptance("Z-03")
def test_build_context_keeps_an_earlier_message_with_the_same_text() -> None:
    earlier = {"role": "HUMAN", "content": "How are you?", "timestamp": "2025-12-10T07:00:00Z"}

    dialogue = parse(*(message["content"] for message in build(history=[*HISTORY, earlier])[1:]))

    assert [line.text for line in dialogue.memory] == ["How are you?", "Hello", "Hi."]


@pytest.mark.acceptance("Z-03")
def test_build_context_keeps_the_same_text_of_another_run() -> None:
    repeated = {"role": "HUMAN", "content": "How are you?", "timestamp": "2025-12-10T07:59:00Z", "run_id": "run-0"}

    dialogue = parse(*(message["content"] for message in build(history=[repeated, *HISTORY])[1:]))

    assert dialogue.memory[-1].text == "How are you?"


class UnspeakableError(Exception):
    """What cannot be shown as text."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.acceptance("Z-14")
@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ({"run": RUN}, {"history": OSError("the database is gone")}, "OSError: the database is gone"),
        ({"run": RUN}, {"tools": RuntimeError("no tools")}, "RuntimeError: no tools"),
        ({"run": RUN}, {"tools": [{"nme": "x"}]}, "MessageError: "),
        ({"run": RUN}, {"tools": UnspeakableError()}, "UnspeakableError"),
        ({"run": None}, {}, "UsageError: the run has no user message: NoneType"),
        ({}, {}, "UsageError: the run has no user message: dict"),
        (None, {}, "UsageError: the run has no user message: NoneType"),
        (BusRun([]), {}, "UsageError: the run has no user message: BusRun"),
    ],
)
def test_what_goes_wrong_is_answered_too(content: Any, options: dict[str, Any], reason: str) -> None:
    response = answer(content, **options)

    assert response.pop("error").startswith(reason)
    assert response == {"status": "error", "messages": [], "tools": []}


def test_half_characters_and_nuls_of_a_user_are_not_sent() -> None:
    response = answer({"run": Run("ada", "half \ud83d, whole \ud83d\ude00, nul\0")})

    assert "half \ufffd, whole \U0001f600, nul\n" in response["messages"][-1]["content"]


@pytest.mark.acceptance("Z-14")
def test_a_failure_does_not_end_the_subscription() -> None:
    bus = LocalBus()
    builder(bus).subscribe_to_bus()

    async def ask_twice() -> None:
        await bus.publish(REQUEST, BusMessage({}))
        await bus.publish(REQUEST, BusMessage({"run": RUN}))

    asyncio.run(ask_twice())

    statuses = [message.content["status"] for topic, message in bus.sent if topic == RESPONSE]
    assert statuses == ["error", "success"]


def test_who_cancels_is_obeyed() -> None:
    class Endless:
        async def get_history(self, owner_key: str, limit: int) -> Any:  # noqa: ARG002 - the protocol's
            await asyncio.Event().wait()

    bus = LocalBus()
    waiting = ContextBuilder(bus, Registry(), persistence_service=Endless())

    async def cancel() -> None:
        task = asyncio.create_task(waiting.handle_build_request(BusMessage({"run": RUN})))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert bus.sent == []


@pytest.mark.acceptance("Z-15")
def test_the_blocks_can_be_one_message() -> None:
    system, user = build(single_message=True)

    assert system == build()[0]
    assert user == {"role": "user", "content": "\n\n".join(message["content"] for message in build()[1:])}
    assert parse(user["content"]) == parse(*(message["content"] for message in build()[1:]))


@pytest.mark.acceptance("C-14")
def test_headings_can_be_chinese() -> None:
    _, _, memory, friends, _ = build(language="zh")

    assert "\n最近的对话记忆\uff1a\n" in memory["content"]
    assert "\n关于这位朋友\uff1a\n" in friends["content"]
