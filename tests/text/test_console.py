from __future__ import annotations

import io
import json
import re
import time

import pytest

from nexus_core.plugin import Console
from nexus_core.text.console import ProgressBar, format_count, format_percent, format_share


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


@pytest.fixture(autouse=True)
def a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for variable in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)


def test_force_color_styles_a_pipe_and_no_color_wins_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced, plain = io.StringIO(), io.StringIO()
    Console(forced, io.StringIO()).table([("NAME",)], styles=["bold"])
    monkeypatch.setenv("NO_COLOR", "1")
    Console(plain, io.StringIO()).table([("NAME",)], styles=["bold"])

    assert forced.getvalue() == "\x1b[1mNAME\x1b[0m\n"
    assert plain.getvalue() == "NAME\n"


def test_dumb_terminal_gets_plain_text_and_plain_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    console = Console(out, io.StringIO())
    console.text("data", style="red")

    assert out.getvalue() == "data\n"
    assert console.format_bar(1, 2, 8) == "####"


@pytest.mark.parametrize(("part", "bar"), [(0, ""), (1, "█"), (1.5, "█▌"), (9, "████"), (-1, "")])
def test_bars_have_eighths_on_a_terminal(part: float, bar: str) -> None:
    assert Console(Terminal(), io.StringIO()).format_bar(part, 4, 4) == bar


def test_bars_are_plain_in_a_pipe() -> None:
    assert Console(io.StringIO(), io.StringIO()).format_bar(1, 2, 8) == "####"


def test_long_message_wraps_between_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal, pipe = Terminal(), io.StringIO()
    Console(io.StringIO(), terminal).message("twenty characters are not many")
    Console(io.StringIO(), pipe).message("twenty characters are not many")

    assert terminal.getvalue() == "twenty characters\nare not many\n"
    assert pipe.getvalue() == "twenty characters are not many\n"


def test_markup_of_the_library_is_printed_as_it_is() -> None:
    out = Terminal()
    Console(out, io.StringIO()).table([("[bold]x[/bold] :smile:",)], styles=["red"])

    assert out.getvalue() == "\x1b[31m[bold]x[/bold] :smile:\x1b[0m\n"


def test_bold_words_are_bold_in_identifiers_too() -> None:
    out = Terminal()
    Console(out, io.StringIO()).table([("bake_bread at breadboard",)], bold_words={(0, 0): {"bread"}})

    assert out.getvalue() == "bake_\x1b[1mbread\x1b[0m at breadboard\n"


def wait_for(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 10
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    assert text in terminal.getvalue()


def without_styles(terminal: Terminal) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())


def test_short_work_shows_no_progress() -> None:
    terminal = Terminal()
    with ProgressBar(terminal, 10, "Reading", delay=3600) as progress:
        progress.advance(10)

    assert terminal.getvalue() == ""


def test_long_work_shows_share_rate_and_remaining_time_and_leaves_nothing_behind() -> None:
    terminal = Terminal()
    with ProgressBar(terminal, 100, "Reading", unit="steps", delay=0.01) as progress:
        time.sleep(0.25)
        progress.advance(25)
        wait_for(terminal, " 25%")
        wait_for(terminal, " left")

        assert re.search(r"Reading ━+╸━+  25% \d+ steps/s, \d+ s left$", without_styles(terminal))

    assert terminal.getvalue().endswith("\r\x1b[2K")  # the line is erased


def test_work_of_unknown_length_shows_its_elapsed_time() -> None:
    terminal = Terminal()
    with ProgressBar(terminal, None, "Summarizing", delay=0.01):
        wait_for(terminal, "Summarizing")

        assert re.search(r". Summarizing \d+ s$", without_styles(terminal))


def test_message_during_long_work_has_a_line_of_its_own() -> None:
    terminal = Terminal()
    console = Console(io.StringIO(), terminal)
    with console.progress(10, "Reading"):
        wait_for(terminal, "Reading")
        console.message("by the way")

    assert "\x1b[2Kby the way\n" in terminal.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_progress_is_shown_on_no_pipe_and_no_dumb_terminal(
    stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stream is None:
        monkeypatch.setenv("TERM", "dumb")
    target = stream or Terminal()
    with ProgressBar(target, 2, delay=0) as progress:
        progress.advance(1)
        time.sleep(0.05)

    assert target.getvalue() == ""


def test_more_work_than_expected_is_a_hundred_percent() -> None:
    terminal = Terminal()
    with ProgressBar(terminal, 1, "Reading", delay=0) as progress:
        progress.advance(7)
        wait_for(terminal, "100%")


def test_closed_terminal_does_not_stop_the_work() -> None:
    class Gone(Terminal):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    with ProgressBar(Gone(), 2, delay=0) as progress:
        time.sleep(0.1)
        progress.advance(1)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0%"),
        (0.001, "<1%"),
        (0.006, "1%"),
        (0.5, "50%"),
        (0.994, "99%"),
        (0.995, ">99%"),
        (0.9999, ">99%"),
        (1, "100%"),
    ],
)
def test_only_nothing_is_no_percent_and_only_everything_is_a_hundred(share: float, shown: str) -> None:
    assert format_share(share) == shown


def test_small_part_of_a_total_is_not_none_of_it() -> None:
    assert [format_percent(part, 100_000) for part in (0, 1, 99_999, 100_000)] == ["0.0%", "<0.1%", ">99.9%", "100.0%"]
    assert format_percent(1, 0) == "-"
