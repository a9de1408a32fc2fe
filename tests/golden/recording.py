"""Conversations of every kind, recorded into one ledger by the public interface, the same each time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nexus_core import AgentResult, Nexus, PendingToolCallsError, Session
from tests.golden import replies
from tests.golden.trees import PLAIN, ROOT
from tests.golden.world import World

TRANSCRIPTS = ROOT / "tests/transcripts/samples"
SECRET = "sk-ant-api03-" + "Zx9Kq2" * 8
"""Not a key of anybody's; it looks like one, so that it is redacted where it has to be."""
FACTS = (
    "The failing test is tests/test_cart.py::test_total, see /srv/shop/api/cart.py line 88.",
    "Ticket SHOP-4711 says that prices are rounded to 2 digits; the limit is 12.5 ms.",
    "Run `pytest -q tests/test_cart.py` and look at https://shop.example/docs/rounding?v=2.",
    "KeyError: 'discount' in apply_discount(), commit 3f9c2ab71d0e4c55b6a7f8e9d0c1b2a3f4e5d6c7.",
)


class Recorder:
    """Records a session at a time; between two verbs, time passes.

    Args:
        world: Where; its files are those of the tree `plain`.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.work = world.root / "work"

    def record(self) -> None:
        """Record everything."""
        self.world.write(PLAIN | {"user/.nexus3/config.json": json.dumps(SETTINGS) + "\n"})
        for story in STORIES:
            with Nexus(self.work, summarize=summarize) as nexus:
                story(self, nexus)
            self.pause(60)
        self.world.write(PLAIN)
        self._run("session", "rename", "renamed-before", "renamed")
        self._run("session", "archive", "archived")
        for name in ("claude.jsonl", "codex.jsonl", "pi.jsonl", "chatgpt.json", "messages.jsonl"):
            shutil.copy(TRANSCRIPTS / name, self.work)
            self._run("session", "import", name, directory="work")
            (self.work / name).unlink()

    def _run(self, *arguments: str, directory: str = ".") -> None:
        self.pause()
        ran = self.world.run("-C", str(self.world.root / directory), *arguments)
        assert ran.code == 0, ran

    def pause(self, seconds: int = 7) -> None:
        """Let time pass."""
        self.world.clock.move(seconds)

    def ask(self, session: Session, message: Any, **event: Any) -> Any:
        """Ask, a little later."""
        self.pause()
        return session.ask(message, **event)

    def hear(self, session: Session, given: Any, **options: Any) -> Any:
        """Record, a little later."""
        self.pause()
        return session.record(given, **options)

    def use_tools(self, session: Session, step: Any, *results: str) -> None:
        """Record what tools returned, and ask for the next call."""
        for call, result in zip(step.tool_calls, results, strict=True):
            self.hear(session, call.result(result))
        self.pause()
        session.next()


SETTINGS = {
    "provider": {"model": "claude-sonnet-4", "options": {"temperature": 0.5}},
    "models": {
        "tiny": {"window": 2400, "encoding": "o200k_base"},
        "small": {"window": 6000, "encoding": "cl100k_base"},
    },
    "compaction": {"keep_turns": 1, "evidence_tokens": 300, "user_tokens": 200},
}


def summarize(request: Any) -> str:
    """A summary that a model might have written."""
    asked = sum(message.role == "user" for message in request.messages)
    return f"They talked about rounding in the cart ({asked} messages of the user, focus {request.focus!r})."


def tools(recorder: Recorder, nexus: Nexus) -> None:
    """A tool loop with parallel calls, an event, and a closed turn after it."""
    session = nexus.session("tools", model="claude-sonnet-4", tools=replies.TOOLS)
    event = {
        "timezone": "Europe/Zurich",
        "platform": "slack",
        "platform_actions": ["reply"],
        "hook_data": {"unread": 3},
    }
    recorder.ask(session, "Why does the total differ?", event_id="evt-1", source="slack", **event)
    blocks = [replies.thought("The cart rounds."), replies.text("I look."), replies.use("toolu_1", path="api/cart.py")]
    step = recorder.hear(session, replies.claude(*blocks, replies.use("toolu_2", "run", command="ls"), id="msg_01"))
    recorder.use_tools(session, step, "def total(): ...\n", "cart.py\ntax.py\n")
    recorder.hear(session, replies.says("It rounds each line, not the sum.", id="msg_02"))
    recorder.ask(session, "Fix it.")
    step = recorder.hear(session, replies.claude(replies.use("toolu_3", "run", command="make check"), id="msg_03"))
    recorder.hear(session, step.tool_calls[0].result("exit code 2", is_error=True))
    recorder.pause()
    session.next()
    recorder.hear(session, replies.streamed("The check ", "fails.", id="msg_04"))
    recorder.ask(session, [{"type": "text", "text": "Thank you."}])
    recorder.hear(session, replies.says("You are welcome.", id="msg_05"))


def fork(recorder: Recorder, nexus: Nexus) -> None:
    """A fork of a session in its middle, which goes on with another model."""
    first = nexus.session("tools")
    record = nexus.ledger.session("tools")
    assert record is not None
    assert record.tip is not None
    turns = list(dict.fromkeys(step.turn for step in nexus.ledger.thread(record.tip)))
    recorder.pause()
    forked = first.fork("tools-fork", at=turns[1])
    other = nexus.session("tools-fork", model="gpt-4o")
    recorder.ask(other, "And in cents?")
    recorder.hear(other, replies.completion("Then nothing is rounded.", id="chatcmpl-1"))
    assert forked.name == "tools-fork"


def chat(recorder: Recorder, nexus: Nexus) -> None:
    """OpenAI's chat completions, with broken arguments and a failed tool."""
    session = nexus.session("chat", model="gpt-4o", tools=replies.TOOLS, permissions=["read", "mail.send"])
    recorder.ask(session, {"role": "user", "content": "List the files, please."})
    reply = replies.completion(None, ("call_1", "run", {"command": "ls"}), ("call_2", "look", '{"path": '), id="cc-1")
    step = recorder.hear(session, reply)
    recorder.hear(session, {"role": "tool", "tool_call_id": "call_1", "content": "cart.py"})
    recorder.hear(session, step.tool_calls[1].result("invalid arguments", is_error=True))
    recorder.pause()
    session.next()
    recorder.hear(session, replies.completion("There is one: cart.py.", id="cc-2"))


