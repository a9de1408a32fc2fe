"""How much of each call begins as the call before it did, so that a provider may find it in its cache.

    python benchmarks/caching.py [-t TURNS] [--sizes] [--quick] [--json FILE]

Nothing is timed and no model is asked: tokens are counted. A call's beginning is the system prompt and then whole
messages, as long as they are the same bytes as in the call before.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core import AssembledContext, Session

MODEL = "gpt-4-32k"
RULES = "A rule of this project, which says what to do and what to leave. " * 120
QUESTION = "Why does this happen, and what else depends on it? " * 10
ANSWER = "It happens because of something that was said above. " * 10
EVERY = 20
"""After so many turns, somebody edits the instructions."""


class Call(NamedTuple):
    """What was sent, piece by piece: each as text, with its tokens; the system prompt first."""

    pieces: list[tuple[str, int]]

    @property
    def tokens(self) -> int:
        """All of it."""
        return sum(tokens for _, tokens in self.pieces)

    def shared_with(self, other: Call) -> int:
        """The tokens with which both begin."""
        shared = 0
        for (one, tokens), (another, _) in zip(self.pieces, other.pieces, strict=False):
            if one != another:
                break
            shared += tokens
        return shared


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    script = Script("Count how much of each call begins as the one before.")
    script.number("-t", "turns", 400, 60, "turns of the session")
    script.parser.add_argument("--sizes", action="store_true", help="print the tokens of every call")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A row for each case."""
    rows = []
    for name, make in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            calls = list(make(Path(scratch), given.turns))
        pairs = list(pairwise(calls))
        changed = sum(after.shared_with(before) < before.tokens for before, after in pairs)
        shared = sum(after.shared_with(before) for before, after in pairs) / sum(after.tokens for _, after in pairs)
        detail = f"{changed} of {len(pairs)} calls begin otherwise than the one before"
        rows.append(Row(f"{name}: tokens as in the call before", shared, unit="share", detail=detail))
        if given.sizes:
            print(*(call.tokens for call in calls))
    return Report(rows, notes=[f"{given.turns} turns, a window of 32,768 tokens."])


def calls_of_session(scratch: Path, turns: int) -> Iterator[Call]:
    """As they are: what does not fit becomes a summary, which Nexus writes itself."""
    return _calls(scratch, turns, lambda _session, _number: None)


def without_summaries(scratch: Path, turns: int) -> Iterator[Call]:
    """What does not fit is left out."""
    own = scratch / "work/.nexus3"
    own.mkdir(parents=True)
    (own / "config.json").write_text('{"compaction": {"enabled": false}}')
    return _calls(scratch, turns, lambda _session, _number: None)


def edited(scratch: Path, turns: int) -> Iterator[Call]:
    """With instructions that change now and then."""
    return _calls(scratch, turns, lambda _session, number: _edit(scratch, number))


def reloaded(scratch: Path, turns: int) -> Iterator[Call]:
    """With a system prompt that changes with them."""

    def edit(session: Session, number: int) -> None:
        if _edit(scratch, number):
            session.reload()

    return _calls(scratch, turns, edit)


def calls_of_fit(scratch: Path, turns: int) -> Iterator[Call]:
    """With a history that begins a little later in every call, once it is too long."""
    messages: list[dict[str, str]] = []
    with _open(scratch) as nexus:
        system = nexus.system_prompt()
        for number in range(turns):
            messages.append({"role": "user", "content": f"{number}: {QUESTION}"})
            fitted = nexus.fit(messages, model=MODEL, system=system)
            each = fitted.budget.used["history"] // len(fitted.messages)  # they are all alike
            said = [(str(message), each) for message in fitted.messages]
            yield Call([(system, fitted.budget.used["system"]), *said])
            messages.append({"role": "assistant", "content": f"{number}: {ANSWER}"})


def _calls(scratch: Path, turns: int, between: Callable[[Session, int], object]) -> Iterator[Call]:
    with _open(scratch) as nexus:
        session = nexus.session("long", model=MODEL)
        for number in range(turns):
            between(session, number)
            yield _call(session.ask(f"{number}: {QUESTION}"))
            session.record(_reply(number))


def _reply(number: int) -> dict[str, object]:
    said = {"type": "text", "text": f"{number}: {ANSWER}"}
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [said], "stop_reason": "end_turn"}


def _open(scratch: Path) -> Nexus:
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    (work / "NEXUS.md").write_text(RULES)
    return Nexus(work, home=scratch / "home", installed=False, defaults=False, ledger="memory:")


def _edit(scratch: Path, number: int) -> bool:
    if number == 0 or number % EVERY:
        return False
    (scratch / "work/NEXUS.md").write_text(f"{RULES}\nRule {number}.\n")
    return True


def _call(context: AssembledContext) -> Call:
    system = context.token_budget.used["system"]
    said = [(repr(each), tokens) for each, tokens in zip(context.messages, context.message_tokens, strict=True)]
    return Call([(context.system_prompt, system), *said])


CASES: dict[str, Callable[[Path, int], Iterable[Call]]] = {
    "a session": calls_of_session,
    "a session without summaries": without_summaries,
    "the same messages, cut anew for each call": calls_of_fit,
    f"a session, NEXUS.md edited every {EVERY} turns": edited,
    "the same with reload() after each edit": reloaded,
}


if __name__ == "__main__":
    sys.exit(main())
