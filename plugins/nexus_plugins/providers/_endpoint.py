"""A summarizer that asks an HTTP endpoint, with retries and a deadline.

`send` raises nothing: an exception would carry the frames that hold the API key.
"""

from __future__ import annotations

import json
import math
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MissingExtraError, NexusError, __version__
from nexus_core.plugin import Extra
from nexus_plugins.providers._formats import FORMATS, NoSummaryError, find_error_message, parse_json, replace_surrogates
from nexus_plugins.providers._secrets import EnvironmentVariableError, read_secrets
from nexus_plugins.providers._settings import is_encrypted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx2

    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._formats import WireFormat
    from nexus_plugins.providers._secrets import Secret, SecretVariables
    from nexus_plugins.providers._settings import Endpoint

EXTRA = Extra("llm", modules=("httpx2",))

_STATUS_OK, _STATUS_REDIRECT, _STATUS_ERROR = 200, 300, 400
_HINTS = {
    401: "check the key in {key}",
    403: "check the key in {key}, and what it may be used for",
    404: "check base_url and model",
    413: "set `window` to what the model can read at once",
}


class EndpointError(NexusError):
    """Raised when an endpoint gives no summary.

    Args:
        what: What happened, without keys.
        endpoint: Its name in the settings.
        hint: What to do about it, without keys.
        status: HTTP status of its response; None if there was no response.
        attempts: Number of requests that were sent.
        said: The error message in its response, truncated.
    """

    def __init__(
        self,
        what: str,
        *,
        endpoint: str,
        hint: str | None = None,
        status: int | None = None,
        attempts: int = 0,
        said: str = "",
    ) -> None:
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        super().__init__(f"{what}{tried}", where=f"plugins.providers.endpoints.{endpoint}", hint=hint)
        self.endpoint = endpoint
        self.status = status
        self.attempts = attempts
        self.said = said


class RetryTiming(NamedTuple):
    """Functions behind the waits between retries, which tests replace."""

    pause: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random


DEFAULT_TIMING = RetryTiming()


@dataclass(frozen=True, slots=True)
class EndpointSummarizer:
    """A summarizer that asks an HTTP endpoint.

    Attributes:
        name: The name of the endpoint.
        endpoint: Its settings.
        model: The model if the endpoint names none; "" for the conversation's own.
        timing: Functions behind the waits between retries.
    """

    name: str
    endpoint: Endpoint
    model: str = ""
    timing: RetryTiming = DEFAULT_TIMING

    def __call__(self, request: SummaryRequest) -> str:
        """Return the summary.

        Raises:
            EndpointError: The endpoint cannot be reached, fails, or gives no summary.
            MissingExtraError: httpx2 is not installed.
        """
        if find_spec("httpx2") is None:
            raise MissingExtraError("providers", EXTRA)
        body = self._body(request)
        try:
            secrets = read_secrets(self._variables())
        except EnvironmentVariableError as error:
            raise EndpointError(str(error), endpoint=self.name, hint="set it to the key, without quotes") from None
        outgoing = HttpRequest(self._format.url(self._address), body, self._headers(secrets))
        return self._send(outgoing, secrets, time.monotonic() + reserve_time(request.timeout))

    def _send(self, outgoing: HttpRequest, secrets: SecretVariables, deadline: float) -> str:
        attempt = 0
        while True:
            attempt += 1
            remaining = max(deadline - time.monotonic(), 0.001)
            response = send_request(outgoing, min(remaining, self.endpoint.timeout)).mask(secrets)
            if isinstance(response, HttpResponse) and _STATUS_OK <= response.status < _STATUS_REDIRECT:
                return self._read(response, secrets, attempt)
            wait = compute_wait(response, attempt, self.timing)
            if attempt > self.endpoint.max_retries or wait is None or time.monotonic() + wait >= deadline:
                raise self._error(response, secrets, attempt)
            self.timing.pause(wait)

    def _read(self, response: HttpResponse, secrets: SecretVariables, attempts: int) -> str:
        try:
            # Masked again: in the JSON, a secret may have been written with escapes.
            return secrets.mask(self._format.read(parse_json(response.body)))
        except NoSummaryError as error:
            what = secrets.to_safe_line(str(error))
        raise EndpointError(f"the endpoint {what}", endpoint=self.name, status=response.status, attempts=attempts)

    def _error(self, response: HttpResponse | HttpFailure, secrets: SecretVariables, attempts: int) -> EndpointError:
        if not isinstance(response, HttpResponse):
            reason = secrets.to_safe_line(response.reason)
            return EndpointError(f"the endpoint {reason}", endpoint=self.name, attempts=attempts)
        message = secrets.to_safe_line(find_error_message(response.body))
        return EndpointError(
            f"the endpoint answered {response.status}" + (f": {message}" if message else ""),
            endpoint=self.name,
            hint=self._hint(response, secrets),
            status=response.status,
            attempts=attempts,
            said=message,
        )

    def _hint(self, response: HttpResponse, secrets: SecretVariables) -> str | None:
        if _STATUS_REDIRECT <= response.status < _STATUS_ERROR:
            target = secrets.to_safe_line(response.headers.get("location", "")) or "another place"
            return f"it redirects to {target}; the key is only sent to base_url"
        wait = get_requested_wait(response)
        if wait is not None and wait > MAX_RETRY_AFTER_SECONDS:
            return f"it asks to be tried again in {wait:.0f} seconds"
        hint = _HINTS.get(response.status)
        return hint and hint.format(key=self.endpoint.key_env or "the variable that key_env names")

    def _body(self, request: SummaryRequest) -> bytes:
        model = self.endpoint.model or self.model or request.model
        if not model:
            raise EndpointError("the endpoint does not know which model to ask", endpoint=self.name, hint="set `model`")
        body = self._format.write(request, model, self._address) | self.endpoint.options
        sent = {name: value for name, value in body.items() if value is not None}
        return replace_surrogates(json.dumps(sent, ensure_ascii=False)).encode()

    def _headers(self, secrets: SecretVariables) -> dict[str, str | Secret]:
        key = self.endpoint.key_env
        return {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": f"nexusctx/{__version__}",
            **self._format.HEADERS,
            **(self._format.authorise(secrets.values[key]) if key else {}),
            **{name.lower(): secrets.values[variable] for name, variable in self.endpoint.headers.items()},
        }

    def _variables(self) -> list[str]:
        keys = [self.endpoint.key_env] if self.endpoint.key_env else []
        return [*keys, *self.endpoint.headers.values()]

    @property
    def _format(self) -> WireFormat:
        return FORMATS[self.endpoint.api]

    @property
    def _address(self) -> str:
        return self.endpoint.base_url or self._format.ADDRESS


MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Bytes of a response; the longest summary has a tenth of that."""
MAX_ERROR_BYTES = 64 * 1024
"""Bytes that are read of an error response."""
CONNECT_SECONDS = 10.0
"""Timeout of the connection in seconds."""


class HttpResponse(NamedTuple):
    """A response: status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def mask(self, secrets: SecretVariables) -> HttpResponse:
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

    def mask(self, secrets: SecretVariables) -> HttpFailure:
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
    import httpx2

    deadline = time.monotonic() + seconds
    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    try:
        with httpx2.Client(timeout=timeout, follow_redirects=False, trust_env=is_encrypted(outgoing.url)) as client:
            headers = {name: _reveal_header(value) for name, value in outgoing.headers.items()}
            with client.stream("POST", outgoing.url, content=outgoing.body, headers=headers) as response:
                return _read_response(response, deadline) or _build_timeout_failure(seconds)
    except (httpx2.ReadTimeout, httpx2.WriteTimeout):
        return _build_timeout_failure(seconds)
    except httpx2.TransportError as error:
        return HttpFailure(
            f"could not be reached: {_describe_error(error)}",
            is_retryable="CERTIFICATE_VERIFY_FAILED" not in str(error),
        )
    except Exception as error:  # noqa: BLE001 - a traceback would show the key; an unusable proxy is an ImportError
        return HttpFailure(f"could not be asked: {_describe_error(error)}", is_retryable=False)


def _read_response(response: httpx2.Response, deadline: float) -> HttpResponse | HttpFailure | None:
    """Read a complete response, or None if the deadline passes before its end."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity").lower() != "identity":
        return HttpFailure("compressed its answer, which it was not asked to do", is_retryable=False)
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_raw():
        chunks.append(chunk)
        size += len(chunk)
        if not response.is_success and size > MAX_ERROR_BYTES:
            break
        if size > MAX_RESPONSE_BYTES:
            return HttpFailure(f"answered with more than {MAX_RESPONSE_BYTES // 1024 // 1024} MiB", is_retryable=False)
        if time.monotonic() > deadline:
            return None
    return HttpResponse(response.status_code, headers, b"".join(chunks))


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
    """Return the seconds to wait before the next attempt, or None if a retry is useless."""
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
    """Return a timeout that is a little shorter, so that there is time to report its failure."""
    return seconds - min(1.0, seconds / 20)


def _compute_backoff(attempt: int, timing: RetryTiming) -> float:
    # Jitter, so that clients that were rejected together do not retry together.
    return min(MIN_WAIT_SECONDS * 2.0 ** (attempt - 1), MAX_WAIT_SECONDS) * (0.5 + timing.random() / 2)


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait in seconds that Retry-After headers ask for, or None if there are none.

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
