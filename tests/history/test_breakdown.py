"""Where the tokens of a conversation go."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from nexus_core.history.breakdown import UNKNOWN_TOOL_LABEL, CategoryShare, MessageShare, ToolShare, break_down_tokens
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.messages import File, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from tests.history.conversations import any_messages, conversations
from tests.history.counters import Characters

PICTURE = Image(url="https://example.org/a.png")


class Framed(Characters):
    """As Characters, and three tokens for every message."""

    def count_messages(self, messages: Sequence[Message]) -> int:
        return 3 * len(messages) + super().count_messages(messages)


def test_tokens_are_divided_by_who_speaks_in_a_fixed_order() -> None:
    messages = [Message("tool", [ToolResult("a", "four")]), Message("user", "hello"), Message("assistant", "hi")]

    found = break_down_tokens(messages, Framed(), system=[Message("system", "be")], tools=[Tool(name="ls")])

    assert [(share.name, share.pieces) for share in found.roles] == [
        ("system", 1),
        ("definitions", 1),
        ("user", 1),
        ("assistant", 1),
        ("tool", 1),
    ]
    assert found.total == sum(share.tokens for share in found.roles)


def test_tokens_are_divided_by_what_they_are_for() -> None:
    parts: list[Part] = [Reasoning(text="why"), Text("words"), ToolCall("c", "ls"), PICTURE, Opaque("x", {})]

    found = break_down_tokens([Message("system", "be"), Message("assistant", parts)], Framed())

    assert found.kinds == (
        CategoryShare("instructions", 3, 1),
        CategoryShare("text", 6, 1),
        CategoryShare("reasoning", 4, 1),
        CategoryShare("calls", 3, 1),
        CategoryShare("media", 11, 1),
        CategoryShare("other", 11, 1),
        CategoryShare("framing", 6, 2),
    )


def test_a_picture_in_a_result_is_a_picture_and_still_the_tools() -> None:
    messages = [
        Message("assistant", [ToolCall("c", "draw")]),
        Message("tool", [ToolResult("c", [Text("here"), PICTURE])]),
    ]

    found = break_down_tokens(messages, Characters())

    assert CategoryShare("media", 11, 1) in found.kinds
    assert CategoryShare("results", 4, 1) in found.kinds
    assert found.tools == (ToolShare("draw", 0, 5, 15, 1),)


def test_a_result_belongs_to_the_tool_of_its_call() -> None:
    messages = [
        Message("assistant", [ToolCall("1", "read"), ToolCall("2", "ls")]),
        Message("tool", [ToolResult("2", "aaaa"), ToolResult("1", "b"), ToolResult("9", "c", "grep")]),
        Message("tool", [ToolResult("8", "nobody asked")]),
    ]

    tools = {share.name: (share.results, share.times) for share in break_down_tokens(messages, Characters()).tools}

    assert tools == {"ls": (5, 1), "read": (2, 1), "grep": (2, 1), UNKNOWN_TOOL_LABEL: (13, 1)}


def test_tools_stand_in_the_order_of_their_size_then_of_their_name() -> None:
    calls = [ToolCall("", "bb"), ToolCall("", "aa"), ToolCall("", "large")]

    found = break_down_tokens([Message("assistant", calls)], Characters())

    assert [share.name for share in found.tools] == ["large", "aa", "bb"]


def test_a_definition_counts_for_its_tool() -> None:
    (share,) = break_down_tokens([], Characters(), tools=[Tool(name="ls", description="lists")]).tools

    assert (share.name, share.calls, share.results, share.times) == ("ls", 0, 0, 0)
    assert share.definition == share.tokens > len("lslists")


def test_messages_have_their_size_and_the_sum_so_far() -> None:
    found = break_down_tokens(
        [Message("user", "four"), Message("user", "x")], Characters(), system=[Message("system", "be")]
    )

    assert found.messages == (MessageShare(0, "user", 5, 8), MessageShare(1, "user", 2, 10))


def test_of_equally_large_messages_the_earlier_is_first() -> None:
    found = break_down_tokens([Message("user", text) for text in ("aa", "bbb", "cc", "ddd")], Characters())

    assert [share.place for share in found.largest(3)] == [1, 3, 0]


def test_a_document_is_media() -> None:
    assert (
        CategoryShare("media", 11, 1) in break_down_tokens([Message("user", [File(name="a.pdf")])], Characters()).kinds
    )


@given(conversations() | any_messages)
def test_every_sum_is_the_total(messages: list[Message]) -> None:
    counter = SimpleTokenCounter()

    found = break_down_tokens(messages, counter)

    assert found.total == counter.count_messages(messages)
    assert found.total == sum(share.tokens for share in found.roles) == sum(share.tokens for share in found.kinds)
    assert found.total == sum(share.tokens for share in found.messages)
    assert sum(share.tokens for share in found.tools) <= found.total
