"""Facts and the user's own words as text blocks of limited length, and the index of facts that do not fit.

Each class of facts gets a share of the tokens. Facts without room are named in the index by topic and step, so that a
model knows what to read again.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.groups import is_session_start, is_user_input
from nexus_core.history.shorten import split_head_and_tail
from nexus_core.memory.facts import MINOR_CLASSES, VAGUE, parse_path
from nexus_core.memory.statements import find_rules, is_prose, is_rule, strip_inserted_text
from nexus_core.text.safety import neutralize, visible_line
from nexus_core.thread.projection import is_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nexus_core.types.compaction import Fact, ThreadMessage

STEP_SUFFIX_CHARACTERS = 6
"""The last characters of a step's id, which a summary shows: they are random, and the first ones are its time."""
MAX_QUOTE_CHARACTERS = 8000
"""Characters of a message that one compaction passes to the next, its two ends; the ledger has all of it."""
MAX_CARRIED_CHARACTERS = 200_000
"""Characters of all messages that one compaction passes to the next."""
_MIN_QUOTE_TOKENS = 24
"""Tokens below which a part of a message is not worth showing."""
_SHORT_QUOTE_TOKENS = 80
"""No message is cut to fewer tokens to make room for others; those with rules are preferred instead."""
_MAX_TYPED_TOKENS = 1200
"""A longer message is pasted text, even if it consists of sentences."""
_MAX_WORD_CHARACTERS = 24
"""Characters by which a cut may move to the border of a word."""
_HEADING = "What the user said, oldest first:"


class UserQuote(NamedTuple):
    """The text of the user in a step."""

    step: str
    position: int
    text: str


class QuoteBlock(NamedTuple):
    """The user's words as text.

    Attributes:
        text: The text; "" without quotes.
        quotes: The quotes in it, which may be shortened there.
    """

    text: str
    quotes: tuple[UserQuote, ...]


def shorten_step_id(step: str) -> str:
    """Return the part of a step's id that is shown to a model."""
    return step[-STEP_SUFFIX_CHARACTERS:]


def find_user_quotes(messages: Iterable[ThreadMessage]) -> tuple[UserQuote, ...]:
    """Return the texts of the user, without summaries, the session's start, and what programs added."""
    return tuple(
        UserQuote(each.step, each.position, text)
        for each in messages
        if is_user_input(each.message)
        and not is_summary(each.message)
        and not is_session_start(each.message)
        and (text := strip_inserted_text(each.message.content))
    )


def merge_quotes(
    previous: Iterable[UserQuote], new: Iterable[UserQuote], *, limit: int = MAX_CARRIED_CHARACTERS
) -> tuple[UserQuote, ...]:
    """Return the quotes for the next compaction, oldest first: all of them, up to a number of characters.

    If there are more, those with rules and the newest stay.

    Args:
        previous: Quotes of the previous compaction.
        new: Quotes of the messages since then.
        limit: Maximum characters.
    """
    known = _sort_quotes(quote._replace(text=_shorten_stored(quote)) for quote in (*previous, *new))
    left = limit
    chosen: list[int] = []
    for index in _rank_quotes(known):
        left -= len(known[index].text)
        if left < 0:
            break
        chosen.append(index)
    return tuple(known[index] for index in sorted(chosen))


def render_user_quotes(quotes: Iterable[UserQuote], limit: int, count: Callable[[str], int]) -> QuoteBlock:
    """Render the user's messages, oldest first.

    If not all of them fit, pasted texts are cut to their two ends and their rules, with a line that names the step of
    the whole text; then all long messages are. If that is not enough, the first message, those with rules and the
    newest stay.

    Args:
        quotes: The user's messages.
        limit: Maximum tokens.
        count: Counts the tokens of a text.
    """
    known = _sort_quotes(quotes)
    available = limit - count(f"{_HEADING}\n")
    if available <= 0 or not known:
        return QuoteBlock("", ())
    limits = _divide_tokens([_measure_quote(quote, count) for quote in known], available)
    chosen: dict[int, str] = {}
    for index in _rank_quotes(known):
        line = _render_quote(known[index], min(limits[index], available), count)
        tokens = count(f"{line}\n")
        if line and tokens <= available:
            chosen[index] = line
            available -= tokens
    lines = [chosen[index] for index in sorted(chosen)]
    text = "\n".join([_HEADING, *lines]) if lines else ""
    return QuoteBlock(text, tuple(known[index] for index in sorted(chosen)))


