"""Managers create, message and read workers with tools; a worker reports to its manager and reaches no other agent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nexus_core.rpc import AgentPool, PooledAgent, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import called, replied
from tests.rpc.models import ScriptedModel, last_text


def open_pool(nexus: Any, model: ScriptedModel, **shared: Any) -> AgentPool:
    return AgentPool(SharedComponents(nexus=nexus, provider=model.provider, **shared))


class ScriptedManager(ScriptedModel):
    """A manager that makes tool calls one after the other, and workers that answer by themselves."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], worker: Any = None) -> None:
        super().__init__(self.answer)
        self.calls = list(calls)
        self.worker = worker or (lambda context: replied(f"{context.session_label} has done it."))

    def answer(self, context: Any) -> Any:
        if context.role == "worker":
            return self.worker(context)
        if self.calls:
            return called(*self.calls.pop(0))
        return replied("All done.")


def results(agent: PooledAgent) -> list[tuple[str, bool]]:
    found = [each for message in agent.context.messages for each in message.tool_results]
    return [(each.text, each.is_error) for each in found]


def run_manager(nexus: Any, model: ScriptedManager, **options: Any) -> list[tuple[str, bool]]:
    """The results that a manager reads."""

    async def main() -> list[tuple[str, bool]]:
        async with open_pool(nexus, model) as pool:
            manager = await pool.create("boss", role="manager", **options)
            await manager.answer("Go.")
            return results(manager)

    return asyncio.run(main())


@pytest.mark.acceptance("W-06", "W-07")
def test_a_worker_reports_to_its_manager_and_reaches_no_other_agent(make_nexus: MakeNexus) -> None:
    async def main() -> list[list[str]]:
        async with open_pool(make_nexus(), ScriptedManager()) as pool:
            agents = [
                await pool.create("boss", role="manager"),
                await pool.create("helper", parent="boss"),
                await pool.create("plain"),
            ]
            return [[each.name for each in agent.context.get_tool_definitions()] for agent in agents]

    manager, worker, plain = asyncio.run(main())

    assert "nexus_send" in manager
    assert "nexus_report" not in manager
    assert ("nexus_report" in worker, "nexus_send" in worker, "nexus_create" in worker) == (True, False, True)
    assert plain == []


@pytest.mark.acceptance("S-01", "W-02")
def test_a_manager_creates_a_worker_in_another_directory_and_reads_its_reply(make_nexus: MakeNexus) -> None:
    nexus = make_nexus({"NEXUS.md": "Be brief.\n", "auth/.nexus3/NEXUS.md": "Tokens expire.\n"})
    model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Find the bug.", "cwd": "auth"}))

    assert run_manager(nexus, model) == [("w has done it.", False)]

    (context,) = (each for each in model.contexts if each.role == "worker")
    assert context.system_prompt.startswith("# Subagent Context\n")
    assert "Find the bug." in context.system_prompt
    assert f"Source: {nexus.cwd / 'auth/.nexus3/NEXUS.md'}" in context.system_prompt
    assert [context.system_prompt.count(each) for each in ("Tokens expire.", "Be brief.")] == [1, 1]


def test_messages_lists_and_the_end_of_workers(make_nexus: MakeNexus) -> None:
    model = ScriptedManager(
        ("nexus_create", {"agent_id": "w", "task": "Look."}),
        ("nexus_send", {"agent_id": "w", "message": "And again."}),
        ("nexus_read", {"agent_id": "w", "limit": 2}),
        ("nexus_list", {}),
        ("nexus_cancel", {"agent_id": "w"}),
        ("nexus_destroy", {"agent_id": "w"}),
        ("nexus_read", {"agent_id": "w"}),
        worker=lambda context: replied(f"Read: {last_text(context)}"),
    )

    found = run_manager(make_nexus(), model)

    assert found[:2] == [("Read: Begin with your task.", False), ("Read: And again.", False)]
    assert '"role":"assistant","text":"Read: And again."' in found[2][0]
    assert '"agent_id":"w"' in found[3][0]
    assert [text for text, _ in found[4:6]] == ["w was not running.", "Ended: w."]
    assert found[6][1] is True
    assert "worker" in found[6][0]


