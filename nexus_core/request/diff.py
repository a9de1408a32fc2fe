"""Comparison of two calls: their first difference, and the tokens before it.

A provider's prompt cache matches a call up to the first byte that differs. So a call is compared as a list of pieces in
the order in which the provider reads them: model, tools, system prompt, messages.
"""

from __future__ import annotations

import os.path
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.dialects.neutral import encode_value
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.ledger.store import write_canonical_json, write_json
from nexus_core.types.base import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message, Tool
    from nexus_core.types.prompt import Placement, Source

CACHE_MARKER_FIELDS = BUILT_IN_DIALECTS.cache_marks()
"""Fields for cache markers in the built-in dialects."""
_HEADINGS_DIGEST = "headings"
"""The digest of all text around sections, which is not compared."""
_UNSENT_FIELDS = ("nexus", "api", "scope")
"""Fields of the neutral format that are not sent to a model."""
_STEP_URI, _CALLER_URI = "step:", "caller:"
PieceKind = Literal["model", "tool", "section", "system", "message"]
PieceOutcome = Literal["changed", "new", "gone", "moved"]


class CallContent(NamedTuple):
    """System prompt, tools and messages of a call, with their tokens.

    Attributes:
        model: The name of the model.
        system_prompt: The system prompt.
        tools: The tools.
        messages: The messages.
        tool_tokens, message_tokens: Tokens of each tool and each message.
        system_tokens: Tokens of the system prompt.
        api: The dialect that the messages were parsed by; "" if the call was assembled here.
        renderer: The name of the renderer; "" if unknown.
        placements: The placements of the pieces; empty if unknown.
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


class RequestPiece(NamedTuple):
    """One piece of a call.

    Attributes:
        kind: The type of the piece.
        name: Its name for a reader.
        digest: The digest of its content.
        tokens: Tokens of the piece.
        key: Identifies the piece when its content changes; "" if nothing does.
        source: The file or plugin it comes from; None if unknown.
        text: Its text.
    """

    kind: PieceKind
    name: str
    digest: str
    tokens: int = 0
    key: str = ""
    source: Source | None = None
    text: str = ""


class RequestSide(NamedTuple):
    """One of two compared calls.

    Attributes:
        model: The model; every model has its own cache.
        tools: The tools.
        system: The system prompt.
        sections: The sections of the system prompt; empty if unknown.
        messages: The messages.
    """

    model: RequestPiece
    tools: tuple[RequestPiece, ...]
    system: RequestPiece
    sections: tuple[RequestPiece, ...]
    messages: tuple[RequestPiece, ...]


class PieceChange(NamedTuple):
    """A piece before and after; None if that call lacks it."""

    before: RequestPiece | None
    after: RequestPiece | None

    @property
    def piece(self) -> RequestPiece:
        """The piece of the second call, or of the first if the second lacks it."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - at least one is set
        return found

    @property
    def outcome(self) -> PieceOutcome:
        """The outcome for the piece: new, gone, moved or changed."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "moved" if self.before.digest == self.after.digest else "changed"


class RequestDifference(NamedTuple):
    """The difference between a call and an earlier one.

    Attributes:
        first: The first change; None if the calls are equal.
        common: Number of equal pieces at the start.
        stable: Tokens of these, and of the text before the first difference in a piece, which may come from the cache.
        resent: Tokens of pieces that the earlier call had too, but after the first difference.
        new: Tokens of pieces that only this call has.
        changes: All changes in the order of the call, including the first.
    """

    first: PieceChange | None
    common: int
    stable: int
    resent: int
    new: int
    changes: tuple[PieceChange, ...]

    @property
    def is_continuation(self) -> bool:
        """True if the second call starts with all of the first."""
        return all(change.outcome == "new" for change in self.changes) and self.resent == 0


# ---- pieces of a call -----------------------------------------------------------------------------------------------


def build_call_content(context: AssembledContext) -> CallContent:
    """Return the content of an assembled call."""
    placed = {each.name: each.tokens for each in context.placements if each.kind == "tool" and each.tokens}
    return CallContent(
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


def build_side(sendable: CallContent, marks: frozenset[str] = CACHE_MARKER_FIELDS) -> RequestSide:
    """Return a call as one side of a comparison.

    Args:
        sendable: The call.
        marks: Fields for cache markers, which are not compared.
    """
    placed = [each for each in sendable.placements if each.zone == "static" and each.kind != "tool"]
    prompt = sendable.system_prompt
    name = f"system prompt of the renderer {sendable.renderer}" if sendable.renderer else "system prompt"
    return RequestSide(
        model=RequestPiece("model", sendable.model, _compute_digest("model", sendable.model), text=sendable.model),
        tools=tuple(_build_tool_pieces(sendable, marks)),
        system=RequestPiece("system", name, _compute_digest("system", prompt), sendable.system_tokens, text=prompt),
        sections=tuple(map(_build_section_piece, placed)),
        messages=tuple(_build_message_pieces(sendable, marks)),
    )


def _build_tool_pieces(sendable: CallContent, marks: frozenset[str]) -> Iterator[RequestPiece]:
    sources = {each.name: each.source for each in sendable.placements if each.kind == "tool" and each.tokens}
    for tool, tokens in zip(sendable.tools, sendable.tool_tokens, strict=True):
        # Not canonical JSON: a model reads the parameters in their order.
        serialized = write_json(_remove_unsent(encode_value(tool), marks), "a tool")
        yield RequestPiece(
            "tool",
            tool.name,
            _compute_digest("tool", serialized),
            tokens,
            tool.name,
            sources.get(tool.name),
            _format_tool(tool),
        )


def _format_tool(tool: Tool) -> str:
    return f"{tool.description}\n{write_json(dict(tool.parameters), 'a tool')}"


def _build_section_piece(placed: Placement) -> RequestPiece:
    key = placed.source.uri if placed.source.is_file else placed.name
    serialized = write_canonical_json([placed.title, placed.source.uri, placed.digest])
    return RequestPiece(
        "section",
        placed.title,
        _compute_digest("section", serialized),
        placed.tokens,
        f"{key} {placed.title}",
        placed.source,
    )


def _build_message_pieces(sendable: CallContent, marks: frozenset[str]) -> Iterator[RequestPiece]:
    messages, sizes = sendable.messages, sendable.message_tokens
    placed = [each for each in sendable.placements if _is_message(each)]
    sources = [each.source for each in placed] if len(placed) == len(messages) else [None] * len(messages)
    before = dict[str, int]()
    for index, (message, tokens, source) in enumerate(zip(messages, sizes, sources, strict=True)):
        step = source.uri.removeprefix(_STEP_URI) if source is not None and source.uri.startswith(_STEP_URI) else ""
        before[step] = before.get(step, 0) + 1
        yield RequestPiece(
            "message",
            f"message {index} ({message.role})",
            compute_piece_digest(message, marks),
            tokens,
            f"{step} {before[step]}" if step else "",
            source if step else None,
            message.content,
        )


def _is_message(placed: Placement) -> bool:
    if placed.decision.action == "dropped":
        return False
    return placed.zone == "history" or (
        placed.zone == "current" and placed.source.uri.startswith((_STEP_URI, _CALLER_URI))
    )


def compute_piece_digest(message: Message, marks: frozenset[str] = CACHE_MARKER_FIELDS) -> str:
    """Return the digest of a message as a provider reads it."""
    return _compute_digest("message", write_canonical_json(_remove_unsent(encode_value(message), marks)))


def _remove_unsent(block: Mapping[str, Any], marks: frozenset[str]) -> dict[str, Any]:
    """Return a block without cache markers and fields that are not sent."""
    sent = {name: value for name, value in block.items() if name not in _UNSENT_FIELDS}
    for name in ("extra", "block"):
        if name in sent:
            sent[name] = {key: value for key, value in sent[name].items() if key not in marks and key[:1] != "_"}
    if "parts" in sent:
        sent["parts"] = [_remove_unsent(part, marks) for part in sent["parts"]]
    return {name: value for name, value in sent.items() if name != "extra" or value}


def _compute_digest(kind: str, text: str) -> str:
    return blake2b(f"{kind}:{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# ---- comparison -----------------------------------------------------------------------------------------------------


def compare_requests(before: RequestSide, after: RequestSide) -> RequestDifference:
    """Return the difference between a call and an earlier one."""
    # With equal sections the system prompt is one piece: then only the renderer can have changed it.
    by_section = _list_digests(before.sections) != _list_digests(after.sections) and bool(
        before.sections and after.sections
    )
    return compare_pieces([*_list_pieces(before, by_section=by_section)], [*_list_pieces(after, by_section=by_section)])


def _list_pieces(side: RequestSide, *, by_section: bool) -> Iterator[RequestPiece]:
    yield side.model
    yield from side.tools
    if by_section:
        yield from side.sections
        left = side.system.tokens - sum(piece.tokens for piece in side.sections)
        yield RequestPiece("system", "headings", digest=_HEADINGS_DIGEST, tokens=max(left, 0))
    else:
        yield side.system
    yield from side.messages


def compare_pieces(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> RequestDifference:
    """Return the difference between two lists of pieces."""
    pairs = zip(before, after, strict=False)
    shorter = min(len(before), len(after))
    common = next((index for index, (old, new) in enumerate(pairs) if old.digest != new.digest), shorter)
    old, new = before[common:], after[common:]
    remaining = Counter(_list_digests(old))
    again = 0
    for piece in new:
        if remaining[piece.digest]:
            remaining[piece.digest] -= 1
            again += piece.tokens
    stable, total = (sum(piece.tokens for piece in row) for row in (after[:common], after))
    changes = [*_find_changes(old, new)]
    first = _find_first_change(old, new, changes)
    if first is not None and first.outcome == "moved":
        changes.insert(0, first)
    if first is not None and first.before in old[:1] and first.after in new[:1]:
        stable += _estimate_common_tokens(first)
    return RequestDifference(first, common, stable, again, total - stable - again, tuple(changes))


def _estimate_common_tokens(change: PieceChange) -> int:
    """Return the tokens of the text with which a piece begins before and after, by its share of the characters."""
    if change.before is None or change.after is None or change.outcome != "changed":
        return 0
    text = change.after.text
    common = os.path.commonprefix([change.before.text, text])  # noqa: RUF071 - characters are compared, not paths
    return change.after.tokens * len(common) // max(len(text), 1)


def _find_changes(before: Sequence[RequestPiece], after: Sequence[RequestPiece]) -> Iterator[PieceChange]:
    """Yield the pieces that only one list has, paired by kind and key."""
    left = Counter(_list_digests(before)) - Counter(_list_digests(after))
    gone = [piece for piece in before if _take_one(left, piece)]
    added = Counter(_list_digests(after)) - Counter(_list_digests(before))
    for piece in after:
        if _take_one(added, piece):
            was = next((each for each in gone if _get_identity(each) == _get_identity(piece)), None)
            if was is not None:
                gone.remove(was)
            yield PieceChange(was, piece)
    yield from (PieceChange(piece, None) for piece in gone)


def _take_one(counts: Counter[str], piece: RequestPiece) -> bool:
    if not counts[piece.digest]:
        return False
    counts[piece.digest] -= 1
    return True


def _get_identity(piece: RequestPiece) -> tuple[str, str]:
    return piece.kind, piece.key


def _find_first_change(
    before: Sequence[RequestPiece], after: Sequence[RequestPiece], changes: Sequence[PieceChange]
) -> PieceChange | None:
    """Return the change at the start of both lists; None if both are empty."""
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


def _list_digests(pieces: Sequence[RequestPiece]) -> list[str]:
    return [piece.digest for piece in pieces]
