"""What a search in conversations finds, beside plain FTS5, and what it costs at a million turns.

    python benchmarks/memory.py [--turns N] [--questions N] [--corpus DIR] [--quick] [--json FILE]

Quality is measured on the conversations of LoCoMo, in `memory/locomo-dev.json` of `--corpus` (or NEXUS_CORPUS): which
share of the annotated evidence is in the best hits, up to so many tokens (8 a line for its id and date). Constants
were tuned on other conversations than those that are named beside a number. Plain FTS5 ranks each turn with its two
neighbours by bm25, in the same run. Foreign questions are asked of another conversation; what is injected are the
twelve turns at most that a message gets, which score as an episode must, if no name is unknown there. On the
transcripts of coding agents below DIR, 60 questions are made by rule from edited files, commands, errors and
decisions: which share has a step with the fact among the first five. Without DIR, only speed is measured: on made-up
turns, one process, warm. The times that a goal is about are those of a clock; CPU times beside them show what a busy
machine added. Exit code: 0 all goals met, 1 a goal missed.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.agent_facts import AgentFactKind, find_agent_facts, normalize, read_text  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import CannotMeasureError, Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import MessageError, Nexus  # noqa: E402 - as above
from nexus_core.memory.recall import MAX_MEMORIES  # noqa: E402 - as above
from nexus_core.memory.search import StepQuery, search_steps  # noqa: E402 - as above
from nexus_core.memory.words import STOP_WORDS, find_query_entities  # noqa: E402 - as above
from nexus_core.tokens.counters import open_counter  # noqa: E402 - as above
from nexus_core.transcripts.read import read_transcript  # noqa: E402 - as above
from nexus_core.types.ledger import NewStep  # noqa: E402 - as above
from nexus_core.types.messages import Message  # noqa: E402 - as above
from nexus_plugins.ledger.postgres import open_postgres  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above
from nexus_plugins.memory._episodes import MIN_SHARE_OF_BEST, find_related_hits  # noqa: E402 - as above
from nexus_plugins.memory._notes import MIN_SETTLED_NS  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.ledger.ledger import StoreLedger
    from nexus_core.memory.search import SearchResult
    from nexus_core.types.messages import ToolCall
    from nexus_plugins.ledger.sqlite import SqliteLedger

LOCOMO = Path("memory", "locomo-dev.json")
BUDGETS = (500, 1000, 2000, 4000)
LINE_TOKENS = 8
"""Tokens of a line for its id and date."""
MAX_HITS = 400
JUDGED = ("/conv-30", "/conv-42")
"""Conversations that constants were not tuned on, though variants were compared on them."""
MULTI_HOP = 1
"""The category of a question whose evidence is in several places."""
ASKED_KINDS: tuple[AgentFactKind, ...] = ("edited", "command", "error", "decision")
QUESTIONS_PER_KIND = 15
TURNS_PER_SESSION, SESSIONS_PER_DIRECTORY = 25, 24
STOP_WORD_SHARE = 0.45
"""The share of frequent words in English text."""
_EVIDENCE = re.compile(r"D\d+:\d+")


class Question(NamedTuple):
    """A question of LoCoMo: its conversation, text and category, and the turns with its evidence."""

    directory: str
    text: str
    category: int
    evidence: tuple[str, ...]


class Conversations(NamedTuple):
    """The conversations of LoCoMo in a ledger: turns by id with text and tokens, and the questions."""

    ledger: SqliteLedger
    turns: dict[str, dict[str, tuple[str, int]]]
    questions: list[Question]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure what a search finds, and how fast it is.")
    script.number("--turns", "turns", 1_000_000, 5_000, "turns of the ledger whose speed is measured")
    script.number("--questions", "questions", 1_000, 60, "questions of LoCoMo, and searches that are timed")
    script.number("--served", "served", 1_000_000, 2_000, "turns on a PostgreSQL server")
    script.parser.add_argument(
        "--corpus", type=Path, default=os.environ.get("NEXUS_CORPUS"), metavar="DIR", help="LoCoMo and transcripts"
    )
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Measure quality where there is a corpus, and speed."""
    rows: list[Row] = []
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        path = Path(given.corpus, LOCOMO) if given.corpus else None
        if path is not None and path.is_file():
            rows += measure_conversations(read_conversations(path, scratch), given.questions)
        else:
            missing["recall of evidence"] = "--corpus or NEXUS_CORPUS has no memory/locomo-dev.json"
        if given.corpus:
            rows += measure_transcripts(Path(given.corpus), scratch)
        else:
            missing["questions about transcripts"] = "neither --corpus nor NEXUS_CORPUS is set"
        rows += measure_speed(scratch, given.turns, given.questions)
        rows += measure_asks(scratch)
        rows += measure_served(given.served, min(given.questions, 300), missing)
    return Report(rows, {"sqlite": sqlite3.sqlite_version}, missing)


