"""What one call is made of: the frozen beginning, as much history as fits, what the turn is about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.finding import dialect
from nexus_core.errors import BudgetError
from nexus_core.history.allowance import RESERVE, RESERVED_SHARE
from nexus_core.history.mending.steps import mend
from nexus_core.session.fitting import choose, left_out
from nexus_core.session.projecting import Sent, kept_steps, project, summary_messages
from nexus_core.tokens.messages import count_tools
from nexus_core.values.assembled import AssembledContext
from nexus_core.values.budget import TokenBudget
from nexus_core.values.conversation import Conversation
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.session.epochs import Epoch
    from nexus_core.session.place import Place
    from nexus_core.session.tail import Tail
    from nexus_core.session.weighing import Scales, Weighs
    from nexus_core.values.budget import Decision
    from nexus_core.values.ledger import Step

MARGIN = 10
"""A tenth is added to what the current message takes, where tokens are only estimated."""
TRIED = "?"
"""The name of a turn that is only tried out."""
NEWEST_FIRST = "oldest_first"
"""The strategy that never looks at the beginning of a thread, so that it need not be read."""


class Question(NamedTuple):
    """What is to be sent.

    Attributes:
        label: The session.
        model: Whom to ask.
        epoch: System prompt and tools.
        tip: The newest step of the thread; None before the first.
        turn: The turn that is open, or TRIED.
        said: The message of a turn that is only tried out.
        parent_turn: The turn before.
        event_id: What set it off.
    """

    label: str
    model: str
    epoch: Epoch
    tip: Step | None
    turn: str
    said: Message | None
    parent_turn: str | None
    event_id: str | None


class Chosen(NamedTuple):
    """What is sent of a thread, and what was left out of it."""

    sent: list[Sent]
    decisions: tuple[Decision, ...]


def assemble(question: Question, place: Place, tail: Tail, scales: Scales) -> AssembledContext:
    """Everything that goes into a call, within the model's window.

    Raises:
        BudgetError: What must be sent does not fit; lists what it consists of.
    """
    epoch, settings = question.epoch, place.settings
    fixed = {
        "system": scales.weigh(Message("system", epoch.system)) if epoch.system else 0,
        "tools": count_tools(scales.counter, epoch.tools),
    }
    allowance = allowance_for(place, question.model)
    chosen = _choose(question, place, tail, scales, allowance.available - sum(fixed.values()))
    history, current, progress = _divided(chosen.sent, question.turn)
    used = fixed | {
        "history": sum(sent.tokens for sent in (*history, *progress)),
        "event": current.tokens if current else 0,
    }
    budget = replace(allowance, used=used, estimated=not scales.counter.exact)
    if budget.remaining < 0:
        raise BudgetError(budget.total, budget.available, {name: tokens for name, tokens in used.items() if tokens})
    options = settings.get("provider.options")
    return AssembledContext(
        system_prompt=epoch.system,
        history=tuple(sent.message for sent in history),
        current_message=current.message if current else None,
        progress=tuple(sent.message for sent in progress),
        tools=epoch.tools,
        model=question.model,
        provider=str(settings.get("provider.provider") or place.model(question.model).api),
        model_config=options if isinstance(options, dict) else {},
        token_budget=budget,
        session_label=question.label,
        parent_turn_id=question.parent_turn,
        permissions_granted=(str(settings.get("permissions.level", "trusted")),),
        source_event_id=question.event_id,
        workspace_path=place.cwd,
        decisions=chosen.decisions,
        write=write_request,
    )


def write_request(context: AssembledContext, api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an SDK's call, with nothing in them that the API would refuse."""
    speaking = dialect(api)
    system = (Message("system", context.system_prompt),) if context.system_prompt else ()
    mended = mend((*system, *context.messages), speaking.rules)
    arguments = {"model": context.model, **options} if context.model else dict(options)
    return speaking.write_request(
        Conversation(
            messages=tuple(message for _, message in mended.messages), tools=context.tools, api="", extra=arguments
        )
    )


def allowance_for(place: Place, model: str) -> TokenBudget:
    """The model's window without room for an answer.

    Tools are counted, so nothing is kept free for them unless the settings say so.
    """
    window = place.model(model).window
    return TokenBudget(
        limit=window,
        reserve_response=min(place.number("budget.reserve_response", RESERVE), window // RESERVED_SHARE),
        reserve_tools=min(place.number("budget.reserve_tools", 0), window // RESERVED_SHARE),
    )


def read_thread(tail: Tail, tip: Step, scales: Weighs, room: int | None = None, turn: str = "") -> list[Sent]:
    """The messages of a thread: the latest summary and what it keeps, or all.

    Args:
        tail: The thread.
        tip: Its newest step.
        scales: Who weighs.
        room: Where there is no summary, nothing is read beyond what fits into that; None reads all.
        turn: The open turn, which is read in any case.
    """
    if tip.compaction is not None:
        compaction = tail.step(tip.compaction)
        return [*summary_messages(compaction, scales), *project(kept_steps(tail, compaction, tip.id), scales)]

    def is_enough(steps: Sequence[Step]) -> bool:
        if room is None or (turn not in ("", TRIED) and all(step.id != turn for step in steps)):
            return False
        summed = steps[-1].total - steps[0].total + steps[0].tokens
        if steps[0].counter == steps[-1].counter == scales.name and 0 <= summed <= room:
            return False  # told from the running sums alone
        return sum(sent.tokens for sent in project(steps, scales)) > room

    return project(tail.newest(tip.id, is_enough), scales)


def _divided(sent: Sequence[Sent], turn: str) -> tuple[Sequence[Sent], Sent | None, Sequence[Sent]]:
    """What came before, what the turn is about, and what was said in it since."""
    begin = next((place for place, each in enumerate(sent) if each.turn == turn), len(sent))
    said = next((place for place in range(begin, len(sent)) if not sent[place].is_input), len(sent))
    if said == begin:
        return sent[:begin], None, sent[begin:]
    return sent[: said - 1], sent[said - 1], sent[said:]


def _choose(question: Question, place: Place, tail: Tail, scales: Scales, room: int) -> Chosen:
    bounded = room if place.truncation.name == NEWEST_FIRST else None
    sent = [] if question.tip is None else read_thread(tail, question.tip, scales, bounded, question.turn)
    if question.said is not None:
        sent.append(Sent(question.said, scales.weigh(question.said), question.turn, is_input=True))
    if not scales.counter.exact:
        sent = [_with_margin(each) if each.is_input and each.turn == question.turn else each for each in sent]
    places = choose(sent, room, place.truncation, question.turn)
    return Chosen([sent[each] for each in places], tuple(left_out(sent, places, place.truncation.name)))


def _with_margin(sent: Sent) -> Sent:
    return sent._replace(tokens=sent.tokens + -(-sent.tokens // MARGIN))
