"""search_steps: the turns of a ledger that fit a question best, by its words."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from logging import getLogger
from math import inf
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from nexus_core.errors import LedgerError, LedgerUnreachableError, UnknownNameError, UsageError
from nexus_core.ledger.codec import StoredStep
from nexus_core.ledger.deletion import DeletableLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.senders import UNKNOWN_SENDER, find_sender, find_session_sender, read_sender
from nexus_core.ledger.store import write_canonical_json
from nexus_core.memory.facets import list_facet_values, read_facet
from nexus_core.memory.in_memory_index import InMemoryStepIndex
from nexus_core.memory.step_index import (
    IS_QUESTION,
    KINDS,
    TURN_BITS,
    BranchPart,
    build_facet_flags,
    build_facet_stem,
    ignore_progress,
    is_id_in_spans,
)
from nexus_core.memory.step_scores import ScoredStep, StepScope, rank_steps
from nexus_core.memory.words import (
    find_query_words,
    find_shared_stems,
    find_stems,
    get_index_stem,
    split_words,
)
from nexus_core.text.safety import one_line
from nexus_core.text.secrets import redact, redact_beginning, redact_json
from nexus_core.types.base import dataclass
from nexus_core.types.messages import ROLES, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence

    from nexus_core.memory.step_index import Advance, IndexedStep, StepIndex, StoredStepIndex
    from nexus_core.memory.step_scores import StepRanking
    from nexus_core.types.ledger import Ledger, SessionRecord, Step, StepKind
    from nexus_core.types.memory import StepFacet
    from nexus_core.types.messages import Message

    StepReader = Callable[[Sequence[ScoredStep]], dict[int, Step]]
    """Returns steps by the ids of their turns."""

T = TypeVar("T")

MIN_SHARE_OF_BEST = 0.4
"""The share of the best score below which hits are noise: leaving them out costs a third of a point of recall."""
SNIPPET_CHARACTERS = 240
"""Characters of a snippet, unless a query says otherwise."""
MAX_ANSWER_CHARACTERS = 300
"""Characters of the question or answer beside a hit."""
MAX_SENDER_RESULTS = 400
"""Turns that are ranked if those of other senders are among the first ones."""
MIN_REPEATED_CHARACTERS = 40
"""Characters of a snippet from which on another hit of its session with the same one is left out."""
_POSTINGS_PER_TURN = 4
"""Steps with a word that are read for each turn that is counted: those of one turn repeat its words."""
_MAX_FAILURE_CHARACTERS = 300
_MAX_SNIPPET_SOURCE = 20_000
"""Characters of a message in which a snippet is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQuery:
    """A question to the turns of a ledger.

    Attributes:
        text: The question: any text of any length.
        session: Only that session, by its name; None for all.
        directory: Only turns that were made in that directory or below it; None for all.
        below: False to leave out the turns that were made below the directory.
        roles: Only turns whose first message has one of these roles; () for all.
        kinds: Only steps of these kinds; () for all.
        facets: Only steps with one of these facts; () for all.
        since, until: Only steps made at that time or later, and before that time, in milliseconds since 1970.
        exclude_sessions: Sessions whose turns are no results, such as the one that asks. Unknown names are ignored.
        sender: Only turns whose user message has that sender, "" for one without a sender; None for all. Messages to a
            worker have the sender of the one for which it was created.
        with_answers: True to read the question before a hit that answers it, and the answer after one that asks.
        min_share: Only hits with at least that share of the best score, so that others are not read; 0 for all.
        only_evident: Only hits from `SearchResult.evident_score` on, and none of a result that is not evident.
        limit: The maximum number of hits.
        snippet_characters: The maximum number of characters of a snippet.
    """

    text: str
    session: str | None = None
    directory: str | None = None
    below: bool = True
    roles: tuple[str, ...] = ()
    kinds: tuple[StepKind, ...] = ()
    facets: tuple[StepFacet, ...] = ()
    since: int | None = None
    until: int | None = None
    exclude_sessions: tuple[str, ...] = ()
    sender: str | None = None
    with_answers: bool = False
    min_share: float = 0.0
    only_evident: bool = False
    limit: int = 10
    snippet_characters: int = SNIPPET_CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHit:
    """A step that fits a question.

    Attributes:
        session: The name of a session that has the step.
        step: The id of the step.
        turn: The id of its turn.
        kind: The kind of the step.
        created: When it was appended, in milliseconds since 1970.
        role: The role of its first message.
        text: A snippet with as many words of the question as possible, redacted.
        score: Higher is better; comparable within one result.
        words: The words of the question in the snippet; none if only the steps around it have them.
        question: The question of the user that a reply answers, redacted and cut; "" if it has none, or is no reply.
        answer: The reply to a question of the user, in the same way.
        beside: The step of question or answer; "" for none.
    """

    session: str
    step: str
    turn: str
    kind: StepKind
    created: int
    role: str
    text: str
    score: float
    words: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of a question.

    Attributes:
        hits: The best turns, best first.
        sessions: The names of the sessions that fit best, best first.
        coverage: The share of the question's words, weighted by their rarity, that the best turn and its neighbours
            have: from 0 to 1. A low one says that the answer is probably not there.
        evident_score: The score from which on a hit is probably about the question.
        is_evident: False if too few words match, or a name of the question occurs nowhere: then no hit is.
        unknown_names: Names, paths and identifiers of the question that occur nowhere in the scope.
        turns: The number of turns that were searched.
        unknown_words: Other words of the question that occur nowhere in the scope, as far as they are looked up.
    """

    hits: tuple[StepHit, ...]
    sessions: tuple[str, ...]
    coverage: float
    evident_score: float
    is_evident: bool
    unknown_names: tuple[str, ...]
    turns: int
    unknown_words: tuple[str, ...] = ()

    @property
    def strong_hits(self) -> tuple[StepHit, ...]:
        """The hits without those whose score is far below that of the best."""
        floor = MIN_SHARE_OF_BEST * self.hits[0].score if self.hits else 0.0
        return tuple(hit for hit in self.hits if hit.score >= floor)


def search_steps(ledger: Ledger, query: StepQuery, *, advance: Advance = ignore_progress) -> SearchResult:
    """Return the turns of a ledger that fit a question best.

    Steps that are new are indexed first: the first search of a large ledger takes a while. A ledger that cannot be
    written is indexed in memory.

    Args:
        ledger: The ledger.
        query: The question and its filters.
        advance: Called with the number of steps that were indexed since its last call.

    Raises:
        UnknownNameError: There is no such session, role, kind or facet.
        UsageError: A field of the query has the wrong type, the limit is not positive, or `since` is after `until`.
    """
    _check_query(query)
    excluded = _find_excluded_parts(ledger, query)

    def search(index: StepIndex, read_steps: StepReader) -> SearchResult:
        scope = _find_scope(ledger, index, query, excluded)
        ranking = rank_steps(index, query.text, scope)
        result, others = _build_result(ledger, index, query, ranking, read_steps)
        if others and len(result.hits) < query.limit:
            scope = scope._replace(limit=max(query.limit, MAX_SENDER_RESULTS))
            ranking = rank_steps(index, query.text, scope)
            result, _ = _build_result(ledger, index, query, ranking, read_steps)
        return result

    return _read_index(ledger, search, advance, unsearched=excluded)


def map_facet_steps(
    ledger: Ledger, query: StepQuery, read: Callable[[Step], T], cache: MutableMapping[IndexedStep, T]
) -> list[tuple[T, str]]:
    """Apply a function to each step with a facet, and name its session, newest first.

    Only steps that are not in the cache are read. The index says which steps and sessions there are, so that steps that
    others appended are found, and those that were deleted or forgotten are not.

    Args:
        ledger: The ledger.
        query: The facets, the scope, and the maximum number of steps.
        read: Called with a step.
        cache: Results by the facts of the step; entries of steps that are gone stay until it is cleared.

    Raises:
        UnknownNameError: There is no such session or facet.
    """
    _check_query(query)
    excluded = _find_excluded_parts(ledger, query)

    def list_results(index: StepIndex, read_steps: StepReader) -> list[tuple[T, str]]:
        scope = _find_scope(ledger, index, query, excluded)
        stems = [build_facet_stem(facet) for facet in query.facets]
        places = {place >> 1 for found in index.find_postings(stems, scope.spans, query.limit) for place in found}
        facts = index.read_facts([(id_, id_) for id_ in sorted(places)])
        held = [ScoredStep(0.0, id_, facts[id_]) for id_ in facts if not is_id_in_spans(id_, scope.excluded)]
        held = sorted(held, key=lambda each: (-each.facts.created, -each.id))[: query.limit]
        new = [each for each in held if each.facts not in cache]
        if new:
            steps = read_steps(new)
            cache.update((each.facts, read(steps[each.id])) for each in new if each.id in steps)
        names = _name_sessions(ledger, index, query, {each.id >> TURN_BITS for each in held}) if held else {}
        return [(cache[each.facts], names[each.id >> TURN_BITS]) for each in held if each.facts in cache]

    return _read_index(ledger, list_results, ignore_progress, unsearched=excluded)


def count_turns_with(
    ledger: Ledger, stems: Collection[str], *, most: int, is_excluded: Callable[[Step], bool] = lambda _step: False
) -> dict[str, int]:
    """Return the number of turns that have each stem, without ranking them.

    Args:
        ledger: The ledger.
        stems: Stems of words.
        most: The number from which on more turns of a stem need not be counted.
        is_excluded: True for a step that does not count.
    """

    def count(index: StepIndex, read_steps: StepReader) -> dict[str, int]:
        counts, turns = dict.fromkeys(stems, 0), dict[int, str]()
        pending, limit = [*counts], _POSTINGS_PER_TURN * most
        spans = index.find_all()
        while pending and spans:
            found = dict(zip(pending, index.find_postings(pending, spans, limit), strict=True))
            new = {place >> 1 for places in found.values() for place in places} - turns.keys()
            facts = index.read_facts([(id_, id_) for id_ in sorted(new)])
            steps = read_steps([ScoredStep(0.0, id_, facts[id_]) for id_ in facts])
            turns |= {id_: "" if is_excluded(step) else step.turn for id_, step in steps.items()}
            counts |= {stem: len({turns.get(place >> 1, "") for place in found[stem]} - {""}) for stem in pending}
            pending = [stem for stem in pending if counts[stem] < most and len(found[stem]) >= limit]
            limit *= _POSTINGS_PER_TURN
        return {stem: min(number, most) for stem, number in counts.items()}

    return _read_index(ledger, count, ignore_progress)


def _read_index(
    ledger: Ledger,
    work: Callable[[StepIndex, StepReader], T],
    advance: Advance,
    unsearched: Sequence[BranchPart] = (),
) -> T:
    """Call a function with an up-to-date index and a step reader.

    A damaged index is built anew; a ledger that cannot be written is indexed in memory.

    Args:
        ledger: The ledger.
        work: The function.
        advance: Called with the number of steps that were indexed since its last call.
        unsearched: Parts of branches whose newest steps need not be indexed.

    Raises:
        LedgerError: The search fails with an index that was just built, too.
    """
    index: StoredStepIndex | None = None
    if isinstance(ledger, StoreLedger) and (get_index := getattr(ledger.store, "step_index", None)) is not None:
        index = get_index()
    if isinstance(ledger, StoreLedger) and index is not None:
        read = partial(ledger.store.read, partial(work, index, partial(_read_stored_steps, ledger, index)))
        try:
            if index.catch_up(advance, unsearched):
                return read()
        except (LedgerUnreachableError, UnknownNameError):
            raise
        except Exception as error:  # noqa: BLE001 - a damaged index may raise anything, and can be built anew
            if _rebuild_index(index, error, advance):
                return _read_new_index(index, read)
    return _read_index_in_memory(ledger, work, advance)


def _rebuild_index(index: StoredStepIndex, error: Exception, advance: Advance) -> bool:
    """Build an index anew after an error. Return False if it cannot be written.

    Raises:
        LedgerError: A new index had the same error before, so that it is not a damage.
    """
    what = _describe_failure(error)
    if index.read_failure() == what:
        raise _build_search_error(what) from error
    try:
        index.drop()
    except LedgerError:  # not writable
        return False
    getLogger("nexus_core.memory").warning("the search index is damaged and is built anew (%s)", what)
    try:
        return index.catch_up(advance)
    except LedgerUnreachableError:
        raise
    except Exception as again:
        raise _build_search_error(_describe_failure(again)) from again


def _read_new_index(index: StoredStepIndex, read: Callable[[], T]) -> T:
    """Call a function with a new index, and record its error.

    Building the index again would not help.
    """
    try:
        return read()
    except (LedgerUnreachableError, UnknownNameError):
        raise
    except Exception as error:
        what = _describe_failure(error)
        with suppress(LedgerError):
            index.note_failure(what)
        raise _build_search_error(what) from error


def _describe_failure(error: Exception) -> str:
    what = error.what if isinstance(error, LedgerError) else f"{type(error).__name__}: {error}"
    return one_line(what[:_MAX_FAILURE_CHARACTERS])


def _build_search_error(what: str) -> LedgerError:
    hint = (
        "`nexus ledger verify` checks the ledger; if it is intact, this is a defect of Nexus: please report it. "
        "`nexus session search --exact` needs no index"
    )
    return LedgerError(f"the search fails with a new index, too ({what})", hint=hint)


_TIME = ((int, float, NoneType), "milliseconds since 1970: 1_767_225_600_000")
_FLAG = ((bool,), "True or False")
_FIELD_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "a text"),
    "session": ((str, NoneType), "the name of a session"),
    "directory": ((str, os.PathLike, NoneType), "a path"),
    "roles": ((tuple, list), "a list: ['user']"),
    "kinds": ((tuple, list), "a list: ['reply']"),
    "facets": ((tuple, list), "a list: ['command']"),
    "since": _TIME,
    "until": _TIME,
    "exclude_sessions": ((tuple, list), "a list: ['name']"),
    "sender": ((str, NoneType), "a text"),
    "below": _FLAG,
    "with_answers": _FLAG,
    "only_evident": _FLAG,
    "min_share": ((int, float), "a number from 0 to 1"),
    "limit": ((int,), "a whole number, 1 or more"),
    "snippet_characters": ((int,), "a whole number, 1 or more"),
}
"""The types of the fields of a query, and what to write."""


def _check_types(query: StepQuery) -> None:
    for field, (kinds, wanted) in _FIELD_TYPES.items():
        value = getattr(query, field)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            shown = repr(value) if isinstance(value, str) else f"of type {type(value).__name__}"
            raise UsageError(f"{field} of a search must not be {shown}", hint=f"write {wanted}")
        if isinstance(value, tuple | list) and (others := [each for each in value if not isinstance(each, str)]):
            what = f"{field} of a search must not have a value of type {type(others[0]).__name__}"
            raise UsageError(what, hint=f"write {wanted}")


def _check_query(query: StepQuery) -> None:
    _check_types(query)
    if query.limit < 1:
        raise UsageError(f"the limit is {query.limit}", hint="it must be 1 or more")
    if query.snippet_characters < 1:
        raise UsageError(f"snippet_characters is {query.snippet_characters}", hint="it must be 1 or more")
    if query.since is not None and query.until is not None and query.since > query.until:
        raise UsageError("since is after until, so that no step can be found", hint="swap the two times")
    for role in query.roles:
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES)
    for kind in query.kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS)
    for facet in query.facets:
        read_facet(facet)


def _read_stored_steps(ledger: StoreLedger, index: StoredStepIndex, best: Sequence[ScoredStep]) -> dict[int, Step]:
    rows = index.read_steps([each.facts.step for each in best])
    if len(rows) < len({each.facts.step for each in best}):
        raise LedgerError("the search index is damaged: it names a step that is not there")
    return {each.id: StoredStep(rows[each.facts.step], ledger.blob) for each in best}


_MEMORY_INDEXES: WeakKeyDictionary[Any, InMemoryStepIndex] = WeakKeyDictionary()


def _read_index_in_memory(ledger: Ledger, work: Callable[[StepIndex, StepReader], T], advance: Advance) -> T:
    index = _MEMORY_INDEXES.setdefault(ledger, InMemoryStepIndex())
    deletions = len(ledger.deletions()) if isinstance(ledger, DeletableLedger) else 0
    index.catch_up(ledger, deletions=deletions, advance=advance)

    def read_steps(best: Sequence[ScoredStep]) -> dict[int, Step]:
        found = {each.id: ledger.step(each.facts.step) for each in best}
        return {id_: step for id_, step in found.items() if step is not None}

    return work(index, read_steps)


def _find_excluded_parts(ledger: Ledger, query: StepQuery) -> list[BranchPart]:
    records = [ledger.session(name) for name in query.exclude_sessions]
    return [part for record in records if record is not None for part in _find_parts(ledger, record)]


def _find_scope(ledger: Ledger, index: StepIndex, query: StepQuery, excluded: Sequence[BranchPart] = ()) -> StepScope:
    if query.session is not None:
        spans = index.find_parts(_find_session_parts(ledger, query.session))
        if query.directory is not None:
            inside = index.find_directory(os.path.abspath(query.directory), below=query.below)  # noqa: PTH100 - as sessions record it
            spans = [span for span in spans if any(each.low <= span.low <= each.high for each in inside)]
    elif query.directory is not None:
        spans = index.find_directory(os.path.abspath(query.directory), below=query.below)  # noqa: PTH100 - as sessions record it
    else:
        spans = index.find_all()
    spans_out = sorted({*index.find_parts(excluded)}) if excluded else []
    return StepScope(spans, spans_out, _build_filter(query), query.limit)


def _find_session_parts(ledger: Ledger, name: str) -> list[BranchPart]:
    """Return the parts of branches that a session consists of.

    Raises:
        UnknownNameError: There is no such session.
    """
    record = ledger.session(name)
    if record is None:
        raise UnknownNameError("session", name, [each.label for each in ledger.sessions(status=None)])
    return [*_find_parts(ledger, record)]


def _find_parts(ledger: Ledger, record: SessionRecord) -> Iterable[BranchPart]:
    if record.tip is None:
        return
    if not isinstance(ledger, StoreLedger):
        last = {step.branch: step.position for step in ledger.thread(record.tip)}
        yield from (BranchPart(branch, position) for branch, position in last.items())
        return
    place = ledger.store.read(partial(ledger.store.place, record.tip))
    branch, position = (place.branch, place.position) if place else (None, -1)
    while branch is not None:
        yield BranchPart(branch, position)
        row = ledger.store.read(partial(ledger.store.branch, branch))
        if row is not None and row.position >= position:  # a damaged ledger
            return
        branch, position = (row.parent, row.position) if row else (None, -1)


def _build_filter(query: StepQuery) -> Callable[[IndexedStep], bool] | None:
    if not (query.roles or query.kinds or query.facets) and query.since is None and query.until is None:
        return None
    facets = build_facet_flags(query.facets)

    def accepts(facts: IndexedStep) -> bool:
        return (
            (not query.roles or facts.role in query.roles)
            and (not query.kinds or facts.kind in query.kinds)
            and (not facets or facts.flags & facets != 0)
            and (query.since is None or facts.created >= query.since // 1000)
            and (query.until is None or facts.created * 1000 < query.until)
        )

    return accepts


def _build_result(
    ledger: Ledger,
    index: StepIndex,
    query: StepQuery,
    ranking: StepRanking,
    read_steps: StepReader,
) -> tuple[SearchResult, int]:
    """Return the hits of a ranking, and the number with another sender."""
    numbers = sorted(ranking.numbers, key=lambda number: (-ranking.numbers[number], number))[: query.limit]
    names = _name_sessions(
        ledger, index, query, {*numbers, *(each.id >> TURN_BITS for each in ranking.turns[: query.limit])}
    )
    find_default_sender = lru_cache(maxsize=None)(partial(find_session_sender, ledger))

    def is_own(step: Step, session: str) -> bool:
        """True if the sender of the query opened the turn of a step."""
        sender = _read_turn_sender(ledger, step) or find_default_sender(session)
        return sender == query.sender and sender != UNKNOWN_SENDER

    words = {word.stem: word.text for word in find_query_words(query.text)}
    hits: dict[tuple[str, str], StepHit] = {}
    quoted: set[str] = set()
    at = others = 0
    least = query.min_share * ranking.turns[0].score if ranking.turns else 0.0
    if query.only_evident:
        least = max(least, ranking.evident_score) if ranking.is_evident else inf
    while len(hits) < query.limit and at < len(ranking.turns):
        best = [each for each in ranking.turns[at : at + query.limit - len(hits)] if each.score >= least]
        if not best:
            break
        at += len(best)
        steps = read_steps(best)
        if unnamed := {each.id >> TURN_BITS for each in best} - names.keys():
            names |= _name_sessions(ledger, index, query, unnamed)
        if query.sender is not None:
            own = {id_: step for id_, step in steps.items() if is_own(step, names[id_ >> TURN_BITS])}
            others += len(steps) - len(own)
            steps = own
        others_said = _read_answers(index, best, steps, read_steps, set(words)) if query.with_answers else {}
        for each in best:
            if each.id in steps and steps[each.id].id not in quoted:
                hit = _build_hit(each, steps[each.id], names, words, query)
                if each.id in others_said:
                    said = others_said[each.id]
                    hit = replace(hit, question=said.question, answer=said.answer, beside=said.step)
                    quoted.add(said.step)
                # Programs repeat the same list in many calls: one of them is enough.
                is_short = len(hit.text) < MIN_REPEATED_CHARACTERS
                hits.setdefault((hit.session, hit.step if is_short else hit.text), hit)
    # A hit may have a word in a part of a long text that is not indexed.
    shown = {word for hit in hits.values() for word in hit.words}
    return SearchResult(
        hits=tuple(hits.values()),
        sessions=tuple(dict.fromkeys(name for number in numbers if (name := names[number]))),
        coverage=round(ranking.coverage, 4),
        evident_score=ranking.evident_score,
        is_evident=ranking.is_evident,
        unknown_names=ranking.unknown_names,
        turns=ranking.searched,
        unknown_words=tuple(word for word in ranking.unknown_words if word not in shown),
    ), others


class _AdjacentMessage(NamedTuple):
    """The question or the answer beside a hit, and its step."""

    question: str
    answer: str
    step: str


def _read_answers(
    index: StepIndex, hits: Sequence[ScoredStep], of_hits: Mapping[int, Step], read_steps: StepReader, stems: set[str]
) -> dict[int, _AdjacentMessage]:
    """Return the question or reply of the same turn beside each hit, by hit id."""
    wanted: dict[int, tuple[int, bool]] = {}
    for each in hits:
        if each.facts.role == "assistant":
            wanted[each.id] = (each.id - 1, True)
        elif each.facts.role == "user" and each.facts.flags & IS_QUESTION:
            wanted[each.id] = (each.id + 1, False)
    facts = index.read_facts([(id_, id_) for id_ in sorted({id_ for id_, _ in wanted.values()})]) if wanted else {}
    replies = {id_ for id_, each in facts.items() if each.role == "assistant"}
    questions = {id_ for id_, each in facts.items() if each.role == "user" and each.flags & IS_QUESTION}
    found = {
        id_: (beside, is_question)
        for id_, (beside, is_question) in wanted.items()
        if beside in (questions if is_question else replies)
    }
    steps = read_steps([ScoredStep(0.0, beside, facts[beside]) for beside, _ in found.values()]) if found else {}
    quoted: dict[int, _AdjacentMessage] = {}
    for id_, (beside, is_question) in found.items():
        # Another turn may be that of another sender.
        if beside in steps and id_ in of_hits and steps[beside].turn == of_hits[id_].turn:
            text = find_snippet(steps[beside], stems, MAX_ANSWER_CHARACTERS)
            quoted[id_] = _AdjacentMessage(text if is_question else "", "" if is_question else text, steps[beside].id)
    return quoted


def _read_turn_sender(ledger: Ledger, step: Step) -> str:
    """Return who sent the message that opened the turn of a step."""
    return read_sender(step) if step.id == step.turn else find_sender(ledger, step.turn)


def _build_hit(
    score: ScoredStep, step: Step, names: dict[int, str], words: dict[str, str], query: StepQuery
) -> StepHit:
    snippet = find_snippet(step, set(words), query.snippet_characters, query.facets)
    found = find_shared_stems(snippet, words)
    return StepHit(
        session=names[score.id >> TURN_BITS],
        step=step.id,
        turn=step.turn,
        kind=step.kind,
        created=step.created,
        role=score.facts.role,
        text=snippet,
        score=round(score.score, 4),
        words=tuple(word for stem, word in words.items() if stem in found),
    )


def _name_sessions(ledger: Ledger, index: StepIndex, query: StepQuery, numbers: set[int]) -> dict[int, str]:
    """Return session names by branch number."""
    if query.session is not None and (record := ledger.session(query.session)) is not None:
        return dict.fromkeys(numbers, record.label)
    branches = index.find_branches(numbers)
    if len(branches) < len(numbers):
        raise LedgerError("the search index is damaged: a branch is missing")
    return {number: name for number, (_, name) in branches.items()}


_WORD = re.compile(r"[^\W_]+")


def find_snippet(step: Step, stems: set[str], most: int, facets: Collection[StepFacet] = ()) -> str:
    """Return the redacted part of a step with the most query words.

    Args:
        step: The step.
        stems: The stems of the words.
        most: The maximum number of characters.
        facets: The facts that are searched for: of a tool call, the snippet is its command or a file that it changed.
    """
    facts = [("", fact) for message in step.messages for fact in _list_call_facts(message, facets)] if facets else []
    texts = facts or [each for message in step.messages for each in _list_snippet_texts(message, most) if any(each)]
    if len(texts) == 1 and sum(map(len, texts[0])) <= most:
        return " ".join(redact("".join(texts[0])).text.split())
    (name, best), best_count = texts[0] if texts else ("", ""), -1
    best_at = 0
    for each in texts:
        at, count = _find_window(each[1][:_MAX_SNIPPET_SOURCE], stems, max(most - len(each[0]), most // 2))
        if count > best_count:
            (name, best), best_at, best_count = each, at, count
    # Redacted before it is cut: a part of a secret is not recognized as one.
    name = redact(name).text[: most // 2]
    room = most - len(name)
    hidden = redact_beginning(best, _MAX_SNIPPET_SOURCE)
    if hidden != best[:_MAX_SNIPPET_SOURCE]:
        best_at, _ = _find_window(hidden, stems, room)
    best = hidden
    start = _find_word_start(best, best_at)
    cut = best[start : start + room]
    return " ".join((name + ("…" if start else "") + cut + ("…" if start + room < len(best) else "")).split())


def _list_snippet_texts(message: Message, most: int) -> Iterator[tuple[str, str]]:
    """Yield the texts of a message, each with a label such as `Bash command: `.

    A tool call is its name with its arguments, or each argument by itself if these take more than `most` characters.
    """
    for part in message.parts:
        if isinstance(part, ToolCall):
            arguments = _redact_arguments(part)
            written = f"{part.name} {json.dumps(arguments, ensure_ascii=False)}" if arguments else part.name
            if len(written) <= most:
                yield "", written
            else:
                yield from ((f"{part.name} {name}: ", text) for name, text in _list_texts(arguments))
        elif isinstance(part, ToolResult | Text | Reasoning) and part.text.strip():
            yield "", part.text


def _list_texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a JSON value, each with its key."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _list_texts(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _list_texts(each, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def _list_call_facts(message: Message, facets: Collection[StepFacet]) -> Iterator[str]:
    """Yield the commands and changed files of the tool calls of a message."""
    for call in message.tool_calls:
        yield from list_facet_values(replace(call, arguments=_redact_arguments(call)), facets)


def _redact_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a tool call without secrets.

    The name of an argument may be the only evidence that its value is a password.
    """
    redacted: dict[str, Any] = redact_json(json.loads(write_canonical_json(dict(call.arguments))))
    return redacted


