"""What is said about a session counts until something else is said, and there is a way back to what is usual."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import FileError, UnknownNameError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.transfer.exporter import import_export, read_export
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.ledger import Step
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import calls, says

GUIDES = {
    f".nexus3/skills/{name}/SKILL.md": f"---\nname: {name}\ndescription: A guide.\n---\nRead.\n"
    for name in ("logs", "shop")
}


def told_skills(context: AssembledContext) -> set[str]:
    return {name for name in ("logs", "shop") if name in context.system_prompt}


def test_skills_stay_until_others_are_named_and_all_come_back_by_name(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)
    nexus = open_nexus()
    given: list[Any] = [None, ["logs"], None, [], None, "all", None]
    told = []

    for number, skills in enumerate(given):
        session = nexus.session("s", model="gpt-4o", role="worker", task="Read.", skills=skills)
        told.append(told_skills(session.ask("Why?")))
        session.record(says("So.", name=f"msg_{number}"))

    both, logs, none = {"logs", "shop"}, {"logs"}, set[str]()
    assert told == [both, logs, logs, none, none, both, both]


def test_model_named_within_a_turn_is_not_kept_without_a_reply(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    nexus.session("s", model="gpt-4o").ask("Why?")
    nexus.session("s").record(calls("t1"))
    other = nexus.session("s", model="gpt-typo")
    other.record([call.result("x") for call in other.pending_calls])
    failed = other.next()

    after = nexus.session("s").ask("Again?", interrupt=True)

    assert (failed.model, after.model) == ("gpt-typo", "gpt-4o")


@pytest.mark.parametrize("second", [None, "gpt-typo", "gpt-other-typo"])
def test_first_model_without_a_reply_does_not_come_back(
    open_nexus: OpenNexus, nexus_home: Path, second: str | None
) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "gpt-4o"}}'})
    nexus = open_nexus()
    asked = []

    for model in ("gpt-typo", second, None, None):
        session = nexus.session("s", model=model)
        asked.append(session.ask("Why?").model)
        session.interrupt()

    assert asked == ["gpt-typo", second or "gpt-4o", "gpt-4o", "gpt-4o"]


def test_a_worker_may_be_told_of_all_skills_by_that_name(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)

    assert told_skills(open_session().spawn("Read.", skills="all").ask("Begin.")) == {"logs", "shop"}


def test_a_request_without_a_session_may_ask_for_all_skills(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)
    nexus = open_nexus()
    said: dict[str, Any] = {"role": "worker", "task": "Read.", "message": "Why?"}

    assert told_skills(nexus.assemble(nexus.request(**said, skills="all"))) == {"logs", "shop"}
    assert told_skills(nexus.assemble(nexus.request(**said, skills=["shop"]))) == {"shop"}
    with pytest.raises(UsageError, match="remembers which skills") as caught:
        nexus.request(**said, session="s", skills="all")
    assert caught.value.hint == "nexus.session('s', skills=\"all\") takes it back to all"


@pytest.mark.parametrize("said", ["", "logs"])
def test_one_word_in_place_of_skills_is_refused(open_nexus: OpenNexus, said: str) -> None:
    with pytest.raises(UsageError, match="skills must be a list") as caught:
        open_nexus().session("s", skills=said)

    assert caught.value.hint == f'skills=[{said!r}], or skills="all"'


@pytest.mark.parametrize(("tools", "offered"), [(None, ["look"]), ([], []), ((), [])])
def test_a_request_says_nothing_of_tools_or_that_there_are_none(
    open_session: OpenSession, open_nexus: OpenNexus, tools: Any, offered: list[str]
) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("So."))
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(session="s", message="And?", tools=tools))

    assert [tool.name for tool in context.tools] == offered
    assert [tool.name for tool in nexus.session("s", tools=tools).preview("And?").tools] == offered


@pytest.mark.parametrize(("permissions", "granted"), [(None, ("write",)), ([], ())])
def test_a_request_says_nothing_of_permissions_or_that_there_are_none(
    open_session: OpenSession, open_nexus: OpenNexus, permissions: Any, granted: tuple[str, ...]
) -> None:
    session = open_session(permissions=["write"])
    session.ask("Why?")
    session.record(says("So."))
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(session="s", message="And?", permissions=permissions))

    assert context.permissions_granted[1:] == granted


def told_mode(context: AssembledContext) -> str:
    """The mode that the model reads; "" for none."""
    lines = context.system_prompt.splitlines()
    return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), "")


REPL, SERVER = "Interactive REPL", "HTTP JSON-RPC Server"


@pytest.mark.acceptance("P-08")
def test_a_mode_stays_until_another_is_named_and_an_empty_word_takes_it_back(open_nexus: OpenNexus) -> None:
    given: list[Any] = [None, "server", None, "repl", "server", ""]
    told = []

    for number, mode in enumerate(given):
        session = open_nexus().session("s", model="gpt-4o", mode=mode)
        told.append(told_mode(session.ask("Why?")))
        session.record(says("So.", name=f"msg_{number}"))

    assert told == ["", SERVER, SERVER, REPL, SERVER, ""]


def test_another_mode_begins_a_new_epoch(open_session: OpenSession) -> None:
    usual = open_session().ask("Why?").epoch

    epochs = {open_session(mode=mode).next().epoch for mode in ("repl", "server")}

    assert len({usual, *epochs}) == 3
    assert open_session(mode="").next().epoch not in epochs


def test_the_awaited_session_and_a_request_take_a_mode_too(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.async_session("s", model="gpt-4o", mode="server")

    assert told_mode(asyncio.run(session.ask("Why?"))) == SERVER
    assert told_mode(nexus.assemble(nexus.request(mode="server", message="Why?"))) == SERVER
    assert told_mode(nexus.assemble(nexus.request(session="s"))) == SERVER
    assert told_mode(nexus.assemble(nexus.request(session="s", mode="repl"))) == REPL
    assert told_mode(nexus.assemble(nexus.request(message="Why?"))) == ""


def test_a_worker_is_in_no_repl_although_its_maker_is(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session(mode="repl")
    session.ask("Why?")
    session.record(says("So."))

    worker = session.spawn("Look.")

    assert told_mode(worker.ask("Begin.")) == ""
    assert told_mode(worker.spawn("Look closer.").ask("Begin.")) == ""
    assert told_mode(session.fork("second").ask("And?")) == REPL
    record = ledger.session(worker.name)
    assert record is not None
    assert record.payload.mode is None


def test_a_worker_and_a_fork_of_a_server_are_driven_as_their_maker_is(open_session: OpenSession) -> None:
    session = open_session(mode="server")
    session.ask("Why?")
    step = session.record(says("So."))

    assert told_mode(session.spawn("Look.").ask("Begin.")) == SERVER
    assert told_mode(session.fork("second").ask("And?")) == SERVER
    assert told_mode(session.replay(step.id)) == SERVER


def test_a_session_of_a_server_goes_on_when_a_file_cannot_be_read(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be kind.\n"})
    open_session(mode="server").ask("Why?")
    (tmp_path / "work" / "NEXUS.md").unlink()
    (tmp_path / "work" / "NEXUS.md").mkdir()

    assert told_mode(open_session().next()) == SERVER
    with pytest.raises(FileError):
        open_session(mode="repl").next()


def test_an_unknown_mode_is_refused_at_once_with_the_nearest(open_nexus: OpenNexus) -> None:
    with pytest.raises(UnknownNameError, match="unknown mode 'sever'") as caught:
        open_nexus().session("s", mode="sever")  # type: ignore[arg-type] # what is tested

    assert "server" in str(caught.value.hint)


# ---- sessions from before -----------------------------------------------------------------------------------

SAMPLE = Path(__file__).parent / "samples/session-without-mode.jsonl"
"""A session with an open turn, written when a session without a mode worked in `repl`."""


@pytest.fixture
def old(ledger: StoreLedger) -> str:
    import_export(ledger, read_export(SAMPLE.read_text(encoding="utf-8"), SAMPLE.name))
    return "bakery"


@pytest.mark.acceptance("P-08")
def test_an_old_session_goes_on_without_a_mode_and_announces_nothing_about_it(
    open_nexus: OpenNexus, tmp_path: Path, old: str
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Bake bread.\n"})
    session = open_nexus().session(old, any_directory=True)

    context = session.next()
    session.record(says("Sourdough."))
    later = session.ask("How long?")

    assert (told_mode(context), told_mode(later)) == ("", "")
    assert context.epoch == later.epoch
    assert not any("Environment" in str(message) for message in (*context.messages, *later.messages))


def test_an_old_session_replays_as_it_was_sent(open_nexus: OpenNexus, ledger: StoreLedger, old: str) -> None:
    nexus = open_nexus()
    nexus.session(old, any_directory=True).next()
    reply = next(step for step in _steps(ledger, old) if step.kind == "reply")

    assert nexus.replay(reply.id).system_prompt.endswith("Host: build-7\nMode: Interactive REPL\n")


@pytest.mark.parametrize("mode", [None, "repl"])
def test_an_old_session_goes_on_when_a_file_cannot_be_read(
    open_nexus: OpenNexus, tmp_path: Path, old: str, mode: Any
) -> None:
    (tmp_path / "work" / "NEXUS.md").mkdir(parents=True)

    assert told_mode(open_nexus().session(old, mode=mode, any_directory=True).next()) == REPL


def test_an_old_session_is_not_taken_for_that_of_a_server(open_nexus: OpenNexus, tmp_path: Path, old: str) -> None:
    (tmp_path / "work" / "NEXUS.md").mkdir(parents=True)

    with pytest.raises(FileError):
        open_nexus().session(old, mode="server", any_directory=True).next()


def _steps(ledger: StoreLedger, label: str) -> Sequence[Step]:
    record = ledger.session(label)
    assert record is not None
    assert record.tip is not None
    return ledger.thread(record.tip)


# ---- a system prompt of the caller's --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-02")
def test_system_prompt_takes_the_place_of_everything_loaded_until_it_is_taken_back(
    open_nexus: OpenNexus, tmp_path: Path
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Run make check."})
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", system_prompt="You are a specialist.")

    first = session.ask("Why?")
    reply = session.record(says("So."))
    second = nexus.session("s").preview("And?")
    loaded = nexus.session("s", system_prompt="").preview("And?")

    assert (first.system_prompt, second.system_prompt) == ("You are a specialist.", "You are a specialist.")
    assert first.token_budget.used["system"] == sum(
        each.tokens for each in first.placements if each.zone == "static" and each.kind != "tool"
    )
    assert "Run make check." in loaded.system_prompt
    assert open_nexus().replay(reply).system_prompt == "You are a specialist."


@pytest.mark.acceptance("S-02")
def test_change_of_the_system_prompt_counts_at_once(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", system_prompt="You are a specialist.")
    session.ask("Why?")
    session.record(says("So."))

    assert nexus.session("s", system_prompt="You are a poet.").ask("And?").system_prompt == "You are a poet."


@pytest.mark.acceptance("S-02")
def test_worker_is_spawned_with_a_system_prompt_of_its_own(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Run make check."})
    session = open_session()
    session.ask("Why?")

    worker = session.spawn("Read the log.", system_prompt="You read logs.")

    assert worker.ask("Begin.").system_prompt == "You read logs."
    assert "Run make check." in session.next().system_prompt


@pytest.mark.parametrize("given", [3, ["You"], b"You"])
def test_system_prompt_must_be_text(open_session: OpenSession, given: Any) -> None:
    with pytest.raises(UsageError, match="system_prompt must be text"):
        open_session(system_prompt=given)


# ---- a profile ------------------------------------------------------------------------------------------------------


ADA = {"prompt_overrides": {"friends_profile": "Ada likes green tea."}}


def knows_ada(context: AssembledContext) -> bool:
    return "Ada likes green tea." in str(context.messages)


def test_profile_given_once_stays_until_another_is_given(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", renderer="tagged")
    bob = {"prompt_overrides": {"friends_profile": "Bob likes coffee."}}
    told = []

    for number, profile in enumerate([None, ADA, None, bob, None, {}, None]):
        context = nexus.session("s").ask("Why?", profile=profile) if number else session.ask("Why?")
        told.append(("Ada" in str(context.messages), "Bob" in str(context.messages)))
        step = session.record(says("So.", name=f"msg_{number}"))
        assert nexus.replay(step).messages == context.messages

    ada, bob_only, nobody = (True, False), (False, True), (False, False)
    assert told == [nobody, ada, ada, bob_only, bob_only, nobody, nobody]


def test_preview_and_fork_know_the_profile_and_a_worker_does_not(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="gpt-4o", renderer="tagged")
    session.ask("Why?", profile=ADA)
    session.record(says("So."))

    assert knows_ada(session.preview("And?"))
    assert knows_ada(nexus.assemble(nexus.request(session="s", message="And?")))
    assert knows_ada(session.fork("other").ask("And?"))
    assert not knows_ada(session.preview("And?", profile={}))
    assert not knows_ada(session.spawn("Read the log.").ask("Begin."))
