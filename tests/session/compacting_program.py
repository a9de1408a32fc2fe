"""A program that compacts a session again and again, and may be killed at any moment: python … WORK URL [hold].

With `hold`, it never comes to the end of its first summary.
"""

from __future__ import annotations

import sys
import time

from nexus_core import Nexus
from nexus_core.types.compaction import SummaryRequest
from tests.session.compacted import Words, exchange


def summarize(_: SummaryRequest) -> str:
    tell("summarizing")
    time.sleep(3600 if "hold" in sys.argv else 0.01)
    return "They counted."


def main(work: str, url: str) -> None:
    with Nexus(work, ledger=url, layers=False, plugins=[Words()], summarize=summarize) as nexus:
        session = nexus.session("s", model="words")
        if nexus.ledger.session("s") is not None:
            session.interrupt()
        for number in range(1000):
            exchange(session, number, words=5)
            report = session.compact()
            if report is not None:
                tell(f"compacted {report.step}")


def tell(what: str) -> None:
    """Say what is done."""
    print(what, flush=True)  # noqa: T201 - the one who kills is listening


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