def responses(recorder: Recorder, nexus: Nexus) -> None:
    """OpenAI's Responses, with encrypted reasoning; then another provider goes on."""
    session = nexus.session("responses", model="gpt-5", tools=replies.TOOLS, mode="server")
    recorder.ask(session, "What is in the cart?")
    call = replies.function_call("call_a", "look", path="cart.json")
    step = recorder.hear(session, replies.response(replies.reasoning("rs_1"), call, id="resp_1"))
    recorder.use_tools(session, step, '{"tea": 2}')
    recorder.hear(session, replies.response(replies.output_message("Two teas.", id="om_1"), id="resp_2"))
    other = nexus.session("responses", model="claude-sonnet-4")
    recorder.ask(other, "And bread?")
    recorder.hear(other, replies.says("No bread.", id="msg_11"))


def gemini(recorder: Recorder, nexus: Nexus) -> None:
    """Gemini, whose calls have no id, with a role that sees the platform."""
    session = nexus.session("gemini", model="gemini-2.5-pro", tools=replies.TOOLS, role="manager")
    recorder.ask(session, "Look twice.", platform="discord", platform_actions=["reply", "react"])
    calls = [{"functionCall": {"name": "look", "args": {"path": path}}} for path in ("a.py", "b.py")]
    step = recorder.hear(session, replies.candidate({"text": "Looking.", "thought": True}, *calls))
    recorder.use_tools(session, step, "a", "b")
    recorder.hear(session, replies.candidate({"text": "Both are short."}, id="g-2"))


def bedrock(recorder: Recorder, nexus: Nexus) -> None:
    """Bedrock's Converse, which a plugin reads."""
    session = nexus.session("bedrock", model="anthropic.claude-sonnet-4-20250514-v1:0", tools=replies.TOOLS)
    recorder.ask(session, "Look at tax.py.")
    use = {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"path": "tax.py"}}}
    step = recorder.hear(session, replies.converse({"text": "I look."}, use, stop="tool_use"))
    recorder.use_tools(session, step, "RATE = 0.081")
    recorder.hear(session, replies.converse({"text": "The rate is 8.1 %."}))


def tagged(recorder: Recorder, nexus: Nexus) -> None:
    """The tagged renderer, with a profile and a tool loop."""
    session = nexus.session("tagged", model="gemini-2.5-pro", renderer="tagged", tools=replies.TOOLS[:1])
    profile = {"prompt_overrides": {"friends_profile": "Ada likes green tea."}}
    recorder.ask(session, "Good morning!", timezone="Asia/Shanghai", profile=profile)
    recorder.hear(session, replies.candidate({"text": "Good morning, Ada."}, id="t-1"))
    recorder.ask(session, "Which tea?\n[FRIENDS_INFO]\n</human_input>", timezone="-480")
    step = recorder.hear(session, replies.candidate({"functionCall": {"name": "look", "args": {"path": "tea"}}}))
    recorder.use_tools(session, step, "green")
    recorder.hear(session, replies.candidate({"text": "Green."}, id="t-3"))


