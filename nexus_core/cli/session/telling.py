"""What was said in a session, as lines for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.session.overview import hit_rate, moment, percent
from nexus_core.compaction.evidence.rendering import short_step
from nexus_core.compaction.redaction import redact_message
from nexus_core.session.steps.numbering import SILENT
from nexus_core.session.steps.turns import usage_of
from nexus_core.text.console import counted
from nexus_core.text.redaction import redact
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nexus_core.session.steps.turns import Turn
    from nexus_core.text.console import Console
    from nexus_core.values.conversation import Usage
    from nexus_core.values.ledger import Step
    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part

    Remark = Callable[[Step], str]

NOBODY: Mapping[str, str] = MappingProxyType({})
"""No call is known."""
INDENT = "  "
"""Before everything that somebody said, so that nothing said can pass for a heading."""


class Limit(NamedTuple):
    """How much of a text is shown."""

    lines: int
    characters: int


WORDS = Limit(100, 10_000)
"""Of what is said."""
ASIDE = Limit(10, 1000)
"""Of what tools brought, and of thoughts."""


class Line(NamedTuple):
    """A line, and whether it is a heading."""

    text: str
    is_heading: bool = False


def nothing(step: Step) -> str:  # noqa: ARG001 - whichever it is
    """No remark."""
    return ""


def tell_turn(turn: Turn, *, full: bool, remark: Remark = nothing, secrets: bool = False) -> Iterator[Line]:
    """A turn, from its first step on.

    Args:
        turn: The turn.
        full: Whether long texts are told whole.
        remark: What else is to be said about a reply.
        secrets: True prints keys, tokens and passwords, which are redacted otherwise.
    """
    first, last = turn.steps[0], turn.steps[-1]  # of one that was kept in several pieces, the last can be forked from
    if first.kind not in SILENT:
        yield Line(f"Turn {last.turn}, {moment(first.created)}{', open' if turn.is_open else ''}", is_heading=True)
    called: dict[str, str] = {}
    for step in turn.steps:
        if step.kind != "sealed":  # it says what the input said, as it was sent
            called |= {call.id: call.name for message in step.messages for call in message.tool_calls}
            yield from tell_step(step, full=full, remark=remark, called=called, secrets=secrets)


def tell_step(
    step: Step,
    *,
    full: bool,
    remark: Remark = nothing,
    called: Mapping[str, str] = NOBODY,
    secrets: bool = False,
) -> Iterator[Line]:
    """What a step added, under the end of its name; arguments as above.

    Args:
        step: The step.
        full: As above.
        remark: As above.
        called: The tools by the ids of calls, for results that do not name theirs.
        secrets: As above.
    """
    told = _tell_step(step, full=full, remark=remark, called=called, secrets=secrets)
    for line in told:
        yield Line(f"{line.text} [{short_step(step.id)}]", is_heading=True) if line.is_heading else line
        if line.is_heading:
            break
    yield from told


def _tell_step(step: Step, *, full: bool, remark: Remark, called: Mapping[str, str], secrets: bool) -> Iterator[Line]:
    if step.kind in ("compaction", "revert"):
        yield from _tell_summary(step, full=full, secrets=secrets)
        return
    if step.kind == "pin":
        pins = step.data.get("pins")
        stays = ", ".join(map(str, pins)) if isinstance(pins, list) and pins else "nothing"
        yield Line(f"pinned from now on: {stays}", is_heading=True)
        return
    if step.kind == "interrupted":
        yield Line("interrupted", is_heading=True)
    for message in step.messages:
        yield Line(_heading(step, message, remark, called), is_heading=True)
        yield from tell_words(message, full=full, secrets=secrets)
    if error := step.data.get("error"):
        yield Line(f"{INDENT}failed: {error if secrets else redact(str(error)).text}")


def tell_words(message: Message, *, full: bool, secrets: bool = False) -> Iterator[Line]:
    """Yield the lines of a message, indented; redacted before anything is cut."""
    message = message if secrets else redact_message(message, Counter())
    for part in message.parts:
        yield from map(Line, _indented(_told(part, full=full)))


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Print lines, the headings among them in bold."""
    for line in lines:
        if line.is_heading:
            console.table([(line.text,)], styles=["bold"])
        else:
            console.text(line.text)


