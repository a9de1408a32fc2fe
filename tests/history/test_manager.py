"""A conversation in memory that always fits."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from google.genai import types
from pydantic import ValidationError

from nexus_core import UnknownNameError, UsageError
from nexus_core.context import ContextConfig, ContextManager, SimpleTokenCounter
from nexus_core.types.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult

NOON = datetime(2026, 1, 13, 14, 30)  # noqa: DTZ001 - local time is what is told
STARTED = "[Session started: 2026-01-13 14:30 (local)]"
HEAVY = "x" * 2000


class Words:
    """Counts words, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Message] = []

    def count(self, text: str) -> int:
        return len(text.split())

    def count_messages(self, messages: list[Message]) -> int:
        self.asked += messages
        results = [result.text for message in messages for result in message.tool_results]
        calls = [f"{call.name} {json.dumps(call.arguments)}" for message in messages for call in message.tool_calls]
        return sum(map(self.count, [*(message.content for message in messages), *results, *calls]))


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def log_system(self, prompt: str) -> None:
        self.lines.append(f"system: {prompt}")

    def log_message(self, message: Message) -> None:
        self.lines.append(f"{message.role}: {message.content or message.tool_results[0].text}")


def manager(available: int = 100, strategy: str = "oldest_first", **options: object) -> ContextManager:
    config = ContextConfig.model_validate(
        {
            "max_tokens": available,
            "reserve_tokens": 0,
            "truncation_strategy": strategy,
            "clock": "off",
            "session_start": False,
            **options,
        }
    )
    return ContextManager(config, Words(), now=lambda: NOON)


def say(context: ContextManager, *texts: str) -> None:
    """User and assistant in turns."""
    for place, text in enumerate(texts):
        (context.add_assistant_message if place % 2 else context.add_user_message)(text)


def contents(messages: list[Message]) -> list[str]:
    return [message.content or "".join(result.text for result in message.tool_results) for message in messages]


@pytest.mark.acceptance("V-01", "V-02", "V-03", "V-04")
def test_it_gives_back_the_system_prompt_and_the_messages_in_order() -> None:
    context = manager()
    context.set_system_prompt("Be kind.")
    context.set_tool_definitions([{"name": "ls"}])
    context.add_user_message("What is here?")
    context.add_assistant_message("", [ToolCall("c1", "ls", {})])
    context.add_tool_result("c1", "ls", "README.md")
    context.add_assistant_message("A readme.")

    built = context.build_messages()

    assert [message.role for message in built] == ["system", "user", "assistant", "tool", "assistant"]
    assert contents(built) == ["Be kind.", "What is here?", "", "README.md", "A readme."]
    assert built[3].tool_results[0].name == "ls"
    assert context.get_tool_definitions() == [{"name": "ls"}]


@pytest.mark.acceptance("V-03")
def test_without_a_system_prompt_there_is_no_system_message() -> None:
    context = manager()
    say(context, "Hello")

    assert [message.role for message in context.build_messages()] == ["user"]


@pytest.mark.acceptance("V-02")
def test_clearing_keeps_the_prompt_and_the_tools() -> None:
    context = manager()
    context.set_system_prompt("Be kind.")
    context.set_tool_definitions([{"name": "ls"}])
    say(context, "Hello")

    context.clear_messages()

    assert context.messages == []
    assert context.system_prompt == "Be kind."
    assert context.get_tool_definitions() == [{"name": "ls"}]
    assert context.get_token_usage()["messages"] == 0


@pytest.mark.acceptance("V-05", "V-06")
def test_usage_says_what_everything_takes() -> None:
    context = ContextManager(ContextConfig(clock="off", session_start=False), Words())
    context.set_system_prompt("one two three")
    context.set_tool_definitions([{"name": "a b"}])
    context.add_assistant_message("four five")

    assert context.get_token_usage() == {
        "system": 3,
        "tools": 6,
        "messages": 2,
        "total": 11,
        "budget": 8000,
        "available": 6000,
    }


