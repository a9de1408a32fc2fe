"""The messages of a thread, no more of it read than can be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.sent import TRIED
from nexus_core.history.media_placeholders import REQUEST_BYTES_RULE
from nexus_core.session.steps.projecting import carried_messages, is_event, kept_steps, project, summary_messages
from nexus_core.types.budget import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.assembly.cut import Cut
    from nexus_core.assembly.sent import Sent
    from nexus_core.session.steps.tail import Tail
    from nexus_core.session.steps.weighing import Weighs
    from nexus_core.types.ledger import Step


class Bounds(NamedTuple):
    """How much of a thread is read.

    Attributes:
        room: Nothing is read beyond what fits into that; None reads all.
        turn: The open turn, which is read in any case.
    """

    room: int | None = None
    turn: str = ""


def read_thread(tail: Tail, tip: Step, scales: Weighs, bounds: Bounds) -> list[Sent]:
    """The messages of a thread: the latest summary and what it keeps, or all."""
    if tip.compaction is not None:
        stretch = read_stretch(tail, tip, scales)
        return [*stretch.summary, *stretch.carried, *stretch.kept]

    projected: dict[str, list[Sent]] = {}

    def is_enough(steps: Sequence[Step]) -> bool:
        if bounds.room is None or (bounds.turn not in ("", TRIED) and all(step.id != bounds.turn for step in steps)):
            return False
        summed = steps[-1].total - steps[0].total + steps[0].tokens
        if steps[0].counter == steps[-1].counter == scales.name and 0 <= summed <= bounds.room:
            return False  # told from the running sums alone
        projected[steps[0].id] = project(steps, scales, bounds.turn)
        return sum(sent.tokens for sent in projected[steps[0].id]) > bounds.room

    steps = tail.newest(tip.id, is_enough)
    return projected.get(steps[0].id) or project(steps, scales, bounds.turn)


class Stretch(NamedTuple):
    """A thread from its latest summary on.

    Attributes:
        summary: What stands for all that came before.
        carried: What was pinned then.
        kept: Everything since, or all there is.
    """

    summary: list[Sent]
    carried: list[Sent]
    kept: list[Sent]


def read_stretch(tail: Tail, tip: Step, scales: Weighs) -> Stretch:
    """The messages of a thread by what became of them; all are read."""
    if tip.compaction is None:
        return Stretch([], [], read_thread(tail, tip, scales, Bounds()))
    compaction = tail.step(tip.compaction)
    kept = project(kept_steps(tail, compaction, tip.id), scales)
    return Stretch(summary_messages(compaction, scales), carried_messages(tail, compaction, scales), kept)


def read_cut_thread(tail: Tail, tip: Step, scales: Weighs, cut: Cut, turn: str) -> list[Sent]:
    """The messages that a cut leaves, and some of those beside them.

    Raises:
        LedgerError: The cut names a step that is not there.
    """
    steps = {step.id: step for span in cut.spans for step in tail.span(span.first.step, span.until or span.last.step)}
    newest = tail.since(cut.since.step, tip.id)
    if turn not in ("", TRIED):  # what the open turn is about stays, even if the cut is inside of it
        steps |= {step.id: step for step in tail.turn(tip.id) if is_event(step)}
    steps |= {step.id: step for step in newest}
    sent = project(sorted(steps.values(), key=lambda step: step.position), scales, turn)
    if cut.compaction is None:
        return sent
    compaction = tail.step(cut.compaction)
    return [*summary_messages(compaction, scales), *carried_messages(tail, compaction, scales), *sent]


def left_out(tail: Tail, cut: Cut | None, tip: Step | None, counter: str) -> Iterator[Decision]:
    """A decision for each part of a thread that a cut leaves out; `first` and `last` count steps."""
    if cut is None or tip is None:
        return
    position, total = _beginning(tail, cut)
    for begins, ends in [*((span.first, span.last) for span in cut.spans), (cut.since, None)]:
        is_tried = begins.step == TRIED  # all of the thread is left out but for what is about to be said
        step = tip if is_tried else tail.step(begins.step)
        before, tokens = (step.position, step.total) if is_tried else (step.position - 1, step.total - step.tokens)
        if before >= position:
            known = tokens - total if step.counter == counter and tokens >= total else None
            yield Decision(action="dropped", rule=cut.rule, first=position, last=before, tokens_before=known)
        if ends is not None:
            last = tail.step(ends.step)
            position, total = last.position + 1, last.total


def told_in_words(tail: Tail, sent: Sequence[Sent]) -> Iterator[Decision]:
    """A decision about the messages whose pictures and documents are told in words; it counts steps, too."""
    hidden = [each for each in sent if each.hidden]
    if hidden:
        first, last = tail.step(hidden[0].step).position, tail.step(hidden[-1].step).position
        tokens = sum(each.tokens for each in hidden)
        yield Decision(action="masked", rule=REQUEST_BYTES_RULE, first=first, last=last, tokens_after=tokens)


def _beginning(tail: Tail, cut: Cut) -> tuple[int, int]:
    """The first step that could have been sent, and the tokens before it."""
    if cut.compaction is None:
        return 0, 0
    compaction = tail.step(cut.compaction)
    first = compaction.data.get("first_kept")
    step = tail.step(first) if isinstance(first, str) else compaction
    return step.position, step.total - step.tokens
