"""Every reason why a session is not compacted, as `Session.preview_compaction` gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core.compaction.compact import CompactionPreview
from nexus_core.errors import BudgetError, TurnError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.session.compacted import AVAILABLE, Fake, Words, compactions, configure, exchange, long_session
from tests.session.conftest import OpenNexus
from tests.session.support import kinds_of, steps_of


def preview(session: Session) -> tuple[CompactionPreview, str, str]:
    """The preview, and the codes of its two reasons."""
    found = session.preview_compaction()
    return found, found.reason.code if found.reason else "", found.automatic.code if found.automatic else ""


def test_session_without_a_turn_is_empty(open_nexus: OpenNexus) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="words")

    found, reason, automatic = preview(session)

    assert (found.report, reason, automatic) == (None, "empty", "empty")


def test_preview_has_the_plan_and_stores_nothing(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake()
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 8)
    before = kinds_of(ledger, "s")

    found, reason, _ = preview(session)

    assert found.report == session.compact(dry_run=True)
    assert (reason, fake.asked, kinds_of(ledger, "s")) == ("", [], before)


def test_call_below_the_trigger_is_not_compacted_automatically(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 5)

    found, reason, automatic = preview(session)

    assert (reason, automatic) == ("", "below-trigger")
    assert found.report is not None
    assert found.automatic is not None
    assert found.automatic.message.endswith(f"tokens, and compaction begins at {AVAILABLE:,}")
    assert f"{found.report.tokens_before:,} tokens" in found.automatic.message


def test_disabled_compaction_still_works_on_request(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, enabled=False)
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)

    found, reason, automatic = preview(session)

    assert (reason, automatic) == ("", "disabled")
    assert found.automatic is not None
    assert found.automatic.message == "compaction.enabled is false"


def test_call_over_the_trigger_is_compacted_automatically(open_nexus: OpenNexus, nexus_home: Path) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    configure(nexus_home, trigger_tokens=600)
    again = open_nexus(plugins=[Words()], summarize=Fake()).session("s")
    assert session.preview_compaction().report is not None

    found, reason, automatic = preview(again)

    assert found.report is not None
    assert (reason, automatic) == ("", "")


def test_turns_that_are_kept_leave_nothing_to_summarize(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, keep_turns=4)
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 4)

    found, reason, _ = preview(session)

    assert reason == "nothing-to-summarize"
    assert found.reason is not None
    assert "(4 at least)" in found.reason.hint
    assert session.compact() is None


def test_few_tokens_are_not_worth_a_summary(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 4, words=10)

    found, reason, _ = preview(session)

    assert (found.report, reason) == (None, "too-little")
    assert session.compact() is None


@pytest.mark.parametrize("setting", [{"trigger_tokens": 300}, {"trigger_turns": 4}], ids=lambda each: next(iter(each)))
def test_before_the_limit_little_savings_are_not_worth_it(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, setting: dict[str, int]
) -> None:
    configure(nexus_home, **setting)
    session = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="words")
    for number, words in enumerate((55, 130, 130, 130)):
        exchange(session, number, words)
    session.ask("And?")

    found, _, automatic = preview(session)

    assert automatic == "not-worth-it"
    assert found.automatic is not None
    assert found.automatic.message.startswith("it would free ")
    assert not compactions(ledger)


def test_two_compactions_since_the_last_reply_are_a_cooldown(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    for number in range(4):
        session.ask(f"question {number} " + "word " * 350)
        session.interrupt()
    context = session.ask("And? " + "word " * 350)

    found, _, automatic = preview(session)

    assert len(compactions(ledger)) == 2
    assert automatic == "cooldown"
    assert found.automatic is not None
    (finding,) = (each for each in context.findings if each.code == "compaction-stopped")
    assert finding.message == f"earlier turns are not summarized: {found.automatic.message}"


def test_two_small_savings_in_a_row_stop_automatic_compaction(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, evidence=False)
    fake = Fake(lambda request: "word " * request.max_tokens)
    session = open_nexus(plugins=[Words()], summarize=fake).session("s", model="words")
    for number, words in enumerate((53, 53, 130, 130)):
        exchange(session, number, words)
    assert session.compact()
    exchange(session, 4, 130)
    assert session.compact()
    context = session.ask("And? " + "word " * 170)

    found, _, automatic = preview(session)

    assert automatic == "small-savings"
    assert found.automatic is not None
    assert found.automatic.message.startswith("the last two compactions saved only ")
    assert f"earlier turns are not summarized: {found.automatic.message}" in [each.message for each in context.findings]


def test_pins_that_do_not_fit_are_an_error_of_the_preview(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)
    for step in steps_of(ledger, "s")[:6]:
        if step.kind in ("input", "reply"):
            session.pin(step.id)
    write_files(nexus_home, {"config.json": json.dumps({"models": {"words": {"window": 200}}})})

    with pytest.raises(BudgetError, match="do not fit into") as caught:
        open_nexus(plugins=[Words()], summarize=Fake()).session("s").preview_compaction()

    assert caught.value.parts["pinned"] > 100


def test_archived_session_is_an_error_of_the_preview(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    ledger.update("s", status="archived")

    with pytest.raises(TurnError, match="is archived"):
        session.preview_compaction()
