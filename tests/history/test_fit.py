"""Messages that fit a model's window, in a dialect that is known or detected."""

from __future__ import annotations

import inspect
import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core import (
    BudgetError,
    MessageError,
    Nexus,
    UnknownNameError,
    UsageError,
    check_messages,
    fit_messages,
    hookimpl,
)
from nexus_core.dialects.registry import get_dialect
from nexus_core.history.fit import MAX_DETECTION_MESSAGES, FitOptions
from nexus_core.history.groups import group_messages
from nexus_core.plugin import TruncationStrategy
from nexus_core.testing import write_files
from nexus_core.types.budget import Decision, TokenBudget, TokenCalibration
from nexus_core.types.messages import Message
from tests.history.counters import Characters


def say(*texts: str) -> list[dict[str, Any]]:
    """User and assistant in turns."""
    return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)]


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(each: str, text: str = "README.md") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": each, "content": text}


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


@pytest.mark.acceptance("T-01")
def test_what_fits_comes_back_as_the_same_objects() -> None:
    messages = say("one", "two", "three")

    fitted = fit_messages(messages, budget=1000, counter=Characters())

    assert [id(message) for message in fitted.messages] == [id(message) for message in messages]
    assert fitted.decisions == ()
    assert fitted.findings == ()


@pytest.mark.acceptance("T-05")
def test_the_oldest_are_left_out_with_a_reason() -> None:
    messages = say("aaaa", "bbbb", "cccc", "dddd")

    fitted = fit_messages(messages, budget=12, counter=Characters())

    assert contents(fitted.messages) == ["cccc", "dddd"]
    assert fitted.decisions == (Decision(action="dropped", rule="oldest_first", first=0, last=1, tokens_before=None),)
    assert fitted.budget.used == {"system": 0, "tools": 0, "history": 10}


@pytest.mark.acceptance("T-07")
def test_middle_out_keeps_the_first_and_the_newest() -> None:
    fitted = fit_messages(say("task", "bbbb", "cccc", "dddd"), budget=12, strategy="middle_out", counter=Characters())

    assert contents(fitted.messages) == ["task", "dddd"]
    assert [(each.first, each.last) for each in fitted.decisions] == [(1, 2)]


@pytest.mark.acceptance("T-04", "T-09")
def test_a_call_is_left_out_with_its_results() -> None:
    messages = [*say("look"), call("a", "b"), result("a"), result("b"), *say("and now")]

    fitted = fit_messages(messages, budget=20, counter=Characters())

    assert contents(fitted.messages) == ["and now"]


def test_instructions_at_the_beginning_always_stay() -> None:
    messages = [{"role": "system", "content": "be kind"}, *say("aaaa", "bbbb", "cccc")]

    fitted = fit_messages(messages, budget=14, counter=Characters())

    assert contents(fitted.messages) == ["be kind", "cccc"]
    assert fitted.budget.used == {"system": 8, "tools": 0, "history": 5}


def test_the_question_of_an_unfinished_tool_loop_always_stays() -> None:
    loop = [each for number in range(10) for each in (call(f"c{number}"), result(f"c{number}", "x" * 20))]
    messages = [*say("hello", "hi"), {"role": "user", "content": "Why does login fail?"}, *loop]

    fitted = fit_messages(messages, budget=80, counter=Characters())

    assert contents(fitted.messages)[0] == "Why does login fail?"
    assert fitted.messages[1:] == messages[-4:]
    assert [(each.first, each.last) for each in fitted.decisions] == [(0, 1), (3, 18)]


def test_thoughts_and_words_before_a_call_are_no_answer() -> None:
    loop = [
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x" * 20},
        {"type": "message", "role": "assistant", "content": "One moment."},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x" * 20},
    ]
    question = {"role": "user", "content": "Why does login fail?"}

    fitted = fit_messages(
        [*say("hello", "hi"), question, *loop * 10], budget=200, counter=Characters(), api="responses"
    )

    assert fitted.messages[0] is question
    assert 4 < len(fitted.messages) < 20


def test_an_answered_question_may_go() -> None:
    messages = [*say("Why?"), call("a"), result("a"), {"role": "assistant", "content": "Because."}]

    assert contents(fit_messages(messages, budget=12, counter=Characters()).messages) == ["Because."]


