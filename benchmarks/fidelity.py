"""What is left of planted facts after compactions, beside LangChain's summarization and a plain prompt.

    python benchmarks/fidelity.py [--facts N] [--tokens N] [--transcripts DIR] [--quick] [--cache DIR]
                                  [--without-peers] [--json FILE]

Paths, commands, numbers, identifiers, links and errors are planted in long dialogues with tools. After each stretch of
dialogue everything but the newest turns is summarized, by the same made-up model for all: it keeps the sentences that
it finds interesting, up to so many tokens, and it finds the same sentences interesting whoever asks. Prints for each
way the share of all facts so far that the model still reads, and how long the summary is. A fact that only the ledger
knows, with the step that has it, is not counted: the model cannot see that it is there. The detail says how many more
those are. Exit code: 0 the goal is met, 1 it is missed. It needs nothing but the
working tree; `langchain` is installed into a venv of its own.

Where `--transcripts` (or NEXUS_CORPUS) names a folder of transcripts, real sessions of coding agents are sent again
call by call as well, without a model, in windows of 32,768 and 131,072 tokens. Patterns that are not those of the
product find user rules, edited files, commands, errors and decisions in them. After the tenth (fourth) compaction, or
the last, the rows say which share of all facts so far the model still reads, which share it reads or finds named with
its step, how much of the window the summary has, how much the compactions freed, and how much of each call repeats the
one before.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from abc import ABC, abstractmethod
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.agent_facts import (  # noqa: E402 - after the path is set
    AGENT_FACT_KINDS,
    AgentFact,
    find_agent_facts,
    normalize,
    read_text,
)
from benchmarks.measuring.conversations import Call, is_call, measure_piece, read_conversations  # noqa: E402 - as above
from benchmarks.measuring.dialogues import Fact, make_dialogue  # noqa: E402 - as above
from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - as above
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_core.compaction.compose import (  # noqa: E402 - as above
    ComposedSummary,
    Evidence,
    compose_summary,
    compute_summary_limit,
    divide_summary_limit,
    occurs_in,
    read_evidence,
)
from nexus_core.compaction.extractive import extractive_summarizer  # noqa: E402 - as above
from nexus_core.compaction.plan import outline_thread, select_steps  # noqa: E402 - as above
from nexus_core.compaction.prompts import write_transcript  # noqa: E402 - as above
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers  # noqa: E402 - as above
from nexus_core.compaction.trigger import CompactionOptions  # noqa: E402 - as above
from nexus_core.runner import run  # noqa: E402 - as above
from nexus_core.tokens.counters import open_counter  # noqa: E402 - as above
from nexus_core.types.compaction import CompactionBudget, Summarizer, ThreadMessage  # noqa: E402 - as above
from nexus_core.types.messages import Message  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core import AssembledContext
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import ToolCall

INSIDE = "--inside"
"""For the part that runs beside LangChain."""
STAGES = (1, 3, 10)
GOALS = {("nexus", STAGES[-1]): (Goal(">=", 0.95, quick=0.8),)}  # a quick run looks for worse
WINDOW = 64_000
MODEL = "gpt-4o"
REPLAYS = {32_768: (10, 0.70, 0.95), 131_072: (4, 0.85, 0.95)}
"""By window: the compaction after which sessions are judged, and the shares to read, and to read or find named."""
STEP_SUFFIX = 6
"""Characters of a step's id that a summary shows."""
COUNTER = open_counter("gpt-4o")


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


class Way(ABC):
    """A way to summarise: it is given one stretch of dialogue after the other."""

    @abstractmethod
    def add(self, stretch: list[ThreadMessage]) -> Left:
        """What is left after this one, and all before, are summarized."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    if argv is None and INSIDE in sys.argv:
        facts, tokens = map(int, sys.argv[2:])
        print(
            json.dumps(
                follow_all(langchain_ways(Model(tokens)), *make_dialogue(max(STAGES), facts, COUNTER.count_messages))
            )
        )
        return 0
    script = Script("Measure what is left of facts after compactions.")
    script.number("--facts", "facts", 6, 6, "facts of each class in each stretch")
    script.number("--tokens", "tokens", 400, 400, "how long the made-up model writes")
    script.parser.add_argument(
        "--transcripts", type=Path, default=os.environ.get("NEXUS_CORPUS"), metavar="DIR", help="real transcripts"
    )
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A row for each way and stage."""
    stretches, facts = make_dialogue(max(STAGES), given.facts, COUNTER.count_messages)
    model = Model(given.tokens)
    own = NexusWay(model)
    ways: dict[str, Way] = {
        "nexus": own,
        "nexus, without a model": NexusWay(None),
        "nexus, evidence off": NexusWay(model, evidence=False),
        "plain prompt": PlainWay(model),
        "plain prompt, as long as nexus": PlainWay(Model(given.tokens), like=own),
    }
    found = follow_all(ways, stretches, facts)
    # It is given the working tree, too, for what that depends on.
    if venv := given.peers.get("langchain", str(ROOT)):
        arguments = [str(Path(__file__).resolve()), INSIDE, str(given.facts), str(given.tokens)]
        found |= json.loads(run_program(venv.python, *arguments, environment=clean_environment()))
    tokens = sum(each.tokens for stretch in stretches for each in stretch)
    notes = [f"{len(facts)} facts in {tokens:,} tokens of dialogue."]
    sessions = {} if given.quick or given.transcripts is None else read_conversations(given.transcripts)
    rows = make_rows(found)
    for name, conversation in sessions.items():
        for window in REPLAYS:
            rows += replay_rows(name, window, conversation)
    if sessions:
        notes.append(f"Real sessions: {', '.join(sessions)}.")
    elif not given.quick:
        notes.append("No real sessions: name a folder of transcripts with --transcripts.")
    return Report(rows, given.peers.versions, given.peers.missing, notes)


