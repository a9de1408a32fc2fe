"""An agent whose tool or model takes long: program.py DIRECTORY run|stream|resume. A test kills it in the middle."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from nexus_core import Nexus
from nexus_core.agents import DoneEvent, TextDelta
from tests.agents.fakes import FakeModel, called, replied


def main() -> None:
    directory, verb = Path(sys.argv[1]), sys.argv[2]

    def work(number: int) -> str:
        with (directory / "started").open("a") as log:
            log.write(f"{number} {os.getpid()}\n")
        if verb == "run" and number == 2:
            sys.stdout.write("working\n")
            sys.stdout.flush()
            time.sleep(60)
        return f"result {number}"

    second = replied("", *called("work", {"number": 2}).messages[0].tool_calls)
    first = called("work", {"number": 1})
    known: dict[str, list[Any]] = {"run": [first, second], "stream": [first, threading.Event()], "resume": []}
    says = known[verb]
    model = FakeModel(*says, replied("All done."))
    with Nexus(directory, home=directory / "home") as nexus:
        agent = nexus.agent("s", tools=[work], provider=model.provider)
        for event in agent.resume() if verb == "resume" else agent.run("Go."):
            if isinstance(event, DoneEvent):
                sys.stdout.write(f"{event.text} {event.calls}\n")
            elif isinstance(event, TextDelta) and verb == "stream":
                sys.stdout.write("working\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
