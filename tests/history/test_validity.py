"""Quick validity checks: what they call valid, repair leaves as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Finding, MessageError, check_messages, get_dialect, repair_messages
from nexus_core.dialects.registry import read_messages
from nexus_core.dialects.rules import RULES_BY_API
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import find_valid_runs, looks_valid_alone, looks_valid_together
from nexus_core.types.api import ApiRules
from nexus_core.types.messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from tests.effort import conclude, concludes, mostly
from tests.history.broken import (
    ANYTHING,
    ENCODERS,
    MESSAGES,
    Body,
    Call,
    Results,
    Said,
    Word,
    mutated,
    neutral,
    valid_turns,
)
from tests.history.conversations import any_messages, conversations

APIS = st.sampled_from([name for name, rules in sorted(RULES_BY_API.items()) if rules.call_ids])
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
    return {
        finding.code for finding in apply_repair_rules(around, RULES_BY_API[api], listed=True).findings
    } <= NEIGHBOURS


@concludes(0.4)
@given(mostly(nearly_sound(), mixed()), APIS)
def test_repair_finds_nothing_where_it_says_so(messages: list[Message], api: str) -> None:
    if all(is_sound_alone(message, api) for message in messages) and looks_valid_together(messages, RULES_BY_API[api]):
        mended = apply_repair_rules(messages, RULES_BY_API[api], listed=True)
        assert mended.findings == ()
        assert [index for index, _ in mended.messages] == list(range(len(messages)))
        conclude()


@st.composite
def in_any_shape(draw: st.DrawFn) -> list[Message]:
    """Lists of any API, sound or not, as they are read."""
    source = draw(st.sampled_from(sorted(ENCODERS)))
    turns = draw(st.one_of(valid_turns(), ANYTHING))
    return list(read_messages(get_dialect(source), ENCODERS[source](turns)))


@concludes(0.5)
@given(mostly(nearly_sound(), st.one_of(mixed(), in_any_shape(), MESSAGES)), APIS, st.booleans())
def test_repair_finds_nothing_where_a_quick_look_says_so(messages: list[Message], api: str, listed: bool) -> None:
    rules = RULES_BY_API[api]
    if is_told_sound(messages, rules):
        mended = apply_repair_rules(messages, rules, listed=listed)
        assert mended.findings == ()
        assert [index for index, _ in mended.messages] == mended.places == list(range(len(messages)))
        conclude()


def is_told_sound(messages: list[Message], rules: ApiRules) -> bool:
    return all(looks_valid_alone(message, rules) for message in messages) and looks_valid_together(messages, rules)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@given(valid_turns())
def test_a_quick_look_is_enough_for_what_is_usual(api: str, turns: list[Any]) -> None:
    assert is_told_sound(list(read_messages(get_dialect(api), ENCODERS[api](turns))), RULES_BY_API[api])


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
    assert not looks_valid_alone(Message("assistant", [part]), RULES_BY_API["anthropic"])


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
    assert not looks_valid_alone(message, RULES_BY_API[api])


@pytest.mark.parametrize("api", sorted(RULES_BY_API))
def test_it_is_not_sure_of_an_empty_list(api: str) -> None:
    assert not looks_valid_together([], RULES_BY_API[api])


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_results_in_several_messages_are_the_conversions_to_join_unless_they_are_the_apis_own(api: str) -> None:
    results = [Message("tool", (ToolResult(each, "x"),), api=api) for each in ("a", "b")]
    messages = [Message("user", "Why?"), Message("assistant", (ToolCall("a", "ls"), ToolCall("b", "ls"))), *results]

    assert looks_valid_together(messages, RULES_BY_API["anthropic"]) == (api != "anthropic")


@pytest.mark.parametrize("api", ["openai", "anthropic", "responses", "neutral"])
def test_it_is_sure_of_an_ordinary_tool_loop(api: str) -> None:
    messages = [
        Message("user", "Why?"),
        Message("assistant", (Text("Let me look."), ToolCall("a", "ls"), ToolCall("b", "ls"))),
        Message("tool", (ToolResult("b", "x"), ToolResult("a", "y"))),
        Message("assistant", "Because."),
        Message("user", "I see."),
    ]

    assert looks_valid_together(messages, RULES_BY_API[api])


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
    assert not looks_valid_together(messages, RULES_BY_API["openai"])


def converse(turns: list[Any]) -> list[Body]:
    """The same turns for Bedrock."""
    messages: list[Body] = []
    for turn in turns:
        if isinstance(turn, Word):
            messages.append({"role": turn.role, "content": [{"text": turn.text}]})
        elif isinstance(turn, Results):
            tail = [{"text": turn.text}] if turn.text else []
            answers = [{"toolResult": {"toolUseId": i, "content": [{"text": text}]}} for i, _, text in turn.answers]
            messages.append({"role": "user", "content": [*tail, *answers] if turn.text_first else [*answers, *tail]})
        else:
            calls = [{"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.arguments}} for c in turn.calls]
            messages.append({"role": "assistant", "content": [{"text": turn.text}, *calls]})
    return messages


WRITERS = {**ENCODERS, "bedrock": converse}
API_NAMES = sorted(WRITERS)


@st.composite
def sound_turns(draw: st.DrawFn, first: int) -> list[Any]:
    """Some turns with which nothing is wrong; ids count up from a number."""
    turns: list[Any] = []
    for number in range(first, first + draw(st.integers(1, 4))):
        turns.append(Word("user", f"question {number}"))
        for step in range(draw(st.integers(0, 2))):
            calls = tuple(
                Call(f"id_{number}_{step}_{each}", "read", {"n": each}) for each in range(draw(st.integers(1, 3)))
            )
            turns.append(Said("looking", calls, thought=draw(st.booleans())))
            turns.append(Results(tuple((call.id, call.name, "result") for call in calls)))
        turns.append(Said("answer"))
    return turns


@st.composite
def long_lists(draw: st.DrawFn) -> tuple[str, list[Body]]:
    """Lists of any API in which sound turns and all kinds of others take turns."""
    api = draw(st.sampled_from(API_NAMES))
    turns: list[Any] = []
    for piece in range(draw(st.integers(1, 5))):
        if piece == 0 or draw(st.integers(0, 2)):
            turns += draw(sound_turns(10 * piece))
        else:
            turns += draw(ANYTHING)[:3]
    elements = WRITERS[api](turns)
    match draw(st.sampled_from(["sound", "mutated", "changed"])):
        case "mutated":
            elements = draw(mutated(elements))
        case "changed":
            elements = [draw(changed(element)) for element in elements]
    return api, elements


@st.composite
def changed(draw: st.DrawFn, element: Body) -> Body:
    """Sometimes another field, or one less, somewhere in an element."""
    if draw(st.integers(0, 8)):
        return element
    copied: Body = json.loads(json.dumps(element))
    place: Any = copied
    while draw(st.booleans()):
        inner = [
            each for each in (place.values() if isinstance(place, dict) else place) if isinstance(each, dict | list)
        ]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    if isinstance(place, dict):
        match draw(st.sampled_from(["take", "add", "set"])):
            case "take" if place:
                del place[draw(st.sampled_from(sorted(place)))]
            case "add":
                place[draw(st.sampled_from(["name", "id", "cache_control", "thoughtSignature", "status"]))] = draw(
                    VALUES
                )
            case _ if place:
                place[draw(st.sampled_from(sorted(place)))] = draw(VALUES)
    return copied


ADDED = st.sampled_from(["name", "id", "cache_control", "thoughtSignature", "status", "refusal", "is_error"])
VALUES = st.sampled_from(
    [None, "", " ", "x", "a\0b", "\ud800", "日本", 1, True, 10**5000, [], {}, {"type": "ephemeral"}, ["x"]]
)


def repair_all(api: str, elements: list[Body]) -> tuple[list[Any], tuple[Finding, ...], MessageError | None]:
    """What repair makes of a list when it looks at everything, or why it does not."""
    speaking = get_dialect(api)
    try:
        mended = apply_repair_rules(read_messages(speaking, elements), speaking.rules, listed=True)
    except MessageError as error:
        return [], (), error
    repaired: list[Any] = []
    for index, message in mended.messages:
        repaired += speaking.write([message]) if index is None else [elements[index]]
    return repaired, mended.findings, None


@concludes(0.3)
@given(long_lists())
def test_setting_sound_turns_aside_changes_nothing(made: tuple[str, list[Body]]) -> None:
    api, elements = made
    expected, findings, error = repair_all(api, elements)
    if error is not None:
        with pytest.raises(MessageError) as caught:
            repair_messages(elements, source=api)
        assert (str(caught.value), caught.value.path) == (str(error), error.path)
        return
    found = repair_messages(elements, source=api)

    assert (found.messages, found.findings) == (expected, findings)
    assert check_messages(elements, source=api) == findings
    runs = find_valid_runs(elements, get_dialect(api).outline, get_dialect(api).rules)  # type: ignore[attr-defined] # all five have one
    if runs is not None and runs.runs:
        conclude()


@pytest.mark.parametrize("api", API_NAMES)
def test_all_of_a_sound_list_is_set_aside(api: str) -> None:
    calls = (Call("id_1", "read", {"path": "a.py", "lines": [1, 2.5, None, {"deep": True}]}), Call("id_2", "read", {}))
    results = Results((("id_1", "read", "found"), ("id_2", "read", "日本")))
    turns = [Word("user", "why?"), Said("looking", calls), results, Said("so"), Word("user", "and?")]
    elements = WRITERS[api](turns)

    found = find_valid_runs(elements, get_dialect(api).outline, get_dialect(api).rules)  # type: ignore[attr-defined] # as above
    assert found is not None
    assert found.runs == [range(len(elements))]


@pytest.mark.parametrize("api", API_NAMES)
def test_one_odd_turn_leaves_the_others_aside(api: str) -> None:
    turns = [turn for number in range(20) for turn in (Word("user", f"why {number}?"), Said("so"))]
    turns[20:20] = [Word("user", "look"), Said("looking", (Call("id_1", "read", {}),))]  # a call without its result
    elements = WRITERS[api]([*turns, Word("user", "and?")])

    found = find_valid_runs(elements, get_dialect(api).outline, get_dialect(api).rules)  # type: ignore[attr-defined] # as above
    assert found is not None
    assert sum(map(len, found.runs)) >= len(elements) - 6
    assert [(finding.code, finding.index) for finding in check_messages(elements, source=api)] == [
        ("missing-result", 21 + (api == "responses"))
    ]
