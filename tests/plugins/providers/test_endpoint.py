"""Whatever an endpoint does wrong ends in one kind of error, in time, and after no more attempts than one may make."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import MissingExtraError
from nexus_core.compaction.extractive import extractive_summarizer
from nexus_core.compaction.overflow import read_overflow
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers
from nexus_core.errors import SummaryError
from nexus_core.plugin import Summarizer, estimate
from nexus_core.runner import run
from nexus_core.types.messages import Message
from nexus_plugins.providers import EndpointError, _endpoint
from nexus_plugins.providers._endpoint import read_retry_after
from nexus_plugins.providers._formats import FORMATS, UnreadableReplyError
from tests.plugins.providers.endpoints import GOOD, SUMMARY, Answer, chat, message, request, serving, summarizer

NOW = 1_750_000_000.0
CERTIFICATE = Path(__file__).with_name("self_signed.pem")


def failure(*answers: Answer, api: str = "openai", seconds: float = 30.0, **fields: Any) -> EndpointError:
    """What is raised after such answers."""
    with serving(*answers) as server, pytest.raises(EndpointError) as caught:
        summarizer(server.url, api, **fields)(request(timeout=seconds))
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
        summary = summarizer(server.url, waits=waits)(request())

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

    failure(Answer({}, 503), waits=waited, max_retries=8, seconds=600)

    assert waited[-3:] == [8.0, 8.0, 8.0]


def test_a_connection_that_is_refused_is_tried_again() -> None:
    waits: list[float] = []

    with pytest.raises(EndpointError, match="could not be reached") as caught:
        summarizer(refused_port(), waits=waits)(request())

    assert (caught.value.attempts, caught.value.status, len(waits)) == (3, None, 2)


@pytest.mark.parametrize(
    "raw", [b"", b"\x00\xff\xfenothing of HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"]
)
def test_a_connection_that_breaks_or_makes_no_sense_is_tried_again(raw: bytes) -> None:
    with serving(Answer(raw, raw=True, headers={}), GOOD["openai"]) as server:
        assert summarizer(server.url)(request()) == SUMMARY

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
        summarizer(server.url, waits=waits)(request())

    assert waits == [3.0]


def test_a_provider_that_wants_to_be_left_alone_for_long_is() -> None:
    error = failure(Answer({}, 429, {"Retry-After": "3600"}))

    assert error.attempts == 1
    assert error.hint == "it asks to be tried again in 3600 seconds"


def test_nobody_waits_for_longer_than_there_is_time() -> None:
    waits: list[float] = []

    error = failure(Answer({}, 429, {"Retry-After": "40"}), waits=waits, seconds=20)

    assert (error.attempts, waits) == (1, [])


# ---- time and size ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "timeout"), [(0.4, 120.0), (30.0, 0.4)])
def test_an_endpoint_that_hangs_is_given_up_when_the_time_is_over(seconds: float, timeout: float) -> None:
    error = failure(Answer(raw=True, pause=1), seconds=seconds, timeout=timeout)

    assert (error.attempts, error.status) == (1, None)
    assert "gave no answer in 0." in error.what


@pytest.mark.slow
def test_an_answer_that_trickles_is_given_up_when_the_time_is_over() -> None:
    error = failure(Answer(b"{" * 100_000, pause=0.05), seconds=0.5)

    assert error.attempts == 1
    assert "gave no answer in 0." in error.what


def test_an_answer_is_not_read_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_endpoint, "MAX_RESPONSE_BYTES", 2**20)

    error = failure(Answer(b"x" * 2**21))

    assert "answered with more than 1 MiB" in error.what
    assert error.attempts == 1


def test_of_a_refusal_only_the_beginning_is_read_and_told() -> None:
    error = failure(Answer(b"x" * 2**20, 400))

    assert len(error.said) <= 301


def test_an_answer_that_was_compressed_without_being_asked_is_not_unpacked() -> None:
    error = failure(Answer(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}))

    assert "compressed its answer" in error.what


# ---- answers without a summary ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe\x00garbage", "is not JSON"),
        (b"<html>Log in to the hotel</html>", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"null", "is not a chat completion"),
        (b"[]", "is not a chat completion"),
        (b"{}", "is not a chat completion"),
        (b'{"choices": {"0": 1}}', "is not a chat completion"),
        ({"error": {"message": "Provider down."}}, "reported an error: Provider down."),
        ({"choices": [{"error": {"message": "Provider down."}}]}, "reported an error: Provider down."),
        (chat(""), "wrote nothing"),
        (chat(" \n"), "wrote nothing"),
        (chat(None), "wrote nothing"),
        (chat(7), "wrote nothing"),
        (chat(None, ended="length"), "ran out of tokens"),
        (chat("<think>Hm, what", ended="length"), "ran out of tokens"),
        (chat(None, refusal="I cannot."), "refused: I cannot."),
        (chat("", ended="content_filter"), "withheld its answer"),
        (chat(None, tool_calls=[{"id": "a"}], ended="tool_calls"), "called a tool"),
    ],
)
def test_a_chat_completion_without_a_summary_is_told_as_what_it_is(body: object, what: str) -> None:
    error = failure(Answer(body))

    assert what in error.what
    assert (error.status, error.attempts) == (200, 1)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"nope", "is not JSON"),
        (b"{}", "is not a message"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "reported an error: Overl"),
        (message(None), "wrote nothing"),
        (message("", ended="max_tokens"), "ran out of tokens"),
        (message(None, ended="refusal"), "refused"),
        (message("I cannot.", ended="refusal"), "refused: I cannot."),
        (message(None, ended="tool_use"), "called a tool"),
    ],
)
def test_a_message_without_a_summary_is_told_as_what_it_is(body: object, what: str) -> None:
    assert what in failure(Answer(body), api="anthropic").what


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "type", "text", "error", "finish_reason", "stop_reason"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(api=st.sampled_from(["openai", "anthropic"]), value=JSON)
def test_whatever_json_comes_it_has_a_summary_or_it_has_none(api: str, value: object) -> None:
    try:
        text = FORMATS[api].read(value)
    except UnreadableReplyError:
        return
    assert text.strip()
    assert text.encode()


# ---- what else an endpoint may do -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with serving(GOOD["openai"]) as elsewhere:
        error = failure(Answer(b"", status, {"Location": f"{elsewhere.url}/v2"}))

    assert elsewhere.bodies == []
    assert error.status == status
    assert error.hint == f"it redirects to {elsewhere.url}/v2; the key is only sent to base_url"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Wrong."}},
        {"error": "Wrong."},
        {"message": "Wrong."},
        {"detail": "Wrong."},
        [{"error": {"message": "Wrong."}}],
        b"Wrong.",
    ],
)
def test_what_went_wrong_is_found_in_every_usual_shape(body: object) -> None:
    assert failure(Answer(body, 400)).said == "Wrong."


def test_what_a_provider_says_cannot_steer_a_terminal() -> None:
    assert failure(Answer({"error": {"message": "\x1b[2JGone\u202e"}}, 400)).said == "\\x1b[2JGone\\u202e"


def test_an_overflow_is_recognised_by_what_the_endpoint_said() -> None:
    said = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."

    overflow = read_overflow(failure(Answer({"error": {"message": said}}, 400)))

    assert overflow is not None
    assert (overflow.limit, overflow.asked) == (8192, 9000)
    assert read_overflow(failure(Answer({}, 413))) is not None


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "check the key in SOME_KEY"), (404, "check base_url and model"), (413, "set `window`")],
)
def test_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, status: int, hint: str) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-0123456789abcdef")

    assert hint in str(failure(Answer({}, status), key_env="SOME_KEY").hint)


@pytest.mark.parametrize("value", [None, "", "  ", "k\u00e9y", "two\nlines"])
def test_a_key_that_is_none_keeps_it_from_being_asked(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("SOME_KEY", raising=False)
    else:
        monkeypatch.setenv("SOME_KEY", value)

    error = failure(GOOD["openai"], key_env="SOME_KEY")

    assert (error.attempts, "SOME_KEY" in error.what) == (0, True)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "nexus_plugins.providers._endpoint.find_spec", lambda name: None if name == "httpx2" else find_spec(name)
    )

    with pytest.raises(MissingExtraError, match=r"nexusctx\[llm\]"):
        summarizer("http://127.0.0.1:9")(request())


def test_a_proxy_of_the_environment_does_not_hear_what_is_not_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(GOOD["openai"]) as proxy, serving(GOOD["openai"]) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)

        assert summarizer(server.url)(request()) == SUMMARY

    assert (len(proxy.bodies), len(server.bodies)) == (0, 1)


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    refused = pytest.raises(EndpointError, match="CERTIFICATE_VERIFY_FAILED")
    with serving(GOOD["openai"], certificate=CERTIFICATE) as server, refused as caught:
        summarizer(server.url)(request())

    assert (server.bodies, caught.value.attempts) == ([], 1)


def test_a_certificate_that_the_user_vouches_for_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    with serving(GOOD["openai"], certificate=CERTIFICATE) as server:
        assert summarizer(server.url)(request()) == SUMMARY


def test_certificates_are_loaded_once_for_all_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificates = tmp_path / "certificates.pem"  # a path that no other test has
    certificates.write_bytes(CERTIFICATE.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    loaded: list[ssl.SSLContext] = []
    load = httpx2.create_ssl_context

    def load_context() -> ssl.SSLContext:
        loaded.append(load())
        return loaded[-1]

    monkeypatch.setattr(httpx2, "create_ssl_context", load_context)

    with serving(GOOD["openai"], certificate=CERTIFICATE) as server, serving(GOOD["openai"]) as plain:
        for url in (server.url, server.url, plain.url):
            assert summarizer(url)(request()) == SUMMARY

    assert len(loaded) == 1


# ---- in the chain -----------------------------------------------------------------------------------------

MESSAGES = [Message("user", f"Fix login number {number}, please, in login.py and elsewhere.") for number in range(40)]
FAULTS = {
    "empty": Answer(chat("")),
    "413": Answer({"error": {"message": "too large"}}, 413),
    "429": Answer({}, 429, {"Retry-After": "0"}),
    "500": Answer({}, 500),
    "garbage": Answer(b"\xff\x00"),
    "half characters": Answer(chat("\ud83d" * 50)),
    "refusal": Answer(chat(None, refusal="No.")),
    "redirect": Answer(b"", 307, {"Location": "http://127.0.0.1:9/"}),
    "hang": Answer(raw=True, pause=1),
}


@pytest.mark.slow
@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_chain_goes_on_after_every_fault(fault: str) -> None:
    task = SummaryTask(MESSAGES, 200, timeout=1.0 if fault == "hang" else 60.0)

    with serving(FAULTS[fault]) as server:
        fast = Summarizer(name="fast", summarise=summarizer(server.url))
        summary = run(ask_summarizers(task, [fast, extractive_summarizer()], estimate))

    times = 2 if fault == "413" else 1  # what is too large is sent in pieces then
    assert (summary.summarizer, [name for name, _ in summary.failures]) == ("extractive", ["fast"] * times)


@pytest.mark.acceptance("R15")
def test_where_nobody_else_is_asked_the_chain_says_what_the_provider_said() -> None:
    with serving(Answer({"error": {"message": "Out of credit."}}, 402)) as server:
        fast = Summarizer(name="fast", summarise=summarizer(server.url))
        with pytest.raises(SummaryError, match=r"answered 402: Out of credit\."):
            run(ask_summarizers(SummaryTask(MESSAGES, 200), [fast], estimate))
