"""What follows each other without a change of speaker, each of which becomes a step or two."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.session.importing.paths import Summed
from nexus_core.types.messages import ToolResult

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from nexus_core.session.importing.paths import Key
    from nexus_core.transcripts.base import TranscriptEntry

    Placed = tuple[Key, TranscriptEntry | Summed]
    RunKind = Literal["said", "reply", "result", "compaction"]


class ImportRun(NamedTuple):
    """Items of one kind.

    Attributes:
        kind: Who speaks: the user or a program in the user's name, the model, tools; or where it was compacted.
        items: The items.
        prompt: How many of them come before the first that the user said.
        goes_on: Whether the model goes on by itself behind them, before the user says anything.
        is_followed: Whether a program says something behind them, in the user's name.
    """

    kind: RunKind
    items: Sequence[Placed]
    prompt: int
    goes_on: bool = False
    is_followed: bool = False


def entries_of(items: Sequence[Placed]) -> list[TranscriptEntry]:
    """What was said in items, compactions left out."""
    return [item for _, item in items if not isinstance(item, Summed)]


def find_runs(items: Sequence[Placed]) -> list[ImportRun]:
    """The runs of items that follow each other; what a compaction keeps begins with one."""
    kept = {(key[0], item.kept) for key, item in items if isinstance(item, Summed)}
    kinds = [_kind(item) for _, item in items]
    ends = [0]
    while ends[-1] < len(items):
        ends.append(_end(items, kinds, ends[-1], kept))
    runs: list[ImportRun] = []  # the last first, because each says what follows it
    for end, start in pairwise(reversed(ends)):
        runs.append(_run(kinds[start], items[start:end], runs[-1] if runs else None))
    return runs[::-1]


def _run(kind: RunKind, items: Sequence[Placed], following: ImportRun | None) -> ImportRun:
    prompt = next((place for place, (_, item) in enumerate(items) if is_prompt(item)), len(items))
    if following is None:
        return ImportRun(kind, items, prompt)
    is_answered = following.kind in ("reply", "result")
    goes_on = is_answered or (following.goes_on and following.prompt == len(following.items))
    return ImportRun(kind, items, prompt, goes_on, is_followed=following.kind == "said" and following.prompt > 0)


def _end(items: Sequence[Placed], kinds: Sequence[RunKind], start: int, kept: Container[tuple[int, int | None]]) -> int:
    kind, end = kinds[start], start + 1
    if kind == "compaction":
        return end
    reply = _reply_of(items[start][1])
    while end < len(items) and kinds[end] == kind and items[end][0] not in kept:
        if kind == "reply" and _reply_of(items[end][1]) != reply:
            break
        end += 1
    return end


def _kind(item: TranscriptEntry | Summed) -> RunKind:
    if isinstance(item, Summed):
        return "compaction"
    message = item.message
    if message.role == "assistant":
        return "reply"
    return "result" if any(type(part) is ToolResult for part in message.parts) else "said"


def is_prompt(item: TranscriptEntry | Summed) -> bool:
    """Whether it is something that the user said."""
    return not isinstance(item, Summed) and item.kind == "said" and item.message.role == "user"


def _reply_of(item: TranscriptEntry | Summed) -> str:
    return "" if isinstance(item, Summed) else item.reply
