"""Whatever the list: what repair returns is accepted, and stays as it is."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core.dialects.registry import get_dialect
from nexus_core.history.repair import RepairResult, check_messages, repair_messages
from nexus_core.history.repair.findings import FINDING_CODES, UNREPAIRED_CODES
from nexus_core.types.messages import Message, Reasoning, Text
from nexus_core.types.plugins import Finding
from tests.effort import examples
from tests.history.broken import ANYTHING, ENCODERS, MESSAGES, SAID, WORDS, Said, Word, mutated, neutral, valid_turns
from tests.history.oracles import ORACLES

APIS = ["openai", "responses", "anthropic", "gemini"]
EVERY_API = pytest.mark.parametrize("api", APIS)


def accepted(api: str, messages: list[Any]) -> list[str]:
    return ORACLES[api](messages)


def unrepaired(repaired: RepairResult) -> list[Finding]:
    """What repair found, apart from what it leaves to the caller."""
    return [finding for finding in repaired.findings if finding.code not in UNREPAIRED_CODES]


def test_the_oracles_can_say_no() -> None:
    assert accepted("openai", [{"role": "tool", "tool_call_id": "a", "content": "x"}])
    assert accepted("anthropic", [{"role": "assistant", "content": "x"}])
    assert accepted("responses", [{"type": "function_call_output", "call_id": "a", "output": "x"}])
    assert accepted("gemini", [{"role": "user", "parts": []}])
    short = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    long = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert not accepted("anthropic", [{"role": "user", "content": [long, short]}])
    assert accepted("anthropic", [{"role": "user", "content": [short, long]}])
    assert accepted("anthropic", [{"role": "user", "content": [short] * 5}])


@EVERY_API
@given(valid_turns())
def test_a_valid_list_has_no_findings_and_comes_back_itself(api: str, turns: list[Any]) -> None:
    messages = ENCODERS[api](turns)

    repaired = repair_messages(messages, api, source=api)

    assert accepted(api, messages) == []
    assert repaired.findings == ()
    assert all(mine is theirs for mine, theirs in zip(repaired.messages, messages, strict=True))


@pytest.mark.acceptance("R16")
@EVERY_API
@given(st.data())
def test_a_list_with_elements_lost_repeated_and_exchanged_is_accepted_after_repair(api: str, data: Any) -> None:
    messages = data.draw(mutated(ENCODERS[api](data.draw(valid_turns()))))

    assert accepted(api, repair_messages(messages, api, source=api).messages) == []


@pytest.mark.acceptance("R16")
@EVERY_API
@settings(max_examples=examples(150))
@given(ANYTHING)
def test_anything_in_an_apis_own_shape_is_accepted_after_repair(api: str, turns: list[Any]) -> None:
    messages = ENCODERS[api](turns)

    repaired = repair_messages(messages, api, source=api)

    assert accepted(api, repaired.messages) == []
    again = repair_messages(repaired.messages, api, source=api)
    assert again.messages == repaired.messages
    assert unrepaired(again) == []


@EVERY_API
@settings(max_examples=examples(150))
@given(st.one_of(MESSAGES, ANYTHING.map(neutral)))
@example([Message("assistant", (Text("x"), Reasoning(text="hm", api="responses"), Text("")))])
def test_neutral_messages_are_accepted_after_repair_and_conversion(api: str, messages: list[Message]) -> None:
    repaired = repair_messages(messages, api)

    assert accepted(api, get_dialect(api).write(repaired.messages)) == []
    again = repair_messages(repaired.messages, api)
    assert again.messages == repaired.messages
    assert unrepaired(again) == []


@EVERY_API
@pytest.mark.parametrize("source", APIS)
@settings(max_examples=examples(30))
@given(ANYTHING)
def test_a_list_in_another_apis_shape_is_accepted_after_repair_and_conversion(
    api: str, source: str, turns: list[Any]
) -> None:
    messages = ENCODERS[source](turns)

    repaired = repair_messages(messages, api, source=source)

    assert accepted(api, get_dialect(api).write(map(get_dialect(source).read, repaired.messages))) == []
    again = repair_messages(repaired.messages, api, source=source)
    assert again.messages == repaired.messages
    assert unrepaired(again) == []


@EVERY_API
@given(ANYTHING)
def test_what_is_given_stays_as_it_is_and_gives_the_same_again(api: str, turns: list[Any]) -> None:
    messages = ENCODERS[api](turns)
    before = copy.deepcopy(messages)

    first, second = repair_messages(messages, api, source=api), repair_messages(before, api, source=api)

    assert messages == before
    assert pickle.dumps((first.messages, first.findings)) == pickle.dumps((second.messages, second.findings))


@EVERY_API
@given(MESSAGES)
def test_check_says_what_repair_does(api: str, messages: list[Message]) -> None:
    repaired = repair_messages(messages, api)

    assert check_messages(messages, api) == repaired.findings
    is_untouched = len(repaired.messages) == len(messages) and all(
        map(lambda a, b: a is b, repaired.messages, messages)
    )
    assert is_untouched == (not unrepaired(repaired))


@pytest.mark.parametrize("api", [*APIS, "neutral"])
@given(MESSAGES)
def test_only_codes_that_concern_the_api_are_found(api: str, messages: list[Message]) -> None:
    rules = get_dialect(api).rules

    assert [
        finding.code for finding in check_messages(messages, api) if not FINDING_CODES[finding.code].applies(rules)
    ] == []


@EVERY_API
@given(ANYTHING, st.lists(st.one_of(SAID, WORDS), max_size=4))
def test_what_was_closed_is_repaired_alike_when_the_conversation_goes_on(
    api: str, turns: list[Any], more: list[Any]
) -> None:
    closed = ENCODERS[api]([*turns, Word("user", "so far"), Said("so good"), Word("user", "go on")])
    longer = [*closed, *ENCODERS[api]([Said("yes"), *more])]

    one, other = repair_messages(closed, api, source=api).messages, repair_messages(longer, api, source=api).messages

    assert other[: len(one)] == one
