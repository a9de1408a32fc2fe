"""Entries of a step index: terms, metadata and ids of steps.

A turn is one step of a ledger that has something to find. Its id is the number of its branch, shifted by `TURN_BITS`,
plus its place in the branch: the turns before and after it are the neighbouring ids. A branch with more turns than
`TURNS_PER_NUMBER` gets another number. In an index of words, a place is the id of a turn twice, plus 1 for words of
tool results and of the rest of a long message.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, get_args

from nexus_core.ledger.ledger import find_strings
from nexus_core.ledger.store import clean_text
from nexus_core.memory.facets import find_step_facets
from nexus_core.memory.statements import strip_inserted_text
from nexus_core.memory.words import TIME_WORD, WORDS_VERSION, find_stems, split_words
from nexus_core.types.ledger import StepKind
from nexus_core.types.memory import STEP_FACETS
from nexus_core.types.messages import ROLES, SESSION_START
from nexus_core.types.payloads import ForgetPayload, SessionPayload, read_step_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from nexus_core.ledger.store import StepFields
    from nexus_core.types.memory import StepFacet

    Advance = Callable[[int], None]
    """Called with the number of steps that were indexed since its last call."""

T = TypeVar("T")

TURN_BITS = 10
"""Bits of an id that number the turns of a branch. An index stores differences of ids: with fewer bits, words of
neighbouring sessions need fewer bytes."""
TURNS_PER_NUMBER = (1 << TURN_BITS) - 8
"""Turns of one number. The ids above them stay free, so that the turns of two numbers are never neighbours."""
MAX_SAID_CHARACTERS = 700
"""Characters of a message that count in full; what follows is mostly quoted or generated."""
MAX_REST_CHARACTERS = 4_000
"""Characters of tool calls, tool results and the rest of a long message that are indexed, from each end."""
MAX_SPEAKER_CHARACTERS = 128
"""Characters of a name. APIs allow 64; a database cannot index keys of some thousand bytes."""

KINDS: tuple[StepKind, ...] = get_args(StepKind)
_UNSEARCHED_KINDS = frozenset({"sealed", "revert", "pin"})
"""Steps that repeat others: the rendered form of a user message contains instructions and memories besides."""

IS_QUESTION, HAS_TIME = 1, 2
_ROLE_SHIFT, _KIND_SHIFT, _FACET_SHIFT = 2, 5, 9
_ROLE_MASK, _KIND_MASK = 7, 15
_SPEAKER = re.compile(r"\s*([A-Z][\w'-]{1,24}(?: [A-Z][\w'-]{1,24})?): +(?=\S)")
"""A name in front of what a person says, as in transcripts of conversations."""


class IndexedStep(NamedTuple):
    """The facts of an indexed turn that its score depends on.

    Attributes:
        step: The id of the step, or the store's own reference to it.
        created: When the step was made, in seconds since 1970.
        speaker: The number of the speaker's name; 0 for none.
        flags: Facets, kind, role, and whether it is a question or names a time.
        length: The number of words of user and assistant text.
    """

    step: Any
    created: int
    speaker: int
    flags: int
    length: int

    @property
    def role(self) -> str:
        """The role of the first message."""
        return ROLES[self.flags >> _ROLE_SHIFT & _ROLE_MASK]

    @property
    def kind(self) -> StepKind:
        """The kind of the step."""
        return KINDS[self.flags >> _KIND_SHIFT & _KIND_MASK]


class IndexedText(NamedTuple):
    """The words of a step for an index.

    Attributes:
        said: The stems of what a user or an assistant said first.
        rest: The other stems: of tool calls, tool results and the rest of long messages.
        speaker: The name of the speaker, without characters that a database refuses; "" if there is none.
        flags: As in `IndexedStep`.
        length: The number of words of user and assistant text.
    """

    said: tuple[str, ...]
    rest: tuple[str, ...]
    speaker: str
    flags: int
    length: int

    @staticmethod
    def get_version() -> int:
        """Return the version of the stems: an index of another one must be built anew."""
        return WORDS_VERSION


class IdSpan(NamedTuple):
    """A range of turn ids.

    Attributes:
        low, high: The first and the last id.
        turns: The number of turns in it.
        words: The number of words that were said in them.
    """

    low: int
    high: int
    turns: int
    words: int

    @staticmethod
    def get_turn_bits() -> int:
        """Return the number of low bits of an id that number a branch's entries."""
        return TURN_BITS

    @staticmethod
    def get_turns_per_number() -> int:
        """Return how many turns a number has at most."""
        return TURNS_PER_NUMBER


