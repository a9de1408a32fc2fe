"""Threads for tests: messages in steps and turns, and a counter that can be followed by eye."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from nexus_core.types.compaction import Summarizer, SummaryRequest, ThreadMessage
from nexus_core.types.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult


def words(text: str) -> int:
    """One token a word."""
    return len(text.split())


def said(text: str, step: str = "s1", position: int = 0) -> ThreadMessage:
    return ThreadMessage(Message("user", text), step, step, position, words(text), is_input=True)


def answered(text: str, step: str = "s2", position: int = 1) -> ThreadMessage:
    return ThreadMessage(Message("assistant", text), step, "s1", position, words(text))


def called(
    name: str, arguments: dict[str, Any], result: str = "ok", position: int = 2, **more: Any
) -> list[ThreadMessage]:
    """A call in one step and its result in the next."""
    call = Message("assistant", (ToolCall(f"c{position}", name, arguments),))
    brought = Message("tool", (ToolResult(f"c{position}", result, name, **more),))
    return [
        ThreadMessage(call, f"s{position}", "s1", position, 10),
        ThreadMessage(brought, f"s{position + 1}", "s1", position + 1, words(result)),
    ]


def turns(*sizes: Sequence[int], open_last: bool = False) -> list[ThreadMessage]:
    """Turns t0, t1, …: of each the tokens of its input, and of its groups, which are calls with their results.

    The last group of a closed turn is an answer.
    """
    messages: list[ThreadMessage] = []
    for number, (event, *groups) in enumerate(sizes):
        turn = f"t{number}"
        messages.append(ThreadMessage(Message("user", turn), turn, turn, len(messages), event, is_input=True))
        for place, tokens in enumerate(groups):
            is_answer = place == len(groups) - 1 and not (open_last and number == len(sizes) - 1)
            if is_answer:
                answer = Message("assistant", f"done {turn}")
                messages.append(ThreadMessage(answer, f"{turn}.{place}", turn, len(messages), tokens))
                continue
            name = f"{turn}-{place}"
            call = Message("assistant", (ToolCall(name, "bash", {}),))
            result = Message("tool", (ToolResult(name, "ok", "bash"),))
            messages.append(ThreadMessage(call, f"{turn}.{place}", turn, len(messages), tokens - 1))
            messages.append(ThreadMessage(result, f"{turn}.{place}r", turn, len(messages), 1))
    return messages


def make_thread(seed: int) -> tuple[list[ThreadMessage], str]:
    """A thread with calls of tools, each message in a step of its own or several in one; and its open turn, or ""."""
    dice = Random(seed)  # noqa: S311 - a conversation, not a secret
    messages: list[ThreadMessage] = []

    def add(message: Message, step: str, *, is_input: bool = False) -> None:
        messages.append(ThreadMessage(message, step, turn, len(messages), dice.randint(1, 60), is_input))

    count, is_open = dice.randint(1, 7), dice.random() < 0.5
    for number in range(count):
        turn = f"t{number}"
        add(Message("user", turn), turn, is_input=True)
        for step in range(dice.randint(0, 4)):
            name, together = f"{turn}.{step}", dice.random() < 0.3
            for place, message in enumerate(_tool_turn(dice, name)):
                add(message, name if together or place == 0 else f"{name}.{place}")
        if number < count - 1 or not is_open:
            add(Message("assistant", "done"), f"{turn}.end")
    return messages, f"t{count - 1}" if is_open else ""


def _tool_turn(dice: Random, name: str) -> list[Message]:
    """Some calls with all their results, in any order, in one message or several; maybe with a thought and words."""
    ids = [f"{name}-{place}" for place in range(dice.randint(1, 3))]
    before: list[Part] = [part for part in (Reasoning(text="hm"), Text("I look.")) if dice.random() < 0.5]
    asked = [Message("assistant", (*before, *(ToolCall(each, "bash", {}) for each in ids)))]
    if dice.random() < 0.2:  # an answer in several items
        asked = [Message("assistant", (part,)) for part in asked[0].parts]
    results = [ToolResult(each, "ok", "bash") for each in dice.sample(ids, len(ids))]
    together = dice.random() < 0.5
    return [*asked, *([Message("tool", results)] if together else [Message("tool", (each,)) for each in results])]


threads = st.integers(0, 2**32).map(make_thread)
"""Any of them."""


class Fake:
    """A summarizer that answers what it is told to and remembers what it was asked."""

    def __init__(self, *answers: Any, name: str = "fake", window: int = 0, asks_model: bool = True) -> None:
        self.answers = list(answers)
        self.asked: list[SummaryRequest] = []
        self.summarizer = Summarizer(name=name, summarise=self, window=window, asks_model=asks_model)

    def __call__(self, request: SummaryRequest) -> Any:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(request) if callable(answer) else answer


def conversation(turns: int = 12) -> list[Message]:
    """A conversation of some length about login, with tools."""
    messages: list[Message] = []
    for number in range(turns):
        messages.append(
            Message("user", f"Please look at src/part{number}.py, the login is slow there again. Why is that?")
        )
        call = ToolCall(f"c{number}", "bash", {"command": f"pytest tests/test_part{number}.py"})
        messages.append(Message("assistant", (Text("I run the tests of that part first."), call)))
        output = (
            f"collected 3 items\nFAILED tests/test_part{number}.py::test_login\nKeyError: 'user{number}'\nexit code: 1"
        )
        messages.append(Message("tool", (ToolResult(f"c{number}", output, "bash"),)))
        messages.append(
            Message("assistant", f"The session is read twice in part {number}. I cache it now, and login is fast.")
        )
    return messages
