"""A key goes to its endpoint and nowhere else: not into an error, a log, a traceback, a summary or a file."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import NexusError
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers
from nexus_core.errors import SummaryError
from nexus_core.plugin import Summarizer, estimate
from nexus_core.runner import run
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.messages import Message
from nexus_plugins.providers._command import CommandSummarizer
from nexus_plugins.providers._secrets import Secret, read_secrets
from nexus_plugins.providers._summarizers import EndpointSummarizer
from tests.conftest import Cli
from tests.plugins.providers.endpoints import GOOD, SUMMARY, Answer, chat, request, serving, summarizer

# No pattern knows it: nothing but the value itself tells that it is a key.
KEY = "plainwords-Correct-Horse-Battery-Staple"
OTHER = "another:Secret:of:the:user"

ANSWERS = {
    "an echo": Answer({"error": {"message": f"Wrong key: Bearer {KEY} {OTHER}"}}, 401),
    "an echo that is cut": Answer({"error": {"message": "x" * 290 + KEY}}, 401),
    "an echo that is no json": Answer(f"no such key {KEY} {OTHER}".encode(), 403),
    "an echo in a place": Answer(b"", 302, {"Location": f"http://127.0.0.1:9/?key={KEY}"}),
    "an echo after success": Answer({"error": {"message": KEY}}),
    "an echo that refuses": Answer(chat(None, refusal=f"I cannot tell {KEY}")),
    "an echo in escapes": Answer(
        "".join(f"\\u{ord(each):04x}" for each in KEY).join(['{"error": "', '"}']).encode(), 400
    ),
    "trouble": Answer({"error": {"message": KEY}}, 500),
    "no http": Answer(f"HTTP/9 {KEY}\r\n\r\n".encode(), raw=True),
    "nothing": Answer(b"", raw=True),
    "too long": Answer({}, 413),
    "hang": Answer(raw=True, pause=1),
}
IN_THE_BEGINNING = ("an echo in a place", "no http")


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setenv("SOME_HEADER", OTHER)


def asked(url: str) -> EndpointSummarizer:
    return summarizer(url, key_env="SOME_KEY", headers={"X-Other": "SOME_HEADER"})


def everything_of(error: BaseException) -> Iterator[str]:
    """All that anybody could print of an error: with the variables of every frame, and of all that led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield repr(seen)
        yield str(seen)
        yield repr(vars(seen))
        told = traceback.TracebackException.from_exception(seen, capture_locals=True)
        # The frames of a test hold what it planted.
        told.stack = traceback.StackSummary.from_list(frame for frame in told.stack if "/tests/" not in frame.filename)
        yield from told.format()
        seen = seen.__context__


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("name", ANSWERS)
def test_no_error_shows_the_key_wherever_one_looks(
    name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # Whoever switches on httpcore2's own debug log sees what servers put into the beginning of their answers.
    caplog.set_level(logging.INFO if name in IN_THE_BEGINNING else logging.DEBUG)

    with serving(ANSWERS[name]) as server, pytest.raises(NexusError) as caught:
        asked(server.url)(request(timeout=0.5 if name == "hang" else 30))

    assert server.heard.wait(60)  # who hangs may have heard later than it was given up
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["X-Other"] == OTHER
    shown = [*everything_of(caught.value), caplog.text, *capfd.readouterr()]
    assert not [text for text in shown if KEY in text or OTHER in text]
    assert not [text for text in shown if "Horse-Battery" in text]


@pytest.mark.acceptance("T10")
def test_neither_does_what_the_chain_raises() -> None:
    messages = [Message("user", "word " * 50)] * 9

    with serving(ANSWERS["an echo"]) as server:
        work = ask_summarizers(
            SummaryTask(messages, 99), [Summarizer(name="fast", summarise=asked(server.url))], estimate
        )
        with pytest.raises(SummaryError) as caught:
            run(work)

    assert not [text for text in everything_of(caught.value) if KEY in text or OTHER in text]


@pytest.mark.acceptance("T10")
def test_a_key_that_an_endpoint_puts_into_the_summary_is_taken_out() -> None:
    with serving(Answer(chat(f"He used {KEY}."))) as server:
        assert asked(server.url)(request()) == "He used [key]."


def test_a_word_that_stands_in_for_a_key_stays_in_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "ollama")

    with serving(Answer(chat("He uses ollama."))) as server:
        assert asked(server.url)(request()) == "He uses ollama."


