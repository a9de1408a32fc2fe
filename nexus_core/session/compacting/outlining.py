"""A session as it is looked at when a part of it has to go: in turns and groups, with what is known of each message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.breaker import gains_of
from nexus_core.compaction.composing import Evidence, read_evidence
from nexus_core.compaction.evidence.facts import extract_facts
from nexus_core.compaction.outline import outline_thread
from nexus_core.history.groups import is_session_start
from nexus_core.session.steps.projecting import is_event, trust_of_compaction
from nexus_core.session.steps.reading import read_stretch
from nexus_core.types.compaction import ThreadMessage
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Collection

    from nexus_core.assembly.sent import Sent
    from nexus_core.session.steps.state import State
    from nexus_core.session.steps.tail import Tail
    from nexus_core.session.steps.weighing import Weighs
    from nexus_core.types.compaction import ThreadOutline
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import TrustLevel


class Earlier(NamedTuple):
    """What an earlier compaction left.

    Attributes:
        prose: What its summarizer wrote.
        evidence: What it carried on.
        trust: Whose word it is.
        gains: What it and those before it brought: tokens before and after, the newest last.
    """

    prose: str = ""
    evidence: Evidence = Evidence()
    trust: TrustLevel = "user"
    gains: tuple[tuple[int, int], ...] = ()


class Outlined(NamedTuple):
    """A session that is to be compacted.

    Attributes:
        thread: Its turns and groups.
        sent: Its messages, as they would be sent.
        earlier: What the latest compaction left.
    """

    thread: ThreadOutline
    sent: list[Sent]
    earlier: Earlier

    @property
    def tokens(self) -> int:
        """What its messages take."""
        return sum(each.tokens for each in self.sent)


def outline_session(tail: Tail, state: State, scales: Weighs, event: Sent | None) -> Outlined:
    """A session in turns and groups; all of it since the latest summary is read.

    Args:
        tail: Its thread.
        state: Where it stands; it has a step.
        scales: Who says what messages take.
        event: What the open turn is about, as it is sent; None where none is open.
    """
    tip, opened = state.tip, state.open_turn
    assert tip is not None  # noqa: S101 - something was said
    compaction = None if tip.compaction is None else tail.step(tip.compaction)
    summary, carried, kept = read_stretch(tail, tip, scales)
    turn = opened.steps[0].id if opened else ""
    kept = [event if event and each.is_input and each.turn == turn else each for each in kept]
    first = None if compaction is None else compaction.data.get("first_kept")
    # There is nothing to summarise in the line that says when the session started.
    said = [each for each in kept if not is_session_start(each.message) or _is_pinned(tail.step(each.step), state.pins)]
    thread = outline_thread(
        [_message(each, tail) for each in said],
        open_turn=turn,
        first_kept=first if isinstance(first, str) else None,
        carried=[_message(each, tail) for each in carried],
        pinned={each.step for each in (*carried, *kept) if _is_pinned(tail.step(each.step), state.pins)},
        summary_tokens=sum(each.tokens for each in summary),
    )
    return Outlined(thread, [*summary, *carried, *kept], _earlier(compaction, summary))


def _earlier(compaction: Step | None, summary: list[Sent]) -> Earlier:
    if compaction is None:
        return Earlier()
    prose = compaction.data.get("prose") or compaction.data.get("summary")
    told = prose if isinstance(prose, str) else "\n\n".join(each.message.content for each in summary)
    evidence = read_evidence(compaction.data)
    if "facts" not in compaction.data:  # another program wrote it
        said = ThreadMessage(Message("user", told), compaction.id, compaction.turn, compaction.position)
        evidence = evidence._replace(facts=extract_facts([said]))
    return Earlier(told, evidence, trust_of_compaction(compaction), gains_of(compaction))


def _is_pinned(step: Step, pins: Collection[str]) -> bool:
    return step.id in pins or (is_event(step) and step.turn in pins)


def _message(sent: Sent, tail: Tail) -> ThreadMessage:
    """A message as it was said: what was told beside it is told again where it still holds."""
    said = sent.said or sent.message
    return ThreadMessage(said, sent.step, sent.turn, tail.step(sent.step).position, sent.tokens, sent.is_input)
