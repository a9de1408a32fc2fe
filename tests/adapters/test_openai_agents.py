"""The real Agents SDK over a ledger, beside its own SQLiteSession."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus, check, fit
from nexus_core.adapters.openai_agents import NexusSession, fit_input
from nexus_core.errors import NexusError, UnknownNameError
from nexus_core.ledger.in_memory import MemoryLedger
from tests.adapters.support import ITEMS, said
from tests.conftest import ROOT
from tests.dialects.support import listening
from tests.effort import examples

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world() -> ModuleType:
    """The SDK, a scripted model, and agents over it."""
    return import_module("tests.adapters.agents_world")


@pytest.fixture
def nexus(work: Path, nexus_home: Path) -> Iterator[Nexus]:  # noqa: ARG001 - the home must be in place
    with Nexus(work, ledger=f"sqlite:///{work}/ledger.db") as opened:
        yield opened


def written(items: list[Any]) -> list[str]:
    return [json.dumps(item) for item in items]


def test_what_means_nothing_is_refused_before_anything_is_sent(nexus: Nexus) -> None:
    with pytest.raises(UnknownNameError, match="unknown argument of fit 'budgt'"):
        fit_input(budgt=1)
    with pytest.raises(NexusError, match="name"):
        NexusSession("", nexus=nexus)


def test_model_usage_and_cache_are_stored_with_the_hooks_of_the_session(world: ModuleType, nexus: Nexus) -> None:
    session = NexusSession("chat", nexus=nexus)

    asyncio.run(world.converse_with_hooks(session, world.first_answers()))

    used = nexus.session("chat").usage
    steps = [*nexus.ledger.steps()]
    assert (used.input_tokens, used.cached_input_tokens) == (3000, 2700)
    assert (used.output_tokens, used.reasoning_tokens) == (60, 15)
    assert (steps[0].payload.model, steps[-1].payload.model) == (None, "gpt-4o")
    assert asyncio.run(session.get_items()) != []


def test_usage_waits_for_the_items_that_belong_to_it(world: ModuleType, nexus: Nexus) -> None:
    session = NexusSession("chat", nexus=nexus)
    agent = SimpleNamespace(model=None)
    used = world.Usage(requests=1, input_tokens=7, output_tokens=1, total_tokens=8)

    session.add_response(agent, SimpleNamespace(usage=used))
    asyncio.run(session.add_items([said("Hello.")]))
    before = nexus.session("chat").usage.input_tokens
    asyncio.run(session.add_items([said("Hi.", "assistant")]))

    assert (before, nexus.session("chat").usage.input_tokens) == (0, 7)


def test_it_is_a_session_of_the_sdk(world: ModuleType, nexus: Nexus) -> None:
    assert isinstance(NexusSession("chat", nexus=nexus), world.Session)


def test_two_runs_in_two_processes_are_kept_item_by_item_as_the_sdk_keeps_them(
    world: ModuleType, nexus: Nexus, work: Path
) -> None:
    ours, theirs = NexusSession("chat", nexus=nexus), world.SQLiteSession("chat", work / "theirs.db")

    async def first(session: Any) -> tuple[list[Any], list[Any]]:
        return await world.converse(session, "Why?", world.first_answers()), await session.get_items()

    async def second() -> tuple[list[Any], list[Any]]:
        return await world.converse(theirs, "When?", world.second_answers()), await theirs.get_items()

    assert asyncio.run(first(ours)) == asyncio.run(first(theirs))
    program = [sys.executable, "-m", "tests.adapters.agents_world", str(work), nexus.ledger.url, str(work / "out.json")]
    subprocess.run(program, check=True, cwd=ROOT)
    resumed = json.loads((work / "out.json").read_text(encoding="utf-8"))
    sent, items = asyncio.run(second())
    theirs.close()

    assert resumed["sent"] == sent
    assert written(resumed["items"]) == written(items)
    assert [item.get("type", item.get("role")) for item in items] == [
        *("user", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output"),
        *("function_call", "function_call_output", "reasoning", "message"),
        *("user", "message", "function_call", "function_call_output", "message"),
    ]
    assert list(nexus.ledger.verify()) == []


@given(
    changes=st.lists(
        st.lists(ITEMS, min_size=1, max_size=3) | st.sampled_from(["pop", "pop", "clear"]) | st.integers(-2, 6),
        max_size=12,
    )
)
@settings(max_examples=examples(40))
def test_whatever_is_done_it_answers_as_the_sdk_s_own_session(changes: list[Any]) -> None:
    world = import_module("tests.adapters.agents_world")

    async def play(session: Any) -> list[Any]:
        heard: list[Any] = []
        for change in changes:
            if isinstance(change, int):
                heard.append(await session.get_items(change))
            elif change == "pop":
                heard.append(await session.pop_item())
            elif change == "clear":
                await session.clear_session()
            else:
                await session.add_items(change)
        return [*heard, await session.get_items()]

    theirs = world.SQLiteSession("chat")
    with Nexus(ledger=MemoryLedger(), layers=False, installed=False) as nexus:
        ours = asyncio.run(play(NexusSession("chat", nexus=nexus)))

    assert written(ours) == written(asyncio.run(play(theirs)))
    theirs.close()


def test_the_settings_of_session_and_run_limit_what_is_read(world: ModuleType, nexus: Nexus) -> None:
    limited = NexusSession("chat", nexus=nexus, session_settings=world.SessionSettings(limit=2))

    async def converse() -> tuple[list[Any], list[Any]]:
        await limited.add_items([said(str(number)) for number in range(5)])
        (by_session,) = await world.converse(limited, "a", [[world.says("b")]])
        (by_run,) = await world.converse(limited, "c", [[world.says("d")]], session_settings={"limit": 1})
        return by_session, by_run

    by_session, by_run = asyncio.run(converse())

    assert by_session == [said("3"), said("4"), said("a")]
    assert by_run[1:] == [said("c")]
    assert by_run[0]["id"] == "msg_b"
    assert [item.get("id") for item in asyncio.run(limited.get_items())] == [None, "msg_d"]


def test_every_call_of_a_long_loop_fits_and_is_valid(world: ModuleType, nexus: Nexus) -> None:
    session = NexusSession("chat", nexus=nexus)
    loop = [[world.thinks(f"rs_{n}"), world.calls("look", f"c{n}", path=str(n))] for n in range(30)]
    fitting = world.fit_input(budget=3000, model="gpt-4o")

    async def converse() -> tuple[list[Any], list[Any]]:
        answers = [*loop, [world.says("Nothing.")]]
        sent = await world.converse(session, "Look everywhere.", answers, call_model_input_filter=fitting)
        return sent, await session.get_items()

    sent, kept = asyncio.run(converse())

    assert len(sent) == 31
    for call in sent:
        assert call[0] == said("Look everywhere.")
        assert check(call, api="responses") == ()
        assert fit(call, model="gpt-4o", api="responses", budget=3000, system="Be thorough.").messages == call
    assert 20 < len(sent[-1]) < 40 < len(kept) == 92
    assert {item["call_id"] for item in kept if "call_id" in item} == {f"c{n}" for n in range(30)}


@pytest.mark.parametrize(("model", "fits"), [("gpt-4", False), ("gpt-4o", True)])
def test_the_window_is_that_of_the_agents_model(world: ModuleType, model: str, fits: bool) -> None:
    items = [said(f"question {number} {'word ' * 400}") for number in range(40)]
    agent = world.Agent(name="a", model=model)
    data = SimpleNamespace(agent=agent, model_data=world.ModelInputData(input=items, instructions="Be brief."))

    async def send() -> Any:
        return await fit_input()(data)

    sent = asyncio.run(send()).input

    assert sent == fit(items, model=model, api="responses", system="Be brief.").messages
    assert (sent == items) == fits


def test_the_program_of_the_page_runs(work: Path, nexus_home: Path) -> None:
    page = (ROOT / "docs/how-to/adopt-from-openai-agents.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    answer = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It expires.", "annotations": []}],
    }
    with listening() as loopback:
        loopback.answer = {"id": "r", "object": "response", "created_at": 0, "model": "gpt-4o", "output": [answer]}
        variables = {"OPENAI_BASE_URL": loopback.url, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        command = [sys.executable, "-c", program]
        outcome = subprocess.run(
            command, cwd=work, env=os.environ | variables, text=True, capture_output=True, check=True
        )

    assert outcome.stdout == "It expires.\n"
    assert loopback.body["input"] == [{"role": "user", "content": "Why does login fail?"}]
    with Nexus(work) as nexus:
        assert [record.label for record in nexus.ledger.sessions()] == ["auth-bug"]
        assert [message.content for message in nexus.session("auth-bug").messages] == [
            "Why does login fail?",
            "It expires.",
        ]
    assert (nexus_home / "ledger.db").is_file()
