"""What is frozen, when it is made anew, and how the model hears of what has changed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, Request, Section, Tool, hookimpl
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.trust.store import TrustStore
from tests.session.conftest import Clock, OpenNexus, OpenSession
from tests.session.support import TOOLS, calls, kinds_of, says, steps_of

pytestmark = pytest.mark.usefixtures("no_session_start")


def text_of(context: Any) -> str:
    text: str = context.current_message.content
    return text


def epochs_of(ledger: StoreLedger, label: str = "s") -> list[object]:
    """The epochs of a session, each once."""
    return list(dict.fromkeys(step.payload.epoch for step in steps_of(ledger, label) if step.payload.epoch))


class Moody:
    """Another memory and another tool whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.tools: list[Tool] = []

    @hookimpl
    def nexus_current_sections(self) -> list[Section]:
        self.asked += 1
        return [Section("mood", title="Mood", text=f"mood {self.asked}", kind="memory")]

    @hookimpl
    def nexus_tools(self) -> list[Tool]:
        return self.tools


@pytest.mark.acceptance("Y-04", "Y-06")
def test_another_clock_another_event_and_other_memories_leave_the_static_zone_alone(
    open_nexus: OpenNexus, tmp_path: Path, clock: Clock
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n", "AGENTS.md": "Rules.\n"})
    static = set()

    for number in range(5):
        clock.ms += 86_400_000
        nexus = open_nexus(plugins=[Moody()])
        context = nexus.assemble(
            nexus.request(
                message=f"question {number}",
                model=["gpt-4o", "claude-sonnet-4"][number % 2],
                platform=f"platform {number}",
                timezone="Europe/Berlin",
                hook_data={"number": number},
                event_id=f"evt_{number}",
            )
        )
        static.add((context.system_prompt, context.tools))

    assert len(static) == 1


def test_a_changed_file_is_announced_once_and_the_prompt_stays(
    open_session: OpenSession, tmp_path: Path, ledger: StoreLedger
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\nBe kind.\n"})
    session = open_session()
    before = session.ask("Why?")
    session.record(says("Because.", name="msg_1"))
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\nBe kind.\n"})

    announced = session.ask("And?")
    session.record(says("So.", name="msg_2"))
    after = open_session().ask("Well?")

    assert announced.system_prompt == after.system_prompt == before.system_prompt
    assert "## Changed Instructions\n" in text_of(announced)
    assert "-Be brief.\n+Be verbose.\n Be kind." in text_of(announced)
    assert str(tmp_path / "work/NEXUS.md") in text_of(announced)
    assert "Changed Instructions" not in text_of(after)
    assert announced.messages[: len(before.messages)] == before.messages
    assert after.messages[: len(announced.messages)] == announced.messages
    assert len(epochs_of(ledger)) == 1


def test_a_change_that_is_taken_back_is_announced_too(open_session: OpenSession, tmp_path: Path) -> None:
    session = open_session()
    texts = []
    for number, rules in enumerate(["one", "two", "one", "one"]):
        write_files(tmp_path / "work", {"NEXUS.md": f"Rule {rules}.\n"})
        texts.append(text_of(session.ask(f"question {number}")))
        session.record(says("so", name=f"msg_{number}"))

    assert ["+Rule" in text for text in texts] == [False, True, True, False]


def test_a_file_that_changes_inside_a_turn_is_announced_in_the_next_one(
    open_session: OpenSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = open_session()
    first = session.ask("Why?")
    step = session.record(calls("t1"))
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})
    session.record(step.tool_calls[0].result("found"))

    second = session.next()
    session.record(says("Because.", name="msg_2"))

    assert second.messages[:1] == first.messages
    assert "+Be verbose." in text_of(session.ask("And?"))


def test_reloading_begins_anew_with_the_next_call(
    open_session: OpenSession, tmp_path: Path, ledger: StoreLedger
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})

    session.reload()
    context = open_session().ask("And?")

    assert "Be verbose." in context.system_prompt
    assert "Changed Instructions" not in text_of(context)
    assert context.system_context["workspace"]["version"] == 2  # type: ignore[index]
    assert len(epochs_of(ledger)) == 2
    assert open_session().next() == context


def test_reloading_what_has_not_begun_does_nothing(open_session: OpenSession, ledger: StoreLedger) -> None:
    open_session().reload()

    assert ledger.session("s") is None


# ---- what begins another at once ------------------------------------------------------------------------------------


