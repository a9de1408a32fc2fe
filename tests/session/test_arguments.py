"""What callers may hand over, and what they are told about everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, NexusError
from nexus_core.context import AgentResult
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.messages import Message, Text, Usage
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import calls, kinds_of, says

pytestmark = pytest.mark.usefixtures("no_session_start")


def nested(levels: int) -> list[Any]:
    outer: list[Any] = []
    for _ in range(levels):
        outer = [outer]
    return outer


@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("model", ["gpt-4o"], "model must be text, not a list"),
        ("model", float("nan"), "model must be text, not the number nan"),
        ("role", 5, "role must be text"),
        ("renderer", ["labelled"], "renderer must be text, not a list"),
        ("task", {"a": 1}, "task must be text, not an object"),
        ("tools", 5, "tools must be a list"),
        ("tools", {"name": "look"}, "tools must be a list, not an object"),
        ("tools", ["look"], r"each of tools must be a definition, and tools\[0\] is the text 'look'"),
        ("permissions", "yolo", "permissions must be a list, not the text 'yolo'"),
        ("permissions", {"tools": {"deny": ["bash"]}}, "permissions must be a list, not an object"),
        ("permissions", b"ro", "permissions must be a list, not a bytes"),
        ("permissions", [5], "each of permissions must be text, not the number 5"),
        ("skills", 5, "skills must be a list"),
        ("skills", [None], "each of skills must be text, not null"),
    ],
)
def test_an_option_of_another_kind_is_refused_at_once(
    open_nexus: OpenNexus, ledger: StoreLedger, name: str, given: object, wrong: str
) -> None:
    nexus = open_nexus()
    deeds: list[Callable[..., object]] = [
        lambda **said: nexus.session("s", **said),
        lambda **said: nexus.async_session("s", **said),
        nexus.request,
    ]

    for deed in deeds:
        with pytest.raises(UsageError, match=wrong):
            deed(**{name: given})
    assert ledger.session("s") is None


def test_the_words_of_a_set_are_kept_in_one_order(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    words = {"read", "write", "browse", "send", "delete"}

    context = open_nexus().session("s", model="gpt-4o", permissions=words).ask("Why?")

    assert context.permissions_granted[1:] == tuple(sorted(words))
    record = ledger.session("s")
    assert record is not None
    assert record.payload.permissions == tuple(sorted(words))


@pytest.mark.parametrize("half", ["\ud83d", "a\ud83d\ude00b", "\0x"])
@pytest.mark.parametrize("name", ["model", "task", "skills", "permissions"])
def test_halves_of_characters_in_an_option_are_mended_before_it_is_compared(
    open_nexus: OpenNexus, ledger: StoreLedger, name: str, half: str
) -> None:
    said: dict[str, Any] = {"model": "gpt-4o", name: [half] if name in ("skills", "permissions") else half}
    said |= {"role": "worker"} if name == "task" else {}

    for number in range(2):
        session = open_nexus().session("s", **said)
        session.ask("Why?")
        session.record(says("Because.", name=f"msg_{number}"))

    assert kinds_of(ledger, "s") == ["input", "sealed", "reply"] * 2


def test_halves_of_characters_in_a_name_are_mended(open_nexus: OpenNexus) -> None:
    session = open_nexus().session("a\ud83d\ude00\ud83d", model="gpt-4o")

    assert session.name == session.ask("Why?").session_label == "a😀�"


@pytest.mark.parametrize("label", [5, None, b"x", ["s"]])
def test_a_name_that_is_no_text_is_refused(open_nexus: OpenNexus, label: Any) -> None:
    session = open_nexus().session("s", model="gpt-4o")
    session.ask("Why?")
    session.record(says("Because."))

    for deed in (open_nexus().session, session.fork):
        with pytest.raises(UsageError, match="the name of a session must be text"):
            deed(label)


@pytest.mark.parametrize(
    ("deed", "wrong"),
    [
        (lambda session: session.fork("f", at=5), "at must be text, not the number 5"),
        (lambda session: session.replay(None), "a step must be text, not null"),
        (lambda session: session.cache_report(7), "a step must be text"),
        (lambda session: session.pin([]), "a step must be text, not a list"),
        (lambda session: session.expand(None), "a compaction must be text"),
        (lambda session: session.compact(5), "focus must be text"),
        (lambda session: session.spawn(None), "a task must be text, not null"),
        (lambda session: session.spawn("Read.", name=5), "the name of a session must be text"),
        (lambda session: session.spawn("Read.", cwd=5), "cwd must be a path, not the number 5"),
        (lambda session: session.spawn("Read.", skills="x"), "skills must be a list"),
        (lambda session: session.spawn("Read.", model=["x"]), "model must be text"),
        (lambda session: session.spawn("Read.", tools=5), "tools must be a list"),
        (lambda session: session.record(says("x"), interrupted=["yes"]), "interrupted must be True or False"),
        (lambda session: session.ask("And?", interrupt=1), "interrupt must be True or False, not the number 1"),
        (lambda session: session.recover("too long"), "takes what the provider's SDK raised"),
        (lambda session: session.next().to(None), "unknown dialect of type NoneType"),
        (lambda session: session.next().to(nested(100_000)), "unknown dialect of type list"),
    ],
)
def test_an_argument_of_another_kind_is_refused(
    open_session: OpenSession, ledger: StoreLedger, deed: Callable[[Any], object], wrong: str
) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(UsageError, match=wrong):
        deed(session)
    assert kinds_of(ledger, "s") == ["input", "sealed"]


@pytest.mark.parametrize("given", [nested(100_000), (nested(100_000),)])
def test_a_list_in_a_list_in_a_list_is_no_reply(open_session: OpenSession, given: object) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(MessageError, match="expected a reply or a result"):
        session.record(given)


@pytest.mark.parametrize(
    ("attachments", "wrong"),
    [
        ([nested(100_000)], "the path of an attachment must be a path, not a list"),
        ([{"path": 5}], "the path of an attachment must be a path"),
        ([{"lines": [1, 2]}], "an attachment needs a path"),
        ([{"path": "a", "lines": 5}], "the first and the last one, not the number 5"),
        ([{"path": "a", "lines": [True, 5]}], "the first and the last one, not a list"),
    ],
)
def test_an_attachment_that_is_none_is_refused(open_session: OpenSession, attachments: Any, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        open_session().ask("Why?", attachments=attachments)


def test_a_part_without_text_is_named(open_session: OpenSession) -> None:
    part = Text("x")
    object.__setattr__(part, "text", 5)  # whatever a part refuses by itself

    with pytest.raises(MessageError, match="expected text, not the number 5") as caught:
        open_session().ask([part])

    assert caught.value.path == "message.parts[0].text"


def test_a_request_that_is_none_is_refused(open_nexus: OpenNexus) -> None:
    with pytest.raises(UsageError, match="expected a Request"):
        open_nexus().assemble(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"cwd": 5}, "cwd must be a path"),
        ({"home": 5}, "home must be a path"),
        ({"ledger": 5}, "ledger must be a URL or a ledger, not of type int"),
        ({"ledger": []}, "ledger must be a URL or a ledger, not of type list"),
    ],
)
def test_a_nexus_of_nowhere_is_refused(tmp_path: Path, arguments: dict[str, Any], wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        Nexus(**{"cwd": tmp_path, "home": tmp_path / "home", **arguments})


def test_a_field_of_a_request_of_another_kind_is_refused(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()

    wrong: list[dict[str, Any]] = [{"timezone": 5}, {"session": 5}, {"hook_data": []}]
    for given in wrong:
        with pytest.raises(UsageError, match="must be"):
            nexus.request(**given)
    with pytest.raises(UnknownNameError, match="unknown field of a request 'modell'"):
        nexus.request(modell="gpt-4o")  # type: ignore[call-arg]


# ---- what an agent brings back --------------------------------------------------------------------------------------


def test_what_a_turn_cost_may_be_given_by_name(open_session: OpenSession) -> None:
    session = open_session()
    said = [Message("user", "Why?"), Message("assistant", "Because.")]

    step = session.record(AgentResult(messages=said, usage={"input_tokens": 5, "output_tokens": 1}))

    assert step.usage == session.usage == Usage(input_tokens=5, output_tokens=1)


@pytest.mark.parametrize("usage", [{"prompt_tokens": 5}, {"input_tokens": "x"}, 5, Usage(input_tokens="x")])  # type: ignore[arg-type]
def test_a_cost_that_is_none_is_refused(open_session: OpenSession, ledger: StoreLedger, usage: Any) -> None:
    said = [Message("user", "Why?"), Message("assistant", "Because.")]

    with pytest.raises(NexusError, match="usage"):
        open_session().record(AgentResult(messages=said, usage=usage))

    assert ledger.session("s") is None


def test_a_turn_in_which_nothing_was_said_and_nothing_went_wrong_is_none(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    with pytest.raises(MessageError, match="an agent brings back no messages"):
        open_session().record(AgentResult(messages=[]))

    assert ledger.session("s") is None
    assert open_session().record(AgentResult(messages=[], error="it crashed")).done


def test_a_role_that_nobody_offers_is_refused_at_once(open_nexus: OpenNexus) -> None:
    with pytest.raises(UnknownNameError, match="unknown role 'boss'"):
        open_nexus().session("s", role="boss")


@pytest.mark.parametrize(
    ("tool", "codes"),
    [
        ({"name": "list files", "input_schema": {"type": "object"}}, ["invalid-tool"]),
        ({"name": "list", "input_schema": {"type": "array"}}, ["invalid-tool"]),
        ({"name": "list", "input_schema": {"properties": {}}}, []),
    ],
)
def test_a_tool_that_the_models_api_refuses_is_reported_with_the_call(
    open_nexus: OpenNexus, tool: dict[str, Any], codes: list[str]
) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4-5", tools=[tool])

    assert [finding.code for finding in session.ask("Why?").findings] == codes


# ---- workers of workers ---------------------------------------------------------------------------------------------


def test_workers_of_workers_have_names_of_their_own_however_deep(open_session: OpenSession) -> None:
    session = open_session(tools=[{"name": "delegate", "input_schema": {"type": "object"}}])
    labels = [session.name]

    for _ in range(40):
        session.ask("Begin.")
        call = session.record(calls("t1", tool="delegate")).tool_calls[0]
        worker = session.spawn("Read.", call=call)
        assert session.spawn("Read.", call=call).name == worker.name
        session = worker
        labels.append(session.name)

    assert len(set(labels)) == 41
    assert max(map(len, labels)) <= 500


def test_a_step_stands_for_its_id_wherever_one_is_asked_for(open_session: OpenSession, open_nexus: OpenNexus) -> None:
    session, nexus = open_session(), open_nexus()
    session.ask("Why?")
    step = session.record(says("So."))
    kept = nexus.ledger.step(step.id)
    assert kept is not None

    given_as: list[Any] = [step.id, step, kept]
    for number, given in enumerate(given_as):
        assert session.replay(given) == nexus.replay(given) == session.replay(step.id)
        assert session.cache_report(given) == step.cache
        assert session.pin(given)
        assert session.unpin(given)
        assert session.fork(f"fork {number}", at=given).messages == session.messages
        with pytest.raises(UsageError, match=f"step {step.id} is no compaction"):
            session.expand(given)


def test_the_awaited_session_takes_a_step_for_its_id_too(open_nexus: OpenNexus) -> None:
    async def work() -> None:
        session = open_nexus().async_session("s", model="claude-sonnet-4")
        context = await session.ask("Why?")
        step = await session.record(says("So."))

        assert (await session.replay(step)).to("anthropic") == context.to("anthropic")
        assert await session.cache_report(step) == step.cache
        assert await session.pin(step)
        assert await session.unpin(step)
        assert await (await session.fork("fork", at=step)).messages == await session.messages
        with pytest.raises(UsageError, match="is no compaction"):
            await session.expand(step)

    asyncio.run(work())


def test_a_compaction_that_was_expanded_by_its_step_tells_the_same(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(summarize=lambda _: "They spoke.")
    session = nexus.session("s", model="claude-sonnet-4")
    for number in range(9):
        session.ask(f"Question {number}")
        session.record(says(f"Answer {number} " * 50, name=f"msg_{number}"))
    report = session.compact()
    assert report is not None
    assert report.step is not None
    compaction = nexus.ledger.step(report.step)
    assert compaction is not None

    assert session.expand(compaction) == session.expand(report.step)


def run_it(path: str) -> str:
    return path


@pytest.mark.parametrize(
    ("given", "wrong", "hint"),
    [
        ({"nam": "x"}, r"no API defines a tool this way: \['nam'\]", None),
        ({}, "no API defines a tool this way", None),
        ({"name": ""}, "a tool has no name", "what has one"),
        (run_it, "expected the description of a tool, not a function", "Nexus does not run functions"),
        (lambda path: path, "expected the description of a tool, not a function", "Tool(name=…"),
        (print, "expected the description of a tool", "Nexus does not run functions"),
        ({"name": "look", "input_schema": 5}, "expected an object, not the number 5", None),
    ],
)
@pytest.mark.parametrize("model", [None, "gpt-4o", "gemini-2.5-pro"])
def test_what_is_no_tool_is_refused_where_it_is_given(
    open_nexus: OpenNexus, model: str | None, given: object, wrong: str, hint: str | None
) -> None:
    nexus = open_nexus()

    for open_one in (nexus.session, nexus.async_session, lambda _, **said: nexus.request(**said)):
        with pytest.raises(MessageError, match=wrong) as caught:
            open_one("s", model=model, tools=[given])
        assert caught.value.path.startswith("tools")
        assert (hint or "") in (caught.value.hint or "")


def test_a_tool_of_gemini_that_is_newer_than_nexus_is_taken(open_nexus: OpenNexus) -> None:
    session = open_nexus().session("s", model="gemini-2.5-pro", tools=[{"newest_thing": {}}])

    assert "newest_thing" in str(session.ask("Why?").to("gemini"))


@pytest.mark.parametrize(
    ("given", "fields", "nearest"),
    [
        ({"choice": []}, "'choice'", "nearest is a reply of openai, which has 'choices'"),
        ({"candidate": [], "responseId": "r"}, "'candidate', 'responseId'", "of gemini, which has 'candidates'"),
        ({"content": [], "model": "claude"}, "'content', 'model'", "of anthropic, which has 'stop_reason'"),
        ({"outputs": [], "status": "done"}, "'outputs', 'status'", "of responses, which has 'output'"),
        ({"zzz": 1}, "'zzz'", "give what an SDK returned"),
        ({f"z{number}": 1 for number in range(9)}, "'z0', 'z1', 'z2', 'z3', 'z4', 'z5', …", "give what an SDK"),
        ({10**5000: 1, "a\x1b[2J": 2}, r"'a\x1b[2J'", "give what an SDK"),
    ],
)
def test_what_is_no_reply_is_named_by_its_fields_and_the_api_it_is_nearest_to(
    open_session: OpenSession, given: object, fields: str, nearest: str
) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(MessageError) as caught:
        session.record(given)

    assert caught.value.what == f"expected a reply or a result, not an object with {fields}"
    assert nearest in str(caught.value.hint)
