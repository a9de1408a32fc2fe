"""A name is for the whole ledger: what is said in another directory takes the conversation there, and says so."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, OtherDirectoryWarning
from nexus_core.errors import BudgetError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.types.assembled import AssembledContext
from tests.session.support import calls, says

pytestmark = pytest.mark.filterwarnings("ignore::nexus_core.errors.OtherDirectoryWarning")  # most look at findings

In = Callable[..., Nexus]


@pytest.fixture
def nexus_in(tmp_path: Path, nexus_home: Path, ledger: StoreLedger) -> Iterator[In]:  # noqa: ARG001 - the home must be in place
    """A Nexus in a directory of that name, over one ledger."""
    with ExitStack() as opened:

        def make(name: str, **arguments: Any) -> Nexus:
            (tmp_path / name).mkdir(exist_ok=True)
            given: dict[str, Any] = {"defaults": False, "ledger": ledger, **arguments}
            return opened.enter_context(Nexus(tmp_path / name, **given))

        yield make


def codes(context: AssembledContext) -> list[str]:
    return [finding.code for finding in context.findings]


def begun(nexus: Nexus, label: str = "main") -> None:
    """A conversation with one turn."""
    session = nexus.session(label, model="claude-sonnet-4")
    session.ask("Why?")
    session.record(says("So."))


def test_the_first_call_from_another_directory_names_both_and_says_what_to_do(nexus_in: In, tmp_path: Path) -> None:
    begun(nexus_in("pa"))

    [finding] = nexus_in("pb").session("main").ask("And here?").findings

    assert finding.code == "other-directory"
    assert finding.message == (
        f"session 'main' was last asked in {tmp_path / 'pa'}, and what was said there goes along to {tmp_path / 'pb'}; "
        "begin another under another name, or go on with it here: any_directory=True"
    )


def test_session_from_another_directory_is_a_warning_at_the_line_that_uses_it(
    nexus_in: In, ledger: StoreLedger
) -> None:
    begun(nexus_in("pa"))
    session = nexus_in("pb").session("main")

    with pytest.warns(OtherDirectoryWarning, match="was last asked in") as caught:
        session.ask("And here?")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.next()

    assert [each.filename for each in caught] == [__file__]
    assert ledger.session("main") is not None


def test_warning_that_is_an_error_comes_before_anything_is_written(nexus_in: In, ledger: StoreLedger) -> None:
    begun(nexus_in("pa"))
    before = ledger.session("main")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OtherDirectoryWarning):
            nexus_in("pb").session("main").ask("And here?")

    assert ledger.session("main") == before


def test_session_of_any_directory_goes_on_without_a_word(nexus_in: In) -> None:
    begun(nexus_in("pa"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codes(nexus_in("pb").session("main", any_directory=True).ask("And here?")) == []


def test_awaited_session_warns_and_can_be_allowed(nexus_in: In) -> None:
    begun(nexus_in("pa"))
    there = nexus_in("pb")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OtherDirectoryWarning):
            asyncio.run(there.async_session("main").preview("And here?"))
        assert codes(asyncio.run(there.async_session("main", any_directory=True).ask("And here?"))) == []


def test_whoever_goes_on_there_is_told_once(nexus_in: In) -> None:
    begun(nexus_in("pa"))
    session = nexus_in("pb").session("main")

    first = session.ask("And here?")
    again = session.next()
    session.record(says("So, too.", name="msg_2"))

    assert (codes(first), codes(again), codes(session.ask("Thanks."))) == (["other-directory"], [], [])
    assert codes(nexus_in("pb").session("main").next()) == []


def test_a_way_back_is_a_move_too(nexus_in: In) -> None:
    there = nexus_in("pa")
    begun(there)
    session = nexus_in("pb").session("main")
    session.ask("And here?")
    session.record(says("So, too.", name="msg_2"))

    assert codes(there.session("main").ask("Back.")) == ["other-directory"]


def test_a_turn_that_goes_on_elsewhere_says_so(nexus_in: In) -> None:
    session = nexus_in("pa").session("main", model="claude-sonnet-4")
    session.ask("Why?")

    assert codes(nexus_in("pb").session("main").next()) == ["other-directory"]


def test_who_only_looks_is_told_each_time_and_moves_nothing(nexus_in: In) -> None:
    here, there = nexus_in("pa"), nexus_in("pb")
    begun(here)

    for _ in range(2):
        assert codes(there.session("main").preview("And here?")) == ["other-directory"]
        assert codes(there.assemble(there.request(session="main", message="And here?"))) == ["other-directory"]
    assert codes(here.session("main").ask("Back.")) == []


def test_a_call_that_could_not_be_made_leaves_the_news_for_the_next(nexus_in: In, nexus_home: Path) -> None:
    begun(nexus_in("pa"))
    write_files(nexus_home, {"config.json": '{"models": {"own": {"window": 4000}}}'})
    session = nexus_in("pb").session("main", model="own")
    with pytest.raises(BudgetError):
        session.ask("word " * 9000)

    write_files(nexus_home, {"config.json": '{"models": {"own": {"window": 400000}}}'})

    assert codes(session.next()) == ["other-directory"]


def test_the_awaited_session_tells_it_too(nexus_in: In) -> None:
    begun(nexus_in("pa"))

    assert codes(asyncio.run(nexus_in("pb").async_session("main").ask("And here?"))) == ["other-directory"]


def test_a_session_in_which_nothing_was_said_brings_nothing_along(nexus_in: In, ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/somewhere/else"})

    assert codes(nexus_in("pb").session("main", model="gpt-4o").ask("Why?")) == []


def test_a_worker_stays_where_it_was_sent_and_says_nothing(nexus_in: In) -> None:
    session = nexus_in("pa").session("main", model="claude-sonnet-4", tools=[{"name": "look", "input_schema": {}}])
    session.ask("Why?")
    [call] = session.record(calls("t1")).tool_calls
    worker = session.spawn("Look.", call=call)
    worker.ask("Begin.")
    worker.record(says("Nothing."))

    assert codes(nexus_in("pb").session(worker.name).ask("Once more.")) == []
