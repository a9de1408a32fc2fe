"""Sessions of pi: `~/.pi/agent/sessions/<directory>/<time>_<id>.jsonl`.

messages.py      messages as pi writes them; session.py: the tree they stand in
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.transcripts.pi.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript


def recognises(value: dict[str, Any]) -> bool:
    """Whether a line is surely one of pi's: the first of a file, or an entry with a place in the tree or a message."""
    kind = value.get("type")
    if kind == "session":
        return "id" in value and "timestamp" in value
    return isinstance(kind, str) and ("parentId" in value or (kind == "message" and "message" in value))


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session."""
    return Session(records, account).transcript()
