"""Text that is printed while it arrives."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.text.markdown_stream import MarkdownStream, find_block_end
from nexus_core.text.safety import visible
from nexus_core.text.text_stream import TextStream
from tests.conftest import ROOT
from tests.effort import examples

MARKDOWN = """# Title

Some *text* with `code`
in two lines.

- one
- two

  more of two

1. first
2. second

```python
x = 1

y = 2
```

| a | b |
| - | - |
| 1 | 2 |

> quoted

The end."""


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[one:other] for one, other in pairwise(ends)]


def draw(pieces: list[str], *, rows: int = 24) -> list[str]:
    """The lines of a terminal after a reply."""
    screen = pyte.HistoryScreen(60, rows, history=1000)
    terminal = pyte.Stream(screen)
    ticks = iter(range(10_000_000))
    stream = MarkdownStream(
        lambda text: terminal.feed(text.replace("\n", "\r\n")),
        lambda: (60, rows),
        color=True,
        clock=lambda: float(next(ticks)),
    )
    for piece in pieces:
        stream.write(piece)
    stream.close()
    gone = ["".join(row[each].data for each in range(60)).rstrip() for row in screen.history.top]
    return [*gone, *(line.rstrip() for line in screen.display)]


@given(st.lists(st.integers(0, 10_000), max_size=40))
@settings(max_examples=examples(20), deadline=None)
def test_markdown_looks_the_same_however_it_is_cut_into_pieces(places: list[int]) -> None:
    assert draw(cut(MARKDOWN, places), rows=60) == draw([MARKDOWN], rows=60)


def test_a_reply_that_is_longer_than_the_screen_is_printed_once() -> None:
    lines = [line for line in draw([f"line {number}\n" for number in range(100)], rows=10) if line]

    assert " ".join(lines).split() == " ".join(f"line {number}" for number in range(100)).split()


@given(st.text(), st.lists(st.integers(0, 10_000), max_size=20))
@settings(max_examples=examples(200), deadline=None)
def test_plain_text_is_escaped_the_same_however_it_is_cut_into_pieces(text: str, places: list[int]) -> None:
    written: list[str] = []
    stream = TextStream(written.append)

    for piece in cut(text, places):
        stream.write(piece)
    stream.close()

    assert "".join(written).rstrip("\n") == visible(text.replace("\r\n", "\n")).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("One\n\nTwo", 5),
        ("One\n\n", None),
        ("```\na\n\nb\n", None),
        ("```\na\n```\n", 10),
        ("- a\n\n  b\n", None),
        ("- a\n\n- b\n", None),
        ("- a\n\nText\n", 5),
        ("", None),
    ],
)
def test_a_block_ends_where_the_next_begins(text: str, end: int | None) -> None:
    assert find_block_end(text) == end


def test_a_piped_text_needs_nothing_that_draws_on_a_terminal() -> None:
    code = (
        "import sys; from nexus_core.text.console import Console; stream = Console().stream();"
        "stream.write('Hi.'); stream.close(); print('rich' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "Hi.\nFalse\n"
