"""Which places of a call are marked for a provider's cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nexus_core.dialects.registry import get_dialect
from nexus_core.types.budget import Model, TokenCalibration
from nexus_core.types.messages import Image, Message, Opaque, Reasoning, Text, Tool, ToolResult
from tests.request.contexts import (
    CLAUDE,
    DEEPSEEK,
    GEMINI,
    GPT,
    GPT_4O,
    LOOK,
    SONNET,
    asks,
    brings,
    context_of,
    marked,
    says,
    user,
)

SHORT: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
LONG: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def own(*extras: dict[str, Any], role: Any = "user") -> Message:
    """A message of Anthropic's with a text for each extra."""
    return Message(role, [Text("x", extra) for extra in extras], api="anthropic")


def reasons(context: Any, api: str = "anthropic", **options: Any) -> dict[str, str]:
    return {each.place: each.skipped for each in context.breakpoints(api, **options) if each.skipped}


# ---- where ----------------------------------------------------------------------------------------------------------


def test_the_first_call_is_marked_behind_the_static_zone_and_at_its_end() -> None:
    context = context_of([user()])

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "newest": 0}


def test_the_first_call_of_a_turn_is_marked_where_the_last_one_ended_too() -> None:
    messages = [user("1"), says(), user("2"), asks("a"), brings("a"), says(), user("3")]

    context = context_of(messages, past=6)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "sent": 4, "history": 5, "newest": 6}


def test_in_a_loop_of_tools_the_marks_move_with_it_and_the_turns_before_stay_marked() -> None:
    messages = [user("1"), says(), user("2"), asks("a"), brings("a"), asks("b"), brings("b")]

    context = context_of(messages, past=2)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "history": 1, "sent": 4, "newest": 6}


def test_results_that_stand_in_messages_of_their_own_are_one_end() -> None:
    messages = [user(), asks("a", "b"), brings("a"), brings("b"), asks("c"), brings("c")]

    context = context_of(messages)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "sent": 3, "newest": 5}


def test_an_answer_that_goes_on_is_an_end_as_well() -> None:
    messages = [user(), Message("assistant", "Let me"), Message("assistant", "go on")]

    context = context_of(messages)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "sent": 0, "newest": 2}


def test_places_stand_in_the_order_of_the_call_with_what_is_before_them() -> None:
    messages = [user("1"), says(), user("2"), asks("a"), brings("a")]

    breakpoints = context_of(messages, past=2, size=100, static=700).breakpoints("anthropic")

    assert [(each.place, each.tokens) for each in breakpoints] == [
        ("static", 700),
        ("history", 900),
        ("sent", 1000),
        ("newest", 1200),
    ]


def test_without_a_system_prompt_the_tools_are_the_static_zone() -> None:
    assert marked(context_of([user()], system="").breakpoints("anthropic")) == {"static": -1, "newest": 0}
    assert marked(context_of([user()], system=" ", tools=()).breakpoints("anthropic")) == {"newest": 0}


def test_nothing_is_marked_where_nothing_is_said() -> None:
    assert marked(context_of([], system="", tools=()).breakpoints("anthropic")) == {}


@pytest.mark.parametrize(
    "unmarkable",
    [
        Message("user", " \n"),
        Message("assistant", [Reasoning(text="hm", signature="s", api="anthropic")]),
        Message("user", [Opaque("gemini", {"x": 1})]),
    ],
    ids=["blank", "thought", "foreign block"],
)
def test_what_takes_no_mark_leaves_it_to_the_message_before(unmarkable: Message) -> None:
    context = context_of([user(), unmarkable])

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "newest": 0}


def test_pictures_and_the_providers_own_blocks_take_marks() -> None:
    picture = Message("user", [Image(mime="image/png", data="AAAA")])
    found = Message("user", [Opaque("anthropic", {"type": "search_result"})])

    assert marked(context_of([user(), says(), picture], past=2).breakpoints("anthropic"))["newest"] == 2
    assert marked(context_of([user(), says(), found], past=2).breakpoints("anthropic"))["newest"] == 2