def test_a_revoked_permission_takes_the_tool_away_at_once_even_inside_a_turn(
    open_session: OpenSession, nexus_home: Path, ledger: StoreLedger
) -> None:
    session = open_session()
    assert session.ask("Why?").tools
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("found"))
    write_files(nexus_home, {"config.json": json.dumps({"permissions": {"tools": {"deny": ["look"]}}})})

    context = session.next()

    assert context.tools == ()
    assert len(epochs_of(ledger)) == 2
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply", "result", "sealed"]
    assert session.next() == context


def test_a_tighter_level_begins_another_epoch_at_once(
    open_session: OpenSession, nexus_home: Path, ledger: StoreLedger
) -> None:
    session = open_session()
    session.ask("Why?")
    write_files(nexus_home, {"config.json": json.dumps({"permissions": {"level": "sandboxed"}})})

    context = session.next()

    assert context.permissions_granted == ("sandboxed",)
    assert len(epochs_of(ledger)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"role": "manager"},
        {"permissions": ["write"]},
        {"role": "worker", "task": "Find it."},
        {"skills": ["x"]},
        {"tools": []},
    ],
)
def test_other_circumstances_of_the_caller_begin_another_epoch(
    open_session: OpenSession, ledger: StoreLedger, other: dict[str, Any]
) -> None:
    open_session().ask("Why?")

    open_session(**other).next()

    assert len(epochs_of(ledger)) == 2


def test_a_session_remembers_role_permissions_and_the_callers_tools(open_nexus: OpenNexus) -> None:
    before = open_nexus().session("s", model="gpt-4o", role="manager", permissions=["read"], tools=TOOLS).ask("Why?")

    after = open_nexus().session("s").next()

    assert after == before
    assert (after.role, after.permissions_granted) == ("manager", ("trusted", "read"))


def test_what_is_said_about_a_session_inside_a_turn_is_remembered(open_session: OpenSession) -> None:
    open_session().ask("Why?")
    changed = open_session(role="manager", model="gpt-4o").next()

    again = open_session(model=None).next()

    assert (again.role, again.model) == ("manager", "gpt-4o")
    assert again == changed


def test_a_plugin_that_offers_another_tool_begins_another_epoch(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    moody = Moody()
    open_nexus(plugins=[moody]).session("s", model="gpt-4o").ask("Why?")
    moody.tools = [Tool(name="zip")]

    context = open_nexus(plugins=[moody]).session("s").next()

    assert [tool.name for tool in context.tools] == ["zip"]
    assert len(epochs_of(ledger)) == 2


def servers(work: Path, command: str) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps({"mcpServers": {"git": {"command": command}}})})


def test_revoked_trust_begins_another_epoch_at_once(
    open_nexus: OpenNexus, nexus_home: Path, tmp_path: Path, ledger: StoreLedger
) -> None:
    servers(tmp_path / "work", "/bin/true")
    nexus = open_nexus()
    store = TrustStore(nexus_home)
    store.allow(nexus.load().active)
    session = nexus.session("s", model="gpt-4o")
    before = session.ask("Why?")

    store.deny(nexus.load().active)
    context = session.next()

    assert context.system_prompt != before.system_prompt
    assert len(epochs_of(ledger)) == 2


