"""Sessions in the tagged format, from the question to what goes over the wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from nexus_core import AssembledContext, Nexus, Section, UnknownNameError, hookimpl
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.tagged import CORE_IDENTITY, parse
from tests.conftest import ROOT, Cli
from tests.dialects.support import Loopback, listening

TOOLS = [
    {
        "name": "look",
        "description": "Look at a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]
STARTS = ["[CAPABILITIES]", "[SHARED_MEMORY count=", "[FRIENDS_INFO]", "[THIS_MOMENT]"]
CHAT = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}],
}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4",
    "content": [{"type": "text", "text": "Fine."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


def calls(name: str) -> dict[str, Any]:
    function = {"id": name, "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [function]}
    return {**CHAT, "id": name, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def says(text: str, name: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {**CHAT, "id": name, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def begun(nexus: Nexus, **options: Any) -> AssembledContext:
    session = nexus.session("tea", **{"model": "gpt-4o", "tools": TOOLS, "renderer": "tagged"} | options)
    session.ask("Hello!")
    session.record(says("Hi, Ada.", "a"))
    return session.ask("Tea?", timezone="Asia/Shanghai", profile={"prompt_overrides": {"friends_profile": "Ada."}})


def make(make_nexus: MakeNexus, nexus_home: Path, **settings: object) -> Nexus:
    write_files(
        nexus_home, {"config.json": json.dumps({"ledger": {"url": "memory:"}, "plugins": {"tagged": settings}})}
    )
    return make_nexus(files={"NEXUS.md": "Run make check."})


def starts(texts: list[str]) -> list[str]:
    return [next((tag for tag in STARTS if text.startswith(tag)), text) for text in texts]


@pytest.mark.acceptance("Z-01", "C-16")
def test_a_session_is_sent_as_five_messages(make_nexus: MakeNexus, nexus_home: Path) -> None:
    context = begun(make(make_nexus, nexus_home))

    assert context.renderer == "tagged"
    assert context.system_prompt.startswith(CORE_IDENTITY)
    assert "Run make check." in context.system_prompt
    texts = [message.content for message in context.messages]
    assert starts(texts) == STARTS
    assert {message.role for message in context.messages} == {"user"}
    read = parse(*texts)
    assert [(line.speaker, line.text) for line in read.memory] == [("Human", "Hello!"), ("Nexus", "Hi, Ada.")]
    assert (read.friend, read.human_input) == ("Ada.", "Tea?")
    assert read.time.endswith("+08:00")
    assert [tool.name for tool in read.capabilities] == ["look"]


@pytest.mark.acceptance("Z-01")
def test_in_a_tool_loop_the_open_turn_follows(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home)
    session = nexus.session("tea", model="gpt-4o", tools=TOOLS, renderer="tagged")
    first = session.ask("Look!")
    (call,) = session.record(calls("c1")).tool_calls
    session.record(call.result("</human_input>"))

    context = session.next()

    assert context.messages[:4] == first.messages
    assert [message.role for message in context.messages[4:]] == ["assistant", "tool"]


@pytest.mark.acceptance("Z-12")
def test_the_system_prompt_stays_the_same_from_turn_to_turn(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home)
    session = nexus.session("tea", model="gpt-4o", renderer="tagged")

    first = session.ask("a").system_prompt
    session.record(says("b", "r1"))

    assert session.ask("c", profile={"learning": "x"}).system_prompt == first


@pytest.mark.acceptance("C-14")
def test_the_identity_is_placed_with_its_digest(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home)
    write_files(nexus_home, {"CORE_IDENTITY.md": "You are Ada.\n"})

    context = begun(nexus)

    first = context.placements[0]
    assert context.system_prompt.startswith("You are Ada.\n\n# System Configuration\n")
    assert (first.name, first.source.uri) == ("core-identity", str(nexus_home / "CORE_IDENTITY.md"))
    assert len(first.digest) == 32


@pytest.mark.acceptance("C-14", "Z-12")
def test_an_identity_that_is_edited_is_announced_and_the_prompt_stays(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home)
    write_files(nexus_home, {"CORE_IDENTITY.md": "You are Ada.\n"})
    session = nexus.session("tea", model="gpt-4o", renderer="tagged")
    first = session.ask("a")
    session.record(says("b", "r1"))
    write_files(nexus_home, {"CORE_IDENTITY.md": "You are Bob.\n"})

    second = session.ask("c")

    assert second.system_prompt == first.system_prompt
    ((title, notice),) = parse(*(message.content for message in second.messages)).sections
    assert "-You are Ada." in notice
    assert "+You are Bob." in notice
    assert title


@pytest.mark.acceptance("Z-05", "Z-15", "C-14")
def test_the_settings_of_the_plugin_count(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home, single_message=True, language="zh", limit=1)

    (message,) = begun(nexus).messages

    read = parse(message.content)
    assert "最近的对话记忆" in message.content
    assert [(line.speaker, line.text) for line in read.memory] == [("Nexus", "Hi, Ada.")]


def test_a_past_call_is_sent_again_as_it_was_whatever_is_set_now(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home, language="zh", limit=1)
    session = nexus.session("tea", model="gpt-4o", renderer="tagged")
    session.ask("a")
    session.record(says("b", "r1"))
    sent = session.ask("c", timezone="Asia/Shanghai")
    step = session.record(says("d", "r2"))
    write_files(nexus_home, {"config.json": '{"ledger": {"url": "memory:"}}'})
    session.ask("e")

    again = session.replay(step.id)

    assert again.system_prompt == sent.system_prompt
    assert again.messages == sent.messages


def test_the_settings_may_choose_the_renderer(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"renderer": "tagged", "ledger": {"url": "memory:"}}'})

    context = make_nexus().session("tea", model="gpt-4o").ask("Hello!")

    assert context.messages[0].content.startswith("[CAPABILITIES]")


def test_a_renderer_that_is_not_there_is_refused_with_the_nearest(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make(make_nexus, nexus_home)

    with pytest.raises(UnknownNameError, match="did you mean 'tagged'"):
        nexus.session("tea", model="gpt-4o", renderer="taged").ask("x")


@pytest.mark.acceptance("Z-05")
def test_a_long_conversation_is_remembered_by_its_end(make_nexus: MakeNexus, nexus_home: Path) -> None:
    session = make(make_nexus, nexus_home).session("tea", model="gpt-4o", renderer="tagged")
    for number in range(15):
        session.ask(f"question {number}")
        session.record(says(f"answer {number}", f"r{number}"))

    read = parse(*(message.content for message in session.ask("now").messages))

    assert len(read.memory) == 20
    assert (read.memory[0].text, read.memory[-1].text) == ("question 5", "answer 14")


# ---- over the wire ------------------------------------------------------------------------------------------


@pytest.mark.acceptance("Z-15")
def test_the_client_of_openai_sends_five_messages(make_nexus: MakeNexus, nexus_home: Path, loopback: Loopback) -> None:
    # DeepSeek and OpenRouter are spoken to with the same client.
    loopback.answer = CHAT
    context = begun(make(make_nexus, nexus_home))

    with openai.OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as client:
        client.chat.completions.create(**context.to("openai"))

    messages = loopback.body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "user", "user", "user"]
    assert messages[0]["content"] == context.system_prompt
    assert [message["content"] for message in messages[1:]] == [message.content for message in context.messages]
    assert "_tagged" not in json.dumps(loopback.body)


@pytest.mark.acceptance("Z-15")
def test_the_client_of_gemini_sends_four_contents_and_an_instruction(
    make_nexus: MakeNexus, nexus_home: Path, loopback: Loopback
) -> None:
    loopback.answer = GEMINI
    context = begun(make(make_nexus, nexus_home), model="gemini-2.5-pro")

    with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=loopback.url)) as client:
        client.models.generate_content(**context.to("gemini"))

    assert loopback.body["systemInstruction"]["parts"] == [{"text": context.system_prompt}]
    contents = loopback.body["contents"]
    assert {content["role"] for content in contents} == {"user"}
    texts = [part["text"] for content in contents for part in content["parts"]]
    assert texts == [message.content for message in context.messages]


@pytest.mark.acceptance("Z-15")
def test_the_client_of_anthropic_sends_the_blocks_in_their_order(
    make_nexus: MakeNexus, nexus_home: Path, loopback: Loopback
) -> None:
    loopback.answer = CLAUDE
    context = begun(make(make_nexus, nexus_home), model="claude-sonnet-4")

    with anthropic.Anthropic(base_url=loopback.url, api_key="none", max_retries=0) as client:
        client.messages.create(**context.to("anthropic", max_tokens=100))

    sent = json.dumps(loopback.body["messages"], ensure_ascii=False)
    places = [sent.index(json.dumps(message.content, ensure_ascii=False)[1:-1]) for message in context.messages]
    assert places == sorted(places)


@pytest.mark.acceptance("Z-15")
@pytest.mark.parametrize("api", ["openai", "gemini"])
def test_where_several_messages_in_a_row_misbehave_one_is_sent(
    make_nexus: MakeNexus, nexus_home: Path, loopback: Loopback, api: str
) -> None:
    context = begun(make(make_nexus, nexus_home, single_message=True))
    loopback.answer = CHAT if api == "openai" else GEMINI

    if api == "openai":
        with openai.OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as client:
            client.chat.completions.create(**context.to("openai"))
        _, user = loopback.body["messages"]
        text = user["content"]
    else:
        with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=loopback.url)) as google:
            google.models.generate_content(**context.to("gemini"))
        ((part,),) = (content["parts"] for content in loopback.body["contents"])
        text = part["text"]

    assert parse(text).human_input == "Tea?"


# ---- start-up -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", ["{}", '{"plugins": {"environment": {"terminal": true}}}'])
def test_showing_a_prompt_does_not_load_the_plugin(tmp_path: Path, config: str) -> None:
    write_files(tmp_path, {"home/config.json": config})
    code = (
        "import sys; from nexus_core.cli.run import run; "
        f"run(['--home', {str(tmp_path / 'home')!r}, '-C', {str(tmp_path)!r}, 'show']); "
        "print(*[name for name in sys.modules if 'tagged' in name], file=sys.stderr)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "NEXUS_PLUGINS": "none"}

    def show() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=True)

    show()  # new settings are checked once, with the models of all plugins
    outcome = show()

    assert outcome.stdout.startswith("# System Configuration")
    assert outcome.stderr.strip() == ""


def test_the_command_line_lists_the_plugin(cli: Cli) -> None:
    outcome = cli("plugin", "info", "tagged", "--json")

    assert outcome.code == 0
    assert "nexus_renderers" in outcome.out


def test_an_unknown_time_zone_opens_no_turn(make_nexus: MakeNexus, nexus_home: Path) -> None:
    session = make(make_nexus, nexus_home).session("tea", model="gpt-4o", renderer="tagged")

    with pytest.raises(UnknownNameError, match="did you mean 'Europe/Berlin'"):
        session.ask("Tea?", timezone="Europe/Berlni")

    assert not session.is_open
    session.ask("Tea?", timezone="Europe/Berlin")
    assert session.is_open


@pytest.mark.parametrize("limit", [20, 1000])
def test_a_long_session_is_cut_so_that_what_is_made_of_it_fits(
    make_nexus: MakeNexus, nexus_home: Path, limit: int
) -> None:
    nexus = make(make_nexus, nexus_home, limit=limit)
    settings = json.loads((nexus_home / "config.json").read_text())
    settings |= {"models": {"tiny": {"window": 6000}}, "compaction": {"enabled": False}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    tools = [{**TOOLS[0], "name": f"look_{number}", "description": "Look at it. " * 20} for number in range(8)]
    session = nexus.session("tea", model="tiny", tools=tools, renderer="tagged")

    contexts = []
    for number in range(20):
        contexts.append(session.ask(f"Question {number} is " + "long " * 150))
        step = session.record(says("Because.", f"m{number}"))
        assert contexts[-1].token_budget.remaining >= 0
        assert nexus.replay(step.id).messages == contexts[-1].messages

    context = contexts[-1]
    texts = [message.content for message in context.messages]
    assert starts(texts) == STARTS
    assert 0 < len(parse(*texts).memory) < 38
    assert context.decisions


@pytest.mark.parametrize("renderer", ["tagged", "labelled"])
@pytest.mark.parametrize(("room", "is_told"), [(0, False), (300, False), (320, None), (330, None), (400, True)])
def test_a_memory_goes_before_a_call_does_not_fit(
    make_nexus: MakeNexus, nexus_home: Path, renderer: str, room: int, *, is_told: bool | None
) -> None:
    class Remembers:
        @hookimpl
        def nexus_current_sections(self) -> list[Section]:
            return [Section("notes", title="Notes", text="note " * 300, kind="memory")]

    plain = make(make_nexus, nexus_home).session("tea", model="tiny", renderer=renderer).preview("Tea?")
    window = (plain.token_budget.total + room) * 8 // 5 + 4
    write_files(nexus_home, {"config.json": json.dumps({"models": {"tiny": {"window": window}}})})
    nexus = make_nexus(files={"NEXUS.md": "Run make check."}, plugins=[Remembers()])

    context = nexus.assemble(nexus.request(message="Tea?", model="tiny", renderer=renderer))

    assert context.token_budget.remaining >= 0
    assert is_told in (None, "note note" in str(context.messages[-1]))
