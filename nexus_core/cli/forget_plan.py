"""Plan of `nexus memory forget`, and the check that nothing returns."""

from __future__ import annotations

import re
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from nexus_core.cli.commands.session.overview import collect_damage
from nexus_core.cli.context import load_readable_layers
from nexus_core.cli.memory_lookup import (
    STEP_PREFIX,
    STEP_REFERENCE,
    InjectedMemoryIndex,
    NamedTarget,
    find_reply_to_question,
    read_step_text,
    resolve_memory_name,
)
from nexus_core.errors import UsageError
from nexus_core.memory.distinctive_words import MAX_COMPARED_CHARACTERS, find_distinctive_words
from nexus_core.memory.forgotten_memories import (
    hide_file_name,
    read_forget_records,
    read_forgotten_memories,
    record_forgotten_memories,
)
from nexus_core.memory.recall import read_memory_options, search_memories
from nexus_core.memory.search import count_turns_with
from nexus_core.memory.words import MAX_QUERY_WORDS, find_query_words
from nexus_core.request.memories import InjectedMemory
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten, strip_all_hidden
from nexus_core.text.secrets import redact
from nexus_core.text.sentences import UNSPACED_SCRIPTS
from nexus_core.thread.lookup import find_sessions_with
from nexus_core.types.memory import Memory
from nexus_core.types.payloads import CompactionPayload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.commands.session.overview import DamagedSession
    from nexus_core.cli.memory_lookup import TargetKind
    from nexus_core.memory.distinctive_words import DistinctiveWords
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.memory import MemorySource

