"""Turns, steps and messages as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.output import compute_hit_rate, format_rate, format_time
from nexus_core.dialects.neutral import message_to_json
from nexus_core.text.console import format_count
from nexus_core.thread.state import MARKER_KINDS, is_session_start_step, is_unanswered_input
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.payloads import CompactionPayload, ForgetPayload, RenderedPayload, ReplyPayload, RevertPayload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from nexus_core.text.console import Console
    from nexus_core.thread.state import RecordedCall, Turn
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Part, Usage
    from nexus_core.types.payloads import ToolCallKey


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
        "data": step.payload.to_json(),
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


def format_call_key(key: ToolCallKey) -> str:
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
    """A line of a step, or the lines of a text.

    Attributes:
        text: The line. Lines of messages are indented.
        is_heading: True for a heading.
        is_markdown: True if `text` has all lines of a text that may be Markdown, not indented.
        is_dim: True for a remark about a message.
    """

    text: str
    is_heading: bool = False
    is_markdown: bool = False
    is_dim: bool = False


def omit_remark(step: Step) -> str:  # noqa: ARG001 - whichever it is
    """No remark."""
    return ""


def format_turn(
    turn: Turn,
    *,
    full: bool,
    remark: Remark = omit_remark,
    secrets: bool = False,
    session: str = "",
    unsent: Collection[str] = (),
) -> Iterator[StepLine]:
    """Yield the lines of a turn.

    Args:
        turn: The turn.
        full: True to print long texts whole, and the texts of memories.
        remark: Returns an additional remark about a reply.
        secrets: True prints keys, tokens and passwords, which are redacted otherwise.
        session: The name of the session.
        unsent: The memories that later calls do not have, as `unsent_memories` has them.
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
        if step is first:
            yield from _format_memories(turn, full=full, secrets=secrets, session=session, unsent=unsent)


def _format_memories(
    turn: Turn, *, full: bool, secrets: bool, session: str, unsent: Collection[str]
) -> Iterator[StepLine]:
    """Yield a line about the memories in the user message of a turn, and with `full` their texts."""
    rendered = next(
        (
            step
            for step in turn.steps
            if isinstance(step.payload, RenderedPayload)
            and step.messages
            and any(entry["kind"] == "memory" for entry in step.payload.section_entries)
        ),
        None,
    )
    if rendered is None:
        return
    from nexus_core.request.memories import list_recalled_entries

    sent, removed = list_recalled_entries(rendered, unsent)
    names = [
        f"{name} ({number})" if number > 1 else name for name, number in Counter(each.title for each in sent).items()
    ]
    why = f" (nexus memory why --session {quote(session)})" if session else ""
    if sent:
        count = "1 memory was" if len(sent) == 1 else f"{len(sent):,} memories were"
        yield StepLine(f"{INDENT}{count} sent with it: {', '.join(names)}{why}", is_dim=True)
    if removed:
        count = "1 memory that was" if len(removed) == 1 else f"{len(removed):,} memories that were"
        yield StepLine(f"{INDENT}{count} sent with it: left out of later calls", is_dim=True)
    for entry in sent if full else ():
        start, end = entry.span or (0, 0)
        text = rendered.messages[0].content[start:end]
        for line in _indent_lines((text if secrets else _redact_text(text)).split("\n")):
            yield StepLine(f"{INDENT}{line}".rstrip(), is_dim=True)


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
    from nexus_core.compaction.evidence import shorten_step_id

    lines = _format_step_lines(step, full=full, remark=remark, called=called, secrets=secrets)
    for line in lines:
        yield StepLine(f"{line.text} [{shorten_step_id(step.id)}]", is_heading=True) if line.is_heading else line
        if line.is_heading:
            break
    yield from lines


