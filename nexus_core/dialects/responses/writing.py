"""From neutral messages to items of Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.media import absent
from nexus_core.dialects.notes import filled
from nexus_core.dialects.openai.marking import marked
from nexus_core.dialects.openai.writing import spelled_role
from nexus_core.dialects.pairing import with_ids
from nexus_core.dialects.responses.calls import FUNCTION, TYPED_OUTPUTS, kind_of, write_call, write_result
from nexus_core.dialects.responses.parts import write_parts
from nexus_core.dialects.responses.reading import said_by
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.values.api import Marks
    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part

Body = dict[str, Any]


def write_items(messages: Iterable[Message], marks: Marks | None = None) -> list[Body]:
    """The list of Responses' input."""
    items: list[Body] = []
    kinds: dict[str, str] = {}  # of the calls so far: a custom tool's answer has a type of its own
    for place, message in enumerate(with_ids(messages, "responses")):
        kinds |= {call.id: kind_of(call, message.api) for call in message.tool_calls}
        written = [_write_own(message)] if _was_message(message) else list(_write_pieces(message, kinds))
        if marks and place in marks and written and message.role != "assistant":
            _mark(written[-1])
        items += written
    return items


def _mark(item: Body) -> None:
    field = "output" if item.get("type") in TYPED_OUTPUTS else "content"
    if field in item:
        item[field] = marked(item[field], "input_text")


def _was_message(message: Message) -> bool:
    read_so = message.api == "responses" and "_content" in message.extra
    return read_so and not any(isinstance(part, ToolCall | ToolResult | Reasoning) for part in message.parts)


def _write_own(message: Message) -> Body:
    role = spelled_role(message)
    parts: Any = message.parts
    body: Body = {} if "_untyped" in message.extra else {"type": "message"}
    body["role"] = role
    spelling = message.extra["_content"]
    if parts or spelling != "nothing":
        body["content"] = write_parts(parts, "responses", spelling=spelling, said=said_by(role))
    return filled(body, message.extra)


def _write_pieces(message: Message, kinds: dict[str, str]) -> Iterator[Body]:
    """Every part in its place: calls, results and thoughts by themselves, what is between them in messages."""
    said: list[Text | Image | File] = []
    for part in message.parts:
        if isinstance(part, Text | Image | File):
            said.append(part)
            continue
        yield from _write_said(said, message)
        said = []
        yield from _write_piece(part, message.api, kinds)
    yield from _write_said(said, message)


def _write_piece(part: Part, api: str, kinds: dict[str, str]) -> Iterator[Body]:
    if isinstance(part, ToolCall):
        yield write_call(part, api)
    elif isinstance(part, ToolResult):
        yield write_result(part, api, kinds.get(part.call_id, FUNCTION))
    elif isinstance(part, Opaque) and part.api == "responses":
        yield dict(part.block)
    elif isinstance(part, Reasoning) and part.api == "responses":
        yield _write_reasoning(part)


def _write_said(parts: list[Text | Image | File], message: Message) -> Iterator[Body]:
    if not parts:
        return
    role = "user" if message.role == "tool" else spelled_role(message)
    # Only what the API itself has numbered may be a list of an assistant's texts.
    runs = [[part if isinstance(part, Text) else absent(part)] for part in parts] if role == "assistant" else [parts]
    for run in runs:
        if not _is_idle(run, message):
            content = write_parts(run, message.api, spelling="", said="input_text")
            yield {"type": "message", "role": role, "content": content}


def _is_idle(run: Sequence[Text | Image | File], message: Message) -> bool:
    """Whether it is an empty text that another API has beside a call: it would be an item that says nothing."""
    foreign = message.role == "assistant" and message.api != "responses" and len(message.parts) > 1
    return foreign and all(isinstance(part, Text) and not part.text.strip() for part in run)


def _write_reasoning(thought: Reasoning) -> Body:
    body: Body = {"type": "reasoning"}
    if thought.encrypted:
        body["encrypted_content"] = thought.encrypted
    if "_whole" not in thought.extra and thought.text:
        body["summary"] = [{"type": "summary_text", "text": thought.text}]
    return filled(body, thought.extra)
