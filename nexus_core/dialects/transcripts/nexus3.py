"""Saved sessions of NEXUS3: `~/.nexus3/sessions/<name>.json` and `~/.nexus3/last-session.json`.

One document. Its messages have a role and a text; calls have their arguments as an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.transcripts.document import elements
from nexus_core.dialects.transcripts.lines import mapping_under, objects_in, word_in
from nexus_core.dialects.transcripts.recognition import NONE, OWN
from nexus_core.dialects.transcripts.transcript import Entry, Transcript
from nexus_core.dialects.transcripts.unreadable import attempt, kept
from nexus_core.errors import MessageError
from nexus_core.values.message import ROLES, Message
from nexus_core.values.parts import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.document import Piece
    from nexus_core.values.message import Role
    from nexus_core.values.parts import Part

FORMAT = "nexus3"
_FIELDS = {"agent_id", "messages", "system_prompt", "working_directory"}


def score_line(value: dict[str, Any]) -> int:
    """Score a document."""
    return OWN if value.keys() >= _FIELDS and isinstance(value["messages"], list) else NONE


def read_saved_session(text: str, found: Mapping[str, Piece], account: Account) -> Transcript:
    """Read a saved session; its other fields are kept as they are.

    It has no id of its own: agents are called alike, and the file has the name that the user gave the session.
    """
    pieces = list(elements(text, found["messages"]))
    for name, piece in found.items():
        if name != "messages":
            account.keep(piece.line, name, piece.value)
    account.lines = len(pieces) + len(found) - 1
    body = {name: piece.value for name, piece in found.items()}
    model = word_in(body, "model_alias")
    entries = tuple(_entry(piece, model, account) for piece in pieces)
    prompt = word_in(body, "system_prompt")
    return Transcript(
        format=FORMAT,
        api="",
        entries=entries,
        report=account.report(),
        cwd=word_in(body, "working_directory"),
        system=(Message("system", prompt),) if prompt else (),
        asked=model,
        metadata=account.metadata,
    )


def _entry(piece: Piece, model: str, account: Account) -> Entry:
    body = piece.value if isinstance(piece.value, dict) else {"content": piece.value}
    message = attempt(_read_message, body, account, piece.line) or kept("user", FORMAT, body)
    account.use("message", piece.line)
    return Entry(
        message=message,
        lines=(piece.line,),
        time=word_in(mapping_under(body, "meta"), "timestamp"),
        model=model if message.role == "assistant" else "",
        raw=(body,),
    )


def _read_message(body: dict[str, Any]) -> Message:
    role: Role | None = next((role for role in ROLES if role == body.get("role")), None)
    content = body.get("content")
    if role is None:
        raise MessageError("no role that is known", path="role")
    if content is not None and not isinstance(content, str):
        raise MessageError("expected text", path="content")
    texts = [Text(content)] if content else []
    if role == "tool":
        return Message(role, (ToolResult(word_in(body, "tool_call_id"), tuple(texts)),))
    calls: list[Part] = [
        ToolCall(word_in(call, "id"), word_in(call, "name"), mapping_under(call, "arguments"))
        for call in objects_in(body.get("tool_calls"))
    ]
    return Message(role, (*texts, *calls))
