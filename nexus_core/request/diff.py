"""What two calls have in common, and the first thing by which they differ.

A provider's cache finds the beginning of a call, up to the first byte that is another one. So a call is looked at as a
row of pieces in the order in which it is read: the model, the tools, the system prompt, the messages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.dialects.neutral import encode_value
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.ledger.json_text import write_canonical_json, write_json
from nexus_core.types.digest import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message, Tool
    from nexus_core.types.prompt import Placement, Source

_HEADINGS = "headings"
"""What stands around sections is not told apart."""
PieceKind = Literal["model", "tool", "section", "system", "message"]
PieceOutcome = Literal["changed", "new", "gone", "moved"]


class RequestPiece(NamedTuple):
    """Something that a call is made of.

    Attributes:
        kind: What it is.
        name: What a person calls it.
        digest: The address of what it says; equal ones are equal.
        tokens: What it takes.
        key: What makes it the same thing although it says something else; "" where nothing does.
        source: The file or plugin it comes from; None where nobody knows.
        text: What it says, as far as that is words.
    """

    kind: PieceKind
    name: str
    digest: str
    tokens: int = 0
    key: str = ""
    source: Source | None = None
    text: str = ""


class RequestSide(NamedTuple):
    """One of two calls.

    Attributes:
        model: Whom it goes to; every model has a cache of its own.
        tools: What the model may ask for.
        system: The system prompt.
        sections: What that consists of; none where nobody knows.
        messages: What is said after it.
    """

    model: RequestPiece
    tools: tuple[RequestPiece, ...]
    system: RequestPiece
    sections: tuple[RequestPiece, ...]
    messages: tuple[RequestPiece, ...]


class PieceChange(NamedTuple):
    """Something by which two calls differ; None where one of them does not have it."""

    before: RequestPiece | None
    after: RequestPiece | None

    @property
    def piece(self) -> RequestPiece:
        """It, as it is now, else as it was."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - one of them has it
        return found

    @property
    def outcome(self) -> PieceOutcome:
        """What became of it."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "moved" if self.before.digest == self.after.digest else "changed"


class RequestDifference(NamedTuple):
    """By what a call differs from another.

    Attributes:
        first: The first thing; None where they are the same.
        common: How many pieces they begin with alike.
        stable: The tokens of these, which may come from a cache.
        resent: The tokens of what the other call had as well, but which stand behind the first difference.
        new: The tokens of what only this one has.
        changes: Everything that only one of them has, in the order in which it is read; the first among it.
    """

    first: PieceChange | None
    common: int
    stable: int
    resent: int
    new: int
    changes: tuple[PieceChange, ...]

    @property
    def is_continuation(self) -> bool:
        """Whether the second call begins with all of the first."""
        return all(change.outcome == "new" for change in self.changes) and self.resent == 0


def compare_requests(before: RequestSide, after: RequestSide) -> RequestDifference:
    """By what a call differs from one before it."""
    # Where sections do not say why, the system prompt is one piece: what puts it into words has changed.
    by_section = _digests(before.sections) != _digests(after.sections) and bool(before.sections and after.sections)
    return compare_pieces([*_in_order(before, by_section=by_section)], [*_in_order(after, by_section=by_section)])


def compare_pieces(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> RequestDifference:
    """By what a row of pieces differs from one before it."""
    pairs = zip(before, after, strict=False)
    shorter = min(len(before), len(after))
    common = next((place for place, (old, new) in enumerate(pairs) if old.digest != new.digest), shorter)
    old, new = before[common:], after[common:]
    known = Counter(_digests(old))
    again = 0
    for piece in new:
        if known[piece.digest]:
            known[piece.digest] -= 1
            again += piece.tokens
    stable, total = (sum(piece.tokens for piece in row) for row in (after[:common], after))
    changes = [*_changes(old, new)]
    first = _first(old, new, changes)
    if first is not None and first.outcome == "moved":
        changes.insert(0, first)
    return RequestDifference(first, common, stable, again, total - stable - again, tuple(changes))


def _in_order(side: RequestSide, *, by_section: bool) -> Iterator[RequestPiece]:
    yield side.model
    yield from side.tools
    if by_section:
        yield from side.sections
        left = side.system.tokens - sum(piece.tokens for piece in side.sections)
        yield RequestPiece("system", "headings", digest=_HEADINGS, tokens=max(left, 0))
    else:
        yield side.system
    yield from side.messages


def _first(
    before: Sequence[RequestPiece], after: Sequence[RequestPiece], changes: Sequence[PieceChange]
) -> PieceChange | None:
    """What became of that with which two rows part; None where both have ended."""
    old, new = next(iter(before), None), next(iter(after), None)
    for change in changes:
        if new is not None and change.after is new:
            return change
    for change in changes:
        if old is not None and change.before is old:
            return change
    if new is None:
        return None
    return PieceChange(next(piece for piece in before if piece.digest == new.digest), new)


def _changes(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> Iterator[PieceChange]:
    """What only one of two rows has; things that are known by a name are compared with themselves."""
    left = Counter(_digests(before)) - Counter(_digests(after))
    gone = [piece for piece in before if _take(left, piece)]
    added = Counter(_digests(after)) - Counter(_digests(before))
    for piece in after:
        if _take(added, piece):
            was = next((each for each in gone if _name(each) == _name(piece)), None)
            if was is not None:
                gone.remove(was)
            yield PieceChange(was, piece)
    yield from (PieceChange(piece, None) for piece in gone)


def _take(counts: Counter[str], piece: RequestPiece) -> bool:
    if not counts[piece.digest]:
        return False
    counts[piece.digest] -= 1
    return True


def _name(piece: RequestPiece) -> tuple[str, str]:
    return piece.kind, piece.key


def _digests(pieces: Sequence[RequestPiece]) -> list[str]:
    return [piece.digest for piece in pieces]


_UNSENT = ("nexus", "api", "scope")
"""What no model reads: the version of our own form, who read something, what a tool reaches."""
CACHE_MARKER_FIELDS = BUILT_IN_DIALECTS.cache_marks()
"""The fields by which providers are told what to keep in their caches, whose dialects are built in."""
_STEP, _CALLER = "step:", "caller:"


class Sendable(NamedTuple):
    """What goes to a model, whoever put it together.

    Attributes:
        model: Whom it goes to.
        system_prompt: What is read first.
        tools: What may be asked for.
        messages: What is said.
        tool_tokens, message_tokens: What each of these takes.
        system_tokens: What the system prompt takes.
        api: The dialect that its messages were read by; "" for those that were put together here.
        renderer: What put it into words; "" where nobody knows.
        placements: Where the pieces come from, as far as somebody knows.
    """

    model: str
    system_prompt: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    tool_tokens: tuple[int, ...]
    message_tokens: tuple[int, ...]
    system_tokens: int
    api: str = ""
    renderer: str = ""
    placements: tuple[Placement, ...] = ()


def build_sendable(context: AssembledContext) -> Sendable:
    """What goes to a model of what was put together for it."""
    placed = {each.name: each.tokens for each in context.placements if each.kind == "tool" and each.tokens}
    return Sendable(
        model=context.model,
        system_prompt=context.system_prompt,
        tools=context.tools,
        messages=context.messages,
        tool_tokens=tuple(placed.get(tool.name, 0) for tool in context.tools),
        message_tokens=context.message_tokens,
        system_tokens=context.token_budget.used.get("system", 0),
        renderer=context.renderer,
        placements=context.placements,
    )


def build_side(sendable: Sendable, marks: frozenset[str] = CACHE_MARKER_FIELDS) -> RequestSide:
    """A call, as one side of a comparison.

    Args:
        sendable: The call.
        marks: The fields by which providers are told what to keep in their caches.
    """
    placed = [each for each in sendable.placements if each.zone == "static" and each.kind != "tool"]
    words = sendable.system_prompt
    name = f"system prompt of the renderer {sendable.renderer}" if sendable.renderer else "system prompt"
    return RequestSide(
        model=RequestPiece("model", sendable.model, _digest("model", sendable.model), text=sendable.model),
        tools=tuple(_tools(sendable, marks)),
        system=RequestPiece("system", name, _digest("system", words), sendable.system_tokens, text=words),
        sections=tuple(map(_section, placed)),
        messages=tuple(_messages(sendable, marks)),
    )


def _tools(sendable: Sendable, marks: frozenset[str]) -> Iterator[RequestPiece]:
    sources = {each.name: each.source for each in sendable.placements if each.kind == "tool" and each.tokens}
    for tool, tokens in zip(sendable.tools, sendable.tool_tokens, strict=True):
        written = write_json(_sent(encode_value(tool), marks), "a tool")  # a model reads its parameters in their order
        yield RequestPiece(
            "tool", tool.name, _digest("tool", written), tokens, tool.name, sources.get(tool.name), _told(tool)
        )


def _section(placed: Placement) -> RequestPiece:
    key = placed.source.uri if placed.source.is_file else placed.name
    written = write_canonical_json([placed.title, placed.source.uri, placed.digest])
    return RequestPiece(
        "section", placed.title, _digest("section", written), placed.tokens, f"{key} {placed.title}", placed.source
    )


def _messages(sendable: Sendable, marks: frozenset[str]) -> Iterator[RequestPiece]:
    messages, sizes = sendable.messages, sendable.message_tokens
    placed = [each for each in sendable.placements if _is_message(each)]
    sources = [each.source for each in placed] if len(placed) == len(messages) else [None] * len(messages)
    before = dict[str, int]()
    for place, (message, tokens, source) in enumerate(zip(messages, sizes, sources, strict=True)):
        step = source.uri.removeprefix(_STEP) if source is not None and source.uri.startswith(_STEP) else ""
        before[step] = before.get(step, 0) + 1
        yield RequestPiece(
            "message",
            f"message {place} ({message.role})",
            compute_piece_digest(message, marks),
            tokens,
            f"{step} {before[step]}" if step else "",
            source if step else None,
            message.content,
        )


def compute_piece_digest(message: Message, marks: frozenset[str] = CACHE_MARKER_FIELDS) -> str:
    """The address of what a provider reads of a message."""
    return _digest("message", write_canonical_json(_sent(encode_value(message), marks)))


def _is_message(placed: Placement) -> bool:
    if placed.decision.action == "dropped":
        return False
    return placed.zone == "history" or (placed.zone == "current" and placed.source.uri.startswith((_STEP, _CALLER)))


def _sent(block: Mapping[str, Any], marks: frozenset[str]) -> dict[str, Any]:
    """Something in Nexus's own form without what is no part of what is said: marks for caches, notes."""
    sent = {name: value for name, value in block.items() if name not in _UNSENT}
    for name in ("extra", "block"):
        if name in sent:
            sent[name] = {key: value for key, value in sent[name].items() if key not in marks and key[:1] != "_"}
    if "parts" in sent:
        sent["parts"] = [_sent(part, marks) for part in sent["parts"]]
    return {name: value for name, value in sent.items() if name != "extra" or value}


def _told(tool: Tool) -> str:
    return f"{tool.description}\n{write_json(dict(tool.parameters), 'a tool')}"


def _digest(kind: str, text: str) -> str:
    return blake2b(f"{kind}:{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
