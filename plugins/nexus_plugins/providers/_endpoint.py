"""Model endpoints of the settings, and the HTTP client: streaming, retries, timeouts, cancellation.

Summarizers and agents use the same `EndpointClient`. Nothing below it raises: an exception would carry the frames that
hold the API key.
"""

from __future__ import annotations

import json
import math
import random
import time
from base64 import b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from threading import Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import MissingExtraError, ProviderError, __version__
from nexus_core.plugin import CancelSignal, Extra
from nexus_core.plugin.settings import get_authority
from nexus_plugins.providers._connection_pool import open_response
from nexus_plugins.providers._formats import (
    FORMATS,
    UnreadableReplyError,
    find_error_message,
    find_stream_error,
    parse_json,
    replace_surrogates,
    take_client_options,
)
from nexus_plugins.providers._secrets import EnvironmentVariableError, read_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    import httpx2

    from nexus_core.plugin import LoadedLayers
    from nexus_plugins.providers._formats import WireFormat
    from nexus_plugins.providers._secrets import EnvironmentSecrets, Secret

EXTRA = Extra("llm", modules=("httpx2",))

RESEND_HINT = "send the call again; an agent does so with resume()"
_STATUS_OK, _STATUS_REDIRECT, _STATUS_ERROR = 200, 300, 400
_HINTS = {
    401: "check the key in {key}",
    403: "check the key in {key}, and what it may be used for",
    404: "check base_url and model",
    413: "set `window` to what the model can read at once",
}


class EndpointError(ProviderError):
    """Raised when an endpoint gives no reply or no summary.

    Args:
        what: What happened, without keys.
        endpoint: Its name in the settings.
        where: The setting that it is about; by default its entry in `plugins.providers.endpoints`.
        hint: What to do about it, without keys.
        status: HTTP status of its response; None if there was no response.
        attempts: Number of requests that were sent.
        said: The error message in its response, truncated.
        unset_variable: The environment variable of the key, if it is not set; else "".
    """

    def __init__(
        self,
        what: str,
        *,
        endpoint: str,
        where: str = "",
        hint: str | None = None,
        status: int | None = None,
        attempts: int = 0,
        said: str = "",
        unset_variable: str = "",
    ) -> None:
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        super().__init__(
            f"{what}{tried}",
            where=where or f"plugins.providers.endpoints.{endpoint}",
            hint=hint,
            status=status,
            attempts=attempts,
            said=said,
            unset_variable=unset_variable,
        )
        self.endpoint = endpoint


class RetryTiming(NamedTuple):
    """Functions behind the waits between retries, which tests replace."""

    pause: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random


DEFAULT_TIMING = RetryTiming()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """An HTTP endpoint that serves a model, as the settings describe it.

    Attributes:
        api: Its API: `openai`, `responses`, `anthropic` or `gemini`.
        model: Its name of the model; None for that of the conversation.
        base_url: Its address, in the form of the API's SDK; None for that of its maker.
        key_env: The environment variable that holds the key; None for no key.
        headers: By name of a further header, the environment variable that holds its value.
        window: Its context window in tokens; 0 for no limit.
        max_retries: Number of retries.
        timeout: Timeout of one attempt in seconds; in a streamed reply, the longest silence.
        options: Further fields of the request body; None removes a field.
    """

    api: str
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    window: int = 0
    max_retries: int = 2
    timeout: float = 120.0
    options: Mapping[str, Any] = field(default_factory=dict)


def read_provider_settings(loaded: LoadedLayers) -> tuple[dict[str, ModelEndpoint], tuple[str, ...]]:
    """Return the endpoints by name, and the environment variables of the command.

    Only the user's own files can set them. They are validated here, with pydantic, which few users need for this.
    """
    given = loaded.settings.get("plugins.providers")
    if not given:
        return {}, ()
    from nexus_plugins.providers._settings import ProvidersSettings

    settings = ProvidersSettings.model_validate(given)
    endpoints = {name: endpoint.to_endpoint() for name, endpoint in settings.endpoints.items()}
    return endpoints, tuple(settings.command_variables)


