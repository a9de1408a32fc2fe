"""Long dialogues with tools, and facts planted in them."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.types.compaction import ThreadMessage
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TURNS = 24
"""Turns of a stretch of dialogue."""
WORDS = re.findall(
    r"\w+",
    "we look into the part that reads the session and writes it back so that the next request finds what it needs "
    "while others wait for their turn because nobody knows yet which of the two layers is to blame for the delay",
)
# Shapes as they come up in the wild, not as they are easiest to find; {} is a number that no other fact has.
SHAPES = (
    (
        "src/module/file{}.py",
        "/var/log/app{}.log",
        "docs/chapter-{}/intro.md",
        "Dockerfile.{}",
        "~/.config/tool{}/settings",
        "my notes {}.txt",
    ),
    ("make target{}", "npm run build:{}", "git rebase -i HEAD~{}", "docker run --rm image:{}", "PORT={} ./start.sh"),
    ("{} ms", "{}.5 GB", "{} requests per second", "${},000", "{} rows", "{} sheep"),
    ("JOB-{}", "order_{}_b2c", "9f8b{}-77aa-4c1d-8e2f-0123456789ab", "c0ffee{}", "v{}.4.1"),
    (
        "https://host{}.example/a",
        "http://127.0.0.1:8080/x?id={}",
        "https://acme.example/wiki/Page_({})",
        "redis://cache{}/0",
    ),
    (
        "ValueError: bad value {}",
        "error TS{}: no overload",
        "FAILED tests/test_x.py::test_{}",
        "ERROR {} (28000): Access denied",
    ),
)
COMMAND, ERROR = 1, 5
"""Places in `SHAPES`."""


class Fact(NamedTuple):
    """Something planted, and the stretch of dialogue it stands in."""

    text: str
    stretch: int


def make_dialogue(
    stretches: int, each: int, count: Callable[[Sequence[Message]], int]
) -> tuple[list[list[ThreadMessage]], list[Fact]]:
    """Stretches of dialogue with so many facts of each class in each; the same every time."""
    dice = random.Random(11)  # noqa: S311 - a dialogue, not a secret
    facts: list[Fact] = []
    used: set[int] = set()
    made: list[list[ThreadMessage]] = []
    position = 0
    for stretch in range(stretches):
        planted = [(kind, _planted(dice, kind, used)) for _ in range(each) for kind in range(len(SHAPES))]
        facts += [Fact(text, stretch) for _, text in planted]
        messages: list[ThreadMessage] = []
        for turn in range(TURNS):
            mine = planted[turn * len(planted) // TURNS : (turn + 1) * len(planted) // TURNS]
            for message, is_input in _turn(dice, mine, f"{stretch}-{turn}"):
                step = f"step{position:06}"
                name = step if is_input else messages[-1].turn
                tokens = count([message])
                messages.append(ThreadMessage(message, step, name, position, tokens, is_input))
                position += 1
        made.append(messages)
    return made, facts


def _planted(dice: random.Random, kind: int, used: set[int]) -> str:
    number = next(each for each in iter(lambda: dice.randint(1000, 9999), 0) if each not in used)
    used.add(number)
    return dice.choice(SHAPES[kind]).format(number)


def _turn(dice: random.Random, facts: Sequence[tuple[int, str]], name: str) -> list[tuple[Message, bool]]:
    """A turn with a question, a call with its result, and an answer; facts in any of them."""

    def talk(sentences: int, told: Sequence[str] = ()) -> str:
        said = [" ".join(dice.choices(WORDS, k=dice.randint(8, 16))).capitalize() + "." for _ in range(sentences)]
        for fact in told:
            said.insert(dice.randint(0, len(said)), f"It is about {fact} here.")
        return " ".join(said)

    commands = [fact for kind, fact in facts if kind == COMMAND]
    errors = [fact for kind, fact in facts if kind == ERROR]
    places: list[list[str]] = [commands[1:], [], []]
    for kind, fact in facts:
        if kind not in (COMMAND, ERROR):
            dice.choice(places).append(fact)
    output = "\n".join([talk(4), *(f"found {fact} again" for fact in places[1]), *errors, "exit code: 1"])
    call = ToolCall(name, "bash", {"command": commands[0] if commands else "make all"})
    return [
        (Message("user", talk(3, places[0])), True),
        (Message("assistant", (Text(talk(2)), call)), False),
        (Message("tool", (ToolResult(name, output, "bash"),)), False),
        (Message("assistant", talk(5, places[2])), False),
    ]
