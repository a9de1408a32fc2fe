"""A pool whose agents wait in a tool or in a stream: program.py DIRECTORY run|resume. A test kills it meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nexus_core import AssembledContext, Nexus
from nexus_core.plugin import CancelSignal, Provider, ProviderReply, TextDelta
from nexus_core.rpc import AgentPool, SharedComponents
from tests.agents.fakes import called, replied

AGENTS = 20


def main() -> None:
    directory, verb = Path(sys.argv[1]), sys.argv[2]
    is_first = verb == "run"
    waiting = threading.Semaphore(0)
    never = threading.Event()

    def work(name: str) -> str:
        """Work; odd agents never come back from it in the first run."""
        with (directory / "started").open("a") as log:
            log.write(f"{name}\n")
        if is_first and int(name) % 2:
            waiting.release()
            never.wait(300)
        return f"result {name}"

    def stream(context: AssembledContext, _cancel: CancelSignal) -> Iterator[Any]:
        name = context.session_label
        if not context.progress:
            yield ProviderReply(called("work", {"name": name}))
        elif is_first:
            yield TextDelta("So far")
            waiting.release()
            never.wait(300)
        else:
            yield ProviderReply(replied(f"done {context.progress[-1].tool_results[0].text}"))

    async def run() -> None:
        with Nexus(directory, home=directory / "home") as nexus:
            pool = AgentPool(SharedComponents(nexus=nexus, provider=Provider(name="fake", stream=stream), tools=[work]))
            agents = [await pool.create(str(number)) for number in range(AGENTS)]
            if is_first:
                turns = [agent.send("Go.") for agent in agents]
                for _ in turns:
                    await asyncio.to_thread(waiting.acquire)
                sys.stdout.write("working\n")
                sys.stdout.flush()
                await asyncio.sleep(300)
            for answer in await asyncio.gather(*(agent.resume().answer() for agent in agents)):
                sys.stdout.write(f"{answer}\n")
            await pool.close()

    asyncio.run(run())


if __name__ == "__main__":
    main()
