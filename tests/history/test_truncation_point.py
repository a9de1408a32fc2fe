"""Where the history of a call begins, and when that moves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import PluginError
from nexus_core.history.truncation import (
    LOW_WATER,
    FitLimits,
    HistoryItem,
    MessageKey,
    MessageRange,
    TruncationPoint,
    apply_truncation,
    fit_items,
    read_truncation_point,
    replace_item_media,
)
from nexus_core.types.budget import GroupChoice, GroupSizes, TruncationStrategy
from nexus_core.types.messages import Message


def oldest_first(groups: GroupSizes, budget: int) -> GroupChoice:
    return [slice(-groups.newest(budget), None)]


def middle_out(groups: GroupSizes, budget: int) -> GroupChoice:
    return [slice(0, 1), slice(-groups.newest(max(budget - groups[0], 0)), None)]


OLDEST = TruncationStrategy("oldest_first", oldest_first)
MIDDLE = TruncationStrategy("middle_out", middle_out)


def turns(count: int, *, tokens: int = 10) -> list[HistoryItem]:
    """As many turns of one question and one answer."""
    sent = []
    for number in range(count):
        turn = f"t{number:03}"
        sent.append(HistoryItem(Message("user", f"q{number}"), tokens, turn, is_input=True, step=turn))
        sent.append(HistoryItem(Message("assistant", f"a{number}"), tokens, turn, step=f"r{number:03}"))
    return sent


def fitting(
    room: int,
    *,
    bytes_: int = 1_000_000,
    truncation: TruncationStrategy = OLDEST,
    turn: str = "",
    pinned: Sequence[str] = (),
) -> FitLimits:
    return FitLimits(
        room=room,
        bytes=bytes_,
        limit=room,
        byte_limit=bytes_,
        replace_media=lambda sent: replace_item_media(sent, lambda _: 1),
        truncation=truncation,
        turn=turn,
        compaction=None,
        known={},
        pinned=pinned,
    )


def test_nothing_is_cut_that_fits() -> None:
    sent = turns(3)

    assert fit_items(sent, None, fitting(60)) == (sent, None, 60)


def test_a_first_cut_leaves_room_to_grow() -> None:
    kept = fit_items(turns(10), None, fitting(150))

    assert sum(each.tokens for each in kept.sent) <= 150 * LOW_WATER
    assert kept.cut == TruncationPoint("oldest_first", MessageKey("t006", 0), limit=150)


def test_a_cut_stays_until_what_it_leaves_does_not_fit() -> None:
    first = fit_items(turns(10), None, fitting(150))

    for count in (11, 12, 13):
        later = fit_items(turns(count), first.cut, fitting(150))
        assert later.cut == first.cut
        assert later.sent[: len(first.sent)] == first.sent
    assert fit_items(turns(14), first.cut, fitting(150)).cut != first.cut


def test_what_stays_of_the_beginning_stays_in_its_place() -> None:
    first = fit_items(turns(10), None, fitting(150, truncation=MIDDLE))

    assert first.sent[0].message.content == "q0"
    assert first.cut is not None
    assert first.cut.spans == (MessageRange(MessageKey("t000", 0), MessageKey("t000", 0)),)
    later = fit_items(turns(11), first.cut, fitting(150, truncation=MIDDLE))
    assert later.sent[: len(first.sent)] == first.sent


def test_what_was_left_out_does_not_come_back_when_the_cut_moves() -> None:
    sent = turns(14)
    first = fit_items(turns(10), None, fitting(150, truncation=MIDDLE))

    moved = fit_items(sent, first.cut, fitting(150, truncation=MIDDLE))

    gone = {each.key for each in turns(10)} - {each.key for each in first.sent}
    assert not gone & {each.key for each in moved.sent}


def test_what_stays_of_the_beginning_never_grows_into_what_was_left_out() -> None:
    sent = turns(12)
    cut = TruncationPoint(
        "oldest_first", MessageKey("t009", 0), (MessageRange(MessageKey("t000", 0), MessageKey("r002", 0)),), limit=100
    )

    moved = fit_items(
        sent, cut, fitting(100, truncation=TruncationStrategy("seven", lambda _groups, _budget: [slice(-7, None)]))
    )

    assert [each.message.content for each in moved.sent] == ["a2", "q9", "a9", "q10", "a10", "q11", "a11"][1:]
    assert moved.cut is not None
    assert apply_truncation(sent, moved.cut, fitting(100)) == moved.sent


def test_what_cannot_be_cut_any_further_keeps_its_cut() -> None:
    sent = [*turns(3), HistoryItem(Message("user", "q"), 500, "t", is_input=True, step="t")]
    first = fit_items(sent, None, fitting(100, turn="t"))

    assert [each.message.content for each in first.sent] == ["q"]
    assert fit_items(sent, first.cut, fitting(100, turn="t"))[:2] == first[:2]


def test_the_question_of_the_open_turn_and_its_newest_group_stay() -> None:
    sent = [
        *turns(4),
        *turns(5)[8:9],
        *(HistoryItem(Message("assistant", f"{n}"), 30, "t004", step=f"s{n}") for n in range(6)),
    ]

    kept = fit_items(sent, None, fitting(100, turn="t004"))

    assert [each.message.content for each in kept.sent] == ["q4", "5"]
    assert kept.cut == TruncationPoint(
        "oldest_first", MessageKey("s5", 0), (MessageRange(MessageKey("t004", 0), MessageKey("t004", 0)),), limit=100
    )


def test_a_cut_that_names_what_is_not_there_leaves_nothing() -> None:
    assert apply_truncation(turns(3), TruncationPoint("oldest_first", MessageKey("nowhere", 0)), fitting(100)) is None


@pytest.mark.parametrize(
    ("cut", "holds"),
    [
        (TruncationPoint("oldest_first", MessageKey("t", 0), limit=100), True),
        (TruncationPoint("middle_out", MessageKey("t", 0), limit=100), False),
        (TruncationPoint("oldest_first", MessageKey("t", 0), limit=99), False),
        (TruncationPoint("oldest_first", MessageKey("t", 0), compaction="c", limit=100), False),
        (None, False),
    ],
    ids=["same", "other rule", "larger window", "other compaction", "none"],
)
def test_a_cut_holds_for_the_thread_it_was_made_for(cut: TruncationPoint | None, holds: bool) -> None:
    assert fitting(100).still_holds(cut) is holds


@given(
    st.builds(
        TruncationPoint,
        st.text(min_size=1),
        st.builds(MessageKey, st.text(), st.integers(0, 9)),
        st.lists(
            st.builds(
                MessageRange,
                st.builds(MessageKey, st.text(), st.integers()),
                st.builds(MessageKey, st.text(), st.integers()),
            )
        ).map(tuple),
        st.none() | st.text(min_size=1),
        st.integers(0, 10**6),
    )
)
def test_a_cut_can_be_written_down(cut: TruncationPoint) -> None:
    assert read_truncation_point(cut.to_json()) == cut


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    room=st.integers(1, 200),
    truncation=st.sampled_from([OLDEST, MIDDLE]),
)
def test_growing_by_one_message_at_a_time_the_beginning_changes_only_when_the_cut_does(
    sizes: list[int], room: int, truncation: TruncationStrategy
) -> None:
    sent: list[HistoryItem] = []
    kept: list[HistoryItem] = []
    cut: TruncationPoint | None = None
    for number, size in enumerate(sizes):
        sent.append(HistoryItem(Message("user", str(number)), size, f"t{number}", is_input=True, step=f"t{number}"))
        held = fitting(room, truncation=truncation, turn=f"t{number}")
        now = fit_items(sent, cut if held.still_holds(cut) else None, held)
        if now.cut == cut:
            assert now.sent[: len(kept)] == kept
        assert now.sent[-1] == sent[-1]
        assert sum(each.tokens for each in now.sent) <= max(room, size)
        kept, cut = now.sent, now.cut


def test_a_truncation_that_breaks_its_contract_is_named() -> None:
    broken = TruncationStrategy("broken", lambda _groups, _budget: 5)  # type: ignore[arg-type, return-value]

    with pytest.raises(PluginError, match="its truncation 'broken' returned 5, expected a list of slices"):
        fit_items(turns(10), None, fitting(100, truncation=broken))
