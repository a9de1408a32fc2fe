"""A request has no more bytes than its API takes: old pictures and documents are told in words, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.errors import BudgetError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.messages import File, Image, Message, Text, ToolResult
from tests.effort import examples
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import calls, says, steps_of
from tests.session.test_recover import RefusedError

pytestmark = pytest.mark.usefixtures("no_session_start")

MODEL = "claude-sonnet-4"
LIMIT = 100_000


def picture(size: int, name: str = "A") -> Image:
    return Image(mime="image/png", data=name[0] * size)


def shown(context: AssembledContext) -> str:
    """The first letters of the pictures and documents that are sent, in their order."""
    return "".join(part.data[0] for message in context.messages for part in media_in(message.parts))


def media_in(parts: tuple[Any, ...]) -> Iterator[Image | File]:
    for part in parts:
        if isinstance(part, ToolResult):
            yield from media_in(part.parts)
        elif isinstance(part, Image | File) and part.data:
            yield part


def look(session: Session, name: str, size: int = 20_000) -> AssembledContext:
    """A turn about a picture."""
    context = session.ask([Text("What is it?"), picture(size, name)])
    session.record(says(f"It is {name}.", name=f"msg_{name}"))
    return context


@pytest.fixture(autouse=True)
def limit(nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"models": {MODEL: {"request_bytes": LIMIT}}})})


def body_size(context: AssembledContext, api: str = "anthropic") -> int:
    return len(json.dumps(context.to(api)))


def test_what_fits_is_shown(open_session: OpenSession) -> None:
    session = open_session()

    contexts = [look(session, name) for name in "ABC"]

    assert shown(contexts[-1]) == "ABC"
    budget = contexts[-1].token_budget
    assert budget.byte_limit == LIMIT
    assert body_size(contexts[-1]) <= budget.bytes <= body_size(contexts[-1]) + 5000
    assert budget.remaining_bytes == LIMIT - budget.bytes


@pytest.mark.acceptance("R16")
def test_the_oldest_pictures_are_told_in_words_and_the_newest_shown(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    contexts = [look(session, name) for name in "ABCDE"]

    assert shown(contexts[-1]) == "DE"[-len(shown(contexts[-1])) :]
    assert body_size(contexts[-1]) <= contexts[-1].token_budget.bytes <= LIMIT
    words = "[image left out, the request would be too large: image/png, 15,000 bytes]"
    assert words in contexts[-1].messages[0].content
    kept = [part for step in steps_of(ledger, "s") for message in step.messages for part in media_in(message.parts)]
    assert {part.data for part in kept} == {name * 20_000 for name in "ABCDE"}


def test_it_is_told_which_are_not_shown(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    context = [look(session, name) for name in "ABCDE"][-1]

    [decision] = context.decisions
    assert (decision.action, decision.rule) == ("masked", "request_bytes")
    sealed = [step for step in steps_of(ledger, "s") if step.kind == "sealed"]
    hidden = sealed[: 5 - len(shown(context))]
    assert (decision.first, decision.last) == (hidden[0].position, hidden[-1].position)
    masked = [each for each in context.placements if each.decision.action == "masked"]
    assert [each.name for each in masked] == [step.id for step in hidden]


def test_what_was_told_in_words_stays_so_until_the_next_does_not_fit(open_session: OpenSession) -> None:
    session = open_session()

    contexts = [look(session, name, 10_000) for name in "ABCDEFGHIJKLMNOPQRST"]

    changes = 0
    for before, after in pairwise(contexts):
        common = len(before.messages)
        changes += after.messages[:common] != before.messages
        assert after.token_budget.bytes <= LIMIT
    assert 1 <= changes <= 4


def test_the_same_is_sent_again_by_another_program_and_replayed(
    open_session: OpenSession, open_nexus: OpenNexus
) -> None:
    session = open_session()
    contexts = [look(session, name) for name in "ABCDEF"]
    last = session.ask("And?")

    again = open_session().next()

    assert again.to("anthropic") == last.to("anthropic")
    recorded = session.record(says("So.", name="msg_end"))
    replayed = open_nexus().replay(recorded.id)
    assert replayed.to("anthropic") == last.to("anthropic")
    assert replayed.decisions == last.decisions
    assert replayed.token_budget == last.token_budget
    assert contexts[-1].messages == last.messages[: len(contexts[-1].messages)]


def test_in_one_long_turn_the_pictures_of_tools_give_way_before_the_question(open_session: OpenSession) -> None:
    session = open_session()
    session.ask([Text("What is it?"), picture(20_000, "Q")])
    context = None
    for name in "ABCDEF":
        session.record(calls(f"call_{name}", name=f"msg_{name}"))
        session.record([ToolResult(f"call_{name}", [picture(20_000, name)])])
        context = session.next()

    assert context is not None
    assert shown(context)[0] == "Q"
    assert shown(context)[-1] == "F"
    assert "A" not in shown(context)
    assert context.token_budget.bytes <= LIMIT


def test_what_is_pinned_is_shown(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    look(session, "A")
    session.pin(steps_of(ledger, "s")[0].id)

    contexts = [look(session, name) for name in "BCDEF"]

    assert shown(contexts[-1])[0] == "A"
    assert shown(contexts[-1])[-1] == "F"
    assert contexts[-1].token_budget.bytes <= LIMIT


def test_a_picture_elsewhere_takes_no_room_and_stays(open_session: OpenSession) -> None:
    session = open_session()
    session.ask([Text("What is it?"), Image(url="https://example.org/a.png")])
    session.record(says("It is a."))
    context = [look(session, name) for name in "ABCDE"][-1]

    assert any(isinstance(part, Image) and part.url for part in context.messages[0].parts)


def test_words_that_are_too_many_bytes_are_left_out_from_the_oldest_on(open_session: OpenSession) -> None:
    session = open_session()
    for number in range(12):
        session.ask("\x01" * 2000)  # six bytes each in JSON
        session.record(says(f"Because {number}.", name=f"msg_{number}"))
    context = session.ask("And?")

    assert context.token_budget.bytes <= LIMIT
    assert [each.action for each in context.decisions] == ["dropped"]
    assert context.messages[-2].content == "Because 11."


@pytest.mark.acceptance("R16")
def test_what_cannot_be_made_small_enough_is_an_error_that_says_so_in_bytes(open_session: OpenSession) -> None:
    session = open_session()

    with pytest.raises(BudgetError) as caught:
        session.ask([Text("What is it?"), picture(LIMIT)])

    assert caught.value.unit == "bytes"
    assert caught.value.needed > caught.value.available == LIMIT
    assert next(iter(caught.value.parts)) == "event"
    assert "bytes do not fit into 100,000" in str(caught.value)
    assert "request_bytes" in (caught.value.hint or "")


def test_a_larger_limit_shows_again_what_was_told_in_words(open_session: OpenSession, nexus_home: Path) -> None:
    session = open_session()
    assert shown([look(session, name) for name in "ABCDE"][-1]) != "ABCDE"

    write_files(nexus_home, {"config.json": json.dumps({"models": {MODEL: {"request_bytes": 10 * LIMIT}}})})

    assert shown(open_session().ask("And?")) == "ABCDE"


def test_a_call_outside_of_sessions_is_held_to_it_too(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    message = Message("user", [picture(LIMIT)])

    with pytest.raises(BudgetError) as caught:
        nexus.assemble(nexus.request(message=message, model=MODEL))

    assert caught.value.unit == "bytes"


@pytest.mark.parametrize(
    ("model", "limit"), [("claude-opus-5", 32_000_000), ("gpt-4o", 50_000_000), ("gemini-3-pro", 100_000_000)]
)
def test_each_api_takes_as_much_as_its_provider_says(open_nexus: OpenNexus, model: str, limit: int) -> None:
    nexus = open_nexus()

    assert nexus.assemble(nexus.request(message="Hi", model=model)).token_budget.byte_limit == limit


def test_of_a_model_that_nobody_knows_the_least_is_assumed(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()

    assert nexus.assemble(nexus.request(message="Hi", model="mine")).token_budget.byte_limit == 32_000_000


def test_with_pictures_in_words_a_rearranged_history_fits_too(open_session: OpenSession) -> None:
    session = open_session(renderer="tagged")
    contexts = [look(session, name) for name in "ABCDEF"]

    assert all(context.token_budget.bytes <= LIMIT for context in contexts)
    assert shown(contexts[-1])[-1] == "F"


MEDIA = st.builds(picture, st.sampled_from([10, 5_000, 20_000, 45_000]), st.sampled_from("ABC")) | st.builds(
    File, name=st.just("a.txt"), mime=st.just("text/plain"), data=st.sampled_from(["QQ==", "Cg==" * 5000])
)
SAID = st.lists(st.builds(Text, st.sampled_from(["Why?", "\x01" * 4000, "中" * 3000])) | MEDIA, min_size=1, max_size=3)
TURNS = st.lists(st.lists(SAID, min_size=1, max_size=4), min_size=1, max_size=5)
"""In each turn what the user says, and then what a tool brings."""


def fits(send: Callable[[], AssembledContext]) -> bool:
    """Whether what is sent is no larger than it may be; otherwise it was an error that says so."""
    try:
        context = send()
    except BudgetError as error:
        refused = error
    else:
        assert body_size(context) <= context.token_budget.bytes <= LIMIT
        assert body_size(context, "openai") <= context.token_budget.bytes
        return True
    assert refused.unit == "bytes"
    return False


@pytest.mark.slow
@pytest.mark.acceptance("R16")
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(TURNS)
def test_whatever_is_said_no_request_is_too_large_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[list[Any]]]
) -> None:
    ledger, given_ = MemoryLedger(), 0
    with Nexus(tmp_path_factory.mktemp("work"), defaults=False, installed=False, ledger=ledger) as nexus:
        session = nexus.session("s", model=MODEL)
        for turn, (said, *brought) in enumerate(turns):
            is_sent = fits(partial(session.ask, said))
            given_ += len(list(media_in(tuple(said))))
            for number, parts in enumerate(brought if is_sent else []):
                name = f"{turn}_{number}"
                session.record(calls(name, name=f"msg_{name}"))
                session.record([ToolResult(name, parts)])
                given_ += len(list(media_in(tuple(parts))))
                if not fits(session.next):
                    break
            session.interrupt()
    steps = [step for step in steps_of(ledger, "s") if step.kind in ("input", "result")]
    kept = [part for step in steps for message in step.messages for part in media_in(message.parts)]
    assert len(kept) == given_


# ---- a request that a server takes for too large ----------------------------------------------------------------


def refused_as_too_large() -> RefusedError:
    return RefusedError("Payload Too Large", status_code=413)


def test_where_a_request_is_refused_for_its_size_older_pictures_are_told_in_words(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    contexts = [look(session, name) for name in "ABC"]
    sent = session.ask("And?")

    context = session.recover(refused_as_too_large())

    assert (shown(contexts[-1]), shown(sent)) == ("ABC", "ABC")
    assert shown(context) in ("C", "BC")
    assert context.token_budget.bytes < sent.token_budget.bytes == context.token_budget.byte_limit + 1
    assert not [step for step in steps_of(ledger, "s") if step.kind == "compaction"]


def test_the_size_that_was_refused_is_remembered_for_that_model(
    open_session: OpenSession, open_nexus: OpenNexus, nexus_home: Path
) -> None:
    session = open_session()
    for name in "ABC":
        look(session, name)
    sent = session.ask("And?").token_budget.bytes
    session.recover(refused_as_too_large())
    session.record(says("So.", name="msg_end"))

    again = open_nexus().session("s").ask("And now?")
    (told,) = (each for each in again.findings if each.code == "smaller-request")
    assert again.token_budget.byte_limit == sent - 1
    assert told.message.startswith(f"a request of {sent:,} bytes to {MODEL!r} was refused as too large; ")
    assert f"models.{MODEL}.request_bytes" in told.message
    open_nexus().session("s").interrupt()
    assert open_nexus().session("s", model="gpt-4o").preview("Why?").token_budget.byte_limit > 1_000_000
    write_files(nexus_home, {"config.json": json.dumps({"models": {MODEL: {"request_bytes": 2 * LIMIT}}})})
    corrected = open_nexus().session("s", model=MODEL).preview("Why?")
    assert corrected.token_budget.byte_limit == 2 * LIMIT
    assert "smaller-request" not in {each.code for each in corrected.findings}


def test_what_cannot_be_made_smaller_is_raised_as_it_was(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask([Text("What is it?"), picture(50_000)])
    before = len(steps_of(ledger, "s"))

    with pytest.raises(RefusedError) as caught:
        session.recover(error := refused_as_too_large())

    assert caught.value is error
    assert caught.value.__notes__[0].startswith("Nexus did not make the conversation shorter: ")
    assert len(steps_of(ledger, "s")) == before


def test_what_is_pinned_is_not_told_in_words_for_that(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    look(session, "A", 60_000)
    for step in steps_of(ledger, "s")[::2]:  # what was asked, and what was answered
        session.pin(step.id)
    sent = session.ask("And?").token_budget.bytes

    with pytest.raises(RefusedError) as caught:
        session.recover(refused_as_too_large())

    assert f"{sent:,} bytes do not fit into {sent - 1:,}" in caught.value.__notes__[0]


def test_a_reply_to_the_smaller_request_can_be_replayed(open_session: OpenSession, open_nexus: OpenNexus) -> None:
    session = open_session()
    for name in "ABC":
        look(session, name)
    session.ask("And?")
    sent = session.recover(refused_as_too_large())
    reply = session.record(says("So.", name="msg_end"))

    assert open_nexus().replay(reply.id).to("anthropic") == sent.to("anthropic")
