"""Reader for sessions saved by NEXUS3: `~/.nexus3/sessions/<name>.json`.

`~/.nexus3/last-session.json` is one, too. A file is one JSON document. Its messages have a role and a text; tool call
arguments are objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.errors import MessageError
from nexus_core.transcripts.base import (
    SCORE_NONE,
    SCORE_OWN,
    Transcript,
    TranscriptEntry,
    TranscriptFormat,
    build_opaque_message,
    find_object,
    find_text,
    list_objects,
    locate_elements,
    try_read,
)
from nexus_core.types.messages import ROLES, Message, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.transcripts.base import LineAccount, LocatedValue
    from nexus_core.types.messages import Part, Role

FORMAT_NAME = "nexus3"
_REQUIRED_FIELDS = {"agent_id", "messages", "system_prompt", "working_directory"}


def score_line(value: dict[str, Any]) -> int:
    """Score a document by its required fields."""
    return SCORE_OWN if value.keys() >= _REQUIRED_FIELDS and isinstance(value["messages"], list) else SCORE_NONE


def read_saved_session(text: str, found: Mapping[str, LocatedValue], account: LineAccount) -> Transcript:
    """Parse a saved session. Its other fields are kept as metadata.

    The transcript has no id: `agent_id` is not unique, and the session's name is only in the file name.
    """
    pieces = list(locate_elements(text, found["messages"]))
    for name, piece in found.items():
        if name != "messages":
            account.keep(piece.line, name, piece.value)
    account.lines = len(pieces) + len(found) - 1
    body = {name: piece.value for name, piece in found.items()}
    model = find_text(body, "model_alias")
    entries = tuple(_read_entry(piece, model, account) for piece in pieces)
    prompt = find_text(body, "system_prompt")
    return Transcript(
        format=FORMAT_NAME,
        api="",
        entries=entries,
        report=account.report(),
        cwd=find_text(body, "working_directory"),
        system=(Message("system", prompt),) if prompt else (),
        asked=model,
        metadata=account.metadata,
    )


def _read_entry(piece: LocatedValue, model: str, account: LineAccount) -> TranscriptEntry:
    body = piece.value if isinstance(piece.value, dict) else {"content": piece.value}
    message = try_read(_read_message, body, account, piece.line) or build_opaque_message("user", FORMAT_NAME, body)
    account.use("message", piece.line)
    return TranscriptEntry(
        message=message,
        lines=(piece.line,),
        time=find_text(find_object(body, "meta"), "timestamp"),
        model=model if message.role == "assistant" else "",
        raw=(body,),
    )


def _read_message(body: dict[str, Any]) -> Message:
    role: Role | None = next((role for role in ROLES if role == body.get("role")), None)
    content = body.get("content")
    if role is None:
        raise MessageError("unknown role", path="role")
    if content is not None and not isinstance(content, str):
        raise MessageError("expected text", path="content")
    texts = [Text(content)] if content else []
    if role == "tool":
        return Message(role, (ToolResult(find_text(body, "tool_call_id"), tuple(texts)),))
    calls: list[Part] = [
        ToolCall(find_text(call, "id"), find_text(call, "name"), find_object(call, "arguments"))
        for call in list_objects(body.get("tool_calls"))
    ]
    return Message(role, (*texts, *calls))


FORMAT = TranscriptFormat(FORMAT_NAME, "a saved session of NEXUS3", score_line, read_document=read_saved_session)