@pytest.mark.acceptance("B-02", "B-03", "C-28")
@pytest.mark.parametrize("strategy", ["oldest_first", "middle_out"])
def test_what_must_stay_and_does_not_fit_is_an_error_that_says_what_it_is(strategy: str) -> None:
    messages = [{"role": "system", "content": "be kind"}, *say("a", "b", "c" * 300)]

    with pytest.raises(BudgetError, match="309 tokens do not fit into 100") as caught:
        fit_messages(messages, budget=100, strategy=strategy, counter=Characters())

    assert caught.value.parts == {"history": 301, "system": 8}


@pytest.mark.acceptance("B-01")
def test_an_open_tool_batch_is_never_given_up_or_closed() -> None:
    messages = [*say("x" * 2000), call("a"), result("a", "y" * 2000)]

    with pytest.raises(BudgetError):
        fit_messages(messages, budget=300, counter=Characters())
    assert fit_messages(messages, budget=5000, counter=Characters()).messages == messages


def test_calls_that_wait_at_the_end_are_left_waiting() -> None:
    messages = [*say("look"), call("a", "b"), result("a")]

    fitted = fit_messages(messages, budget=1000, counter=Characters())

    assert fitted.messages == messages
    assert fitted.findings == ()


def test_tools_and_instructions_beside_the_messages_take_room() -> None:
    fitted = fit_messages(
        say("aaaa", "bbbb"), budget=70, tools=[{"name": "ls"}], system="be kind", counter=Characters()
    )

    definition = '{"name":"ls","description":"","parameters":{}}'
    assert fitted.budget.used == {"system": 8, "tools": len(definition) + 4, "history": 10}


