"""Where a Nexus keeps conversations."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nexus_core import ConfigError, NexusClosedError, hookimpl
from nexus_core.errors import LedgerError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.testing import write_files
from tests.session.conftest import OpenNexus
from tests.session.support import TOOLS, calls, says


class Closing(MemoryLedger):
    """Says whether it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_conversations_are_kept_in_the_home(open_nexus: OpenNexus, nexus_home: Path) -> None:
    with open_nexus(ledger=None) as nexus:
        session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
        session.ask("Why?")
        session.record(calls("t1", "t2"))

    session = open_nexus(ledger=None).session("s")
    for call in session.pending_calls:
        session.record(call.result("found"))
    session.next()

    assert session.record(says("Because.", name="msg_2")).done
    assert (nexus_home / "ledger.db").is_file()


def test_several_programs_share_a_file(open_nexus: OpenNexus) -> None:
    session = open_nexus(ledger=None).session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask("Why?")
    step = session.record(calls(*(f"t{number}" for number in range(16))))

    def work(number: int) -> None:
        own = open_nexus(ledger=None).session("s")
        for call in step.tool_calls[number::4]:
            own.record(call.result(f"result {call.id}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    results = [result.text for message in session.next().progress for result in message.tool_results]
    assert results == [f"result t{number}" for number in range(16)]


def test_a_file_can_be_awaited(open_nexus: OpenNexus) -> None:
    async def converse() -> str:
        session = open_nexus(ledger=None).async_session("s", model="claude-sonnet-4", tools=TOOLS)
        await session.ask("Why?")
        step = await session.record(calls("t1", "t2", "t3"))
        await asyncio.gather(*(session.record(call.result("found")) for call in step.tool_calls))
        await session.next()
        return (await session.record(says("Because.", name="msg_2"))).text

    assert asyncio.run(converse()) == "Because."


def test_conversations_are_kept_where_the_users_settings_say(
    open_nexus: OpenNexus, nexus_home: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    write_files(nexus_home, {"config.json": json.dumps({"ledger": {"url": url}})})

    open_nexus(ledger=None).session("s", model="gpt-4o").ask("Why?")

    assert (tmp_path / "elsewhere.db").is_file()


def test_a_project_cannot_say_where_conversations_are_kept(
    open_nexus: OpenNexus, nexus_home: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    write_files(tmp_path / "work", {".nexus3/config.json": json.dumps({"ledger": {"url": url}})})

    open_nexus(ledger=None).session("s", model="gpt-4o").ask("Why?")

    assert not (tmp_path / "elsewhere.db").exists()
    assert (nexus_home / "ledger.db").is_file()


def test_a_url_that_no_plugin_knows_is_an_error(open_nexus: OpenNexus) -> None:
    with pytest.raises(LedgerError, match="carrier-pigeon"):
        open_nexus(ledger="carrier-pigeon://coop").session("s").ask("Why?")


def test_nothing_is_opened_before_something_is_said(open_nexus: OpenNexus, nexus_home: Path) -> None:
    with open_nexus(ledger=None) as nexus:
        nexus.session("s", model="gpt-4o")

    assert not (nexus_home / "ledger.db").exists()


def test_closing_closes_what_was_opened_and_not_what_was_given(open_nexus: OpenNexus) -> None:
    given, opened = Closing(), Closing()
    with open_nexus(ledger=given) as nexus:
        nexus.session("s", model="gpt-4o").ask("Why?")

    class Opening:
        @hookimpl
        def nexus_ledger(self, url: str) -> Closing | None:
            return opened if url == "mine:" else None

    with open_nexus(ledger="mine:", plugins=[Opening()]) as nexus:
        nexus.session("s", model="gpt-4o").ask("Why?")

    assert (given.closed, opened.closed) == (0, 1)


@pytest.mark.parametrize("ledger", ["memory:", MemoryLedger()])
def test_a_session_of_a_closed_nexus_is_an_error(open_nexus: OpenNexus, ledger: object) -> None:
    nexus = open_nexus(ledger=ledger)
    session = nexus.session("s", model="gpt-4o")
    session.ask("Why?")

    nexus.close()

    with pytest.raises(NexusClosedError):
        nexus.session("t")
    with pytest.raises(NexusClosedError):
        session.next()


def test_a_strategy_that_nobody_offers_is_an_error(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"truncation": {"strategy": "newest"}})})

    with pytest.raises(ConfigError, match="newest"):
        open_nexus().session("s", model="gpt-4o").ask("Why?")


@pytest.mark.parametrize("module", ["nexus_core.session", "nexus_core.types.assembled", "asyncio", "sqlite3", "yaml"])
def test_showing_a_prompt_needs_no_session(tmp_path: Path, module: str) -> None:
    code = "import sys; from nexus_core import Nexus; Nexus(installed=False).system_prompt(); print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True
    ).stdout.split()

    assert module not in loaded


def test_a_session_that_waits_needs_no_event_loop_and_no_memory(tmp_path: Path) -> None:
    code = (
        "import sys; from nexus_core import Nexus; "
        "Nexus(installed=False, ledger='memory:').session('s', model='gpt-4o').ask('Why?'); print(*sys.modules)"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True
    ).stdout.split()

    assert "nexus_core.session" in loaded
    assert not {"asyncio", "sqlite3", "typer", "nexus_core.memory", "nexus_core.request.memories"} & set(loaded)
