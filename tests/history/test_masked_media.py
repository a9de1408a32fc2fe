"""Pictures and documents of a thread that are told in words, and when more of them are."""

from __future__ import annotations

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.truncation import (
    LOW_WATER,
    HistoryItem,
    MessageKey,
    TruncationPoint,
    apply_truncation,
    fit_items,
    read_truncation_point,
    replace_item_media,
    replace_oldest_item_media,
)
from nexus_core.types.messages import Image, Message, Text, ToolCall, ToolResult
from tests.history.test_truncation_point import fitting

ROOM = 1_000_000


def asked(number: int, size: int = 10_000) -> HistoryItem:
    message = Message("user", [Text("What?"), Image(mime="image/png", data="A" * size)])
    return HistoryItem(
        message, 100, f"t{number:03}", is_input=True, step=f"t{number:03}", size=count_message_bytes(message)
    )


def answered(number: int) -> HistoryItem:
    message = Message("assistant", "It is a cat.")
    return HistoryItem(message, 10, f"t{number:03}", step=f"r{number:03}", size=count_message_bytes(message))


def album(count: int, size: int = 10_000) -> list[HistoryItem]:
    return [each for number in range(count) for each in (asked(number, size), answered(number))]


def hidden(sent: list[HistoryItem]) -> list[str]:
    return [each.turn for each in sent if each.masked_media]


def total(sent: list[HistoryItem]) -> int:
    return sum(each.size for each in sent)


def test_nothing_is_told_in_words_that_fits() -> None:
    sent = album(5)

    assert fit_items(sent, None, fitting(ROOM, bytes_=total(sent))) == (sent, None, sum(each.tokens for each in sent))


def test_the_oldest_are_until_there_is_room_to_grow() -> None:
    kept = fit_items(album(10), None, fitting(ROOM, bytes_=100_000))

    assert hidden(kept.sent) == ["t000", "t001", "t002", "t003", "t004"]
    assert total(kept.sent) <= 100_000 * LOW_WATER
    assert len(kept.sent) == 20
    assert kept.cut == TruncationPoint(
        "oldest_first", MessageKey("t000", 0), limit=ROOM, hidden=MessageKey("t004", 0), byte_limit=100_000
    )


def test_it_stays_so_until_the_next_does_not_fit() -> None:
    first = fit_items(album(10), None, fitting(ROOM, bytes_=100_000))

    for count in (11, 12, 13):
        later = fit_items(album(count), first.cut, fitting(ROOM, bytes_=100_000))
        assert later.cut == first.cut
        assert later.sent[: len(first.sent)] == first.sent
    assert fit_items(album(15), first.cut, fitting(ROOM, bytes_=100_000)).cut != first.cut


def test_what_was_written_down_says_the_same() -> None:
    kept = fit_items(album(10), None, fitting(ROOM, bytes_=100_000))

    assert kept.cut is not None
    assert read_truncation_point(kept.cut.to_json()) == kept.cut
    assert apply_truncation(album(10), kept.cut, fitting(ROOM, bytes_=100_000)) == kept.sent


def test_the_newest_is_shown_where_it_fits_at_all() -> None:
    kept = fit_items(album(2, 70_000), None, fitting(ROOM, bytes_=100_000))

    assert hidden(kept.sent) == ["t000"]


def test_what_the_open_turn_is_about_is_shown() -> None:
    sent = [*album(2, 40_000), asked(2, 40_000)]

    assert hidden(fit_items(sent, None, fitting(ROOM, bytes_=50_000, turn="t002")).sent) == ["t000", "t001"]


def test_what_is_pinned_is_shown() -> None:
    kept = fit_items(album(4, 40_000), None, fitting(ROOM, bytes_=100_000, pinned=["t000"]))

    assert hidden(kept.sent) == ["t001", "t002"]


def test_the_newest_group_of_the_open_turn_is_shown() -> None:
    calls = [Message("assistant", [ToolCall(each, "look")]) for each in "ab"]
    results = [Message("tool", [ToolResult(each, [Image(data="A" * 40_000)])]) for each in "ab"]
    messages = [Message("user", "What?"), calls[0], results[0], calls[1], results[1]]
    sent = [
        HistoryItem(each, 1, "t", is_input=place == 0, step=f"s{place}", size=count_message_bytes(each))
        for place, each in enumerate(messages)
    ]

    kept = fit_items(sent, None, fitting(ROOM, bytes_=60_000, turn="t"))

    assert [each.masked_media for each in kept.sent] == [0, 0, 1, 0, 0]


def test_where_pictures_are_not_the_reason_whole_turns_are_left_out() -> None:
    sent = [each._replace(size=10_000) for each in album(10, 1)]

    kept = fit_items(sent, None, fitting(ROOM, bytes_=100_000))

    assert total(kept.sent) <= 100_000
    assert kept.sent[-1] == sent[-1]
    assert kept.cut is not None
    assert kept.cut.byte_limit == 100_000


def test_more_room_deserves_another_look() -> None:
    cut = TruncationPoint(
        "oldest_first", MessageKey("t000", 0), limit=ROOM, hidden=MessageKey("t004", 0), byte_limit=100_000
    )

    assert fitting(ROOM, bytes_=100_000).still_holds(cut)
    assert fitting(ROOM, bytes_=50_000).still_holds(cut)
    assert not fitting(ROOM, bytes_=200_000).still_holds(cut)


def test_a_message_that_is_not_there_hides_nothing() -> None:
    cut = TruncationPoint(
        "oldest_first", MessageKey("t000", 0), limit=ROOM, hidden=MessageKey("nowhere", 0), byte_limit=ROOM
    )

    assert hidden(fit_items(album(3), cut, fitting(ROOM)).sent) == []


def test_what_was_said_is_told_without_it_too() -> None:
    sent = asked(0)._replace(original=asked(0).message)

    told = replace_item_media(sent, lambda _: 1)

    assert (told.masked_media, told.tokens) == (1, 1)
    assert told.original == told.message


def test_without_a_cut_as_much_is_hidden_as_has_to_be() -> None:
    sent = album(3, 40_000)

    assert replace_oldest_item_media(sent, fitting(ROOM)) == sent
    assert hidden(replace_oldest_item_media(sent, fitting(ROOM, bytes_=100_000))) == ["t000", "t001"]