@pytest.mark.parametrize(
    "system",
    [
        [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
        [{"text": "be kind"}],
        {"parts": [{"text": "be kind"}]},
        {"role": "system", "content": "be kind"},
        ["be kind"],
        Message("system", "be kind"),
    ],
    ids=["anthropic", "block", "gemini", "chat", "texts", "message"],
)
def test_instructions_in_blocks_take_as_much_as_their_words(system: object) -> None:
    fitted = fit_messages(say("aaaa"), budget=70, system=system, counter=Characters())

    assert fitted.budget.used["system"] == len("be kind") + 1


def test_a_mark_on_instructions_takes_bytes_but_no_tokens() -> None:
    plain, marked = (
        fit_messages(
            say("aaaa"), budget=70, system=[{"type": "text", "text": "be kind", **mark}], counter=Characters()
        ).budget
        for mark in ({}, {"cache_control": {"type": "ephemeral"}})
    )

    assert marked.used == plain.used
    assert marked.bytes > plain.bytes


@pytest.mark.parametrize("system", [3, [3], [["be kind"]]])
def test_instructions_that_are_no_text_and_no_blocks_are_refused(system: object) -> None:
    with pytest.raises(UsageError, match="expected instructions as text or blocks"):
        fit_messages(say("aaaa"), system=system)


def test_a_result_without_its_call_is_left_out_and_named_by_its_place() -> None:
    messages = [*say("one", "two", "three", "four"), result("nobody"), *say("five")]

    fitted = fit_messages(messages, budget=1000, counter=Characters())

    assert contents(fitted.messages) == ["one", "two", "three", "four", "five"]
    assert [(finding.code, finding.index) for finding in fitted.findings] == [("orphan-result", 4)]
    assert fitted.decisions[-1] == Decision(action="repaired", rule="orphan-result", first=4, last=4)


def test_a_missing_result_is_made_up_in_the_shape_of_the_list() -> None:
    messages = [*say("look"), call("a", "b"), result("a"), *say("and now")]

    fitted = fit_messages(messages, budget=1000, counter=Characters())

    assert [message["role"] for message in fitted.messages] == ["user", "assistant", "tool", "tool", "user"]
    assert fitted.messages[3]["tool_call_id"] == "b"
    assert fitted.messages[1] is messages[1]


@pytest.mark.parametrize("api", ["openai", "anthropic", "gemini", "responses"])
def test_a_user_message_is_put_in_front_of_a_reply_that_would_be_first(api: str) -> None:
    messages = [Message("user" if index % 2 == 0 else "assistant", f"{index:040}") for index in range(9)]

    fitted = fit_messages(get_dialect(api).write(messages), budget=200, counter=Characters(), api=api)

    kept = [get_dialect(api).read(each) for each in fitted.messages]
    assert [message.content for message in kept] == ["[Earlier messages omitted]", *(f"{n:040}" for n in (5, 6, 7, 8))]
    assert [(each.action, each.rule, each.first) for each in fitted.decisions] == [
        ("dropped", "oldest_first", 0),
        ("added", "omission-notice", 5),
    ]
    assert fitted.budget.total <= 200


@pytest.mark.parametrize("budget", [260, 400, 540])
def test_a_user_message_that_takes_no_more_room_is_kept_instead_of_the_notice(budget: int) -> None:
    thought = {"role": "assistant", "content": None, "refusal": "y" * 600}  # nothing in it can be shortened
    messages = [*say("x" * 600), thought, *say("why?"), call("a"), result("a", "z" * 600), *say("and now")]

    fitted = fit_messages(messages, budget=budget, counter=Characters())

    assert contents(fitted.messages)[0] == "why?"
    assert fitted.budget.total <= budget


def test_without_a_notice_messages_are_left_out_up_to_the_next_of_the_user() -> None:
    messages = say("aaaa", "bbbb", "cccc", "dddd", "eeee")

    fitted = fit_messages(messages, budget=22, counter=Characters(), api="anthropic", omission_notice=False)

    assert contents(fitted.messages) == ["cccc", "dddd", "eeee"]


def test_a_reply_may_be_first_if_the_caller_allows_it() -> None:
    messages = say("aaaa", "bbbb", "cccc", "dddd", "eeee")

    fitted = fit_messages(messages, budget=22, counter=Characters(), api="openai", start_with_user=False)

    assert contents(fitted.messages)[0] == "bbbb"


def test_no_notice_is_added_if_it_alone_would_not_fit() -> None:
    fitted = fit_messages(say("aaaa", "bbbb"), budget=8, counter=Characters(), api="openai")

    assert contents(fitted.messages) == ["bbbb"]


def test_long_results_are_shortened_so_that_nothing_is_left_out() -> None:
    messages = [*say("look"), call("a"), result("a", "start" + "x" * 2000 + "end"), *say("thanks", "welcome", "bye")]

    fitted = fit_messages(messages, budget=400, counter=Characters())

    assert [(each.action, each.first) for each in fitted.decisions] == [("shortened", 2)]
    assert 380 < fitted.budget.total <= 400
    assert fitted.messages[2]["content"].startswith("start")
    assert fitted.messages[2]["content"].endswith("end")


def test_the_newest_result_is_not_shortened_for_the_sake_of_older_messages() -> None:
    messages = [*say("x" * 300, "y" * 300, "look"), call("a"), result("a", "z" * 300)]

    fitted = fit_messages(messages, budget=400, counter=Characters())

    assert fitted.messages[-1] is messages[-1]


def test_the_group_before_the_kept_ones_is_shortened_to_the_room_that_is_left() -> None:
    messages = [*say("old" * 30, "older" * 30), *say("start" + "x" * 2000 + "end", "thanks", "welcome")]

    fitted = fit_messages(messages, budget=400, counter=Characters())

    assert [(each.action, each.first, each.last) for each in fitted.decisions] == [
        ("dropped", 0, 1),
        ("shortened", 2, 2),
    ]
    assert 360 < fitted.budget.total <= 400


def test_the_group_before_the_kept_ones_is_kept_with_shortened_arguments() -> None:
    written = {"path": "a.py", "content": f"start {'more ' * 2000}end", "lines": [{"text": "other " * 2000}]}
    function = {"name": "write", "arguments": json.dumps(written)}
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    messages = [*say("old " * 2000, "older " * 2000, "write it"), asked, result("a", "done"), *say("thanks", "bye")]

    fitted = fit_messages(messages, budget=600, model="gpt-4o")

    called = next(each for each in fitted.messages if "tool_calls" in each)
    kept = json.loads(called["tool_calls"][0]["function"]["arguments"])
    assert kept["path"] == "a.py"
    assert kept["content"].startswith("start")
    assert kept["content"].endswith("end")
    assert "characters left out" in kept["content"]
    assert "characters left out" in kept["lines"][0]["text"]
    assert 540 < fitted.budget.total <= 600
    assert json.loads(function["arguments"]) == written


def test_arguments_that_a_provider_signed_are_not_shortened() -> None:
    part = {"functionCall": {"name": "write", "args": {"content": "more " * 2000}}, "thoughtSignature": "c2ln" * 32}
    answered = {"functionResponse": {"name": "write", "response": {"output": "done"}}}
    messages = [
        {"role": "user", "parts": [{"text": "write"}]},
        {"role": "model", "parts": [part]},
        {"role": "user", "parts": [answered]},
        {"role": "model", "parts": [{"text": "It is written."}]},
    ]

    fitted = fit_messages(messages, budget=600, model="gemini-2.5-pro", api="gemini")

    actions = {each.action for each in fitted.decisions}
    assert "dropped" in actions
    assert "shortened" not in actions


@pytest.mark.acceptance("B-19")
def test_history_can_be_made_to_start_with_the_user() -> None:
    fitted = fit_messages(say("aaaa", "bbbb", "cccc"), budget=12, counter=Characters(), omission_notice=False)

    assert contents(fitted.messages) == ["cccc"]


def test_long_results_are_shortened_before_anything_is_left_out() -> None:
    messages = [*say("look"), call("a"), result("a", "x" * 500 + "end"), *say("and now")]

    fitted = fit_messages(messages, budget=150, counter=Characters(), result_tokens=100)

    assert [message["role"] for message in fitted.messages] == ["user", "assistant", "tool", "user"]
    assert fitted.messages[2]["content"].endswith("end")
    assert "characters left out" in fitted.messages[2]["content"]
    assert messages[2]["content"] == "x" * 500 + "end"
    shortened = fitted.decisions[0]
    assert (shortened.action, shortened.first, shortened.tokens_before) == ("shortened", 2, 504)
    assert shortened.tokens_after <= 101


def test_nothing_is_shortened_where_all_fits() -> None:
    messages = [*say("look"), call("a"), result("a", "x" * 500)]

    assert fit_messages(messages, budget=1000, counter=Characters(), result_tokens=100).messages == messages


def test_without_a_budget_a_quarter_of_a_small_window_is_left_for_the_answer() -> None:
    budget = fit_messages(say("hello"), model="gpt-4").budget

    assert (budget.limit, budget.reserve_response) == (8192, 2048)


def test_without_a_budget_a_large_window_leaves_8000_tokens_for_the_answer() -> None:
    budget = fit_messages(say("hello"), model="gpt-4o-2024-08-06").budget

    assert (budget.limit, budget.available, budget.estimated) == (128_000, 120_000, False)


def test_a_budget_may_keep_room_free() -> None:
    budget = TokenBudget(limit=20, reserve_response=8)

    fitted = fit_messages(say("aaaa", "bbbb", "cccc"), budget=budget, counter=Characters(), start_with_user=False)

    assert contents(fitted.messages) == ["bbbb", "cccc"]


def test_no_messages_fit_anywhere() -> None:
    fitted = fit_messages(say(), budget=0, counter=Characters())

    assert fitted.messages == []
    assert fitted.budget.total == 0


@pytest.mark.acceptance("B-20")
def test_an_unknown_strategy_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'middle_out'"):
        fit_messages(say("hello"), budget=100, strategy="middle-out")


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be negative: -1"):
        fit_messages(say("hello"), budget=-1)


@pytest.mark.parametrize("budget", ["8000", 8e3, True])
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget: Any) -> None:
    with pytest.raises(UsageError, match="a budget is a number of tokens or a TokenBudget, not "):
        fit_messages(say("hello"), budget=budget)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"messages": []},
            "not an object\n  at messages\n  pass the value of its field `messages`, `input` or `contents`",
        ),
        ((message for message in say("hello")), "not a generator\n  at messages\n  make it a list: list(messages)"),
        (deque(say("hello")), "not a deque\n  at messages\n  make it a list: list(messages)"),
        ("hello", "not the text 'hello'\n  at messages"),
        (None, "not null\n  at messages"),
    ],
    ids=["a request", "a generator", "a deque", "a text", "nothing"],
)
def test_what_is_no_list_is_named_with_what_to_give_instead(given: Any, said: str) -> None:
    with pytest.raises(MessageError) as caught:
        fit_messages(given, budget=100)

    assert str(caught.value) == f"expected a list of messages, {said}"


