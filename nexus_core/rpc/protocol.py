"""JSON-RPC 2.0: requests, responses, error codes, and the errors that a client raises for them."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import (
    AgentDestroyedError,
    AgentExistsError,
    BudgetError,
    ConfigError,
    FileError,
    LedgerError,
    MessageError,
    NexusError,
    PluginError,
    ProviderError,
    SessionExistsError,
    SummaryError,
    TurnError,
    UnknownNameError,
    UsageError,
)
from nexus_core.rpc.dispatcher import InvalidParamsError, UnknownMethodError, error_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION = "2.0"
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
"""The codes of the specification."""
NEXUS_ERROR = -32000
"""The code of an error of Nexus that has no code of its own."""
SHUTTING_DOWN = -32010
"""The server is ending and runs nothing any more."""
ERROR_CODES: Mapping[type[NexusError], int] = {
    UnknownMethodError: UNKNOWN_METHOD,
    InvalidParamsError: INVALID_PARAMS,
    UnknownNameError: -32001,
    AgentExistsError: -32002,
    SessionExistsError: -32002,
    TurnError: -32003,
    BudgetError: -32004,
    ProviderError: -32005,
    LedgerError: -32006,
    AgentDestroyedError: -32007,
    ConfigError: -32008,
    FileError: -32008,
    SummaryError: -32009,
    PluginError: -32011,
    UsageError: INVALID_PARAMS,
    MessageError: INVALID_PARAMS,
}
"""The code of each class of errors. The first that fits counts, so that subclasses come before their base class."""

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Of one HTTP request. A message with larger images does not fit; no provider accepts much more in one image."""
MAX_DEPTH = 64
"""Objects and arrays inside each other: far more than any message, far less than Python's stack."""
MAX_BATCH = 64
"""Requests of one batch, which are answered one after the other."""
EVENT_METHOD = "event"
"""The method of the notifications that carry the events of a turn."""


class RpcRequest(NamedTuple):
    """A request of a client.

    Attributes:
        method: The method's name.
        params: The parameters, by name or by position; None for none.
        id: The id that the response repeats: text, a number or null.
        is_notification: True if there is no id, so that there is no response.
    """

    method: str
    params: dict[str, Any] | list[Any] | None = None
    id: str | float | None = None
    is_notification: bool = False


class InvalidRequestError(UsageError):
    """Raised when a request is not one of JSON-RPC 2.0.

    Args:
        what: What is wrong with it.
        code: The code of the response.
        request_id: The id of the request, if it has a valid one.
    """

    def __init__(self, what: str, *, code: int = INVALID_REQUEST, request_id: str | float | None = None) -> None:
        super().__init__(what)
        self.code = code
        self.request_id = request_id


# ---- the server's side ----------------------------------------------------------------------------------------------


def parse_json_body(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of a request body.

    Raises:
        InvalidRequestError: It is not JSON in UTF-8, or nested too deeply.
    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # UnicodeDecodeError is one
        raise InvalidRequestError(f"the body is not JSON: {error}", code=PARSE_ERROR) from None
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise _too_deep()


def parse_request(value: object) -> RpcRequest:
    """Return one request of a body.

    Raises:
        InvalidRequestError: It is no request of JSON-RPC 2.0.
    """
    if not isinstance(value, dict):
        raise InvalidRequestError("a request must be an object")
    given = value.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int | float | None):
        raise InvalidRequestError("id must be text, a number or null")
    if value.get("jsonrpc") != VERSION:
        raise InvalidRequestError(f'jsonrpc must be "{VERSION}"', request_id=given)
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str):
        raise InvalidRequestError("method must be text", request_id=given)
    if "params" in value and not isinstance(params, dict | list):
        raise InvalidRequestError("params must be an object or an array", request_id=given)
    return RpcRequest(method, params, given, is_notification="id" not in value)


def get_error_code(error: BaseException) -> int:
    """Return the code of an error that a method has raised."""
    if isinstance(error, InvalidRequestError):
        return error.code
    if not isinstance(error, NexusError):
        return INTERNAL_ERROR
    return next((code for kind, code in ERROR_CODES.items() if isinstance(error, kind)), NEXUS_ERROR)


def build_result(request_id: object, result: object) -> dict[str, Any]:
    """Return the response with the result of a method."""
    return {"jsonrpc": VERSION, "result": result, "id": request_id}


