"""Repair rules for message order: roles, empty messages and instructions."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import is_
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import format_for_error
from nexus_core.history.repair.content import is_blank_text
from nexus_core.history.repair.draft import MessageDraft
from nexus_core.history.repair.pairing import is_valid_name, sanitize_name
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.history.repair.draft import RepairWork
    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import JSON, Part

BEGINNING_TEXT = "[The conversation begins with the assistant.]"
CONTINUE_TEXT = "Continue."


def drop_empty_messages(work: RepairWork) -> None:
    """Drop messages without parts, and those with only blank texts if the API rejects these or it is a reply."""
    drafts: list[MessageDraft] = []
    for draft in work.drafts:
        if _is_empty(work, draft):
            work.add_finding("empty-message", draft, "it is empty")
        else:
            drafts.append(draft)
    work.drafts = drafts


def drop_empty_list_fields(work: RepairWork) -> None:
    """Drop fields that are an empty list or null if the API rejects these; conversion writes no such fields."""
    for draft in filter(work.is_native, work.drafts):
        if not draft.message.extra and not draft.holds(ToolResult):
            continue
        extra = _drop_empty_fields(draft.message.extra, draft.parts, work.rules)
        parts = [_drop_empty_result_fields(part, work.rules) for part in draft.parts]
        if extra is draft.message.extra and all(map(is_, parts, draft.parts)):
            continue
        work.add_finding("empty-field", draft, f"the {work.rules.name} API accepts no empty list or null there")
        draft.message, draft.parts = replace(draft.message, extra=extra), parts


def has_empty_list_field(extra: JSON, parts: Sequence[Part], rules: ApiRules) -> bool:
    """Return True if a message or a tool result has an empty list in a field where the API rejects it."""
    return _drop_empty_fields(extra, parts, rules) is not extra


def rename_speakers(work: RepairWork) -> None:
    """Replace invalid speaker names, or drop them if no character is valid; conversion drops those of other APIs."""
    rules = work.rules
    for draft in filter(work.is_native, work.drafts):
        name = draft.message.name
        if name and not is_valid_name(name, rules.name_pattern, rules.name_length):
            work.add_finding(
                "invalid-speaker-name", draft, f"the {rules.name} API does not allow the name {format_for_error(name)}"
            )
            new = sanitize_name(name, rules.name_pattern, rules.name_length)
            # Two names without a single valid character would look like one speaker.
            draft.message = replace(draft.message, name=new if new.strip("_") else "")


def report_missing_messages(work: RepairWork) -> None:
    """Report a list without messages; repair adds none."""
    is_field = work.rules.system == "field"
    if not any(not is_field or draft.role != "system" or work.listed for draft in work.drafts):
        work.findings.append(Finding("empty-list", f"the {work.rules.name} API needs at least one message"))


def move_instructions(work: RepairWork) -> None:
    """Turn misplaced instructions into user messages; leading ones stay, unless the list is the API's own."""
    drafts = work.drafts
    beside = (draft.role == "system" and not _is_listed(work, draft) for draft in drafts)
    leading = next((index for index, is_beside in enumerate(beside) if not is_beside), len(drafts))
    for index in range(len(drafts) - 1, leading - 1, -1):  # backwards, because it depends on what follows
        draft = drafts[index]
        if draft.role == "system" and not _allows_instructions(work, index):
            work.add_finding("system-message", draft, f"the {work.rules.name} API accepts no instructions there")
            draft.role = "user"


def join_turns(work: RepairWork) -> None:
    """Join neighbouring replies of one turn that has calls; conversion joins those of other APIs."""
    drafts: list[MessageDraft] = []
    for role, neighbours in groupby(work.drafts, key=lambda draft: draft.role):
        turn = list(neighbours)
        native = next(filter(work.is_native, turn), None)
        if role != "assistant" or len(turn) == 1 or native is None or not any(draft.has_calls for draft in turn):
            drafts += turn
            continue
        for draft in turn[1:]:
            work.add_finding("split-turn", draft, "the words and calls of one turn are split across several messages")
        drafts.append(native.copy([part for draft in turn for part in draft.parts], "assistant"))
    work.drafts = drafts