def make_rows(found: dict[str, list[list[float]]]) -> list[Row]:
    """The shares that the model reads, way by way."""
    return [
        Row(
            f"{way}: facts that the model reads after {stage}",
            read,
            GOALS.get((way, stage), ()),
            "share",
            f"in a summary of {tokens:,.0f} tokens; {either - read:.1%} more in the ledger only".replace("%", " %"),
        )
        for way, stages in found.items()
        for stage, (read, either, tokens) in zip(STAGES, stages, strict=True)
    ]


def follow_all(
    ways: dict[str, Way], stretches: Sequence[list[ThreadMessage]], facts: Sequence[Fact]
) -> dict[str, list[list[float]]]:
    """By way, what `follow` finds."""
    return {name: follow(way, stretches, facts) for name, way in ways.items()}


def follow(way: Way, stretches: Sequence[list[ThreadMessage]], facts: Sequence[Fact]) -> list[list[float]]:
    """After each stage: the share that is read, the share that is read or recoverable, and the summary's tokens."""
    said = {each.step: write_transcript([each.message]) for stretch in stretches for each in stretch}
    rows = []
    for number, stretch in enumerate(stretches, 1):
        left = way.add(stretch)
        if number in STAGES:
            so_far = [fact.text for fact in facts if fact.stretch < number]
            read = {fact for fact in so_far if occurs_in(fact, left.text)}
            # A step counts only if it has the fact indeed.
            named = {fact for fact in so_far if occurs_in(fact, said.get(left.named.get(fact, ""), ""))}
            rows.append([len(read) / len(so_far), len(read | named) / len(so_far), left.summary])
    return rows


# Real sessions --------------------------------------------------------------------------------------------------------


class Compacted(NamedTuple):
    """What a model reads of the facts after a compaction.

    Attributes:
        read: By kind, the facts that it reads, those that are named with a step only, and the others.
        summary: Tokens of the summary.
        freed: Share of the tokens that the compaction removed.
    """

    read: dict[str, tuple[int, int, int]]
    summary: int
    freed: float

    def share(self, *places: int) -> float:
        """The share of all facts in these places of `read`."""
        everything = sum(map(sum, self.read.values()))
        return sum(each[place] for each in self.read.values() for place in places) / max(everything, 1)


def replay_rows(name: str, window: int, conversation: Sequence[dict[str, Any]]) -> list[Row]:
    """The rows of a session in a window; none if it is never compacted there."""
    stage, read_goal, named_goal = REPLAYS[window]
    compacted, cached = replay(conversation, window)
    if not compacted:
        return []
    judged = compacted[:stage][-1]
    title = f"{name}, {window:,} tokens, after {min(stage, len(compacted))}"
    kinds = ", ".join(
        f"{kind} {read} + {named} of {sum(judged.read[kind])}" for kind, (read, named, _) in judged.read.items()
    )
    freed = f"compactions free {min(each.freed for each in compacted):.0%} at least".replace("%", " %")
    return [
        Row(f"{title}: facts that the model reads", judged.share(0), (Goal(">=", read_goal),), "share", kinds),
        Row(f"{title}: or finds named", judged.share(0, 1), (Goal(">=", named_goal),), "share"),
        Row(f"{title}: summary in the window", judged.summary / window, (Goal("<=", 0.25),), "share", freed),
        Row(f"{title}: tokens as in the call before", cached, (), "share"),
    ]


