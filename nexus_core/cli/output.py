"""Tables, token bars as wide as the terminal, and one-line excerpts of messages."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.console import format_percent, format_share
from nexus_core.text.layout import measure_width, shorten_to_width
from nexus_core.text.safety import shorten, visible_line
from nexus_core.tokens.messages import to_compact_json
from nexus_core.types.messages import Reasoning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.text.console import Console, ConsoleStyle
    from nexus_core.types.messages import Message, ToolCall, Usage


_COLUMN_GAP = 2
_MIN_BAR_WIDTH, _MAX_BAR_WIDTH = 8, 40
_BAR_COLORS: tuple[ConsoleStyle, ...] = ("cyan", "green", "magenta", "yellow", "blue")
_MAX_NAME_CHARACTERS = 32
"""Longer names are shortened."""


class TokenRow(NamedTuple):
    """A line of a table.

    Attributes:
        name: The name of the row.
        tokens: The number of tokens.
        numbers: Further columns, right-aligned.
        remark: Text after the bar, cut at the end of the line.
    """

    name: str
    tokens: int
    numbers: tuple[str, ...] = ()
    remark: str = ""


def print_token_bars(
    console: Console,
    heading: tuple[str, ...],
    rows: Sequence[TokenRow],
    total: int,
    *,
    share_of: str = "SHARE",
    sum_name: str = "total",
) -> None:
    """Print a table of tokens, their shares of `total`, and bars. Without rows, print nothing.

    A full bar is the whole of `total`. The last line has the sum of the others.

    Args:
        console: Where to print.
        heading: The headings of the names, the further columns and the remarks.
        rows: The lines.
        total: The tokens that shares are of.
        share_of: The heading of the shares.
        sum_name: The name of the last line.
    """
    if not rows:
        return
    rows = [*rows, TokenRow(sum_name, sum(row.tokens for row in rows), ("",) * len(rows[0].numbers))]
    name, *columns = heading
    numbers = len(rows[0].numbers)
    head = [name, "TOKENS", share_of, *columns[:numbers]]
    cells = [
        [_fit_text(row.name, _MAX_NAME_CHARACTERS), f"{row.tokens:,}", format_percent(row.tokens, total), *row.numbers]
        for row in rows
    ]
    measure = measure_width if console.is_terminal else len
    used = sum(max(map(measure, column)) + _COLUMN_GAP for column in zip(head, *cells, strict=True))
    bar = _get_bar_width(console.width, used, remarks=any(row.remark for row in rows))
    bars = [console.format_bar(row.tokens, total, bar) if total else "" for row in rows[:-1]]
    room = console.width - used - _COLUMN_GAP - max(map(len, bars))
    lines = [[*head, "", *columns[numbers:]]]
    for row, line, drawn in zip(rows[:-1], cells[:-1], bars, strict=True):
        lines.append([*line, drawn, _fit_remark(console, row.remark, room)])
    lines.append([*cells[-1], "", ""])
    colors = {(index, len(head)): _BAR_COLORS[(index - 1) % len(_BAR_COLORS)] for index in range(1, len(rows))}
    colors |= {(index, len(head) + 1): "dim" for index in range(1, len(rows))}
    styles: list[ConsoleStyle] = ["plain"] * len(lines)
    styles[0] = styles[-1] = "bold"
    console.text("")
    console.table(
        [line[: len(head) + 1 + bool(columns[numbers:])] for line in lines],
        styles=styles,
        cell_styles=colors,
        right=range(1, len(head)),
    )


def limit_rows(rows: Iterable[TokenRow], limit: int, noun: str) -> list[TokenRow]:
    """Return the rows with the most tokens, of equal ones the earlier first, and the others in one row.

    Args:
        rows: All rows.
        limit: How many to list; 0 lists nothing.
        noun: The name of one of them: "message".
    """
    ranked = sorted(rows, key=lambda row: -row.tokens)
    listed, others = ranked[:limit], ranked[limit:]
    if listed and others:
        more = f"{len(others):,} more {noun}{'s' * (len(others) > 1)}"
        listed.append(TokenRow(more, sum(row.tokens for row in others), ("",) * len(listed[0].numbers)))
    return listed


def _get_bar_width(width: int, used: int, *, remarks: bool) -> int:
    free = width - used - _COLUMN_GAP
    return max(_MIN_BAR_WIDTH, min(_MAX_BAR_WIDTH, free // 3 if remarks else free))


def _fit_text(text: str, room: int) -> str:
    return shorten(visible_line(text), room)


def _fit_remark(console: Console, text: str, room: int) -> str:
    """Return a remark in one line. A path keeps its end on a terminal, where it says most."""
    shown = visible_line(text)
    if console.is_terminal and shown.startswith("/") and len(shown) > room > 1:
        end = shown[1 - room :]
        return f"…{end[max(end.find('/'), 0) :]}"
    return shorten_to_width(shown, room) if console.is_terminal else shorten(shown, room)


MAX_EXCERPT_CHARACTERS = 200
"""Characters of each part; no line of a table is longer."""
_MAX_ARGUMENT_CHARACTERS = 60
"""Characters of an argument, so that those behind a long one are seen too."""
_CLOCK_PREFIX = re.compile(r"\ACurrent time: [0-9T:-]++Z\nTimezone: [^\n]*+\n(?>(?:[^\n]++\n)*)\n")
"""What sessions write before the text of a user message."""


def excerpt_message(message: Message) -> str:
    """Return the start of a message: text and tool calls, else tool results, else reasoning.

    Without secrets.
    """
    from nexus_core.memory.statements import strip_command_elements  # with patterns that take long to compile, as below
    from nexus_core.text.secrets import redact_beginning

    text = strip_command_elements(_CLOCK_PREFIX.sub("", message.content))
    parts = [redact_beginning(text, MAX_EXCERPT_CHARACTERS), *map(excerpt_call, message.tool_calls)]
    if not any(parts):
        parts = [redact_beginning(result.text, MAX_EXCERPT_CHARACTERS) for result in message.tool_results]
    if not any(parts):
        parts = [
            redact_beginning(part.text, MAX_EXCERPT_CHARACTERS) for part in message.parts if isinstance(part, Reasoning)
        ]
    return " ".join("; ".join(filter(None, parts)).split())


def excerpt_call(call: ToolCall) -> str:
    """Return a tool call in one line, without secrets."""
    from nexus_core.text.secrets import redact_beginning

    if call.raw and not call.arguments:  # it is not an object in JSON
        return f"{call.name}({redact_beginning(call.raw, MAX_EXCERPT_CHARACTERS)})"
    arguments = (_excerpt_argument(name, to_compact_json(value)) for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def _excerpt_argument(name: str, value: str) -> str:
    """Return `name=value` of an argument, redacted first and then shortened."""
    from nexus_core.text.secrets import redact_beginning

    text = redact_beginning(f"{name}={value}", MAX_EXCERPT_CHARACTERS)
    most = len(name) + 1 + _MAX_ARGUMENT_CHARACTERS
    return text if len(text) <= most else f"{text[: most - 1]}…"


def compute_hit_rate(usage: Usage) -> float | None:
    """Return the share of the input that came from the prompt cache, or None without input tokens.

    To four digits, of which none makes 0 or 1 of another share.
    """
    if not usage.input_tokens:
        return None
    rate = usage.cached_input_tokens / usage.input_tokens
    return min(max(round(rate, 4), 0.0001), 0.9999) if 0 < rate < 1 else round(rate, 4)


def format_rate(rate: float | None) -> str:
    """Return a share for a table."""
    return "-" if rate is None else format_share(rate)


def format_time(milliseconds: int) -> str:
    """Return a point in time as the clock on the wall shows it."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))
    except (ValueError, OverflowError, OSError):  # no clock ever showed that
        return "-"
