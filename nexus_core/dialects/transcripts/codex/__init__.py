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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.lines import Record
    from nexus_core.dialects.transcripts.transcript import Transcript

_HEADER = ("instructions", "git", "cwd")


def recognises(value: dict[str, Any]) -> bool:
    """Whether a line is surely one of Codex's: in its envelope, or the first or a state line of a file without."""
    if isinstance(value.get("payload"), dict):
        return "timestamp" in value or isinstance(value.get("type"), str)
    if "type" in value or "role" in value:
        return False
    return "record_type" in value or ({"id", "timestamp"} <= value.keys() and any(key in value for key in _HEADER))


def read_session(records: Sequence[Record], account: Account) -> Transcript:
    """A session."""
    return Rollout(records, account).transcript()
