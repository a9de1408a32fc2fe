"""What a summarizer cannot read at once goes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.compaction.prompts import write_transcript
from nexus_core.compaction.summarize import MAX_PIECES, PROMPT_OVERHEAD_TOKENS, WINDOW_SAFETY_SHARE, split_into_pieces
from nexus_core.types.messages import Message, ToolCall
from tests.compaction.threads import conversation, words
from tests.effort import examples
from tests.history.conversations import conversations


def room(window: int, beside: int = 0) -> int:
    return int(window * WINDOW_SAFETY_SHARE) - PROMPT_OVERHEAD_TOKENS - beside


def cut(messages: list[Message], window: int, beside: int = 0) -> list[tuple[Message, ...]]:
    return split_into_pieces(messages, window, beside=beside, count=words)


@pytest.mark.parametrize("window", [0, 100_000])
def test_what_can_be_read_at_once_is_one_piece(window: int) -> None:
    messages = conversation(5)

    assert cut(messages, window) == [tuple(messages)]
    assert cut([], window) == [()]


def test_pieces_are_whole_groups_in_their_order() -> None:
    messages = conversation(60)

    pieces = cut(messages, 1200)

    assert len(pieces) > 2
    assert [message for piece in pieces for message in piece] == messages
    for piece in pieces:
        assert words(write_transcript(piece)) <= room(1200)
        assert not piece[0].tool_results
        assert not piece[-1].tool_calls


def test_room_is_left_for_the_summary() -> None:
    messages = conversation(60)

    assert len(cut(messages, 1600, beside=600)) > len(cut(messages, 1600))


def test_a_message_that_is_too_long_is_shortened() -> None:
    long = Message("user", " ".join(f"word{number}" for number in range(3000)))

    pieces = cut([Message("user", "before"), long, Message("assistant", "after")], 1200)

    texts = [write_transcript(piece) for piece in pieces]
    assert all(words(text) <= room(1200) for text in texts)
    assert "word0 " in "".join(texts)
    assert "word2999" in "".join(texts)
    assert "left out" in "".join(texts)


@pytest.mark.slow
def test_there_are_never_more_pieces_than_anybody_pays_for() -> None:
    pieces = cut(conversation(3000), 800)

    assert len(pieces) <= MAX_PIECES
    assert all(words(write_transcript(piece)) <= room(800) + 4 for piece in pieces)
    assert "part0" in write_transcript(pieces[0])
    assert "part 2999" in write_transcript(pieces[-1])


@given(conversations(), st.integers(1, 1200), st.integers(0, 300))
@settings(max_examples=examples(100), deadline=None)
def test_however_small_a_window_is_there_are_pieces(messages: list[Message], window: int, beside: int) -> None:
    pieces = cut(messages, window, beside)

    assert 1 <= len(pieces) <= MAX_PIECES
    calls = [part for piece in pieces for message in piece for part in message.parts if isinstance(part, ToolCall)]
    assert len(calls) <= sum(len(message.tool_calls) for message in messages)
