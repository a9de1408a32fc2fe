"""A list has no more bytes than its API takes: older pictures and documents are told in words first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import BudgetError, fit_messages
from nexus_core.dialects.registry import get_dialect
from nexus_core.history.shorten import count_media, replace_media
from nexus_core.types.budget import TokenBudget
from nexus_core.types.messages import File, Image, Message, Text, ToolCall, ToolResult
from nexus_core.types.settings import Settings
from tests.effort import examples
from tests.history.conversations import conversations
from tests.history.counters import Characters
from tests.history.test_fit_properties import unpaired

LIMIT = 100_000
BUDGET = TokenBudget(limit=1_000_000, byte_limit=LIMIT)


def picture(name: str, size: int = 30_000) -> Image:
    return Image(mime="image/png", data=name * size)


def shown(messages: list[Message]) -> str:
    """The first letters of the pictures in messages, in their order."""
    return "".join(part.data[0] for message in messages for part in media_in(message.parts))


def media_in(parts: tuple[Any, ...]) -> Iterator[Image | File]:
    for part in parts:
        if isinstance(part, ToolResult):
            yield from media_in(part.parts)
        elif isinstance(part, Image | File):
            yield part


def album(names: str, size: int = 30_000) -> list[Message]:
    """A question about each picture, and an answer."""
    return [
        message
        for name in names
        for message in (Message("user", [Text("What?"), picture(name, size)]), Message("assistant", f"{name}."))
    ]


# ---- in words ----------------------------------------------------------------------------------------------------


def test_a_picture_and_a_document_are_told_by_kind_name_and_size() -> None:
    message = Message("user", [picture("A", 4), File(name="a.pdf", mime="application/pdf", data="QUJD"), Text("Why?")])

    assert [part.text for part in replace_media(message).parts if isinstance(part, Text)] == [
        "[image left out, the request would be too large: image/png, 3 bytes]",
        "[file left out, the request would be too large: a.pdf, 3 bytes]",
        "Why?",
    ]


def test_those_in_results_are_told_too() -> None:
    message = Message("tool", [ToolResult("a", [Text("Here:"), picture("A")])])

    told = replace_media(message)

    assert count_media(message) == 1
    assert count_media(told) == 0
    assert told.tool_results[0].text.startswith("Here:\n[image left out")


def test_those_that_are_elsewhere_stay() -> None:
    message = Message("user", [Image(url="https://example.org/a.png"), File(file_id="file_1")])

    assert replace_media(message) is message


def test_one_in_a_link_that_holds_it_is_told() -> None:
    message = Message("user", [Image(url="data:image/png;base64,QUJD")])

    assert replace_media(message).content == "[image left out, the request would be too large: 3 bytes]"


# ---- fitting -----------------------------------------------------------------------------------------------------


def test_what_has_room_is_left_alone() -> None:
    messages = album("ABC")

    fitted = fit_messages(messages, budget=BUDGET)

    assert fitted.messages == messages
    assert fitted.decisions == ()
    assert 90_000 < fitted.budget.bytes <= fitted.budget.byte_limit == LIMIT


@pytest.mark.acceptance("R16")
def test_the_oldest_pictures_are_told_in_words_until_the_rest_fits() -> None:
    messages = album("ABCDE")

    fitted = fit_messages(messages, budget=BUDGET)

    assert shown(fitted.messages) == "CDE"
    assert len(fitted.messages) == len(messages)
    assert [(each.action, each.rule, each.first) for each in fitted.decisions] == [
        ("masked", "request_bytes", 0),
        ("masked", "request_bytes", 2),
    ]
    assert fitted.budget.bytes <= LIMIT
    assert shown(messages) == "ABCDE"


def test_dicts_are_written_in_their_own_shape() -> None:
    def asked(name: str) -> dict[str, Any]:
        source = {"type": "base64", "media_type": "image/png", "data": name * 30_000}
        return {"role": "user", "content": [{"type": "image", "source": source}]}

    said: list[dict[str, Any]] = [{"role": "assistant", "content": name} for name in "ABCD"]
    messages = [message for pair in zip(map(asked, "ABCD"), said, strict=True) for message in pair]

    fitted = fit_messages(messages, budget=BUDGET, api="anthropic")

    assert fitted.messages[0]["content"][0]["text"].startswith("[image left out")
    assert fitted.messages[-2] is messages[-2]
    assert len(json.dumps(fitted.messages)) < fitted.budget.bytes <= LIMIT


def test_the_open_question_and_the_newest_group_keep_theirs() -> None:
    messages = [
        Message("user", [Text("What?"), picture("Q")]),
        Message("assistant", [ToolCall("a", "look")]),
        Message("tool", [ToolResult("a", [picture("A")])]),
        Message("assistant", [ToolCall("b", "look")]),
        Message("tool", [ToolResult("b", [picture("B", 45_000)])]),
    ]

    assert shown(fit_messages(messages, budget=BUDGET).messages) == "QB"


def test_words_with_too_many_bytes_are_left_out_from_the_oldest_on() -> None:
    messages = [Message("user" if place % 2 == 0 else "assistant", "\x01" * 2000) for place in range(20)]

    fitted = fit_messages(messages, budget=BUDGET)

    assert fitted.messages == messages[-len(fitted.messages) :]
    assert 6 <= len(fitted.messages) <= 8
    assert [each.action for each in fitted.decisions] == ["dropped"]


@pytest.mark.acceptance("R16")
def test_what_cannot_be_made_small_enough_is_an_error_in_bytes() -> None:
    with pytest.raises(BudgetError) as caught:
        fit_messages(album("A", LIMIT)[:1], budget=BUDGET, system="Be brief.")

    assert caught.value.unit == "bytes"
    assert list(caught.value.parts) == ["history", "options", "system"]


@pytest.mark.parametrize(
    ("api", "model", "limit"),
    [
        ("anthropic", "", 32_000_000),
        ("openai", "", 50_000_000),
        ("gemini", "", 100_000_000),
        ("openai", "claude-opus-5", 32_000_000),
        ("neutral", "gemini-3-pro", 100_000_000),
        (None, "", 32_000_000),
    ],
)
def test_the_limit_is_that_of_the_api_and_of_the_model(api: str | None, model: str, limit: int) -> None:
    messages = get_dialect(api or "openai").write([Message("user", "Hi")])

    assert fit_messages(messages, api=api, model=model, budget=1000).budget.byte_limit == limit


def test_settings_know_better() -> None:
    said = Settings({"models": {"gpt-4o": {"request_bytes": 5_000_000}}})

    assert (
        fit_messages([Message("user", "Hi")], model="gpt-4o", budget=1000, settings=said).budget.byte_limit == 5_000_000
    )


@pytest.mark.acceptance("R16")
@settings(max_examples=examples(15))
@given(conversations(), st.lists(st.sampled_from(["", "A", "B"]), min_size=30, max_size=30), st.integers(2000, 20_000))
def test_whatever_is_given_no_more_bytes_are_sent_than_may_be(
    messages: list[Message], pictures: list[str], limit: int
) -> None:
    given_ = [
        Message(message.role, [*message.parts, *([picture(name, 1500)] if name and message.role == "user" else [])])
        for message, name in zip(messages, [*pictures, *[""] * len(messages)], strict=False)
    ]
    budget = TokenBudget(limit=10**9, byte_limit=limit)
    try:
        fitted = fit_messages(given_, budget=budget, counter=Characters(), api="neutral")
    except BudgetError as error:
        refused = error
    else:
        assert fitted.budget.bytes <= limit
        assert unpaired(fitted.messages) == []
        again = fit_messages(fitted.messages, budget=budget, counter=Characters(), api="neutral")
        assert again.messages == fitted.messages
        assert fit_messages(given_, budget=budget, counter=Characters(), api="neutral") == fitted
        return
    assert refused.unit == "bytes"