@pytest.mark.acceptance("V-07")
@pytest.mark.parametrize(("words", "over"), [(10, False), (11, True)])
def test_it_is_over_budget_only_above_what_is_available(words: int, over: bool) -> None:
    context = manager(available=10)
    context.add_user_message("w " * words)

    assert context.is_over_budget() is over


@pytest.mark.acceptance("V-08")
def test_changing_the_list_of_messages_changes_nothing() -> None:
    context = manager()
    say(context, "Hello")

    context.messages.clear()

    assert contents(context.messages) == ["Hello"]


@pytest.mark.acceptance("V-09", "C-34")
def test_a_logger_is_told_the_prompt_and_every_message() -> None:
    log = Log()
    context = ContextManager(ContextConfig(clock="off"), Words(), log, now=lambda: NOON)
    context.set_system_prompt("Be kind.")
    say(context, "Hello", "Hi")
    context.add_tool_result("c1", "ls", "nothing")

    assert log.lines == ["system: Be kind.", f"user: {STARTED}", "user: Hello", "assistant: Hi", "tool: nothing"]


@pytest.mark.acceptance("V-10")
def test_two_managers_share_nothing() -> None:
    first, second = manager(), manager()
    say(first, "Hello")

    assert second.messages == []


@pytest.mark.acceptance("T-01")
def test_what_fits_comes_back_unchanged() -> None:
    context = manager(available=4)
    say(context, "one two", "three four")

    assert context.build_messages() == context.messages
    assert contents(context.messages) == ["one two", "three four"]


@pytest.mark.acceptance("T-02", "T-05")
def test_the_oldest_go_first_until_the_rest_fits_beside_prompt_and_tools() -> None:
    context = manager(available=11)
    context.set_system_prompt("be kind")
    context.set_tool_definitions([{"name": "ls"}])
    say(context, "one two", "three four", "five six")

    assert contents(context.build_messages()) == ["be kind", "three four", "five six"]


@pytest.mark.acceptance("T-03")
@pytest.mark.parametrize("strategy", ["oldest_first", "middle_out"])
def test_without_room_for_messages_the_newest_group_goes_alone(strategy: str) -> None:
    context = manager(available=2, strategy=strategy)
    context.set_system_prompt("be very kind")
    say(context, "one", "two", "three")

    assert contents(context.build_messages()) == ["be very kind", "three"]


@pytest.mark.acceptance("T-04", "T-09")
def test_a_call_and_its_results_go_together() -> None:
    context = manager(available=7)
    context.add_user_message("look at both")
    context.add_assistant_message("", [ToolCall("a", "ls"), ToolCall("b", "ls")])
    context.add_tool_result("a", "ls", "one two three")
    context.add_tool_result("b", "ls", "four")
    say(context, "and now")

    assert contents(context.build_messages()) == ["and now"]


@pytest.mark.acceptance("T-06", "C-28", "B-03")
def test_a_newest_group_that_is_too_big_is_kept_and_reported() -> None:
    context = manager(available=3)
    say(context, "one", "two", "a b c d e")

    assert contents(context.build_messages()) == ["a b c d e"]
    assert [finding.code for finding in context.findings] == ["over-budget"]
    assert "5 tokens" in context.findings[0].message


def test_nothing_is_reported_when_all_is_well() -> None:
    context = manager()
    say(context, "one")
    context.build_messages()

    assert context.findings == ()


@pytest.mark.acceptance("T-07")
def test_middle_out_keeps_the_first_group_and_the_newest() -> None:
    context = manager(available=6, strategy="middle_out")
    say(context, "the task", "one two", "three four", "five six")

    assert contents(context.build_messages()) == ["the task", "three four", "five six"]


@pytest.mark.acceptance("B-02")
def test_middle_out_never_keeps_more_than_fits_because_the_first_is_too_big() -> None:
    context = manager(available=5, strategy="middle_out")
    say(context, "w " * 10, "one two", "three four")

    assert contents(context.build_messages()) == ["one two", "three four"]
    assert context.findings == ()