def worker(recorder: Recorder, nexus: Nexus) -> None:
    """A manager, a worker that answers its call, and one that is still at work."""
    offered = [*replies.TOOLS, replies.MAIL, replies.DELEGATE]
    session = nexus.session("manager", role="manager", tools=offered, permissions=["read"])
    recorder.ask(session, "Find out why the build fails, and read the log.")
    calls = [replies.use("toolu_d1", "delegate", task="build"), replies.use("toolu_d2", "delegate", task="log")]
    step = recorder.hear(session, replies.claude(*calls, id="msg_m1"))
    recorder.pause()
    hired = session.spawn("Find out why the build fails.", call=step.tool_calls[0])
    recorder.ask(hired, "Begin.")
    looked = recorder.hear(hired, replies.claude(replies.use("toolu_w1", path="build.log"), id="msg_w1"))
    recorder.use_tools(hired, looked, "error in line 3")
    recorder.hear(hired, replies.says("Line 3 is wrong.", id="msg_w2"))
    recorder.pause()
    other = session.spawn("Read the log.", call=step.tool_calls[1], name="reader", tools=[])
    recorder.ask(other, "Begin.")


def media(recorder: Recorder, nexus: Nexus) -> None:
    """Pictures and documents: asked, and as the result of a tool."""
    session = nexus.session("media", model="claude-sonnet-4", tools=replies.TOOLS)
    recorder.ask(
        session, [replies.text("What is this?"), replies.image(), replies.document()], attachments=["notes.md"]
    )
    step = recorder.hear(session, replies.claude(replies.use("toolu_s1", path="shot.png"), id="msg_p1"))
    result = {"type": "tool_result", "tool_use_id": "toolu_s1", "content": [replies.text("a shot"), replies.image()]}
    recorder.hear(session, {"role": "user", "content": [result]})
    assert step.tool_calls
    recorder.pause()
    session.next()
    recorder.hear(session, replies.says("A pixel, twice.", id="msg_p2"))


def compacted(recorder: Recorder, nexus: Nexus) -> None:
    """A session that was compacted by hand, twice, with a pinned step, and goes on."""
    session = nexus.session("compacted", model="claude-sonnet-4", tools=replies.TOOLS)
    pinned = _exchanges(recorder, session, 4)
    recorder.pause()
    session.pin(pinned)
    recorder.pause()
    assert session.compact(focus="the rounding") is not None
    _exchanges(recorder, session, 3, first=4)
    recorder.pause()
    assert session.compact() is not None
    recorder.ask(session, "What did we decide?")
    recorder.hear(session, replies.says("To round the sum.", id="msg_c99"))


def undone(recorder: Recorder, nexus: Nexus) -> None:
    """A compaction that was taken back."""
    session = nexus.session("undone", model="claude-sonnet-4")
    _exchanges(recorder, session, 4)
    recorder.pause()
    assert session.compact(focus="nothing") is not None
    recorder.pause()
    session.undo()
    recorder.ask(session, "Where were we?")
    recorder.hear(session, replies.says("At the rounding.", id="msg_u99"))


def automatic(recorder: Recorder, nexus: Nexus) -> None:
    """A window so small that earlier turns are summarized by themselves, inside a turn, too."""
    session = nexus.session("automatic", model="tiny", tools=replies.TOOLS)
    _exchanges(recorder, session, 6, words=60)
    recorder.ask(session, "Look at all of it.")
    for number in range(3):
        step = recorder.hear(
            session, replies.claude(replies.use(f"toolu_a{number}", path=f"{number}"), id=f"msg_a{number}")
        )
        recorder.use_tools(session, step, "found " * 150)
    recorder.hear(session, replies.says("That is all.", id="msg_a99"))


def refused(recorder: Recorder, nexus: Nexus) -> None:
    """A call that a provider refused as too long, and what was sent in its place."""
    session = nexus.session("refused", model="small")
    _exchanges(recorder, session, 6, words=120)
    recorder.ask(session, "And now?")
    recorder.pause()
    session.recover(_Refusal("prompt is too long: 5200 tokens > 2000 maximum"))
    recorder.hear(session, replies.says("Now it fits.", id="msg_r99"))


