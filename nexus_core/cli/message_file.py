"""A file of messages: a JSON list, the body of a whole request, or one message on each line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.cli.given_file import read_given_text
from nexus_core.cli.given_json import parse_json, parse_lines
from nexus_core.dialects.transcripts.messages import name_of_request
from nexus_core.dialects.transcripts.reading import is_session_line
from nexus_core.errors import FileError, MessageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nexus_core.dialects.finding import Dialects

_FIELDS = {"messages": "", "input": "responses", "contents": "gemini"}
"""Where a request has its messages, and whose request it must be."""

_FORMS = "it must be a list, one message on each line, or a request with messages, input or contents"

Form = Literal["list", "body", "lines"]


class MessageFile(NamedTuple):
    """What a file holds.

    Attributes:
        form: What it is: a list, a request, or lines.
        messages: The messages.
        dialect: Whose they must be, "" if the form does not tell.
        body: The request, with its messages in `field`.
        field: Where in it they are.
        indent: How deep each level is indented.
    """

    form: Form
    messages: list[Any]
    dialect: str = ""
    body: dict[str, Any] | None = None
    field: str = ""
    indent: int | None = None

    def value(self, messages: Sequence[Any]) -> Any:  # noqa: ANN401 - a list or an object
        """The same file with other messages, as JSON."""
        return list(messages) if self.body is None else {**self.body, self.field: list(messages)}

    def written(self, messages: Sequence[Any], *, ascii_only: bool = False) -> str:
        """The text of the same file with other messages."""
        if self.form == "lines":
            return "".join(json.dumps(message, ensure_ascii=ascii_only) + "\n" for message in messages)
        return json.dumps(self.value(messages), ensure_ascii=ascii_only, indent=self.indent) + "\n"


def read_messages_in(directory: Path, name: str, dialects: Dialects) -> MessageFile:
    """The messages in a file, or on standard input.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or holds no messages.
    """
    path, text = read_given_text(directory, name)
    if not text.strip():
        raise FileError("there is nothing in it", where=str(path), hint=_FORMS)
    lines = parse_lines(path, text)
    if lines is not None:
        return _lines(path, [value for _, value in lines])
    return _found(path, parse_json(path, text, text), dialects, indent=2 if "\n" in text.strip() else None)


def _found(
    path: Path,
    value: Any,  # noqa: ANN401 - what a file may hold
    dialects: Dialects,
    indent: int | None,
) -> MessageFile:
    if isinstance(value, list):
        return MessageFile("list", value, indent=indent)
    fields = _FIELDS.items() if isinstance(value, dict) else ()
    for field, dialect in fields:
        messages = value.get(field)
        if field == "input" and isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]  # which OpenAI takes it for
        if isinstance(messages, list):
            _require_whole(path, value)
            of = dialect or _name_of(value, dialects)
            return MessageFile("body", messages, of, value, field, indent)
    if isinstance(value, dict) and ("role" in value or "type" in value):
        return _lines(path, [value])
    raise FileError("there are no messages in it", where=str(path), hint=_FORMS)


def _name_of(body: dict[str, Any], dialects: Dialects) -> str:
    """Whose a request is; what is no message in it is named by whoever reads it."""
    with suppress(MessageError):
        return name_of_request(body, dialects)
    return ""


def _lines(path: Path, values: list[Any]) -> MessageFile:
    if any(isinstance(value, dict) and "role" not in value and is_session_line(value) for value in values):
        raise FileError(
            "a session that an agent wrote, not a list of messages",
            where=str(path),
            hint="`nexus context FILE` shows what is in it, `nexus session import FILE` keeps it",
        )
    return MessageFile("lines", values)


def _require_whole(path: Path, body: dict[str, Any]) -> None:
    for field in ("previous_response_id", "conversation"):
        if body.get(field):
            raise FileError(
                f"the request goes on with what OpenAI keeps ({field})",
                where=str(path),
                hint="only the whole list of items can be checked",
            )