def is_id_in_spans(id_: int, spans: Sequence[IdSpan]) -> bool:
    """Return True if one of the ranges, which are in order, has an id."""
    at = bisect_right(spans, id_, key=_get_low) - 1
    return at >= 0 and id_ <= spans[at].high


_get_low = attrgetter("low")


class BranchPart(NamedTuple):
    """The steps of a branch that belong to a session: those up to a position, all for None."""

    branch: str
    last: int | None = None


class OwnedSteps(NamedTuple, Generic[T]):
    """Steps of a branch that belong to one session: those after the ones before, up to a position."""

    last: int
    session: T


def find_branch_owners(
    tips: Iterable[tuple[str, int, T]], parents: Mapping[str, tuple[str | None, int]]
) -> dict[str, list[OwnedSteps[T]]]:
    """Return the sessions that own the steps of each branch, in order.

    A session that ends in a branch owns its steps up to there, unless an older one does. The others belong to the one
    that has most of them, and the first of several: all others begin with steps of it.

    Args:
        tips: Branch and position of the newest step of each session, and the session, the oldest one first.
        parents: Branch and position of the step that the first step of a forked branch follows.
    """
    owners: dict[str, T] = {}
    reached: dict[str, int] = {}
    owned: dict[str, list[OwnedSteps[T]]] = {}
    for tip_branch, tip_position, session in tips:
        ended = owned.setdefault(tip_branch, [])
        if not ended or ended[-1].last < tip_position:
            ended.append(OwnedSteps(tip_position, session))
        branch: str | None = tip_branch
        position = tip_position
        while branch is not None:
            is_new = branch not in reached
            if is_new or reached[branch] < position:
                owners[branch], reached[branch] = session, position
            if not is_new:
                break  # an older session has the same steps before it
            branch, position = parents.get(branch, (None, -1))
    for name, session in owners.items():
        ended = owned.setdefault(name, [])
        if not ended or ended[-1].last < reached[name]:
            ended.append(OwnedSteps(reached[name], session))
    return owned


def find_owned_steps(owned: Sequence[OwnedSteps[T]], position: int) -> OwnedSteps[T] | None:
    """Return the part of a branch that has a position, or None if no session has that step."""
    at = bisect_left(owned, position, key=_get_last)
    return owned[at] if at < len(owned) else None


_get_last = attrgetter("last")


class DirectorySteps(NamedTuple):
    """Steps of a branch that a session made in one directory, up to a position.

    Attributes:
        last: The position of the last one; None for all that follow.
        directory: The directory; "" if it is not known.
    """

    last: int | None
    directory: str


def find_step_directories(
    data: str | Mapping[str, Any],
    branch: str,
    find_place: Callable[[str], tuple[str, int] | None],
    read_parents: Callable[[], Mapping[str, tuple[str | None, int]]],
) -> list[DirectorySteps]:
    """Return the directories in which a session made the steps of a branch, in order.

    Args:
        data: The data of the session, as JSON or parsed. Damaged data has no directory.
        branch: A branch that the session has steps of.
        find_place: Returns the branch and the position of a step by its id, None if it is deleted.
        read_parents: Returns branch and position of the step that the first step of a forked branch follows. It is
            called only if a session moved in another branch.
    """
    try:
        payload = SessionPayload.from_json(json.loads(data) if isinstance(data, str) else data)
    except (ValueError, RecursionError):
        return [DirectorySteps(None, "")]
    found: list[DirectorySteps] = []
    is_known = True
    for move in payload.moves:
        place = find_place(move.step)
        if place is not None and place[0] != branch:
            place = _find_place_in(branch, place, read_parents())
            if place is None:  # all steps of this branch came later
                is_known = True
                continue
        if place is None:
            is_known = False
        elif not found or place[1] > (found[-1].last or 0):
            found.append(DirectorySteps(place[1], clean_text(move.directory) if is_known else ""))
            is_known = True
    return [*found, DirectorySteps(None, clean_text(payload.cwd or "") if is_known else "")]


