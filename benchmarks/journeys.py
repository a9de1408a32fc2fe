"""How many modules, functions and calls between modules a piece of work goes through, beside other frameworks.

    python benchmarks/journeys.py [-m MESSAGES] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Nothing is timed: what takes part is counted, imports excluded, so that a run says the same every time. To follow a call
through the code, a reader has to go the same way. Prints numbers with their goals. Exit code: 0 all goals met, 1 a goal
missed, 2 nothing could be measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.crossings import CallWatcher, Journey  # noqa: E402 - after the path is set
from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - as above
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.venvs import Venv, read_version  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

INSIDE = "--inside"
"""For the part that runs in a venv."""
ACME = ROOT / "examples" / "acme"
PARTS = ("modules", "functions", "crossings")
OWN = ("nexus_core", "nexus_plugins")
BUDGET = 8000
SETTLING_SECONDS = 0.5
"""After this, a file is old enough for its time of change to be trusted."""
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


class Way(NamedTuple):
    """Something that is done, and what it should take at most beside what others take for the same.

    Attributes:
        name: What it is called in the table.
        library: The distribution that does it.
        packages: The packages of that library.
        work: Does it, in the venv; is given the number of messages, and a watcher.
        beside: The name of what does the same elsewhere.
        goals: By part, how many times as much as that it may be.
    """

    name: str
    library: str
    packages: tuple[str, ...]
    work: Callable[[int, CallWatcher], Journey]
    beside: str = ""
    goals: tuple[tuple[str, float], ...] = ()


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    if argv is None and INSIDE in sys.argv:
        name, messages = sys.argv[2:]
        print(json.dumps(count_inside(name, int(messages))))
        return 0
    script = Script("Count the modules, functions and calls between modules that a piece of work goes through.")
    script.number("-m", "messages", 2000, 200, "messages that are made to fit")
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Each way in a process of its own, with a peer only where it could be installed."""
    nexus = given.peers.nexus()
    libraries = {way.library for way in WAYS.values() if way.library}
    venvs = {"": nexus} | {name: venv for name in sorted(libraries) if (venv := given.peers.get(name))}
    found = {
        key: count_in(venvs[way.library], key, given.messages) for key, way in WAYS.items() if way.library in venvs
    }
    rows = [row for key, journey in found.items() for row in rows_of(WAYS[key], journey)]
    rows += [row for key in found for row in compared(key, found)]
    return Report(rows, {"nexusctx": read_version(nexus, "nexusctx")} | given.peers.versions, given.peers.missing)


def rows_of(way: Way, journey: Journey) -> list[Row]:
    """A row for each part."""
    return [Row(f"{way.name}: {part}", number, unit="count") for part, number in zip(PARTS, journey, strict=True)]


def compared(key: str, found: dict[str, Journey]) -> list[Row]:
    """The rows that have a goal: how many times as much it is as elsewhere."""
    way = WAYS[key]
    if way.beside not in found:
        return []
    ours, theirs = (found[each]._asdict() for each in (key, way.beside))
    return [
        Row(
            f"{way.name}: {part} / {WAYS[way.beside].name}",
            ours[part] / theirs[part],
            (Goal("<=", bound),),
            detail=f"{ours[part]:,} / {theirs[part]:,}",
        )
        for part, bound in way.goals
    ]


# Counting, inside a venv ----------------------------------------------------------------------------------------------


