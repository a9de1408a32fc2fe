"""What two requests have in common and by what they differ, for a reader and as JSON."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nexus_core.text.console import counted
from nexus_core.text.visible import shortened, visible_line
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.assembly.difference import Change, Piece, Side
    from nexus_core.cli.request.comparing import Compared
    from nexus_core.cli.shell import CommandShell

_SHOWN = 20
"""So many changes are listed; --json has all of them."""
_WIDTH = 100
"""Characters of a line that are shown."""
_FATES = {"changed": "has changed", "new": "is new", "gone": "is gone", "moved": "has moved"}


def print_compared(shell: CommandShell, compared: Compared) -> None:
    """Print by what two requests differ, where the cache breaks, and what that costs."""
    console, difference = shell.console, compared.difference
    for letter, name, side in zip("AB", compared.names, compared.sides, strict=True):
        said = counted(len(side.messages), "message") if side.messages else ""
        facts = (said, counted(_tokens(side), "token"), side.model.name)
        console.text(visible_line(f"{letter}: {name} ({', '.join(filter(None, facts))})"))
    if difference.first is None:
        console.text("They are the same.")
        return
    if difference.goes_on:
        console.text(f"B begins with all of A, and goes on with {counted(len(difference.changes), 'message')}.")
    else:
        console.text(visible_line(f"First difference: {_sentence(difference.first)}"))
        for line in _lines(compared):
            console.text(visible_line(line))
    total = difference.stable + difference.again + difference.new
    console.text(
        f"Of the {counted(total, 'token')} of B, {difference.stable:,} are as in A and may come from a cache, "
        f"{difference.again:,} are billed again, {difference.new:,} are new."
    )
    _print_changes(shell, difference.changes)


def facts_of(compared: Compared) -> dict[str, Any]:
    """The same for programs."""
    difference = compared.difference
    return {
        "schema": 1,
        "same": difference.first is None,
        "goes_on": difference.goes_on,
        **{
            letter: {"name": name, "model": side.model.name, "tokens": _tokens(side), "messages": len(side.messages)}
            for letter, name, side in zip("ab", compared.names, compared.sides, strict=True)
        },
        "first": None if difference.first is None else _change(difference.first),
        "stable": difference.stable,
        "again": difference.again,
        "new": difference.new,
        "changes": [_change(change) for change in difference.changes],
    }


def _sentence(change: Change) -> str:
    piece = change.piece
    if piece.kind == "model":
        before = change.before.name if change.before else ""
        return f"the model is {before or 'not named'} in A and {piece.name or 'not named'} in B"
    return f"{_what(piece)}{f' ({_origin(piece)})' if _origin(piece) else ''} {_FATES[change.fate]}"


def _what(piece: Piece) -> str:
    if piece.kind == "model" and not piece.name:
        return "no model"
    return f"{piece.kind} {piece.name!r}" if piece.kind in ("section", "tool", "model") else piece.name


def _origin(piece: Piece) -> str:
    return "" if piece.source is None else source_name(piece.source.uri)


def _lines(compared: Compared) -> list[str]:
    """The first line that is another one."""
    first = compared.difference.first
    if first is None or first.fate != "changed" or first.piece.kind == "model":
        return []
    if first.piece.kind == "section":
        texts: Sequence[str] = [side.system.text for side in compared.sides]
    else:
        texts = [each.text if each else "" for each in first]
    rows = zip_longest(*(text.split("\n") for text in texts))
    number, (old, new) = next(((place, row) for place, row in enumerate(rows, 1) if row[0] != row[1]), (0, ("", "")))
    if not number:
        return []
    shown = [f"  line {number}:"]
    shown += [f"  - {shortened(old, _WIDTH)}"] if old is not None else []
    return shown + ([f"  + {shortened(new, _WIDTH)}"] if new is not None else [])


def _print_changes(shell: CommandShell, changes: Sequence[Change]) -> None:
    rows = [
        (change.fate, _what(change.piece), f"{_size(change.before)} -> {_size(change.after)}", _origin(change.piece))
        for change in changes[:_SHOWN]
    ]
    shell.console.text("")
    shell.console.table([("CHANGE", "WHAT", "TOKENS", "FROM"), *rows], styles=["bold"])
    if len(changes) > _SHOWN:
        shell.console.message(f"({counted(len(changes) - _SHOWN, 'more change')}; --json has all of them)", style="dim")


def _size(piece: Piece | None) -> str:
    return "0" if piece is None else f"{piece.tokens:,}"


def _tokens(side: Side) -> int:
    return sum(piece.tokens for piece in (*side.tools, side.system, *side.messages))


def _change(change: Change) -> dict[str, Any]:
    source = change.piece.source
    return {
        "fate": change.fate,
        "kind": change.piece.kind,
        "name": change.piece.name,
        "source": source and {"uri": source.uri, "layer": source.layer, "plugin": source.plugin},
        "tokens_before": 0 if change.before is None else change.before.tokens,
        "tokens_after": 0 if change.after is None else change.after.tokens,
    }
