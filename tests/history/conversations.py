"""Conversations made by hypothesis: sound ones, and any others."""

from __future__ import annotations

from hypothesis import strategies as st

from nexus_core.types.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult

WORDS = st.text("abc ", min_size=1, max_size=40).filter(str.strip)


@st.composite
def tool_turn(draw: st.DrawFn, number: int) -> list[Message]:
    """A call of one to three tools with all their results, in any order, in one message or several."""
    ids = [f"call_{number}_{place}" for place in range(draw(st.integers(1, 3)))]
    calls = [ToolCall(each, "search", {"query": draw(WORDS)}) for each in ids]
    words = [Text(draw(WORDS))] if draw(st.booleans()) else []
    thought = [Reasoning(text=draw(WORDS))] if draw(st.booleans()) else []
    results = [ToolResult(each, draw(WORDS), "search") for each in draw(st.permutations(ids))]
    together = draw(st.booleans())
    answers = [Message("tool", results)] if together else [Message("tool", (result,)) for result in results]
    return [Message("assistant", (*thought, *words, *calls)), *answers]


@st.composite
def conversations(draw: st.DrawFn, max_turns: int = 8) -> list[Message]:
    """A sound conversation; it may end anywhere between two groups, or in calls that wait."""
    messages = [Message("system", draw(WORDS))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, max_turns))):
        messages.append(Message("user", draw(WORDS)))
        for step in range(draw(st.integers(0, 3))):
            messages += draw(tool_turn(number * 10 + step))
        if draw(st.booleans()):
            messages.append(Message("assistant", draw(WORDS)))
    if draw(st.booleans()):
        messages.append(Message("user", draw(WORDS)))
        if draw(st.booleans()):
            messages.append(Message("assistant", (ToolCall("open", "search", {}),)))
    return messages


PARTS = st.one_of(
    st.builds(Text, st.text(max_size=20)),
    st.builds(ToolCall, st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["ls", "cat"])),
    st.builds(ToolResult, st.sampled_from(["", "a", "b", "c"]), st.text(max_size=20)),
    st.builds(Reasoning, text=st.text(max_size=5)),
    st.just(Image(mime="image/png", data="AAAA")),
)
any_messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.lists(PARTS, max_size=3).map(tuple),
    ),
    max_size=15,
)
"""Messages in any order that say anything."""
