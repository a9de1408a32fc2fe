"""Workers: sessions of their own that answer a call of the session that made them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Tool
from nexus_core.errors import FileError, SessionExistsError, TurnError, UnknownNameError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.record import INTERRUPTED_RESULT
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import TOOLS, calls, kinds_of, says, spoken, steps_of

MANY = [*TOOLS, Tool(name="mail", scope="messaging"), Tool(name="delegate", scope="spawn")]


def waiting(session: Session) -> Any:
    """A call that waits for a worker."""
    session.ask("Find out why the build fails.")
    (call,) = session.record(calls("t1", tool="delegate")).tool_calls
    return call


def results(session: Session) -> list[tuple[str, bool]]:
    found = [result for message in session.next().progress for result in message.tool_results]
    return [(result.text, result.is_error) for result in found]


@pytest.mark.acceptance("W-02", "W-05", "W-07")
def test_a_workers_answer_is_the_result_of_the_call(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session(tools=MANY, role="manager")
    call = waiting(session)

    worker = session.spawn("Read the log.", call=call)
    context = worker.ask("Begin.")
    step = worker.record(calls("w1", name="msg_w1"))
    worker.record(step.tool_calls[0].result("error in line 3"))
    worker.next()
    worker.record(says("Line 3 is wrong.", name="msg_w2"))

    assert context.system_prompt.startswith("# Subagent Context\n")
    assert "Read the log." in context.system_prompt
    assert [spoken(message) for message in context.messages[1:]] == ["Begin."]
    assert results(session) == [("Line 3 is wrong.", False)]
    assert session.pending_calls == ()
    assert kinds_of(ledger, "s")[-2:] == ["reply", "result"]


@pytest.mark.acceptance("W-04", "W-06")
def test_a_worker_has_its_makers_model_and_tools_within_its_role(open_session: OpenSession) -> None:
    session = open_session(tools=MANY, role="manager", permissions=["read"])
    call = waiting(session)

    context = session.spawn("Read.", call=call).ask("Begin.")

    assert (context.role, context.model) == ("worker", "claude-sonnet-4")
    assert [tool.name for tool in context.tools] == ["look", "delegate"]
    assert context.permissions_granted == ("trusted", "read")


def test_a_worker_may_have_a_model_tools_and_a_name_of_its_own(open_session: OpenSession) -> None:
    worker = open_session().spawn("Read.", model="gpt-4o", tools=[], name="reader", skills=["x"])

    context = worker.ask("Begin.")

    assert (worker.name, context.model, context.tools) == ("reader", "gpt-4o", ())


@pytest.mark.acceptance("W-04")
@pytest.mark.parametrize(("given", "told"), [(None, ["logs", "shop"]), (["shop"], ["shop"]), ([], [])])
def test_a_worker_is_told_of_the_skills_it_was_given_and_of_none_when_it_was_given_none(
    open_session: OpenSession, tmp_path: Path, given: list[str] | None, told: list[str]
) -> None:
    guide = "---\nname: {}\ndescription: A guide.\n---\nLook.\n"
    guides = {f".nexus3/skills/{name}/SKILL.md": guide.format(name) for name in ("logs", "shop")}
    write_files(tmp_path / "work", guides)

    prompt = open_session().spawn("Read.", skills=given).ask("Begin.").system_prompt

    assert [name for name in ("logs", "shop") if name in prompt] == told
    assert ("None: this agent has no skills." in prompt) == (not told)


@pytest.mark.acceptance("W-03", "S-03", "S-04", "S-07")
def test_a_worker_elsewhere_reads_what_is_written_there_and_inherits_the_rest(
    open_session: OpenSession, tmp_path: Path
) -> None:
    write_files(
        tmp_path / "work",
        {"NEXUS.md": "Be brief.\n", ".nexus3/SOUL.md": "Calm.\n", "sub/NEXUS.md": "Be thorough.\n", "sub/deep/x": ""},
    )

    there = open_session().spawn("Read.", cwd="sub").ask("Begin.")
    deeper = open_session().spawn("Read.", cwd="sub", name="w").spawn("Look.", cwd="deep").ask("Begin.")

    prompt = there.system_prompt
    assert there.workspace_path == (tmp_path / "work/sub").resolve()
    assert prompt.count("Be thorough.") == prompt.count("Be brief.") == prompt.count("Calm.") == 1
    assert prompt.index("## Subagent Configuration") < prompt.index("Be thorough.") < prompt.index("Be brief.")
    assert f"Working directory: {tmp_path / 'work/sub'}" in prompt
    assert deeper.workspace_path == (tmp_path / "work/sub/deep").resolve()
    assert deeper.system_prompt.count("Be thorough.") == 1


def test_after_a_restart_the_same_call_has_the_same_worker(open_session: OpenSession, ledger: StoreLedger) -> None:
    call = waiting(open_session(tools=MANY))
    open_session(tools=MANY).spawn("Read.", call=call).ask("Begin.")

    session = open_session(tools=MANY)
    (again,) = session.pending_calls
    worker = session.spawn("Read.", call=again)

    worker.next()
    worker.record(says("Done.", name="msg_w"))
    assert results(session) == [("Done.", False)]
    assert len(ledger.sessions()) == 2


def test_a_program_that_died_before_the_report_is_followed_by_one_that_reports(
    open_session: OpenSession, ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")
    with monkeypatch.context() as patch:
        patch.setattr("nexus_core.session.engine.find_worker_report", lambda _state: None)
        worker.record(says("Done.", name="msg_w"))
    assert kinds_of(ledger, "s")[-1] == "reply"

    again = open_session(tools=MANY)
    (call,) = again.pending_calls
    again.spawn("Read.", call=call)

    assert results(again) == [("Done.", False)]
    assert open_session(worker.name).report_result().duplicate  # type: ignore[union-attr]


def test_a_worker_that_was_cut_off_brings_an_error(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")

    worker.record(says("I have", name="msg_w"), interrupted=True)

    assert results(session) == [("I have", True)]


def test_a_worker_that_is_given_up_is_reported_so_that_its_maker_goes_on(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")
    worker.record(calls("w1", name="msg_w"))

    worker.interrupt()

    assert session.pending_calls == ()
    assert results(session) == [(INTERRUPTED_RESULT, True)]


def test_a_worker_that_begins_anew_has_not_been_given_up(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")

    worker.ask("Begin with the newest.", interrupt=True)

    assert len(session.pending_calls) == 1


def test_a_worker_may_be_given_up_when_nobody_waits_any_more(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")
    session.interrupt()

    step = worker.interrupt()

    assert step is not None
    assert step.done


def test_an_answer_that_comes_too_late_is_kept_with_the_worker(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    worker = session.spawn("Read.", call=waiting(session))
    worker.ask("Begin.")
    session.interrupt()
    session.ask("Never mind.")

    assert worker.record(says("Done.", name="msg_w")).done

    assert worker.messages[-1].content == "Done."
    with pytest.raises(TurnError, match="the turn in which the worker was called has ended"):
        worker.report_result()


def test_a_worker_without_a_call_reports_to_nobody(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    one, two = session.spawn("Read."), session.spawn("Read.")
    one.ask("Begin.")

    one.record(says("Done."))

    assert one.report_result() is None
    assert one.name != two.name
    assert ledger.session("s") is None


def test_a_fork_of_a_worker_reports_to_nobody(open_session: OpenSession) -> None:
    session = open_session(tools=MANY)
    fork = session.spawn("Read.", call=waiting(session)).fork("f")
    fork.ask("Begin.")

    fork.record(says("Done.", name="msg_f"))

    assert [call.id for call in session.pending_calls] == ["t1"]


def test_what_no_worker_can_do_is_refused(open_session: OpenSession, open_nexus: OpenNexus) -> None:
    session = open_session(tools=MANY)
    call = waiting(session)

    with pytest.raises(UsageError, match="needs a task"):
        session.spawn(" ")
    with pytest.raises(UsageError, match=r"must be one of session\.pending_calls"):
        session.spawn("Read.", call="t1")  # type: ignore[arg-type]
    with pytest.raises(TurnError, match=r"delegate .* is not pending"):
        open_session("other").spawn("Read.", call=call)
    with pytest.raises(FileError, match="no such directory"):
        session.spawn("Read.", cwd="nowhere")
    session.spawn("Read.", name="w")
    with pytest.raises(SessionExistsError):
        session.spawn("Read.", name="w", call=call)
    with pytest.raises(UnknownNameError, match="role 'worker'"):
        open_nexus(disable=["roles"]).session("s").spawn("Read.")


def test_workers_can_be_awaited(open_nexus: OpenNexus) -> None:
    async def work() -> list[str]:
        session = open_nexus().async_session("s", model="claude-sonnet-4", tools=MANY)
        await session.ask("Find out.")
        step = await session.record(calls("t1", "t2", tool="delegate"))

        async def run(call: Any) -> None:
            worker = await session.spawn(f"Read {call.id}.", call=call)
            await worker.ask("Begin.")
            await worker.record(says(f"Done {call.id}.", name=f"msg_{call.id}"))

        await asyncio.gather(*map(run, step.tool_calls))
        context = await session.next()
        await session.reload()
        assert (await session.replay(step.id)).messages == context.messages[:2]
        return [result.text for message in context.progress for result in message.tool_results]

    assert asyncio.run(work()) == ["Done t1.", "Done t2."]


def test_a_worker_is_told_its_task_by_what_is_kept(open_session: OpenSession, ledger: StoreLedger) -> None:
    worker = open_session().spawn("Read the log.")
    first = worker.ask("Begin.")

    again = open_session(worker.name, tools=None, model=None).next()

    assert again == first
    assert [step.kind for step in steps_of(ledger, worker.name)] == ["input", "input", "sealed"]
