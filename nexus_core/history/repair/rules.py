"""The repair rules in their order, and the function that applies them.

No rule reintroduces what an earlier one repaired; a property test checks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.repair import content, order, pairing
from nexus_core.history.repair.draft import RepairWork
from nexus_core.history.repair.findings import FINDING_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding


class RepairRule(NamedTuple):
    """One repair function, called if any of its codes applies to the API."""

    run: Callable[[RepairWork], None]
    codes: tuple[str, ...]


class RepairedMessages(NamedTuple):
    """The repaired messages and the findings.

    Attributes:
        messages: Each with its index in the list that was given; None for a changed or added message.
        places: For each of them the index of the message that it is, or that it was made from or added for.
        findings: The repaired problems, in the order of the messages.
    """

    messages: list[tuple[int | None, Message]]
    places: list[int]
    findings: tuple[Finding, ...]


_LEFTOVER_RULES = (
    RepairRule(content.drop_unpaired_blocks, ("unpaired-block",)),
    RepairRule(order.drop_empty_messages, ("empty-message",)),
    RepairRule(content.drop_dangling_reasoning, ("dangling-reasoning",)),
    RepairRule(order.drop_empty_messages, ("empty-message",)),
)
"""Rules that remove the remainder of a turn after another rule has removed the rest."""

REPAIR_RULES = (
    RepairRule(content.clean_texts, ("lone-surrogate", "nul-character")),
    RepairRule(content.drop_foreign_blocks, ("foreign-block",)),
    RepairRule(content.drop_foreign_reasoning, ("foreign-reasoning",)),
    RepairRule(content.drop_unsigned_reasoning, ("unsigned-reasoning",)),
    RepairRule(content.move_misplaced_parts, ("misplaced-part",)),
    RepairRule(content.replace_misplaced_media, ("misplaced-media",)),
    RepairRule(content.replace_oversized_media, ("oversized-media",)),
    RepairRule(content.replace_unusable_media, ("unusable-media",)),
    RepairRule(content.retype_texts, ("wrong-text-type",)),
    RepairRule(content.wrap_malformed_arguments, ("malformed-arguments",)),
    RepairRule(content.drop_blank_texts, ("blank-text",)),
    RepairRule(content.describe_silent_errors, ("silent-error",)),
    *_LEFTOVER_RULES,
    RepairRule(
        pairing.pair_results,
        (
            *("orphan-result", "duplicate-result", "missing-result", "early-result", "late-result"),
            *("blank-tool-name", "invalid-tool-name", "missing-id", "invalid-id", "duplicate-id"),
            *("unmatched-id", "wrong-result-name"),
        ),
    ),
    *_LEFTOVER_RULES,  # again, because pairing may have appended a result: what was the last message is not any more
    RepairRule(pairing.order_results, ("results-not-first",)),
    RepairRule(pairing.join_results, ("split-results",)),
    RepairRule(pairing.separate_results, ("results-not-alone",)),
    RepairRule(order.join_turns, ("split-turn",)),
    RepairRule(order.move_instructions, ("system-message",)),
    RepairRule(order.begin_with_user, ("wrong-first-role",)),
    RepairRule(order.end_with_user, ("wrong-last-role",)),
    RepairRule(order.cut_final_blanks, ("final-blanks",)),
    RepairRule(order.drop_empty_list_fields, ("empty-field",)),
    RepairRule(order.rename_speakers, ("invalid-speaker-name",)),
    RepairRule(order.report_missing_messages, ("empty-list",)),
    RepairRule(content.drop_reasoning_cache_markers, ("misplaced-cache-mark",)),
    RepairRule(content.limit_cache_marks, ("too-many-cache-marks", "cache-mark-order")),
)


def apply_repair_rules(
    messages: Sequence[Message], rules: ApiRules, *, listed: bool = False, marked: Sequence[str] = ()
) -> RepairedMessages:
    """Repair messages so that an API accepts them. Valid messages are returned as the same objects.

    Args:
        messages: The messages; they are not changed.
        rules: The rules of the API.
        listed: True if they are the API's own list, which may not contain instructions that belong in a field.
        marked: The lifetimes of cache breakpoints before the messages, on tools.
    """
    work = RepairWork(messages, rules, listed=listed, marked=marked)
    for rule in REPAIR_RULES:
        if any(FINDING_CODES[code].applies(rules) for code in rule.codes):
            rule.run(work)
    finished = [(draft.index, draft.build_message()) for draft in work.drafts]
    repaired = [(index if message is messages[index] else None, message) for index, message in finished]
    places = [index for index, _ in finished]
    return RepairedMessages(repaired, places, tuple(sorted(work.findings, key=lambda finding: finding.index or 0)))
