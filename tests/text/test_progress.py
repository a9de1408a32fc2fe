from __future__ import annotations

import io

import pytest

from nexus_core.text.console import Console
from nexus_core.text.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    with Progress(terminal, 10, clock=clock) as progress:
        for _ in range(10):
            clock.now += 0.04
            progress.advance(1)

    assert terminal.getvalue() == ""


def test_long_work_shows_how_far_it_has_come_and_leaves_nothing_behind(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(terminal, 4, clock=clock) as progress:
        clock.now = 0.6
        progress.advance(1)

        assert terminal.getvalue() == "\r[" + "#" * 10 + " " * 30 + "]  25%"

    drawn = terminal.getvalue().split("\r")
    assert drawn[-2:] == [" " * len(drawn[1]), ""]


def test_it_is_not_drawn_more_often_than_anybody_can_see(clock: Clock) -> None:
    terminal = Terminal()
    progress = Progress(terminal, 10_000, clock=clock)
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
    with Progress(target, 2, clock=clock) as progress:
        clock.now = 9
        progress.advance(1)

    assert target.getvalue() == ""


def test_no_work_and_too_much_work_do_no_harm(clock: Clock) -> None:
    terminal = Terminal()
    clock.now = 5
    Progress(terminal, 0, clock=clock).advance(0)
    progress = Progress(terminal, 1, clock=clock)
    clock.now = 9
    progress.advance(7)

    assert terminal.getvalue().endswith("] 100%")


def test_a_terminal_that_went_away_is_no_reason_to_stop(clock: Clock) -> None:
    class Gone(Terminal):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    progress = Progress(Gone(), 2, clock=clock)
    clock.now = 9
    progress.advance(1)
    progress.close()


def test_a_console_draws_it_where_messages_go() -> None:
    out, err = Terminal(), Terminal()
    with Console(out, err).progress(1) as progress:
        progress.advance(1)

    assert (out.getvalue(), err.getvalue()) == ("", "")
