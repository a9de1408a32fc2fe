"""Ranking of turns by the words of a question. One engine for all stores.

A word counts for turns up to three away, less with distance: an answer rarely repeats the words of its question. Of
each word the best place counts, not the sum. Rare words count more than frequent ones. On top of that count: who is
named, the month that is named, questions (less: they are not answers), and what else the session has.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from math import exp, inf, log
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.memory.facets import find_facet_keyword_stems, find_query_facets
from nexus_core.memory.step_index import (
    HAS_TIME,
    IS_QUESTION,
    TURN_BITS,
    build_facet_flags,
    build_facet_stem,
    build_speaker_stem,
    is_id_in_spans,
)
from nexus_core.memory.words import FRAME_STEMS, MONTHS, find_query_entities, find_query_words, find_stems, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from nexus_core.memory.step_index import IdSpan, IndexedStep, StepIndex
    from nexus_core.memory.words import QueryWord
    from nexus_core.types.memory import StepFacet

PLACES_BY_TURNS = ((6_000, 1_000_000), (50_000, 1_000))
"""How many turns a scope has at most, and how many places of a word are read in it: the newest ones."""
MAX_POSTINGS = 300
"""Places of a word that are read in a larger scope: old turns need one rarer word to be found there."""
MAX_SEEDS = 64
"""Best turns by their own words that are scored with their neighbours."""
SCOPED_TURNS, MAX_SCOPED_SEEDS = 6_000, 128
"""The same in a scope of so many turns or fewer."""
MIN_SEEDS, SEEDS_PER_RESULT = 24, 5
"""The same for few results, if that is less: of ten results, 48 seeds find as many as 128 in 3,000 turns, and 32 miss a
point."""
SMALL_SCOPE_TURNS, SMALL_SCOPE_SEEDS_PER_RESULT = 1_000, 3
"""The same in a small scope: 24 seeds find as much as 128 in a conversation of 600 turns (82.1 % of the evidence)."""
MAX_FILTERED_SEEDS = 2_000
"""The same where filters may reject most of them."""
NEIGHBORS = 3
DECAYS = ((0, 1.0), (1, 0.8), (2, 0.6), (3, 0.4), (-1, 0.6), (-2, 0.4), (-3, 0.3))
"""Weight of a word for the turns after it, by distance: answers come after questions."""
REST_WEIGHT = 0.5
"""Weight of a word in a tool result."""
LENGTH_WEIGHT, SATURATION = 0.4, 1.2
NAME_WEIGHT, SPEAKER_FACTOR = 0.5, 1.3
MAX_LABEL_TURNS, MAX_LABEL_SHARE = 4, 20
"""Turns, and the part of a scope, up to which a word before a colon is a label ("Deadline: …") and no speaker.

A label counts as a word of its turns.
"""
FRAME_WEIGHT = 0.5
"""How much a word counts that only frames a question: its answer seldom has it."""
QUESTION_FACTOR, TIME_FACTOR, DATE_FACTOR = 0.85, 1.2, 2.0
FACET_FACTOR = 1.8
"""How much more a turn counts that has a fact of the kind that a question asks for."""
MIN_WEIGHT_SHARE = 0.02
"""The share of the heaviest word's weight below which a word is not scored: nearly every turn of the scope has it, so
that it moves no turn and costs the most."""
SESSION_SHARE = 0.1
"""The share of the session's score in the score of a turn."""


MIN_EVIDENT_SHARE, MIN_BEST_SHARE = 0.275, 0.3
"""A turn is evident whose score is 27.5 % of the weight of the question's words, if that of the best one is 30 %. Both
are those of a question with three rare words. Measured, a turn below that is an answer once in 180 tokens or less of
what questions about other things would get; nothing else that a ranking knows of a turn tells them apart better."""
TYPICAL_RARE_WORDS, RARITY_EXPONENT = 3.0, -0.35
RARITY_FACTORS = (0.6, 1.4)
"""The smallest and the largest factor for other numbers of rare words: many words that match in part say more than one
that does."""