def get_step_directory(parts: Sequence[DirectorySteps], position: int) -> DirectorySteps:
    """Return the part of a branch that has a position."""
    return next(part for part in parts if part.last is None or position <= part.last)


def _find_place_in(
    branch: str, place: tuple[str, int], parents: Mapping[str, tuple[str | None, int]]
) -> tuple[str, int] | None:
    """Return the place in a branch from which the branch of a step was forked, directly or through others."""
    seen: set[str] = set()
    while place[0] != branch:
        parent, position = parents.get(place[0], (None, -1))
        if parent is None or place[0] in seen:  # a damaged ledger may have a circle
            return None
        seen.add(place[0])
        place = parent, position
    return place


class StepIndex(Protocol):
    """Protocol of a word index of a ledger's turns.

    Stores answer where a word occurs; `nexus_core.memory.step_scores` does everything else.
    """

    def find_parts(self, parts: Sequence[BranchPart]) -> list[IdSpan]:
        """Return the ids of the indexed turns in parts of branches."""

    def find_directory(self, directory: str, *, below: bool = True) -> list[IdSpan]:
        """Return the ids of the turns that were made in a directory, or below it."""

    def find_all(self) -> list[IdSpan]:
        """Return the ids of all turns: one range, or none."""

    def find_postings(self, stems: Sequence[str], spans: Sequence[IdSpan], limit: int) -> list[list[int]]:
        """Return the newest `limit` postings of each stem in id ranges, in any order."""

    def read_facts(self, ranges: Sequence[tuple[int, int]]) -> dict[int, IndexedStep]:
        """Return the facts of the turns in ranges by id, each with its first and last id."""

    def find_speakers(self) -> Mapping[str, int]:
        """Return the numbers of speakers by their names in lower case."""

    def find_branches(self, numbers: Collection[int]) -> dict[int, tuple[str, str]]:
        """Return branch and session name by branch number; "" for that of a deleted session."""


class StoredStepIndex(StepIndex, Protocol):
    """A step index that a store keeps beside its rows.

    It is derived from them, and can be dropped at any time.
    """

    def catch_up(self, advance: Advance, unsearched: Sequence[BranchPart] = ()) -> bool:
        """Index new steps. Return False if the index cannot be written.

        Args:
            advance: Called with the number of steps that were indexed since its last call.
            unsearched: Parts of branches whose new steps may be left for later, because the search excludes them.
        """

    def read_failure(self) -> str:
        """Return the last recorded search error, or ""."""

    def note_failure(self, what: str) -> None:
        """Note an error of a search in an index that was just built."""

    def drop(self) -> None:
        """Drop the index. The next `catch_up` builds it anew."""

    def forget(self, names: Sequence[str]) -> None:
        """Inside `write`, remove the words of steps that are about to be erased."""

    def read_steps(self, steps: Sequence[Any]) -> dict[Any, StepFields]:
        """Return the rows of steps by their references, without missing ones."""


