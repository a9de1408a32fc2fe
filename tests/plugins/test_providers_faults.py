"""Whatever an endpoint does wrong ends in one kind of error, in time, and after no more attempts than one may make."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import MissingExtraError
from nexus_core.compaction.chain import SummaryTask, ask_summarisers
from nexus_core.compaction.extractive import extractive_summariser
from nexus_core.compaction.overflow import read_overflow
from nexus_core.errors import SummaryError
from nexus_core.plugin import Summariser, estimate
from nexus_core.session.drivers import run
from nexus_core.values.message import Message
from nexus_plugins.providers import EndpointError, _sending
from nexus_plugins.providers._reading import NoSummary
from nexus_plugins.providers._formats import FORMATS
from nexus_plugins.providers._retry_after import read_retry_after
from tests.plugins.endpoints import GOOD, SUMMARY, Answer, chat, message, request, serving, summariser

NOW = 1_750_000_000.0


def failure(*answers: Answer, api: str = "openai", timeout: float = 30.0, **fields: Any) -> EndpointError:
    """What is raised after such answers."""
    with serving(*answers) as server, pytest.raises(EndpointError) as caught:
        summariser(server.url, api, **fields)(request(timeout=timeout))
    assert len(server.bodies) == caught.value.attempts
    return caught.value


def refused_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


# ---- what is tried again ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_passes_is_tried_again(status: int) -> None:
    waits: list[float] = []

    with serving(Answer({}, status), Answer({}, status), GOOD["openai"]) as server:
        summary = summariser(server.url, waits=waits)(request())

    assert (summary, len(server.bodies), waits) == (SUMMARY, 3, [0.5, 1.0])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_stays_wrong_is_not(status: int) -> None:
    error = failure(Answer({"error": {"message": "No."}}, status))

    assert (error.attempts, error.status, error.said) == (1, status, "No.")
    assert f"answered {status}: No." in error.what


def test_after_the_last_attempt_it_is_said_what_the_provider_said_and_how_often_it_was_asked() -> None:
    error = failure(Answer({"error": {"message": "Slow\ndown."}}, 429), max_retries=3)

    assert (error.attempts, error.status, error.said) == (4, 429, "Slow down.")
    assert error.what == "the endpoint answered 429: Slow down. (4 attempts)"
    assert error.where == "plugins.providers.endpoints.fast"


def test_without_retries_it_is_asked_once() -> None:
    assert failure(Answer({}, 500), max_retries=0).attempts == 1


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5, 1.0]), (1.0, [0.5, 1.0, 2.0])])
def test_waits_grow_and_chance_spreads_them(chance: float, waits: list[float]) -> None:
    waited: list[float] = []

    failure(Answer({}, 503), waits=waited, chance=chance, max_retries=3)

    assert waited == waits


def test_no_wait_is_longer_than_eight_seconds() -> None:
    waited: list[float] = []

    failure(Answer({}, 503), waits=waited, max_retries=8, timeout=600)

    assert waited[-3:] == [8.0, 8.0, 8.0]


def test_a_connection_that_is_refused_is_tried_again() -> None:
    waits: list[float] = []

    with pytest.raises(EndpointError, match="could not be reached") as caught:
        summariser(refused_port(), waits=waits)(request())

    assert (caught.value.attempts, caught.value.status, len(waits)) == (3, None, 2)


@pytest.mark.parametrize("raw", [b"", b"\x00\xff\xfenothing of HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"])
def test_a_connection_that_breaks_or_makes_no_sense_is_tried_again(raw: bytes) -> None:
    with serving(Answer(raw, raw=True, headers={}), GOOD["openai"]) as server:
        assert summariser(server.url)(request()) == SUMMARY

    assert len(server.bodies) == 2


# ---- when it wants to be asked again ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": format_datetime(datetime.fromtimestamp(NOW, UTC) + timedelta(seconds=12), usegmt=True)}, 12.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0),
        ({}, None),
    ],
)
def test_retry_after_is_understood_as_seconds_and_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, NOW) == seconds


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text(max_size=40)))
def test_no_retry_after_breaks_anything(headers: dict[str, str]) -> None:
    seconds = read_retry_after(headers, NOW)

    assert seconds is None or 0 <= seconds < float("inf")


def test_a_provider_is_asked_again_when_it_wants_to_be() -> None:
    waits: list[float] = []

    with serving(Answer({}, 429, {"Retry-After": "3"}), GOOD["openai"]) as server:
        summariser(server.url, waits=waits)(request())

    assert waits == [3.0]


def test_a_provider_that_wants_to_be_left_alone_for_long_is() -> None:
    error = failure(Answer({}, 429, {"Retry-After": "3600"}))

    assert error.attempts == 1
    assert error.hint == "it wants to be asked again in 3600 seconds"


def test_nobody_waits_for_longer_than_there_is_time() -> None:
    waits: list[float] = []

    error = failure(Answer({}, 429, {"Retry-After": "40"}), waits=waits, timeout=20)

    assert (error.attempts, waits) == (1, [])


# ---- time and size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"timeout": 0.4}, {"timeout": 30.0, "seconds": 0.4}])
def test_an_endpoint_that_hangs_is_given_up_when_the_time_is_over(limits: dict[str, float]) -> None:
    start = time.monotonic()

    error = failure(
        Answer(raw=True, pause=1), timeout=limits["timeout"], **({"timeout_": None} if False else _own(limits))
    )

    assert (error.attempts, error.status) == (1, None)
    assert "gave no answer in 0." in error.what
    assert time.monotonic() - start < 10