@dataclass(frozen=True, slots=True)
class EndpointClient:
    """Sends request bodies to one endpoint.

    Attributes:
        name: The name of the endpoint.
        endpoint: Its settings.
        timing: Functions behind the waits between retries.
        where: The setting that errors name; "" for the endpoint's own.
    """

    name: str
    endpoint: ModelEndpoint
    timing: RetryTiming = DEFAULT_TIMING
    where: str = ""

    @property
    def format(self) -> WireFormat:
        """The format of its API."""
        return FORMATS[self.endpoint.api]

    @property
    def address(self) -> str:
        """Its base URL."""
        return self.endpoint.base_url or self.format.ADDRESS

    def post(self, body: Mapping[str, Any], model: str, seconds: float, read: Callable[[object], str]) -> str:
        """Send a request and return the parsed JSON response, secrets masked.

        Args:
            body: The request body.
            model: The model, which some APIs have in their address.
            seconds: Maximum seconds for all attempts.
            read: Returns a text of the response, or raises UnreadableReplyError.

        Raises:
            EndpointError: The endpoint cannot be reached, fails, or answers with something that cannot be read.
            MissingExtraError: httpx2 is not installed.
        """
        secrets = self._read_secrets()
        outgoing = self._build_request(self.format.url(self.address, model), body, secrets)
        deadline = time.monotonic() + reserve_time(seconds)
        attempt = 0
        while True:
            attempt += 1
            remaining = max(deadline - time.monotonic(), 0.001)
            response = send_request(outgoing, min(remaining, self.endpoint.timeout)).mask(secrets)
            if isinstance(response, HttpResponse) and response.is_success:
                try:
                    # Masked again: in the JSON, a secret may have been written with escapes.
                    return secrets.mask(read(parse_json(response.body)))
                except UnreadableReplyError as error:
                    raise self.error(str(error), secrets, status=response.status, attempts=attempt) from None
            wait = compute_wait(response, attempt, self.timing)
            if attempt > self.endpoint.max_retries or wait is None or time.monotonic() + wait >= deadline:
                raise self._build_response_error(response, secrets, attempt)
            self.timing.pause(wait)

    def stream(
        self, body: Mapping[str, Any], model: str, cancel: CancelSignal
    ) -> Iterator[tuple[bool, dict[str, Any]]]:
        """Send a request and yield the events of the streamed reply, as JSON.

        A request is sent again only as long as nothing has arrived. `endpoint.timeout` is the longest silence.

        Args:
            body: The request body.
            model: The model, which some APIs have in their address.
            cancel: Ends the stream.

        Yields:
            False and an event, or True and the whole reply of a server that does not stream.

        Raises:
            EndpointError: The endpoint cannot be reached, fails, breaks off or sends an invalid event.
            MissingExtraError: httpx2 is not installed.
        """
        secrets = self._read_secrets()
        outgoing = self._build_request(self.format.stream_url(self.address, model), body, secrets)
        attempt = 0
        while not cancel.is_set:
            attempt += 1
            with _linked_signal(cancel) as ended:
                pieces = stream_request(outgoing, self.endpoint.timeout, ended)
                try:
                    opened = next(pieces).mask(secrets)
                    if isinstance(opened, HttpResponse) and opened.is_success:
                        if (yield from self._read_events(opened, pieces, secrets, attempt)):
                            _drain(pieces, ended)
                        return
                finally:
                    pieces.close()
            wait = compute_wait(opened, attempt, self.timing)
            if attempt > self.endpoint.max_retries or wait is None:
                raise self._build_response_error(opened, secrets, attempt)
            if not cancel.is_set:
                self.timing.pause(wait)

    def _read_events(
        self,
        opened: HttpResponse,
        pieces: Iterator[HttpResponse | HttpFailure],
        secrets: EnvironmentSecrets,
        attempts: int,
    ) -> Generator[tuple[bool, dict[str, Any]], None, bool]:
        """Yield the events of a stream. Return True if more may follow."""
        is_whole = "json" in opened.headers.get("content-type", "")
        buffer = EventBuffer()
        whole: list[bytes] = []
        try:
            for piece in pieces:
                if isinstance(piece, HttpFailure):
                    what = f"cut the stream before its end: it {piece.reason}" if piece.is_retryable else piece.reason
                    raise self.error(what, secrets, hint=RESEND_HINT, status=opened.status, attempts=attempts)
                if is_whole:
                    whole.append(piece.body)
                    continue
                for data in buffer.add(piece.body):
                    if data == "[DONE]":
                        return True
                    yield False, _parse_event(data, secrets)
            for data in buffer.finish():
                yield False, _parse_event(data, secrets)
            if is_whole:
                yield True, _parse_event(b"".join(whole).decode("utf-8", "replace"), secrets)
        except UnreadableReplyError as error:
            raise self.error(str(error), secrets, hint=RESEND_HINT, status=opened.status, attempts=attempts) from None
        return False

    def require_keys(self) -> None:
        """Raise unless a request can be sent: its keys are set. Connects to nothing.

        Raises:
            EndpointError: An environment variable is not set, or cannot be a key.
            MissingExtraError: httpx2 is not installed.
        """
        self._read_secrets()

    def error(
        self,
        what: str,
        secrets: EnvironmentSecrets | None = None,
        *,
        hint: str | None = None,
        **facts: Any,  # noqa: ANN401 - of an error
    ) -> EndpointError:
        """Return an error about the endpoint, with secrets masked in what happened."""
        shown = what if secrets is None else secrets.to_safe_line(what)
        return EndpointError(f"the endpoint {shown}", endpoint=self.name, where=self.where, hint=hint, **facts)

    def _build_response_error(
        self, response: HttpResponse | HttpFailure, secrets: EnvironmentSecrets, attempts: int
    ) -> EndpointError:
        if not isinstance(response, HttpResponse):
            hint = f"see that {get_authority(self.address)} can be reached" if response.is_retryable else None
            return self.error(response.reason, secrets, hint=hint, attempts=attempts)
        message = secrets.to_safe_line(find_error_message(response.body))
        return self.error(
            f"answered {response.status}" + (f": {message}" if message else ""),
            hint=self._hint(response, secrets),
            status=response.status,
            attempts=attempts,
            said=message,
        )

    def _hint(self, response: HttpResponse, secrets: EnvironmentSecrets) -> str | None:
        if _STATUS_REDIRECT <= response.status < _STATUS_ERROR:
            target = secrets.to_safe_line(response.headers.get("location", "")) or "another place"
            return f"it redirects to {target}; the key is only sent to base_url"
        wait = get_requested_wait(response)
        if wait is not None and wait > MAX_RETRY_AFTER_SECONDS:
            return f"it asks to be tried again in {wait:.0f} seconds"
        hint = _HINTS.get(response.status)
        return hint and hint.format(key=self.endpoint.key_env or "the variable that key_env names")

    def _read_secrets(self) -> EnvironmentSecrets:
        if find_spec("httpx2") is None:
            raise MissingExtraError("providers", EXTRA)
        keys = [self.endpoint.key_env] if self.endpoint.key_env else []
        try:
            return read_secrets([*keys, *self.endpoint.headers.values()])
        except EnvironmentVariableError as error:
            raise EndpointError(
                str(error),
                endpoint=self.name,
                where=self.where,
                hint="set it to the key, without quotes",
                unset_variable=error.unset_variable,
            ) from None

    def _build_request(self, url: str, body: Mapping[str, Any], secrets: EnvironmentSecrets) -> HttpRequest:
        given, further = take_client_options(body)
        sent = {name: value for name, value in {**given, **self.endpoint.options}.items() if value is not None}
        encoded = replace_surrogates(json.dumps(sent, ensure_ascii=False, default=_encode_bytes)).encode()
        key = self.endpoint.key_env
        headers: dict[str, str | Secret] = {
            **further,
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": f"nexusctx/{__version__}",
            **self.format.HEADERS,
            **(self.format.authorise(secrets.values[key]) if key else {}),
            **{name.lower(): secrets.values[variable] for name, variable in self.endpoint.headers.items()},
        }
        return HttpRequest(url, encoded, headers)


