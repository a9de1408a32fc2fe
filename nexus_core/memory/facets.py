"""Facets of steps: rules, decisions, files, commands, errors.

They come from the same extraction as the facts of a summary. The search index keeps the facets of each step, so that a
question about a command finds the step that ran it rather than one that mentions it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.errors import UnknownNameError
from nexus_core.memory.facts import find_command, find_errors, list_touched_paths
from nexus_core.memory.statements import find_decisions, find_lasting_rules, is_refusal, keep_typed_text
from nexus_core.memory.words import find_stems, split_words
from nexus_core.types.memory import STEP_FACETS
from nexus_core.types.messages import ToolCall

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nexus_core.types.memory import StepFacet

MAX_FACET_CHARACTERS = 4_000
"""Characters of a text that are searched for facets, from its beginning."""
_DECISION_FACETS: dict[str, StepFacet] = {"": "decision", "cause": "decision", "rejected": "rejected"}
_FACET_QUESTIONS: dict[StepFacet, re.Pattern[str]] = {
    "rule": re.compile(r"\b(?:rules?|conventions|preferences|guidelines?|always|never)\b"),
    "decision": re.compile(
        r"\b(?:why (?:did|do|does|is|are|was|were|have|has|had) (?:we|you|i)"
        r"|(?:we|you|i) (?:\w{1,20} )?(?:decided?|chose|choose|agreed?|settled?)"
        r"|(?:the|our|your|what|which) decisions?|rationale|root cause)\b"
    ),
    "rejected": re.compile(
        r"\b(?:(?:we|you|i) (?:\w{1,20} )?(?:try|tried|attempt(?:ed)?|reject(?:ed)?|revert(?:ed)?|und(?:o|id)"
        r"|abandon(?:ed)?|discard(?:ed)?|rul(?:e|ed) out|gave up)|rejected attempt|reverted|(?:not|n['\u2019]t) work)\b"
    ),
    "file": re.compile(
        r"\b(?:files?|edit(?:s|ed|ing)?|chang(?:e|es|ed|ing)|modif(?:y|ied)|wr[io]te|written|creat(?:e|ed)|refactor(?:ed)?"
        r"|patch(?:ed)?|implement(?:ed)?|renam(?:e|ed))\b"
    ),
    "command": re.compile(r"\b(?:commands?|run|ran|execut(?:e|ed)|invok(?:e|ed)|shell|terminal|command line)\b"),
    "error": re.compile(
        r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|crash(?:es|ed)?|tracebacks?|br(?:eak|oke|oken)|panic(?:ked)?)\b"
    ),
}


def read_facet(name: str) -> StepFacet:
    """Return the facet of that name.

    Raises:
        UnknownNameError: There is none.
    """
    for facet in STEP_FACETS:
        if facet == name:
            return facet
    raise UnknownNameError("facet", name, STEP_FACETS)


def find_query_facets(text: str) -> tuple[StepFacet, ...]:
    """Return the facets that a question asks for, by its words."""
    lowered = text[:MAX_FACET_CHARACTERS].lower()
    return tuple(facet for facet in STEP_FACETS if _FACET_QUESTIONS[facet].search(lowered))


def find_facet_keyword_stems(text: str, facets: Collection[StepFacet]) -> set[str]:
    """Return the stems of the words by which a question asks for facets."""
    lowered = text[:MAX_FACET_CHARACTERS].lower()
    found = (match[0] for facet in facets for match in _FACET_QUESTIONS[facet].finditer(lowered))
    return {stem for words in found for stem in find_stems(split_words(words))}


def find_step_facets(messages: Sequence[Mapping[str, Any]]) -> frozenset[StepFacet]:
    """Return the facets of a step.

    Args:
        messages: Its messages in the neutral format.
    """
    return frozenset(facet for message in messages for facet in _find_message_facets(message))


def _find_message_facets(message: Mapping[str, Any]) -> Iterator[StepFacet]:
    role = message["role"]
    for part in message.get("parts", ()):
        kind = part.get("kind")
        if kind == "text" and role in ("user", "assistant"):
            yield from _find_text_facets(part["text"][:MAX_FACET_CHARACTERS], is_user=role == "user")
        elif kind == "tool_call":
            yield from _find_call_facets(part)
        elif kind == "tool_result":
            yield from _find_result_facets(part)


def _find_text_facets(text: str, *, is_user: bool) -> Iterator[StepFacet]:
    if is_user and any(find_lasting_rules(keep_typed_text(text))):
        yield "rule"
    yield from (facet for each in find_decisions(text) if (facet := _DECISION_FACETS.get(each.note)))


def _find_call_facets(part: Mapping[str, Any]) -> Iterator[StepFacet]:
    arguments = part.get("arguments")
    call = ToolCall(id=str(part.get("id", "")), name=str(part["name"]), arguments=dict(arguments or {}))
    if find_command(call):
        yield "command"
    if any(effect == "changed" for _, effect in list_touched_paths(call)):
        yield "file"


def list_facet_values(call: ToolCall, facets: Collection[StepFacet]) -> Iterator[str]:
    """Yield the command that a tool call runs and the files that it changes."""
    if "command" in facets and (command := find_command(call)):
        yield command
    if "file" in facets:
        yield from (path for path, effect in list_touched_paths(call) if effect == "changed")


def _find_result_facets(part: Mapping[str, Any]) -> Iterator[StepFacet]:
    texts = [inner["text"] for inner in part.get("parts", ()) if inner.get("kind") == "text"]
    if any(map(is_refusal, texts)):
        yield "rejected"
    elif part.get("is_error") is True or any(
        True for text in texts for _ in find_errors(f"{text[:MAX_FACET_CHARACTERS]}\n{text[-MAX_FACET_CHARACTERS:]}")
    ):
        yield "error"