@pytest.mark.acceptance("T-08")
def test_what_is_dropped_is_forgotten_so_that_memory_equals_what_is_sent() -> None:
    log = Log()
    context = ContextManager(
        ContextConfig(max_tokens=2, reserve_tokens=0, clock="off", session_start=False), Words(), log
    )
    say(context, "one", "two", "three")

    assert context.build_messages() == context.messages
    assert contents(context.messages) == ["two", "three"]
    assert log.lines == ["user: one", "assistant: two", "user: three"]


@pytest.mark.acceptance("B-21")
def test_a_preview_forgets_nothing() -> None:
    context = manager(available=2)
    say(context, *"abcdef")

    assert contents(context.preview()) == ["e", "f"]
    assert contents(context.messages) == list("abcdef")
    assert context.preview() == context.build_messages()


@pytest.mark.acceptance("B-01")
@pytest.mark.parametrize("system", ["", "w " * 500])
def test_an_open_tool_batch_is_kept_while_the_list_ends_in_results(system: str) -> None:
    context = ContextManager(
        ContextConfig(max_tokens=300, reserve_tokens=0, clock="off", session_start=False), SimpleTokenCounter()
    )
    context.set_system_prompt(system)
    context.add_user_message(HEAVY)
    context.add_assistant_message("", [ToolCall("c1", "cat", {"path": "big.txt"})])
    context.add_tool_result("c1", "cat", HEAVY)

    built = context.build_messages()

    assert [message.role for message in built][-2:] == ["assistant", "tool"]
    assert built[-1].tool_results[0].text == HEAVY


@pytest.mark.acceptance("B-19")
def test_history_can_be_made_to_start_with_the_user() -> None:
    context = manager(available=3, start_with_user=True)
    say(context, "one", "two", "three", "four")

    assert contents(context.build_messages()) == ["three", "four"]


@pytest.mark.acceptance("B-20")
def test_an_unknown_strategy_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'oldest_first'"):
        manager(strategy="oldest-first")


@pytest.mark.acceptance("B-20")
def test_a_reserve_above_the_budget_is_refused() -> None:
    with pytest.raises(ValidationError, match="reserve_tokens"):
        ContextConfig(max_tokens=100, reserve_tokens=200)


@pytest.mark.acceptance("E-01", "C-10")
def test_manager_tells_the_time_fresh_in_every_build_by_default() -> None:
    clock = [NOON]
    context = ContextManager(token_counter=Words(), now=lambda: clock[0])
    context.set_system_prompt("Be kind.")
    context.add_user_message("Hello")

    assert context.build_messages()[0].content == "Be kind.\n\nCurrent date: 2026-01-13, Current time: 14:30 (local)"
    clock[0] = NOON.replace(hour=16, minute=5)
    assert context.build_messages()[0].content.endswith("Current time: 16:05 (local)")
    assert contents(context.messages) == [STARTED, "Hello"]
    assert context.system_prompt == "Be kind."


@pytest.mark.acceptance("E-01")
def test_manager_without_a_prompt_tells_the_time_too() -> None:
    context = ContextManager(token_counter=Words(), now=lambda: NOON)
    context.add_user_message("Hello")

    assert context.build_messages()[0] == Message("system", "Current date: 2026-01-13, Current time: 14:30 (local)")


@pytest.mark.acceptance("E-01", "E-03")
def test_manager_puts_the_time_first_into_the_environment_of_a_loaded_prompt() -> None:
    context = ContextManager(token_counter=Words(), now=lambda: NOON)
    context.set_system_prompt("# Project Configuration\n# Environment\nOurs.\n\n# Environment\nWorking directory: /w")
    context.add_user_message("Hello")

    assert context.build_messages()[0].content == (
        "# Project Configuration\n# Environment\nOurs.\n\n"
        "# Environment\nCurrent date: 2026-01-13, Current time: 14:30 (local)\nWorking directory: /w"
    )


@pytest.mark.acceptance("E-01", "C-10")
def test_the_time_can_be_told_once_when_the_user_speaks() -> None:
    times = iter([NOON, NOON, NOON.replace(hour=15)])
    context = ContextManager(ContextConfig(clock="message"), Words(), now=lambda: next(times))
    context.add_user_message("Hello")
    first = context.build_messages()

    assert contents(first) == [STARTED, "Current date: 2026-01-13, Current time: 14:30 (local)\nHello"]
    assert context.build_messages() == first


