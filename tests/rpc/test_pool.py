"""A pool: agents with a context and a session each, that share everything else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nexus_core import FileError, Nexus, NexusError, SessionExistsError, UnknownNameError, UsageError
from nexus_core.agents import tool
from nexus_core.rpc import (
    AgentConfig,
    AgentCycleError,
    AgentDestroyedError,
    AgentExistsError,
    AgentPool,
    SharedComponents,
)
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import called, replied
from tests.rpc.models import ScriptedModel, echo


def open_pool(nexus: Nexus, says: Any = echo, **shared: Any) -> AgentPool:
    return AgentPool(SharedComponents(nexus=nexus, provider=ScriptedModel(says).provider, **shared))


@pytest.mark.acceptance("V-10")
def test_each_agent_has_its_own_conversation_and_shares_the_rest(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with open_pool(make_nexus()) as pool:
            one, two = await pool.create("one"), await pool.create("two")

            assert [await one.answer("A"), await two.answer("B"), await one.answer("C")] == [
                "one: A",
                "two: B",
                "one: C",
            ]

            texts = [[each.content for each in agent.context.messages if each.role == "user"] for agent in (one, two)]
            assert [text[-1][-1] for text in texts] == ["C", "B"]
            assert one.provider is two.provider
            assert one.context.get_token_usage() != two.context.get_token_usage()

    asyncio.run(main())


def test_an_agent_goes_on_with_its_session_in_the_next_pool(make_nexus: MakeNexus) -> None:
    async def main() -> list[str]:
        nexus = make_nexus()
        for message in ("A", "B"):
            async with open_pool(nexus) as pool:
                await (await pool.create("one")).answer(message)
        return [each.content for each in nexus.session("one").messages if each.role == "assistant"]

    assert asyncio.run(main()) == ["one: A", "one: B"]


# ---- the context of a directory ------------------------------------------------------------------------------------

FILES = {
    "NEXUS.md": "Be brief.\n",
    "shop/.nexus3/NEXUS.md": "Sell cakes.\n",
    "shop/.nexus3/config.json": '{"permissions": {"level": "sandboxed", "tools": {"deny": ["deploy"]}}}',
    "bank/NEXUS.md": "Count money.\n",
    "empty/x": "",
}


def prompts(nexus: Nexus, *options: dict[str, Any]) -> list[str]:
    """The system prompts of agents, created one after the other."""

    async def main() -> list[str]:
        async with open_pool(nexus) as pool:
            agents = [await pool.create(**each) for each in options]
            return [agent.context.system_prompt for agent in agents]

    return asyncio.run(main())


@pytest.mark.acceptance("S-01")
def test_an_agent_reads_the_instructions_of_its_own_directory(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(FILES)

    (here, there) = prompts(nexus, {"agent_id": "a"}, {"agent_id": "b", "cwd": "bank"})

    assert "Count money." not in here
    assert f"Working directory: {nexus.cwd / 'bank'}" in there
    assert "Count money." in there


@pytest.mark.acceptance("S-02")
def test_a_prompt_that_is_given_takes_the_place_of_all_others(make_nexus: MakeNexus) -> None:
    given = {"agent_id": "a", "cwd": "bank", "system_prompt": "You bake."}
    worker = {"agent_id": "b", "parent": "a", "system_prompt": "You knead."}

    assert prompts(make_nexus(FILES), given, worker) == ["You bake.", "You knead."]


@pytest.mark.acceptance("S-03", "S-05", "S-06")
@pytest.mark.parametrize("cwd", [None, ".", "empty"])
def test_a_worker_without_instructions_of_its_own_has_its_parents(make_nexus: MakeNexus, cwd: str | None) -> None:
    (parent, worker) = prompts(make_nexus(FILES), {"agent_id": "a"}, {"agent_id": "b", "parent": "a", "cwd": cwd})

    assert parent.count("Be brief.") == worker.count("Be brief.") == 1
    assert "Subagent Configuration" not in worker


@pytest.mark.acceptance("S-04", "S-06", "S-07")
def test_a_worker_elsewhere_reads_its_own_instructions_first(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(FILES)

    (_, worker, below) = prompts(
        nexus,
        {"agent_id": "a"},
        {"agent_id": "b", "parent": "a", "cwd": "shop"},
        {"agent_id": "c", "parent": "b", "cwd": "../bank"},
    )

    assert worker.index("## Subagent Configuration") < worker.index("Sell cakes.") < worker.index("Be brief.")
    assert f"Source: {nexus.cwd / 'shop/.nexus3/NEXUS.md'}" in worker
    assert [below.count(each) for each in ("Count money.", "Sell cakes.", "Be brief.")] == [1, 1, 1]


# ---- permissions -----------------------------------------------------------------------------------------------------


def levels(nexus: Nexus, *options: dict[str, Any]) -> list[str]:
    async def main() -> list[str]:
        async with open_pool(nexus) as pool:
            return [(await pool.create(**each)).level for each in options]

    return asyncio.run(main())


def test_a_worker_has_its_parents_level_or_a_tighter_one(make_nexus: MakeNexus) -> None:
    found = levels(
        make_nexus(FILES),
        {"agent_id": "a"},
        {"agent_id": "b", "parent": "a"},
        {"agent_id": "c", "parent": "a", "cwd": "shop"},
        {"agent_id": "d", "parent": "c", "cwd": "../bank"},
        {"agent_id": "e", "parent": "a", "level": "sandboxed"},
    )

    assert found == ["trusted", "trusted", "sandboxed", "sandboxed", "sandboxed"]


@pytest.mark.parametrize("level", ["trusted", "yolo"])
def test_a_worker_never_has_a_looser_level_than_its_parent(make_nexus: MakeNexus, level: str) -> None:
    nexus = make_nexus()

    with pytest.raises(UsageError, match="its parent has the permission level 'sandboxed'"):
        levels(
            nexus,
            {"agent_id": "a", "level": "sandboxed"},
            {"agent_id": "b", "parent": "a", "level": level},
        )

    assert nexus.ledger.session("b") is None  # nothing of it is stored


def test_a_worker_elsewhere_has_no_tool_that_is_denied_to_its_parent(make_nexus: MakeNexus) -> None:
    def deploy() -> str:
        """Deploy."""
        return "done"

    def look() -> str:
        """Look."""
        return "seen"

    async def main() -> list[list[str]]:
        async with open_pool(make_nexus(FILES), tools=[deploy, look]) as pool:
            agents = [
                await pool.create("a"),
                await pool.create("b", cwd="shop"),
                await pool.create("c", parent="b", cwd="../bank"),
            ]
            offered = [[each.name for each in agent.context.get_tool_definitions()] for agent in agents]
            assert "Permission level: sandboxed" in agents[2].context.system_prompt
            return [[name for name in names if not name.startswith("nexus_")] for names in offered]

    assert asyncio.run(main()) == [["deploy", "look"], ["look"], ["look"]]


def test_a_worker_of_a_sandboxed_agent_is_refused_what_its_parent_is(make_nexus: MakeNexus) -> None:
    ran: list[str] = []

    @tool(risk="high")
    def deploy() -> str:
        """Deploy."""
        ran.append("deploy")
        return "done"

    def says(context: Any) -> Any:
        return replied("I may not.") if context.progress else called("deploy", {})

    async def main() -> str:
        async with open_pool(make_nexus(), says, tools=[deploy], ask=lambda _call, _reason: True) as pool:
            await pool.create("a", level="sandboxed")
            worker = await pool.create("b", parent="a")
            return await worker.answer("Go.")

    assert (asyncio.run(main()), ran) == ("I may not.", [])


# ---- names and their errors ------------------------------------------------------------------------------------------


def test_get_list_and_destroy(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with open_pool(make_nexus()) as pool:
            manager = await pool.create("boss", role="manager")
            await pool.create("helper", parent="boss")

            assert pool.get("boss") is manager
            assert [(each["agent_id"], each["parent"], each["role"]) for each in pool.list()] == [
                ("boss", None, "manager"),
                ("helper", "boss", "worker"),
            ]
            assert await pool.destroy("boss") == ("helper", "boss")
            assert (len(pool), pool.list()) == (0, [])
            with pytest.raises(AgentDestroyedError, match="agent 'boss' was destroyed"):
                manager.send("Hello?")
            with pytest.raises(UnknownNameError, match="agent"):
                pool.get("boss")

    asyncio.run(main())


def test_two_agents_with_one_id_even_at_the_same_time(make_nexus: MakeNexus) -> None:
    async def main() -> list[object]:
        async with open_pool(make_nexus()) as pool:
            return await asyncio.gather(*(pool.create("one") for _ in range(3)), return_exceptions=True)

    found = asyncio.run(main())

    assert [type(each) for each in found[1:]] == [AgentExistsError, AgentExistsError]
    assert "there is an agent 'one' already" in str(found[1])


def test_a_cycle_of_parents(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        nexus = make_nexus()
        async with open_pool(nexus) as pool:
            with pytest.raises(AgentCycleError, match="its own parent"):
                await pool.create("a", parent="a")
            await pool.create("a")
            await pool.create("b", parent="a")
        async with open_pool(nexus) as pool:  # the ledger knows that b is a worker of a
            await pool.create("b")
            with pytest.raises(AgentCycleError, match="'b' is a worker of 'a'"):
                await pool.create("a", parent="b")

    asyncio.run(main())


def test_workers_of_workers_have_an_end(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with open_pool(make_nexus()) as pool:
            parent: str | None = None
            for number in range(5):
                parent = (await pool.create(f"a{number}", parent=parent)).id
            with pytest.raises(UsageError, match="cannot have workers"):
                await pool.create("one-more", parent=parent)

    asyncio.run(main())


def test_a_session_of_someone_else_does_not_become_a_worker(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with open_pool(make_nexus()) as pool:
            await (await pool.create("a")).answer("Hello.")
            await (await pool.create("b")).answer("Hello.")
            await pool.destroy("b")
            with pytest.raises(SessionExistsError):
                await pool.create("b", parent="a")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"parent": "nobody"}, "agent"),
        ({"role": "worker"}, "a worker needs a parent"),
        ({"task": "Look."}, "a task is for a worker"),
        ({"parent": "a", "role": "manager"}, "an agent with a parent is a worker"),
        ({"parent": "a", "permissions": ["mail"]}, "permissions of its parent"),
        ({"provider": "nobody"}, "provider"),
        ({"level": "loose"}, "permission level"),
        ({"max_calls": 0}, "max_calls"),
        ({"tools": [3]}, "a tool of an agent must be a function"),
        ({"colour": "red"}, "option of an agent"),
        ({"cwd": "missing"}, "missing"),
    ],
)
def test_bad_options_are_named(make_nexus: MakeNexus, options: dict[str, Any], what: str) -> None:
    async def main() -> None:
        async with open_pool(make_nexus()) as pool:
            await pool.create("a")
            with pytest.raises(Exception, match=what) as caught:
                await pool.create("b", **options)
            assert type(caught.value).__module__ == "nexus_core.errors"
            assert "b" not in pool

    asyncio.run(main())


def test_a_closed_pool_makes_no_agents(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        pool = open_pool(make_nexus())
        agent = await pool.create("a")
        await pool.close()
        await pool.close()
        with pytest.raises(AgentDestroyedError):
            await pool.create("b")
        with pytest.raises(AgentDestroyedError):
            agent.send("Hello?")

    asyncio.run(main())


# ---- what is shared --------------------------------------------------------------------------------------------------


def test_the_config_of_the_pool_names_model_and_level(make_nexus: MakeNexus) -> None:
    config = {"provider": {"model": "gpt-5"}, "permissions": {"level": "sandboxed"}}

    async def main() -> tuple[str, str, str]:
        async with open_pool(make_nexus(), config=config) as pool:
            agent = await pool.create("a")
            other = await pool.create(config=AgentConfig(agent_id="b", model="claude-sonnet-5"))
            return agent.level, agent.context.assemble().model, other.context.assemble().model

    assert asyncio.run(main()) == ("sandboxed", "gpt-5", "claude-sonnet-5")


def test_a_loose_level_in_the_config_loosens_nothing(make_nexus: MakeNexus) -> None:
    async def main() -> str:
        async with open_pool(make_nexus(), config={"permissions": {"level": "yolo"}}) as pool:
            return (await pool.create("a")).level

    assert asyncio.run(main()) == "trusted"


def test_files_of_a_directory_are_read_once_for_all_agents(
    make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus = make_nexus(FILES)
    loads: list[Path] = []
    load = nexus.load

    def load_and_note(request: Any = None) -> Any:
        loads.append(request.cwd)
        return load(request)

    monkeypatch.setattr(nexus, "load", load_and_note)

    async def main() -> None:
        async with open_pool(nexus) as pool:
            for number in range(20):
                await pool.create(f"a{number}", cwd="bank" if number % 2 else None)

    # Files that were written just now are read again, since their next change may have the same time.
    asyncio.run(asyncio.sleep(0.15))
    asyncio.run(main())

    assert len(loads) <= 2


@pytest.mark.parametrize("cwd", ["~no-such-user-here", "~no\0user"])
def test_home_of_a_user_who_does_not_exist_is_a_clear_error(make_nexus: MakeNexus, cwd: str) -> None:
    async def main() -> None:
        async with AgentPool(make_nexus()) as pool:
            await pool.create("a", cwd=cwd)

    with pytest.raises(NexusError) as caught:
        asyncio.run(main())

    assert isinstance(caught.value, FileError | UsageError)