class ScoredStep(NamedTuple):
    """The score of a turn.

    Attributes:
        score: Higher is better; comparable within one question.
        id: The id of the turn.
        facts: Its facts.
    """

    score: float
    id: int
    facts: IndexedStep


class StepRanking(NamedTuple):
    """Ranked turns of a scope.

    Attributes:
        turns: The best turns, best first.
        numbers: The score of each branch number with such a turn.
        coverage: The share of the question's words, weighted by rarity, that the best turn and its neighbours have.
        unknown_names: Names of the question that do not occur in the scope.
        unknown_words: Other words that do not, but those that only frame a question.
        weight: The weight of all words of the question, known or not.
        searched: The number of turns of the scope.
    """

    turns: list[ScoredStep]
    numbers: dict[int, float]
    coverage: float
    unknown_names: tuple[str, ...]
    unknown_words: tuple[str, ...]
    weight: float
    searched: int

    @property
    def evident_score(self) -> float:
        """The score from which on a turn is probably about the question."""
        rarest = log(1 + (self.searched + 0.5) / 0.5)  # the weight of a word that occurs nowhere
        least, most = RARITY_FACTORS
        factor = min(max(exp(RARITY_EXPONENT * log(self.weight / rarest / TYPICAL_RARE_WORDS)), least), most)
        return MIN_EVIDENT_SHARE * self.weight * factor

    @property
    def is_evident(self) -> bool:
        """True if the best step matches enough words, and no name is unknown."""
        best = self.turns[0].score if self.turns else 0.0
        return not self.unknown_names and best >= self.evident_score * MIN_BEST_SHARE / MIN_EVIDENT_SHARE


class StepScope(NamedTuple):
    """The turns to search.

    Attributes:
        spans: Their ids, in order.
        excluded: Ids among them that are no results, in order.
        accepts: Returns True for a turn that may be a result; None accepts all.
        limit: The number of results that are wanted.
    """

    spans: Sequence[IdSpan]
    excluded: Sequence[IdSpan] = ()
    accepts: Callable[[IndexedStep], bool] | None = None
    limit: int = MAX_FILTERED_SEEDS

    @property
    def turns(self) -> int:
        """The number of turns."""
        return sum(span.turns for span in self.spans)

    def select(self, ids: Collection[int], facts: Mapping[int, IndexedStep]) -> dict[int, IndexedStep]:
        """Return the facts of those turns that may be results."""
        spans, excluded, accepts = self.spans, self.excluded, self.accepts
        low, high = spans[0].low, spans[-1].high
        held = {id_: facts[id_] for id_ in facts.keys() & ids if low <= id_ <= high}
        if len(spans) > 1:
            held = {id_: each for id_, each in held.items() if is_id_in_spans(id_, spans)}
        if excluded:
            held = {id_: each for id_, each in held.items() if not is_id_in_spans(id_, excluded)}
        return held if accepts is None else {id_: each for id_, each in held.items() if accepts(each)}


class _WordPostings(NamedTuple):
    """A word of the question: its weight, and the factor of each turn that has it."""

    weight: float
    turns: dict[int, float]


class _FoundWords(NamedTuple):
    """Query words found in an index: scored words, stems, speaker, weight."""

    found: list[_WordPostings]
    known: set[str]
    speaker: int
    weight: float


class _NamedDate(NamedTuple):
    """A month, a year or both in a question. 0 stands for a missing part."""

    year: int
    month: int

    def holds(self, created: int) -> bool:
        moment = time.gmtime(created)
        return self.year in (0, moment.tm_year) and self.month in (0, moment.tm_mon)


