"""Codes of everything that `check` and `repair` may find in a message list.

A test compares docs/reference/findings.md with them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.types.messages import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core.types.api import ApiRules


class FindingCode(NamedTuple):
    """One kind of finding.

    Attributes:
        code: The code.
        cause: The problem of the list.
        repair: What `repair` does about it.
        applies: Returns True if an API with such rules would reject the list.
    """

    code: str
    cause: str
    repair: str
    applies: Callable[[ApiRules], bool]


def _applies_always(_rules: ApiRules) -> bool:
    return True


_FINDING_CODES = (
    # characters and texts
    FindingCode(
        "lone-surrogate",
        "A text contains half a character",
        "joins it with its other half, or puts � there",
        _applies_always,
    ),
    FindingCode("nul-character", "A text contains a NUL character", "removes it", _applies_always),
    FindingCode(
        "blank-text", "A text is empty or only whitespace", "removes the text", lambda rules: not rules.blank_text
    ),
    # parts
    FindingCode(
        "foreign-block",
        "A block is of a kind that only another API knows",
        "leaves the block out",
        lambda rules: not rules.foreign,
    ),
    FindingCode(
        "misplaced-part",
        "A call is in a message that is not the assistant's, a result in the assistant's, or the like",
        "leaves calls and reasoning out; moves results and words into a message of their own",
        _applies_always,
    ),
    FindingCode(
        "misplaced-media",
        "A picture or document is in a message in which the API accepts none",
        "puts a note in its place",
        lambda rules: len(rules.media) < len(ROLES),
    ),
    FindingCode(
        "oversized-media",
        "A picture or document is larger than the API accepts",
        "puts a note in its place",
        lambda rules: bool(rules.image_size or rules.file_size),
    ),
    FindingCode(
        "unusable-media",
        "A picture or document is of a type that the API does not accept, or its data is not base64",
        "puts a note in its place; `image/jpg` becomes `image/jpeg`",
        lambda _: True,
    ),
    FindingCode(
        "wrong-text-type",
        "A text has a type that does not go with the role: `input_text` of the assistant, `output_text` of others",
        "gives it the type of its role",
        lambda rules: rules.text_types,
    ),
    FindingCode(
        "misplaced-cache-mark",
        "Reasoning is marked for the cache",
        "removes the mark",
        lambda rules: bool(rules.cache_marks),
    ),
    FindingCode(
        "too-many-cache-marks",
        "More blocks are marked for the cache than the API allows",
        "keeps the last ones and unmarks the others",
        lambda rules: bool(rules.cache_marks),
    ),
    FindingCode(
        "cache-mark-order",
        "A mark that keeps something longer comes after one that keeps it for a shorter time",
        "makes the later one as short",
        lambda rules: bool(rules.cache_marks),
    ),
    FindingCode(
        "unpaired-block",
        "A call of a tool that the provider runs has no result, or the result has no call",
        "leaves the block out, unless the list ends with that message",
        lambda rules: bool(rules.server_calls),
    ),
    # reasoning
    FindingCode(
        "foreign-reasoning",
        "Reasoning comes from another API",
        "leaves the reasoning out",
        lambda rules: not rules.foreign,
    ),
    FindingCode(
        "unsigned-reasoning",
        "Reasoning has lost its signature",
        "leaves the reasoning out",
        lambda rules: rules.signed_reasoning,
    ),
    FindingCode(
        "dangling-reasoning",
        "Reasoning is not followed by what it led to",
        "leaves the reasoning out",
        lambda rules: rules.reasoning_keeps_next,
    ),
    # ids and names of calls
    FindingCode(
        "malformed-arguments",
        "The arguments of a call are not a JSON object",
        'wraps the text: `{"INVALID_JSON": "…"}`',
        lambda rules: rules.object_arguments,
    ),
    FindingCode(
        "blank-tool-name",
        "A call names no tool",
        "takes the name from its result, or `unknown_tool`",
        _applies_always,
    ),
    FindingCode(
        "invalid-tool-name",
        "The name of a tool has characters or a length that the API does not allow",
        "puts `_` in place of such characters and cuts what is too long, in the call and its result",
        lambda rules: bool(rules.name_pattern or rules.name_length),
    ),
    FindingCode("missing-id", "A call has no id", "gives one to the call and its result", _applies_always),
    FindingCode(
        "invalid-id",
        "The id of a call has characters or a length that the API does not allow",
        "puts `_` in place of such characters and cuts what is too long, in the call and its result",
        lambda rules: rules.call_ids and bool(rules.id_pattern or rules.id_length),
    ),
    FindingCode(
        "duplicate-id",
        "Two calls have the same id: in one turn, or anywhere in the list where the API forbids it",
        "gives the later call and its result another id",
        _applies_always,
    ),
    FindingCode(
        "unmatched-id",
        "A result has no id, or one that no call has, but names the tool of a call that waits",
        "gives it the id of that call",
        _applies_always,
    ),
    FindingCode(
        "wrong-result-name",
        "A result does not repeat the name of the tool",
        "gives it the name in the call",
        lambda rules: rules.result_names,
    ),
    # results
    FindingCode(
        "silent-error",
        "A result says that its tool failed, and nothing else",
        "has it say so in words",
        lambda rules: not rules.silent_errors,
    ),
    FindingCode("orphan-result", "A result answers no call", "leaves the result out", _applies_always),
    FindingCode("duplicate-result", "A call has more than one result", "keeps the first", _applies_always),
    FindingCode(
        "missing-result",
        "A call has no result, and the conversation goes on",
        "adds a result that says that none was recorded; calls at the end of the list are left waiting",
        _applies_always,
    ),
    FindingCode("early-result", "A result comes before its call", "moves it after the call", _applies_always),
    FindingCode(
        "late-result",
        "Something comes between a call and its result",
        "moves the result to its call",
        lambda rules: rules.results != "anywhere",
    ),
    FindingCode(
        "split-results",
        "The results of one turn are split across several messages",
        "puts them into one",
        lambda rules: rules.results == "together",
    ),
    FindingCode(
        "results-not-first",
        "Something comes before the results in their message",
        "moves the results to the front",
        _applies_always,
    ),
    FindingCode(
        "results-not-alone",
        "The message with the results contains something else",
        "moves it into a message of its own",
        lambda rules: rules.results_alone,
    ),
    # order of messages
    FindingCode(
        "empty-field",
        "A field of a message is an empty list, `tool_calls` or `content`, or `tool_calls` is null",
        "leaves the field out; a result gets an empty text",
        lambda rules: bool(rules.filled_lists),
    ),
    FindingCode(
        "invalid-speaker-name",
        "The `name` of a message has characters or a length that the API does not allow",
        "puts `_` in place of such characters and cuts what is too long; a result gets the name of its call",
        lambda rules: rules.speaker_names,
    ),
    FindingCode("empty-message", "A message is empty", "leaves the message out", _applies_always),
    FindingCode(
        "system-message",
        "Instructions are where the API accepts none",
        "makes them a message of the user, at the same place",
        lambda rules: rules.system != "anywhere",
    ),
    FindingCode(
        "split-turn",
        "The words and calls of the assistant's turn are split across several messages",
        "makes them one",
        lambda rules: rules.calls_after_user,
    ),
    FindingCode(
        "wrong-first-role",
        "The assistant speaks first",
        "puts a message of the user in front that says so",
        lambda rules: "assistant" not in rules.first,
    ),
    FindingCode(
        "wrong-last-role",
        "The assistant has the last word, and no call waits",
        "adds a message of the user: `Continue.`",
        lambda rules: "assistant" not in rules.last,
    ),
    FindingCode(
        "final-blanks",
        "The assistant has the last word, and it ends in whitespace",
        "removes the whitespace",
        lambda rules: not rules.final_blanks,
    ),
    # "Invalid 'messages': empty array" (CopilotKit/CopilotKit#529), "messages must have at least one element"
    # (Helicone/helicone#5257), "contents is not specified" (NousResearch/hermes-agent#57942); Responses wants an input
    # or a response to go on with (pydantic/pydantic-ai#3470).
    FindingCode(
        "empty-list",
        "There is no message, or none besides instructions that are a field",
        "nothing: only you know what to say",
        _applies_always,
    ),
)

UNREPAIRED_CODES = frozenset({"empty-list"})
"""Codes of findings that stay after repair."""

FINDING_CODES: Mapping[str, FindingCode] = MappingProxyType({code.code: code for code in _FINDING_CODES})
"""Every code, in the order of the reference."""
