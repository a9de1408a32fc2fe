from __future__ import annotations

import io
import json

import pytest

from nexus_core.plugin import Console
from nexus_core.text.console import ProgressBar, format_count


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_data_and_messages_go_to_different_streams() -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)

    console.text("data")
    console.message("message")
    console.warning("careful")
    console.error("failed")

    assert out.getvalue() == "data\n"
    assert err.getvalue() == "message\nWarning: careful\nError: failed\n"


def test_text_that_ends_in_a_newline_gets_no_second_one() -> None:
    out = io.StringIO()

    Console(out, io.StringIO()).text("data\n")

    assert out.getvalue() == "data\n"


def test_nothing_that_a_file_contains_reaches_the_terminal_as_a_control_sequence() -> None:
    out, err = Terminal(), Terminal()
    console = Console(out, err)
    hostile = "\x1b]0;owned\x07\x9b31m"

    console.text(hostile)
    console.message(hostile)
    console.table([[hostile, "x"]])
    console.json({"key": hostile})

    assert "\x1b" not in out.getvalue() + err.getvalue()
    assert "\x9b" not in out.getvalue() + err.getvalue()


def test_on_a_terminal_a_long_name_stands_above_its_row_and_is_never_cut() -> None:
    out = Terminal()

    Console(out, io.StringIO()).table([("NAME", "SIZE"), ("x" * 30, "1"), ("y", "2")], longest_name=8)

    assert out.getvalue().splitlines() == ["NAME  SIZE", "x" * 30, "      1", "y     2"]


def test_in_a_file_every_row_is_one_line_however_long_its_name() -> None:
    out = io.StringIO()

    Console(out, io.StringIO()).table([("NAME", "SIZE"), ("x" * 30, "1")], longest_name=8)

    assert out.getvalue().splitlines() == [f"{'NAME':<30}  SIZE", f"{'x' * 30}  1"]


def test_json_keeps_the_exact_value() -> None:
    out = io.StringIO()
    value = {"key": "\x1b[31m\u202eé"}

    Console(out, io.StringIO()).json(value)

    assert json.loads(out.getvalue()) == value


def test_a_message_comes_after_the_data_that_was_printed_before_it() -> None:
    raw = io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding="utf-8"), io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    console = Console(out, err)

    console.text("first")
    console.message("second")
    console.text("third")
    out.flush()

    assert raw.getvalue() == b"first\nsecond\nthird\n"


@pytest.mark.parametrize(("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1204, "1,204 files")])
def test_things_are_counted_in_words(number: int, words: str) -> None:
    assert format_count(number, "file") == words


def test_columns_are_aligned_and_lines_have_no_trailing_blanks() -> None:
    out = io.StringIO()

    Console(out, io.StringIO()).table([("NAME", "STATUS"), ("a", "active"), ("longer", "")])

    assert out.getvalue() == "NAME    STATUS\na       active\nlonger\n"


def test_a_newline_in_a_cell_does_not_start_a_row() -> None:
    out = io.StringIO()

    Console(out, io.StringIO()).table([("a\nb", "c")])

    assert out.getvalue() == "a\\nb  c\n"


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    err = Terminal()

    Console(io.StringIO(), err).error("failed")

    assert err.getvalue() == "\x1b[31mError: failed\x1b[0m\n"


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    err = Terminal()

    Console(io.StringIO(), err).error("failed")

    assert err.getvalue() == "Error: failed\n"


def test_a_stream_that_cannot_encode_a_character_shows_its_escape() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", newline="\n")

    Console(out, io.StringIO()).text("日")
    out.flush()

    assert raw.getvalue() == b"\\u65e5\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_short_work_has_no_bar(clock: Clock) -> None:
    terminal = Terminal()
    with ProgressBar(terminal, 10, clock=clock) as progress:
        for _ in range(10):
            clock.now += 0.04
            progress.advance(1)

    assert terminal.getvalue() == ""


def test_long_work_shows_how_far_it_has_come_and_leaves_nothing_behind(clock: Clock) -> None:
    terminal = Terminal()
    with ProgressBar(terminal, 4, clock=clock) as progress:
        clock.now = 0.6
        progress.advance(1)

        assert terminal.getvalue() == "\r[" + "#" * 10 + " " * 30 + "]  25%"

    drawn = terminal.getvalue().split("\r")
    assert drawn[-2:] == [" " * len(drawn[1]), ""]


def test_it_is_not_drawn_more_often_than_anybody_can_see(clock: Clock) -> None:
    terminal = Terminal()
    progress = ProgressBar(terminal, 10_000, clock=clock)
    for step in range(10_000):
        clock.now = 1 + step / 10_000
        progress.advance(1)

    assert terminal.getvalue().count("%") <= 11


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_where_nobody_watches_nothing_is_drawn(
    stream: io.StringIO | None, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    target = stream or Terminal()
    with ProgressBar(target, 2, clock=clock) as progress:
        clock.now = 9
        progress.advance(1)

    assert target.getvalue() == ""


def test_no_work_and_too_much_work_do_no_harm(clock: Clock) -> None:
    terminal = Terminal()
    clock.now = 5
    ProgressBar(terminal, 0, clock=clock).advance(0)
    progress = ProgressBar(terminal, 1, clock=clock)
    clock.now = 9
    progress.advance(7)

    assert terminal.getvalue().endswith("] 100%")


def test_a_terminal_that_went_away_is_no_reason_to_stop(clock: Clock) -> None:
    class Gone(Terminal):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    progress = ProgressBar(Gone(), 2, clock=clock)
    clock.now = 9
    progress.advance(1)
    progress.close()


def test_a_console_draws_it_where_messages_go() -> None:
    out, err = Terminal(), Terminal()
    with Console(out, err).progress(1) as progress:
        progress.advance(1)

    assert (out.getvalue(), err.getvalue()) == ("", "")
