"""Sessions of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.

Two logs in one: `response_item` is what the model read and said, `event_msg` what was shown of it. Messages are read
from the former; the latter tells which of the user's messages somebody typed, and what calls cost. Files from before
October 2025 have the items with nothing around them.

items.py         lines with and without an envelope; rollout.py: a session, line by line
prompts.py       which of the user's messages somebody typed; events.py: whether an event shows what an item has
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.transcripts.codex.rollout import Rollout
from nexus_core.dialects.transcripts.messages import is_message
from nexus_core.dialects.transcripts.recognition import NONE, OWN, SHARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript

_HEADER = ("instructions", "git", "cwd")


def score_line(value: dict[str, Any]) -> int:
    """Score a line: one in its envelope, or the first, an item or a state line of a file without envelopes."""
    if isinstance(value.get("payload"), dict):
        return OWN if "timestamp" in value or isinstance(value.get("type"), str) else NONE
    if "type" in value or "role" in value:
        return SHARED if is_message(value) else NONE
    is_header = {"id", "timestamp"} <= value.keys() and any(key in value for key in _HEADER)
    return OWN if is_header or "record_type" in value else NONE


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session."""
    return Rollout(records, account).transcript()
