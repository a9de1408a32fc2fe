"""Processes that talk in one session, all at once: python -m tests.session.racing WORK URL NUMBER.

Each asks so many questions, calls two tools in each turn, and waits while another has a turn open. Prints what came of
it as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from nexus_core import Nexus
from nexus_core.errors import ConflictError, TurnError
from nexus_core.session.session import Session
from nexus_core.types.messages import Message
from tests.ledger.experiments import spawn, wait
from tests.session.support import TOOLS, calls, says

PROCESSES = 8


def main(work: str, url: str, number: int) -> None:
    failed = wait([spawn(lambda process=process: talk(work, url, process, number)) for process in range(PROCESSES)])  # type: ignore[misc]
    wanted = {f"{process}.{turn}" for process in range(PROCESSES) for turn in range(number)}
    with Nexus(work, ledger=url, installed=False, layers=False) as nexus:
        start, *messages = nexus.session("s").messages
        assert start.content.startswith("[Session started: ")
        found = [str(finding) for finding in nexus.ledger.verify()]
    asked = Counter(question(message) for message in messages if message.role == "user")
    answered = Counter(message.content.removeprefix("re ") for message in messages if message.content.startswith("re "))
    results = Counter(result.text for message in messages for result in message.tool_results)
    result = {
        "turns": PROCESSES * number,
        "untyped": failed,
        "lost": len(wanted - asked.keys()) + len(wanted - answered.keys()) + 2 * len(wanted) - len(results),
        "twice": sum(times - 1 for kind in (asked, answered, results) for times in kind.values()),
        "mixed": mixed(messages),
        "found": found,
    }
    print(json.dumps(result))  # noqa: T201 - the result


def question(message: Message) -> str:
    """What was asked, without what is told about the occasion."""
    return message.content.rpartition("\n")[2]


def mixed(messages: Sequence[Message]) -> int:
    """How many turns are not a question, its calls, their results and its answer, in this order."""
    turns = [messages[place : place + 5] for place in range(0, len(messages), 5)]
    return sum(_parts(turn) != [question(turn[0])] * 6 for turn in turns)


def _parts(turn: Sequence[Message]) -> list[str]:
    asked, called, *results, answered = turn
    names = [call.id[:-2] for call in called.tool_calls] + [
        result.call_id[:-2] for each in results for result in each.tool_results
    ]
    return [question(asked), *names, answered.content.removeprefix("re ")]


def talk(work: str, url: str, process: int, number: int) -> None:
    """Whatever else than being told that somebody else was faster ends the process with an error."""
    chance = Random(process)  # noqa: S311 - the same waits in every run
    with Nexus(work, ledger=url, installed=False, layers=False) as nexus:
        session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
        for turn in range(number):
            begin(session, f"{process}.{turn}", chance)
            step = session.record(calls(f"{process}.{turn}.a", f"{process}.{turn}.b", name=f"call {process}.{turn}"))
            for call in chance.sample(step.tool_calls, 2):
                session.record(call.result(f"result {call.id}"))
            session.next()
            session.record(says(f"re {process}.{turn}", name=f"reply {process}.{turn}"))


def begin(session: Session, question: str, chance: Random) -> None:
    while True:
        try:
            session.ask(question)
        except (TurnError, ConflictError):
            time.sleep(chance.random() / 50)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