def replay(conversation: Sequence[dict[str, Any]], window: int) -> tuple[list[Compacted], float]:
    """What is left after each compaction, and the share of all tokens that begin as in the call before."""
    config = {"models": {MODEL: {"window": window}}, "budget": {"reserve_response": 8000, "reserve_tools": 0}}
    compacted: list[Compacted] = []
    facts: dict[AgentFact, set[str]] = {}
    calls: dict[str, ToolCall] = {}
    before, shared, total, seen = Call([]), 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch, "work")
        (work / ".nexus3").mkdir(parents=True)
        (work / ".nexus3/config.json").write_text(json.dumps(config))
        with Nexus(work, home=Path(scratch, "home"), installed=False, defaults=False, ledger="memory:") as nexus:
            session = nexus.session("long", model=MODEL)
            for index, message in enumerate(conversation):
                if message["role"] == "user":
                    context = session.ask(message["content"], interrupt=True)
                else:
                    session.record(message)
                    if not is_call(conversation, index):
                        continue
                    context = session.next()
                record = nexus.ledger.session("long")
                steps = nexus.ledger.thread(record.tip, limit=len(conversation) * 4) if record and record.tip else []
                for step in steps[seen:]:
                    for each in step.messages:
                        for fact in find_agent_facts(each, calls):
                            if step.kind != "sealed":
                                facts.setdefault(fact, set()).add(step.id)
                            elif fact in facts:  # the user's message as it was sent, by which a summary names it
                                facts[fact].add(step.id)
                compacted += [judge(step, context, facts) for step in steps[seen:] if step.kind == "compaction"]
                seen = len(steps)
                call = Call([measure_piece(each) for each in context.to("openai", cache=False)["messages"]])
                shared += call.shared_with(before)
                total += call.tokens if before.pieces else 0
                before = call
    return compacted, shared / max(total, 1)


def judge(compaction: Step, context: AssembledContext, facts: Mapping[AgentFact, set[str]]) -> Compacted:
    """Look for facts in a call after a compaction."""
    text = normalize("\n".join(map(read_text, context.messages)))
    read = {kind: [0, 0, 0] for kind in AGENT_FACT_KINDS}
    for (kind, fact), steps in facts.items():
        named = any(step[-STEP_SUFFIX:].lower() in text for step in steps)
        read[kind][0 if fact in text else 1 if named else 2] += 1
    data = dict(compaction.data)
    return Compacted(
        {kind: (found[0], found[1], found[2]) for kind, found in read.items() if sum(found)},
        COUNTER.count(str(data["summary"])),
        1 - float(str(data["tokens_after"])) / float(str(data["tokens_before"])),
    )


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
        model: Who writes; None for the summarizer that needs no model.
        evidence: Whether facts and the user's words stand beside the prose.
    """

    def __init__(self, model: Callable[[str], str] | None, *, evidence: bool = True) -> None:
        self._chain = [extractive_summarizer(COUNTER.count)]
        if model is not None:
            self._chain.insert(0, Summarizer(name="model", summarise=lambda request: model(request.prompt)))
        self._options = CompactionOptions(evidence=evidence)
        self._host = Nexus(layers=False, installed=False).host
        self._kept: tuple[ThreadMessage, ...] = ()
        self._prose, self._evidence = "", Evidence()
        self.sizes: list[int] = []

    def add(self, stretch: list[ThreadMessage]) -> Left:
        """Select, summarise, compose."""
        options, room = self._options, compute_summary_limit(self._options, WINDOW)
        thread = outline_thread((*self._kept, *stretch))
        budget = CompactionBudget(available=WINDOW, target=0, summary=room, keep_turns=options.keep_turns)
        selection = select_steps(self._host, thread, budget, COUNTER)
        if selection is None:
            raise RuntimeError("there is nothing to summarize")
        prose, facts, quotes = divide_summary_limit(selection.summary_limit, prose=400)

        def compose(text: str) -> ComposedSummary:
            return compose_summary(
                text,
                covered=selection.covered_messages,
                kept=selection.kept_messages,
                previous=self._evidence,
                fact_limit=facts,
                quote_limit=quotes,
                evidence=options.evidence,
                policy=options.fidelity,
                count=COUNTER.count,
                limit=selection.summary_limit if options.evidence else 0,
            )

        said = [each.message for each in selection.covered_messages]
        beside = compose("").lists if options.evidence else ""
        task = SummaryTask(said, prose, previous=self._prose, redact=options.redact_secrets, evidence=beside)
        summary = run(ask_summarizers(task, self._chain, COUNTER.count))
        done = compose(summary.text)
        # As it comes back from a ledger.
        self._prose, self._evidence = done.prose, read_evidence(done.evidence.to_payload())
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
        """Summarize all but the newest turns."""
        if self._like is not None:
            self._model.tokens = self._like.sizes[self._stretch]
        self._stretch += 1
        self._messages += [each.message for each in stretch]
        kept = self._messages[-12:]
        summary = self._model(f"Summarize this conversation:\n\n{write_transcript(self._messages[:-12])}")
        self._messages = [Message("user", summary), *kept]
        return Left(write_transcript(self._messages), COUNTER.count(summary), {})


def langchain_ways(model: Model) -> dict[str, Way]:
    """LangChain's middleware."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

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