@contextmanager
def _linked_signal(cancel: CancelSignal) -> Iterator[CancelSignal]:
    """Yield a signal that is set with another, and can be set alone."""
    linked = CancelSignal()
    cancel.on_cancel(linked.cancel)
    try:
        yield linked
    finally:
        cancel.forget(linked.cancel)


def _drain(pieces: Iterator[HttpResponse | HttpFailure], ended: CancelSignal) -> None:
    """Read the rest of a response, so that its connection can be reused.

    A server has little time for it.
    """
    timer = Timer(DRAIN_SECONDS, ended.cancel)
    timer.daemon = True
    timer.start()
    try:
        for _ in pieces:
            pass
    finally:
        timer.cancel()


def _parse_event(data: str, secrets: EnvironmentSecrets) -> dict[str, Any]:
    """Return an event of a stream, with secrets masked.

    Raises:
        UnreadableReplyError: It is not a JSON object, or reports an error.
    """
    event = parse_json(secrets.mask(data).encode("utf-8", "surrogatepass"), "event of its stream")
    if "\\" in data:  # a secret may have been written with escapes
        event = json.loads(secrets.mask(json.dumps(event, ensure_ascii=False)))
    if not isinstance(event, dict):
        raise UnreadableReplyError("sent an event of its stream that is not an object")
    if message := find_stream_error(event):
        raise UnreadableReplyError(f"reported an error: {message}")
    return event