@pytest.mark.acceptance("E-01")
def test_date_and_time_are_of_one_moment() -> None:
    times = iter([NOON.replace(hour=23, minute=59), NOON.replace(day=14, hour=0, minute=0)])
    context = ContextManager(ContextConfig(clock="message"), Words(), now=lambda: next(times))
    context.add_user_message("Hello")

    assert context.messages[-1].content.startswith("Current date: 2026-01-13, Current time: 23:59")


@pytest.mark.acceptance("E-02")
@pytest.mark.parametrize("explicit", [False, True])
def test_manager_begins_with_the_time_its_session_started(explicit: bool) -> None:
    context = ContextManager(token_counter=Words(), now=lambda: NOON)
    if explicit:
        context.add_session_start_message()
    say(context, "Hello", "Hi")

    assert [(message.role, message.content) for message in context.messages] == [
        ("user", STARTED),
        ("user", "Hello"),
        ("assistant", "Hi"),
    ]


@pytest.mark.acceptance("E-02", "V-02")
def test_manager_keeps_the_time_of_its_start_when_it_is_cleared() -> None:
    clock = [NOON]
    context = ContextManager(token_counter=Words(), now=lambda: clock[0])
    say(context, "Hello")

    context.clear_messages()
    clock[0] = NOON.replace(hour=16)
    say(context, "Again")

    assert contents(context.messages) == [STARTED, "Again"]


@pytest.mark.acceptance("E-02")
def test_manager_does_not_begin_twice_when_a_conversation_is_restored() -> None:
    before = ContextManager(token_counter=Words(), now=lambda: NOON)
    say(before, "Hello", "Hi")
    restored = ContextManager(token_counter=Words(), now=lambda: NOON.replace(hour=16))

    for message in before.messages:
        restored.add_message(message)

    assert restored.messages == before.messages


@pytest.mark.acceptance("E-02", "T-07")
def test_middle_out_keeps_the_task_with_the_start_of_the_session() -> None:
    context = manager(available=11, strategy="middle_out", session_start=True)
    say(context, "the task", "one two", "three four", "five six")

    assert contents(context.build_messages()) == [STARTED, "the task", "three four", "five six"]


def test_a_session_begins_only_once() -> None:
    context = manager()
    say(context, "Hello")

    with pytest.raises(UsageError, match="already begun"):
        context.add_session_start_message()


@pytest.mark.acceptance("V-02")
def test_an_empty_reply_is_not_stored() -> None:
    context = manager()
    say(context, "Hello")

    context.add_assistant_message("")
    context.add_assistant_message("", [])

    assert contents(context.messages) == ["Hello"]
    assert contents(context.build_messages()) == ["Hello"]
    assert context.findings == ()


def test_each_message_is_counted_once_in_its_life() -> None:
    counter = Words()
    context = ContextManager(ContextConfig(max_tokens=6, reserve_tokens=0, clock="off", session_start=False), counter)
    context.set_system_prompt("kind")
    for turn in range(20):
        say(context, f"question {turn}", f"answer {turn}")
        context.preview()
        context.build_messages()
        context.get_token_usage()

    assert len(counter.asked) == 41
    assert len({id(message) for message in counter.asked}) == 41


def test_a_result_without_its_call_is_left_out_and_reported() -> None:
    context = manager()
    say(context, "Hello", "Hi")
    context.add_tool_result("nobody", "ls", "README.md")

    assert contents(context.build_messages()) == ["Hello", "Hi"]
    assert [finding.code for finding in context.findings] == ["orphan-result"]


def test_a_tool_result_may_be_a_ready_made_one() -> None:
    context = manager()
    context.add_assistant_message("", [ToolCall("c1", "ls")])
    context.add_tool_result("c1", "ls", ToolResult("c1", "denied", "ls", is_error=True))

    assert context.messages[-1].tool_results[0].is_error


