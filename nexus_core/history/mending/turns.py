"""Who speaks when."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import is_
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import shown
from nexus_core.history.mending.naming import is_valid, sanitize_name
from nexus_core.history.mending.texts import is_blank
from nexus_core.history.mending.work import Draft
from nexus_core.values.finding import Finding
from nexus_core.values.message import Message
from nexus_core.values.parts import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.history.mending.work import Work
    from nexus_core.values.api import ApiRules
    from nexus_core.values.parts import JSON, Part

BEGINNING = "[The conversation begins with the assistant.]"
CONTINUE = "Continue."


def drop_empty_messages(work: Work) -> None:
    """Leave messages out that say nothing: without parts, or with blank texts only where nobody would take those."""
    drafts: list[Draft] = []
    for draft in work.drafts:
        if _says_nothing(work, draft):
            work.note("empty-message", draft, "it is empty")
        else:
            drafts.append(draft)
    work.drafts = drafts


def drop_empty_list_fields(work: Work) -> None:
    """Leave fields out that are an empty list or null, where the API takes none; conversion writes no such fields."""
    for draft in filter(work.owns, work.drafts):
        if not draft.message.extra and not draft.holds(ToolResult):
            continue
        extra = _filled(draft.message.extra, draft.parts, work.rules)
        parts = [_with_content(part, work.rules) for part in draft.parts]
        if extra is draft.message.extra and all(map(is_, parts, draft.parts)):
            continue
        work.note("empty-field", draft, f"the {work.rules.name} API accepts no empty list or null there")
        draft.message, draft.parts = replace(draft.message, extra=extra), parts


def has_empty_list_field(extra: JSON, parts: Sequence[Part], rules: ApiRules) -> bool:
    """True if a message, or a result, has an empty list in a field that must have none."""
    return _filled(extra, parts, rules) is not extra


def rename_speakers(work: Work) -> None:
    """Give speakers names that the API allows, or none if nothing is left of them; conversion drops other APIs'."""
    rules = work.rules
    for draft in filter(work.owns, work.drafts):
        name = draft.message.name
        if name and not is_valid(name, rules.name_pattern, rules.name_length):
            work.note("invalid-speaker-name", draft, f"the {rules.name} API does not allow the name {shown(name)}")
            new = sanitize_name(name, rules.name_pattern, rules.name_length)
            # Two names without a single valid character would look like one speaker.
            draft.message = replace(draft.message, name=new if new.strip("_") else "")


def report_missing_messages(work: Work) -> None:
    """Report a list without messages; none is made up."""
    is_field = work.rules.system == "field"
    if not any(not is_field or draft.role != "system" or work.listed for draft in work.drafts):
        work.findings.append(Finding("empty-list", f"the {work.rules.name} API needs at least one message"))


def move_instructions(work: Work) -> None:
    """Make instructions the user's where the API takes none; those in front stay, unless the list is the API's own."""
    drafts = work.drafts
    beside = (draft.role == "system" and not _is_listed(work, draft) for draft in drafts)
    leading = next((place for place, is_beside in enumerate(beside) if not is_beside), len(drafts))
    for place in range(len(drafts) - 1, leading - 1, -1):  # backwards, because it depends on what follows
        draft = drafts[place]
        if draft.role == "system" and not _may_instruct(work, place):
            work.note("system-message", draft, f"the {work.rules.name} API accepts no instructions there")
            draft.role = "user"


def join_turns(work: Work) -> None:
    """Make one message of neighbours of the assistant's with calls; foreign ones are joined when they are converted."""
    drafts: list[Draft] = []
    for role, neighbours in groupby(work.drafts, key=lambda draft: draft.role):
        turn = list(neighbours)
        owned = next(filter(work.owns, turn), None)
        if role != "assistant" or len(turn) == 1 or owned is None or not any(draft.has_calls for draft in turn):
            drafts += turn
            continue
        for draft in turn[1:]:
            work.note("split-turn", draft, "the words and calls of one turn are split across several messages")
        drafts.append(owned.copy([part for draft in turn for part in draft.parts], "assistant"))
    work.drafts = drafts


