"""Steps become the messages that are sent: a projection, which changes and deletes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.items import PREVIEW_TURN, HistoryItem
from nexus_core.history.media_placeholders import REQUEST_BYTES_RULE
from nexus_core.thread.sizes import get_sent_messages
from nexus_core.thread.summary_message import restore_summary_message
from nexus_core.thread.totals import MARKER_KINDS
from nexus_core.thread.turns import list_answered_calls
from nexus_core.types.budget import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.history.items import TruncationPoint
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.sizes import MessageSizer
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import TrustLevel


def project_steps(steps: Iterable[Step], sizer: MessageSizer, turn: str = "") -> list[HistoryItem]:
    """The messages of steps in the order in which a model reads them.

    An input that was sealed stands as it was sent. Results stand in the order of their calls, however they came.
    Compactions say nothing by themselves. A step that takes back the newest messages (`popped`) leaves them out.

    Args:
        steps: The steps.
        sizer: Who says what messages take.
        turn: The open turn: as long as its input is not sealed, nobody needs to know what that takes.
    """
    sent: list[HistoryItem] = []
    results: list[tuple[int, HistoryItem]] = []
    unweighed: Step | None = None  # an input, the last of `sent`: a seal takes its place, as a rule
    for step in steps:
        if step.kind in MARKER_KINDS:
            if _take_back(step, results, sent):
                unweighed = None
            continue
        if unweighed is not None and not (step.kind == "sealed" and step.messages):
            _weigh_last(sent, unweighed, sizer)
        unweighed = step if step.kind == "input" and holds_turn_input(step) else None
        messages = _unweighed(step) if unweighed else _sent(step, sizer)
        if not messages:
            continue
        if step.kind in ("result", "interrupted"):
            results += zip(_places(step), messages, strict=True)
            continue
        if results:
            _flush(results, sent)
        if step.kind == "sealed":
            _put_in_place(sent, messages, step.turn)
        else:
            sent += messages
    if unweighed is not None and unweighed.turn != turn:
        _weigh_last(sent, unweighed, sizer)
    _flush(results, sent)
    return sent


def find_kept_steps(cache: ThreadCache, compaction: Step, tip: str) -> list[Step]:
    """The steps that a compaction keeps, and all since; with the input of the turn in which they begin.

    Raises:
        LedgerError: The first step it keeps is not among those before it.
    """
    first = compaction.data.get("first_kept")
    if first is None:
        return cache.read_since(compaction.id, tip)[1:]
    if not isinstance(first, str):
        raise LedgerError(f"compaction {compaction.id} does not say what it keeps")
    kept = cache.read_since(first, tip)
    if kept[0].kind == "input" or kept[0].id == kept[0].turn:
        return kept
    begun = [step for step in cache.read_since(kept[0].turn, tip) if holds_turn_input(step)]
    opening = [step for step in begun if step.turn == kept[0].turn and step.position < kept[0].position]
    return [*opening, *kept]


def project_pinned_steps(cache: ThreadCache, compaction: Step, sizer: MessageSizer) -> list[HistoryItem]:
    """What was pinned when a compaction summarised the rest; it stands behind the summary, and is never left out."""
    pinned = compaction.data.get("pinned")
    steps = [each for name in pinned for each in cache.read_range(name, name)] if isinstance(pinned, list) else []
    return [each._replace(turn="", is_input=False) for each in project_steps(steps, sizer)]


def holds_turn_input(step: Step) -> bool:
    """Whether a turn is about what a step says; more may be said in it later."""
    return step.kind == "sealed" or (step.kind == "input" and step.id == step.turn)


def project_summary(compaction: Step, sizer: MessageSizer) -> list[HistoryItem]:
    """What stands for all that came before a compaction: its summary, or what another program put in its place."""
    name, trust = compaction.id, read_summary_trust(compaction)
    if compaction.messages:
        weighed = zip(get_sent_messages(compaction), sizer.count_step_tokens(compaction), strict=True)
        return [
            HistoryItem(message, tokens, step=name, place=place, summary_trust=trust, size=sizer.count_bytes(message))
            for place, (message, tokens) in enumerate(weighed)
        ]
    message = restore_summary_message(compaction.data, name)
    if message is None:
        return []
    return [
        HistoryItem(
            message, sizer.count_tokens(message), step=name, summary_trust=trust, size=sizer.count_bytes(message)
        )
    ]


def read_summary_trust(compaction: Step) -> TrustLevel:
    """Whose word a summary is; anybody's, where nobody has written it down."""
    trust = compaction.data.get("trust")
    return "user" if trust == "user" else "project" if trust == "project" else "foreign"


