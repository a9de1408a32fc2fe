from nexus_core.config.lines import Lines, Position


def test_lines_are_told_apart_by_every_kind_of_line_end_and_nothing_else() -> None:
    lines = Lines("a\nb\r\nc\rd\x0b\x0c\x85\u2028e")

    assert [lines.line(number) for number in range(7)] == [None, "a", "b", "c", "d\x0b\x0c\x85\u2028e", None, None]


def test_the_end_of_a_text_has_a_position() -> None:
    assert Lines("").position(0) == Position(1, 1)
    assert Lines("ab\n").position(3) == Position(2, 1)
