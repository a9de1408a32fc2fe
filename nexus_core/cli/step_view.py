"""Turns, steps and messages as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.output import compute_hit_rate, format_rate, format_time
from nexus_core.compaction.prompts import redact_message
from nexus_core.compaction.quotes import shorten_step_id
from nexus_core.dialects.neutral import message_to_json
from nexus_core.text.console import format_count
from nexus_core.text.secrets import redact
from nexus_core.thread.totals import MARKER_KINDS, is_session_start_step, is_unanswered_input
from nexus_core.thread.turns import get_step_usage
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nexus_core.text.console import Console
    from nexus_core.thread.turns import CallKey, RecordedCall, Turn
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Part, Usage


def step_to_json(step: Step) -> dict[str, object]:
    """Return all that is known of a step, its messages in Nexus's own form."""
    return {
        "id": step.id,
        "turn": step.turn,
        "parent": step.parent,
        "branch": step.branch,
        "position": step.position,
        "kind": step.kind,
        "closes": step.closes,
        "tokens": step.tokens,
        "counter": step.counter,
        "total": step.total,
        "compaction": step.compaction,
        "created": step.created,
        "digest": step.digest,
        "chain": step.chain,
        "data": dict(step.data),
        "messages": [message_to_json(message) for message in step.messages],
    }


def call_to_json(call: RecordedCall) -> dict[str, object]:
    """Return a call, with the key by which its result is recorded."""
    facts: dict[str, object] = {
        "key": format_call_key(call.key),
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
    }
    return facts if call.raw is None else facts | {"raw": call.raw}


def format_call_key(key: CallKey) -> str:
    """Return the key of a call as `STEP:INDEX`."""
    return f"{key.step}:{key.place}"


if TYPE_CHECKING:
    Remark = Callable[[Step], str]

NO_CALLS: Mapping[str, str] = MappingProxyType({})
"""No call is known."""
INDENT = "  "
"""Before every line of a message, so that none can be mistaken for a heading."""


class TextLimit(NamedTuple):
    """Maximum lines and characters of a text."""

    lines: int
    characters: int


TEXT_LIMIT = TextLimit(100, 10_000)
"""Limit of a message's text."""
DETAIL_LIMIT = TextLimit(10, 1000)
"""Limit of tool calls, tool results and reasoning."""


class StepLine(NamedTuple):
    """A line, and whether it is a heading."""

    text: str
    is_heading: bool = False


def omit_remark(step: Step) -> str:  # noqa: ARG001 - whichever it is
    """No remark."""
    return ""


def format_turn(turn: Turn, *, full: bool, remark: Remark = omit_remark, secrets: bool = False) -> Iterator[StepLine]:
    """Yield the lines of a turn.

    Args:
        turn: The turn.
        full: True to print long texts whole.
        remark: Returns an additional remark about a reply.
        secrets: True prints keys, tokens and passwords, which are redacted otherwise.
    """
    first, last = turn.steps[0], turn.steps[-1]  # of one that was kept in several pieces, the last can be forked from
    if word := get_turn_word(first):
        when = f"{format_time(first.created)}{', open' if turn.is_open else ''}"
        yield StepLine(f"{word} {last.turn}, {when}", is_heading=True)
    called: dict[str, str] = {}
    for step in turn.steps:
        if step.kind != "sealed":  # the input again, as it was rendered
            called |= {call.id: call.name for message in step.messages for call in message.tool_calls}
            yield from format_step(step, full=full, remark=remark, called=called, secrets=secrets)


def get_turn_word(first: Step) -> str:
    """Return the word for a turn in its heading, by its first step; "" if it has no heading."""
    if first.kind in MARKER_KINDS:
        return ""
    return "Start" if is_session_start_step(first) else "System" if is_unanswered_input(first) else "Turn"


def format_step(
    step: Step,
    *,
    full: bool,
    remark: Remark = omit_remark,
    called: Mapping[str, str] = NO_CALLS,
    secrets: bool = False,
) -> Iterator[StepLine]:
    """Yield the lines of a step, under the end of its id.

    Args:
        step: The step.
        full: As for `format_turn`.
        remark: As for `format_turn`.
        called: The tools by the ids of calls, for results that do not name theirs.
        secrets: As for `format_turn`.
    """
    lines = _format_step_lines(step, full=full, remark=remark, called=called, secrets=secrets)
    for line in lines:
        yield StepLine(f"{line.text} [{shorten_step_id(step.id)}]", is_heading=True) if line.is_heading else line
        if line.is_heading:
            break
    yield from lines


def _format_step_lines(
    step: Step, *, full: bool, remark: Remark, called: Mapping[str, str], secrets: bool
) -> Iterator[StepLine]:
    if step.kind in ("compaction", "revert"):
        yield from _format_compaction(step, full=full, secrets=secrets)
        return
    if step.kind == "pin":
        pins = step.data.get("pins")
        stays = ", ".join(map(str, pins)) if isinstance(pins, list) and pins else "nothing"
        yield StepLine(f"pinned from now on: {stays}", is_heading=True)
        return
    if step.kind == "interrupted":
        yield StepLine("interrupted", is_heading=True)
    for message in step.messages:
        yield StepLine(_format_heading(step, message, remark, called), is_heading=True)
        yield from format_message(message, full=full, secrets=secrets)
    if error := step.data.get("error"):
        yield StepLine(f"{INDENT}failed: {error if secrets else redact(str(error)).text}")