def rank_steps(index: StepIndex, text: str, scope: StepScope) -> StepRanking:
    """Return the turns of a scope that fit a question best.

    Args:
        index: Where the words occur.
        text: The question, any text.
        scope: The turns to search.
    """
    turns = scope.turns
    names = find_query_entities(text)
    if not turns:
        return StepRanking([], {}, 0.0, names, _find_unknown_words(text, names, ()), 1.0, 0)
    asked = find_query_facets(text)
    with_facet = index.find_postings([build_facet_stem(each) for each in asked], scope.spans, 1)
    facets = [facet for facet, places in zip(asked, with_facet, strict=True) if places]
    words = _look_up_words(index, text, scope, find_facet_keyword_stems(text, facets))
    unknown = tuple(name for name in names if any(stem not in words.known for stem in find_stems(split_words(name))))
    unknown_words = _find_unknown_words(text, names, words.known)
    if not words.found:
        return StepRanking([], {}, 0.0, unknown, unknown_words, 1.0, turns)
    scores, covered = _score_turns(index, words.found, scope)
    adjust = _Adjustment.of(text, words.speaker, facets)
    numbers = _score_numbers(words.found, {id_ >> TURN_BITS for id_ in scores})
    ranked = [
        ScoredStep((score + SESSION_SHARE * numbers[id_ >> TURN_BITS]) * adjust.factor(facts), id_, facts)
        for id_, (score, facts) in scores.items()
    ]
    ranked.sort(reverse=True)  # by score, then by id, which differ
    best: dict[int, ScoredStep] = {}
    for each in ranked:
        best.setdefault(each.id >> TURN_BITS, each)
    by_number = {
        number: numbers[number] * (DATE_FACTOR if adjust.has_date(each.facts) else 1.0) + 2 * each.score
        for number, each in best.items()
    }
    coverage = min(1.0, covered / words.weight)
    return StepRanking(ranked, by_number, coverage, unknown, unknown_words, words.weight, turns)


