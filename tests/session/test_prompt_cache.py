"""What a session tells providers to keep, through the real clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from tests.dialects.support import Loopback
from tests.history.oracles import cache_marks
from tests.request.contexts import Cache, blocks_of, marked_paths
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import calls, says
from tests.session.test_loop import SCRIPTS, client_of

pytestmark = pytest.mark.usefixtures("no_session_start")

LONG_PROMPT = "\n".join(f"Rule {number}: be brief about matter number {number}." for number in range(400))


@pytest.fixture
def rules(tmp_path: Path, open_nexus: OpenNexus) -> None:  # noqa: ARG001 - it makes the directory
    """A system prompt that is worth caching."""
    write_files(tmp_path / "work", {"NEXUS.md": LONG_PROMPT})


def run(session: Any, loopback: Loopback) -> list[Any]:
    """Three turns with Anthropic's client: a loop with many tools at once, one given up, one answered."""
    wide = [f"w{each}" for each in range(30)]
    scripts = [[calls("a", name="m1"), calls(*wide, name="m2"), says("So.", name="m3")], [calls("b", name="m4")], []]
    first = len(loopback.bodies)
    with client_of("anthropic", loopback.url) as create:
        for question, script in zip(("Why?", "And?", "Well?"), scripts, strict=True):
            context = session.ask(question, interrupt=True)
            for answer in [*script, says("Fine.", name="m5")][: len(script) or 1]:
                loopback.answer = answer
                step = session.record(create(**context.to("anthropic")))
                if not step.done and answer["id"] != "m4":
                    for call in step.tool_calls:
                        session.record(call.result(f"result of {call.id}"))
                    context = session.next()
    return loopback.bodies[first:]


@pytest.mark.usefixtures("rules")
def test_each_call_of_a_session_is_found_by_the_next(open_session: OpenSession, loopback: Loopback) -> None:
    cache = Cache()

    bodies = run(open_session(), loopback)

    found = [(cache.read(body), len(blocks_of(body))) for body in bodies]
    assert len(bodies) == 5
    assert [read for read, _ in found] == [0, *(length for _, length in found[:-1])]
    for body in bodies:
        assert cache_marks(body["tools"], body["system"], body["messages"]) == []
        assert marked_paths(body)[0] == "system[0]"


@pytest.mark.usefixtures("rules")
def test_another_session_in_the_same_place_finds_the_static_zone(open_session: OpenSession, loopback: Loopback) -> None:
    cache = Cache()
    for body in run(open_session(), loopback):
        cache.read(body)

    other = open_session("other").ask("Something else?").to("anthropic")

    assert cache.read(other) == len(other["tools"]) + len(other["system"])


@pytest.mark.usefixtures("rules")
def test_the_settings_choose_how_long_the_static_zone_is_kept(
    open_session: OpenSession, nexus_home: Path, loopback: Loopback
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"cache": {"ttl": "1h"}})})

    body = run(open_session(), loopback)[-1]

    marks = [block.mark.get("ttl", "5m") for block in blocks_of(body) if block.mark]
    assert marks == ["1h", "5m", "5m", "5m"]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("setting", [{"cache": {"enabled": False}}, {"models": {"claude*": {"cache_minimum": 0}}}])
def test_the_settings_can_switch_it_off(
    open_session: OpenSession, nexus_home: Path, loopback: Loopback, setting: dict[str, Any]
) -> None:
    write_files(nexus_home, {"config.json": json.dumps(setting)})

    assert [marked_paths(body) for body in run(open_session(), loopback)] == [[]] * 5


def test_a_call_that_is_too_short_to_be_cached_has_no_mark(open_session: OpenSession, loopback: Loopback) -> None:
    bodies = run(open_session(), loopback)

    assert marked_paths(bodies[0]) == []


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("api", ["openai", "responses"])
def test_all_calls_of_a_session_with_openai_have_one_key_and_another_session_another(
    open_nexus: OpenNexus, loopback: Loopback, api: str
) -> None:
    nexus = open_nexus()
    for label in ("mine", "other"):
        session = nexus.session(label, model="gpt-5.6")
        for number in range(2):
            context = session.ask(f"Question {number}?")
            loopback.answer = SCRIPTS[api][-1] | {"id": f"{label}{number}"}
            with client_of(api, loopback.url) as create:
                session.record(create(**context.to(api)))

    keys = [body["prompt_cache_key"] for body in loopback.bodies]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert all(
        str(body).count("prompt_cache_breakpoint") == 2 + (place % 2) for place, body in enumerate(loopback.bodies)
    )


@pytest.mark.usefixtures("rules")
def test_the_settings_options_go_to_the_api_that_knows_them(
    open_session: OpenSession, nexus_home: Path, loopback: Loopback
) -> None:
    options = {"max_tokens": 77, "thinking": {"type": "adaptive"}, "reasoning_effort": "high"}
    write_files(nexus_home, {"config.json": json.dumps({"provider": {"options": options}})})

    body = run(open_session(), loopback)[0]

    assert (body["max_tokens"], body["thinking"]) == (77, {"type": "adaptive"})
    assert "reasoning_effort" not in body


def test_a_context_outlives_its_nexus(open_nexus: OpenNexus) -> None:
    with open_nexus() as nexus:
        context = nexus.session("s", model="claude-sonnet-4").ask("Why?")

    assert context.to("anthropic")["messages"][0]["role"] == "user"
