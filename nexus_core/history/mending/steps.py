"""The steps of repair in their order. No step brings back what an earlier one put right; a test holds them to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.findings import CODES
from nexus_core.history.mending import blocks, misplaced, parts, placing, texts, thoughts, turns
from nexus_core.history.mending.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.values.api import ApiRules
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message


class Step(NamedTuple):
    """One step, taken if the API's rules make any of its codes apply."""

    run: Callable[[Work], None]
    codes: tuple[str, ...]


class Mended(NamedTuple):
    """What repair made of messages.

    Attributes:
        messages: Each with the place it had in the list that was given; None for one that was changed or made.
        places: For each of them the place of the message that it is, or that it was made of or for.
        findings: What was put right, in the order of the messages.
    """

    messages: list[tuple[int | None, Message]]
    places: list[int]
    findings: tuple[Finding, ...]


_LEFTOVERS = (
    Step(blocks.drop_unpaired_blocks, ("unpaired-block",)),
    Step(turns.drop_empty_messages, ("empty-message",)),
    Step(thoughts.drop_dangling_reasoning, ("dangling-reasoning",)),
    Step(turns.drop_empty_messages, ("empty-message",)),
)
"""What is left of a turn whose other half is gone."""

STEPS = (
    Step(texts.clean_texts, ("lone-surrogate", "nul-character")),
    Step(parts.drop_foreign_blocks, ("foreign-block",)),
    Step(thoughts.drop_foreign_reasoning, ("foreign-reasoning",)),
    Step(thoughts.drop_unsigned_reasoning, ("unsigned-reasoning",)),
    Step(misplaced.move_misplaced_parts, ("misplaced-part",)),
    Step(parts.replace_misplaced_media, ("misplaced-media",)),
    Step(parts.replace_oversized_media, ("oversized-media",)),
    Step(parts.replace_unusable_media, ("unusable-media",)),
    Step(parts.retype_texts, ("wrong-text-type",)),
    Step(parts.wrap_malformed_arguments, ("malformed-arguments",)),
    Step(texts.drop_blank_texts, ("blank-text",)),
    Step(parts.word_silent_errors, ("silent-error",)),
    *_LEFTOVERS,
    Step(
        placing.pair_results,
        (
            *("orphan-result", "duplicate-result", "missing-result", "early-result", "late-result"),
            *("blank-tool-name", "invalid-tool-name", "missing-id", "invalid-id", "duplicate-id"),
            *("unmatched-id", "wrong-result-name"),
        ),
    ),
    *_LEFTOVERS,  # a result that was moved behind the last message has made it another than the last
    Step(placing.order_results, ("results-not-first",)),
    Step(placing.join_results, ("split-results",)),
    Step(placing.part_results, ("results-not-alone",)),
    Step(turns.join_turns, ("split-turn",)),
    Step(turns.move_instructions, ("system-message",)),
    Step(turns.begin_with_user, ("wrong-first-role",)),
    Step(turns.end_with_user, ("wrong-last-role",)),
    Step(turns.cut_final_blanks, ("final-blanks",)),
    Step(turns.drop_empty_list_fields, ("empty-field",)),
    Step(turns.rename_speakers, ("invalid-speaker-name",)),
    Step(turns.report_missing_messages, ("empty-list",)),
    Step(blocks.drop_reasoning_cache_markers, ("misplaced-cache-mark",)),
    Step(blocks.limit_cache_marks, ("too-many-cache-marks", "cache-mark-order")),
)


def mend(messages: Sequence[Message], rules: ApiRules, *, listed: bool = False, marked: Sequence[str] = ()) -> Mended:
    """Make messages what an API accepts. Nothing that is given is changed; what needs no change comes back itself.

    Args:
        messages: The messages.
        rules: What the API accepts.
        listed: Whether they are the elements of the API's own list, in which instructions that are a field beside it
            have no place.
        marked: The lifetimes of marks for the cache that stand before the messages, on tools.
    """
    work = Work(messages, rules, listed=listed, marked=marked)
    for step in STEPS:
        if any(CODES[code].applies(rules) for code in step.codes):
            step.run(work)
    finished = [(draft.index, draft.finished()) for draft in work.drafts]
    mended = [(index if message is messages[index] else None, message) for index, message in finished]
    places = [index for index, _ in finished]
    return Mended(mended, places, tuple(sorted(work.findings, key=lambda finding: finding.index or 0)))
