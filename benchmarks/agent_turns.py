"""Overhead of an agent's turn beside other frameworks, and what agents of a pool cost.

    python benchmarks/agent_turns.py [-n TURNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

A turn is: a user message, a model that answers at once and calls one tool, the tool, and the final reply. Every
framework has the same fake model and the same tool; each runs in a process of its own, in rounds that take turns, and
the fastest round of each counts, because the machine may be busy. Conversations are kept where a framework keeps them:
Nexus in its ledger, with every step stored before the next; openai-agents in its SQLiteSession; pydantic-ai in a list.
Processor time is what is compared, so that no row is about the disk. Exit code: 0 all goals met, 1 a goal missed, 2
nothing could be measured.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.venvs import Venv, read_version  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

INSIDE = "--inside"
"""For the part that runs in a venv."""
ROUNDS = 5
QUESTION, ANSWER, RESULT = "Why does login fail?", "Because of line 3.", "line 3"
MAX_IDLE_BYTES = 200_000
LIBRARIES = {"openai-agents": "agents", "pydantic-ai-slim": "pydantic"}
"""By distribution, the part that measures it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    if argv is None and INSIDE in sys.argv:
        part, number = sys.argv[2:]
        sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            print(json.dumps(PARTS[part](int(number))))
        return 0
    script = Script("Measure what a turn of an agent costs, and an agent of a pool.")
    script.number("-n", "turns", 40, 6, "turns of each conversation")
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """The turns of all frameworks in rounds, then the pool."""
    nexus = given.peers.nexus()
    venvs = {"nexus": nexus}
    venvs |= {part: venv for name, part in LIBRARIES.items() if (venv := given.peers.get(name))}
    rounds = 1 if given.quick else ROUNDS
    found: dict[str, list[float]] = {part: [] for part in venvs}
    for _ in range(rounds):
        for part, venv in venvs.items():
            found[part].append(run_inside(venv, part, given.turns))
    best = {part: min(times) for part, times in found.items()}
    rows = [Row("ms of processor time of a turn with one tool call: nexus", best["nexus"], unit="count")]
    rows += [
        Row(
            f"nexus: a turn with one tool call / {part}",
            best["nexus"] / time_of,
            goals,
            detail=ms(best["nexus"], time_of),
        )
        for part, time_of in best.items()
        if part != "nexus"
        for goals in [(Goal("<=", 1),)]
    ]
    idle, tenth, hundredth = run_inside(nexus, "pool", 100)
    rows += [
        Row("bytes of an idle agent in a pool", idle, (Goal("<=", MAX_IDLE_BYTES),), "count"),
        Row(
            "creating agents 71 to 100 of a pool / agents 11 to 40",
            hundredth / tenth,
            (Goal("<=", 1.0),),
            detail=ms(hundredth, tenth),
        ),
    ]
    return Report(rows, {"nexusctx": read_version(nexus, "nexusctx")} | given.peers.versions, given.peers.missing)


def ms(one: float, other: float) -> str:
    """Two times for display."""
    return f"{one:.2f} ms / {other:.2f} ms"