def test_no_tools_may_be_none_and_one_tool_alone_is_refused() -> None:
    assert fit_messages(say("hello"), tools=None, budget=100, counter=Characters()).budget.used["tools"] == 0
    with pytest.raises(UsageError, match="expected a list of tool definitions"):
        fit_messages(say("hello"), tools={"name": "ls"}, budget=100, counter=Characters())


@pytest.mark.parametrize("model", [None, 5])
def test_a_model_that_is_no_text_is_refused(model: Any) -> None:
    with pytest.raises(UsageError, match=f"a model is given by its name, not {model}"):
        fit_messages(say("hello"), model=model)


@pytest.mark.parametrize("counter", [5, 0, "gpt-4o", Characters])
def test_a_counter_that_cannot_count_is_refused(counter: Any) -> None:
    with pytest.raises(UsageError, match="a counter is an object with count"):
        fit_messages(say("hello"), budget=100, counter=counter)


@pytest.mark.parametrize("tokens", [-5, float("nan")])
def test_a_counter_that_counts_nonsense_is_refused(tokens: Any) -> None:
    class Nonsense(Characters):
        def count_messages(self, messages: Any) -> Any:  # noqa: ARG002 - whatever it is asked
            return tokens

    with pytest.raises(UsageError, match=f"the counter returned {tokens} tokens for a message"):
        fit_messages(say("hello"), budget=100, counter=Nonsense())