def format_message(message: Message, *, full: bool, secrets: bool = False) -> Iterator[StepLine]:
    """Yield the lines of a message, indented. It is redacted before it is shortened."""
    message = message if secrets else redact_message(message, Counter())
    for part in message.parts:
        yield from map(StepLine, _indent_lines(_format_part(part, full=full)))


def print_step_lines(console: Console, lines: Iterable[StepLine]) -> None:
    """Print lines, the headings among them in bold."""
    for line in lines:
        if line.is_heading:
            console.table([(line.text,)], styles=["bold"])
        else:
            console.text(line.text)


def format_usage(usage: Usage) -> str:
    """Return the usage of a call for display."""
    words = [
        f"{usage.input_tokens:,} in ({format_rate(compute_hit_rate(usage))} cached)",
        f"{usage.output_tokens:,} out",
    ]
    if usage.reasoning_tokens:
        words[1] += f" ({usage.reasoning_tokens:,} reasoning)"
    if usage.cache_write_tokens:
        words.append(f"{usage.cache_write_tokens:,} put into the cache")
    return ", ".join(words)


def _format_heading(step: Step, message: Message, remark: Remark, called: Mapping[str, str]) -> str:
    if message.role == "tool":
        named = [
            " ".join(filter(None, (each.name or called.get(each.call_id), each.call_id and f"({each.call_id})")))
            for each in message.tool_results
        ]
        return f"tool {', '.join(filter(None, named))}".rstrip()
    if message.role != "assistant":
        return message.role
    words = ["assistant", str(step.data.get("model") or "")]
    usage = get_step_usage(step)
    facts = [format_usage(usage)] if usage else []
    facts += [str(step.data["stop_reason"])] if step.data.get("stop_reason") else []
    facts += ["cut off"] if step.data.get("interrupted") else []
    facts += filter(None, [remark(step)])
    return " ".join(filter(None, words)) + "".join(f" · {fact}" for fact in facts)


def _format_compaction(step: Step, *, full: bool, secrets: bool) -> Iterator[StepLine]:
    if step.kind == "revert" and (popped := step.data.get("popped")):
        newest = "the newest item was" if popped == 1 else f"the newest {popped} items were"
        yield StepLine(f"revert: {newest} taken back", is_heading=True)
        return
    if step.kind == "revert":
        restored = step.data.get("restores")
        yield StepLine(
            f"revert: {f'compaction {restored} counts again' if restored else 'no compaction counts'}", is_heading=True
        )
        return
    kept = step.data.get("first_kept")
    facts = [f"keeps what was said from {kept} on" if kept else "keeps nothing"]
    before, after, who = (step.data.get(name) for name in ("tokens_before", "tokens_after", "summariser"))
    if isinstance(before, int) and isinstance(after, int):
        facts.append(f"{before:,} -> {after:,} tokens")
    facts += [f"by {who}"] if who else []
    yield StepLine(f"compaction: {' · '.join(facts)}", is_heading=True)
    summary = str(step.data.get("summary", ""))
    shown = summary if secrets else redact(summary).text
    yield from map(StepLine, _indent_lines(_limit_text(shown, None if full else TEXT_LIMIT)))


def _format_part(part: Part, *, full: bool) -> Iterator[str]:
    if isinstance(part, Text):
        yield from _limit_text(part.text, None if full else TEXT_LIMIT)
    elif isinstance(part, Reasoning):
        thought = part.text or ("(encrypted)" if part.encrypted else "")
        yield from (f"~ {line}" for line in _limit_text(thought, None if full else DETAIL_LIMIT))
    elif isinstance(part, ToolCall):
        arguments = part.raw if part.raw is not None else json.dumps(part.arguments, ensure_ascii=False)
        yield from _limit_text(
            f"-> {part.name}{f' ({part.id})' if part.id else ''} {arguments}", None if full else DETAIL_LIMIT
        )
    elif isinstance(part, ToolResult):
        if part.is_error:
            yield "(error)"
        for piece in part.parts:
            yield from (
                _limit_text(piece.text, None if full else DETAIL_LIMIT)
                if isinstance(piece, Text)
                else _format_part(piece, full=full)
            )
    elif isinstance(part, Image | File):
        yield f"[{' '.join(_describe_media(part))}]"
    elif isinstance(part, Opaque):
        yield f"[{part.api}: {part.block.get('type', 'something that only it understands')}]"


def _describe_media(part: Image | File) -> Iterator[str]:
    yield "image" if isinstance(part, Image) else "file"
    yield from filter(None, (getattr(part, "name", ""), part.mime, part.url, part.file_id))
    if part.data:
        yield format_count(len(part.data.rstrip("=")) * 3 // 4, "byte")


def _limit_text(text: str, limit: TextLimit | None) -> Iterator[str]:
    """Yield the lines of a text up to a limit. The last one then says how much is missing."""
    lines = text.split("\n")
    shown = text if limit is None else "\n".join(lines[: limit.lines])[: limit.characters]
    yield from shown.split("\n")
    if len(shown) < len(text):
        yield f"… {format_count(len(text) - len(shown), 'character')} more (--full)"


def _indent_lines(lines: Iterable[str]) -> Iterator[str]:
    return (f"{INDENT}{line}".rstrip() for line in lines)