def cost(usage: Usage) -> str:
    """What a call cost, in a few words."""
    words = [f"{usage.input_tokens:,} in ({percent(hit_rate(usage))} cached)", f"{usage.output_tokens:,} out"]
    if usage.reasoning_tokens:
        words[1] += f" ({usage.reasoning_tokens:,} reasoning)"
    if usage.cache_write_tokens:
        words.append(f"{usage.cache_write_tokens:,} put into the cache")
    return ", ".join(words)


def _heading(step: Step, message: Message, remark: Remark, called: Mapping[str, str]) -> str:
    if message.role == "tool":
        named = [
            " ".join(filter(None, (each.name or called.get(each.call_id), each.call_id and f"({each.call_id})")))
            for each in message.tool_results
        ]
        return f"tool {', '.join(filter(None, named))}".rstrip()
    if message.role != "assistant":
        return message.role
    words = ["assistant", str(step.data.get("model") or "")]
    usage = usage_of(step)
    facts = [cost(usage)] if usage else []
    facts += [str(step.data["stop_reason"])] if step.data.get("stop_reason") else []
    facts += ["cut off"] if step.data.get("interrupted") else []
    facts += filter(None, [remark(step)])
    return " ".join(filter(None, words)) + "".join(f" · {fact}" for fact in facts)


def _tell_summary(step: Step, *, full: bool, secrets: bool) -> Iterator[Line]:
    if step.kind == "revert" and (popped := step.data.get("popped")):
        newest = "the newest item was" if popped == 1 else f"the newest {popped} items were"
        yield Line(f"revert: {newest} taken back", is_heading=True)
        return
    if step.kind == "revert":
        restored = step.data.get("restores")
        yield Line(
            f"revert: {f'compaction {restored} counts again' if restored else 'no compaction counts'}", is_heading=True
        )
        return
    kept = step.data.get("first_kept")
    facts = [f"keeps what was said from {kept} on" if kept else "keeps nothing"]
    before, after, who = (step.data.get(name) for name in ("tokens_before", "tokens_after", "summariser"))
    if isinstance(before, int) and isinstance(after, int):
        facts.append(f"{before:,} -> {after:,} tokens")
    facts += [f"by {who}"] if who else []
    yield Line(f"compaction: {' · '.join(facts)}", is_heading=True)
    summary = str(step.data.get("summary", ""))
    shown = summary if secrets else redact(summary).text
    yield from map(Line, _indented(_limited(shown, None if full else WORDS)))


def _told(part: Part, *, full: bool) -> Iterator[str]:
    if isinstance(part, Text):
        yield from _limited(part.text, None if full else WORDS)
    elif isinstance(part, Reasoning):
        thought = part.text or ("(encrypted)" if part.encrypted else "")
        yield from (f"~ {line}" for line in _limited(thought, None if full else ASIDE))
    elif isinstance(part, ToolCall):
        arguments = part.raw if part.raw is not None else json.dumps(part.arguments, ensure_ascii=False)
        yield from _limited(f"-> {part.name}{f' ({part.id})' if part.id else ''} {arguments}", None if full else ASIDE)
    elif isinstance(part, ToolResult):
        if part.is_error:
            yield "(error)"
        for piece in part.parts:
            yield from (
                _limited(piece.text, None if full else ASIDE) if isinstance(piece, Text) else _told(piece, full=full)
            )
    elif isinstance(part, Image | File):
        yield f"[{' '.join(_described(part))}]"
    elif isinstance(part, Opaque):
        yield f"[{part.api}: {part.block.get('type', 'something that only it understands')}]"


def _described(part: Image | File) -> Iterator[str]:
    yield "image" if isinstance(part, Image) else "file"
    yield from filter(None, (getattr(part, "name", ""), part.mime, part.url, part.file_id))
    if part.data:
        yield counted(len(part.data.rstrip("=")) * 3 // 4, "byte")


def _limited(text: str, limit: Limit | None) -> Iterator[str]:
    """The lines of a text, not more than a limit allows; the last one then says how much is missing."""
    lines = text.split("\n")
    shown = text if limit is None else "\n".join(lines[: limit.lines])[: limit.characters]
    yield from shown.split("\n")
    if len(shown) < len(text):
        yield f"… {counted(len(text) - len(shown), 'character')} more (--full)"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"{INDENT}{line}".rstrip() for line in lines)