def read_conversations(path: Path, scratch: Path) -> Conversations:
    """Read LoCoMo into a ledger: a directory for each conversation, a session for each of its sessions."""
    with Nexus(scratch, home=scratch / "home", installed=False) as nexus:
        counter = open_counter("gpt-4o", host=nexus.host, settings=nexus.load().settings)
    ledger = open_sqlite(f"sqlite:///{scratch / 'locomo.db'}")
    found = Conversations(ledger, {}, [])
    for sample in json.loads(path.read_text(encoding="utf-8")):
        spoken, directory = sample["conversation"], f"/{sample['sample_id']}"
        turns = found.turns[directory] = {}
        number = 1
        while f"session_{number}" in spoken:
            started = read_date(spoken[f"session_{number}_date_time"])
            steps = []
            for index, turn in enumerate(spoken[f"session_{number}"]):
                text = turn["text"] + (f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else "")
                line = f"{turn['speaker']}: {text}"
                turns[f"{directory}{turn['dia_id']}"] = (line, counter.measure(line).tokens + LINE_TOKENS)
                role = "user" if turn["speaker"] == spoken["speaker_a"] else "assistant"
                message = Message(role, text, name=turn["speaker"])  # type: ignore[arg-type]
                step = f"{directory}{turn['dia_id']}"
                steps.append(
                    NewStep(kind="turn", closes=True, messages=(message,), id=step, created=started + index * 1000)
                )
            ledger.create(f"{directory}/{number}", data={"cwd": directory}, steps=steps)
            number += 1
        for asked in sample["qa"]:
            ids = _EVIDENCE.findall(" ".join(asked.get("evidence", ())))
            evidence = tuple(dict.fromkeys(f"{directory}{each}" for each in ids if f"{directory}{each}" in turns))
            if evidence:
                found.questions.append(Question(directory, asked["question"], asked["category"], evidence))
    return found


def read_date(text: str) -> int:
    """Parse a date as LoCoMo writes it, to milliseconds."""
    return int(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp() * 1000)


