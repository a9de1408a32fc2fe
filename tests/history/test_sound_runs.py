"""Sound turns are set aside before anything is repaired: the same comes of it as when all is looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Finding, MessageError, check, dialect, repair
from nexus_core.dialects.finding import read_messages
from nexus_core.history.mending.steps import mend
from nexus_core.history.sound_runs import find_sound_runs
from tests.effort import conclude, concludes
from tests.history.broken import ANYTHING, ENCODERS, Body, Call, Results, Said, Word, mutated


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
APIS = sorted(WRITERS)


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
    api = draw(st.sampled_from(APIS))
    turns: list[Any] = []
    for piece in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 2)):
            turns += draw(sound_turns(10 * piece))
        else:
            turns += draw(ANYTHING)[:3]
    elements = WRITERS[api](turns)
    if draw(st.booleans()):
        elements = draw(mutated(elements))
    if draw(st.booleans()):
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
    speaking = dialect(api)
    try:
        mended = mend(read_messages(speaking, elements), speaking.rules, listed=True)
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
            repair(elements, source=api)
        assert (str(caught.value), caught.value.path) == (str(error), error.path)
        return
    found = repair(elements, source=api)

    assert (found.messages, found.findings) == (expected, findings)
    assert check(elements, source=api) == findings
    runs = find_sound_runs(elements, dialect(api).outline, dialect(api).rules)  # type: ignore[attr-defined] # all five have one
    if runs is not None and runs.runs:
        conclude()


@pytest.mark.parametrize("api", APIS)
def test_all_of_a_sound_list_is_set_aside(api: str) -> None:
    calls = (Call("id_1", "read", {"path": "a.py", "lines": [1, 2.5, None, {"deep": True}]}), Call("id_2", "read", {}))
    results = Results((("id_1", "read", "found"), ("id_2", "read", "日本")))
    turns = [Word("user", "why?"), Said("looking", calls), results, Said("so"), Word("user", "and?")]
    elements = WRITERS[api](turns)

    found = find_sound_runs(elements, dialect(api).outline, dialect(api).rules)  # type: ignore[attr-defined] # as above
    assert found is not None
    assert found.runs == [range(len(elements))]


@pytest.mark.parametrize("api", APIS)
def test_one_odd_turn_leaves_the_others_aside(api: str) -> None:
    turns = [turn for number in range(20) for turn in (Word("user", f"why {number}?"), Said("so"))]
    turns[20:20] = [Word("user", "look"), Said("looking", (Call("id_1", "read", {}),))]  # a call without its result
    elements = WRITERS[api]([*turns, Word("user", "and?")])

    found = find_sound_runs(elements, dialect(api).outline, dialect(api).rules)  # type: ignore[attr-defined] # as above
    assert found is not None
    assert sum(map(len, found.runs)) >= len(elements) - 6
    assert [(finding.code, finding.index) for finding in check(elements, source=api)] == [
        ("missing-result", 21 + (api == "responses"))
    ]
