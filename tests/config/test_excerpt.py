import unicodedata

import pytest

from nexus_core.config.excerpt import MAX_CELLS, render_excerpt
from nexus_core.config.load import LineIndex, TextPosition
from tests.timing import assert_quick


def excerpt(text: str, line: int, column: int) -> list[str]:
    return render_excerpt(LineIndex(text), TextPosition(line, column)).split("\n")


def cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


@pytest.mark.acceptance("F-08", "F-09", "C-04")
def test_the_line_is_shown_between_its_neighbours_with_a_caret_under_the_column() -> None:
    text = "\n" * 13 + '  "model": "claude-3",\n  trailing_comma: true,\n}\n'

    assert excerpt(text, 15, 3) == [
        '  14 |   "model": "claude-3",',
        "  15 |   trailing_comma: true,",
        "         ^",
        "  16 | }",
    ]


def test_the_first_line_has_none_before_it() -> None:
    assert excerpt("[x,\n1]", 1, 2) == ["  1 | [x,", "       ^", "  2 | 1]"]


def test_the_last_line_has_none_after_it() -> None:
    assert excerpt("[1,\nx]", 2, 1) == ["  1 | [1,", "  2 | x]", "      ^"]


def test_the_nothing_after_a_final_line_break_is_no_neighbour() -> None:
    assert excerpt("[1,\nx]\n", 2, 1) == ["  1 | [1,", "  2 | x]", "      ^"]


def test_a_text_that_ends_too_early_is_shown_to_its_end() -> None:
    assert excerpt("[1\n", 2, 1) == ["  1 | [1", "  2 |", "      ^"]


def test_an_empty_text_has_one_empty_line() -> None:
    assert excerpt("", 1, 1) == ["  1 |", "      ^"]


def test_blank_neighbours_are_shown_without_blanks_at_the_end() -> None:
    assert excerpt("a\n\nx\n  \nb", 3, 1) == ["  2 |", "  3 | x", "      ^", "  4 |"]


def test_the_end_of_a_line_is_a_place_too() -> None:
    assert excerpt('{"a"', 1, 5) == ['  1 | {"a"', "          ^"]


@pytest.mark.parametrize(("line", "first"), [(10, "   9 | "), (100, "   99 | ")])
def test_numbers_of_different_length_are_aligned_at_the_right(line: int, first: str) -> None:
    rows = excerpt("x\n" * 1000, line, 1)

    assert [row.index("|") for row in rows if "|" in row] == [first.index("|")] * 3
    assert rows[0].startswith(first)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends_are_not_shown(end: str) -> None:
    assert excerpt(end.join(["a", "x", "b"]), 2, 1) == ["  1 | a", "  2 | x", "      ^", "  3 | b"]


@pytest.mark.acceptance("C-04")
@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("\tx", 2, "    x", 4),
        ("\t\tx", 3, "        x", 8),
        ("{\tx", 3, "{   x", 4),
        ("  \t x", 5, "     x", 5),
        ("\t\tx", 2, "        x", 4),
        ("x\t", 3, "x", 4),
    ],
)
def test_tabs_reach_to_the_next_multiple_of_four_above_and_below(
    line: str, column: int, shown: str, caret: int
) -> None:
    assert excerpt(line, 1, column) == [f"  1 | {shown}", "      " + " " * caret + "^"]


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("日本x", 3, "日本x", 4),
        ("日本x", 2, "日本x", 2),
        ("\uff21x", 2, "\uff21x", 2),
        ("𝄞x", 2, "𝄞x", 1),
        ("🎼x", 2, "🎼x", 2),
        ("e\u0301x", 3, "e\u0301x", 1),
    ],
)
def test_the_caret_goes_by_the_cells_that_characters_take(line: str, column: int, shown: str, caret: int) -> None:
    assert excerpt(line, 1, column) == [f"  1 | {shown}", "      " + " " * caret + "^"]


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("\x1b[31mx", 6, "\\x1b[31mx", 8),
        ("\x1b[31mx", 1, "\\x1b[31mx", 0),
        ("\u202ex", 2, "\\u202ex", 6),
        ("a\u200bx", 3, "a\\u200bx", 7),
        ("\x00x", 2, "\\x00x", 4),
        ("\x9bx", 2, "\\x9bx", 4),
        ("\u2028x", 2, "\\u2028x", 6),
        ("\U000e0041x", 2, "\\U000e0041x", 10),
        ("\ud800x", 2, "\\ud800x", 6),
    ],
)
def test_steering_characters_are_shown_as_escapes_and_the_caret_keeps_to_its_character(
    line: str, column: int, shown: str, caret: int
) -> None:
    assert excerpt(line, 1, column) == [f"  1 | {shown}", "      " + " " * caret + "^"]


def test_steering_characters_are_escaped_in_the_neighbours_too() -> None:
    assert excerpt("\x1b[2J\nx\n\u202e", 2, 1) == ["  1 | \\x1b[2J", "  2 | x", "      ^", "  3 | \\u202e"]


@pytest.mark.parametrize(
    ("character", "shown"),
    [("\u00a0", "\\xa0"), ("\u200b", "\\u200b"), ("\u2009", "\\u2009"), ("\u0301", "\\u0301"), ("\u200d", "\\u200d")],
)
def test_a_character_that_cannot_be_seen_is_made_visible_where_it_is_what_is_wrong(character: str, shown: str) -> None:
    assert excerpt(f"[1,{character}2]", 1, 4) == [f"  1 | [1,{shown}2]", "         ^"]


def test_a_line_that_just_fits_is_not_cut() -> None:
    line = "x" * MAX_CELLS

    assert excerpt(line, 1, MAX_CELLS)[0] == f"  1 | {line}"


@pytest.mark.parametrize("column", [1, 2, 49, 50, 51, 52, 100, 101, 102, 500, 949, 950, 951, 999, 1000])
def test_a_long_line_is_cut_around_the_column(column: int) -> None:
    line = "".join(chr(0x4E00 + number) if number % 3 else chr(0x100 + number) for number in range(1000))

    row, caret = excerpt(line, 1, column)

    # What is above the caret, found by cells, is the character that was meant.
    above = [character for index, character in enumerate(row) if cells(row[:index]) == len(caret) - 1]
    assert above == [line[column - 1]]
    assert MAX_CELLS - 4 <= cells(row.removeprefix("  1 | ")) <= MAX_CELLS + 2
    assert row.removeprefix("  1 | ").strip("…") in line


def test_a_cut_is_shown_on_each_side_that_was_cut() -> None:
    line = "a" * 300

    assert excerpt(line, 1, 1)[0] == f"  1 | {'a' * 100}…"
    assert excerpt(line, 1, 150)[0] == f"  1 | …{'a' * 100}…"
    assert excerpt(line, 1, 301)[0] == f"  1 | …{'a' * 100}"


def test_long_neighbours_are_cut_at_their_end() -> None:
    rows = excerpt(f"{'a' * 101}\n{'x' * 500}\n{'b' * 100}", 2, 400)

    assert rows[0] == f"  1 | {'a' * 100}…"
    assert rows[3] == f"  3 | {'b' * 100}"


@pytest.mark.parametrize("character", ["x", "\t", "\u0301", "\x00", "日"])
def test_a_line_of_a_mebibyte_is_shown_at_once(character: str) -> None:
    lines = LineIndex(character * (1024 * 1024))
    shown: list[str] = []

    assert_quick(lambda: shown.append(render_excerpt(lines, TextPosition(1, 500_000))), times=5)
    assert len(shown[0]) < 1000