def count_typed_text(quotes: Iterable[UserQuote], count: Callable[[str], int]) -> int:
    """Return the tokens with which everything that the user typed is shown, and pasted texts are cut."""
    sizes = [_measure_quote(quote, count) for quote in _sort_quotes(quotes)]
    return count(_HEADING) + sum(each.typed for each in sizes) + 2 * len(sizes)  # joined lines may have more tokens


def quotes_to_json(quotes: Iterable[UserQuote]) -> list[list[Any]]:
    """Return the stored form of quotes."""
    return [list(each) for each in quotes]


def read_quotes(value: object) -> tuple[UserQuote, ...]:
    """Return stored quotes; rows of another form are skipped."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(UserQuote(*row) for row in rows if _is_row(row))


def _sort_quotes(quotes: Iterable[UserQuote]) -> list[UserQuote]:
    return sorted({(each.step, each.text): each for each in quotes}.values(), key=lambda each: each.position)


def _rank_quotes(quotes: Sequence[UserQuote]) -> list[int]:
    """Return the indexes of quotes by importance: the first, which states the goal, those with rules, the newest."""
    return sorted(range(len(quotes)), key=lambda index: (index > 0, not is_rule(quotes[index].text), -index))


class _QuoteSize(NamedTuple):
    """Tokens of a quote: whole, without the middle of pasted texts, and with its two ends and its rules only."""

    whole: int
    typed: int
    shortest: int


def _measure_quote(quote: UserQuote, count: Callable[[str], int]) -> _QuoteSize:
    text = neutralize(quote.text)
    lead = count(_render_quote_lead(quote)) + 1
    whole = count(text) + lead
    if whole <= _SHORT_QUOTE_TOKENS:
        return _QuoteSize(whole, whole, whole)
    shortest = min(whole, _SHORT_QUOTE_TOKENS + lead + sum(count(rule) + 1 for rule in find_rules(text)))
    return _QuoteSize(whole, whole if whole <= _MAX_TYPED_TOKENS and is_prose(text) else shortest, shortest)


def _divide_tokens(sizes: Sequence[_QuoteSize], available: int) -> list[int]:
    """Return the limit of each quote: what was typed stays whole if that fits, and pastes get the rest of the room."""
    has_room = sum(size.typed for size in sizes) <= available
    least = [size.typed if has_room else size.shortest for size in sizes]
    low, high = _SHORT_QUOTE_TOKENS, max(available, _SHORT_QUOTE_TOKENS)
    while low < high:  # the largest limit for all others with which everything fits
        limit = (low + high + 1) // 2
        needed = sum(max(min(size.whole, limit), floor) for size, floor in zip(sizes, least, strict=True))
        low, high = (limit, high) if needed <= available else (low, limit - 1)
    return [max(low, floor) for floor in least]


def _render_quote_lead(quote: UserQuote) -> str:
    return f"- [{shorten_step_id(quote.step)}] " if quote.step else "- "


def _render_quote(quote: UserQuote, limit: int, count: Callable[[str], int]) -> str:
    """Return a quote as a line of at most `limit` tokens; "" if too little of it fits."""
    lead, text = _render_quote_lead(quote), neutralize(quote.text)
    available = limit - count(lead) - 1

    def describe_gap(characters: int) -> str:
        where = f"; all of it is in step {quote.step}" if quote.step else ""
        return f"[… {characters:,} characters left out{where} …]"

    if available <= 0:
        return ""
    if count(text) <= available:
        return lead + text
    rules = _choose_rules(text, max(available * 2 // 3, available - _SHORT_QUOTE_TOKENS), count)
    kept = split_head_and_tail(text, available - count("\n".join(rules)) - 1, count, describe_gap)
    if kept is None:
        return lead + text
    if sum(kept) == 0 or available < _MIN_QUOTE_TOKENS:
        return ""
    head, tail = _cut_at_words(text, *kept)
    shown = [rule for rule in rules if rule not in head and rule not in tail]
    return "\n".join([f"{lead}{head}", describe_gap(len(text) - len(head) - len(tail)), *shown, tail])


def _cut_at_words(text: str, head: int, tail: int) -> tuple[str, str]:
    """Return so many characters of the two ends of a text, or a few less, so that no word is cut."""
    before, after = text[:head], text[len(text) - tail :]
    space = max(before.rfind(" "), before.rfind("\n"))
    if 0 < head - space <= _MAX_WORD_CHARACTERS:
        before = before[:space]
    spaces = [found for mark in " \n" if (found := after.find(mark, 0, _MAX_WORD_CHARACTERS)) >= 0]
    return before, after[min(spaces) + 1 :] if spaces else after


def _choose_rules(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Return the rules of a long message that fit."""
    chosen: list[str] = []
    for rule in find_rules(text):
        limit -= count(rule) + 1
        if limit < 0:
            break
        chosen.append(rule)
    return chosen


