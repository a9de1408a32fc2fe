"""Facts of coding sessions, found by patterns of their own: user rules, edited files, commands, errors, decisions.

They judge what compaction keeps, so they share nothing with the patterns that compaction uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.types.messages import Message, ToolCall

AgentFactKind = Literal["rule", "edited", "command", "error", "decision"]
AGENT_FACT_KINDS: tuple[AgentFactKind, ...] = ("rule", "edited", "command", "error", "decision")
AgentFact = tuple[AgentFactKind, str]
"""A kind, and the text that must occur in what a model reads, as `normalize` returns it."""

MAX_CHARACTERS = 100
"""Characters of a command, an error or a decision that must be there; the rest may be cut."""
ERRORS_PER_RESULT = 3

_RULE = re.compile(
    r"\b(don'?t|do not|never|always|must(?:n'?t)?|only|make sure|should(?:n'?t)?|i want|i'd like|needs? to|no need"
    r"|without|please)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(the (?:real |actual |root )?(?:problem|issue|cause|reason|culprit|bug) (?:is|was)|root cause"
    r"|let'?s (?:use|go with|keep|do|make|switch)|instead of|rather than|(?:did|does)(?:n'?t| not) work|decided"
    r"|turns out|that'?s (?:why|because)|(?:better|best) (?:solution|approach|option|to)|we(?:'ll| will) (?:use|keep)"
    r"|i'?ll (?:use|keep|go with)|(?:switch|chang|mov|revert)(?:ed|ing|e)? (?:back )?to\b|no longer|failed because"
    r"|won'?t work|undid|revert(?:ed)?|fixed by|this (?:is|was) because)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"(?:^|\s)(?:[A-Za-z.]*(?:Error|Exception)\b\s*:|error(?:\s+TS\d+|\[E\d+\])?\s*:|fatal:|ERR!|FAILED\b|panic:"
    r"|Traceback|error TS\d+)|No such file|not found$|command not found|[Pp]ermission denied|exited with code [1-9]"
    r"|Exit code [1-9]|Could not find|cannot find"
)
_PROGRAM = re.compile(
    r"\s*(?:<(?:command-|local-command|system-reminder|task-notification|bash-|user-prompt-submit-hook|ide_)"
    r"|Caveat: The messages below|\[Request interrupted|This session is being continued)",
    re.IGNORECASE,
)
_EDITS = re.compile(r"edit|write|create|patch|replace", re.IGNORECASE)
_RUNS = re.compile(r"bash|shell|exec|terminal", re.IGNORECASE)
_PRINTS = re.compile(r"\s*(?:cd [^&;]+(?:&&|;)\s*)?(?:cat|sed -n|head|tail|grep|rg|less|git (?:diff|show|log))\b")


def normalize(text: str) -> str:
    """Return a text in one line and in lower case, without Markdown marks."""
    return re.sub(r"[*`\s]+", " ", text).strip().lower()


def read_text(message: Message) -> str:
    """Return everything that a model reads of a message."""
    texts = [message.content]
    for call in message.tool_calls:
        texts += [call.name, *_list_strings(dict(call.arguments))]
    return "\n".join([*texts, *(result.text for result in message.tool_results)])


def find_agent_facts(message: Message, calls: dict[str, ToolCall]) -> Iterator[AgentFact]:
    """Yield the facts of a message.

    Args:
        message: The message.
        calls: Earlier tool calls by id; those of the message are added.
    """
    is_user = message.role == "user" and not message.tool_results
    if message.role == "assistant" or (is_user and not _PROGRAM.match(message.content)):
        yield from _find_statements(message.content, is_user=is_user)
    for call in message.tool_calls:
        calls[call.id] = call
        yield from _find_call_facts(call)
    for result in message.tool_results:
        if result.call_id in calls:
            yield from _find_errors(result.text, calls[result.call_id], is_error=result.is_error)


def _find_statements(text: str, *, is_user: bool) -> Iterator[AgentFact]:
    for sentence in _split_sentences(text):
        if is_user and _RULE.search(sentence):
            yield "rule", normalize(sentence)
        if _DECISION.search(sentence):
            yield "decision", normalize(sentence)[:MAX_CHARACTERS]


def _find_call_facts(call: ToolCall) -> Iterator[AgentFact]:
    if _RUNS.search(call.name):
        command = _read_command(call)
        if command:
            yield "command", normalize(command.split("<<")[0])[:MAX_CHARACTERS].strip()
    elif _EDITS.search(call.name):
        for name in ("path", "file_path", "filename", "notebook_path"):
            if isinstance(path := call.arguments.get(name), str):
                yield "edited", normalize(path)


def _find_errors(text: str, call: ToolCall, *, is_error: bool) -> Iterator[AgentFact]:
    if not is_error and (not _RUNS.search(call.name) or _PRINTS.match(_read_command(call))):
        return
    lines = [line for line in text.split("\n") if _ERROR.search(line[:2000])][:ERRORS_PER_RESULT]
    if not lines and is_error:
        lines = text.strip().split("\n")[:1]
    for line in lines:
        error = normalize(line)[:MAX_CHARACTERS]
        if len(error) > len("failed"):
            yield "error", error


def _read_command(call: ToolCall) -> str:
    found = next((call.arguments[name] for name in ("command", "cmd", "script") if name in call.arguments), "")
    if isinstance(found, list | tuple):
        found = found[-1] if found else ""
    return found if isinstance(found, str) else ""


def _split_sentences(text: str) -> Iterator[str]:
    for line in re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL).split("\n"):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(]|i\b)", line):
            stripped = sentence.strip(" -*#>\t0123456789.")
            if 12 <= len(stripped) <= 400:  # noqa: PLR2004 - a sentence, not a word or a pasted log
                yield stripped


def _list_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _list_strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_strings(each)
