"""What one call is made of, and what stays the same from call to call."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nexus_core import hookimpl
from nexus_core.errors import BudgetError, TurnError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.tokens.estimator import TextCounter
from nexus_core.types.assembled import AgentResult
from nexus_core.types.budget import MESSAGE_OVERHEAD_TOKENS, Model
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import TOOLS, add_step, add_turns, calls, kinds_of, says, spoken, steps_of

pytestmark = pytest.mark.usefixtures("no_session_start")


class WordCounter(TextCounter):
    """Counts words, and how often it was asked for each text."""

    exact = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        self.counted.append(text)
        return len(text.split())


class Words:
    """Two models with counters of their own, and windows of 200 and 400 words."""

    def __init__(self) -> None:
        self.small, self.large = WordCounter("words:small"), WordCounter("words:large")

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="small", window=200), Model(name="large", window=400)]

    @hookimpl
    def nexus_token_counter(self, model: str) -> WordCounter | None:
        return {"small": self.small, "large": self.large}.get(model)


@pytest.fixture
def words() -> Words:
    return Words()


def exchange(session: Any, question: str, answer: str, name: str) -> None:
    session.ask(question)
    session.record(says(answer, name=name))


# ---- the fields ---------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("G-01", "C-24")
def test_a_context_says_what_it_is_for(open_session: OpenSession, ledger: StoreLedger, tmp_path: Path) -> None:
    session = open_session()
    first = session.ask("Why?", event_id="evt_1")
    session.record(says("Because."))

    context = session.ask("And?")

    assert first.parent_turn_id is None
    assert first.source_event_id == "evt_1"
    assert context.parent_turn_id == steps_of(ledger, "s")[0].turn
    assert context.session_label == "s"
    assert context.model == "claude-sonnet-4"
    assert context.provider == "anthropic"
    assert context.workspace_path == (tmp_path / "work").resolve()
    assert context.permissions_granted == ("trusted",)
    assert context.source_event_id is None
    assert [tool.name for tool in context.tools] == ["look"]
    assert [spoken(message) for message in context.history] == ["Why?", "Because."]
    assert spoken(context.current_message) == "And?"
    assert (context.role, context.toolset_name, context.renderer) == ("unified", "unified", "labelled")


@pytest.mark.acceptance("G-02")
def test_tools_that_are_not_permitted_are_not_there(open_session: OpenSession, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"permissions": {"tools": {"deny": ["look"]}}})})

    context = open_session(tools=[*TOOLS, {"name": "listen", "input_schema": {"type": "object"}}]).ask("Why?")

    assert [tool.name for tool in context.tools] == ["listen"]


@pytest.mark.acceptance("G-04")
@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini"])
def test_what_is_only_for_the_caller_is_never_sent(open_session: OpenSession, api: str) -> None:
    session = open_session("a-label-of-mine")

    context = session.ask("Why?", event_id="evt_of_mine", platform="platform_of_mine", source="source_of_mine")

    sent = json.dumps(context.to(api))
    assert not any(word in sent for word in ("a-label-of-mine", "_of_mine", "unified"))


def test_options_go_into_the_call(open_session: OpenSession) -> None:
    context = open_session().ask("Why?")

    sent = context.to("anthropic", max_tokens=8000, model="claude-opus-4")

    assert (sent["max_tokens"], sent["model"]) == (8000, "claude-opus-4")


def test_the_static_zone_does_not_name_the_model(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"provider": {"model": "gpt-4o"}}), "NEXUS.md": "Be brief.\n"})
    nexus = open_nexus()

    context = nexus.session("s").ask("Why?")

    assert context.model == "gpt-4o"
    assert "Be brief." in context.system_prompt
    assert "gpt-4o" in nexus.context().system_prompt
    assert "gpt-4o" not in context.system_prompt


# ---- the same bytes -----------------------------------------------------------------------------------------------


def test_what_one_call_sends_is_how_the_next_begins(open_session: OpenSession) -> None:
    session = open_session()
    contexts = [session.ask("Why?")]
    for name in ("a", "b"):
        step = session.record(calls(name, f"{name}2", name=f"msg_{name}"))
        for call in reversed(step.tool_calls):
            session.record(call.result(f"result {call.id}"))
        contexts.append(session.next())
    session.record(says("Because.", name="msg_c"))
    contexts.append(session.ask("And?"))
    session.record(calls("d", name="msg_d"), interrupted=True)
    contexts.append(session.ask("Well?"))

    for before, after in pairwise(contexts):
        assert after.messages[: len(before.messages)] == before.messages
        for api in ("openai", "responses", "anthropic", "gemini"):
            first, second = before.to(api), after.to(api)
            key = next(key for key in ("messages", "input", "contents") if key in first)
            assert json.dumps(second[key]).startswith(json.dumps(first[key])[:-1])
            rest = {name: value for name, value in first.items() if name != key}
            assert json.dumps(rest) == json.dumps({name: value for name, value in second.items() if name != key})


def test_files_that_change_do_not_change_the_session(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = open_session()
    before = session.ask("Why?")
    session.record(says("Because."))
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})

    after = open_session().ask("And?")

    assert "Be brief." in before.system_prompt
    assert after.system_prompt == before.system_prompt


def test_other_tools_begin_another_epoch(open_session: OpenSession, ledger: StoreLedger, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})

    context = open_session(tools=[{"name": "listen", "input_schema": {"type": "object"}}]).ask("And?")

    assert [tool.name for tool in context.tools] == ["listen"]
    assert "Be verbose." in context.system_prompt
    assert len({step.payload.epoch for step in steps_of(ledger, "s") if step.kind == "sealed"}) == 2


def test_other_tools_begin_another_epoch_inside_a_turn(open_session: OpenSession, ledger: StoreLedger) -> None:
    open_session().ask("Why?")

    context = open_session(tools=[]).next()
    again = open_session(tools=[]).next()

    assert context.tools == ()
    assert again == context
    assert kinds_of(ledger, "s") == ["input", "sealed", "sealed"]


def test_the_same_tools_in_another_shape_are_others_only_if_they_say_something_else(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    session.ask("Why?")

    open_session(tools=[dict(reversed(list(TOOLS[0].items())))]).next()

    assert kinds_of(ledger, "s") == ["input", "sealed"]


def test_parameters_of_tools_stay_in_the_order_in_which_they_were_given(open_session: OpenSession) -> None:
    context = open_session().ask("Why?")

    assert list(context.to("anthropic")["tools"][0]["input_schema"]["properties"]) == ["path", "lines"]


def test_a_session_without_tools_has_those_it_had(open_session: OpenSession) -> None:
    before = open_session().ask("Why?")

    after = open_session(tools=None, model=None).next()

    assert after == before


def test_a_lost_epoch_is_a_finding_that_names_it(open_session: OpenSession, ledger: StoreLedger) -> None:
    ledger.create("s")
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "Why?"),), data={"epoch": "f00d"}))

    (finding,) = (each for each in open_session().next().findings if each.code == "prompt-gone")

    assert "f00d" in finding.message


# ---- what fits ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("only_cuts")
def test_history_that_does_not_fit_is_left_out_from_its_beginning(open_nexus: OpenNexus, words: Words) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")
    for number in range(20):
        exchange(session, f"question {number}", "one two three four", f"msg_{number}")

    context = session.ask("And now?")

    assert context.token_budget.remaining >= 0
    assert spoken(context.history[0]).startswith("question ")
    assert context.history[-1].content == "one two three four"
    assert 2 < len(context.history) < 40
    (left_out,) = context.decisions
    assert (left_out.action, left_out.rule) == ("dropped", "oldest_first")


@pytest.mark.usefixtures("only_cuts")
def test_only_as_much_is_read_as_fits(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_turns(ledger, "s", *(f"question {number}" for number in range(2000)))
    read: list[int] = []
    thread = ledger.thread

    def counted(*arguments: Any, **options: Any) -> Any:
        found = thread(*arguments, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(ledger, "thread", counted)

    context = open_nexus(plugins=[words], layers=False).session("s", model="small").ask("And now?")

    assert len(context.history) > 2
    assert sum(read) <= 64


@pytest.mark.usefixtures("only_cuts")
def test_what_the_turn_is_about_is_never_left_out(open_nexus: OpenNexus, words: Words) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")
    session.ask("the question")
    for number in range(12):
        step = session.record(calls(f"t{number}", name=f"msg_{number}"))
        session.record(step.tool_calls[0].result("one two three four five"))

    context = session.next()

    assert spoken(context.current_message) == "the question"
    assert context.token_budget.remaining >= 0
    assert len(context.progress) < 24
    assert context.progress[-1].tool_results[0].call_id == "t11"
    assert context.progress[0].tool_calls


@pytest.mark.usefixtures("only_cuts")
def test_a_summary_is_never_left_out(open_nexus: OpenNexus, words: Words, ledger: StoreLedger) -> None:
    turns = add_turns(ledger, "s", "1", "2")
    data = {"summary": "it began with one", "first_kept": turns[1].id}
    add_step(ledger, "s", NewStep(kind="compaction", closes=True, data=data))
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")
    for number in range(20):
        exchange(session, f"question {number}", "one two three four", f"msg_{number}")

    context = session.ask("And now?")

    assert context.history[0].content.endswith("it began with one")
    assert context.history[1].content not in ("2", "question 0")


@pytest.mark.usefixtures("only_cuts")
def test_history_whose_newest_group_does_not_fit_is_left_out(open_nexus: OpenNexus, words: Words) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")
    exchange(session, "Why?", "word " * 110, "msg_1")

    context = session.ask("And?")

    assert context.history == ()


def test_an_input_that_does_not_fit_is_an_error_and_the_turn_stays_open(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger
) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")

    with pytest.raises(BudgetError, match="event"):
        session.ask("word " * 180)

    assert kinds_of(ledger, "s") == ["input", "input", "sealed"]
    assert open_nexus(plugins=[words], layers=False).session("s", model="large").next().token_budget.remaining >= 0


@pytest.mark.acceptance("K-07", "C-18")
def test_history_is_not_counted_again(open_nexus: OpenNexus, words: Words) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")
    exchange(session, "the first question", "the first answer", "msg_1")
    words.small.counted.clear()

    open_nexus(plugins=[words], layers=False).session("s", model="small").ask("the second question")

    assert [text.rpartition("\n")[2] for text in words.small.counted] == ["the second question"]


@pytest.mark.acceptance("K-07")
def test_what_is_said_is_counted_as_it_is_sent_and_not_before(open_nexus: OpenNexus, words: Words) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")

    context = session.ask("a question")
    session.record(says("an answer"))

    sent = [context.system_prompt, *(message.content for message in context.messages)]
    assert sorted(words.small.counted) == sorted([*sent, "an answer"])


def test_what_was_given_up_before_it_was_put_into_words_counts_as_it_was_said(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger
) -> None:
    ledger.create("s")
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "one two three"),)))
    add_step(ledger, "s", NewStep(kind="interrupted", closes=True))

    context = open_nexus(plugins=[words], layers=False).session("s", model="small").ask("And?")

    assert [spoken(message) for message in context.history] == ["one two three"]
    assert context.message_tokens[0] == 3 + MESSAGE_OVERHEAD_TOKENS


def test_what_was_said_and_pinned_counts_where_its_turn_was_summarised(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger
) -> None:
    ledger.create("s")
    said = add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "one two three"),)))
    add_step(ledger, "s", NewStep(kind="interrupted", closes=True))
    data = {"summary": "Nothing.", "first_kept": None, "pinned": [said.id]}
    add_step(ledger, "s", NewStep(kind="compaction", closes=True, data=data))

    context = open_nexus(plugins=[words], layers=False).session("s", model="small").ask("And?")

    assert spoken(context.history[1]) == "one two three"
    assert context.message_tokens[1] == 3 + MESSAGE_OVERHEAD_TOKENS


@pytest.mark.acceptance("C-18")
def test_a_step_counts_its_own_messages_and_not_what_the_call_read(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger
) -> None:
    session = open_nexus(plugins=[words], layers=False).session("s", model="small")

    exchange(session, "one two three", "four", "msg_1")

    assert [step.tokens for step in steps_of(ledger, "s")] == [9, 0, 12, 5]
    assert steps_of(ledger, "s")[-1].total == 26


def test_a_model_with_another_counter_counts_each_message_once(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger
) -> None:
    nexus = open_nexus(plugins=[words], layers=False)
    exchange(nexus.session("s", model="small"), "the first question", "the first answer", "msg_1")
    session = nexus.session("s", model="large")

    context = session.ask("the second question")
    session.next()
    session.next()

    sent = [context.system_prompt, *(message.content for message in context.messages)]
    assert sorted(words.large.counted) == sorted(sent)
    assert steps_of(ledger, "s")[-1].counter == "words:large"
    assert context.token_budget.used["history"] == 28


@pytest.mark.acceptance("K-07")
def test_an_estimated_event_has_a_margin(open_session: OpenSession) -> None:
    context = open_session().ask("word " * 100)

    assert context.token_budget.estimated
    assert 140 <= context.token_budget.used["event"] <= 170


def test_preview_writes_nothing_and_is_what_ask_gives(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    exchange(session, "Why?", "Because.", "msg_1")
    before = kinds_of(ledger, "s")

    preview = session.preview("And?", event_id="evt_1")

    assert kinds_of(ledger, "s") == before
    assert preview == session.ask("And?", event_id="evt_1")


def test_preview_of_a_new_session_makes_none(open_session: OpenSession, ledger: StoreLedger) -> None:
    context = open_session().preview("Why?")

    assert spoken(context.current_message) == "Why?"
    assert ledger.session("s") is None


def test_preview_without_a_message_is_what_next_gives(open_session: OpenSession) -> None:
    session = open_session()
    context = session.ask("Why?")

    assert session.preview() == context
    with pytest.raises(TurnError, match="a turn is open"):
        session.preview("And?")


def test_an_occasion_without_a_message_is_not_passed_over(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(UsageError, match="platform goes with a message"):
        session.preview(platform="slack")


# ---- long results -------------------------------------------------------------------------------------------------


def test_a_long_result_is_kept_whole_and_sent_as_head_and_tail(
    open_nexus: OpenNexus, words: Words, ledger: StoreLedger, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 40}})})
    text = " ".join(f"word{number}" for number in range(500))
    session = open_nexus(plugins=[words]).session("s", model="large")
    session.ask("Why?")
    step = session.record(calls("t1"))

    recorded = session.record(step.tool_calls[0].result(text))
    context = session.next()

    (sent,) = context.progress[-1].tool_results
    assert steps_of(ledger, "s")[-1].messages[0].tool_results[0].text == text
    assert len(sent.text.split()) <= 40
    assert sent.text.startswith("word0 word1 ")
    assert sent.text.endswith("word499")
    assert f"all of it is in step {recorded.id}" in sent.text


def test_short_texts_of_a_long_result_stay_whole(open_nexus: OpenNexus, words: Words, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 60}})})
    session = open_nexus(plugins=[words]).session("s", model="large")
    session.ask("Why?")
    step = session.record(calls("t1"))

    session.record(step.tool_calls[0].result([Text("exit code 1"), Text("word " * 500), Text("in 3 seconds")]))

    (sent,) = session.next().progress[-1].tool_results
    assert sent.parts[0] == Text("exit code 1")
    assert sent.parts[2] == Text("in 3 seconds")
    assert 30 <= len(sent.text.split()) <= 60


def test_long_results_of_an_agent_are_cut_too(open_nexus: OpenNexus, words: Words, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 40}})})
    session = open_nexus(plugins=[words]).session("s", model="large")
    spoken = [
        Message("user", "Why?"),
        Message("assistant", (ToolCall("a", "look"), ToolCall("b", "look"))),
        Message("tool", (ToolResult("a", "short"), ToolResult("b", "word " * 500))),
        Message("assistant", "Because."),
    ]

    session.record(AgentResult(messages=spoken))

    first, second = session.ask("And?").history[2].tool_results
    assert first.text == "short"
    assert len(second.text.split()) <= 40


def test_a_cut_is_made_once_and_for_all(open_nexus: OpenNexus, words: Words, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 40}})})
    session = open_nexus(plugins=[words]).session("s", model="large")
    session.ask("Why?")
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("word " * 500))
    before = session.next()
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 400}})})

    after = open_nexus(plugins=[words]).session("s", model="gpt-4o").next()

    assert after.messages == before.messages


def test_a_result_of_several_parts_is_cut_as_a_whole(open_nexus: OpenNexus, words: Words, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"tool_result_tokens": 60}})})
    session = open_nexus(plugins=[words]).session("s", model="large")
    session.ask("Why?")
    step = session.record(calls("t1"))

    session.record(step.tool_calls[0].result([Text("one " * 100), Text("two " * 100)]))

    (sent,) = session.next().progress[-1].tool_results
    assert len(sent.text.split()) <= 60
    assert "one" in sent.parts[0].text  # type: ignore[union-attr]
    assert "two" in sent.parts[1].text  # type: ignore[union-attr]