def test_success_is_logged_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    with serving(GOOD["openai"]) as server:
        assert asked(server.url)(request()) == SUMMARY

    assert caplog.records
    assert KEY not in caplog.text


def test_a_secret_is_printed_copied_and_written_by_nothing() -> None:
    secrets = read_secrets(["SOME_KEY"])
    secret = Secret(KEY)

    assert KEY not in f"{secret} {secret!r} {secrets} {[secret]} {vars(type(secret))}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.deepcopy(secrets)
    with pytest.raises(TypeError):
        json.dumps(secret)


def test_the_key_is_read_when_it_is_needed_and_kept_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(GOOD["openai"]) as server:
        fast = asked(server.url)
        monkeypatch.setenv("SOME_KEY", "rotated-key-of-today")
        fast(request())

    assert server.headers[0]["Authorization"] == "Bearer rotated-key-of-today"
    assert KEY not in repr(fast)


# ---- in settings ------------------------------------------------------------------------------------------


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "endpoint",
    [
        {"api": "openai", "key_env": KEY},
        {"api": "openai", "headers": {"api-key": "0a1b2c3d4e5f60718293"}},
        {"api": "openai", "base_url": "https://me:0a1b2c3d4e5f60718293@example.org"},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_an_error_does_not_repeat_a_key_that_was_put_into_the_settings(
    cli: Cli, nexus_home: Path, endpoint: dict[str, Any], indent: int | None
) -> None:
    settings = {"plugins": {"providers": {"endpoints": {"fast": endpoint}}}}
    write_files(nexus_home, {"config.json": json.dumps(settings, indent=indent)})

    outcome = cli("show")

    assert outcome.code == 3
    assert "plugins.providers.endpoints.fast" in outcome.err
    assert "Horse-Battery" not in outcome.err
    assert "0a1b2c3d4e5f60718293" not in outcome.err


@pytest.mark.acceptance("T10")
def test_no_command_prints_the_key(cli: Cli, nexus_home: Path) -> None:
    endpoint = {"api": "openai", "key_env": "SOME_KEY", "headers": {"X-Other": "SOME_HEADER"}}
    settings = {"plugins": {"providers": {"endpoints": {"fast": endpoint}}}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})

    commands = (["show"], ["config", "show", "--origins"], ["doctor"], ["doctor", "--json"], ["plugin", "list"])
    outcomes = [cli(*words) for words in commands]

    printed = "".join(outcome.out + outcome.err for outcome in outcomes)
    assert "SOME_KEY" in printed
    assert KEY not in printed
    assert OTHER not in printed


def test_nothing_of_the_environment_is_in_what_a_summarizer_is(make_nexus: MakeNexus, nexus_home: Path) -> None:
    settings = {"plugins": {"providers": {"endpoints": {"fast": {"api": "openai", "key_env": "SOME_KEY"}}}}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    nexus = make_nexus()

    fast = nexus.host.summarizers(nexus.load()).get("fast")

    assert KEY not in repr(fast)


# ---- the command ------------------------------------------------------------------------------------------


@pytest.mark.acceptance("T10")
def test_what_a_command_is_given_does_not_come_back_in_its_errors_or_its_summary() -> None:
    complains = CommandSummarizer(("sh", "-c", 'echo "$SOME_KEY" >&2; exit 3'), variables=("SOME_KEY",))
    tells = CommandSummarizer(("sh", "-c", 'echo "He used $SOME_KEY."'), variables=("SOME_KEY",))
    missing = CommandSummarizer(("no-such-program-here",), variables=("SOME_KEY",))

    for broken in (complains, missing):
        with pytest.raises(NexusError) as caught:
            broken(request())
        assert not [text for text in everything_of(caught.value) if KEY in text]
    assert tells(request()) == "He used [key]."
