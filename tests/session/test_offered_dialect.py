"""A session with a model that is asked in the words of a plugin's dialect, from the first word to the export."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import AgentResult, Message, MessageError, Nexus, TurnError, UnknownNameError
from nexus_core.session.session import Session
from nexus_core.transfer.exporter import format_messages
from tests.dialects.telegraph import NAME, TelegraphPlugin
from tests.session.conftest import OpenNexus
from tests.session.support import says

pytestmark = pytest.mark.usefixtures("no_session_start")

TOOLS = [{"do": "LOOK", "takes": {"type": "object"}, "about": "Look."}]
WHY = {"from": "caller", "words": ["WHY"]}
ORDER = {
    "telegram": {"from": "office", "orders": [{"slip": "1", "do": "LOOK", "with": {"at": "a"}}]},
    "read": 9,
    "sent": 3,
    "number": "n1",
}
SLIP = {"from": "clerk", "slips": [{"slip": "1", "brought": "x = 1"}]}
ANSWER = {"telegram": {"from": "office", "words": ["BECAUSE"], "priority": "urgent"}, "read": 20, "number": "n2"}


@pytest.fixture
def nexus(open_nexus: OpenNexus) -> Nexus:
    return open_nexus(plugins=[TelegraphPlugin()])


@pytest.fixture
def session(nexus: Nexus) -> Session:
    return nexus.session("wire", model="morse-1", tools=TOOLS)


def test_a_whole_tool_loop_is_held_in_its_words(session: Session) -> None:
    session.ask(WHY)
    first = session.record(ORDER)
    session.record(SLIP)
    sent = session.next().to(NAME)
    last = session.record(ANSWER)

    assert (first.tool_calls[0].name, first.usage.input_tokens if first.usage else 0) == ("LOOK", 9)
    assert [item["from"] for item in sent["line"]] == ["caller", "office", "clerk"]
    assert sent["instruments"] == TOOLS
    assert sent["model"] == "morse-1"
    assert last.text == "BECAUSE"
    assert session.messages[-1].api == NAME


def test_what_the_plugin_has_words_for_comes_back_to_it(session: Session) -> None:
    session.ask(WHY)
    session.record(ANSWER)

    sent = session.ask("And then?").to(NAME)["line"]

    assert sent[1] == ANSWER["telegram"]
    assert "priority" not in str(session.next().to("anthropic"))


def test_a_reply_in_pieces_and_a_message_alone_are_recorded(session: Session) -> None:
    session.ask(WHY)
    first = session.record([{"click": "BE"}, {"click": "CAUSE"}])
    session.ask("And?")
    second = session.record({"from": "office", "words": ["THEREFORE"]})

    assert (first.text, second.text) == ("BECAUSE", "THEREFORE")


def test_a_reply_of_the_plugins_is_known_when_it_comes_again(session: Session) -> None:
    session.ask(WHY)
    session.record(ANSWER)

    assert session.record(ANSWER).duplicate


def test_replies_of_other_apis_are_recorded_as_ever(session: Session) -> None:
    session.ask(WHY)

    assert session.record(says("Because.")).text == "Because."


def test_the_users_words_are_no_reply(session: Session) -> None:
    session.ask(WHY)

    with pytest.raises(MessageError, match="expected a reply or a result") as caught:
        session.record(WHY)

    assert caught.value.hint == "ask(…) takes the user's words, and opens a turn"


def test_a_reply_that_is_wrong_inside_is_refused_by_its_own_dialect(session: Session) -> None:
    session.ask(WHY)

    with pytest.raises(MessageError, match="nobody sends as 'king'"):
        session.record({"telegram": {"from": "king"}})


def test_a_result_that_answers_nothing_is_refused(session: Session) -> None:
    session.ask(WHY)

    with pytest.raises(TurnError, match="no call waits for a result"):
        session.record(SLIP)


def test_a_whole_turn_is_recorded(nexus: Nexus) -> None:
    session = nexus.session("run", model="morse-1")

    session.record(AgentResult(messages=[WHY, {"from": "office", "words": ["BECAUSE"]}], id="run 1"))

    assert [message.content for message in session.messages] == ["WHY", "BECAUSE"]


def test_a_request_takes_message_and_tools_in_its_shape(nexus: Nexus) -> None:
    context = nexus.assemble(nexus.request(message=WHY, tools=TOOLS, model="morse-1"))

    assert context.to(NAME)["line"][-1]["from"] == "caller"
    assert [tool.name for tool in context.tools] == ["LOOK"]
    assert context.provider == NAME


def test_its_tools_are_offered_to_a_model_of_another_api(nexus: Nexus) -> None:
    context = nexus.session("other", model="gpt-4o", tools=TOOLS).ask("Why?")

    assert context.to("openai")["tools"][0]["function"]["name"] == "LOOK"


def test_what_its_rules_refuse_is_mended_before_it_is_sent(nexus: Nexus) -> None:
    session = nexus.session("mended", model="morse-1", tools=[{"name": "look", "input_schema": {"type": "object"}}])
    session.ask("Why?")
    session.record(Message("assistant", "So."))

    assert [item["from"] for item in session.ask("And?").to(NAME)["line"]] == ["caller", "office", "caller"]


def test_the_options_of_a_call_go_along_and_those_of_the_caller_win(session: Session) -> None:
    sent = session.ask(WHY).to(NAME, urgent=True, model="morse-2")

    assert (sent["urgent"], sent["model"]) == (True, "morse-2")


def test_breakpoints_say_why_nothing_is_marked(session: Session) -> None:
    planned = session.ask(WHY).breakpoints(NAME)

    assert {each.skipped for each in planned} == {"telegraph takes no marks"}


def test_the_model_is_held_to_the_bytes_of_its_api(session: Session) -> None:
    assert session.ask(WHY).token_budget.byte_limit == 50_000


def test_a_dialect_that_nobody_offers_is_answered_with_the_nearest(session: Session) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'telegraph'\?"):
        session.ask(WHY).to("telegram")


def test_what_was_said_is_written_for_another_program(nexus: Nexus, session: Session) -> None:
    session.ask(WHY)
    session.record(ANSWER)

    written: Any = format_messages(session.messages, NAME, nexus.dialects)

    assert [item["words"] for item in written] == [written[0]["words"], ["BECAUSE"]]


def test_a_session_can_be_read_where_the_plugin_is_missing(session: Session, open_nexus: OpenNexus) -> None:
    session.ask(WHY)
    session.record(ANSWER)

    context = open_nexus().session("wire", model="gpt-4o").ask("And?")

    assert [message["content"] for message in context.to("openai")["messages"]][-2] == "BECAUSE"
    with pytest.raises(UnknownNameError, match="unknown dialect 'telegraph'"):
        context.to(NAME)