@pytest.mark.acceptance("T-09", "B-19")
def test_starting_with_the_user_takes_no_result_from_its_call() -> None:
    context = manager(available=6, start_with_user=True)
    context.add_user_message("one two three four five six")
    context.add_assistant_message("", [ToolCall("a", "ls")])
    context.add_user_message([ToolResult("a", "x"), Text("and more")])

    assert [message.role for message in context.build_messages()] == ["assistant", "user"]


@pytest.mark.acceptance("B-02")
def test_what_repair_adds_pushes_the_oldest_out_instead_of_overflowing() -> None:
    context = manager(available=30)
    for name in "abcd":
        context.add_assistant_message("", [ToolCall(name, "ls")])
        context.add_user_message("never mind")

    sent = context.build_messages()

    assert context.get_token_usage()["total"] <= 30
    assert {finding.code for finding in context.findings} == {"missing-result"}
    assert context.build_messages() == sent == context.messages


@pytest.mark.acceptance("B-03", "C-28")
def test_a_system_prompt_that_is_too_long_alone_is_reported() -> None:
    context = manager(available=2)
    context.set_system_prompt("one two three four five")
    context.build_messages()

    assert [str(finding) for finding in context.findings] == [
        "the system prompt and the tools take 3 tokens more than are available [over-budget]"
    ]


def test_what_no_api_takes_is_repaired_and_reported() -> None:
    context = manager()
    context.add_user_message("one\0two \ud83d")
    context.add_message(Message("assistant", ""))
    context.add_user_message("three")

    assert contents(context.build_messages()) == ["onetwo \N{REPLACEMENT CHARACTER}", "three"]
    assert [finding.code for finding in context.findings] == ["lone-surrogate", "nul-character", "empty-message"]


@pytest.mark.parametrize("content", [None, 3, b"bytes", {"type": "text"}, [{"type": "text"}], ["text"]])
def test_what_is_neither_text_nor_parts_is_refused(content: Any) -> None:
    context = manager()

    with pytest.raises(UsageError, match="expected a text or parts of a message, not "):
        context.add_user_message(content)
    with pytest.raises(UsageError, match="expected a text or parts of a message, not "):
        context.add_tool_result("a", "ls", content)
    assert context.messages == []


def test_tools_may_be_objects_of_an_sdk() -> None:
    context = manager()
    context.set_tool_definitions([types.Tool(function_declarations=[types.FunctionDeclaration(name="ls")])])

    assert context.get_token_usage()["tools"] == 5


def test_one_tool_in_place_of_several_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a list of tool definitions"):
        manager().set_tool_definitions({"name": "ls"})


def test_a_message_can_be_added_with_everything_it_holds() -> None:
    context = manager()
    said = Message("assistant", (Reasoning(text="hm", signature="seal"), Text("Because.")))
    context.add_user_message("Why?")

    context.add_message(said)

    assert context.build_messages()[-1] is said


def test_only_a_message_can_be_added() -> None:
    with pytest.raises(UsageError, match="expected a Message"):
        manager().add_message({"role": "user", "content": "hello"})  # type: ignore[arg-type] # on purpose


def test_older_pictures_are_told_in_words_where_no_api_would_take_them_all() -> None:
    context = manager(100_000)
    for name in "ABC":
        context.add_user_message([Text("What?"), Image(mime="image/png", data=name * 12_000_000)])
        context.add_assistant_message(f"It is {name}.")

    built = context.build_messages()

    assert [sum(isinstance(part, Image) for part in each.parts) for each in built if each.role == "user"] == [0, 1, 1]
    assert "[image left out" in built[0].content
    assert context.messages == built
    assert context.findings == ()


def test_what_is_left_out_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    context = manager(10)
    say(context, *["x" * 1_000_000] * 40)  # more than any API takes, though little of it is sent
    measured: list[Message] = []
    monkeypatch.setattr("nexus_core.history.shorten.count_message_bytes", measured.append)

    assert len(context.preview()) < 11
    assert measured == []


def test_a_picture_that_no_api_would_take_is_a_finding() -> None:
    context = manager(100_000)
    context.add_user_message([Image(mime="image/png", data="A" * 33_000_000)])

    context.build_messages()

    assert [finding.code for finding in context.findings] == ["over-budget"]
    assert "bytes must be sent" in context.findings[0].message