def run_inside(venv: Venv, part: str, number: int) -> Any:  # noqa: ANN401 - JSON
    """What a part prints, in a process with an empty home."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"HOME": scratch, "XDG_CACHE_HOME": f"{scratch}/cache", "NEXUS_PLUGINS": "none", "TERM": "dumb"}
        environment = clean_environment() | places | {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
        printed = run_program(
            venv.python, str(Path(__file__).resolve()), INSIDE, part, str(number), environment=environment
        )
    return json.loads(printed.splitlines()[-1])


def look() -> str:
    """Look at a file."""
    return RESULT


def take_times(number: int, turn: Callable[[], Any]) -> float:
    """Milliseconds of processor time of a turn: the median, without the first two, which import and open things."""

    async def run() -> list[float]:
        times = []
        for _ in range(number):
            started = time.process_time()
            answer = await turn()
            times.append(time.process_time() - started)
            if answer != ANSWER:
                raise RuntimeError(f"it answered {answer!r}")
        return times

    return statistics.median(asyncio.run(run())[2:]) * 1000


# Nexus ----------------------------------------------------------------------------------------------------------------


def open_nexus() -> Any:  # noqa: ANN401 - its type is only there inside the venv
    """A Nexus with a ledger in a file."""
    from nexus_core import Nexus

    Path("home").mkdir()
    Path("work").mkdir()
    return Nexus("work", home="home")


def make_provider() -> Any:  # noqa: ANN401 - as above
    """A model that calls the tool once in each turn."""
    from nexus_core import Message, Usage
    from nexus_core.plugin import Provider, ProviderReply, ToolCall
    from nexus_core.plugin.dialects import Reply

    numbers = iter(range(1, sys.maxsize))

    def stream(context: Any, _cancel: object) -> Any:  # noqa: ANN401 - as above
        number = next(numbers)
        if context.progress:
            parts: Any = ANSWER
        else:
            parts = (ToolCall(f"c{number}", "look", {}),)
        stop: Any = "end" if context.progress else "tools"
        usage = Usage(input_tokens=10, output_tokens=2)
        yield ProviderReply(Reply(messages=(Message("assistant", parts),), stop=stop, usage=usage, id=f"r{number}"))

    return Provider(name="fake", stream=stream)


def measure_nexus(number: int) -> float:
    """Turns of an agent whose conversation is in the ledger."""
    with open_nexus() as nexus:
        agent = nexus.async_agent("s", model="gpt-4o", tools=[look], provider=make_provider())
        return take_times(number, lambda: agent.answer(QUESTION))


def measure_pool(number: int) -> tuple[float, float, float]:
    """Bytes of an idle agent that has had a turn, and milliseconds to create one early and one late."""
    from nexus_core.rpc import AgentPool, SharedComponents

    async def run() -> tuple[float, float, float]:
        times: list[float] = []
        with open_nexus() as nexus:
            async with AgentPool(SharedComponents(nexus=nexus, provider=make_provider(), tools=[look])) as pool:
                before = 0.0
                for index in range(number):
                    if index == number // 5:
                        before = resident_bytes()
                    started = time.process_time()
                    agent = await pool.create(f"a{index}", model="gpt-4o")
                    times.append(time.process_time() - started)
                    await agent.answer(QUESTION)
                grown = resident_bytes() - before
        early, late = (statistics.median(times[first : first + 30]) * 1000 for first in (10, number - 30))
        return max(grown, 0) / (number - number // 5), early, late

    return asyncio.run(run())


def resident_bytes() -> float:
    """The memory of this process that is in use now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Peers ----------------------------------------------------------------------------------------------------------------


def measure_agents(number: int) -> float:
    """Turns of openai-agents in one SQLiteSession."""
    agents: Any = import_module("agents")  # by name: it is installed in the venv only
    items = import_module("openai.types.responses")

    class Model(agents.Model):  # type: ignore[misc]  # its type is only there inside the venv
        async def get_response(self, *_: object, **given: Any) -> Any:  # noqa: ANN401 - its own types
            asked = given["input"]
            done = isinstance(asked, list) and asked[-1].get("type") == "function_call_output"
            text = items.ResponseOutputText(text=ANSWER, type="output_text", annotations=[])
            said = items.ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            called = items.ResponseFunctionToolCall(
                call_id=f"c{len(asked)}", name="look", arguments="{}", type="function_call"
            )
            return agents.ModelResponse(output=[said if done else called], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - as above
            raise NotImplementedError

    agent = agents.Agent(name="a", model=Model(), tools=[agents.function_tool(look)])
    config, session = agents.RunConfig(tracing_disabled=True), agents.SQLiteSession("s", "agents.db")

    async def turn() -> str:
        result = await agents.Runner.run(agent, QUESTION, session=session, run_config=config)
        return str(result.final_output)

    return take_times(number, turn)


def measure_pydantic(number: int) -> float:
    """Turns of pydantic-ai, which is given the messages of the turns before."""
    messages = import_module("pydantic_ai.messages")

    def answer(history: list[Any], _info: object) -> Any:  # noqa: ANN401 - its own types
        is_done = any(isinstance(part, messages.ToolReturnPart) for part in history[-1].parts)
        part = messages.TextPart(ANSWER) if is_done else messages.ToolCallPart("look", {})
        return messages.ModelResponse(parts=[part])

    model = import_module("pydantic_ai.models.function").FunctionModel(answer)
    agent = import_module("pydantic_ai").Agent(model, tools=[look])
    history: list[Any] = []

    async def turn() -> str:
        result = await agent.run(QUESTION, message_history=[*history])
        history[:] = result.all_messages()
        return str(result.output)

    return take_times(number, turn)


PARTS: dict[str, Callable[[int], Any]] = {
    "nexus": measure_nexus,
    "agents": measure_agents,
    "pydantic": measure_pydantic,
    "pool": measure_pool,
}
"""By the name by which a process is told what to measure."""


if __name__ == "__main__":
    sys.exit(main())