def begin_with_user(work: RepairWork) -> None:
    """Insert a user message at the beginning if the first role is not allowed there."""
    first = next((index for index, draft in enumerate(work.drafts) if draft.role != "system"), None)
    if first is None or work.drafts[first].role in work.rules.first:
        return
    draft = work.drafts[first]
    work.add_finding("wrong-first-role", draft, f"the {draft.role} speaks first")
    work.drafts.insert(first, MessageDraft(draft.index, Message("user", (Text(BEGINNING_TEXT),)), is_added=True))


def end_with_user(work: RepairWork) -> None:
    """Append a user message if the last role is not allowed there, unless a call waits for its result."""
    draft = work.drafts[-1] if work.drafts else None
    if draft is None or draft.role in (*work.rules.last, "system") or _ends_with_calls(work):
        return
    work.add_finding("wrong-last-role", draft, f"the {draft.role} has the last word")
    work.drafts.append(MessageDraft(draft.index, Message("user", (Text(CONTINUE_TEXT),)), is_added=True))


def cut_final_blanks(work: RepairWork) -> None:
    """Remove whitespace from the end of the last message if it is a reply."""
    draft = work.drafts[-1] if work.drafts else None
    if draft is None or draft.role != "assistant":
        return
    index = next((index for index in reversed(range(len(draft.parts))) if not is_blank_text(draft.parts[index])), 0)
    last = draft.parts[index]
    if isinstance(last, Text) and last.text != last.text.rstrip():
        work.add_finding("final-blanks", draft, "the assistant's last message ends in whitespace")
        draft.parts[index] = replace(last, text=last.text.rstrip())


def _drop_empty_fields(extra: JSON, parts: Sequence[Part], rules: ApiRules) -> JSON:
    """Return the extra fields of a message or result without empty lists; the same object if there are none."""
    # `content` may be null, other lists may not.
    empty = {
        name
        for name in rules.filled_lists
        if name in extra and (extra[name] == [] or (extra[name] is None and name != "content"))
    }
    if "content" in rules.filled_lists and extra.get("_content") == "list" and not any(map(_is_content, parts)):
        empty.add("_content")  # the dialect's metadata that the content was a list
    return {key: value for key, value in extra.items() if key not in empty} if empty else extra


def _drop_empty_result_fields(part: Part, rules: ApiRules) -> Part:
    if not isinstance(part, ToolResult):
        return part
    extra = _drop_empty_fields(part.extra, part.parts, rules)
    return part if extra is part.extra else replace(part, extra=extra)


def _is_content(part: Part) -> bool:
    return not isinstance(part, ToolCall | ToolResult | Reasoning)


def _is_empty(work: RepairWork, draft: MessageDraft) -> bool:
    words = [part for part in draft.parts if not isinstance(part, Reasoning)]
    if not words:
        return not draft.parts  # another rule handles reasoning without output
    # A blank reply is empty, even where a user message may be blank.
    return (draft.role == "assistant" or not work.rules.blank_text) and all(map(is_blank_text, words))


def _allows_instructions(work: RepairWork, index: int) -> bool:
    """Return True if instructions may be at an index: where the API allows it, between a user message and a reply."""
    drafts = work.drafts
    if not work.rules.later_system or not work.is_native(drafts[index]) or index == 0:
        return False
    is_last = index == len(drafts) - 1
    return drafts[index - 1].role in ("user", "tool") and (is_last or drafts[index + 1].role == "assistant")


def _is_listed(work: RepairWork, draft: MessageDraft) -> bool:
    """Return True for instructions from the list itself; the dialect marks those from the field with `_field`."""
    return work.listed or (work.rules.later_system and work.is_native(draft) and "_field" not in draft.message.extra)


def _ends_with_calls(work: RepairWork) -> bool:
    """Return True if the list ends with replies of which one calls a tool."""
    for draft in reversed(work.drafts):
        if draft.role != "assistant":
            return False
        if draft.has_calls:
            return True
    return False