def test_anthropic_messages_come_back_as_they_were() -> None:
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "README.md"}]},
    ]

    fitted = fit_messages(messages, model="claude-sonnet-4")

    assert all(map(lambda mine, theirs: mine is theirs, fitted.messages, messages))
    assert fitted.budget.limit == 200_000
    assert fitted.budget.estimated


def test_an_unfinished_pair_at_the_cut_is_never_split() -> None:
    messages = [call("a"), result("a", "x" * 30), *say("b")]

    for budget in range(2, 60):
        roles = [message["role"] for message in fit_messages(messages, budget=budget, counter=Characters()).messages]
        assert roles in (["user"], ["assistant", "tool", "user"])


class Newest:
    @hookimpl
    def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
        return [TruncationStrategy("newest_only", lambda _groups, _budget: [slice(-1, None)])]


def test_a_plugin_can_offer_another_way_to_choose() -> None:
    with Nexus(layers=False, plugins=[Newest()]) as nexus:
        fitted = fit_messages(say("a", "b"), budget=100, strategy="newest_only", counter=Characters(), host=nexus.host)
        unlimited = fit_messages(say("a", "b"), budget=3, strategy="newest_only", counter=Characters(), host=nexus.host)

    assert contents(fitted.messages) == ["a", "b"]
    assert contents(unlimited.messages) == ["b"]


def test_a_strategy_that_wants_fewer_groups_is_not_given_a_shortened_one() -> None:
    messages = say("x" * 2000, "I see.", "thanks")

    with Nexus(layers=False, plugins=[Newest()]) as nexus:
        fitted = fit_messages(messages, budget=400, strategy="newest_only", counter=Characters(), host=nexus.host)

    assert contents(fitted.messages) == ["thanks"]


def test_a_nexus_takes_whatever_fit_takes_but_whom_to_ask() -> None:
    taken = inspect.signature(fit_messages).parameters.keys()

    assert FitOptions.__annotations__.keys() == taken - {"messages", "model", "host", "settings"}


def test_a_nexus_fits_with_the_settings_of_its_directory(nexus_home: Path, tmp_path: Path) -> None:
    settings = {
        "provider": {"model": "acme-1"},
        "models": {"acme*": {"window": 5000}},
        "budget": {"reserve_response": 1000},
        "truncation": {"strategy": "middle_out"},
    }
    write_files(tmp_path / "work", {".nexus3/config.json": json.dumps(settings)})

    with Nexus(tmp_path / "work", home=nexus_home) as nexus:
        fitted = nexus.fit(say("first", *["word " * 200] * 40, "last"))

    assert (fitted.budget.limit, fitted.budget.available) == (5000, 4000)
    assert fitted.decisions[0].rule == "middle_out"
    assert contents(fitted.messages)[0] == "first"


def test_what_is_given_goes_before_the_settings(nexus_home: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {".nexus3/config.json": '{"provider": {"model": "gpt-4"}}'})

    with Nexus(tmp_path / "work", home=nexus_home) as nexus:
        assert nexus.fit(say("hello")).budget.limit == 8192
        assert nexus.fit(say("hello"), model="gpt-4o").budget.limit == 128_000
        assert nexus.fit(say("hello"), budget=100).budget.limit == 100


