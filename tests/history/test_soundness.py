"""A quick look that spares a sound conversation the whole repair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.dialects.finding import dialect, read_messages
from nexus_core.dialects.rules import RULES
from nexus_core.history.mending.steps import mend
from nexus_core.history.soundness import is_plainly_sound, is_surely_sound
from nexus_core.values.api import ApiRules
from nexus_core.values.message import Message
from nexus_core.values.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from tests.effort import conclude, concludes, mostly
from tests.history.broken import ANYTHING, ENCODERS, MESSAGES, neutral, valid_turns
from tests.history.conversations import any_messages, conversations

APIS = st.sampled_from([name for name, rules in sorted(RULES.items()) if rules.call_ids])
"""Those of which a quick look can be sure at all."""
NEIGHBOURS = {"orphan-result", "missing-result", "early-result", "late-result", "wrong-first-role", "wrong-last-role"}
"""What can only be wrong with a message because of those around it."""


@st.composite
def mixed(draw: st.DrawFn) -> list[Message]:
    """Sound conversations, with messages taken out, doubled or swapped."""
    messages = draw(st.one_of(conversations(), any_messages))
    for _ in range(draw(st.integers(0, 3))):
        if not messages:
            break
        place, other = draw(st.integers(0, len(messages) - 1)), draw(st.integers(0, len(messages) - 1))
        match draw(st.sampled_from(["take", "double", "swap"])):
            case "take":
                del messages[place]
            case "double":
                messages.insert(other, messages[place])
            case "swap":
                messages[place], messages[other] = messages[other], messages[place]
    return messages


@st.composite
def nearly_sound(draw: st.DrawFn) -> list[Message]:
    """What any API would take, sometimes with a message doubled, taken out or changed in its fields."""
    messages = neutral(draw(valid_turns()))
    place = draw(st.integers(0, len(messages) - 1))
    match draw(st.sampled_from([*["whole"] * 5, "take", "double", "rename", "end"])):
        case "take":
            del messages[place]
        case "double":
            messages.insert(place, messages[place])
        case "rename":
            messages[place] = replace(messages[place], name=draw(st.sampled_from(["ann", "John Doe"])))
        case "end":
            del messages[place + 1 :]
    return messages


def is_sound_alone(message: Message, api: str) -> bool:
    """Whether nothing is wrong with a message itself, wherever it stands."""
    call = Message("assistant", [ToolCall(result.call_id, "search", {}) for result in message.tool_results])
    around = [Message("user", "a"), *([call] if message.tool_results else []), message]
    return {finding.code for finding in mend(around, RULES[api], listed=True).findings} <= NEIGHBOURS


@concludes(0.4)
@given(mostly(nearly_sound(), mixed()), APIS)
def test_repair_finds_nothing_where_it_says_so(messages: list[Message], api: str) -> None:
    if all(is_sound_alone(message, api) for message in messages) and is_surely_sound(messages, RULES[api]):
        mended = mend(messages, RULES[api], listed=True)
        assert mended.findings == ()
        assert [index for index, _ in mended.messages] == list(range(len(messages)))
        conclude()


@st.composite
def in_any_shape(draw: st.DrawFn) -> list[Message]:
    """Lists of any API, sound or not, as they are read."""
    source = draw(st.sampled_from(sorted(ENCODERS)))
    turns = draw(st.one_of(valid_turns(), ANYTHING))
    return list(read_messages(dialect(source), ENCODERS[source](turns)))


@concludes(0.5)
@given(mostly(nearly_sound(), st.one_of(mixed(), in_any_shape(), MESSAGES)), APIS, st.booleans())
def test_repair_finds_nothing_where_a_quick_look_says_so(messages: list[Message], api: str, listed: bool) -> None:
    rules = RULES[api]
    if is_told_sound(messages, rules):
        mended = mend(messages, rules, listed=listed)
        assert mended.findings == ()
        assert [index for index, _ in mended.messages] == mended.places == list(range(len(messages)))
        conclude()


def is_told_sound(messages: list[Message], rules: ApiRules) -> bool:
    return all(is_plainly_sound(message, rules) for message in messages) and is_surely_sound(messages, rules)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@given(valid_turns())
def test_a_quick_look_is_enough_for_what_is_usual(api: str, turns: list[Any]) -> None:
    assert is_told_sound(list(read_messages(dialect(api), ENCODERS[api](turns))), RULES[api])


@pytest.mark.parametrize(
    "part",
    [
        Text(" "),
        Text("nul\0"),
        Text("half \ud83d"),
        Text("x", {"note": "half \ud83d"}),
        ToolCall("", "ls"),
        ToolCall("a.b", "ls"),
        ToolCall("a", "l s"),
        ToolCall("a", "ls", raw="{broken"),
        Reasoning(text="hm", api="anthropic"),
        Reasoning(text="hm", signature="s", api="gemini"),
        ToolResult("a", "x"),
        Image(mime="image/png", data="AAAA"),
        Opaque("anthropic", {"type": "server_tool_use"}),
    ],
    ids=str,
)
def test_a_quick_look_leaves_all_else_to_repair(part: Part) -> None:
    assert not is_plainly_sound(Message("assistant", [part]), RULES["anthropic"])


@pytest.mark.parametrize(
    ("api", "message"),
    [
        ("openai", Message("user", "hi", name="John Doe")),
        ("openai", Message("assistant", "hi", api="openai", extra={"tool_calls": []})),
        ("openai", Message("assistant", [ToolCall("a", "ls")], api="openai", extra={"_content": "list"})),
        ("openai", Message("tool", [ToolResult("a", (), extra={"_content": "list"})], api="openai")),
        ("openai", Message("tool", [ToolResult("a", "x", "l s")], api="openai")),
        ("openai", Message("assistant", [ToolCall("a" * 41, "ls")])),
        ("responses", Message("user", [Text("x", {"_type": "output_text"})], api="responses")),
        ("responses", Message("user", [Text("x", {"_refusal": "part"})], api="responses")),
        ("responses", Message("tool", [ToolResult("a", [Text("x", {"_type": "text"})])], api="responses")),
    ],
)
def test_a_quick_look_leaves_odd_fields_to_repair(api: str, message: Message) -> None:
    assert not is_plainly_sound(message, RULES[api])


@pytest.mark.parametrize("api", sorted(RULES))
def test_it_is_not_sure_of_an_empty_list(api: str) -> None:
    assert not is_surely_sound([], RULES[api])


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_results_in_several_messages_are_the_conversions_to_join_unless_they_are_the_apis_own(api: str) -> None:
    results = [Message("tool", (ToolResult(each, "x"),), api=api) for each in ("a", "b")]
    messages = [Message("user", "Why?"), Message("assistant", (ToolCall("a", "ls"), ToolCall("b", "ls"))), *results]

    assert is_surely_sound(messages, RULES["anthropic"]) == (api != "anthropic")


@pytest.mark.parametrize("api", ["openai", "anthropic", "responses", "neutral"])
def test_it_is_sure_of_an_ordinary_tool_loop(api: str) -> None:
    messages = [
        Message("user", "Why?"),
        Message("assistant", (Text("Let me look."), ToolCall("a", "ls"), ToolCall("b", "ls"))),
        Message("tool", (ToolResult("b", "x"), ToolResult("a", "y"))),
        Message("assistant", "Because."),
        Message("user", "I see."),
    ]

    assert is_surely_sound(messages, RULES[api])


@pytest.mark.parametrize(
    "messages",
    [
        [Message("tool", (ToolResult("a", "x"),))],
        [Message("user", "Why?"), Message("assistant", (ToolCall("a", "ls"),)), Message("user", "Hello?")],
        [Message("user", "Why?"), Message("assistant", (ToolCall("a", "ls"), ToolCall("a", "ls")))],
        [Message("user", "Why?"), Message("system", "Be kind.")],
    ],
)
def test_it_is_not_sure_of_anything_else(messages: list[Message]) -> None:
    assert not is_surely_sound(messages, RULES["openai"])
