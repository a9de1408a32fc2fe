"""What is left of planted facts after compactions, beside LangChain's summarisation and a plain prompt.

    python benchmarks/fidelity.py [--facts N] [--tokens N] [--without-peers]

Paths, commands, numbers, identifiers, links and errors are planted in long dialogues with tools. After each stretch of
dialogue everything but the newest turns is summarised, by the same made-up model for all: it keeps the sentences that
it finds interesting, up to so many tokens, and it finds the same sentences interesting whoever asks. Prints for each
way the share of all facts so far that the model still reads, the share that it reads or that are named with the step
that has them, and how long the summary is. Exit code: 0 the goal is met, 1 it is missed. It needs nothing but the
working tree, and `langchain` for its row.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from nexus_core import Nexus  # noqa: E402 - after the path is set
from nexus_core.compaction.chain import SummaryTask, ask_summarisers  # noqa: E402 - as above
from nexus_core.compaction.composing import (  # noqa: E402 - as above
    Evidence,
    compose_summary,
    read_evidence,
    share_out,
    summary_room,
)
from nexus_core.compaction.extractive import extractive_summariser  # noqa: E402 - as above
from nexus_core.compaction.fidelity import stands_in  # noqa: E402 - as above
from nexus_core.compaction.options import CompactionOptions  # noqa: E402 - as above
from nexus_core.compaction.outline import outline_thread  # noqa: E402 - as above
from nexus_core.compaction.planning import select_steps  # noqa: E402 - as above
from nexus_core.compaction.prompts import write_transcript  # noqa: E402 - as above
from nexus_core.session.drivers import run  # noqa: E402 - as above
from nexus_core.tokens.counters import open_counter  # noqa: E402 - as above
from nexus_core.values.compaction import CompactionBudget, Summariser, ThreadMessage  # noqa: E402 - as above
from nexus_core.values.message import Message  # noqa: E402 - as above
from nexus_core.values.parts import Text, ToolCall, ToolResult  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STAGES = (1, 3, 10)
GOAL = 0.95
WINDOW = 64_000
TURNS = 24
COUNTER = open_counter("gpt-4o")
WORDS = re.findall(
    r"\w+",
    "we look into the part that reads the session and writes it back so that the next request finds what it needs "
    "while others wait for their turn because nobody knows yet which of the two layers is to blame for the delay",
)
COMMAND, ERROR = 1, 5
"""Places in `SHAPES`."""


class Fact(NamedTuple):
    """Something planted, and the stretch of dialogue it stands in."""

    text: str
    stretch: int


class Left(NamedTuple):
    """What a model reads after a compaction.

    Attributes:
        text: Summary and messages.
        summary: Tokens of the summary.
        named: By fact, the step that is said to have it.
    """

    text: str
    summary: int
    named: dict[str, str]


class Way:
    """A way to summarise: it is given one stretch of dialogue after the other."""

    def add(self, stretch: list[ThreadMessage]) -> Left:
        """What is left after this one, and all before, are summarised."""
        raise NotImplementedError


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure what is left of facts after compactions.")
    parser.add_argument("--facts", type=int, default=6, metavar="N", help="facts of each class in each stretch (6)")
    parser.add_argument("--tokens", type=int, default=400, metavar="N", help="how long the made-up model writes (400)")
    parser.add_argument("--without-peers", action="store_true", help="leave LangChain out")
    options = parser.parse_args(argv)
    stretches, facts = make_dialogue(max(STAGES), options.facts)
    model = Model(options.tokens)
    own = NexusWay(model)
    ways: dict[str, Way] = {
        "nexus": own,
        "nexus, without a model": NexusWay(None),
        "nexus, evidence off": NexusWay(model, evidence=False),
        "plain prompt": PlainWay(model),
        "plain prompt, as long as nexus": PlainWay(Model(options.tokens), like=own),
    }
    if not options.without_peers:
        ways |= langchain_way(model)
    print(f"{len(facts)} facts, {sum(each.tokens for stretch in stretches for each in stretch):,} tokens of dialogue")
    rows = {name: measure(way, stretches, facts) for name, way in ways.items()}
    print(format_rows(rows))
    reached = rows["nexus"][-1][1]
    print(f"\nread or recoverable after {STAGES[-1]}: {reached:.1%}, goal >= {GOAL:.0%}")
    return 0 if reached >= GOAL else 1


def measure(
    way: Way, stretches: Sequence[list[ThreadMessage]], facts: Sequence[Fact]
) -> list[tuple[float, float, int]]:
    """After each stage: the share that is read, the share that is read or recoverable, and the summary's tokens."""
    said = {each.step: write_transcript([each.message]) for stretch in stretches for each in stretch}
    rows = []
    for number, stretch in enumerate(stretches, 1):
        left = way.add(stretch)
        if number in STAGES:
            so_far = [fact.text for fact in facts if fact.stretch < number]
            read = {fact for fact in so_far if stands_in(fact, left.text)}
            # A step counts only if it has the fact indeed.
            named = {fact for fact in so_far if stands_in(fact, said.get(left.named.get(fact, ""), ""))}
            rows.append((len(read) / len(so_far), len(read | named) / len(so_far), left.summary))
    return rows