_MIN_TEXT_LETTERS, _MIN_OTHER_LETTERS = 4, 2
"""Letters and digits of a text to forget, of ASCII and of other scripts: a few are in nearly every step."""
_SPACED_START = re.compile(rf"[^\W_{UNSPACED_SCRIPTS}]")
"""A letter or digit before which a word begins."""
_SPACED_END = re.compile(rf"[^\W_{UNSPACED_SCRIPTS}\uac00-\ud7af]")
"""A letter or digit after which a word ends; particles follow a Korean word without a space."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_ESCAPED_CONTROL = re.compile(r"\\(?:u00|[bfr])")
"""A control character in JSON, in lower case."""
SHOWN_CHARACTERS = 60
_MEMORY = "memory "
"""The beginning of the name of a memory that was asked for by its id."""
_MAX_LISTED_STEPS = 5
"""Steps of one session that `forget` prints."""
_MAX_FACTS = 20
"""Texts with which `forget` compares what is found."""
_COMMON_TURNS = 10
"""Turns that have a word if it says little about a text."""
_MAX_QUERIES, _MAX_QUERY_CHARACTERS, _MAX_ANSWERS = 50, 500, 50
"""Queries that `forget` asks again, characters of those that are made of a memory, and answers of each."""


class ForgetSelection(NamedTuple):
    """Memories that a user asked to forget.

    Attributes:
        what: Its description.
        ids: Ids of memories.
        uris: Steps and files.
        session: The name of the session whose steps these are; "" if no session is meant.
        text: The text that they have; "" if they are named otherwise.
        recorded_uris: Steps and files that the same command has recorded before: it may have been interrupted.
    """

    what: str
    ids: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()
    session: str = ""
    text: str = ""
    recorded_uris: frozenset[str] = frozenset()

    def is_beside(self, memory: Memory) -> bool:
        """True if a memory is not meant, but is of a message that is."""
        return (self.text != "" or self.what.startswith(_MEMORY)) and memory.id not in self.ids

    @property
    def steps(self) -> frozenset[str]:
        """The ids of the steps."""
        return frozenset(uri.removeprefix(STEP_PREFIX) for uri in self.uris if uri.startswith(STEP_PREFIX))


class ForgetPlan(NamedTuple):
    """Everything that is removed with what a user asked to forget.

    Attributes:
        selection: What the user asked for.
        matched: Memories that sources list.
        injected: Memories that sessions were given, also those that later calls do not have any more.
        holders: The steps to take out of the index by the name of each session that has them.
        facts: The words of what is forgotten.
        queries: Texts that find it, each with the question that it asks: user messages that it was recalled for, and
            its own words, which ask nothing.
        limits: Descriptions of what was not compared, for display.
    """

    selection: ForgetSelection
    matched: Sequence[tuple[MemorySource, Memory]]
    injected: Sequence[InjectedMemory]
    holders: Mapping[str, Sequence[Step]]
    facts: Sequence[DistinctiveWords]
    queries: Mapping[str, str]
    limits: Sequence[str] = ()

    @property
    def sent_memories(self) -> list[InjectedMemory]:
        """The memories that later calls of sessions would have."""
        return [each for each in self.injected if each.is_sent]

    @property
    def steps(self) -> set[str]:
        """The ids of the steps to take out of the index."""
        return {step.id for steps in self.holders.values() for step in steps}

    @property
    def uris(self) -> set[str]:
        """The steps and files of which no memory is used."""
        return set(self.selection.uris) | {f"{STEP_PREFIX}{step}" for step in self.steps}

    @property
    def files(self) -> set[str]:
        """The files to delete."""
        return {memory.source.uri for source, memory in self.matched if source.remove is not None}

    @property
    def ids(self) -> set[str]:
        """The ids of the memories that must not return."""
        meant = {each.id for each in self.injected if each.id in self.selection.ids or each.source.uri in self.uris}
        files = {each.id for each in self.injected if each.source.is_file}
        return {*self.selection.ids, *(memory.id for _, memory in self.matched), *meant, *files}

    def describe(self) -> list[list[str]]:
        """Return lines that describe what is removed, by place."""
        places = [
            [
                f"{memory.kind} {memory.place}: {'deleted' if source.remove else 'not used any more'}",
                excerpt_text(memory.text) + (" (of the same message)" if self.selection.is_beside(memory) else ""),
            ]
            for source, memory in self.matched
        ]
        described: set[str] = set()
        for label, steps in self.holders.items():
            new = [step for step in steps if step.id not in described]
            described.update(step.id for step in new)
            removed = f"{format_count(len(new), 'step')} removed from the search index" if new else ""
            again = len(steps) - len(new)
            shared = f"shares {format_count(again, 'step')} named above" if again else ""
            listed = [
                f"{STEP_PREFIX}{step.id}: {excerpt_text(read_step_text(step))}" for step in new[:_MAX_LISTED_STEPS]
            ]
            more = [f"{len(new) - len(listed):,} more"] if len(new) > len(listed) else []
            places.append([f"session {label}: {', '.join(filter(None, [removed, shared]))}", *listed, *more])
        for label in list_given_sessions(self.sent_memories):
            given = dict.fromkeys(f"{each.title}, {each.place}" for each in self.sent_memories if each.session == label)
            places.append([f"session {label}: left out of its next calls", *given])
        return places


def read_forget_target(
    nexus: Nexus,
    name: str,
    memories: Sequence[Memory],
    injected_index: InjectedMemoryIndex,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> ForgetSelection:
    """Return the selection that a text names, or all memories with that text.

    What the same command has recorded before belongs to it, so that it can be run again after an interruption.

    Args:
        nexus: The Nexus.
        name: The text.
        memories: The memories that sources list, forgotten ones included.
        injected_index: The memories that sessions were given.
        advance: Called with the number of steps that were looked through for a text.

    Raises:
        UsageError: It is empty, names several memories, or is too short for a text.
    """
    text = name.strip()
    if not text:
        raise UsageError("there is nothing to forget", hint="name a memory, a step, a session, a note, or a text")
    selection = _select_memories(nexus, text, memories, injected_index, advance)
    if selection.text:
        return selection
    names = {selection.what, _hide_file_names(selection.what, selection.uris)}
    records = [record for record in read_forget_records(nexus.home) if record.what in names]
    ids = selection.ids.union(*(record.ids for record in records))
    return selection._replace(ids=ids, recorded_uris=frozenset().union(*(record.uris for record in records)))


def _select_memories(
    nexus: Nexus,
    text: str,
    memories: Sequence[Memory],
    injected_index: InjectedMemoryIndex,
    advance: Callable[[int], None],
) -> ForgetSelection:
    records = (each.what for each in read_forget_records(nexus.home))
    forgotten_ids = {what.removeprefix(_MEMORY) for what in records if what.startswith(_MEMORY)}
    # A title is a text, which is forgotten wherever it is.
    kinds: tuple[TargetKind, ...] = ("memory", "session", "step", "file")
    target = resolve_memory_name(nexus, text, memories, injected_index, kinds=kinds, forgotten_ids=forgotten_ids)
    if target is not None:
        return _select_target(nexus.ledger, target, memories)
    if sum(map(str.isalnum, text)) < (
        _MIN_TEXT_LETTERS if text.isascii() else _MIN_OTHER_LETTERS
    ) or not find_query_words(text):
        what = f"{text!r} is not an id, and as a text it is shorter than four letters, or has only words such as 'the'"
        raise UsageError(what, hint="give an id, `step:…`, `session:…`, the file of a note, or a longer text")
    has_text = _build_matcher(text)
    ids = {memory.id for memory in memories if has_text(memory.text) or has_text(memory.title)}
    uris = {memory.source.uri for memory in memories if memory.id in ids and not memory.source.is_file}
    steps = _find_steps_with(nexus.ledger, text, has_text, damaged=injected_index.damaged, advance=advance)
    uris |= {f"{STEP_PREFIX}{step.id}" for step in steps}
    return ForgetSelection("that text", ids=frozenset(ids), uris=frozenset(uris), text=text)


def _select_target(ledger: Ledger, target: NamedTarget, memories: Sequence[Memory]) -> ForgetSelection:
    """Return the selection of a memory, session, step or file."""
    if target.kind == "session":
        record = ledger.session(target.name)
        steps = [] if record is None or record.tip is None else ledger.thread(record.tip)
        of_session = frozenset(f"{STEP_PREFIX}{step.id}" for step in steps)
        return ForgetSelection(f"session {target.name}", uris=of_session, session=target.name)
    if target.kind == "step":
        step = ledger.step(target.name)
        # A rendered message repeats the user's, which is the one that is found.
        names = {target.name, step.turn} if step is not None and step.kind == "sealed" else {target.name}
        return ForgetSelection(f"step {target.name}", uris=frozenset(f"{STEP_PREFIX}{name}" for name in names))
    if target.kind == "file":
        return ForgetSelection(f"file {target.name}", uris=frozenset([target.name]))
    if target.source is None:  # a rule whose step is out of the index is not listed any more
        return ForgetSelection(f"{_MEMORY}{target.name}")
    texts = {memory.text.casefold() for memory in memories if memory.id == target.name}
    # The user may have stated a rule more than once.
    same = [memory for memory in memories if memory.text.casefold() in texts]
    # The step would be recalled as an episode, with the same words.
    uris = {each.uri for each in (target.source, *(memory.source for memory in same)) if not each.is_file}
    if not texts and target.source.uri.startswith(STEP_PREFIX):
        reply = find_reply_to_question(ledger, target.source.uri.removeprefix(STEP_PREFIX))
        uris |= {f"{STEP_PREFIX}{reply.id}"} if reply else set()
    ids = {target.name, *(memory.id for memory in same)}
    return ForgetSelection(f"{_MEMORY}{target.name}", ids=frozenset(ids), uris=frozenset(uris))


def _build_matcher(text: str) -> Callable[[str], bool]:
    """Return a predicate for texts with these whole words, in any letter case and any form of accents."""
    words = _fold_text(text).split()
    before = r"(?<!\w)" if _SPACED_START.match(words[0][0]) else ""
    after = r"(?!\w)" if _SPACED_END.match(words[-1][-1]) else ""
    pattern = re.compile(before + r"\s+".join(map(re.escape, words)) + after)
    return lambda other: pattern.search(_fold_text(other)) is not None


def _fold_text(text: str) -> str:
    """Return a text without hidden characters and differences of letter case, and with composed accents."""
    text = strip_all_hidden(text)
    return text.casefold() if text.isascii() else normalize("NFC", normalize("NFD", text).casefold())


def _find_steps_with(
    ledger: Ledger,
    text: str,
    has_text: Callable[[str], bool],
    *,
    damaged: list[DamagedSession],
    advance: Callable[[int], None],
) -> Iterator[Step]:
    """Yield all steps that contain a text, and add those that cannot be read to `damaged`.

    An index finds only the best of many, and a database folds only the letter case of English.
    """
    from nexus_core.ledger.codec import StoredStep

    # JSON escapes no letter or digit of ASCII, so that few steps have to be decoded.
    pieces = _ASCII_WORD.findall(_fold_text(text))
    for step in ledger.steps():
        advance(1)
        if step.kind == "sealed":  # a rendered message has the text of what is injected
            continue
        stored = strip_all_hidden(step.stored_messages).casefold() if isinstance(step, StoredStep) else None
        if stored is not None and _ESCAPED_CONTROL.search(stored):
            stored = None  # a control character may divide a word
        if stored is None or all(piece in stored for piece in pieces):
            text = ""
            with collect_damage(damaged, ""):
                text = read_step_text(step)
            if has_text(text):
                yield step


def excerpt_text(text: str) -> str:
    """Return the first words of a text, redacted, for a line."""
    return shorten(" ".join(redact(text).text.split()), SHOWN_CHARACTERS)


def build_forget_plan(
    nexus: Nexus,
    injected_index: InjectedMemoryIndex,
    selection: ForgetSelection,
    listed: Sequence[tuple[MemorySource, Memory]],
) -> ForgetPlan:
    """Return everything to remove, replies that repeat it included.

    A reply may have been a memory of another session, whose reply repeats it again.

    Args:
        nexus: The Nexus.
        injected_index: The memories that sessions were given.
        selection: What the user asked for.
        listed: The memories that sources list, each with its source, forgotten ones included.
    """
    ledger = nexus.ledger
    matched = [
        (source, each) for source, each in listed if each.id in selection.ids or each.source.uri in selection.uris
    ]
    ids = {*selection.ids, *(memory.id for _, memory in matched)}
    uris = {*selection.uris, *selection.recorded_uris, *(memory.source.uri for _, memory in matched)}
    has_text = _build_matcher(selection.text) if selection.text else None

    def spread(repeats: Callable[[Step], bool]) -> tuple[list[InjectedMemory], set[str]]:
        forgotten_uris = set(uris)
        while True:
            injected = injected_index.find(ids, forgotten_uris, has_text)
            replies = injected_index.find_later_steps(injected, is_reply=True)
            new = {
                name for step in replies if (name := f"{STEP_PREFIX}{step.id}") not in forgotten_uris and repeats(step)
            }
            if not new:
                return injected, forgotten_uris
            forgotten_uris |= new

    may_repeat = spread(lambda _step: True)[0]
    meant = [memory for _, memory in matched if not selection.is_beside(memory)]
    texts = _list_fact_texts(ledger, injected_index, selection, meant, may_repeat)
    facts = _find_facts(nexus, injected_index, selection, texts[:_MAX_FACTS], may_repeat)
    injected, forgotten_uris = spread(lambda step: _is_shared(ledger, facts, step))
    holders = _find_holders(
        ledger, {uri.removeprefix(STEP_PREFIX) for uri in forgotten_uris if uri.startswith(STEP_PREFIX)}
    )
    turns = [turn for each in injected if (turn := injected_index.find_turn(each)) is not None and turn.messages]
    steps = [step for held in holders.values() for step in held]
    own_texts = [*(memory.text for _, memory in matched), *(step.messages[0].content for step in steps)]
    queries = {text[:_MAX_QUERY_CHARACTERS]: "" for text in own_texts}
    queries |= {text: text for turn in turns if (text := turn.messages[0].content)}
    queries |= {selection.text[:_MAX_QUERY_CHARACTERS]: ""}  # asked first
    queries = {text: queries[text] for text in reversed(queries) if text.strip()}
    asked_again = {text: queries[text] for text in islice(queries, _MAX_QUERIES)}
    limits = [
        *_describe_limit(len(facts), len(texts), "forgotten texts are compared"),
        *_describe_limit(len(asked_again), len(queries), "questions are asked"),
    ]
    if count := sum(fact.is_cut for fact in facts):
        limits.append(f"{format_count(count, 'long text')} by the first {MAX_QUERY_WORDS} different words")
    return ForgetPlan(selection, matched, injected, holders, facts, asked_again, limits)


def _describe_limit(count: int, total: int, what: str) -> list[str]:
    return [f"{count:,} of {total:,} {what}"] if count < total else []


def _list_fact_texts(
    ledger: Ledger,
    injected_index: InjectedMemoryIndex,
    selection: ForgetSelection,
    memories: Iterable[Memory],
    injected: Iterable[InjectedMemory],
) -> list[str]:
    """Return the texts that are forgotten.

    The rest of a message with a text or a rule is left out, and so are steps that only happen to be in a session.
    """
    if selection.text:
        return [selection.text]
    quoted = {uri for each in injected for uri in injected_index.find_quoted(each)}
    parts = {memory.source.uri for memory in memories if memory.id in selection.ids}
    names = sorted(uri.removeprefix(STEP_PREFIX) for uri in selection.uris - parts if uri.startswith(STEP_PREFIX))
    names = [name for name in names if not selection.session or f"{STEP_PREFIX}{name}" in quoted]
    steps = [step for name in names if (step := ledger.step(name))]
    texts = [*(memory.text for memory in memories), *map(read_step_text, steps)]
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _find_facts(
    nexus: Nexus,
    injected_index: InjectedMemoryIndex,
    selection: ForgetSelection,
    texts: Iterable[str],
    injected: Iterable[InjectedMemory],
) -> list[DistinctiveWords]:
    """Return the distinctive words of what is forgotten.

    Args:
        nexus: The Nexus.
        injected_index: The memories that sessions were given.
        selection: What the user asked for.
        texts: The texts that are forgotten.
        injected: The memories that may have spread it: turns that were given them do not make its words common.
    """
    own_turns = {turn.id for each in injected if (turn := injected_index.find_turn(each))}
    ids = selection.steps

    def find_common(stems: Collection[str]) -> list[str]:
        counts = count_turns_with(
            nexus.ledger,
            stems,
            most=_COMMON_TURNS,
            is_excluded=lambda step: step.turn in own_turns or step.id in ids,
        )
        return [stem for stem, count in counts.items() if count >= _COMMON_TURNS]

    return [find_distinctive_words(text, find_common) for text in texts]


def _is_shared(ledger: Ledger, facts: Iterable[DistinctiveWords], step: Step) -> bool:
    """True if a reply shares words with a memory but not with the question."""
    question, text = _read_question(ledger, step), read_step_text(step)
    return any(fact.shares_rare_word(text, question) for fact in facts)


def _read_question(ledger: Ledger, step: Step) -> str:
    """Return the user message that a reply answers, or ""."""
    turn = ledger.step(step.turn) if step.turn != step.id else None
    return "" if turn is None else read_step_text(turn)


def _find_holders(ledger: Ledger, names: Collection[str]) -> dict[str, list[Step]]:
    """Return the steps to remove from the index, by the name of each session that has them."""
    found_steps = (ledger.step(name) for name in sorted(names))
    steps = [step for step in found_steps if step is not None and step.messages and step.kind != "sealed"]
    found: dict[str, list[Step]] = {}
    for record, inside in find_sessions_with(ledger, steps):
        tip = None if record.tip is None else ledger.step(record.tip)
        compactions = () if tip is None else _list_compactions(ledger, tip, min(step.position for step in inside))
        found[record.label] = [*{step.id: step for step in (*inside, *compactions)}.values()]
    return found


def _list_compactions(ledger: Ledger, tip: Step, position: int) -> Iterator[Step]:
    """Yield the indexed summaries of a thread made after a position, newest first."""
    step: Step | None = tip
    while step is not None and step.compaction is not None:
        compaction = ledger.step(step.compaction)
        if compaction is None or compaction.position <= position:
            return
        if compaction.messages:  # the index has no words of others
            yield compaction
        step = None if compaction.parent is None else ledger.step(compaction.parent)


def apply_forget_plan(nexus: Nexus, plan: ForgetPlan, damaged: list[DamagedSession]) -> list[str]:
    """Record, leave out and delete what is forgotten. Return the deleted files.

    The same command completes it after an interruption: the list, which is written first, hides memories and names
    their steps, and notes, which are deleted last, are still found.

    Args:
        nexus: The Nexus.
        plan: What is removed.
        damaged: Gets the sessions that cannot record it.
    """
    files = plan.files
    # The index of a session's steps names them already.
    uris = plan.uris - plan.selection.uris if plan.selection.session else plan.uris
    record_forgotten_memories(
        nexus.home,
        when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        what=_hide_file_names(plan.selection.what, files),
        ids=plan.ids,
        # Another note may have the name of a deleted one some day.
        uris=uris - files,
        removed=map(hide_file_name, files),
        calls=list_given_sessions(plan.sent_memories),
    )
    recorded_steps: set[str] = set()
    for label in sorted({*list_given_sessions(plan.sent_memories), *plan.holders}):
        ids = [each.id for each in plan.sent_memories if each.session == label]
        # The other sessions that share a step record it at the same time.
        steps = [step.id for step in plan.holders.get(label, ()) if step.id not in recorded_steps]
        with collect_damage(damaged, label):
            if ids or steps:
                nexus.session(label, any_directory=True).forget_memories(ids, steps=steps)
            recorded_steps.update(steps)
    return [source.remove(memory) for source, memory in plan.matched if source.remove is not None]


def _hide_file_names(what: str, files: Iterable[str]) -> str:
    """Return the name of what was asked for, without the names of files in it."""
    for path in files:
        if not path.startswith(STEP_PREFIX):
            what = what.replace(path, hide_file_name(path))
    return what


def list_given_sessions(injected: Iterable[InjectedMemory]) -> list[str]:
    """Return the names of the sessions that were given memories, in order."""
    return sorted({each.session for each in injected})


class SentSummary(NamedTuple):
    """The summary that the calls of a session have: its compaction, and the words that are searched for."""

    step: str
    excerpt: str


class ForgetVerification(NamedTuple):
    """Search results and summaries that still have forgotten memories or repeat them.

    Attributes:
        returned: Memories and steps that were forgotten, and that a query still returns.
        repeated: The first words of other memories and steps that may say the same, by their names.
        summaries: Summaries that calls have and that may say the same, by session.
        limits: Descriptions of what was not compared, for display.
    """

    returned: Sequence[str] = ()
    repeated: Mapping[str, str] = {}
    summaries: Mapping[str, SentSummary] = {}
    limits: Sequence[str] = ()


def verify_forgotten(nexus: Nexus, injected_index: InjectedMemoryIndex, plan: ForgetPlan) -> ForgetVerification:
    """Ask the queries again, and compare what they return with what was forgotten.

    Later turns of sessions that were given it are compared, too.
    """
    near = _NearSteps(nexus, plan)
    found = _ask_queries(nexus, plan, near)
    turns = {turn.id for each in plan.injected if (turn := injected_index.find_turn(each))}
    later = {step.id for step in injected_index.find_later_steps(plan.injected, is_reply=False)}
    repeated, cut = dict(found.repeated), 0
    for name in sorted((found.steps | later) - plan.steps):
        step = nexus.ledger.step(name)
        if step is not None:
            text = read_step_text(step)
            cut += len(text) > MAX_COMPARED_CHARACTERS
            # A message that the memory was recalled for has its words, and need not say it.
            question = text if name in turns else _read_question(nexus.ledger, step)
            if name not in turns and any(fact.is_repeated_by(question) for fact in plan.facts):
                question = ""  # it says so itself
            uri = f"{STEP_PREFIX}{name}"
            if overlap := _compute_overlap(plan, text, question, is_near=partial(near.has, uri)):
                repeated[uri] = overlap, text
    returned = found.returned | (found.steps & plan.steps)
    summaries = _find_repeating_summaries(nexus.ledger, injected_index, plan, near)
    for each in summaries.values():
        repeated.pop(each.step, None)
    long = f"{format_count(cut, 'long turn')} by the first {MAX_COMPARED_CHARACTERS:,} characters"
    limits = [*plan.limits, *([long] if cut else [])]
    best = sorted(repeated.items(), key=lambda item: -item[1][0])
    excerpts = {name: excerpt_text(text) for name, (_, text) in best}
    return ForgetVerification(sorted(returned), excerpts, summaries, limits)


def _compute_overlap(plan: ForgetPlan, text: str, question: str, *, is_near: Callable[[], bool]) -> float:
    """Return the part of a forgotten text that another one has; 0 if it does not repeat it.

    Args:
        plan: What is forgotten.
        text: The other text.
        question: The message that it answers; "" for none.
        is_near: Returns True if the text is where memories may come from; elsewhere only names are evidence.
    """
    facts = [fact for fact in plan.facts if fact.is_repeated_by(text, question)]
    named = [fact for fact in facts if fact.has_name_in(text)]
    if facts and not named and is_near():
        named = facts
    return max((fact.compute_overlap(text) for fact in named), default=0.0)


class _NearSteps:
    """The steps of directories in which the forgotten memories are; all if memories cross directories.

    Args:
        nexus: The Nexus.
        plan: What is forgotten.
    """

    def __init__(self, nexus: Nexus, plan: ForgetPlan) -> None:
        self.ledger = nexus.ledger
        self._is_everywhere = read_memory_options(load_readable_layers(nexus)[0].settings).scope == "all"
        labels = {*plan.holders, *list_given_sessions(plan.injected)}
        records = [record for label in labels if (record := self.ledger.session(label))]
        self._directories = {str(nexus.cwd), *filter(None, (record.payload.cwd for record in records))}
        self._known: dict[str, bool] = {}

    def has(self, uri: str) -> bool:
        """True if a memory or a step of these directories has that source, or if it is a file."""
        if not uri.startswith(STEP_PREFIX):
            return True
        if uri not in self._known:
            step = self.ledger.step(uri.removeprefix(STEP_PREFIX))
            found = find_sessions_with(self.ledger, [step] if step else [])
            self._known[uri] = any(self.has_session(record) for record, _ in found)
        return self._known[uri]

    def has_session(self, record: SessionRecord) -> bool:
        """True if a session works in one of these directories or below."""
        where = Path(record.payload.cwd or "")
        return self._is_everywhere or any(where.is_relative_to(each) for each in self._directories)


def _find_repeating_summaries(
    ledger: Ledger, injected_index: InjectedMemoryIndex, plan: ForgetPlan, near: _NearSteps
) -> dict[str, SentSummary]:
    """Return the summaries in calls that may say what is forgotten, by session."""
    turns = [turn for each in plan.injected if (turn := injected_index.find_turn(each)) is not None]
    asked = dict.fromkeys(map(read_step_text, turns))
    # A summary quotes the messages that a memory was recalled for, which have its words.
    question = "\n".join(text for text in asked if not any(fact.is_repeated_by(text) for fact in plan.facts))
    found: dict[str, SentSummary] = {}
    for record in ledger.sessions(status=None):
        tip = None if record.tip is None else ledger.step(record.tip)
        compaction = None if tip is None or tip.compaction is None else ledger.step(tip.compaction)
        # The steps of a forgotten session stay in its conversation, and so does its summary.
        if compaction is None or record.label == plan.selection.session:
            continue
        lines: list[str] = []
        with collect_damage(injected_index.damaged, record.label):
            lines = _list_summary_lines(compaction)
        text = "\n".join(lines)
        if _compute_overlap(plan, text, question, is_near=partial(near.has_session, record)):
            matches = (line for line in lines if any(fact.is_repeated_by(line, question) for fact in plan.facts))
            found[record.label] = SentSummary(f"{STEP_PREFIX}{compaction.id}", excerpt_text(next(matches, text)))
    return found


def _list_summary_lines(compaction: Step) -> list[str]:
    """Return the lines of a summary, and the facts and quotes from which the next one is made."""
    payload = compaction.payload
    lines = read_step_text(compaction).splitlines()
    if isinstance(payload, CompactionPayload):
        lines += payload.summary.splitlines()
        rows: list[object] = [*(payload.facts or ()), *payload.quotes]
        while rows:
            row = rows.pop(0)
            if isinstance(row, str):
                lines.append(row)
            elif isinstance(row, list | tuple):
                rows[:0] = row
    return [*dict.fromkeys(lines)]


class _FoundAgain(NamedTuple):
    """What the queries return: removed memories, the overlap and text of those that may say the same, and steps."""

    returned: set[str]
    repeated: dict[str, tuple[float, str]]
    steps: set[str]


def _ask_queries(nexus: Nexus, plan: ForgetPlan, near: _NearSteps) -> _FoundAgain:
    """Ask the index and the memory sources.

    Sources are asked without the list of forgotten memories, which would hide a step or a note that was not removed.
    """
    request = nexus.request()
    loaded, forgotten = nexus.load(request), read_forgotten_memories(nexus.home)
    removed = {f"{STEP_PREFIX}{name}" for name in plan.steps} | plan.files
    found = _FoundAgain(set(), {}, set())
    for query, question in plan.queries.items():
        recalled = search_memories(
            nexus.host, request, loaded, nexus.ledger, query, limit=_MAX_ANSWERS, everywhere=True, unfiltered=True
        )
        for memory in recalled.memories:
            if memory.source.uri in removed:
                found.returned.add(memory.id)
            elif forgotten.has(memory):  # only the list can hide it, such as a guide
                continue
            elif memory.kind == "episode":
                names = (memory.source.uri, *STEP_REFERENCE.findall(memory.text))
                found.steps.update(name.removeprefix(STEP_PREFIX) for name in names)
            elif overlap := _compute_overlap(plan, memory.text, question, is_near=partial(near.has, memory.source.uri)):
                found.repeated[memory.id] = overlap, memory.text
        found.steps.update(hit.step for hit in nexus.search(query, limit=_MAX_ANSWERS).hits)
    return found