def _shorten_stored(quote: UserQuote) -> str:
    text = quote.text
    if len(text) <= MAX_QUOTE_CHARACTERS:
        return text
    half = MAX_QUOTE_CHARACTERS // 2
    rules = "\n".join(find_rules(text[half:-half]))[: half // 2]
    head, tail = text[: half - len(rules)], text[200 - half :]  # 200 characters for the line between them
    where = f"; all of it is in step {quote.step}" if quote.step else ""
    gap = f"[… {len(text) - len(head) - len(rules) - len(tail):,} characters left out{where} …]"
    return "\n".join(filter(None, [head, gap, rules, tail]))


def _is_row(row: Sequence[object] | object) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 3:  # noqa: PLR2004 - the fields
        return False
    return isinstance(row[0], str) and type(row[1]) is int and isinstance(row[2], str)


INDEX_SHARE = 4
"""The fraction of the tokens that the index may have if facts do not fit."""
MAX_RUN_GAP = 12
"""Steps between two commands that are shown as one run."""
MAX_RUN_FACTS = 8
"""Commands of a run, of which only the first and the last step are shown."""
MAX_TOPIC_CHARACTERS = 60
MIN_TOPIC_STEPS = 2
"""Steps of a topic in the index; topics with fewer share a line with others of their class."""
_LINE_TOKENS = 9
"""Tokens of a line besides its facts: a dash and the step."""
_MAX_ROUNDS = 6
_HAS_TOPICS, _HAS_STEPS, _HAS_SPAN = 2, 1, 0
"""Forms of an index: steps by topic, all steps without topics, and the first and the last step only."""
_TOPIC_DIVISORS = (48, 24)
"""Fractions of the tokens that facts may leave to the topics of the index."""
_TOPIC_SHARE = 0.95
"""The share of facts that must stay if the index gets topics."""
_RANK_OFFSET = 4
"""The fraction of the number of facts that is added to their ranks: of the first ones, the length matters less."""
_MAX_MISSES = 8
"""Facts that do not fit before no more of a class are tried."""

# In the order in which they are shown, with their share of the tokens besides the changed files.
_HEADINGS = {
    "Files changed": 0,
    "Decisions and findings": 30,
    "Tried and rejected": 15,
    "Commands": 40,
    "Errors": 15,
    "Files": 2,
    "Identifiers": 1,
    "Links": 1,
    "Numbers": 1,
}
_EXPLANATIONS = 2
"""The share of sentences that may only explain something, below the heading of decisions."""
_CLASS_HEADINGS = {
    "decision": "Decisions and findings",
    "path": "Files",
    "command": "Commands",
    "identifier": "Identifiers",
    "url": "Links",
    "number": "Numbers",
    "error": "Errors",
}
_JOINED = ("Files changed", "Files", "Identifiers", "Numbers")
"""Headings whose facts share a line if they are of one step."""
_DETAILS = "files read, explanations, names, links and numbers"
"""The topic of details, of which the index gives only the first and the last step."""
_CHANGED_DIRECTORY = re.compile(r"^cd \S{1,200} *(?:&&|;)\s*")
_POSITION = re.compile(r"[:(]\d{1,6}(?:[,:]\d{1,6})?\)?:?$")
"""A line and column after a path."""
_COMMAND_GROUPS = re.compile("cargo|docker|gh|git|go|kubectl|make|npm|npx|pip3?|pnpm|poetry|python3?|uv|yarn")
"""Programs whose first argument says what they do."""
_INDEX = "More is in the ledger. Steps to read again, by topic:"


class FactBlock(NamedTuple):
    """Facts as text.

    Attributes:
        text: The text; "" without facts.
        facts: The facts in it.
    """

    text: str
    facts: tuple[Fact, ...]


class OmittedText(NamedTuple):
    """A text that a summary does not show, for the index.

    Attributes:
        topic: Its topic.
        step: The id of its step.
        position: The position of the step.
    """

    topic: str
    step: str
    position: int


def count_facts(facts: Sequence[Fact], count: Callable[[str], int]) -> int:
    """Return the tokens with which all facts are shown that are not only named."""
    return count(_render_facts([fact for fact in facts if fact.note != VAGUE]))


def render_facts(
    facts: Sequence[Fact],
    limit: int,
    count: Callable[[str], int],
    *,
    omitted: Sequence[OmittedText] = (),
    named: Collection[str] = frozenset(),
) -> FactBlock:
    """Render the facts that fit, and an index of the others.

    Each class gets a share of the tokens; what one does not need goes to the most important facts of all.

    Args:
        facts: The facts, most important first; vague ones are only named.
        limit: Maximum tokens.
        count: Counts the tokens of a text.
        omitted: Other texts for the index.
        named: Steps that the summary names elsewhere, so that the index does not.
    """
    topics = [(fact, OmittedText(_find_topic(fact), fact.step, fact.position)) for fact in facts]
    facts = [fact for fact in facts if fact.note != VAGUE]
    everything = _render_facts(facts)
    if not omitted and len(facts) == len(topics) and count(everything) <= limit:
        return FactBlock(everything, tuple(facts))
    sizes = {fact: count(_render_fact(fact)) + _LINE_TOKENS for fact in dict.fromkeys(facts)}

    def build(available: int) -> tuple[FactBlock, int, int]:
        """Return a block with so many tokens for facts, the form of its index, and all its tokens."""
        chosen = _choose_facts(facts, available, sizes, count)
        text = _render_facts(chosen)
        known = {*named, *_list_shown_steps(chosen)}
        shown = set(chosen)
        missing = [*omitted, *(topic for fact, topic in topics if fact not in shown)]
        index, form = _render_index(missing, known, limit - count(text) - 1, count)
        text = "\n".join(filter(None, [text, index]))
        return FactBlock(text, tuple(chosen)), form, count(text)

    best, best_form, best_rank, best_available = FactBlock("", ()), _HAS_SPAN, (False, -1), 0
    available = limit - limit // INDEX_SHARE
    # Facts of one step share a line and the index may be short, so that there are tokens left to distribute again.
    for _ in range(_MAX_ROUNDS):
        block, form, used = build(available)
        is_complete = form > _HAS_SPAN
        if used <= limit and (is_complete, len(block.facts)) > best_rank:
            best, best_form, best_rank, best_available = block, form, (is_complete, len(block.facts)), available
        if is_complete and (len(block.facts) == len(facts) or 0 <= limit - used <= _LINE_TOKENS):
            break
        available += limit - used if is_complete and used <= limit else -max(abs(limit - used), limit // 16, 1)
    if best_form != _HAS_STEPS:
        return best
    # Topics are worth some facts: without them, a model does not know which of the steps to read again.
    for divisor in _TOPIC_DIVISORS:
        block, form, used = build(best_available - limit // divisor)
        if form == _HAS_TOPICS and used <= limit:
            return block if len(block.facts) >= _TOPIC_SHARE * len(best.facts) else best
    return best


# ---- choice ---------------------------------------------------------------------------------------------------------


def _choose_facts(facts: Sequence[Fact], limit: int, sizes: dict[Fact, int], count: Callable[[str], int]) -> list[Fact]:
    by_heading: dict[str, list[int]] = {}
    for index, fact in enumerate(facts):
        by_heading.setdefault("" if fact.note == "reason" else _find_heading(fact), []).append(index)
    available = limit - sum(count(f"{heading}:\n") for heading in by_heading)
    # Without the changed files a model does not know where it is, and there are few of them.
    found, used = _choose_fitting(facts, by_heading.pop("Files changed", ()), available * 2 // 3, sizes)
    chosen = set(found)
    available -= used
    available = _choose_by_share(facts, by_heading, available, sizes, chosen)
    others = [index for index in range(len(facts)) if index not in chosen and not _is_detail(facts[index])]
    others = _sort_by_density(facts, others, sizes)
    found, used = _choose_fitting(facts, others, available, sizes)
    chosen.update(found)
    details = {heading: indexes for heading, indexes in by_heading.items() if _is_detail(facts[indexes[0]])}
    _choose_by_share(facts, details, available - used, sizes, chosen)
    return [facts[index] for index in sorted(chosen)]


def _choose_by_share(
    facts: Sequence[Fact], by_heading: dict[str, list[int]], limit: int, sizes: dict[Fact, int], chosen: set[int]
) -> int:
    """Choose facts of each heading by its share of the tokens, and return the tokens left.

    Shares that a heading does not need are divided among the others.

    Args:
        facts: All facts.
        by_heading: Their indexes by heading.
        limit: Maximum tokens.
        sizes: Tokens of each fact.
        chosen: Indexes of the chosen facts, which are added to it.
    """
    open_headings = dict(by_heading)
    available = max(limit, 0)
    for _ in range(_MAX_ROUNDS):
        shares = sum(_HEADINGS.get(heading, _EXPLANATIONS) for heading in open_headings)
        total, before = available, len(chosen)
        for heading in list(open_headings):
            left = [index for index in open_headings[heading] if index not in chosen]
            left = _sort_by_density(facts, left, sizes)
            share = total * _HEADINGS.get(heading, _EXPLANATIONS) // shares
            found, used = _choose_fitting(facts, left, share, sizes)
            chosen.update(found)
            available -= used
            if len(found) == len(left):
                del open_headings[heading]
        if not open_headings or len(chosen) == before:
            break
    return available


def _sort_by_density(facts: Sequence[Fact], indexes: Sequence[int], sizes: dict[Fact, int]) -> list[int]:
    """Return indexes of facts so that of two that are about as important, the shorter one comes first."""
    places = enumerate(indexes, len(indexes) // _RANK_OFFSET + 1)
    return [index for _, index in sorted((place * sizes[facts[index]], index) for place, index in places)]


def _choose_fitting(
    facts: Sequence[Fact], indexes: Iterable[int], limit: int, sizes: dict[Fact, int]
) -> tuple[list[int], int]:
    """Return the indexes of the first facts that fit, and their tokens."""
    found: list[int] = []
    used = misses = 0
    for index in indexes:
        tokens = sizes[facts[index]]
        if used + tokens <= limit:
            used += tokens
            found.append(index)
        else:
            misses += 1
        if misses > _MAX_MISSES or limit - used < _LINE_TOKENS:
            break
    return found, used


# ---- text -----------------------------------------------------------------------------------------------------------


def _render_facts(facts: Sequence[Fact]) -> str:
    lines: list[str] = []
    for heading in _HEADINGS:
        under = sorted((fact for fact in facts if _find_heading(fact) == heading), key=lambda fact: fact.position)
        if under:
            lines += [f"{heading}:", *_render_lines(heading, under)]
    return neutralize("\n".join(lines))


def _render_lines(heading: str, facts: Sequence[Fact]) -> Iterator[str]:
    if heading == "Commands":
        for run in _list_runs(facts):
            yield from _render_item(_render_lead(run[0].step, run[-1].step), map(_render_fact, run))
        return
    for step, group in groupby(facts, key=lambda fact: fact.step):
        texts = map(_render_fact, group)
        yield from _render_item(_render_lead(step, step), [", ".join(texts)] if heading in _JOINED else texts)


def _render_item(lead: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of several facts below one lead."""
    for number, text in enumerate(texts):
        yield f"  {text}" if number else lead + text


def _render_lead(first: str, last: str) -> str:
    names = dict.fromkeys(shorten_step_id(step) for step in (first, last) if step)
    return f"- [{'…'.join(names)}] " if names else "- "


def _list_runs(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Yield facts of neighboring steps together."""
    run: list[Fact] = []
    for fact in facts:
        if run and (fact.position - run[-1].position > MAX_RUN_GAP or not fact.step or len(run) == MAX_RUN_FACTS):
            yield run
            run = []
        run.append(fact)
    if run:
        yield run


def _list_shown_steps(facts: Sequence[Fact]) -> Iterator[str]:
    """Yield the steps that the lines of facts begin with."""
    yield from (fact.step for fact in facts if fact.kind != "command")
    commands = sorted((fact for fact in facts if fact.kind == "command"), key=lambda fact: fact.position)
    for run in _list_runs(commands):
        yield from (run[0].step, run[-1].step)


def _render_fact(fact: Fact) -> str:
    # Only a command has lines of its own: a model wrote them, and no tool.
    lines = [visible_line(line) for line in (fact.text.split("\n") if fact.kind == "command" else [fact.text])]
    notes = [fact.note] if fact.kind == "command" and fact.note else []
    if fact.kind == "command" and fact.uses > 1:
        notes.append(f"{fact.uses} times")
    return "\n    ".join(lines) + (f" ({', '.join(notes)})" if notes else "")


def _is_detail(fact: Fact) -> bool:
    """True if a fact is of a kind of which long conversations contain very many."""
    return fact.kind in MINOR_CLASSES or fact.note == "reason" or (fact.kind == "path" and fact.note != "changed")


def _find_heading(fact: Fact) -> str:
    if fact.kind == "path" and fact.note == "changed":
        return "Files changed"
    return "Tried and rejected" if fact.note == "rejected" else _CLASS_HEADINGS[fact.kind]


# ---- index ----------------------------------------------------------------------------------------------------------


def _find_topic(fact: Fact) -> str:
    """Return the file that a fact is about, or what is known of it otherwise."""
    if _is_detail(fact):
        return _DETAILS
    words = _CHANGED_DIRECTORY.sub("", fact.text)[: 4 * MAX_TOPIC_CHARACTERS].split()
    paths = (parse_path(_POSITION.sub("", word).strip("`'\"(),:;")) for word in words)
    path = next((path for path in paths if path and len(path) <= MAX_TOPIC_CHARACTERS), None)
    if path is not None:
        return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if fact.kind == "command" and words:
        return f"`{' '.join(words[: 1 + (_COMMAND_GROUPS.fullmatch(words[0]) is not None)])[:MAX_TOPIC_CHARACTERS]}`"
    return "decisions" if fact.kind == "decision" else "errors"


def _render_index(
    omitted: Sequence[OmittedText], named: Collection[str], limit: int, count: Callable[[str], int]
) -> tuple[str, int]:
    """Return the most detailed index that fits, and its form.

    Args:
        omitted: What the summary does not show.
        named: Steps that it names already.
        limit: Maximum tokens.
        count: Counts the tokens of a text.
    """
    missing = sorted({each for each in omitted if each.step and each.step not in named}, key=lambda each: each.position)
    if not missing:
        return "", _HAS_TOPICS
    by_topic: dict[str, list[str]] = {}
    listed: set[str] = set()
    for each in missing:
        if each.step not in listed and each.topic != _DETAILS:
            listed.add(each.step)
            by_topic.setdefault(each.topic, []).append(each.step)
    rare = [topic for topic, steps in by_topic.items() if len(steps) < MIN_TOPIC_STEPS]
    merged = {topic: steps for topic, steps in by_topic.items() if topic not in rare}
    if rare:
        merged[", ".join(rare)] = [step for topic in rare for step in by_topic[topic]]
    together = {"everything else": [step for steps in by_topic.values() for step in steps]} if by_topic else {}
    details = [each.step for each in missing if each.topic == _DETAILS and each.step not in listed]
    span = [_render_span(_DETAILS, details)] if details else []
    for topics, form in ((merged, _HAS_TOPICS), (together, _HAS_STEPS)):
        text = _render_topics(topics, span)
        if count(text) <= limit:
            return text, form
    text = _render_topics({}, [_render_span("everything else", [each.step for each in missing])])
    return text if count(text) <= limit else "", _HAS_SPAN


def _render_span(topic: str, steps: Sequence[str]) -> str:
    number = len(set(steps))
    names = dict.fromkeys(shorten_step_id(step) for step in (steps[0], steps[-1]))
    return f"- {topic}: {'…'.join(names)} ({number:,} step{'s' * (number > 1)})"


def _render_topics(topics: dict[str, list[str]], spans: Sequence[str]) -> str:
    lines = (f"- {visible_line(topic)}: {' '.join(map(shorten_step_id, steps))}" for topic, steps in topics.items())
    return neutralize("\n".join([_INDEX, *lines, *spans]))
