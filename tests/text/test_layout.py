from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.text.layout import lay_out_table, measure_width, shorten_to_width, shorten_to_words, wrap_line
from tests.effort import examples

ROWS = [
    ("SESSION", "TURNS", "CHANGED", "MODEL", "DIRECTORY"),
    ("claude-ef958aa1/agent-aef063ba534d73153", "1", "2026-04-18 13:50", "claude-opus-4-7", "-"),
    ("auth-bug", "1,204", "2026-01-02 03:04", "gpt-4o", "/srv/shop/services/authentication"),
]


def lay_out(rows: Sequence[tuple[str, ...]], width: int | None, *, right: frozenset[int] = frozenset()) -> list[str]:
    return [line.text for line in lay_out_table(rows, width, right=right)]


def test_table_that_fits_has_one_line_per_row() -> None:
    assert lay_out([("NAME", "SIZE"), ("a", "12")], 80) == ["NAME  SIZE", "a     12"]


def test_table_in_a_file_has_one_line_per_row_however_long() -> None:
    assert len(lay_out(ROWS, None)) == len(ROWS)


def test_text_wraps_between_words_in_its_column() -> None:
    rows = [("CODE", "MEANING"), ("near-cap", "A file will soon be too large to be read")]

    assert lay_out(rows, 36) == ["CODE      MEANING", "near-cap  A file will soon be too", "          large to be read"]


def test_path_wraps_behind_a_slash() -> None:
    rows = [("FILE", "SIZE"), ("/srv/shop/services/authentication/NEXUS.md", "12")]

    assert lay_out(rows, 30) == [
        "FILE                     SIZE",
        "/srv/shop/services/      12",
        "authentication/NEXUS.md",
    ]


def test_columns_that_do_not_fit_move_to_a_second_line_with_their_headings() -> None:
    assert lay_out(ROWS, 76, right=frozenset({1})) == [
        "SESSION                                  TURNS  CHANGED",
        "  MODEL            DIRECTORY",
        "claude-ef958aa1/agent-aef063ba534d73153      1  2026-04-18 13:50",
        "  claude-opus-4-7  -",
        "auth-bug                                 1,204  2026-01-02 03:04",
        "  gpt-4o           /srv/shop/services/authentication",
    ]


def test_numbers_and_dates_are_never_cut() -> None:
    for width in range(41, 120):
        text = "\n".join(lay_out(ROWS, width))

        assert "2026-04-18 13:50" in text
        assert "1,204" in text


def test_word_longer_than_the_terminal_is_folded_and_complete() -> None:
    lines = lay_out([("x" * 50, "1")], 20)

    assert "".join(line.strip() for line in lines) == "x" * 50 + "1"
    assert max(map(len, lines)) <= 20


def test_wide_characters_count_twice_on_a_terminal() -> None:
    lines = lay_out([("日本", "a"), ("x", "b")], 80)

    assert lines == ["日本  a", "x     b"]


CELL = st.text(st.sampled_from("abc de/f 12,3日é-"), max_size=40).map(str.strip)


@settings(max_examples=examples(200))
@given(
    rows=st.integers(1, 6).flatmap(lambda columns: st.lists(st.tuples(*[CELL] * columns), min_size=1, max_size=5)),
    width=st.integers(20, 120),
)
def test_no_line_is_too_long_and_no_character_is_lost(rows: list[tuple[str, ...]], width: int) -> None:
    lines = lay_out(rows, width)

    assert max(map(measure_width, lines)) <= width
    assert sorted("".join(lines).replace(" ", "")) == sorted("".join(map("".join, rows)).replace(" ", ""))


@given(st.text(alphabet="ab 語🚀é"), st.integers(1, 12))
@settings(max_examples=examples(100))
def test_shortened_text_fits_and_is_as_long_as_it_can_be(text: str, width: int) -> None:
    shown = shorten_to_width(text, width)

    assert measure_width(shown) <= width
    if shown != text:
        kept = shown.removesuffix("…")
        assert text.startswith(kept)
        assert measure_width(text[: len(kept) + 1]) >= width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two", "one two"),
        ("one two three", "one two…"),
        ("one twothree four", "one twoth…"),
        ("語語 語語語語", "語語 語語…"),
    ],
)
def test_shortened_text_ends_with_a_whole_word_unless_half_of_it_would_be_lost(text: str, shown: str) -> None:
    assert shorten_to_words(text, 10) == shown


def test_long_line_wraps_between_words_and_keeps_its_indentation() -> None:
    assert wrap_line("  not approved: one two three", 20) == ["  not approved: one", "  two three"]


def test_command_in_backticks_stays_in_one_line() -> None:
    line = "it is estimated; `nexus context --session NAME` counts"

    assert wrap_line(line, 40) == ["it is estimated;", "`nexus context --session NAME` counts"]


def test_command_in_a_line_of_its_own_stays_whole() -> None:
    line = "  nexus init --global --copy-mcp /srv/shop/.mcp.json"

    assert wrap_line(line, 30) == [line]


def test_blanks_inside_a_line_stay() -> None:
    assert wrap_line("a    b", 20) == ["a    b"]
    assert wrap_line("a    b    cccccccccc", 10) == ["a    b", "cccccccccc"]
