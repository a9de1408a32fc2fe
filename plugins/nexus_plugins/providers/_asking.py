"""Asks an endpoint for a summary, again if that may help, and no longer than one may."""

from __future__ import annotations

import json
import random
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MissingExtraError
from nexus_core.plugin import Extra
from nexus_plugins.providers import _anthropic, _openai
from nexus_plugins.providers._errors import EndpointError
from nexus_plugins.providers._reading import NoSummary, explanation, parse, whole
from nexus_plugins.providers._retry_after import read_retry_after
from nexus_plugins.providers._secrets import UnusableVariable, read_secrets
from nexus_plugins.providers._sending import Outgoing, Reply, Silence, send

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._secrets import Secret, Secrets
    from nexus_plugins.providers._settings import Endpoint

EXTRA = Extra("llm", modules=("httpx2",))
FORMATS = {"openai": _openai, "anthropic": _anthropic}

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds between two attempts: twice as many each time."""
MOST_PATIENCE = 60.0
"""A provider that wants to be left alone for longer is not asked again."""
_PASSING = frozenset({408, 409, 429})  # and all from 500 on
_OK, _ELSEWHERE, _REFUSED, _TROUBLE = 200, 300, 400, 500
_HINTS = {
    401: "check the key in {key}",
    403: "check the key in {key}, and what it may be used for",
    404: "check base_url and model",
    413: "set `window` to what the model can read at once",
}


class Pace(NamedTuple):
    """How it is waited; tests wait otherwise."""

    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


class EndpointSummariser(NamedTuple):
    """Somebody who can be asked for a summary.

    Attributes:
        name: What the endpoint is called.
        endpoint: How to ask it.
        model: The model to ask where the endpoint names none and the conversation has none.
        pace: How it is waited.
    """

    name: str
    endpoint: Endpoint
    model: str = ""
    pace: Pace = Pace()

    def __call__(self, request: SummaryRequest) -> str:
        """The summary.

        Raises:
            EndpointError: There is none.
            MissingExtraError: httpx2 is not installed.
        """
        if find_spec("httpx2") is None:
            raise MissingExtraError("providers", EXTRA)
        body = self._body(request)
        try:
            secrets = read_secrets(self._variables())
        except UnusableVariable as error:
            raise EndpointError(str(error), endpoint=self.name, hint="set it to the key, without quotes") from None
        outgoing = Outgoing(self._format.url(self._address), body, self._headers(secrets))
        return self._ask(outgoing, secrets, time.monotonic() + allowed(request.timeout))

    def _ask(self, outgoing: Outgoing, secrets: Secrets, deadline: float) -> str:
        for attempt in range(1, self.endpoint.max_retries + 2):
            left = deadline - time.monotonic()
            answer = send(outgoing, max(min(left, self.endpoint.timeout), 0.001))
            if isinstance(answer, Reply) and _OK <= answer.status < _ELSEWHERE:
                return self._read(answer, secrets, attempt)
            wait = self._wait(answer, attempt)
            if attempt > self.endpoint.max_retries or wait is None or wait >= deadline - time.monotonic():
                break
            self.pace.pause(wait)
        raise self._error(answer, secrets, attempt)

    def _wait(self, answer: Reply | Silence, attempt: int) -> float | None:
        """How long to wait for another attempt; None where there is no use in one."""
        if isinstance(answer, Silence):
            wanted, again = None, answer.again
        else:
            wanted = read_retry_after(answer.headers, time.time())
            again = answer.status in _PASSING or answer.status >= _TROUBLE
        if not again or (wanted or 0) > MOST_PATIENCE:
            return None
        usual = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT)
        # Not all at once who were turned away at once.
        return usual * (0.5 + self.pace.chance() / 2) if wanted is None else wanted

    def _read(self, reply: Reply, secrets: Secrets, attempts: int) -> str:
        try:
            return secrets.mask(self._format.read(parse(reply.body)))
        except NoSummary as error:
            what = secrets.tell(str(error))
        raise EndpointError(f"the endpoint {what}", endpoint=self.name, status=reply.status, attempts=attempts)

    def _error(self, answer: Reply | Silence, secrets: Secrets, attempts: int) -> EndpointError:
        if isinstance(answer, Silence):
            what, hint, status, said = secrets.tell(answer.why), None, None, ""
        else:
            status, said = answer.status, secrets.tell(explanation(answer.body))
            what = f"answered {status}" + (f": {said}" if said else "")
            hint = self._hint(answer, secrets)
        return EndpointError(
            f"the endpoint {what}", endpoint=self.name, hint=hint, status=status, attempts=attempts, said=said
        )

    def _hint(self, reply: Reply, secrets: Secrets) -> str | None:
        if _ELSEWHERE <= reply.status < _REFUSED:
            place = secrets.tell(reply.headers.get("location", ""))
            return f"it sends elsewhere, where the key does not go; is this its address now? {place}".rstrip("? ")
        wanted = read_retry_after(reply.headers, time.time())
        if wanted is not None and wanted > MOST_PATIENCE:
            return f"it wants to be asked again in {wanted:.0f} seconds"
        hint = _HINTS.get(reply.status)
        return hint and hint.format(key=self.endpoint.key_env or "key_env, which is not set")

    def _body(self, request: SummaryRequest) -> bytes:
        context = request.context
        model = self.endpoint.model or (context.model if context is not None else "") or self.model
        if not model:
            raise EndpointError("the endpoint has no model", endpoint=self.name, hint="set `model` there")
        body = self._format.write(request, model, self._address) | self.endpoint.options
        kept = {name: value for name, value in body.items() if value is not None}
        return whole(json.dumps(kept, ensure_ascii=False)).encode()

    def _headers(self, secrets: Secrets) -> dict[str, str | Secret]:
        key = self.endpoint.key_env
        return {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "nexus-core",
            **self._format.HEADERS,
            **(dict([self._format.authorise(secrets.values[key])]) if key else {}),
            **{name: secrets.values[variable] for name, variable in self.endpoint.headers.items()},
        }

    def _variables(self) -> list[str]:
        keys = [self.endpoint.key_env] if self.endpoint.key_env else []
        return [*keys, *self.endpoint.headers.values()]

    @property
    def _format(self) -> ...:
        return FORMATS[self.endpoint.api]

    @property
    def _address(self) -> str:
        return self.endpoint.base_url or self._format.ADDRESS


def allowed(seconds: float) -> float:
    """How long one may take who has so many seconds: a little less, to be able to say what went wrong."""
    return seconds - min(1.0, seconds / 20)