def test_a_worker_of_another_manager_cannot_be_reached(make_nexus: MakeNexus) -> None:
    async def main() -> list[tuple[str, bool]]:
        model = ScriptedManager(("nexus_send", {"agent_id": "w", "message": "Obey."}))
        async with open_pool(make_nexus(), model) as pool:
            await pool.create("other", role="manager")
            await pool.create("w", parent="other")
            boss = await pool.create("boss", role="manager")
            await boss.answer("Go.")
            return results(boss)

    ((text, is_error),) = asyncio.run(main())

    assert is_error
    assert "unknown worker" in text


def test_a_report_reaches_the_manager_before_its_next_step(make_nexus: MakeNexus) -> None:
    def work(context: Any) -> Any:
        return replied("Done.") if context.progress else called("nexus_report", {"message": "Half done."})

    async def main() -> list[str]:
        model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Look."}), worker=work)
        async with open_pool(make_nexus(), model) as pool:
            manager = await pool.create("boss", role="manager")
            await manager.answer("Go.")
            return [each.content for each in manager.context.messages if each.role == "user"]

    assert "[Message from worker w]\nHalf done." in asyncio.run(main())[-1]


def test_the_reply_of_a_worker_that_nobody_waits_for_arrives_as_a_message(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[list[tuple[str, bool]], list[str]]:
        model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Look.", "wait": False}))
        async with open_pool(make_nexus(), model) as pool:
            manager = await pool.create("boss", role="manager")
            await manager.answer("Go.")
            said: list[str] = []
            for _ in range(600):
                said = [each.content for each in manager.context.messages if each.role == "user"]
                if any("has finished" in each for each in said) and not manager.is_running:
                    return results(manager), said
                await asyncio.sleep(0.05)
            raise AssertionError(said)

    found, said = asyncio.run(main())

    assert found == [("w is working. Its reply will arrive as a message.", False)]
    assert "[Worker w has finished]\nw has done it." in said[-1]


def test_a_worker_that_fails_is_a_result_that_the_manager_reads(make_nexus: MakeNexus) -> None:
    def fail(_context: object) -> Any:
        raise RuntimeError("no power")

    model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Look."}), worker=fail)

    ((text, is_error),) = run_manager(make_nexus(), model)

    assert is_error
    assert "no power" in text


@pytest.mark.parametrize("level", ["sandboxed", "trusted"])
def test_a_sandboxed_manager_keeps_its_workers_in_its_directory(
    make_nexus: MakeNexus, tmp_path: Path, level: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Look.", "cwd": str(elsewhere)}))

    async def main() -> list[tuple[str, bool]]:
        async with open_pool(make_nexus(), model, ask=lambda _call, _reason: True) as pool:
            manager = await pool.create("boss", role="manager", level=level)
            await manager.answer("Go.")
            return results(manager)

    ((text, is_error),) = asyncio.run(main())

    assert is_error == (level == "sandboxed")
    assert ("outside of the parent's directory" in text) == is_error


def test_a_manager_that_was_killed_goes_on_with_the_same_worker(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[list[tuple[str, bool]], int]:
        nexus = make_nexus()
        model = ScriptedManager(("nexus_create", {"agent_id": "w", "task": "Look."}))
        async with open_pool(nexus, model) as pool:
            manager = await pool.create("boss", role="manager")
            worker_done: list[bool] = []

            def stop(context: Any) -> Any:
                worker_done.append(True)
                return replied(f"{context.session_label} has done it.")

            model.worker = stop
            turn = manager.send("Go.")
            async for event in turn:
                if type(event).__name__ == "ToolResultEvent":
                    break  # the result is stored; what follows is another turn of the same kind
            await turn.wait()
        # The same call once more, as after a crash before its result was stored.
        model.calls = [("nexus_create", {"agent_id": "w", "task": "Look."})]
        async with open_pool(nexus, model) as pool:
            manager = await pool.create("boss", role="manager")
            await manager.answer("Again.")
            return results(manager), len(worker_done)

    found, runs = asyncio.run(main())

    assert found == [("w has done it.", False)] * 2
    assert runs == 1