# ---- how long -------------------------------------------------------------------------------------------------------


def test_nothing_is_marked_that_is_shorter_than_what_the_model_keeps() -> None:
    messages = [user("1"), says(), user("2")]

    context = context_of(messages, past=2, size=200, static=700, model=SONNET)

    assert marked(context.breakpoints("anthropic")) == {"history": 1, "newest": 2}
    assert reasons(context) == {
        "static": "claude-sonnet-4 keeps nothing shorter than 1024 tokens",
        "sent": "claude-sonnet-4 keeps nothing shorter than 1024 tokens",
    }


def test_what_is_exactly_as_long_as_the_shortest_is_marked() -> None:
    assert marked(context_of([user()], static=512, size=0).breakpoints("anthropic")) == {"static": -1, "newest": 0}
    assert marked(context_of([user()], static=511, size=0).breakpoints("anthropic")) == {}


def test_tokens_are_as_the_provider_has_counted_so_far() -> None:
    context = context_of([user()], static=400, size=100)
    budget = replace(context.token_budget, calibration=TokenCalibration(low=1.2, estimate=1.5, high=1.6, replies=3))

    breakpoints = replace(context, token_budget=budget).breakpoints("anthropic")

    assert [each.tokens for each in breakpoints] == [600, 750]
    assert marked(breakpoints) == {"static": -1, "newest": 0}


def test_messages_that_nobody_counted_are_estimated() -> None:
    context = replace(context_of([user("word " * 2000)], static=0), message_tokens=())

    assert marked(context.breakpoints("anthropic")) == {"newest": 0}


def test_another_model_is_asked_about() -> None:
    context = context_of([user()], static=700, size=100)

    assert marked(context.breakpoints("anthropic", model="claude-sonnet-4")) == {}
    assert marked(context.breakpoints("anthropic", model="claude-opus-5")) == {"static": -1, "newest": 0}


# ---- how many -------------------------------------------------------------------------------------------------------


def test_the_callers_own_marks_count_and_the_least_useful_of_ours_are_given_up() -> None:
    messages = [own(SHORT, SHORT), says(), user("2"), says(), user("3")]

    context = context_of(messages, past=4)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "newest": 4}
    assert reasons(context) == dict.fromkeys(("sent", "history"), "no mark is left: the caller has placed 2")


def test_marks_on_tools_and_inside_results_count_too() -> None:
    tool = Tool(name="look", api="anthropic", extra=SHORT)
    result = ToolResult("a", (Text("x", SHORT),), extra={"_content": "list"})
    messages = [user(), asks("a"), Message("tool", [result], api="anthropic"), says(), user(), says(), user()]

    context = context_of(messages, past=6, tools=[tool])

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "newest": 6}


def test_a_place_that_the_caller_has_marked_is_left_alone() -> None:
    context = context_of([user(), says(), own(SHORT)], past=2)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "sent": 0, "history": 1}
    assert reasons(context) == {"newest": "the caller has marked it"}


def test_marks_of_another_api_do_not_count() -> None:
    messages = [Message("user", [Text("x", SHORT)] * 4, api="openai")]

    assert marked(context_of(messages).breakpoints("anthropic")) == {"static": -1, "newest": 0}


def test_the_mark_that_the_api_sets_by_itself_counts_and_is_the_newest() -> None:
    messages = [user("1"), says(), own(SHORT, SHORT), says(), user("3")]

    breakpoints = context_of(messages, past=4).breakpoints("anthropic", cache_control={"type": "ephemeral"})

    assert marked(breakpoints) == {"static": -1}


# ---- for how long ---------------------------------------------------------------------------------------------------


def test_only_the_static_zone_is_kept_for_longer() -> None:
    messages = [user("1"), says(), user("2")]

    breakpoints = context_of(messages, past=2, ttl="1h").breakpoints("anthropic")

    assert [(each.place, each.lifetime) for each in breakpoints] == [
        ("static", "1h"),
        ("sent", "5m"),
        ("history", "5m"),
        ("newest", "5m"),
    ]