def read_indexed_text(kind: str, messages: str | Sequence[Mapping[str, Any]]) -> IndexedText | None:
    """Return the words of a step, or None if there is nothing to find in it.

    Args:
        kind: The kind of the step.
        messages: Its messages in the neutral format, as JSON or parsed. Damaged ones have no words.
    """
    if kind in _UNSEARCHED_KINDS:
        return None
    try:
        parsed = json.loads(messages) if isinstance(messages, str) else messages
        said, rest, role, speaker = _read_messages(parsed)
        facets = find_step_facets(parsed) if kind != "compaction" else frozenset()  # a summary repeats other steps
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    if kind == "compaction":
        said, rest = "", f"{said}\n{rest}"
    if not speaker and (named := _SPEAKER.match(said)):
        # A word before a colon is found by the speaker's stem; of two words each is searched for.
        speaker, said = named[1], said if " " in named[1] else said[named.end() :]
    first, more = said[:MAX_SAID_CHARACTERS], said[MAX_SAID_CHARACTERS:]
    if more:
        rest = f"{more}\n{rest}"
    words = [*split_words(first)]
    stems = find_stems(words)
    others = {stem: None for stem in find_stems(split_words(_cut_middle(rest))) if stem not in stems} if rest else {}
    if not stems and not others:
        return None
    if speaker:
        others[build_speaker_stem(speaker)] = None
    others |= {build_facet_stem(facet): None for facet in STEP_FACETS if facet in facets}
    flags = build_facet_flags(facets) | ROLES.index(role) << _ROLE_SHIFT | KINDS.index(kind) << _KIND_SHIFT
    if first.rstrip().endswith("?") and not more:
        flags |= IS_QUESTION
    if TIME_WORD.search(first):
        flags |= HAS_TIME
    return IndexedText(tuple(stems), tuple(others), speaker, flags, len(words))


def read_forgotten_steps(data: str | Mapping[str, Any]) -> tuple[str, ...]:
    """Return the steps that a step of the kind `forget` takes out of an index.

    Args:
        data: The data of the step, as JSON or parsed. Damaged data names none.
    """
    try:
        parsed = json.loads(data) if isinstance(data, str) else data
    except (ValueError, RecursionError):
        return ()
    payload = read_step_payload("forget", parsed)
    return payload.forgotten_steps if isinstance(payload, ForgetPayload) else ()


def build_speaker_stem(name: str) -> str:
    """Return the index term for a speaker. No word has it."""
    return "\u00aa" + "".join(split_words(name.lower()))


def build_facet_stem(facet: StepFacet) -> str:
    """Return the index term for a facet. No word or speaker has it."""
    return f"\u00ba{facet}"


def build_facet_flags(facets: Collection[StepFacet]) -> int:
    """Return the bits of facets in the flags of a turn."""
    return sum(1 << _FACET_SHIFT + STEP_FACETS.index(facet) for facet in facets)


def _read_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str, str, str]:
    """Return user and assistant text, other text, first role, and speaker."""
    said: list[str] = []
    rest: list[str] = []
    for message in messages:
        if SESSION_START in message.get("extra", ()):  # a note of Nexus
            continue
        for part in message.get("parts", ()):
            kind = part.get("kind")
            if kind == "text":
                text = strip_inserted_text(part["text"]) if message["role"] == "user" else part["text"]
                (rest if message["role"] in ("tool", "system") else said).append(text)
            elif kind == "tool_call":
                rest.append(part["name"])
                rest += islice(find_strings(part.get("arguments")), 200)
            elif kind == "tool_result":
                rest += [inner["text"] for inner in part.get("parts", ()) if inner.get("kind") == "text"]
            elif kind == "reasoning":
                rest.append(part.get("text", ""))
            elif kind == "file":
                rest.append(part.get("name", ""))
    role = messages[0]["role"] if messages else "user"
    name = messages[0].get("name", "") if len(messages) == 1 else ""
    return "\n".join(said), "\n".join(rest), role, clean_text(name)[:MAX_SPEAKER_CHARACTERS]


def _cut_middle(text: str) -> str:
    """Return the beginning and the end of a text.

    The end of a tool result has its errors.
    """
    if len(text) <= 2 * MAX_REST_CHARACTERS:
        return text
    return f"{text[:MAX_REST_CHARACTERS]}\n{text[-MAX_REST_CHARACTERS:]}"


def ignore_progress(_steps: int) -> None:
    """Do nothing: the default for `advance`."""