def _places(step: Step) -> list[int]:
    """Where the messages of a step with results belong among the results of a reply: each by the first it brings."""
    places = [key.place for key in list_answered_calls(step)]
    found, at = [], 0
    for message in step.messages:
        end = at + max(len(message.tool_results), 1)
        found.append(min(places[at:end], default=0))
        at = end
    return found


def _take_back(step: Step, results: list[tuple[int, HistoryItem]], sent: list[HistoryItem]) -> bool:
    """Leave out the newest messages, if a step says so; whether it does."""
    popped = step.data.get("popped")
    if not isinstance(popped, int) or popped <= 0:
        return False
    _flush(results, sent)
    del sent[-popped:]
    return True


def _flush(results: list[tuple[int, HistoryItem]], sent: list[HistoryItem]) -> None:
    """Put results behind the reply that asked for them."""
    sent += [result for _, result in sorted(results, key=lambda pair: pair[0])]
    results.clear()


def _put_in_place(sent: list[HistoryItem], messages: Iterable[HistoryItem], turn: str) -> None:
    """Put an input as it was sent in the place of what was said; more may have been said behind it."""
    first = len(sent)
    while first and sent[first - 1].turn == turn:
        first -= 1
    inputs = [place for place in range(first, len(sent)) if sent[place].is_input]
    place = inputs[0] if inputs else len(sent)
    said = (sent[place].original or sent[place].message) if inputs else None
    for each in reversed(inputs):
        del sent[each]
    sent[place:place] = [each._replace(original=said) for each in messages]


def _sent(step: Step, sizer: MessageSizer) -> Sequence[HistoryItem]:
    known = sizer.items_by_step.get(step.id)
    if known is None:
        sizer.cache_items(step.id, known := tuple(_weighed(step, sizer)))
    return known


def _weigh_last(sent: list[HistoryItem], step: Step, sizer: MessageSizer) -> None:
    sent[len(sent) - len(step.messages) :] = _sent(step, sizer)


def _unweighed(step: Step) -> list[HistoryItem]:
    said = enumerate(step.messages)
    return [HistoryItem(message, 0, step.turn, True, step.id, place, step.created) for place, message in said]  # noqa: FBT003 - it is an input


def _weighed(step: Step, sizer: MessageSizer) -> Iterator[HistoryItem]:
    is_input, turn, name, created = holds_turn_input(step), step.turn, step.id, step.created
    is_shortened = "clamp" in step.data
    for place, (message, tokens) in enumerate(zip(get_sent_messages(step), sizer.count_step_tokens(step), strict=True)):
        size = sizer.count_bytes(message)
        yield HistoryItem(message, tokens, turn, is_input, name, place, created, None, is_shortened, size=size)


class ReadLimits(NamedTuple):
    """How much of a thread is read.

    Attributes:
        max_tokens: Nothing is read beyond what fits into that; None reads all.
        turn: The open turn, which is read in any case.
    """

    max_tokens: int | None = None
    turn: str = ""


def read_thread(cache: ThreadCache, tip: Step, sizer: MessageSizer, bounds: ReadLimits) -> list[HistoryItem]:
    """The messages of a thread: the latest summary and what it keeps, or all."""
    if tip.compaction is not None:
        stretch = read_thread_parts(cache, tip, sizer)
        return [*stretch.summary, *stretch.pinned, *stretch.kept]

    projected: dict[str, list[HistoryItem]] = {}

    def is_enough(steps: Sequence[Step]) -> bool:
        if bounds.max_tokens is None or (
            bounds.turn not in ("", PREVIEW_TURN) and all(step.id != bounds.turn for step in steps)
        ):
            return False
        summed = steps[-1].total - steps[0].total + steps[0].tokens
        if steps[0].counter == steps[-1].counter == sizer.name and 0 <= summed <= bounds.max_tokens:
            return False  # told from the running sums alone
        projected[steps[0].id] = project_steps(steps, sizer, bounds.turn)
        return sum(sent.tokens for sent in projected[steps[0].id]) > bounds.max_tokens

    steps = cache.read_newest(tip.id, is_enough)
    return projected.get(steps[0].id) or project_steps(steps, sizer, bounds.turn)