@pytest.mark.parametrize(("model", "code"), [("gpt-4oo", "guessed-model"), ("gtp-9", "unknown-model")])
def test_a_model_that_is_not_in_the_table_is_told(model: str, code: str) -> None:
    fitted = fit_messages(say("hi", "ho"), model=model)

    assert [finding.code for finding in fitted.findings] == [code]
    assert fitted.budget.estimated
    assert fit_messages(say("hi", "ho"), model="gpt-4o").findings == ()


def test_fit_reports_a_tool_that_the_api_refuses() -> None:
    tool = {"type": "function", "function": {"name": "list files"}}

    fitted = fit_messages(say("Hi"), tools=[tool], model="gpt-4o")

    assert [finding.code for finding in fitted.findings] == ["invalid-tool"]


def test_fit_reports_an_empty_list_and_makes_nothing_up() -> None:
    messages: list[dict[str, Any]] = []

    fitted = fit_messages(messages, model="gpt-4o")

    assert (fitted.messages, fitted.decisions) == ([], ())
    assert [finding.code for finding in fitted.findings] == ["empty-list"]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ({"role": "assistant", "content": "Yes.", "tool_calls": []}, "empty-field"),
        ({"role": "user", "content": "Yes.", "name": "John Doe"}, "invalid-speaker-name"),
    ],
)
def test_fit_repairs_fields_that_the_api_refuses_also_when_it_saw_the_message_before(
    broken: dict[str, Any], code: str
) -> None:
    messages = [*say("Hi"), broken]

    first, again = fit_messages(messages, model="gpt-4o"), fit_messages(messages, model="gpt-4o")

    assert [finding.code for finding in first.findings] == [finding.code for finding in again.findings] == [code]
    assert first.messages == again.messages != messages
    assert first.messages[0] is messages[0]


def called_by(work: Callable[[], object]) -> set[str]:
    """The names of the functions that are called."""
    called: set[str] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


def test_fit_does_not_repair_again_what_it_found_sound() -> None:
    rules = {"role": "system", "content": "Be brief."}  # a quick look is not sure about instructions
    messages = [rules, *say("Why?"), call("a", "b"), result("a"), result("b"), *say("So.", "I see.")]

    assert "apply_repair_rules" in called_by(lambda: fit_messages(messages, model="gpt-4o"))
    assert "apply_repair_rules" not in called_by(lambda: fit_messages(messages, model="gpt-4o"))


def test_results_in_the_order_of_their_calls_are_matched_without_queues() -> None:
    messages = [*say("Why?"), call("a", "b"), result("a"), result("b")]
    swapped = [*say("Why?"), call("a", "b"), result("b"), result("a")]

    assert "take" in called_by(lambda: group_messages([get_dialect("openai").read(message) for message in swapped]))
    assert "take" not in called_by(
        lambda: group_messages([get_dialect("openai").read(message) for message in messages])
    )


def test_fit_shortens_results_also_of_messages_that_it_found_sound_before() -> None:
    messages = [*say("Why?"), call("a"), result("a", "word " * 2000), *say("So?")]
    assert fit_messages(messages, model="gpt-4o").messages == messages

    fitted = fit_messages(messages, model="gpt-4o", budget=500, result_tokens=50)

    assert len(fitted.messages[2]["content"]) < 1000
    assert [decision.action for decision in fitted.decisions] == ["shortened"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda messages: messages[2].update(content="nul\0"), "nul-character"),
        (lambda messages: messages[1]["tool_calls"][0]["function"].update(arguments="{broken"), "malformed-arguments"),
        (lambda messages: messages[1]["tool_calls"][0].update(id="other"), "orphan-result"),
        (lambda messages: messages.__delitem__(2), "missing-result"),
        (lambda messages: messages.insert(3, dict(messages[2])), "duplicate-result"),
    ],
)
def test_a_list_that_is_changed_in_place_is_looked_at_again(
    change: Callable[[list[dict[str, Any]]], object], code: str
) -> None:
    messages = [*say("why?"), call("a"), result("a"), *say("and?", "so", "thanks")]
    counter = Characters()
    before = [fit_messages(messages, budget=1000, counter=counter).findings for _ in range(2)]
    change(messages)
    after = fit_messages(messages, budget=1000, counter=counter)

    assert before == [(), ()]
    assert code in {finding.code for finding in after.findings}
    assert after == fit_messages(json.loads(json.dumps(messages)), budget=1000, counter=Characters())