def _find_unknown_words(text: str, names: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the words of a question whose stems are not known, without names and words that frame a question."""
    of_names = find_stems(word for name in names for word in split_words(name))
    return tuple(
        word.text
        for word in find_query_words(text)
        if word.stem not in known and word.stem not in of_names and word.stem not in FRAME_STEMS
    )


def _look_up_words(index: StepIndex, text: str, scope: StepScope, frame: Collection[str]) -> _FoundWords:
    """Return the postings and weights of a question's words in a scope.

    Args:
        index: Where the words occur.
        text: The question.
        scope: The turns to search.
        frame: Stems of words that only say which facts the question asks for.
    """
    turns = scope.turns
    limit = next((places for most, places in PLACES_BY_TURNS if turns <= most), MAX_POSTINGS)
    words = find_query_words(text)
    named = _find_named_speakers(index, words, scope, limit)
    found: list[tuple[float, list[int]]] = []
    known: set[str] = set()
    speakers: set[int] = set()
    total = 0.0
    of_words = index.find_postings([each.stem for each in words], scope.spans, limit)
    is_only_named = not any(of_words)
    for word, of_word in zip(words, of_words, strict=True):
        speaker, own = named.get(word.text, (0, []))
        places = of_word
        if is_only_named or 0 < len(own) <= max(MAX_LABEL_TURNS, turns // MAX_LABEL_SHARE):
            speaker, places = 0, [*{*of_word, *own}]
        if speaker:
            speakers.add(speaker)
        if places or speaker:
            known.add(word.stem)
        frequency = len(places) if len(places) < limit else _estimate_frequency(places, scope.spans, turns)
        frequency = min(frequency, turns)
        weight = log(1 + (turns - frequency + 0.5) / (frequency + 0.5)) * _weigh_word(word, speaker, frame)
        total += weight
        searched = places
        for span in scope.excluded:
            low, high = span.low << 1, span.high << 1 | 1
            searched = [place for place in searched if not low <= place <= high]
        if searched:
            found.append((weight, searched))
    least = MIN_WEIGHT_SHARE * max([weight for weight, _ in found], default=0.0)
    scored = [_WordPostings(weight, _weight_turns(places)) for weight, places in found if weight >= least]
    return _FoundWords(scored, known, speakers.pop() if len(speakers) == 1 else 0, total or 1.0)


def _find_named_speakers(
    index: StepIndex, words: Sequence[QueryWord], scope: StepScope, limit: int
) -> dict[str, tuple[int, list[int]]]:
    """Return the numbers of speakers in a question, each with the places of their turns, by name."""
    speakers = index.find_speakers()
    names = [word.text for word in words if word.text in speakers]
    turns = index.find_postings([build_speaker_stem(name) for name in names], scope.spans, limit)
    return {
        name: (speakers[name], [place & ~1 for place in places])
        for name, places in zip(names, turns, strict=True)
        if places
    }


def _weigh_word(word: QueryWord, speaker: int, frame: Collection[str]) -> float:
    if speaker:
        return NAME_WEIGHT
    return FRAME_WEIGHT if word.stem in FRAME_STEMS or word.stem in frame else 1.0


def _weight_turns(places: Sequence[int]) -> dict[int, float]:
    """Return the factor of each step that has a word.

    It is less where only a tool result has it.
    """
    factors = {place >> 1: REST_WEIGHT for place in places if place & 1}
    factors.update({place >> 1: 1.0 for place in places if not place & 1})
    return factors


def _estimate_frequency(places: Sequence[int], spans: Sequence[IdSpan], turns: int) -> int:
    """Return an estimate of how many steps of a scope have a word.

    It follows from how far back the newest places reach.
    """
    oldest = min(places) >> 1
    reached = sum(span.high - max(span.low, oldest) + 1 for span in spans if span.high >= oldest)
    whole = sum(span.high - span.low + 1 for span in spans)
    return min(turns, len(places) * whole // max(reached, 1))


def _score_turns(
    index: StepIndex, found: Sequence[_WordPostings], scope: StepScope
) -> tuple[dict[int, tuple[float, IndexedStep]], float]:
    """Return scores and metadata of the best steps, and the covered weight."""
    seeds = _choose_seeds(found, scope)
    candidates = {id_ for seed in seeds for id_ in range(seed - NEIGHBORS, seed + NEIGHBORS + 1)}
    # The places whose length counts are up to three turns away from a candidate.
    around = {id_ for seed in seeds for id_ in range(seed - 2 * NEIGHBORS, seed + 2 * NEIGHBORS + 1)}
    near = {id_ for _, turns in found for id_ in turns.keys() & around}
    facts = index.read_facts(_merge_ids(candidates | near))
    mean_length = max(sum(span.words for span in scope.spans) / scope.turns, 1.0)
    norm = {
        id_: (1 + SATURATION) / (1 + SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * fact.length / mean_length))
        for id_ in near
        if (fact := facts.get(id_)) is not None
    }
    accepted = scope.select(candidates, facts)  # a neighbour may be outside of the scope
    scores = dict.fromkeys(accepted, 0.0)
    covered = dict.fromkeys(accepted, 0.0)
    for weight, turns in found:
        best = dict.fromkeys(accepted, 0.0)  # turns that are not in it get no score
        for id_ in turns.keys() & norm.keys():
            factor = turns[id_]
            value = factor * norm[id_]
            if factor != 1.0:  # a word of a tool call or result counts for no other turn: one has words of many topics
                if id_ in best and value > best[id_]:
                    best[id_] = value
                continue
            for distance, decay in DECAYS:
                if decay * value > best.get(id_ + distance, inf):
                    best[id_ + distance] = decay * value
        for id_, value in best.items():
            if value:
                scores[id_] += weight * value
                covered[id_] += weight * value if value < 1.0 else weight
    best_covered = max(covered.values(), default=0.0)
    # A tool result belongs to its call: without a word of the question it is no answer, whatever is around it.
    results = [(id_, score, accepted[id_]) for id_, score in scores.items() if score]
    return {id_: (score, facts) for id_, score, facts in results if id_ in near or facts.role != "tool"}, best_covered


def _choose_seeds(found: Sequence[_WordPostings], scope: StepScope) -> list[int]:
    """Return the steps with the most matched weight, to be scored with their neighbors."""
    count = MAX_SCOPED_SEEDS if scope.turns <= SCOPED_TURNS else MAX_SEEDS
    per_result = SMALL_SCOPE_SEEDS_PER_RESULT if scope.turns <= SMALL_SCOPE_TURNS else SEEDS_PER_RESULT
    count = min(count, max(MIN_SEEDS, per_result * scope.limit))
    count = count if scope.accepts is None else MAX_FILTERED_SEEDS
    by_weight = sorted(found, key=lambda each: each.weight, reverse=True)
    left = sum(weight for weight, _ in found)
    # With enough turns that have the heaviest word, those that have only lighter ones, which weigh less, are out.
    has_enough = sum(factor == 1.0 for factor in by_weight[0].turns.values()) >= count
    least = by_weight[0].weight if has_enough else 0.0
    sums: dict[int, float] = {}
    for weight, turns in by_weight:
        for id_ in turns if left >= least else turns.keys() & sums.keys():
            sums[id_] = sums.get(id_, 0.0) + weight * turns[id_]
        left -= weight
    floor = sorted(sums.values(), reverse=True)[min(count, len(sums)) - 1]
    best = sorted([(score, id_) for id_, score in sums.items() if score >= floor], reverse=True)
    return [id_ for _, id_ in best[:count]]


def _merge_ids(ids: Collection[int]) -> list[tuple[int, int]]:
    """Return ids as ranges, each with its first and last one."""
    ranges: list[tuple[int, int]] = []
    first = last = -2
    for id_ in sorted(ids):
        if id_ == last + 1:
            last = id_
            continue
        if last >= 0:
            ranges.append((first, last))
        first = last = id_
    return [*ranges, (first, last)] if last >= 0 else ranges


def _score_numbers(found: Sequence[_WordPostings], numbers: set[int]) -> dict[int, float]:
    """Return the score of each branch by its matches."""
    scores = dict.fromkeys(numbers, 0.0)
    for weight, turns in found:
        counts = Counter([number for id_ in turns if (number := id_ >> TURN_BITS) in numbers])
        for number, count in counts.items():
            scores[number] += weight * count * (1 + SATURATION) / (count + SATURATION)
    return scores


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WHEN = re.compile(r"^\W*(?:when|since when|what (?:time|day|date|year|month)|how long ago|which (?:day|year|month))\b")


class _Adjustment(NamedTuple):
    """Factors for turns that a question asks for in other ways than by words."""

    speaker: int
    is_when: bool
    date: _NamedDate | None
    facets: int

    @classmethod
    def of(cls, text: str, speaker: int, facets: Collection[StepFacet]) -> _Adjustment:
        lowered = text[:2_000].lower()
        year = _YEAR.search(lowered)
        month = next((MONTHS[word] for word in re.findall(r"[a-z]+", lowered) if word in MONTHS and word != "may"), 0)
        if not month and re.search(r"\bMay\b", text[:2_000][1:]):
            month = MONTHS["may"]
        date = _NamedDate(int(year[0]) if year else 0, month) if year or month else None
        return cls(speaker, _WHEN.match(lowered) is not None, date, build_facet_flags(facets))

    def has_date(self, facts: IndexedStep) -> bool:
        return self.date is not None and self.date.holds(facts.created)

    def factor(self, facts: IndexedStep) -> float:
        factor = 1.0
        if self.speaker and facts.speaker == self.speaker:
            factor *= SPEAKER_FACTOR
        if facts.flags & IS_QUESTION:
            factor *= QUESTION_FACTOR
        if self.is_when and facts.flags & HAS_TIME:
            factor *= TIME_FACTOR
        if facts.flags & self.facets:
            factor *= FACET_FACTOR
        if self.has_date(facts):
            factor *= DATE_FACTOR
        return factor
