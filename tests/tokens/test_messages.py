"""What a message costs, whoever counts its texts."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from nexus_core.context import SimpleTokenCounter, TiktokenCounter
from nexus_core.plugin import TextCounter, count_messages
from nexus_core.tokens.messages import compact_json, count_tools
from nexus_core.values.conversation import Tool
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult


class Characters:
    """A token a character, so that every number below can be seen to be right."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def count(self, text: str) -> int:
        self.seen.append(text)
        return len(text)


def count(*messages: Message) -> int:
    return count_messages(Characters(), messages)


@pytest.mark.acceptance("K-05")
def test_every_message_costs_4_besides_what_it_says() -> None:
    assert count(Message("user", "hello"), Message("assistant", "hi")) == (5 + 4) + (2 + 4)
    assert count(Message("user", "")) == 4
    assert count() == 0


@pytest.mark.acceptance("K-06")
def test_a_call_counts_as_its_name_and_its_arguments_as_compact_json() -> None:
    message = Message("assistant", (Text("ok"), ToolCall("call_1", "read", {"path": "é.py", "n": 1})))

    assert count(message) == 4 + 2 + len("read") + len('{"path":"é.py","n":1}')


def test_arguments_that_came_as_text_count_as_they_were_written() -> None:
    assert count(Message("assistant", (ToolCall("1", "run", {}, raw='{"a": '),))) == 4 + 3 + 6


def test_a_result_counts_as_its_parts() -> None:
    result = ToolResult("1", (Text("done"), Image(detail="low", file_id="f")))

    assert count(Message("tool", (result,), api="openai")) == 4 + 4 + 85


def test_thoughts_count_and_their_seal_does_not() -> None:
    assert count(Message("assistant", (Reasoning(text="hmm", signature="s" * 900),))) == 4 + 3
    assert count(Message("assistant", (Reasoning(encrypted="x" * 41),))) == 4 + 11


def test_an_unknown_block_counts_as_compact_json() -> None:
    assert count(Message("user", (Opaque("x", {"type": "new", "n": [1, 2]}),))) == 4 + len('{"type":"new","n":[1,2]}')


def test_bytes_in_an_unknown_block_are_not_counted_as_words() -> None:
    block = {"type": "input_audio", "data": "QUJD" * 100_000}

    counter = Characters()
    total = count_messages(counter, [Message("user", (Opaque("openai", block),))])

    assert counter.seen == ['{"type":"input_audio","data":""}']
    assert total == 4 + len(counter.seen[0]) + 300_000 // 500


def test_the_name_of_a_speaker_counts() -> None:
    assert count(Message("user", "hello", name="bob")) == 4 + 5 + 3


def test_a_document_of_plain_text_counts_as_its_words() -> None:
    assert count(Message("user", (File(mime="text/plain", data="aGVsbG8="),))) == 4 + len("hello")


def test_what_is_no_json_stands_in_it_as_its_text() -> None:
    assert compact_json({"a": MappingProxyType({"b": 1}), "c": 1j}) == '{"a":{"b":1},"c":"1j"}'


def test_half_a_character_in_arguments_is_no_reason_to_fail() -> None:
    message = Message("assistant", (ToolCall("1", "run", {"x": "\ud800"}),))

    assert all(counter.count_messages([message]) > 4 for counter in (SimpleTokenCounter(), TiktokenCounter()))


def test_tools_count_as_json_and_4_each() -> None:
    tool = Tool(name="run", description="Runs.", parameters={"type": "object"})
    written = '{"name":"run","description":"Runs.","parameters":{"type":"object"}}'

    assert count_tools(Characters(), [tool, tool]) == 2 * (len(written) + 4)


def test_a_counter_of_texts_counts_messages_in_the_same_way() -> None:
    class Words(TextCounter):
        name, exact = "words", True

        def count(self, text: str) -> int:
            return len(text.split())

    assert Words().count_messages([Message("user", "one two"), Message("user", "three")]) == 3 + 8
    assert Words().count_many(["one two", ""]) == [2, 0]
    assert Words().measure("one two") == (2, "exact")