def test_behind_a_shorter_lived_mark_of_the_caller_nothing_is_kept_for_longer() -> None:
    tool = Tool(name="look", api="anthropic", extra=SHORT)

    breakpoints = context_of([user()], tools=[tool], ttl="1h").breakpoints("anthropic")

    assert [each.lifetime for each in breakpoints] == ["5m", "5m"]


def test_before_a_longer_lived_mark_of_the_caller_everything_is_kept_as_long() -> None:
    messages = [user("1"), says(), own(LONG), says(), user("3")]

    breakpoints = context_of(messages, past=4).breakpoints("anthropic")

    assert [(each.place, each.lifetime) for each in breakpoints if not each.skipped] == [
        ("static", "1h"),
        ("history", "5m"),
        ("newest", "5m"),
    ]


# ---- who ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["openai", "responses"])
def test_openai_is_told_where_input_ends_not_answers(api: str) -> None:
    messages = [user("1"), says(), user("2"), asks("a"), brings("a"), says(), user("3")]

    context = context_of(messages, past=6, model=GPT)

    assert marked(context.breakpoints(api)) == {"static": -1, "sent": 4, "newest": 6}
    assert reasons(context, api) == {"history": "it is the same place as `sent`"}
    assert {each.lifetime for each in context.breakpoints(api)} == {""}


def test_openai_takes_no_marks_on_tools() -> None:
    context = context_of([user()], system="", model=GPT)

    assert marked(context.breakpoints("openai")) == {"newest": 0}
    assert reasons(context, "openai") == {"static": "openai takes no marks on tools"}


@pytest.mark.parametrize(
    ("model", "api", "why"),
    [
        (GPT_4O, "openai", "gpt-4o finds out by itself what to keep"),
        (DEEPSEEK, "openai", "deepseek-v4 is not known to keep anything for openai"),
        (CLAUDE, "openai", "claude-opus-5 is not known to keep anything for openai"),
        (GPT, "anthropic", "gpt-5.6 is not known to keep anything for anthropic"),
        (Model(name="mine", window=9000), "anthropic", "mine is not known to keep anything for anthropic"),
        (GEMINI, "gemini", "gemini takes no marks"),
        (CLAUDE, "neutral", "neutral takes no marks"),
    ],
    ids=lambda value: value.name if isinstance(value, Model) else None,
)
def test_nothing_is_marked_where_it_would_do_nothing_and_the_reason_is_told(model: Model, api: str, why: str) -> None:
    context = context_of([user()], model=model)

    assert reasons(context, api) == {"static": why, "newest": why}


def test_a_model_of_no_known_api_is_marked_if_the_settings_say_how_much_it_keeps() -> None:
    mine = Model(name="mine", window=9000, cache_minimum=1, cache_breakpoints=2)

    context = context_of([user("1"), says(), user("2")], past=2, model=mine)

    assert marked(context.breakpoints("anthropic")) == {"static": -1, "newest": 2}


def test_it_can_be_switched_off_by_the_settings_and_for_a_call() -> None:
    assert set(reasons(context_of([user()], enabled=False)).values()) == {"it is switched off"}
    assert set(reasons(context_of([user()]), cache=False).values()) == {"it is switched off"}


def test_nothing_is_marked_in_what_the_caller_puts_together() -> None:
    assert set(reasons(context_of([user()]), system="Be verbose.").values()) == {"the caller gives `system`"}


def test_the_plan_of_a_call_is_always_the_same() -> None:
    messages = [user("1"), own(SHORT), says(), user("2"), asks("a"), brings("a")]

    plans = {context_of(messages, past=3, tools=[LOOK]).breakpoints("anthropic") for _ in range(3)}

    assert len(plans) == 1


def test_every_api_that_has_marks_says_by_which_field() -> None:
    assert {name: get_dialect(name).rules.cache_mark for name in ("anthropic", "openai", "responses", "gemini")} == {
        "anthropic": "cache_control",
        "openai": "prompt_cache_breakpoint",
        "responses": "prompt_cache_breakpoint",
        "gemini": "",
    }
