"""Former names of the Python interface work for one more release, and the warning gives the new name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import nexus_core
from nexus_core import CompactionReport, Nexus, Session, errors
from nexus_core.plugin.ledgers import AliasRow, DeletionRow

ERRORS = {
    "ClosedError": "NexusClosedError",
    "ExistsError": "SessionExistsError",
    "PendingCalls": "PendingToolCallsError",
    "UnreachableError": "LedgerUnreachableError",
}
ATTRIBUTES = {"label": "name", "pending": "pending_calls", "said": "original_messages"}


@pytest.fixture
def session() -> Iterator[Session]:
    with Nexus(ledger="memory:") as nexus:
        session = nexus.session("work")
        session.ask("Hello")
        yield session


@pytest.mark.parametrize("module", [nexus_core, errors], ids=["nexus_core", "errors"])
@pytest.mark.parametrize(("old", "new"), ERRORS.items())
def test_former_name_of_an_error_is_the_same_class(module: object, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated .*use .*{new}") as warned:
        found = getattr(module, old)

    assert found is getattr(module, new)
    assert warned[0].filename == __file__


@pytest.mark.parametrize(("old", "new"), ATTRIBUTES.items())
def test_former_attribute_of_a_session_has_the_value_of_the_new_one(session: Session, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"Session.{old} is deprecated .*use Session.{new}") as warned:
        found = getattr(session, old)

    assert found == getattr(session, new)
    assert warned[0].filename == __file__


def test_former_methods_of_a_session_can_be_called(session: Session) -> None:
    step = session.record({"role": "assistant", "content": "Hi."})

    with pytest.warns(DeprecationWarning, match=r"use Session\.cache_report"):
        assert session.cache(step) == session.cache_report(step)
    with pytest.warns(DeprecationWarning, match=r"use Session\.report_result"):
        assert session.report() is None


def test_former_names_of_arguments_are_accepted(session: Session) -> None:
    with pytest.warns(
        DeprecationWarning, match=r"Session\.record\(given=…\) is deprecated .*reply_or_result="
    ) as warned:
        step = session.record(given={"role": "assistant", "content": "Hi."})  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match=r"Session\.fork\(label=…\)"):
        fork = session.fork(label="branch")  # type: ignore[call-arg]

    assert step.text == "Hi."
    assert fork.name == "branch"
    assert warned[0].filename == __file__


def test_former_names_work_for_async_sessions() -> None:
    async def talk(nexus: Nexus) -> str:
        session = nexus.async_session(label="work")  # type: ignore[call-arg]
        await session.ask("Hello")
        step = await session.record(given={"role": "assistant", "content": "Hi."})  # type: ignore[call-arg]
        return f"{session.label}: {step.text} {len(await session.said)}"

    with Nexus(ledger="memory:") as nexus, pytest.warns(DeprecationWarning, match="deprecated"):
        found = asyncio.run(talk(nexus))

    assert found == "work: Hi. 3"


@pytest.mark.parametrize("name", ["check", "fit", "repair"])
def test_short_names_stay_without_a_warning(name: str) -> None:
    assert getattr(nexus_core, name) is getattr(nexus_core, f"{name}_messages")


def test_a_name_that_never_was_is_still_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PendingCall'"):
        getattr(errors, "PendingCall")  # noqa: B009 - a type checker would see it


def test_former_field_of_a_compaction_report_has_the_value_of_the_new_one() -> None:
    report = CompactionReport(
        step=None,
        trigger="manual",
        turns=1,
        messages=2,
        first_kept=None,
        tokens_before=3,
        tokens_after=1,
        available=9,
        summarizer="extractive",
    )

    with pytest.warns(DeprecationWarning, match=r"use CompactionReport\.summarizer"):
        assert report.summariser == "extractive"


def test_former_methods_of_stored_rows_can_be_called() -> None:
    alias, deletion = AliasRow("notes", "01", 0), DeletionRow("02", 1, "01", "", 0, 0, 0)

    with pytest.warns(DeprecationWarning, match=r"use AliasRow\.with_digest") as warned:
        assert alias.sealed() == alias.with_digest()  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"use DeletionRow\.with_chain"):
        assert deletion.chained(None, []) == deletion.with_chain(None, [])  # type: ignore[attr-defined]

    assert warned[0].filename == __file__
