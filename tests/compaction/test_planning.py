"""Which steps of a thread are summarized: turns stay whole, calls keep their results, what must stay comes first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import BudgetError, Nexus, PluginError, hookimpl
from nexus_core.compaction.plan import CompactionSelection, outline_thread, select_steps
from nexus_core.host.discovery import PluginPolicy
from nexus_core.host.manager import Host
from nexus_core.plugin import CompactionPlan
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.compaction import CompactionBudget, ThreadGroup, ThreadMessage, ThreadOutline
from tests.compaction.threads import threads, turns
from tests.effort import examples

BUNDLED = Nexus(layers=False, installed=False).host
NOBODY = Host((), PluginPolicy(frozenset(), strict=True, only_bundled=False))


def budget(
    available: int = 2000, target: int = 1200, *, keep: int = 3, summary: int = 200, **fixed: int
) -> CompactionBudget:
    return CompactionBudget(available=available, target=target, fixed=fixed, summary=summary, keep_turns=keep)


def select(thread: ThreadOutline, given: CompactionBudget, host: Host = BUNDLED) -> CompactionSelection | None:
    return select_steps(host, thread, given, SimpleTokenCounter())


def selected(thread: ThreadOutline, given: CompactionBudget, host: Host = BUNDLED) -> CompactionSelection:
    found = select(thread, given, host)
    assert found is not None
    return found


def steps(groups: tuple[ThreadGroup, ...]) -> list[str]:
    return [step for group in groups for step in group.steps]


def test_a_thread_is_outlined_in_turns_and_groups() -> None:
    outline = outline_thread(turns((10, 20, 30), (5, 50), open_last=True), open_turn="t1", pinned={"t0.0r"})

    assert [(turn.id, turn.first, turn.is_open, turn.tokens) for turn in outline.turns] == [
        ("t0", "t0", False, 60),
        ("t1", "t1", True, 55),
    ]
    assert [(group.steps, group.tokens, group.pinned) for group in outline.turns[0].groups] == [
        (("t0",), 10, False),
        (("t0.0", "t0.0r"), 20, True),
        (("t0.1",), 30, False),
    ]


@pytest.mark.acceptance("D-06", "D-07", "C-11")
def test_the_newest_turns_stay_that_fit_into_the_target() -> None:
    thread = outline_thread(turns(*[(50, 150)] * 12))

    found = selected(thread, budget(2400, 1200, system=200))

    # 200 fixed and 200 for the summary leave room for four turns.
    assert (found.plan.first_kept, found.turn, found.summary_limit) == ("t8", "t8", 200)
    assert steps(found.covered) == [step for number in range(8) for step in (f"t{number}", f"t{number}.0")]
    assert (found.covered_tokens, found.kept_tokens) == (1600, 800)


@pytest.mark.acceptance("C-23", "D-07")
def test_three_turns_stay_even_if_they_are_over_the_target() -> None:
    thread = outline_thread(turns(*[(100, 400)] * 5))

    assert selected(thread, budget(2000, 500)).turn == "t2"


def test_a_target_of_nothing_keeps_no_more_turns_than_it_has_to() -> None:
    thread = outline_thread(turns(*[(10, 10)] * 9))

    assert selected(thread, budget(2000, 0)).turn == "t6"
    assert selected(thread, budget(2000, 0, keep=1)).turn == "t8"


def test_fewer_turns_stay_only_where_three_do_not_fit_at_all() -> None:
    thread = outline_thread(turns(*[(100, 700)] * 5))

    assert selected(thread, budget(2000, 500)).turn == "t3"
    assert selected(thread, budget(1100, 500)).turn == "t4"
    found = selected(thread, budget(900, 500))
    assert (found.plan.first_kept, found.kept, found.turn) == (None, (), "")


def test_the_open_turn_stays_whole_as_long_as_it_fits_alone() -> None:
    thread = outline_thread(turns((100, 900), (100, 900), (100, 300, 300, 300), open_last=True), open_turn="t2")

    found = selected(thread, budget(1300, 800))

    assert (found.plan.first_kept, steps(found.kept)[0]) == ("t2", "t2")
    assert {group.tokens for group in found.covered} == {100, 900}


@pytest.mark.acceptance("B-01")
def test_only_where_the_open_turn_alone_is_over_what_stays_begins_inside_of_it() -> None:
    thread = outline_thread(turns((100, 900), (100, *[300] * 10), open_last=True), open_turn="t1")

    found = selected(thread, budget(2000, 1200))

    # 100 for what it is about and 200 for the summary leave room for three groups.
    assert (found.plan.first_kept, found.turn) == ("t1.7", "t1")
    assert steps(found.kept) == ["t1", "t1.7", "t1.7r", "t1.8", "t1.8r", "t1.9", "t1.9r"]
    assert steps(found.covered)[:4] == ["t0", "t0.0", "t1.0", "t1.0r"]


def test_long_turns_keep_question_and_answer_where_whole_ones_free_too_little() -> None:
    long = (50, *[200] * 4, 50)
    thread = outline_thread(turns((10, 20), long, long, (50, 50), (50, *[200] * 5), open_last=True), open_turn="t4")

    found = selected(thread, budget(3200, 1900))

    assert steps(found.pinned) == ["t1", "t1.4", "t2", "t2.4"]
    assert steps(found.kept)[:3] == ["t3", "t3.0", "t4"]
    assert steps(found.covered)[2:6] == ["t1.0", "t1.0r", "t1.1", "t1.1r"]
    assert found.covered_tokens == 10 + 20 + 2 * 4 * 200


def test_ends_that_were_carried_stay_while_a_turn_goes_on() -> None:
    carried = turns((50, 50), (50, 50))
    thread = outline_thread(
        turns((50, *[200] * 14), open_last=True), open_turn="t0", carried=[_as_carried(each) for each in carried]
    )

    found = selected(thread, budget(3000, 1900))

    assert steps(found.pinned) == ["old-t0", "old-t0.0", "old-t1", "old-t1.0"]


def _as_carried(message: ThreadMessage) -> ThreadMessage:
    return message._replace(step=f"old-{message.step}", turn="", is_input=False)


@pytest.mark.parametrize(
    ("kept", "complaint"),
    [(("t0.0",), "without the rest of its group"), (("gone",), "which is not in the thread")],
)
def test_a_plan_keeps_whole_groups_only(kept: tuple[str, ...], complaint: str) -> None:
    class Planner:
        @hookimpl
        def nexus_compaction_plan(self) -> CompactionPlan:
            return CompactionPlan(first_kept="t1", kept_steps=kept)

    host = Nexus(layers=False, installed=False, plugins=[Planner()]).host
    thread = outline_thread(turns((10, 200, 10), (10, 10)))

    with pytest.raises(PluginError, match=complaint):
        select(thread, budget(), host)


def test_the_newest_group_stays_however_large_it_is() -> None:
    thread = outline_thread(turns((100, 300, 300, 900), open_last=True), open_turn="t0")

    assert steps(selected(thread, budget(1300, 500)).kept) == ["t0", "t0.2", "t0.2r"]


def test_there_may_be_nothing_to_summarise() -> None:
    assert select(outline_thread(turns(*[(10, 10)] * 3)), budget()) is None
    assert select(outline_thread(turns((10, 10), open_last=True), open_turn="t0"), budget()) is None
    assert select(outline_thread([]), budget()) is None


def test_a_summary_that_has_grown_too_long_makes_room_all_the_same() -> None:
    thread = outline_thread(turns(*[(100, 300)] * 3), summary_tokens=900)

    assert selected(thread, budget(2000, 1200)).turn == "t1"


def test_what_is_pinned_stays_with_all_that_belongs_to_it() -> None:
    messages = turns((10, 50, 40), *[(50, 150)] * 9)

    found = selected(outline_thread(messages, pinned={"t0.0r", "t3"}), budget(2400, 1000))

    assert steps(found.pinned) == ["t0.0", "t0.0r", "t3"]
    assert not set(steps(found.pinned)) & set(steps(found.covered))
    assert found.kept_tokens + 200 <= 1000
    assert found.turn == "t7"


def test_what_was_pinned_before_is_carried_on_until_nobody_wants_it_any_more() -> None:
    carried = turns((10, 50, 40))[1:3]
    later = [each._replace(step=f"x{each.step}", turn=f"x{each.turn}") for each in turns(*[(50, 150)] * 9)]

    still = selected(outline_thread(later, carried=carried, pinned={"t0.0"}), budget())
    no_more = selected(outline_thread(later, carried=carried), budget())

    assert (steps(still.pinned), steps(still.covered)[0]) == (["t0.0", "t0.0r"], "xt0")
    assert (no_more.pinned, steps(no_more.covered)[:2]) == ((), ["t0.0", "t0.0r"])


def test_a_turn_that_was_summarised_in_part_is_kept_from_where_it_was_kept_before() -> None:
    messages = [each for each in turns((100, 10, 10, 10, 10), *[(5, 5)] * 2) if each.step not in ("t0.0", "t0.0r")]

    thread = outline_thread(messages, first_kept="t0.1", carried=_renamed(turns((500, 500)), "u"))

    assert [turn.first for turn in thread.turns] == ["t0.1", "t1", "t2"]
    found = selected(thread, budget(700, 500))
    assert (found.plan.first_kept, found.turn, steps(found.kept)[0]) == ("t0.1", "t0", "t0")


def _renamed(messages: list[ThreadMessage], prefix: str) -> list[ThreadMessage]:
    return [each._replace(step=prefix + each.step, turn=prefix + each.turn) for each in messages]


def test_what_must_stay_is_looked_at_first_and_listed_where_it_does_not_fit() -> None:
    thread = outline_thread(
        turns((10, 900), (400, 300, 700), open_last=True), open_turn="t1", pinned={"t0.0"}, summary_tokens=50
    )

    with pytest.raises(BudgetError) as raised:
        select(thread, budget(2000, 1200, system=500, tools=300))

    assert raised.value.parts == {
        "pinned": 900,
        "newest group": 700,
        "system": 500,
        "event": 400,
        "tools": 300,
        "summary": 200,
    }
    assert raised.value.needed == 3000


def test_the_summary_gets_what_is_left_where_that_is_less_than_it_may_take() -> None:
    thread = outline_thread(turns((10, 900), (400, 1000), open_last=True), open_turn="t1")

    assert selected(thread, budget(2000, 1200, summary=900, system=200)).summary_limit == 400


# ---- plans of plugins ----------------------------------------------------------------------------------------------


class Planner:
    def __init__(self, plan: CompactionPlan | None) -> None:
        self.plan = plan
        self.asked: list[ThreadOutline] = []

    @hookimpl
    def nexus_compaction_plan(self, thread: ThreadOutline) -> CompactionPlan | None:
        self.asked.append(thread)
        return self.plan


LONG = outline_thread(turns(*[(50, 150)] * 6, (50, 100, 100), open_last=True), open_turn="t6")


def planned(plan: CompactionPlan | None, given: CompactionBudget | None = None) -> CompactionSelection:
    with Nexus(layers=False, plugins=[Planner(plan)]) as nexus:
        return selected(LONG, given or budget(1600, 900), nexus.host)


def test_a_plugin_says_where_the_part_begins_that_stays() -> None:
    found = planned(CompactionPlan(first_kept="t2", summary_tokens=50))

    assert (found.turn, found.planner, found.summary_limit) == ("t2", "Planner", 50)
    assert planned(CompactionPlan(first_kept="t6.1")).turn == "t6"


def test_where_a_plugin_has_no_answer_the_bundled_one_does() -> None:
    assert planned(None).planner == "compaction"


def test_where_nobody_answers_nothing_is_summarised() -> None:
    assert select(LONG, budget(1600, 900), NOBODY) is None


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("t2.0", "begins no turn"),
        ("t6.1r", "begins no turn"),
        ("nowhere", "begins no turn"),
        (None, "keeps nothing of the open turn"),
        ("t0", "summarizes nothing"),
    ],
)
def test_a_plan_that_would_tear_things_apart_is_refused(first: str | None, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        planned(CompactionPlan(first_kept=first))


def test_a_plan_that_keeps_more_than_fits_is_refused() -> None:
    with pytest.raises(PluginError, match="keeps more than fits"):
        planned(CompactionPlan(first_kept="t1"), budget(1300, 900))


def test_a_plan_that_is_none_costs_the_plugin_its_answer() -> None:
    with Nexus(layers=False, plugins=[Planner("t2")], report=lambda _: None) as nexus:  # type: ignore[arg-type]
        assert selected(LONG, budget(1600, 900), nexus.host).planner == "compaction"


# ---- a summary that has become too long ----------------------------------------------------------------------------


OUTGROWN = outline_thread(turns((50, 100), open_last=True), open_turn="t0", summary_tokens=1500)


@pytest.mark.parametrize("host", [BUNDLED, NOBODY], ids=["bundled", "nobody"])
def test_a_summary_that_does_not_fit_is_made_shorter_by_itself(host: Host) -> None:
    found = selected(OUTGROWN, budget(1000, 600, summary=300, system=100), host)

    assert (found.plan.first_kept, found.planner, found.is_outgrown) == ("t0", "nexus", True)
    assert (found.covered, steps(found.kept)) == ((), ["t0", "t0.0", "t0.0r"])
    assert found.summary_limit == 300


def test_where_nothing_was_said_since_nothing_stays_beside_it() -> None:
    found = selected(outline_thread([], summary_tokens=1500), budget(1000, 600))

    assert (found.plan.first_kept, found.covered, found.kept) == (None, (), ())


def test_a_plan_may_leave_everything_but_the_summary() -> None:
    with Nexus(layers=False, plugins=[Planner(CompactionPlan(first_kept="t0"))]) as nexus:
        found = selected(OUTGROWN, budget(1000, 600), nexus.host)

    assert (found.planner, found.covered) == ("Planner", ())


def test_what_is_summarised_anyhow_takes_the_long_summary_with_it() -> None:
    thread = outline_thread(turns((50, 150), (50, 100), open_last=True), open_turn="t1", summary_tokens=1500)

    found = selected(thread, budget(1000, 600))

    assert (steps(found.covered), found.is_outgrown) == (["t0", "t0.0"], True)


def test_where_not_all_fits_beside_it_somebody_has_to_say_what_goes() -> None:
    thread = outline_thread(turns(*[(50, 150)] * 6), summary_tokens=1500)

    assert select(thread, budget(1000, 600), NOBODY) is None
    assert selected(thread, budget(1000, 600)).covered


def test_a_summary_that_fits_beside_what_must_stay_is_left_alone() -> None:
    thread = outline_thread(turns((50, 100), open_last=True), open_turn="t0", summary_tokens=800)

    assert select(thread, budget(1000, 600), NOBODY) is None


# ---- whatever the thread is like -----------------------------------------------------------------------------------


def check(thread: tuple[list[ThreadMessage], str], given: CompactionBudget, pinned: frozenset[str]) -> None:
    """No call without its results, nothing twice, nothing lost, and what is returned fits."""
    messages, open_turn = thread
    outline = outline_thread(messages, open_turn=open_turn, pinned=pinned)
    try:
        found = select(outline, given)
    except BudgetError:
        return
    if found is None:
        return
    parts = [
        [each for group in groups for each in group.messages] for groups in (found.covered, found.pinned, found.kept)
    ]
    assert sorted(each.position for part in parts for each in part) == [each.position for each in messages]
    assert found.covered
    for part in (parts[0], [*parts[1], *parts[2]]):
        called = [call.id for each in part for call in each.message.tool_calls]
        brought = [result.call_id for each in part for result in each.message.tool_results]
        assert sorted(called) == sorted(brought)
        for name in brought:
            assert called.index(name) >= 0
    assert {each.step for each in parts[0]}.isdisjoint({each.step for part in parts[1:] for each in part})
    assert sum(given.fixed.values()) + found.kept_tokens + given.least_summary <= given.available
    assert not pinned & {each.step for each in parts[0]}
    if open_turn:
        event = next(each for each in messages if each.turn == open_turn)
        assert event in parts[2]
        assert messages[-1] in parts[2]


BUDGETS = st.builds(
    lambda available, ratio, keep, fixed: budget(
        available, int(available * ratio), keep=keep, summary=available // 4, system=fixed
    ),
    st.integers(200, 2500),
    st.sampled_from([0.0, 0.4, 0.6, 1.0]),
    st.integers(1, 4),
    st.integers(0, 100),
)
PINS = st.frozensets(st.sampled_from(["t0", "t0.0", "t1.1", "t2.end", "t3.0.1"]), max_size=2)


@pytest.mark.acceptance("Q-08")
@given(threads, BUDGETS, PINS)
@settings(max_examples=examples(100), deadline=None)
def test_no_tool_pair_is_ever_split(
    thread: tuple[list[ThreadMessage], str], given: CompactionBudget, pinned: frozenset[str]
) -> None:
    check(thread, given, pinned)


@pytest.mark.slow
@pytest.mark.acceptance("Q-08")
@given(threads, BUDGETS, PINS)
@settings(max_examples=10_000, deadline=None)
def test_no_tool_pair_is_ever_split_in_ten_thousand_threads(
    thread: tuple[list[ThreadMessage], str], given: CompactionBudget, pinned: frozenset[str]
) -> None:
    check(thread, given, pinned)


@given(threads, BUDGETS)
@settings(max_examples=examples(100), deadline=None)
def test_a_second_compaction_plans_from_where_the_first_one_kept(
    thread: tuple[list[ThreadMessage], str], given: CompactionBudget
) -> None:
    messages, open_turn = thread
    try:
        found = select(outline_thread(messages, open_turn=open_turn), given)
    except BudgetError:
        return
    if found is None:
        return
    kept = [each for group in found.kept for each in group.messages]
    later = [*kept, *_renamed(turns(*[(20, 40)] * 6), "u")]

    again = select(
        outline_thread(later, first_kept=found.plan.first_kept, summary_tokens=found.summary_limit), budget(300, 200)
    )

    if again is not None and again.plan.first_kept is not None:
        # Whatever is kept from a step on must not bring back what the first compaction has summarized.
        gone = {step for group in found.covered for step in group.steps}
        order = [each.step for each in (*(m for m in messages), *later)]
        assert gone.isdisjoint(order[max(at for at, step in enumerate(order) if step == again.plan.first_kept) :])