def test_a_loop_repairs_no_list_in_which_nothing_is_wrong() -> None:
    messages: list[dict[str, Any]] = []
    for number in range(10):
        messages.extend([*say(f"why {number}?"), call(f"a{number}"), result(f"a{number}")])
        assert "apply_repair_rules" not in called_by(lambda: fit_messages(messages, budget=100, counter=Characters()))
        messages.append({"role": "assistant", "content": "so"})


Body = dict[str, Any]
ANYBODYS: list[Body] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "on"},
] * MAX_DETECTION_MESSAGES


def anthropic() -> list[Body]:
    call = {"type": "tool_use", "id": "a", "name": "ls", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    return [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": "So."},
    ]


def responses() -> list[Body]:
    return [
        {"role": "user", "content": "Why?"},
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "assistant", "content": "So."},
    ]


@pytest.mark.acceptance("T-09")
@pytest.mark.parametrize(("api", "beginning"), [("anthropic", anthropic()), ("responses", responses())])
def test_the_dialect_is_told_by_whatever_is_read(api: str, beginning: list[Body]) -> None:
    messages = [*beginning, *ANYBODYS]
    newest = 3 * len(ANYBODYS)

    for budget in range(newest - 3, newest + 30):
        assert check_messages(fit_messages(messages, budget=budget, counter=Characters()).messages) == ()
    whole = newest + 30
    untold, told = fit_messages(messages, budget=whole), fit_messages(messages, budget=whole, api=api)
    assert (untold.messages, untold.decisions, untold.findings) == (told.messages, told.decisions, told.findings)


def test_what_is_left_out_tells_nothing_and_is_not_read() -> None:
    messages: list[Any] = [ANYBODYS[0], "no message", *ANYBODYS]

    assert len(fit_messages(messages, budget=30, counter=Characters()).messages) == 10


def test_what_is_no_message_is_named_by_its_place_in_the_whole_list() -> None:
    place = len(ANYBODYS) + 1

    with pytest.raises(MessageError, match=rf"messages\[{place}\]"):
        fit_messages([*ANYBODYS, ANYBODYS[0], 3, ANYBODYS[1]], budget=30, counter=Characters())


# ---- counts that are estimates --------------------------------------------------------------------------------------


def test_the_window_of_a_model_without_a_public_tokenizer_is_not_filled_to_the_brim() -> None:
    messages = say(*(f"{number}: " + "word " * 2000 for number in range(200)))

    claude, gpt = (fit_messages(messages, model=model).budget for model in ("claude-sonnet-4", "gpt-4o"))

    assert claude.high <= claude.available < claude.high * 1.02
    assert claude.total < claude.available / 1.09
    assert (gpt.calibration, gpt.high) == (None, gpt.total)


def test_a_budget_in_numbers_is_used_up_by_our_count() -> None:
    messages = say(*(f"{number}: " + "word " * 100 for number in range(200)))
    budget = fit_messages(messages, model="claude-sonnet-4", budget=8000).budget

    assert 7800 < budget.total <= 8000


def test_a_budget_with_a_calibration_is_used_up_by_the_providers_count() -> None:
    messages = say(*(f"{number}: " + "word " * 100 for number in range(200)))
    given = TokenBudget(limit=8000, calibration=TokenCalibration(3, 1.4, 1.5, 1.6))
    budget = fit_messages(messages, model="gpt-4o", budget=given).budget

    assert 7600 < budget.high <= 8000


def test_an_image_that_does_not_fit_is_replaced_before_its_message_is_left_out() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    messages = [
        *say("why " * 600, "old"),
        {"role": "user", "content": [{"type": "text", "text": "What is in this picture?"}, picture]},
        {"role": "assistant", "content": "A cat."},
        {"role": "user", "content": "And now?"},
    ]

    fitted = fit_messages(messages, budget=400, model="gpt-4o")

    assert "What is in this picture?" in json.dumps(fitted.messages)
    assert "QUJD" not in json.dumps(fitted.messages)
    assert [(each.action, each.rule) for each in fitted.decisions if each.first == 2] == [("masked", "result_tokens")]