def format_rows(rows: dict[str, list[tuple[float, float, int]]]) -> str:
    """A table."""
    head = "".join(f"{f'after {stage}':>28}" for stage in STAGES)
    lines = [f"{'':32}{head}", f"{'':32}" + "   read  or named  tokens   " * len(STAGES)]
    for name, cells in rows.items():
        shown = "".join(f"{read:>7.1%}{either:>10.1%}{tokens:>8,}   " for read, either, tokens in cells)
        lines.append(f"{name:32}{shown}".rstrip())
    return "\n".join(lines)


# The dialogue ---------------------------------------------------------------------------------------------------------


def make_dialogue(stretches: int, each: int) -> tuple[list[list[ThreadMessage]], list[Fact]]:
    """Stretches of dialogue with facts in them; the same every time."""
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
                tokens = COUNTER.count_messages([message])
                messages.append(ThreadMessage(message, step, name, position, tokens, is_input))
                position += 1
        made.append(messages)
    return made, facts


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


# The ways -------------------------------------------------------------------------------------------------------------


class Model:
    """A made-up model: of what it reads it keeps the sentences that it finds interesting, in their order.

    Args:
        tokens: How long it writes.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def __call__(self, prompt: str) -> str:
        """Its answer."""
        # What it is told to do comes first or last; it does not repeat that.
        sentences = [each.strip() for each in re.split(r"(?<=[.!?])\s+|\n+", prompt) if each.strip()]
        ranked = sorted(range(len(sentences)), key=lambda place: _interest(sentences[place]))
        left, chosen = self.tokens, []
        for place in ranked:
            tokens = COUNTER.count(sentences[place]) + 1
            if tokens > left:
                break
            left -= tokens
            chosen.append(place)
        return "\n".join(sentences[place] for place in sorted(chosen))


def _interest(sentence: str) -> bytes:
    return blake2b(sentence.encode(), digest_size=8).digest()


class NexusWay(Way):
    """The parts of a session's compaction, one after the other.

    Args:
        model: Who writes; None for the summariser that needs no model.
        evidence: Whether facts and the user's words stand beside the prose.
    """

    def __init__(self, model: Callable[[str], str] | None, *, evidence: bool = True) -> None:
        self._chain = [extractive_summariser(COUNTER.count)]
        if model is not None:
            self._chain.insert(0, Summariser(name="model", summarise=lambda request: model(request.prompt)))
        self._options = CompactionOptions(evidence=evidence)
        self._host = Nexus(layers=False, installed=False).host
        self._kept: tuple[ThreadMessage, ...] = ()
        self._prose, self._evidence = "", Evidence()
        self.sizes: list[int] = []

    def add(self, stretch: list[ThreadMessage]) -> Left:
        """Select, summarise, compose."""
        options, room = self._options, summary_room(self._options, WINDOW)
        thread = outline_thread((*self._kept, *stretch))
        budget = CompactionBudget(available=WINDOW, target=0, summary=room, keep_turns=options.keep_turns)
        selection = select_steps(self._host, thread, budget, COUNTER)
        if selection is None:
            raise RuntimeError("there is nothing to summarise")
        shares = share_out(selection.room, facts=options.evidence_tokens, words=options.user_tokens, prose=400)
        said = [each.message for each in selection.covered_messages]
        task = SummaryTask(said, shares.prose, previous=self._prose, redact=options.redact_secrets)
        summary = run(ask_summarisers(task, self._chain, COUNTER.count))
        done = compose_summary(
            summary.text,
            covered=selection.covered_messages,
            kept=selection.kept_messages,
            previous=self._evidence,
            shares=shares,
            evidence=options.evidence,
            policy=options.fidelity,
            count=COUNTER.count,
        )
        # As it comes back from a ledger.
        self._prose, self._evidence = done.prose, read_evidence(done.evidence.to_json())
        self._kept = selection.kept_messages
        self.sizes.append(COUNTER.count(done.text))
        text = f"{done.text}\n{write_transcript(each.message for each in self._kept)}"
        return Left(text, self.sizes[-1], {fact.text: fact.step for fact in self._evidence.facts})


class PlainWay(Way):
    """A plain request for a summary; the newest three turns stay.

    Args:
        model: Who writes.
        like: Write as long as that way did, stretch by stretch.
    """

    def __init__(self, model: Model, like: NexusWay | None = None) -> None:
        self._model = model
        self._like = like
        self._stretch = 0
        self._messages: list[Message] = []

    def add(self, stretch: list[ThreadMessage]) -> Left:
        """Summarise all but the newest turns."""
        if self._like is not None:
            self._model.tokens = self._like.sizes[self._stretch]
        self._stretch += 1
        self._messages += [each.message for each in stretch]
        kept = self._messages[-12:]
        summary = self._model(f"Summarise this conversation:\n\n{write_transcript(self._messages[:-12])}")
        self._messages = [Message("user", summary), *kept]
        return Left(write_transcript(self._messages), COUNTER.count(summary), {})


def langchain_way(model: Model) -> dict[str, Way]:
    """LangChain's middleware; nothing, and a message, where it is not installed."""
    try:
        from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415 - a peer that may be missing
        from langchain_core.language_models import FakeListChatModel  # noqa: PLC0415 - as above
        from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage  # noqa: PLC0415 - as above
    except ImportError as error:
        print(f"langchain cannot be imported, its row is left out: {error}", file=sys.stderr)
        return {}

    class Fake(FakeListChatModel):
        """The made-up model as LangChain wants it."""

        def _call(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> str:  # noqa: ANN401, ARG002 - as theirs
            return model(str(getattr(messages[-1], "content", "")))

    def translated(message: Message) -> object:
        if message.tool_results:
            result = message.tool_results[0]
            return ToolMessage(result.text, tool_call_id=result.call_id)
        calls = [{"id": call.id, "name": call.name, "args": dict(call.arguments)} for call in message.tool_calls]
        return (
            AIMessage(message.content, tool_calls=calls)
            if message.role == "assistant"
            else HumanMessage(message.content)
        )

    class LangChainWay(Way):
        def __init__(self, limit: int | None) -> None:
            self._middleware = SummarizationMiddleware(
                Fake(responses=[""]), trigger=("messages", 30), keep=("messages", 12), trim_tokens_to_summarize=limit
            )
            self._messages: list[object] = []

        def add(self, stretch: list[ThreadMessage]) -> Left:
            self._messages += [translated(each.message) for each in stretch]
            changed = self._middleware.before_model({"messages": self._messages}, None)  # type: ignore[arg-type, typeddict-item]
            if changed is not None:
                self._messages = [each for each in changed["messages"] if not isinstance(each, RemoveMessage)]
            texts = [f"{getattr(each, 'content', '')} {getattr(each, 'tool_calls', '')}" for each in self._messages]
            return Left("\n".join(texts), COUNTER.count(texts[0]), {})

    return {"langchain, as it comes": LangChainWay(4000), "langchain, nothing trimmed": LangChainWay(None)}


if __name__ == "__main__":
    sys.exit(main())
