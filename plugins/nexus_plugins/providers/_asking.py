"""Asks an endpoint for a summary, again if that may help, and no longer than one may."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_core import MissingExtraError, __version__
from nexus_core.plugin import Extra
from nexus_plugins.providers._errors import EndpointError
from nexus_plugins.providers._formats import FORMATS
from nexus_plugins.providers._reading import NoSummary, explanation, parse, whole
from nexus_plugins.providers._secrets import VariableError, read_secrets
from nexus_plugins.providers._sending import Outgoing, Reply, send
from nexus_plugins.providers._waiting import MOST_PATIENCE, PACE, allowed, wait_after, wanted_wait

if TYPE_CHECKING:
    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._formats import WireFormat
    from nexus_plugins.providers._secrets import Secret, Secrets
    from nexus_plugins.providers._sending import Silence
    from nexus_plugins.providers._settings import Endpoint
    from nexus_plugins.providers._waiting import Pace

EXTRA = Extra("llm", modules=("httpx2",))

_OK, _ELSEWHERE, _REFUSED = 200, 300, 400
_HINTS = {
    401: "check the key in {key}",
    403: "check the key in {key}, and what it may be used for",
    404: "check base_url and model",
    413: "set `window` to what the model can read at once",
}


@dataclass(frozen=True, slots=True)
class EndpointSummariser:
    """Somebody who can be asked for a summary.

    Attributes:
        name: What the endpoint is called.
        endpoint: How to ask it.
        model: The model to ask where the endpoint names none; "" for the conversation's own.
        pace: How it is waited.
    """

    name: str
    endpoint: Endpoint
    model: str = ""
    pace: Pace = PACE

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
        except VariableError as error:
            raise EndpointError(str(error), endpoint=self.name, hint="set it to the key, without quotes") from None
        outgoing = Outgoing(self._format.url(self._address), body, self._headers(secrets))
        return self._ask(outgoing, secrets, time.monotonic() + allowed(request.timeout))

    def _ask(self, outgoing: Outgoing, secrets: Secrets, deadline: float) -> str:
        attempt = 0
        while True:
            attempt += 1
            left = max(deadline - time.monotonic(), 0.001)
            answer = send(outgoing, min(left, self.endpoint.timeout)).masked(secrets)
            if isinstance(answer, Reply) and _OK <= answer.status < _ELSEWHERE:
                return self._read(answer, secrets, attempt)
            wait = wait_after(answer, attempt, self.pace)
            if attempt > self.endpoint.max_retries or wait is None or time.monotonic() + wait >= deadline:
                raise self._error(answer, secrets, attempt)
            self.pace.pause(wait)

    def _read(self, reply: Reply, secrets: Secrets, attempts: int) -> str:
        try:
            return secrets.mask(self._format.read(parse(reply.body)))  # some write it in escapes
        except NoSummary as error:
            what = secrets.tell(str(error))
        raise EndpointError(f"the endpoint {what}", endpoint=self.name, status=reply.status, attempts=attempts)

    def _error(self, answer: Reply | Silence, secrets: Secrets, attempts: int) -> EndpointError:
        if not isinstance(answer, Reply):
            return EndpointError(f"the endpoint {secrets.tell(answer.why)}", endpoint=self.name, attempts=attempts)
        said = secrets.tell(explanation(answer.body))
        return EndpointError(
            f"the endpoint answered {answer.status}" + (f": {said}" if said else ""),
            endpoint=self.name,
            hint=self._hint(answer, secrets),
            status=answer.status,
            attempts=attempts,
            said=said,
        )

    def _hint(self, reply: Reply, secrets: Secrets) -> str | None:
        if _ELSEWHERE <= reply.status < _REFUSED:
            place = secrets.tell(reply.headers.get("location", "")) or "another place"
            return f"it redirects to {place}; the key is only sent to base_url"
        wanted = wanted_wait(reply)
        if wanted is not None and wanted > MOST_PATIENCE:
            return f"it asks to be tried again in {wanted:.0f} seconds"
        hint = _HINTS.get(reply.status)
        return hint and hint.format(key=self.endpoint.key_env or "the variable that key_env names")

    def _body(self, request: SummaryRequest) -> bytes:
        model = self.endpoint.model or self.model or request.model
        if not model:
            raise EndpointError("the endpoint does not know which model to ask", endpoint=self.name, hint="set `model`")
        body = self._format.write(request, model, self._address) | self.endpoint.options
        sent = {name: value for name, value in body.items() if value is not None}
        return whole(json.dumps(sent, ensure_ascii=False)).encode()

    def _headers(self, secrets: Secrets) -> dict[str, str | Secret]:
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
