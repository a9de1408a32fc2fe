"""Sessions of pi: `~/.pi/agent/sessions/<directory>/<time>_<id>.jsonl`.

messages.py      messages as pi writes them; session.py: the tree they stand in
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.transcripts.pi.session import Session
from nexus_core.dialects.transcripts.recognition import NONE, OWN, SHARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript


_KINDS = (
    "branch_summary",
    "compaction",
    "custom",
    "custom_message",
    "label",
    "message",
    "model_change",
    "session_info",
    "thinking_level_change",
)


def score_line(value: dict[str, Any]) -> int:
    """Score a line: the first of a file, an entry with a place in the tree, or a message."""
    kind = value.get("type")
    if kind == "session":
        return OWN if "id" in value and "timestamp" in value else NONE
    if kind in _KINDS and ("parentId" in value or (kind == "message" and "message" in value)):
        return OWN
    return SHARED if isinstance(kind, str) and "parentId" in value else NONE


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session."""
    return Session(records, account).transcript()