def measure_conversations(read: Conversations, most: int) -> Iterator[Row]:
    """Yield the recall of evidence, of sessions, of several calls, and what foreign questions inject."""
    questions = read.questions[:: max(1, len(read.questions) // most)]
    results = [ask(read, question.text, question.directory) for question in questions]
    plain = {directory: PlainIndex(turns) for directory, turns in read.turns.items()}
    plain_ids = [plain[question.directory].rank(question.text) for question in questions]
    goals = {1000: (Goal(">=", 0.85, quick=0.75),), 4000: (Goal(">=", 0.92, quick=0.85),)}
    for budget in BUDGETS:
        ranked = [
            recall(question, pack(read, question.directory, ids_of(result), budget)[0])
            for question, result in zip(questions, results, strict=True)
        ]
        beside = [
            recall(question, pack(read, question.directory, ids, budget)[0])
            for question, ids in zip(questions, plain_ids, strict=True)
        ]
        judged = [found for question, found in zip(questions, ranked, strict=True) if question.directory in JUDGED]
        named = " and ".join(name.strip("/") for name in JUDGED)
        detail = f"{named} {mean(judged):.1%}; plain FTS5 {mean(beside):.1%}; {len(questions)} questions"
        yield Row(
            f"evidence in {budget:,} tokens of hits", mean(ranked), goals.get(budget, ()), unit="share", detail=detail
        )
        if budget == 1000:  # noqa: PLR2004 - the budget that goals are about
            both = zip(questions, ranked, beside, strict=True)
            multi = [(one, other) for question, one, other in both if question.category == MULTI_HOP]
            yield Row(
                "the same, evidence in several places",
                mean([one for one, _ in multi]),
                (Goal(">=", 0.55, quick=0.4),),
                unit="share",
                detail=f"plain FTS5 {mean([other for _, other in multi]):.1%}, {len(multi)} questions",
            )
    wanted = [{f"{q.directory}/{each.partition(':')[0].rpartition('D')[2]}" for each in q.evidence} for q in questions]
    whole = [float(names <= {*result.sessions[:5]}) for names, result in zip(wanted, results, strict=True)]
    yield Row("all sessions with evidence among the first 5", mean(whole), (Goal(">=", 0.85, quick=0.7),), unit="share")
    yield measure_rewordings(read, questions)
    yield from measure_foreign(read, questions, results)


def measure_rewordings(read: Conversations, questions: Sequence[Question]) -> Row:
    """Return the recall of three calls in different words together, each with 1,000 tokens."""
    found, used = [], []
    for question in questions:
        got: set[str] = set()
        for text in reword(question.text):
            got |= pack(read, question.directory, ids_of(ask(read, text, question.directory)), 1000)[0]
        found.append(recall(question, got))
        used.append(sum(read.turns[question.directory][each][1] for each in got))
    detail = f"{mean(used):,.0f} tokens without repetitions, of 3 x 1,000"
    return Row(
        "evidence in three calls, reworded by rule",
        mean(found),
        (Goal(">=", 0.88, quick=0.8),),
        unit="share",
        detail=detail,
    )


def reword(text: str) -> tuple[str, str, str]:
    """Return a question as it is, without its names, and by its three longest words."""
    names = {word for name in find_query_entities(text) for word in re.findall(r"\w+", name)}
    words = re.findall(r"\w+", text)
    nameless = " ".join(word for word in words if word not in names)
    content = [word for word in dict.fromkeys(words) if word.lower() not in STOP_WORDS and word not in names]
    return text, nameless, " ".join([*names, *sorted(content, key=len, reverse=True)[:3]])


def measure_foreign(
    read: Conversations, questions: Sequence[Question], results: Sequence[SearchResult]
) -> Iterator[Row]:
    """Yield what questions inject that are asked of another conversation, and what the rules cost at home."""
    directories = [*read.turns]
    unknown, known = [], []
    speakers = {
        directory: sorted({line.partition(":")[0] for line, _ in turns.values()})
        for directory, turns in read.turns.items()
    }
    for question in questions:
        there = directories[(directories.index(question.directory) + 1) % len(directories)]
        unknown.append(inject(read, there, ask(read, question.text, there))[1])
        text = question.text
        for own, other in zip(speakers[question.directory], speakers[there], strict=False):
            text = text.replace(own, other)
        known.append(inject(read, there, ask(read, text, there))[1])
    at_home = [*zip(questions, results, strict=True)]
    kept = [recall(question, inject(read, question.directory, result)[0]) for question, result in at_home]
    every = [recall(question, fill(read, question.directory, ids_of(result))[0]) for question, result in at_home]
    whole = [recall(question, pack(read, question.directory, ids_of(result), 1000)[0]) for question, result in at_home]
    judged = [question.directory in JUDGED for question in questions]
    named = " and ".join(name.strip("/") for name in JUDGED)
    silent = f"nothing for {mean([float(not tokens) for tokens in unknown]):.0%} of the questions"
    yield Row("tokens injected for foreign questions", mean(unknown), (Goal("<=", 300),), "count", silent)
    silent = f"nothing for {mean([float(not tokens) for tokens in known]):.0%}"
    silent += f"; {named} {mean([*compress(known, judged)]):.0f}"
    yield Row("the same, with the names of the people there", mean(known), (Goal("<=", 300),), "count", silent)
    loss = mean(every) - mean(kept)
    loss_judged = mean([*compress(every, judged)]) - mean([*compress(kept, judged)])
    detail = f"{mean(kept):.1%} of {mean(every):.1%} in {MAX_MEMORIES} turns ({mean(whole):.1%} in 1,000 tokens)"
    detail += f"; {named} {loss_judged:.1%}"
    yield Row(
        "evidence lost by the rules against foreign questions", loss, (Goal("<=", 0.02, quick=0.06),), "share", detail
    )


def ask(read: Conversations, text: str, directory: str) -> SearchResult:
    """Search a conversation."""
    return search_steps(read.ledger, StepQuery(text=text, directory=directory, limit=MAX_HITS))


def ids_of(result: SearchResult) -> list[str]:
    """Return the ids of hits, best first."""
    return [hit.step for hit in result.hits]


def inject(read: Conversations, directory: str, result: SearchResult) -> tuple[set[str], int]:
    """Return the turns that are injected of a result, and their tokens."""
    if not result.hits or not result.is_evident:
        return set(), 0
    floor = max(result.evident_score, MIN_SHARE_OF_BEST * result.hits[0].score)
    return fill(read, directory, [hit.step for hit in find_related_hits(result) if hit.score >= floor])


def fill(read: Conversations, directory: str, ids: Sequence[str]) -> tuple[set[str], int]:
    """Return the turns that are injected if none is too weak, and their tokens."""
    return pack(read, directory, ids[:MAX_MEMORIES], 1000)


def pack(read: Conversations, directory: str, ids: Sequence[str], budget: int) -> tuple[set[str], int]:
    """Return the turns that fit into a budget, in order, without those that do not fit."""
    used, taken = 0, set()
    for each in ids:
        tokens = read.turns[directory][each][1]
        if used + tokens <= budget:
            used += tokens
            taken.add(each)
    return taken, used


def recall(question: Question, found: set[str]) -> float:
    """Return the share of the evidence that was found."""
    return mean([float(each in found) for each in question.evidence])


def mean(values: Sequence[float]) -> float:
    """Return the mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


class PlainIndex:
    """Plain FTS5: each turn with its two neighbours, any word, bm25."""

    def __init__(self, turns: dict[str, tuple[str, int]]) -> None:
        self._ids = [*turns]
        lines = [line for line, _ in turns.values()]
        self._file = sqlite3.connect(":memory:")
        self._file.execute("create virtual table turns using fts5 (text, tokenize = 'porter unicode61')")
        for number in range(len(lines)):
            text = "\n".join(lines[max(0, number - 1) : number + 2])
            self._file.execute("insert into turns (rowid, text) values (?, ?)", (number, text))

    def rank(self, text: str) -> list[str]:
        """Return the ids of turns, best first."""
        words = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in STOP_WORDS]
        if not words:
            return []
        query = " or ".join(f'"{word}"' for word in words).replace(" or ", " OR ")
        statement = "select rowid from turns where turns match ? order by bm25(turns) limit ?"
        return [self._ids[number] for (number,) in self._file.execute(statement, (query, MAX_HITS))]


def measure_transcripts(corpus: Path, scratch: Path) -> Iterator[Row]:
    """Yield the share of questions about transcripts of agents with the fact among the first five hits."""
    ledger = open_sqlite(f"sqlite:///{scratch / 'transcripts.db'}")
    facts: dict[AgentFactKind, dict[str, None]] = {kind: {} for kind in ASKED_KINDS}
    steps: dict[str, str] = {}
    for path in sorted(corpus.rglob("*.jsonl")):
        try:
            messages = read_transcript(path.read_text(encoding="utf-8"), path.name).messages
        except (MessageError, UnicodeDecodeError):
            continue
        calls: dict[str, ToolCall] = {}
        new = []
        for message in messages:
            step = f"{len(steps):026d}"
            steps[step] = normalize(read_text(message))
            new.append(NewStep(kind="turn", closes=True, messages=(message,), id=step))
            for kind, fact in find_agent_facts(message, calls):
                if kind in facts:
                    facts[kind][fact] = None
        if new:
            ledger.create(str(path.relative_to(corpus)), steps=new)
    asked = [
        (kind, fact)
        for kind in ASKED_KINDS
        for fact in [*facts[kind]][:: max(1, len(facts[kind]) // QUESTIONS_PER_KIND)][:QUESTIONS_PER_KIND]
    ]
    found: dict[str, list[float]] = {kind: [] for kind in ASKED_KINDS}
    for kind, fact in asked:
        hits = search_steps(ledger, StepQuery(text=ask_for_fact(kind, fact), limit=5)).hits
        found[kind].append(float(any(fact in steps[hit.step] for hit in hits)))
    ledger.close()
    every = [value for values in found.values() for value in values]
    if not every:
        return
    detail = ", ".join(f"{kind} {sum(values):.0f} of {len(values)}" for kind, values in found.items())
    name = f"{len(every)} questions about {len(steps):,} steps of agents, fact in the first 5"
    yield Row(name, mean(every), (Goal(">=", 0.8, quick=0.6),), "share", detail)


_TEMPLATES: dict[str, str] = {
    "edited": "where did we change the file {}?",
    "command": "which command did we run for {}?",
    "error": "what failed with the error {}?",
    "decision": "why did we decide that {}?",
}


def ask_for_fact(kind: AgentFactKind, fact: str) -> str:
    """Return a question for a fact, with some of its words: the end of a path, or the four longest in another order."""
    words = [word for word in dict.fromkeys(re.findall(r"[^\W_]{2,}", fact)) if word not in STOP_WORDS]
    chosen = words[-3:] if kind == "edited" else sorted(words, key=lambda word: (-len(word), word))[:4]
    return _TEMPLATES[kind].format(" ".join(chosen))


class MadeUpTurns(NamedTuple):
    """Made-up turns in a ledger: the characters of all texts, and questions, each with a directory."""

    characters: int
    questions: list[tuple[str, str]]


def write_turns(ledger: StoreLedger, turns: int, searches: int) -> MadeUpTurns:
    """Append made-up turns, and return questions with words of some of them."""
    rng = random.Random(22)  # noqa: S311 - the same turns in every run
    vocabulary = [make_word(rng) for _ in range(30_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    stop_words = sorted(STOP_WORDS)
    size = 0
    questions: list[tuple[str, str]] = []
    sessions = max(turns // TURNS_PER_SESSION, 1)
    directories = [f"/srv/{number}" for number in range(max(sessions // SESSIONS_PER_DIRECTORY, 1))]
    for number in range(sessions):
        words = rng.choices(vocabulary, weights, k=TURNS_PER_SESSION * 32)
        words = [rng.choice(stop_words) if rng.random() < STOP_WORD_SHARE else word for word in words]
        steps = []
        for turn in range(TURNS_PER_SESSION):
            text = " ".join(words[turn * 32 : turn * 32 + rng.randint(8, 32)])
            size += len(text)
            role = "assistant" if turn % 2 else "user"
            steps.append(NewStep(kind="turn", closes=True, messages=(Message(role, text),)))  # type: ignore[arg-type]
        if len(questions) < searches and number % max(sessions // searches, 1) == 0:
            questions.append((directories[number % len(directories)], " ".join(rng.sample(words, 10))))
        ledger.create(f"s{number}", data={"cwd": directories[number % len(directories)]}, steps=steps)
    return MadeUpTurns(size, questions)


def measure_speed(scratch: Path, turns: int, searches: int) -> Iterator[Row]:
    """Yield the time of searches, the cost of appending, and the size of the index, on made-up turns."""
    path, copy = scratch / "speed.db", scratch / "plain.db"
    ledger = open_sqlite(f"sqlite:///{path}")
    made = write_turns(ledger, turns, searches)
    before = count_bytes(path)
    with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(copy)) as target:
        file.backup(target)
    plain = open_sqlite(f"sqlite:///{copy}")
    started = time.perf_counter()
    search_steps(ledger, StepQuery(text="note"))
    built = time.perf_counter() - started
    share = (count_bytes(path) - before) / made.characters
    yield from time_searches(ledger, made, f"{turns:,} turns", (3.0, 5.0))
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(20):  # by turns, because the disk is not equally fast all the time
        for is_indexed in (True, False):
            times[is_indexed] += time_appends(ledger if is_indexed else plain, 20)
    with_index, without = (sorted(times[each])[len(times[each]) // 2] for each in (True, False))
    caught_up = time_call(partial(search_steps, ledger, StepQuery(text="note"))) / len(times[True])
    detail = (
        f"{with_index * 1000:.3f} ms / {without * 1000:.3f} ms; the next search indexes it in {caught_up * 1000:.2f} ms"
    )
    yield Row(
        "appending to an indexed ledger / to one without", with_index / without, (Goal("<=", 1.3),), detail=detail
    )
    detail = f"{made.characters:,} bytes of text; built at {turns / max(built, 1e-9):,.0f} turns a second"
    yield Row("bytes of the index / bytes of the text", share, (Goal("<=", 0.8),), detail=detail)
    ledger.close()
    plain.close()


def time_searches(ledger: StoreLedger, made: MadeUpTurns, where: str, goals: tuple[float, float]) -> Iterator[Row]:
    """Yield the 95th percentile of searches in a directory and everywhere, after one that builds the index."""
    search_steps(ledger, StepQuery(text="note"))
    for name, goal, scoped in (("in a directory", goals[0], True), ("everywhere", goals[1], False)):
        times, cpu = [], []
        for directory, text in made.questions:
            started = time.process_time()
            query = StepQuery(text=text, directory=directory if scoped else None)
            times.append(time_call(partial(search_steps, ledger, query)))
            cpu.append(time.process_time() - started)
        p50, p95 = (sorted(times)[int(len(times) * part)] * 1000 for part in (0.5, 0.95))
        detail = (
            f"p50 {p50:.2f} ms, p95 of CPU time {sorted(cpu)[int(len(cpu) * 0.95)] * 1000:.2f} ms,"
            f" {len(times)} searches, with snippets"
        )
        yield Row(f"p95 of a search {name}, {where}, ms", p95, (Goal("<=", goal),), detail=detail)


def measure_asks(scratch: Path) -> Iterator[Row]:
    """Yield the cost of memory in a turn of a session: with 500 turns of others, and 20 notes."""
    home, work = scratch / "asks", scratch / "work"
    (home / "memory").mkdir(parents=True)
    work.mkdir()
    for number in range(20):
        (home / "memory" / f"{number}.md").write_text(f"Note {number} about the deployment of service {number}.\n")
    times: dict[bool, list[float]] = {True: [], False: []}
    with Nexus(work, home=home, installed=False) as nexus:
        for number in range(500):
            text = f"The service {number} is deployed by the script {number % 50} after the tests of team {number % 7}."
            step = NewStep(kind="turn", closes=True, messages=(Message("user", text),))
            nexus.ledger.create(f"before-{number}", data={"cwd": str(work)}, steps=[step])
        nexus.recall("warm")
    time.sleep(MIN_SETTLED_NS / 1e9)  # notes that were just written are read again by each turn
    for number in range(12):
        for enabled in (True, False):
            (home / "config.json").write_text(json.dumps({"memory": {"enabled": enabled}}))
            with Nexus(work, home=home, installed=False) as nexus:
                session = nexus.session(f"ask-{enabled}-{number}", model="gpt-4o")
                for turn in range(6):
                    started = time.process_time()
                    session.ask(f"Which script deploys the service {number * 6 + turn}?")
                    if turn:
                        times[enabled].append(time.process_time() - started)
                    session.record({"role": "assistant", "content": f"Script {turn}."})
    with_memory, without = (sorted(times[enabled])[len(times[enabled]) // 2] for enabled in (True, False))
    detail = f"CPU time, median of {len(times[True])}: {with_memory * 1000:.2f} ms / {without * 1000:.2f} ms"
    yield Row("asking with memory / without", with_memory / without, (Goal("<=", 1.5),), detail=detail)


def measure_served(turns: int, searches: int, missing: dict[str, str]) -> Iterator[Row]:
    """Yield the time of searches on a PostgreSQL server."""
    from benchmarks.fleet import server  # it needs psycopg

    try:
        with server() as url:
            ledger = open_postgres(url)
            made = write_turns(ledger, turns, searches)
            yield from time_searches(ledger, made, f"{turns:,} turns on PostgreSQL", (15.0, 15.0))
            ledger.close()
    except CannotMeasureError as error:
        missing["searches on PostgreSQL"] = str(error)


def make_word(rng: random.Random) -> str:
    """Return a made-up word."""
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))


def time_appends(ledger: SqliteLedger, steps: int) -> list[float]:
    """Append steps one by one, and return the seconds of each."""
    session = ledger.session("s0")
    tip = session.tip if session else None
    times = []
    for number in range(steps):
        step = NewStep(kind="turn", closes=True, messages=(Message("user", f"note {number} of the day"),))
        started = time.perf_counter()
        tip = ledger.append("s0", step, after=tip).id
        times.append(time.perf_counter() - started)
    return times


def time_call(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def count_bytes(path: Path) -> int:
    """Return the bytes of a file's pages, whether or not they are still in its log."""
    with sqlite3.connect(path) as file:
        ((pages,),), ((size,),) = (file.execute(f"pragma {name}").fetchall() for name in ("page_count", "page_size"))
    file.close()
    return int(pages) * int(size)


if __name__ == "__main__":
    sys.exit(main())