def _format_step_lines(
    step: Step, *, full: bool, remark: Remark, called: Mapping[str, str], secrets: bool
) -> Iterator[StepLine]:
    if isinstance(step.payload, CompactionPayload):
        yield from _format_compaction(step.payload, full=full, secrets=secrets)
        return
    if isinstance(step.payload, RevertPayload):
        yield _format_revert(step.payload)
        return
    if step.kind == "pin":
        stays = ", ".join(step.payload.pins) or "nothing"
        yield StepLine(f"pinned from now on: {stays}", is_heading=True)
        return
    if step.kind == "forget":
        forgotten = ", ".join(sorted({each.rpartition("/")[2] for each in step.payload.unsent_memories}))
        steps = step.payload.forgotten_steps if isinstance(step.payload, ForgetPayload) else ()
        if steps:
            yield StepLine(f"not found from now on: {format_count(len(steps), 'step')}", is_heading=True)
        if forgotten or not steps:
            yield StepLine(f"not sent from now on: {forgotten or 'memories before the history'}", is_heading=True)
        return
    if step.kind == "interrupted":
        yield StepLine("interrupted", is_heading=True)
    for message in step.messages:
        yield StepLine(_format_heading(step, message, remark, called), is_heading=True)
        yield from format_message(message, full=full, secrets=secrets)
    if isinstance(step.payload, ReplyPayload) and (error := step.payload.error):
        yield StepLine(f"{INDENT}failed: {error if secrets else _redact_text(error)}")


def format_message(message: Message, *, full: bool, secrets: bool = False) -> Iterator[StepLine]:
    """Yield the lines of a message, indented. It is redacted before it is shortened."""
    if not secrets:
        from nexus_core.compaction.prompts import redact_message  # whose patterns take long to compile

        message = redact_message(message, Counter())
    for part in message.parts:
        if isinstance(part, Text) and message.role != "user":
            yield from _format_markdown(part.text, full=full)
        else:  # a user pastes diffs and listings, which Markdown would change
            yield from map(StepLine, _indent_lines(_format_part(part, full=full)))


def print_step_lines(console: Console, lines: Iterable[StepLine], *, markdown: bool = False) -> None:
    """Print lines, the headings among them in bold.

    Args:
        console: Where to print.
        lines: The lines.
        markdown: True to format Markdown on a terminal.
    """
    for line in lines:
        if line.is_heading:
            console.table([(line.text,)], styles=["bold"])
        elif line.is_markdown and markdown and console.is_rich:
            console.markdown(line.text, indent=INDENT)
        elif line.is_markdown:
            for each in _indent_lines(line.text.split("\n")):
                console.text(each)
        else:
            console.text(line.text, style="dim" if line.is_dim else "plain", wrap=True)


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
    words, facts = ["assistant", step.payload.model], []
    if isinstance(reply := step.payload, ReplyPayload):
        facts += [format_usage(reply.usage)] if reply.usage else []
        facts += [reply.stop_reason] if reply.stop_reason else []
        facts += ["cut off"] if reply.interrupted else []
    facts += filter(None, [remark(step)])
    return " ".join(filter(None, words)) + "".join(f" · {fact}" for fact in facts)


def _format_revert(revert: RevertPayload) -> StepLine:
    if revert.popped:
        newest = "the newest item was" if revert.popped == 1 else f"the newest {revert.popped} items were"
        return StepLine(f"revert: {newest} taken back", is_heading=True)
    effect = f"compaction {revert.restores} counts again" if revert.restores else "no compaction counts"
    return StepLine(f"revert: {effect}", is_heading=True)


def _redact_text(text: str) -> str:
    from nexus_core.text.secrets import redact

    return redact(text).text


def _format_compaction(compaction: CompactionPayload, *, full: bool, secrets: bool) -> Iterator[StepLine]:
    kept, before, after = compaction.first_kept, compaction.tokens_before, compaction.tokens_after
    facts = [f"keeps what was said from {kept} on" if kept else "keeps nothing"]
    if before is not None and after is not None:
        facts.append(f"{before:,} -> {after:,} tokens")
    facts += [f"by {compaction.summarizer}"] if compaction.summarizer else []
    yield StepLine(f"compaction: {' · '.join(facts)}", is_heading=True)
    shown = compaction.summary if secrets else _redact_text(compaction.summary)
    yield from _format_markdown(shown, full=full)


def _format_markdown(text: str, *, full: bool) -> Iterator[StepLine]:
    """Yield a text, and a line that says how much of it is missing."""
    lines = [*_limit_text(text, None if full else TEXT_LIMIT)]
    missing = [] if full or lines == text.split("\n") else [lines.pop()]
    yield StepLine("\n".join(lines), is_markdown=True)
    yield from map(StepLine, _indent_lines(missing))


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