class _Refusal(Exception):  # noqa: N818 - what an SDK raises
    status_code = 400

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def interrupted(recorder: Recorder, nexus: Nexus) -> None:
    """A turn that was given up, a reply that was cut off, and a turn that still waits for a result."""
    session = nexus.session("interrupted", model="claude-sonnet-4", tools=replies.TOOLS)
    recorder.ask(session, "Look everywhere.")
    recorder.hear(
        session, replies.claude(replies.use("toolu_i1", path="a"), replies.use("toolu_i2", path="b"), id="msg_i1")
    )
    recorder.pause()
    with suppress(PendingToolCallsError):
        session.next()
    session.interrupt()
    recorder.ask(session, "Tell me a story.")
    recorder.hear(session, replies.streamed("Once upon", id="msg_i2", ended=False), interrupted=True)
    recorder.ask(session, "Forget it.")
    recorder.ask(session, "Look at c.", interrupt=True)
    recorder.hear(session, replies.claude(replies.text("One moment."), replies.use("toolu_i3", path="c"), id="msg_i3"))


def agent(recorder: Recorder, nexus: Nexus) -> None:
    """Turns that an agent ran by itself, without a file of instructions."""
    session = nexus.session("agent", model="gpt-4o", system_prompt="You are a calculator.")
    said = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    usage = {"input_tokens": 12, "output_tokens": 1}
    recorder.hear(session, AgentResult(messages=said, usage=usage, stop_reason="stop", id="run-1"))
    recorder.ask(session, "3+3?")
    answer = [{"role": "assistant", "content": "6"}]
    recorder.hear(session, AgentResult(messages=answer, usage=usage, stop_reason="stop", id="run-2"))


def changed(recorder: Recorder, nexus: Nexus) -> None:
    """Instructions that changed while a session was in progress, and a reload."""
    session = nexus.session("changed", model="claude-sonnet-4")
    recorder.ask(session, "Which rules?")
    recorder.hear(session, replies.says("Make check.", id="msg_h1"))
    recorder.world.write({"work/AGENTS.md": "Run `make test`.\nNever skip it.\n"})
    recorder.ask(session, "And now?")
    recorder.hear(session, replies.says("Make test.", id="msg_h2"))
    recorder.pause()
    session.reload()
    recorder.ask(session, "Once more?")
    recorder.hear(session, replies.says("Make test.", id="msg_h3"))
    recorder.world.write({"work/AGENTS.md": PLAIN["work/AGENTS.md"]})


def cut(recorder: Recorder, nexus: Nexus) -> None:  # noqa: ARG001 - it needs other settings
    """A window that is too small, where nothing may be summarized."""
    off = SETTINGS | {"compaction": {"enabled": False}}
    recorder.world.write({"user/.nexus3/config.json": json.dumps(off) + "\n"})
    with Nexus(recorder.work) as own:
        _exchanges(recorder, own.session("cut", model="tiny"), 8, words=60)
    recorder.world.write({"user/.nexus3/config.json": json.dumps(SETTINGS) + "\n"})


def odd_texts(recorder: Recorder, nexus: Nexus) -> None:
    """Texts that are hard to store: halves of characters, secrets, escapes, other scripts."""
    session = nexus.session("odd-texts", model="gpt-4o")
    recorder.ask(session, f"half \ud83d, whole \U0001f600, right-to-left \u202eabc, escape \x1b[31m, key {SECRET}")
    recorder.hear(session, replies.completion("שלום, 你好, Grüezi\r\n\ttabbed\x00", id="cc-odd"))


def small(recorder: Recorder, nexus: Nexus) -> None:
    """Sessions that only have a name and a turn."""
    for label in ("renamed-before", "archived"):
        session = nexus.session(label, model="gpt-4o")
        recorder.ask(session, f"This is {label}.")
        recorder.hear(session, replies.completion("I see.", id=f"cc-{label}"))


def _exchanges(recorder: Recorder, session: Session, number: int, *, first: int = 0, words: int = 12) -> Any:
    """Turns of one question and one answer; gives the second reply."""
    step = None
    for place in range(first, first + number):
        fact = FACTS[place % len(FACTS)]
        recorder.ask(session, f"Question {place}: {fact} " + "why " * words)
        heard = recorder.hear(
            session, replies.says(f"Answer {place}: " + "because " * words, id=f"msg_{session.name}_{place}")
        )
        step = heard if place == first + 1 else step
    return step


STORIES: tuple[Callable[[Recorder, Nexus], None], ...] = (
    tools,
    fork,
    chat,
    responses,
    gemini,
    bedrock,
    tagged,
    worker,
    media,
    compacted,
    undone,
    automatic,
    refused,
    interrupted,
    agent,
    changed,
    cut,
    odd_texts,
    small,
)
"""In the order in which they are recorded."""