def begin_with_user(work: Work) -> None:
    """Put a message of the user in front if somebody else speaks first who may not."""
    first = next((place for place, draft in enumerate(work.drafts) if draft.role != "system"), None)
    if first is None or work.drafts[first].role in work.rules.first:
        return
    draft = work.drafts[first]
    work.note("wrong-first-role", draft, f"the {draft.role} speaks first")
    work.drafts.insert(first, Draft(draft.index, Message("user", (Text(BEGINNING),)), placed=True))


def end_with_user(work: Work) -> None:
    """Add a message of the user if somebody else has the last word who may not. A call that waits is no word."""
    draft = work.drafts[-1] if work.drafts else None
    if draft is None or draft.role in (*work.rules.last, "system") or _waits(work):
        return
    work.note("wrong-last-role", draft, f"the {draft.role} has the last word")
    work.drafts.append(Draft(draft.index, Message("user", (Text(CONTINUE),)), placed=True))


def cut_final_blanks(work: Work) -> None:
    """Take blanks away from the end of the list, if that is the assistant's."""
    draft = work.drafts[-1] if work.drafts else None
    if draft is None or draft.role != "assistant":
        return
    place = next((place for place in reversed(range(len(draft.parts))) if not is_blank(draft.parts[place])), 0)
    last = draft.parts[place]
    if isinstance(last, Text) and last.text != last.text.rstrip():
        work.note("final-blanks", draft, "the assistant's last message ends in whitespace")
        draft.parts[place] = replace(last, text=last.text.rstrip())


def _filled(extra: JSON, parts: Sequence[Part], rules: ApiRules) -> JSON:
    """Return what a message or result has besides its parts, without empty lists; the same object if there are none."""
    # `content` may be null, other lists may not.
    empty = {
        name
        for name in rules.filled_lists
        if name in extra and (extra[name] == [] or (extra[name] is None and name != "content"))
    }
    if "content" in rules.filled_lists and extra.get("_content") == "list" and not any(map(_is_content, parts)):
        empty.add("_content")  # the dialect's note that the content was a list
    return {key: value for key, value in extra.items() if key not in empty} if empty else extra


def _with_content(part: Part, rules: ApiRules) -> Part:
    if not isinstance(part, ToolResult):
        return part
    extra = _filled(part.extra, part.parts, rules)
    return part if extra is part.extra else replace(part, extra=extra)


def _is_content(part: Part) -> bool:
    return not isinstance(part, ToolCall | ToolResult | Reasoning)


def _says_nothing(work: Work, draft: Draft) -> bool:
    words = [part for part in draft.parts if not isinstance(part, Reasoning)]
    if not words:
        return not draft.parts  # thoughts alone are the business of another step
    # An assistant that says a blank says nothing, even where a user may.
    return (draft.role == "assistant" or not work.rules.blank_text) and all(map(is_blank, words))


def _may_instruct(work: Work, place: int) -> bool:
    """Whether instructions may stand at a place: behind the user and before the assistant, where that is allowed."""
    drafts = work.drafts
    if not work.rules.later_system or not work.owns(drafts[place]) or place == 0:
        return False
    is_last = place == len(drafts) - 1
    return drafts[place - 1].role in ("user", "tool") and (is_last or drafts[place + 1].role == "assistant")


def _is_listed(work: Work, draft: Draft) -> bool:
    """Whether instructions stood among the messages; the dialect has noted `field` on those that stood beside them."""
    return work.listed or (work.rules.later_system and work.owns(draft) and "_field" not in draft.message.extra)


def _waits(work: Work) -> bool:
    """Whether the list ends with an assistant's turn that calls a tool."""
    for draft in reversed(work.drafts):
        if draft.role != "assistant":
            return False
        if draft.has_calls:
            return True
    return False
