"""Summarizers that fail in every way: few calls, a typed result, and a ledger that is as it was."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import SummaryError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.types.compaction import SummaryRequest
from tests.session.compacted import AVAILABLE, Fake, Words, compactions, configure, long_session
from tests.session.conftest import OpenNexus
from tests.session.support import compaction_of, kinds_of, says

pytestmark = pytest.mark.usefixtures("no_session_start")

Answer = Callable[[SummaryRequest], Any]


def hang(_: SummaryRequest) -> str:
    threading.Event().wait(20)
    return "too late"


FAULTS: dict[str, Any] = {
    "nothing": "",
    "blanks": " \n\t ",
    "no text": 17,
    "None": lambda _: None,
    "bytes": b"\xff\xfe\x00",
    "longer": lambda _: "longer " * 4000,
    "the same": lambda request: "\n".join(message.content for message in request.messages),
    "the prompt": lambda request: request.prompt,
    "an error": ValueError("no"),
    "a time-out": TimeoutError("too slow"),
    "a refusal": "I'm sorry, but I can't help with that.",
    "garbage": "\x00\x01\x02\ufffd" * 20,
    "lone surrogates": "They counted \ud83d numbers.",
    "exits": SystemExit(1),
    "hangs": hang,
}


def patience(fault: str) -> float:
    """Seconds that a summarizer has: few for the one that takes all of them, and enough for everyone else."""
    return 0.1 if fault == "hangs" else 60


@pytest.mark.parametrize("fault", FAULTS)
def test_a_summarizer_that_fails_changes_nothing(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, fault: str
) -> None:
    configure(nexus_home, summarizers=["given"], timeout=patience(fault))
    fake = Fake(FAULTS[fault])
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 6)
    before, messages = kinds_of(ledger, "s"), session.messages

    with pytest.raises(SummaryError, match="the conversation could not be summarized: given "):
        session.compact()

    assert len(fake.asked) == 1
    assert kinds_of(ledger, "s") == before
    assert session.messages == messages


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_goes_out_all_the_same_with_less_in_it(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, fault: str
) -> None:
    configure(nexus_home, summarizers=["given"], timeout=patience(fault))
    fake = Fake(FAULTS[fault])
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 8)

    first = session.ask("word " * 300)
    again = session.next()

    assert len(fake.asked) == 1
    assert [finding.code for finding in first.findings] == ["compaction-failed"]
    assert not compactions(ledger)
    (decision,) = first.decisions
    assert (decision.action, decision.rule) == ("dropped", "oldest_first")
    assert first.token_budget.total <= AVAILABLE
    assert again.messages == first.messages


@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_one_is_asked_and_it_is_written_down_who_failed(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, fault: str
) -> None:
    configure(nexus_home, timeout=patience(fault))
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake(FAULTS[fault])), 6)

    report = session.compact()

    assert report is not None
    assert report.summarizer == "extractive"
    assert [name for name, _ in report.failures] == ["given"]
    assert report.calls == 2
    (step,) = compactions(ledger)
    assert compaction_of(step).failures == [list(each) for each in report.failures]
    json.dumps(step.payload.to_json()).encode()


def test_in_one_turn_nobody_is_asked_again_who_could_not(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, summarizers=["given"], trigger_ratio=0.5)
    fake = Fake(ValueError("no"))
    session = long_session(open_nexus(plugins=[Words()], summarize=fake), 3)
    turns = 0
    for number in range(6):
        session.ask(f"question {number} " + "word " * 60)
        turns += 1
        for _ in range(3):
            session.next()
        session.record(says("so", name=f"answer_{number}"))

    assert 1 <= len(fake.asked) <= turns


def test_whoever_gives_something_else_than_a_function_is_told_at_once(open_nexus: OpenNexus) -> None:
    with pytest.raises(UsageError, match="summarize must be a function, not of type str"):
        open_nexus(summarize="haiku")


def test_an_error_says_what_failed_and_no_secret(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, summarizers=["given"])
    secret = "sk-ant-api03-" + "A1b2C3d4E5" * 9
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake(ValueError(f"bad key {secret}"))), 6)

    with pytest.raises(SummaryError) as caught:
        session.compact()

    assert "bad key" in str(caught.value)
    assert secret not in str(caught.value)
    assert "extractive" in str(caught.value.hint)


# ---- asynchronous -------------------------------------------------------------------------------------------------


async def slowly(request: SummaryRequest) -> str:
    await asyncio.sleep(0)
    return f"They counted {len(request.messages)} messages."


def test_a_summarizer_may_be_awaited_by_those_who_do_not_await(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=slowly), 6)

    report = session.compact()

    assert report is not None
    assert report.summarizer == "given"
    assert "They counted 6 messages." in report.summary


def test_also_inside_an_event_loop(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=slowly), 6)

    async def inside() -> str:
        report = session.compact()
        assert report is not None
        return report.summarizer

    assert asyncio.run(inside()) == "given"


def test_an_async_session_does_the_same(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Words()], summarize=slowly)
    long_session(nexus, 8)
    session = nexus.async_session("s")

    async def program() -> None:
        trial = await session.compact(dry_run=True)
        report = await session.compact(focus="numbers")
        assert trial is not None
        assert report is not None
        assert trial.first_kept == report.first_kept
        steps = await session.expand(str(report.step))
        assert len(steps) == 15
        assert (await session.undo()).compaction == report.step
        await session.ask("Why?")
        await session.record(says("Because.", name="msg_a"))
        assert await session.pin(steps[0].id)
        assert await session.unpin(steps[0].id)
        context = await session.ask("word " * 300)
        assert [finding.code for finding in context.findings] == ["compacted"]
        assert context.token_budget.total > 0.4 * AVAILABLE
        await session.record(says("word " * 30, name="msg_b"))
        for number in range(4):
            await session.ask("word " * 30)
            await session.record(says("word " * 30, name=f"msg_b{number}"))
        context = await session.ask("Why?")
        refused = ValueError("prompt is too long")
        shorter = await session.recover(refused)
        assert shorter.token_budget.total < context.token_budget.total
        with pytest.raises(ValueError, match="prompt is too long"):
            await session.recover(refused)

    asyncio.run(program())
    assert len(compactions(ledger)) == 3


@pytest.mark.parametrize("fault", ["never", "raises"])
def test_an_awaited_summarizer_that_fails_is_left_behind(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, fault: str
) -> None:
    configure(nexus_home, summarizers=["given"], timeout=0.1)

    async def summarize(_: SummaryRequest) -> str:
        if fault == "raises":
            raise ValueError("no")
        await asyncio.sleep(60)
        return "too late"

    nexus = open_nexus(plugins=[Words()], summarize=summarize)
    long_session(nexus, 6)
    before = kinds_of(ledger, "s")

    async def program() -> None:
        with pytest.raises(SummaryError, match="given"):
            await nexus.async_session("s").compact()

    asyncio.run(program())
    with pytest.raises(SummaryError, match="given"):
        nexus.session("s").compact()
    assert kinds_of(ledger, "s") == before


# ---- servers ------------------------------------------------------------------------------------------------------


class Refusing(BaseHTTPRequestHandler):
    """A server that refuses everything in the same way."""

    status = 500
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"\xff\xfe garbage" if self.status == 200 else b'{"error": {"message": "no"}}'
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(params=[413, 429, 500, 200])
def refusing(request: pytest.FixtureRequest) -> Iterator[tuple[str, type[Refusing]]]:
    """The address of such a server."""
    handler = type("Handler", (Refusing,), {"status": request.param, "asked": 0})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", handler
    server.shutdown()
    thread.join()
    server.server_close()


def settings_for(url: str) -> dict[str, Any]:
    endpoint = {"api": "openai", "model": "m", "base_url": url, "key_env": "SOME_KEY", "max_retries": 0}
    return {
        "plugins": {"providers": {"endpoints": {"refusing": endpoint}}},
        "compaction": {"summarizers": ["refusing", "extractive"], "timeout": 5},
    }


def test_a_server_that_refuses_is_followed_by_the_one_without_a_model(
    open_nexus: OpenNexus,
    ledger: StoreLedger,
    nexus_home: Path,
    refusing: tuple[str, type[Refusing]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("nexus_plugins.providers")
    monkeypatch.setenv("SOME_KEY", "k")
    url, handler = refusing
    nexus = open_nexus(plugins=[Words()])
    session = long_session(nexus, 6)
    write_files(nexus_home, {"config.json": json.dumps(settings_for(url))})

    report = nexus.session("s").compact()

    assert report is not None
    assert report.summarizer == "extractive"
    times = 2 if handler.status == 413 else 1  # what is too large is sent in pieces then
    assert [name for name, _ in report.failures] == ["refusing"] * times
    assert handler.asked == times
    assert session.messages[0].extra["_summary"] == compactions(ledger)[0].id