def _encode_bytes(value: object) -> str:
    """Return bytes in base64, as the SDKs send them."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


class EventBuffer:
    """Splits a byte stream of server-sent events into the data of each event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def add(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of the events that are complete.

        Raises:
            UnreadableReplyError: A line is longer than any event.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_RESPONSE_BYTES:
            raise UnreadableReplyError("sent a line without an end")
        for line in lines:
            text = line.removesuffix(b"\r")
            if not text and self._data:
                yield "\n".join(self._data)
                self._data = []
            elif text.startswith(b"data:"):
                self._data.append(text[len(b"data:") :].removeprefix(b" ").decode("utf-8", "replace"))

    def finish(self) -> Iterator[str]:
        """Yield the data of the last event if it was not terminated.

        Some servers do not end it with an empty line.
        """
        yield from self.add(b"\n\n")


MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Bytes of a response; the longest summary has a tenth of that."""
MAX_STREAM_BYTES = 64 * 1024 * 1024
"""Bytes of a streamed response, whose events repeat names and ids for each piece of text."""
DRAIN_SECONDS = 0.25
"""For the end of a stream after its last event; it is in the same packet, unless the server never sends it."""
MAX_ERROR_BYTES = 64 * 1024
"""Bytes that are read of an error response."""


class HttpResponse(NamedTuple):
    """A response: status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """True if the status reports success."""
        return _STATUS_OK <= self.status < _STATUS_REDIRECT

    def mask(self, secrets: EnvironmentSecrets) -> HttpResponse:
        """Return the response with secrets masked, because some servers send them back."""
        headers = {name: secrets.mask(value) for name, value in self.headers.items()}
        # Latin-1 maps every byte to a character and back.
        return HttpResponse(self.status, headers, secrets.mask(self.body.decode("latin-1")).encode("latin-1"))


class HttpFailure(NamedTuple):
    """A request without a readable response.

    Attributes:
        reason: What happened, as a predicate of the endpoint.
        is_retryable: True if another attempt may succeed.
    """

    reason: str
    is_retryable: bool

    def mask(self, secrets: EnvironmentSecrets) -> HttpFailure:
        """Return the failure with secrets masked."""
        return HttpFailure(secrets.mask(self.reason), self.is_retryable)


class HttpRequest(NamedTuple):
    """A POST request.

    Attributes:
        url: Its address.
        body: The JSON body.
        headers: The headers; secrets are revealed only when the request is sent.
    """

    url: str
    body: bytes
    headers: Mapping[str, str | Secret]


def send_request(outgoing: HttpRequest, seconds: float) -> HttpResponse | HttpFailure:
    """Send a request and return the response, or the failure, within `seconds`.

    Redirects are not followed, because they would send the key elsewhere. Certificates are always checked. A proxy
    from the environment is used for encrypted connections only, because it could read the others.
    """
    deadline = time.monotonic() + seconds
    pieces = stream_request(outgoing, seconds, CancelSignal())
    try:
        opened = next(pieces)
        if not isinstance(opened, HttpResponse) or not opened.is_success:
            return opened
        chunks: list[bytes] = []
        size = 0
        for piece in pieces:
            if isinstance(piece, HttpFailure):
                return piece
            chunks.append(piece.body)
            size += len(piece.body)
            if size > MAX_RESPONSE_BYTES:
                limit = MAX_RESPONSE_BYTES // 1024 // 1024
                return HttpFailure(f"answered with more than {limit} MiB", is_retryable=False)
            if time.monotonic() > deadline:
                return _build_timeout_failure(seconds)
        return opened._replace(body=b"".join(chunks))
    finally:
        pieces.close()


def stream_request(
    outgoing: HttpRequest, seconds: float, cancel: CancelSignal
) -> Generator[HttpResponse | HttpFailure, None, None]:
    """Send a request, then yield status, headers and body chunks.

    The body of an error response is in the first one. A failure comes last. Nothing is raised.

    Args:
        outgoing: The request.
        seconds: The longest silence, and the time to connect.
        cancel: Closes the connection, from any thread.
    """
    import httpx2

    try:
        headers = {name: _reveal_header(value) for name, value in outgoing.headers.items()}
        with open_response(outgoing.url, outgoing.body, headers, seconds, cancel) as response:
            yield from _read_response(response, seconds)
    except (httpx2.ReadTimeout, httpx2.WriteTimeout):
        yield _build_timeout_failure(seconds)
    except httpx2.TransportError as error:
        yield HttpFailure(
            f"could not be reached: {_describe_error(error)}",
            is_retryable="CERTIFICATE_VERIFY_FAILED" not in str(error),
        )
    except Exception as error:  # noqa: BLE001 - a traceback would show the key; an unusable proxy is an ImportError
        yield HttpFailure(f"could not be asked: {_describe_error(error)}", is_retryable=False)


def _read_response(response: httpx2.Response, seconds: float) -> Iterator[HttpResponse | HttpFailure]:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity").lower() != "identity":
        yield HttpFailure("compressed its answer, which it was not asked to do", is_retryable=False)
        return
    if not response.is_success:
        yield _read_error_response(response, headers, seconds)
        return
    yield HttpResponse(response.status_code, headers, b"")
    size = 0
    for chunk in response.iter_raw():
        size += len(chunk)
        if size > MAX_STREAM_BYTES:
            limit = MAX_STREAM_BYTES // 1024 // 1024
            yield HttpFailure(f"answered with more than {limit} MiB", is_retryable=False)
            return
        yield HttpResponse(response.status_code, headers, chunk)


def _read_error_response(
    response: httpx2.Response, headers: Mapping[str, str], seconds: float
) -> HttpResponse | HttpFailure:
    deadline = time.monotonic() + seconds
    body = b""
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_ERROR_BYTES:
            break
        if time.monotonic() > deadline:
            return _build_timeout_failure(seconds)
    return HttpResponse(response.status_code, headers, body)


def _build_timeout_failure(seconds: float) -> HttpFailure:
    # No retry: the next reply would take as long, and be charged again.
    return HttpFailure(f"gave no answer in {seconds:.3g} seconds", is_retryable=False)


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _reveal_header(value: str | Secret) -> str:
    return value if isinstance(value, str) else value.reveal()


MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 8.0
"""Seconds between two attempts without a Retry-After header; doubled each time."""
MAX_RETRY_AFTER_SECONDS = 60.0
"""A provider that asks for a longer wait is not retried."""
_RETRYABLE_STATUSES = frozenset({408, 409, 429})
_STATUS_SERVER_ERROR = 500


def compute_wait(response: HttpResponse | HttpFailure, attempt: int, timing: RetryTiming) -> float | None:
    """Return the seconds before the next attempt, None if it is useless."""
    if not isinstance(response, HttpResponse):
        return _compute_backoff(attempt, timing) if response.is_retryable else None
    if response.status not in _RETRYABLE_STATUSES and response.status < _STATUS_SERVER_ERROR:
        return None
    requested = get_requested_wait(response)
    if requested is None:
        return _compute_backoff(attempt, timing)
    return requested if requested <= MAX_RETRY_AFTER_SECONDS else None


def get_requested_wait(response: HttpResponse) -> float | None:
    """Return the wait in seconds that a response asks for, or None if it names none."""
    return read_retry_after(response.headers, time.time())


def reserve_time(seconds: float) -> float:
    """Return a slightly shorter timeout, to leave time for its report."""
    return seconds - min(1.0, seconds / 20)


def _compute_backoff(attempt: int, timing: RetryTiming) -> float:
    # Jitter, so that clients that were rejected together do not retry together.
    return min(MIN_WAIT_SECONDS * 2.0 ** (attempt - 1), MAX_WAIT_SECONDS) * (0.5 + timing.random() / 2)


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait in seconds from Retry-After headers, or None.

    Args:
        headers: Headers of the response, with lower-case names.
        now: The current time in seconds since 1970.
    """
    seconds = _parse_number(headers.get("retry-after-ms", ""), 1000)
    if seconds is None:
        value = headers.get("retry-after", "")
        seconds = _parse_number(value)
        if seconds is None:
            seconds = _parse_http_date(value, now)
    return None if seconds is None else max(seconds, 0.0)


def _parse_number(text: str, per_second: int = 1) -> float | None:
    with suppress(ValueError):
        number = float(text) / per_second
        return number if math.isfinite(number) else None
    return None


def _parse_http_date(date: str, now: float) -> float | None:
    """Return the seconds until an HTTP date, or None if it is invalid."""
    with suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    return None
