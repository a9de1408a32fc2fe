"""What Nexus.assemble gives for a request, with and without a session."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nexus_core import AssembledContext, Nexus, Request, Section, Tool, hookimpl
from nexus_core.errors import FileError, MessageError, TurnError, UnknownNameError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.plugin import AgentRole, HookCall
from nexus_core.testing import write_files
from tests.session.conftest import Clock, OpenNexus, OpenSession
from tests.session.support import TOOLS, calls, kinds_of, says, spoken


class Extras:
    """Sections, tools and a role of a plugin."""

    def __init__(self, *sections: Section) -> None:
        self.sections = sections
        self.asked: list[Request] = []

    @hookimpl
    def nexus_current_sections(self, request: Request) -> list[Section]:
        self.asked.append(request)
        return list(self.sections)

    @hookimpl
    def nexus_tools(self) -> list[Tool]:
        return [
            Tool(name="zip", description="Zip."),
            Tool(name="mail", description="Write to people.", scope="messaging"),
            Tool(name="look", description="Not this one: the caller has it."),
        ]

    @hookimpl
    def nexus_roles(self) -> list[AgentRole]:
        return [AgentRole(name="hermit", scopes=("general",)), AgentRole(name="host", sees_platform=True)]


def memory(name: str, words: int = 5, **fields: Any) -> Section:
    return Section(name, title=name, text=f"{name} " * words, kind="memory", **fields)


def test_a_request_needs_no_session_and_no_ledger(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(ledger="carrier-pigeon://coop")

    context = nexus.assemble(nexus.request(message="Why?", model="claude-sonnet-4", event_id="evt_1"))

    assert spoken(context.current_message) == "Why?"
    assert context.history == ()
    assert (context.model, context.provider, context.source_event_id) == ("claude-sonnet-4", "anthropic", "evt_1")
    assert context.system_prompt.startswith("# System Configuration\n")


@pytest.mark.acceptance("G-01")
def test_every_field_has_its_value(open_nexus: OpenNexus, tmp_path: Path) -> None:
    nexus = open_nexus(plugins=[Extras()])
    request = nexus.request(
        message="Why?", model="gpt-4o", tools=TOOLS, role="hermit", permissions=["read"], event_id="evt_1"
    )

    context = nexus.assemble(request)

    given = {field.name: getattr(context, field.name) for field in fields(AssembledContext)}
    assert given["role"] == given["toolset_name"] == "hermit"
    assert given["permissions_granted"] == ("trusted", "read")
    assert given["workspace_path"] == (tmp_path / "work").resolve()
    assert (given["session_label"], given["parent_turn_id"]) == ("", None)
    assert given["model_config"] == {}
    assert given["token_budget"].limit == 128_000
    assert set(given["token_budget"].used) == {"system", "tools", "history", "memory", "event"}
    assert given["epoch"]


def test_with_a_session_its_history_is_read_and_nothing_is_written(
    open_nexus: OpenNexus, open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    before = kinds_of(ledger, "s")
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(message="And?", session="s"))

    assert [spoken(message) for message in context.messages[1:]] == ["Why?", "Because.", "And?"]
    assert [tool.name for tool in context.tools] == ["look"]
    assert kinds_of(ledger, "s") == before
    assert context.messages == session.preview("And?").messages == session.ask("And?").messages


def test_without_a_message_it_is_what_stands_there(open_nexus: OpenNexus, open_session: OpenSession) -> None:
    session = open_session()
    nexus = open_nexus()
    session.ask("Why?")
    opened = nexus.assemble(nexus.request(session="s"))
    session.record(says("Because."))

    closed = nexus.assemble(nexus.request(session="s"))

    assert spoken(opened.current_message) == "Why?"
    assert closed.current_message is None
    assert [spoken(message) for message in closed.messages[1:]] == ["Why?", "Because."]


def test_it_can_be_awaited(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    request = nexus.request(message="Why?", model="gpt-4o")

    assert asyncio.run(nexus.async_assemble(request)) == nexus.assemble(request)


@pytest.mark.acceptance("Y-04")
def test_the_same_request_gives_the_same_bytes(open_nexus: OpenNexus) -> None:
    def assemble() -> str:
        nexus = open_nexus(plugins=[Extras(memory("m"))])
        context = nexus.assemble(
            nexus.request(message="Why?", model="gpt-4o", hook_data={"b": 1, "a": {"y": 1, "x": 2}})
        )
        return json.dumps(context.to("openai"))

    assert assemble() == assemble()


@pytest.mark.acceptance("Y-14")
def test_hooks_are_asked_in_the_order_of_the_steps(open_nexus: OpenNexus) -> None:
    heard: list[HookCall] = []
    nexus = open_nexus(plugins=[Extras()], trace=heard.append)

    nexus.assemble(nexus.request(message="Why?", model="gpt-4o"))

    order = [call.hook for call in heard if call.hook.endswith(("sections", "tools"))]
    assert list(dict.fromkeys(order)) == ["nexus_static_sections", "nexus_current_sections", "nexus_tools"]


# ---- names that nothing answers to ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "name", "nearest"),
    [("role", "hermt", "hermit"), ("renderer", "labeled", "labelled"), ("session", "sessoin-1", "session-1")],
)
def test_a_name_that_nothing_answers_to_has_a_nearest(
    open_nexus: OpenNexus, open_session: OpenSession, field: str, name: str, nearest: str
) -> None:
    open_session("session-1").ask("Why?")
    nexus = open_nexus(plugins=[Extras()])
    said: dict[str, Any] = {"message": "Why?", field: name}

    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        nexus.assemble(nexus.request(**said))


def test_a_session_with_an_unknown_role_keeps_nothing(open_session: OpenSession, ledger: StoreLedger) -> None:
    with pytest.raises(UnknownNameError, match="role 'managr'"):
        open_session(role="managr").ask("Why?")

    assert ledger.session("s") is None


@pytest.mark.parametrize(("asked", "played"), [("", "manager"), ("unified", "unified"), ("worker", "worker")])
def test_a_request_has_the_role_that_it_names_whatever_the_session_was_told_before(
    open_nexus: OpenNexus, open_session: OpenSession, asked: str, played: str
) -> None:
    session = open_session(role="manager")
    session.ask("Why?")
    session.record(says("Because."))
    nexus = open_nexus()
    task = "Look." if asked == "worker" else ""

    context = nexus.assemble(nexus.request(session=session.name, role=asked, task=task, message="And?"))

    assert context.role == played
    assert ("## Messaging Rules" in context.system_prompt) == (played == "manager")


def test_hooks_are_told_the_usual_role_by_its_name(open_nexus: OpenNexus) -> None:
    told: list[str] = []

    class Curious:
        @hookimpl
        def nexus_static_sections(self, request: Request) -> list[Section]:
            told.append(request.role)
            return []

        @hookimpl
        def nexus_current_sections(self, request: Request) -> list[Section]:
            told.append(request.role)
            return []

        @hookimpl
        def nexus_tools(self, request: Request) -> list[Tool]:
            told.append(request.role)
            return []

    nexus = open_nexus(plugins=[Curious()])
    nexus.assemble(nexus.request(message="Why?", model="gpt-4o"))
    nexus.system_prompt()

    assert told == ["unified"] * 4


def test_one_word_is_no_list_of_words(open_session: OpenSession) -> None:
    with pytest.raises(UsageError, match="permissions must be a list"):
        open_session(permissions="read")


def test_a_field_that_there_is_not_is_named(open_nexus: OpenNexus) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'platform'"):
        open_nexus().request(platfrom="slack")  # type: ignore[call-arg]


def test_an_unknown_renderer_of_the_settings_is_shown_in_its_place(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"renderer": "labeled"}'})

    with pytest.raises(Exception, match="did you mean 'labelled'") as caught:
        open_nexus().session("s", model="gpt-4o").ask("Why?")

    assert '1 | {"renderer": "labeled"}' in str(caught.value)


@pytest.mark.acceptance("D-08")
def test_an_unknown_model_has_a_usual_window_and_a_finding(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(message="Why?", model="claud-sonnet-4"))
    known = nexus.assemble(nexus.request(message="Why?", model="claude-sonnet-4-20250514"))

    assert context.token_budget.limit == 128_000
    (finding,) = context.findings
    assert finding.code == "unknown-model"
    assert "128,000" in finding.message
    assert "did you mean 'claude-sonnet-4" in finding.message
    assert known.findings == ()


def test_a_model_whose_window_the_user_sets_is_known(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"models": {"mine": {"window": 5000}}})})
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(message="Why?", model="mine"))

    assert (context.token_budget.limit, context.findings) == (5000, ())


def test_a_request_about_another_place_is_refused(open_nexus: OpenNexus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this Nexus is about"):
        open_nexus().assemble(Request(cwd=tmp_path, home=tmp_path))


def test_something_said_while_a_turn_is_open_is_refused(open_nexus: OpenNexus, open_session: OpenSession) -> None:
    open_session().ask("Why?")
    nexus = open_nexus()

    with pytest.raises(TurnError, match="a turn is open"):
        nexus.assemble(nexus.request(message="And?", session="s"))


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["", "  \n", []])
def test_an_empty_message_is_refused_before_anything_is_kept(
    open_session: OpenSession, ledger: StoreLedger, message: object
) -> None:
    with pytest.raises(MessageError):
        open_session().ask(message)

    assert ledger.session("s") is None


def test_an_event_without_words_is_no_empty_message(open_session: OpenSession) -> None:
    context = open_session().ask("", hook_data={"timer": "went off"})

    assert context.current_message is not None
    assert "timer: went off" in context.current_message.content


def test_halves_of_characters_are_the_same_in_a_preview_and_in_what_is_sent(open_session: OpenSession) -> None:
    session = open_session()
    said = "half \ud83d and whole \ud83d\ude00"

    preview = session.preview(said, hook_data={"x": "\udc00"})
    context = session.ask(said, hook_data={"x": "\udc00"})

    assert preview == context
    assert spoken(context.current_message) == "half � and whole 😀"
    json.dumps(context.to("anthropic")).encode()


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        ({"timezone": 1}, "timezone must be text"),
        ({"timezone": -480}, 'give it as text: "-480"'),
        ({"profile": "Ada"}, 'for example {"friends_profile": "Ada likes green tea."}'),
        ({"platform_actions": "reply"}, "platform_actions must be a list"),
        ({"hook_data": ["x"]}, "hook_data must be values by name"),
        ({"attachments": "a.py"}, "attachments must be a list"),
        ({"source": ["x"]}, "source must be text"),
    ],
)
def test_what_is_told_in_a_shape_that_means_nothing_is_refused(
    open_session: OpenSession, ledger: StoreLedger, event: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(UsageError, match=wrong):
        open_session().ask("Why?", **event)

    assert ledger.session("s") is None


def test_rules_that_cannot_be_read_are_an_error_that_names_them(open_session: OpenSession, tmp_path: Path) -> None:
    (tmp_path / "work/AGENTS.md").write_bytes(b"\xff\xfe\xff")

    with pytest.raises(FileError, match=r"AGENTS\.md"):
        open_session().ask("Why?")


def test_a_broken_file_does_not_keep_a_reply_from_being_recorded(open_session: OpenSession, tmp_path: Path) -> None:
    session = open_session()
    session.ask("Why?")
    write_files(tmp_path / "work", {".nexus3/config.json": "{"})

    assert session.record(says("Because.")).done
    assert session.messages[-1].content == "Because."


def test_a_directory_without_any_file_is_enough(open_session: OpenSession) -> None:
    context = open_session().ask("Why?")

    assert context.system_context["persona"] == {"id": None, "soulHash": None}
    assert context.system_prompt.startswith("# System Configuration\n")


# ---- the current message --------------------------------------------------------------------------------------------


@pytest.mark.acceptance("N-01", "N-02", "N-03")
@pytest.mark.parametrize(("role", "sees"), [("host", True), ("hermit", False), ("unified", False)])
def test_only_some_roles_are_told_the_platform(open_nexus: OpenNexus, role: str, sees: bool) -> None:
    session = open_nexus(plugins=[Extras()]).session("s", model="gpt-4o", role=role)

    context = session.ask("Why?", platform="slack", platform_actions=["reply"], timezone="Europe/Berlin")

    assert context.current_message is not None
    lines = context.current_message.content.splitlines()
    assert ("Platform: slack" in lines) is sees
    assert ("Available actions: reply" in lines) is sees
    assert "Timezone: Europe/Berlin" in lines


@pytest.mark.acceptance("N-04")
def test_plugins_are_asked_once_in_a_turn_with_all_circumstances(open_nexus: OpenNexus) -> None:
    extras = Extras(Section("git", title="Git", text="Clean.", kind="event"))
    session = open_nexus(plugins=[extras]).session("s", model="claude-sonnet-4", tools=TOOLS)

    first = session.ask("Why?", platform="slack", source="cron", attachments=["a.py"])
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("found"))
    second = session.next()

    (asked,) = extras.asked
    assert (asked.session, asked.platform, asked.source) == ("s", "slack", "cron")
    assert asked.attachments == ({"path": "a.py", "lines": None},)
    assert asked.message is not None
    assert asked.message.content == "Why?"
    assert second.current_message == first.current_message
    assert "## Git\nClean." in first.current_message.content  # type: ignore[union-attr]


def test_a_plugin_may_write_to_the_ledger_while_it_is_asked(open_nexus: OpenNexus, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"

    class Writing(Extras):
        @hookimpl
        def nexus_current_sections(self, request: Request) -> list[Section]:  # noqa: ARG002 - the hook's
            open_nexus(ledger=url).ledger.create("by a plugin")
            return []

    nexus = open_nexus(ledger=url, plugins=[Writing()])

    nexus.session("s", model="gpt-4o").ask("Why?")

    assert {record.label for record in nexus.ledger.sessions()} == {"s", "by a plugin"}


def test_a_program_that_died_before_the_seal_is_followed_by_one_that_asks(
    open_nexus: OpenNexus, ledger: StoreLedger, clock: Clock
) -> None:
    class Dying(Extras):
        @hookimpl
        def nexus_current_sections(self, request: Request) -> list[Section]:  # noqa: ARG002 - the hook's
            raise UsageError("the program died")

    with pytest.raises(UsageError, match="died"):
        open_nexus(plugins=[Dying()]).session("s", model="gpt-4o").ask("Why?", hook_data={"x": 1})
    assert kinds_of(ledger, "s") == ["input", "input"]
    clock.ms += 3_600_000

    context = open_nexus().session("s").next()
    clock.ms += 3_600_000
    again = open_nexus().session("s").next()

    assert context.current_message is not None
    assert context.current_message.content.startswith("Current time: 2026-02-02T03:40:00Z\n")
    assert "x: 1" in context.current_message.content
    assert again == context


# ---- memories -------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("X-04")
def test_nothing_is_remembered_unless_a_plugin_does_it(open_nexus: OpenNexus) -> None:
    alone = open_nexus().session("alone", model="gpt-4o").ask("Why?")
    reminded = open_nexus(plugins=[Extras(memory("tea"))]).session("reminded", model="gpt-4o").ask("Why?")

    assert [each for each in alone.placements if each.kind == "memory"] == []
    assert alone.token_budget.used["memory"] == 0
    assert [each.name for each in reminded.placements if each.kind == "memory"] == ["tea"]


@pytest.mark.acceptance("N-06", "D-06", "X-05")
def test_memories_stay_within_their_budget(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"budget": {"memory": 60}})})
    extras = Extras(memory("tea", 20, priority=1), memory("rain", 40), memory("name", 5, required=True))

    context = open_nexus(plugins=[extras]).session("s", model="gpt-4o").ask("Why?")

    assert context.current_message is not None
    text = context.current_message.content
    assert "## tea" in text
    assert "## name" in text
    assert "## rain" not in text
    placed = {each.name: each for each in context.placements if each.kind == "memory"}
    assert (placed["rain"].tokens, placed["rain"].decision.action) == (0, "dropped")
    assert placed["rain"].decision.rule == "budget.memory"
    assert placed["tea"].decision.action == "kept"
    assert 0 < context.token_budget.used["memory"] <= 60 + 15


@pytest.mark.acceptance("D-01", "D-03")
def test_what_is_kept_free_can_be_set(open_nexus: OpenNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"budget": {"reserve_response": 4000, "reserve_tools": 16000}})})

    budget = open_nexus().session("s", model="gpt-4o").ask("Why?").token_budget

    assert (budget.reserve_response, budget.reserve_tools) == (4000, 16_000)
    assert budget.available == 128_000 - 20_000
    assert budget.remaining == budget.available - sum(budget.used.values())


@pytest.mark.acceptance("D-03")
@pytest.mark.parametrize(("window", "kept_free"), [(128_000, 8000), (64_000, 8000), (32_000, 4000)])
def test_session_keeps_room_for_tool_results_up_to_an_eighth_of_the_window(
    open_nexus: OpenNexus, nexus_home: Path, window: int, kept_free: int
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"models": {"own": {"window": window}}})})

    budget = open_nexus().session("s", model="own").ask("Why?").token_budget

    assert budget.reserve_tools == kept_free
    assert budget.limit == budget.reserve_response + budget.reserve_tools + budget.total + budget.remaining


# ---- tools ----------------------------------------------------------------------------------------------------------


MAIL = {"name": "mail", "input_schema": {"type": "object"}, "permissions": ["mail.send"]}
CHAT_MAIL = {"type": "function", "function": {"name": "mail", "parameters": {}, "permissions": ["mail.send"]}}


@pytest.mark.acceptance("G-02")
@pytest.mark.parametrize("mail", [MAIL, CHAT_MAIL], ids=["anthropic", "openai"])
@pytest.mark.parametrize(
    ("granted", "offered"),
    [(None, ["look", "mail"]), ([], ["look"]), (["read"], ["look"]), (["read", "mail.send"], ["look", "mail"])],
)
def test_permissions_filter_the_tools_that_need_them(
    open_nexus: OpenNexus, mail: dict[str, Any], granted: list[str] | None, offered: list[str]
) -> None:
    session = open_nexus().session("s", model="claude-sonnet-4", tools=[*TOOLS, mail], permissions=granted)

    context = session.ask("Why?")

    assert [tool.name for tool in context.tools] == offered
    refused = {each.name: each.decision.rule for each in context.placements if each.decision.action == "dropped"}
    assert refused == ({} if "mail" in offered else {"mail": "permission mail.send"})
    assert "mail.send" not in json.dumps(context.to("anthropic")["tools"])


@pytest.mark.acceptance("G-02")
def test_permissions_that_change_change_the_tools_and_workers_inherit_them(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.session("s", model="claude-sonnet-4", tools=[*TOOLS, MAIL], permissions=["mail.send"])
    first = session.ask("Why?")
    session.record(says("So."))

    second = nexus.session("s", permissions=["read"]).ask("And?")
    worker = nexus.session("s").spawn("Read the log.").ask("Begin.")

    assert [len(each.tools) for each in (first, second, worker)] == [2, 1, 1]


@pytest.mark.acceptance("G-02")
def test_tool_of_a_plugin_can_need_permissions(open_nexus: OpenNexus) -> None:
    class Mail:
        @hookimpl
        def nexus_tools(self) -> list[Tool]:
            return [Tool(name="mail", permissions=("mail.send",))]

    nexus = open_nexus(plugins=[Mail()])

    assert [tool.name for tool in nexus.session("a", model="gpt-4o").ask("Why?").tools] == ["mail"]
    assert nexus.session("b", model="gpt-4o", permissions=["read"]).ask("Why?").tools == ()


def test_permissions_of_a_tool_must_be_a_list(open_nexus: OpenNexus) -> None:
    with pytest.raises(UsageError, match="permissions of the tool 'mail' must be a list"):
        open_nexus().session("s", model="gpt-4o", tools=[{**MAIL, "permissions": "mail.send"}])


@pytest.mark.acceptance("G-02", "W-06", "C-34", "V-11")
def test_tools_of_plugins_follow_the_callers_and_role_and_settings_filter_them(
    open_nexus: OpenNexus, nexus_home: Path
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"permissions": {"tools": {"deny": ["zip"]}}})})
    nexus = open_nexus(plugins=[Extras()])

    everything = nexus.session("a", model="claude-sonnet-4", tools=TOOLS).ask("Why?")
    hermit = nexus.session("b", model="claude-sonnet-4", tools=TOOLS, role="hermit").ask("Why?")

    assert [tool.name for tool in everything.tools] == ["look", "mail"]
    assert [tool.name for tool in hermit.tools] == ["look"]
    assert everything.tools[0].description == "Look at a file."
    assert everything.token_budget.used["tools"] > hermit.token_budget.used["tools"] > 0
    refused = {
        (each.name, each.source.uri): each.decision.rule
        for each in hermit.placements
        if each.kind == "tool" and each.decision.action == "dropped"
    }
    assert refused == {
        ("zip", f"plugin:{plugin_name(nexus)}"): "permissions.tools.deny",
        ("mail", f"plugin:{plugin_name(nexus)}"): "role hermit",
        ("look", f"plugin:{plugin_name(nexus)}"): "another tool has that name",
    }


def plugin_name(nexus: Nexus) -> str:
    return next(plugin.name for plugin in nexus.plugins if "xtras" in plugin.name)


# ---- placements -----------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("Y-01", "Y-02", "Y-03", "D-09")
def test_every_piece_says_where_it_comes_from_and_what_it_takes(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n", ".nexus3/SOUL.md": "Calm.\n"})
    extras = Extras(memory("tea"), Section("git", title="Git", text="Clean.", kind="event"))
    session = open_nexus(plugins=[extras]).session("s", model="gpt-4o", tools=TOOLS)
    session.ask("Why?")
    session.record(says("Because."))

    context = session.ask("And?")

    placed = context.placements
    assert [each.zone for each in placed] == sorted(
        (each.zone for each in placed), key=["static", "history", "current"].index
    )
    kinds = {each.kind for each in placed}
    assert {"workspace", "session", "memory", "event", "tool"} <= kinds
    texts = {each.source.uri for each in placed if each.zone == "static" and each.source.is_file}
    assert str(tmp_path / "work/NEXUS.md") in texts
    assert {each.decision.action for each in placed} <= {"kept", "dropped"}
    budget = context.token_budget.used
    told = {zone: sum(each.tokens for each in placed if each.zone == zone) for zone in ("history", "current")}
    assert told == {"history": budget["history"], "current": budget["memory"] + budget["event"]}
    assert session.next().placements == placed


def test_a_session_that_names_no_model_says_so(open_session: OpenSession) -> None:
    unnamed = open_session("x", model=None).ask("hi")
    named = open_session("y", model="gpt-4o").ask("hi")

    assert [finding.code for finding in unnamed.findings] == ["no-model"]
    assert named.findings == ()


def test_permissions_of_a_tool_that_are_null_are_none_and_are_not_sent(open_nexus: OpenNexus) -> None:
    mail = {"type": "function", "function": {"name": "mail", "parameters": {"type": "object"}}, "permissions": None}

    call = open_nexus().session("s", model="gpt-4o", tools=[mail], permissions=[]).ask("Why?")

    [sent] = call.to("openai")["tools"]
    assert sorted(sent) == ["function", "type"]
