"""What the tests of every dialect need: the SDKs' types taken at their word, and a server that hears their clients."""

from __future__ import annotations

import collections.abc
import json
import types
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from threading import Thread
from typing import (
    IO,
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Read = TypeVar("Read")

TEXTS = st.text(max_size=12)
WORDS = st.text("abc_XYZ-019", min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    object: JSON,
    Any: JSON,
    type(None): st.none(),
}
_MADE: Any = TypedDict  # for a checker of types it is no function
_STREAMS: dict[type, str] = {str: "text/event-stream", bytes: "application/vnd.amazon.eventstream"}
"""What an answer is that is no object."""
_LISTS = (collections.abc.Iterable, collections.abc.Sequence, list)


@cache
def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Whatever an SDK's type of a request allows, with and without each field that may be left out."""
    # Deferred, since it takes longer than to collect the tests of a file.
    return st.deferred(lambda: _values(_strict(kind, {})))


def attempted(read: Callable[[Any], Read], value: Any) -> Read | None:
    """What is read, or None where it is refused as it should be; anything else that goes wrong is a defect."""
    try:
        return read(value)
    except MessageError:
        return None


@st.composite
def spoiled(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """Such values, with something in them replaced by anything, or taken out."""
    value = draw(values)
    holder: Any = None
    key: Any = None
    inner = value
    while isinstance(inner, dict | list) and inner and draw(st.booleans() | st.just(holder is None)):
        holder, key = inner, draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        inner = inner[key]
    if holder is None:
        return draw(JSON)
    if draw(st.booleans()):
        holder[key] = draw(JSON)
    else:
        del holder[key]
    return value


@st.composite
def extended(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """Such values, some with a field that nobody knows, as a newer API may have it."""
    value = draw(values)
    if isinstance(value, dict) and draw(st.booleans()):
        value = {**value, "newer": draw(JSON)}
    return value


@dataclass(frozen=True)
class StrictType:
    """One of an SDK's types of a request, without the holes that pydantic leaves in it.

    `Iterable[X]` is checked only when somebody iterates, and a TypedDict ignores fields it does not know; so both are
    replaced all the way down: by `list[X]`, and by a TypedDict that forbids what it does not name.
    """

    kind: Any

    @property
    def validator(self) -> TypeAdapter[Any]:
        """The validator, made when it is first needed."""
        return _make_validator(self.kind)


@cache
def _make_validator(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_strict(kind, {}))


def accepted(kind: StrictType, value: object) -> None:
    """Fail unless the value is of the type, to the letter, and would be sent as it is."""
    validator = kind.validator
    assert validator.dump_python(validator.validate_python(value, strict=True)) == value


def _values(kind: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        needed = {name: _values(get_args(hint)[0]) for name, hint in hints.items() if _is_required(kind, hint)}
        others = {name: _values(get_args(hint)[0]) for name, hint in hints.items() if name not in needed}
        return st.fixed_dictionaries(needed, optional=others)
    if origin is list:
        return st.lists(_values(arguments[0]), max_size=2)
    if origin is Union:
        return st.one_of(*map(_values, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is dict:
        return OBJECTS if Any in arguments else st.dictionaries(WORDS, _values(arguments[1]), max_size=2)
    return _SCALARS[kind]


def _strict(kind: Any, known: dict[Any, Any]) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _strict_dict(kind, known)
    if origin in _LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
        return list[_strict(arguments[0], known)]  # type: ignore[misc]
    if origin in (Union, types.UnionType):
        spoken = tuple(_strict(argument, known) for argument in arguments if not _is_object(argument))
        return Union[spoken]  # noqa: UP007 - made from a tuple
    if origin is Annotated:
        return _strict(arguments[0], known)
    if origin is dict:
        return dict[arguments[0], _strict(arguments[1], known)]  # type: ignore[misc, valid-type]
    return kind


def _is_object(kind: Any) -> bool:
    """Whether it is something that the SDK itself makes JSON of: an object of its own, or a file."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_object(arguments[0])
    if origin in (Union, types.UnionType):
        return all(map(_is_object, arguments))
    return (origin or kind) in (IO, PathLike) or (isinstance(kind, type) and issubclass(kind, BaseModel))


def _strict_dict(kind: Any, known: dict[Any, Any]) -> Any:
    if kind not in known:
        known[kind] = dict[str, Any]  # for what contains itself
        # What is required is not asked of the class: it cannot tell where its annotations are texts.
        hints = get_type_hints(kind, include_extras=True)
        fields = {
            name: Required[_bare(hint, known)] if _is_required(kind, hint) else NotRequired[_bare(hint, known)]
            for name, hint in hints.items()
        }
        made = _MADE(kind.__name__, fields)
        made.__pydantic_config__ = ConfigDict(extra="forbid")
        known[kind] = made
    return known[kind]


def _is_required(kind: Any, hint: Any) -> bool:
    return get_origin(hint) is Required or (kind.__total__ and get_origin(hint) is not NotRequired)


def _bare(hint: Any, known: dict[Any, Any]) -> Any:
    return _strict(get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint, known)


@dataclass
class Loopback:
    """A server on this machine that writes down what it is sent and answers what it was told to.

    Attributes:
        answer: What it says, as often as it is asked.
        answers: What it says before that, one after the other.
    """

    url: str = ""
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answer: object = None
    answers: list[object] = field(default_factory=list)

    @property
    def body(self) -> Any:
        """The only request so far."""
        (only,) = self.bodies
        return only


def _encoded(answer: object) -> bytes:
    return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()


@contextmanager
def listening() -> Iterator[Loopback]:
    """A server on the loopback interface, for as long as it is needed."""
    heard = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.paths.append(self.path)
            heard.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = heard.answers.pop(0) if heard.answers else heard.answer
            sent = answer if isinstance(answer, bytes) else _encoded(answer)
            self.send_response(200)
            self.send_header("Content-Type", _STREAMS.get(type(answer), "application/json"))
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    heard.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