def build_error(request_id: object, error: BaseException, code: int | None = None) -> dict[str, Any]:
    """Return the response for an error. One that is not Nexus' own is named, without its text."""
    number = get_error_code(error) if code is None else code
    if number == INTERNAL_ERROR:
        body: dict[str, Any] = {"code": number, "message": "internal error", "data": {"type": type(error).__name__}}
    else:
        data = error_to_json(error)
        if isinstance(error, ProviderError) and error.unset_variable:  # a client has an environment of its own
            data["message"] = f"the server's environment lacks the variable {error.unset_variable}"
            data["hint"] = "set it to the key, without quotes, where `nexus serve` runs, and start that again"
        body = {"code": number, "message": data.pop("message"), "data": data}
    return {"jsonrpc": VERSION, "error": body, "id": request_id}


def build_event(request_id: object, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notification that carries an event of a turn, with the id of the request that started the turn."""
    return {"jsonrpc": VERSION, "method": EVENT_METHOD, "params": {"id": request_id, "event": event}}


def encode_json(value: object) -> bytes:
    """Return JSON as ASCII, so that halves of characters do no harm."""
    return _ENCODER.encode(value).encode("ascii")


def encode_sse(value: object) -> bytes:
    """Return a server-sent event with a JSON value."""
    return b"data: " + encode_json(value) + b"\n\n"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def _too_deep() -> InvalidRequestError:
    return InvalidRequestError(f"the body is nested more than {MAX_DEPTH} levels deep")


# ---- the client's side ----------------------------------------------------------------------------------------------


class RpcError(NexusError):
    """An error that a server has answered with, or a server that cannot be asked.

    Attributes:
        code: The code of the response; 0 if there was none.
        type: The class of the error at the server; "" if it is not known.
    """

    code = 0
    type = ""


class RpcConnectionError(RpcError):
    """Raised when no server answers."""


class RpcTokenError(RpcError):
    """Raised when the server refuses the token."""


class RpcRequestError(RpcError, UsageError):
    """Raised when the method is unknown, or its parameters are invalid."""


class RpcUnknownNameError(RpcError, UnknownNameError):
    """Raised when the server knows no agent, role or model of that name."""

    kind = ""
    name = ""


class RpcTurnError(RpcError, TurnError):
    """Raised when the state of the agent's turn does not allow the method."""


class RpcProviderError(RpcError, ProviderError):
    """Raised when the model gave no reply. `resume` sends the call again."""

    status = None
    attempts = 0
    said = ""


_CLIENT_ERRORS: Mapping[int, type[RpcError]] = {
    PARSE_ERROR: RpcRequestError,
    INVALID_REQUEST: RpcRequestError,
    UNKNOWN_METHOD: RpcRequestError,
    INVALID_PARAMS: RpcRequestError,
    ERROR_CODES[UnknownNameError]: RpcUnknownNameError,
    ERROR_CODES[TurnError]: RpcTurnError,
    ERROR_CODES[ProviderError]: RpcProviderError,
}


def build_call(method: str, params: Mapping[str, Any] | Sequence[Any] | None, request_id: int | None) -> dict[str, Any]:
    """Return a request, or a notification if it has no id."""
    call: dict[str, Any] = {"jsonrpc": VERSION, "method": method}
    if params:
        call["params"] = params
    return call if request_id is None else call | {"id": request_id}


def read_result(response: object) -> Any:  # noqa: ANN401 - JSON
    """Return the result of a response.

    Raises:
        RpcError: The response is an error, or none of JSON-RPC.
    """
    if isinstance(response, dict) and response.get("jsonrpc") == VERSION:
        if "result" in response:
            return response["result"]
        if isinstance(response.get("error"), dict):
            raise _read_error(response["error"])
    raise RpcError("the server's response is not one of JSON-RPC 2.0", hint="is it `nexus serve` that listens there?")


def build_client_error(
    kind: type[RpcError],
    what: str,
    *,
    code: int = 0,
    type_name: str = "",
    where: str | None = None,
    hint: str | None = None,
) -> RpcError:
    """Return an error for a client. Its base classes have constructors of their own, which are not called."""
    error = kind.__new__(kind, what)
    NexusError.__init__(error, what, where=where, hint=hint)
    error.code, error.type = code, type_name
    return error


def _read_error(body: dict[str, Any]) -> RpcError:
    number, data = body.get("code"), body.get("data")
    code = number if isinstance(number, int) else 0
    fields: dict[str, str] = {}
    if isinstance(data, dict):
        fields = {name: value for name, value in data.items() if isinstance(value, str)}
    return build_client_error(
        _CLIENT_ERRORS.get(code, RpcError),
        str(body.get("message") or "the server failed"),
        code=code,
        type_name=fields.get("type", ""),
        where=fields.get("where"),
        hint=fields.get("hint"),
    )
