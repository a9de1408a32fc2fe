"""What `nexus session record` is given: messages, replies and results, in the shape of any API or in words."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.dialects.fields import at, named
from nexus_core.dialects.finding import read_messages
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.session.asking.inputs import read_input
from nexus_core.session.asking.occasion import EVENT
from nexus_core.session.recording.replies import is_told, read_reply
from nexus_core.session.recording.results import read_results
from nexus_core.session.steps.turns import read_usage
from nexus_core.values.agent_result import AgentResult
from nexus_core.values.conversation import Reply
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.dialects.finding import Dialects

Speaker = Literal["user", "assistant"]

SHAPES = (
    "a reply of an API, results of tools, a message with a role, an agent's result with `messages`,"
    ' or {"ask": …}, {"reply": …}, {"call": …, "result": …}'
)


class Ask(NamedTuple):
    """Somebody says something: a turn is opened.

    Attributes:
        message: What is said.
        interrupt: Whether a turn that is open is given up.
        event: What is known of the occasion.
    """

    message: object
    interrupt: bool = False
    event: Mapping[str, Any] = {}


class Keep(NamedTuple):
    """A reply, results or a whole turn is kept.

    Attributes:
        given: What `Session.record` takes.
        what: Which of these it is.
        interrupted: Whether a reply was cut off; None where that is not said.
    """

    given: object
    what: Literal["reply", "result", "turn"]
    interrupted: bool | None = None


class Answer(NamedTuple):
    """The result of one call is kept.

    Attributes:
        call: The call, by its key or its id.
        content: The result, as text.
        is_error: Whether the tool failed.
    """

    call: str
    content: str
    is_error: bool = False


Item = Ask | Keep | Answer


def read_text(text: str, speaker: Speaker) -> Item:
    """Words that somebody said."""
    if speaker == "user":
        return Ask(text)
    return Keep(Reply(messages=(Message("assistant", text),), stop="end"), "reply")


def read_item(value: object, dialects: Dialects) -> Item:
    """One thing that was said, answered or brought.

    Args:
        value: What was parsed.
        dialects: The shapes that it may be in.

    Raises:
        MessageError: It is in no shape that is known, or wrong in it; says where.
    """
    if isinstance(value, list):
        return _read_given(value, dialects)
    if not isinstance(value, dict):
        raise MessageError(f"expected an object, not {named(value)}", hint="--as user takes the file for plain words")
    for key, read in (("ask", _read_ask), ("reply", _read_envelope), ("call", _read_answer)):
        if key in value:
            return read(value, dialects)
    # Of whole replies, only Anthropic's have a role, and always a reason why they ended.
    if "role" in value and "stop_reason" not in value:
        return _read_message(value, dialects)
    if "messages" in value:
        return _read_agent_result(value, dialects)
    return _read_message(value, dialects) if _is_offered(value, dialects) else _read_given(value, dialects)


def _is_offered(value: dict[str, Any], dialects: Dialects) -> bool:
    """Whether it is a message in the shape of a plugin's dialect."""
    speaking = None if is_told(value) else dialects.offering(value)
    try:
        return speaking is not None and bool(speaking.read(value))
    except MessageError:  # it may be a reply
        return False


def _read_message(value: dict[str, Any], dialects: Dialects) -> Item:
    if read_results(value, dialects) is not None:
        return Keep(value, "result")
    message = dialects.recognise([value]).read(value)
    if message.role == "user":
        return Ask(message)
    if message.role != "assistant":
        hint = "what every call begins with comes from the layers: see `nexus show`"
        raise MessageError(f"a message of the {message.role} cannot be recorded", path="role", hint=hint)
    return Keep(read_reply(message, dialects), "reply")


def _read_given(value: object, dialects: Dialects) -> Keep:
    if read_results(value, dialects) is not None:
        return Keep(value, "result")
    try:
        return Keep(read_reply(value, dialects), "reply")
    except MessageError as error:
        if error.path:
            raise
        raise MessageError(error.what, hint=f"known are {SHAPES}") from None


def _read_ask(value: dict[str, Any], dialects: Dialects) -> Ask:
    _require_fields(value, ("ask", "interrupt", *EVENT))
    event = {name: each for name, each in value.items() if name not in ("ask", "interrupt")}
    said = read_input(value["ask"], event, dialects)
    return Ask(said.message, _flag(value, "interrupt"), event)


def _read_envelope(value: dict[str, Any], dialects: Dialects) -> Keep:
    _require_fields(value, ("reply", "interrupted"))
    with at("reply"):
        reply = value["reply"]
        item = read_item(reply, dialects) if isinstance(reply, dict) else _read_given(reply, dialects)
        if not isinstance(item, Keep) or item.what != "reply":
            raise MessageError("expected what a model answered")
    return item._replace(interrupted=_flag(value, "interrupted") if "interrupted" in value else None)


def _read_answer(value: dict[str, Any], _dialects: Dialects) -> Answer:
    _require_fields(value, ("call", "result", "is_error"))
    if not isinstance(value["call"], str) or not value["call"]:
        raise MessageError(f"expected the key or the id of a call, not {named(value['call'])}", path="call")
    if "result" not in value:
        raise MessageError("there is no 'result'", path="result")
    return Answer(value["call"], written(value["result"]), _flag(value, "is_error"))


def written(result: object) -> str:
    """What a tool brought, as text: words as they are, anything else as JSON."""
    from json import dumps  # noqa: PLC0415 - most tools bring words

    return result if isinstance(result, str) else dumps(result, ensure_ascii=False)


def _read_agent_result(value: dict[str, Any], dialects: Dialects) -> Keep:
    _require_fields(value, tuple(field.name for field in fields(AgentResult)))
    if not isinstance(value["messages"], list) or not value["messages"]:
        raise MessageError(f"expected a list of messages, not {named(value['messages'])}", path="messages")
    read_messages(dialects.recognise(value["messages"]), value["messages"])
    with at("usage"):
        usage = read_usage(value.get("usage"))
    return Keep(AgentResult(**{**value, "usage": usage}), "turn")


def _require_fields(value: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in value:
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise MessageError(f"unknown field {name!a}", path=name, hint=hint)


def _flag(value: dict[str, Any], name: str) -> bool:
    given = value.get(name, False)
    if not isinstance(given, bool):
        raise MessageError(f"expected true or false, not {named(given)}", path=name)
    return given