def _find_window(text: str, stems: set[str], most: int) -> tuple[int, int]:
    """Return the start of the window with the most query words, and their count."""
    places = [
        (match.start(), match.end(), stem)
        for match in _WORD.finditer(text)
        for stem in _find_word_stems(match[0])
        if stem in stems
    ]
    best_at, best_count = 0, 0
    first = 0
    counts: dict[str, int] = {}
    for start, end, stem in places:
        counts[stem] = counts.get(stem, 0) + 1
        while end - places[first][0] > most and places[first][0] < start:
            left = places[first][2]
            counts[left] -= 1
            if not counts[left]:
                del counts[left]
            first += 1
        if len(counts) > best_count:
            best_count = len(counts)
            spare = max(most - (end - places[first][0]), 0) // 3
            best_at = max(0, places[first][0] - spare)
    return (0 if len(text) <= most else min(best_at, max(len(text) - most, 0))), best_count


def find_word_forms(text: str, words: Collection[str]) -> set[str]:
    """Return the words of a text that are forms of the given words."""
    stems = {get_index_stem(word) for word in words}
    return {match[0] for match in _WORD.finditer(text) if not stems.isdisjoint(_find_word_stems(match[0]))}


def _find_word_stems(word: str) -> Iterable[str]:
    # Most words are in lower case and have one stem.
    return (get_index_stem(word),) if word.isascii() and word.islower() else find_stems(split_words(word))


def _find_word_start(text: str, at: int) -> int:
    """Return the beginning of the word at an index, if it is near."""
    if at <= 0 or at >= len(text):
        return max(0, at)
    space = max(text.rfind(" ", max(0, at - 20), at), text.rfind("\n", max(0, at - 20), at))
    return space + 1 if space >= 0 else at