def test_what_waits_for_trust_is_only_announced(open_session: OpenSession, tmp_path: Path, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    servers(tmp_path / "work", "/bin/true")

    context = session.ask("And?")

    assert "MCP Servers" in text_of(context)
    assert len(epochs_of(ledger)) == 1


# ---- what is written down -------------------------------------------------------------------------------------------


@pytest.mark.acceptance("J-01", "J-04")
def test_a_system_prompt_says_what_it_was_put_together_from(
    open_session: OpenSession, tmp_path: Path, clock: Clock, ledger: StoreLedger
) -> None:
    write_files(
        tmp_path / "work",
        {"AGENTS.md": "Rules.\n", ".nexus3/SOUL.md": "Calm.\n", ".nexus3/IDENTITY.md": "- **Name:** Atlas\n"},
    )

    context = open_session().ask("Why?")

    workspace, persona = context.system_context["workspace"], context.system_context["persona"]
    assert workspace["version"] == 1  # type: ignore[index]
    assert len(workspace["agentsMdHash"]) == 32  # type: ignore[index]
    assert len(persona["soulHash"]) == 32  # type: ignore[index]
    assert persona["id"] == "Atlas"  # type: ignore[index]
    assert context.system_context["nexusEnv"] == {"capabilityCount": 0, "snapshotAt": clock.ms}
    assert context.system_context["memory"] is None
    blob = ledger.blob(context.epoch)
    assert blob is not None
    assert json.loads(blob)["context"] == context.system_context


@pytest.mark.acceptance("J-02", "J-03", "J-04")
def test_the_context_of_a_message_counts_what_plugins_added(
    open_nexus: OpenNexus, ledger: StoreLedger, clock: Clock
) -> None:
    session = open_nexus(plugins=[Moody()]).session("s", model="claude-sonnet-4")
    session.ask("Why?", platform="slack", hook_data={"git": "clean"})
    session.record(says("Because."))

    _, sealed, reply = steps_of(ledger, "s")

    event = {"platform": "slack", "hookCount": 2}
    assert sealed.payload.context == [{"event": event, "attachments": [], "injectedAt": clock.ms}]
    assert reply.payload.context == [None]


def test_a_preview_stores_nothing(open_session: OpenSession, ledger: StoreLedger) -> None:
    context = open_session().preview("Why?")

    assert ledger.blob(context.epoch) is None
    assert open_session().ask("Why?").epoch == context.epoch


def test_static_hooks_are_asked_once_while_nothing_changes(open_nexus: OpenNexus) -> None:
    asked: list[Request] = []

    class Counting:
        @hookimpl
        def nexus_static_sections(self, request: Request) -> list[Section]:
            asked.append(request)
            return []

    nexus: Nexus = open_nexus(plugins=[Counting()])
    session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
    for number in range(3):
        session.ask(f"question {number}")
        session.record(says("so", name=f"msg_{number}"))

    assert len(asked) == 1
    assert asked[0].message is None


# ---- announcements that are left out --------------------------------------------------------------------------------


@pytest.mark.usefixtures("only_cuts")
def test_what_was_announced_is_in_the_prompt_when_the_announcement_is_left_out(
    open_session: OpenSession, tmp_path: Path, ledger: StoreLedger
) -> None:
    models = json.dumps({"models": {"tiny": {"window": 6000, "max_output": 500}}})
    write_files(tmp_path / "work", {".nexus3/config.json": models, "NEXUS.md": "Use tabs.\n"})
    session = open_session(model="tiny", tools=[])
    contexts = []
    for number in range(14):
        contexts.append(session.ask("Why?" if number < 2 else "long " * 500))
        session.record(says("Because.", name=f"msg_{number}"))
        if number == 0:
            write_files(tmp_path / "work", {"NEXUS.md": "Use spaces.\n"})

    assert "+Use spaces." in text_of(contexts[1])
    assert contexts[-1].decisions
    for context in contexts[1:]:
        assert "Use spaces." in json.dumps(context.to("neutral"))
    assert "Use tabs." not in contexts[-1].system_prompt
    assert not any("Changed Instructions" in text_of(context) for context in contexts[2:])
    assert len(epochs_of(ledger)) == 2


@pytest.mark.usefixtures("only_cuts")
def test_a_cut_inside_a_turn_keeps_what_was_announced(open_session: OpenSession, tmp_path: Path) -> None:
    models = json.dumps({"models": {"tiny": {"window": 6000, "max_output": 500}}})
    write_files(tmp_path / "work", {".nexus3/config.json": models, "NEXUS.md": "Use tabs.\n"})
    session = open_session(model="tiny")
    for number in range(2):
        session.ask("Why?")
        session.record(says("Because.", name=f"msg_{number}"))
        write_files(tmp_path / "work", {"NEXUS.md": "Use spaces.\n"})
    context = session.ask("And?")
    for number in range(16):
        step = session.record(calls(f"t{number}", name=f"call_{number}"))
        session.record(step.tool_calls[0].result("found " * 500))
        context = session.next()
        assert "Use spaces." in json.dumps(context.to("neutral"))
        assert session.next().to("neutral") == context.to("neutral")

    assert context.decisions
    assert "Use spaces." in context.system_prompt


def test_an_announcement_for_which_there_is_no_room_is_made_by_the_prompt(
    open_session: OpenSession, tmp_path: Path, ledger: StoreLedger
) -> None:
    def written(style: str) -> dict[str, str]:
        return {"NEXUS.md": "".join(f"Rule {number} is about {style}.\n" for number in range(100))}

    models = json.dumps({"models": {"tiny": {"window": 2400}}})
    write_files(tmp_path / "work", {".nexus3/config.json": models, **written("tabs")})
    session = open_session(model="tiny", tools=[])
    session.ask("Why?")
    session.record(says("Because."))

    write_files(tmp_path / "work", written("spaces"))
    context = session.ask("And now?")

    assert "Rule 99 is about spaces." in context.system_prompt
    assert "Changed Instructions" not in text_of(context)
    assert len(epochs_of(ledger)) == 2