class ThreadParts(NamedTuple):
    """A thread from its latest summary on.

    Attributes:
        summary: What stands for all that came before.
        pinned: What was pinned then.
        kept: Everything since, or all there is.
    """

    summary: list[HistoryItem]
    pinned: list[HistoryItem]
    kept: list[HistoryItem]


def read_thread_parts(cache: ThreadCache, tip: Step, sizer: MessageSizer) -> ThreadParts:
    """The messages of a thread by what became of them; all are read."""
    if tip.compaction is None:
        return ThreadParts([], [], read_thread(cache, tip, sizer, ReadLimits()))
    compaction = cache.get_step(tip.compaction)
    kept = project_steps(find_kept_steps(cache, compaction, tip.id), sizer)
    return ThreadParts(project_summary(compaction, sizer), project_pinned_steps(cache, compaction, sizer), kept)


def read_truncated_thread(
    cache: ThreadCache, tip: Step, sizer: MessageSizer, cut: TruncationPoint, turn: str
) -> list[HistoryItem]:
    """The messages that a cut leaves, and some of those beside them.

    Raises:
        LedgerError: The cut names a step that is not there.
    """
    steps = {
        step.id: step for span in cut.spans for step in cache.read_range(span.first.step, span.until or span.last.step)
    }
    newest = cache.read_since(cut.since.step, tip.id)
    if turn not in ("", PREVIEW_TURN):  # what the open turn is about stays, even if the cut is inside of it
        steps |= {step.id: step for step in cache.read_turn(tip.id) if holds_turn_input(step)}
    steps |= {step.id: step for step in newest}
    sent = project_steps(sorted(steps.values(), key=lambda step: step.position), sizer, turn)
    if cut.compaction is None:
        return sent
    compaction = cache.get_step(cut.compaction)
    return [*project_summary(compaction, sizer), *project_pinned_steps(cache, compaction, sizer), *sent]


def list_dropped_steps(
    cache: ThreadCache, cut: TruncationPoint | None, tip: Step | None, counter: str
) -> Iterator[Decision]:
    """A decision for each part of a thread that a cut leaves out; `first` and `last` count steps."""
    if cut is None or tip is None:
        return
    position, total = _beginning(cache, cut)
    for begins, ends in [*((span.first, span.last) for span in cut.spans), (cut.since, None)]:
        is_tried = begins.step == PREVIEW_TURN  # all of the thread is left out but for what is about to be said
        step = tip if is_tried else cache.get_step(begins.step)
        before, tokens = (step.position, step.total) if is_tried else (step.position - 1, step.total - step.tokens)
        if before >= position:
            known = tokens - total if step.counter == counter and tokens >= total else None
            yield Decision(action="dropped", rule=cut.rule, first=position, last=before, tokens_before=known)
        if ends is not None:
            last = cache.get_step(ends.step)
            position, total = last.position + 1, last.total


def list_masked_steps(cache: ThreadCache, sent: Sequence[HistoryItem]) -> Iterator[Decision]:
    """A decision about the messages whose pictures and documents are told in words; it counts steps, too."""
    hidden = [each for each in sent if each.masked_media]
    if hidden:
        first, last = cache.get_step(hidden[0].step).position, cache.get_step(hidden[-1].step).position
        tokens = sum(each.tokens for each in hidden)
        yield Decision(action="masked", rule=REQUEST_BYTES_RULE, first=first, last=last, tokens_after=tokens)


def _beginning(cache: ThreadCache, cut: TruncationPoint) -> tuple[int, int]:
    """The first step that could have been sent, and the tokens before it."""
    if cut.compaction is None:
        return 0, 0
    compaction = cache.get_step(cut.compaction)
    first = compaction.data.get("first_kept")
    step = cache.get_step(first) if isinstance(first, str) else compaction
    return step.position, step.total - step.tokens