def count_in(venv: Venv, key: str, messages: int) -> Journey:
    """What takes part in a way, with what is installed in the venv; nothing is in the home."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"HOME": scratch, "XDG_CACHE_HOME": f"{scratch}/cache", "NEXUS_PLUGINS": "none", "TERM": "dumb"}
        environment = clean_environment() | places | {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
        arguments = [str(Path(__file__).resolve()), INSIDE, key, str(messages)]
        told = run_program(venv.python, *arguments, environment=environment)
    return Journey(**json.loads(told.splitlines()[-1]))


def count_inside(key: str, messages: int) -> dict[str, int]:
    """The numbers of a way, in this process."""
    sys.path.remove(str(ROOT))  # what is measured is installed; an editable installation has the path once more
    way = WAYS[key]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        found: dict[str, int] = way.work(messages, CallWatcher(way.packages))._asdict()
    return found


# Nexus ----------------------------------------------------------------------------------------------------------------


def run_command(watcher: CallWatcher, *arguments: str) -> Journey:
    """A command, as a process that was just started runs it."""
    from nexus_core.cli import run_process

    sys.argv = ["nexus", *arguments]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123 - not a file
        return watcher.watch(run_process)


def show_prompt(_: int, watcher: CallWatcher) -> Journey:
    """`nexus show` for the example company."""
    return run_command(
        watcher, "--home", str(ACME / "home/.nexus3"), "-C", str(ACME / "company/backend/auth-service"), "show"
    )


def list_servers(_: int, watcher: CallWatcher) -> Journey:
    """`nexus mcp list` for three servers of the user and two of a project."""
    Path("home").mkdir()
    Path("work/.nexus3").mkdir(parents=True)
    for path, names in (("home/mcp.json", "abc"), ("work/.nexus3/mcp.json", "de")):
        servers = [{"name": name, "command": ["npx", "-y", f"server-{name}"]} for name in names]
        Path(path).write_text(json.dumps({"servers": servers}), encoding="utf-8")
    return run_command(watcher, "--home", "home", "-C", "work", "mcp", "list")


def open_nexus() -> Any:  # noqa: ANN401 - its type is only there inside the venv
    """A Nexus with a ledger in a file."""
    from nexus_core import Nexus

    Path("home").mkdir()
    work = Path("company/team/service")  # not beside the files of other programs, whose changes would be seen
    work.mkdir(parents=True)
    return Nexus(work, home="home")


def take_turn(_: int, watcher: CallWatcher) -> Journey:
    """A turn with a tool call, the first of its session, in a process that has had other sessions.

    Files that changed a moment ago are read again at every call, so those of the ledger have to age first.
    """
    with open_nexus() as nexus:

        def turn(label: str) -> None:
            session = nexus.session(label, model="claude-sonnet-4", tools=[TOOL])
            session.ask("Why does login fail?")
            call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
            step = session.record(make_reply(f"{label}1", call))
            session.record(step.tool_calls[0].result("line 3"))
            session.next()
            session.record(make_reply(f"{label}2", {"type": "text", "text": "Because of line 3."}))

        turn("first")
        time.sleep(SETTLING_SECONDS)
        turn("second")
        return watcher.watch(lambda: turn("third"))


def make_reply(name: str, block: dict[str, Any]) -> dict[str, Any]:
    """A reply of Anthropic."""
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    head = {"id": name, "type": "message", "role": "assistant", "model": "claude-sonnet-4"}
    return {**head, "content": [block], "stop_reason": stop, "usage": usage}


def compact_session(_: int, watcher: CallWatcher) -> Journey:
    """A compaction of ten turns, by Nexus itself, after another one."""
    with open_nexus() as nexus:

        def talk(label: str) -> Any:  # noqa: ANN401 - as above
            session = nexus.session(label, model="claude-sonnet-4")
            for number in range(10):
                session.ask(f"Question {number}: why does /srv/shop/cart.py fail in line {number}? " + "why " * 40)
                session.record(make_reply(f"{label}{number}", {"type": "text", "text": "Because. " * 40}))
            return session

        first, second = talk("first"), talk("second")
        if first.compact() is None:
            raise RuntimeError("nothing was compacted")
        return watcher.watch(second.compact)


def make_messages(number: int) -> list[dict[str, Any]]:
    """Turns of four messages, in the shape of chat completions."""
    messages: list[dict[str, Any]] = []
    for turn in range(number // 4):
        function = {"name": "look", "arguments": '{"path": "cart.py"}'}
        messages += [
            {"role": "user", "content": f"Question {turn}: " + "why " * (5 + turn * 7 % 40)},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "found " * (5 + turn * 11 % 90)},
            {"role": "assistant", "content": f"Answer {turn}: " + "because " * 20},
        ]
    return messages


def fit_messages(number: int, watcher: CallWatcher) -> Journey:
    """`fit` of a list, in a process that has done it before with another."""
    from nexus_core import fit

    fit(make_messages(number), model="gpt-4o", budget=BUDGET)
    messages = make_messages(number)
    return watcher.watch(lambda: fit(messages, model="gpt-4o", budget=BUDGET))


# Peers ----------------------------------------------------------------------------------------------------------------


def run_agents(_: int, watcher: CallWatcher) -> Journey:
    """A run of an agent with a tool call in a session of its own, by a model that answers at once, after another."""
    agents: Any = import_module("agents")  # by name: it is installed in the venv only
    items = import_module("openai.types.responses")

    class Model(agents.Model):  # type: ignore[misc]  # its type is only there inside the venv
        async def get_response(self, *_: object, **given: Any) -> Any:  # noqa: ANN401 - its own types
            asked = given["input"]
            done = isinstance(asked, list) and asked[-1].get("type") == "function_call_output"
            text = items.ResponseOutputText(text="Because of line 3.", type="output_text", annotations=[])
            said = items.ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            called = items.ResponseFunctionToolCall(call_id="c", name="look", arguments="{}", type="function_call")
            return agents.ModelResponse(output=[said if done else called], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - as above
            raise NotImplementedError

    @agents.function_tool  # type: ignore[untyped-decorator]  # as above
    def look() -> str:
        """Look at a file."""
        return "line 3"

    agent = agents.Agent(name="a", model=Model(), tools=[look])
    config = agents.RunConfig(tracing_disabled=True)

    def run(name: str) -> None:
        session = agents.SQLiteSession(name, "agents.db")
        answer = asyncio.run(agents.Runner.run(agent, "Why does login fail?", session=session, run_config=config))
        if answer.final_output != "Because of line 3.":
            raise RuntimeError(f"it answered {answer.final_output!r}")

    run("first")
    return watcher.watch(lambda: run("second"))


def run_pydantic(_: int, watcher: CallWatcher) -> Journey:
    """A run of an agent with a tool call, by its own model for tests, after another run."""
    agent = import_module("pydantic_ai").Agent(import_module("pydantic_ai.models.test").TestModel())

    @agent.tool_plain  # type: ignore[untyped-decorator]  # its type is only there inside the venv
    def look() -> str:
        """Look at a file."""
        return "line 3"

    agent.run_sync("Why does login fail?")
    return watcher.watch(lambda: agent.run_sync("Why does login fail?"))


def trim_messages(number: int, watcher: CallWatcher) -> Journey:
    """`trim_messages` of LangChain of the same list, with its own approximate counter, after another one."""
    langchain = import_module("langchain_core.messages")  # by name: it is installed in the venv only
    count = import_module("langchain_core.messages.utils").count_tokens_approximately

    def trim(messages: list[Any]) -> object:
        return langchain.trim_messages(messages, max_tokens=BUDGET, strategy="last", token_counter=count)

    first, second = (langchain.convert_to_messages(make_messages(number)) for _ in range(2))
    trim(first)
    return watcher.watch(lambda: trim(second))


WAYS = {
    "show": Way("nexus show, cold", "", OWN, show_prompt),
    "turn": Way(
        "a turn with a tool, warm",
        "",
        OWN,
        take_turn,
        beside="agents",
        goals=(("modules", 1), ("functions", 1.5), ("crossings", 2)),
    ),
    "agents": Way("openai-agents: Runner with SQLiteSession", "openai-agents", ("agents",), run_agents),
    "pydantic": Way(
        "pydantic-ai: agent with a tool", "pydantic-ai-slim", ("pydantic_ai", "pydantic_graph"), run_pydantic
    ),
    "fit": Way("fit(), warm", "", OWN, fit_messages),
    "trim": Way("LangChain: trim_messages", "langchain-core", ("langchain_core",), trim_messages),
    "compact": Way("session.compact(), warm", "", OWN, compact_session),
    "servers": Way("nexus mcp list, cold", "", OWN, list_servers),
}
"""By the name by which a process is told what to count."""


if __name__ == "__main__":
    sys.exit(main())
