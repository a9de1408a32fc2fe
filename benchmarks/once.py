"""How much is given to a tokeniser in the life of a session, beside what was said in it.

    python benchmarks/once.py [-t TURNS] [--quick] [--json FILE]

Nothing is timed: a tokeniser notes what it is given. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus, hookimpl  # noqa: E402 - as above
from nexus_core.plugin import TextCounter  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

MODEL = "noting"
RULES = "A rule of this project, which says what to do and what to leave. " * 40
QUESTION = "Why does this happen, and what else depends on it? " * 10
ANSWER = "It happens because of something that was said above. " * 10


class Noting(TextCounter):
    """Four characters a token; what it is given is noted."""

    name, exact = "noting", True

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()

    def count(self, text: str) -> int:
        """The tokens of a text."""
        self.given[text] += 1
        return -(-len(text) // 4)

    @hookimpl
    def nexus_token_counter(self, model: str) -> Noting | None:
        """Counts for its own model."""
        return self if model == MODEL else None

    @property
    def size(self) -> int:
        """The bytes that it was given."""
        return sum(times * len(text.encode()) for text, times in self.given.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    script = Script("Count what a tokeniser is given in the life of a session.")
    script.number("-t", "turns", 300, 100, "turns of the session; in 400, earlier ones are summarized")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A session from its beginning, and the next turn of it in a process that knows nothing."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        life, later = Noting(), Noting()
        said, sent = converse(scratch, life, range(given.turns))
        converse(scratch, later, range(given.turns, given.turns + 1))
    twice = sum(times > 1 for times in life.given.values())
    again = sum(len(text.encode()) for text in later.given if text in life.given)
    turns = f"{given.turns:,} turns"
    detail = f"{life.size:,} bytes / {said:,} bytes"
    return Report(
        [
            Row(
                f"bytes given to the tokeniser / bytes said in {turns}",
                life.size / said,
                (Goal("<=", 1, "P3"),),
                detail=detail,
            ),
            Row(
                f"texts that it was given twice, {turns}",
                twice,
                (Goal("<=", 0, "P3"),),
                "count",
                f"{len(life.given):,} texts",
            ),
            Row("bytes that it was given again after a restart", again, (Goal("<=", 0, "P3"),), "count"),
            Row("bytes sent in all calls / bytes said", sent / said, detail="what counting each call anew would take"),
        ]
    )


def converse(scratch: Path, counter: Noting, turns: range) -> tuple[int, int]:
    """The bytes that were said in these turns, and those that were sent in all of their calls together."""
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    (work / "NEXUS.md").write_text(RULES)
    said = sent = 0
    ledger = f"sqlite:///{scratch / 'ledger.db'}"
    with Nexus(work, home=scratch / "home", installed=False, plugins=[counter], ledger=ledger) as nexus:
        session = nexus.session("long", model=MODEL)
        for number in turns:
            context = session.ask(f"{number}: {QUESTION}")
            texts = [message.content for message in context.messages]
            answer = f"{number}: {ANSWER}"
            if not said:  # the system prompt, and the line that says when the session started
                said += len(context.system_prompt.encode()) + sum(len(text.encode()) for text in texts[:-1])
            said += len(texts[-1].encode()) + len(answer.encode())
            sent += len(context.system_prompt.encode()) + sum(len(text.encode()) for text in texts)
            session.record(reply(number, answer))
    return said, sent


def reply(number: int, text: str) -> dict[str, object]:
    """What an API would return."""
    said = {"type": "text", "text": text}
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [said], "stop_reason": "end_turn"}


if __name__ == "__main__":
    sys.exit(main())
