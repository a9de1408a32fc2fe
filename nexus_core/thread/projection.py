"""Projection of steps onto the messages that are sent, with a summary in place of earlier turns.

It changes and deletes no step.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.shorten import REQUEST_BYTES_RULE
from nexus_core.history.truncation import PREVIEW_TURN, HistoryItem
from nexus_core.text.safety import neutralize
from nexus_core.thread.cache import ProjectionPrefix, get_sent_messages
from nexus_core.thread.state import MARKER_KINDS
from nexus_core.types.budget import Decision
from nexus_core.types.messages import Message
from nexus_core.types.payloads import CompactionPayload, ResultPayload, RevertPayload
from nexus_core.types.prompt import lowest_trust

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.history.truncation import TruncationPoint
    from nexus_core.thread.cache import MessageSizer, ThreadCache
    from nexus_core.types.compaction import SummaryRole
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import TrustLevel

DEFAULT_MARKER = "[Previous conversation summary]"
"""The first line of a summary in a session."""
DEFAULT_SUMMARY_ROLE: Final = "user"
"""The role of a summary message, unless `compaction.summary_role` sets another."""
SUMMARY_FIELD = "_summary"
"""The extra field that marks a message as a summary: the id of its compaction, or the time it was created."""

_MARKER = "[CONTEXT SUMMARY - Generated: {now:%Y-%m-%d %H:%M}]"
_EXPLANATION = """\
The following is a summary of our previous conversation. It was automatically
generated when the context window needed compaction. Treat this as established
context - you don't need to re-confirm decisions already made."""


def create_summary_message(summary_text: str, now: datetime | None = None) -> Message:
    """Return a summary as a user message, for a conversation in memory.

    Args:
        summary_text: The summary.
        now: The creation time, in local time; None for the current time.
    """
    now = now or datetime.now()  # noqa: DTZ005 - shown to the user in local time
    text = f"{_MARKER.format(now=now)}\n{_EXPLANATION}\n\n---\n{neutralize(summary_text.strip())}"
    return Message("user", text, extra={SUMMARY_FIELD: now.isoformat(timespec="minutes")})


def build_session_summary(
    text: str, compaction: str, *, marker: str = DEFAULT_MARKER, role: SummaryRole = DEFAULT_SUMMARY_ROLE
) -> Message:
    """Return a summary as the first message of a session's history.

    Args:
        text: The summary as `compose_summary` returns it.
        compaction: The id of the compaction step.
        marker: The first line; "" for none.
        role: The role of the message.
    """
    return Message(role, f"{marker}\n{text}" if marker else text, extra={SUMMARY_FIELD: compaction})


def restore_summary_message(payload: CompactionPayload, compaction: str) -> Message | None:
    """Return the summary message of a stored compaction; None if it has no summary.

    Args:
        payload: The fields of the step, with marker and role if they were not the defaults.
        compaction: The id of the step.
    """
    if not payload.summary:
        return None
    marker = DEFAULT_MARKER if payload.marker is None else payload.marker
    role: SummaryRole = "system" if payload.role == "system" else DEFAULT_SUMMARY_ROLE
    return build_session_summary(payload.summary, compaction, marker=marker, role=role)


def add_summary_form(payload: CompactionPayload, marker: str, role: SummaryRole) -> CompactionPayload:
    """Return a compaction with its marker and role. Defaults are not stored; `restore_summary_message` knows them."""
    if marker != DEFAULT_MARKER:
        payload = payload.replace(marker=marker)
    return payload if role == DEFAULT_SUMMARY_ROLE else payload.replace(role=role)


def is_summary(message: Message) -> bool:
    """True if a message is a summary."""
    return SUMMARY_FIELD in message.extra


def get_summary_trust(messages: Iterable[Message], previous: TrustLevel = "user") -> TrustLevel:
    """Return the trust level of a summary: the lowest among the summarized messages.

    Args:
        messages: The messages that are summarized.
        previous: The trust level of the summary that they start with.
    """
    levels: list[TrustLevel] = ["foreign" if message.tool_results else "user" for message in messages]
    return lowest_trust([previous, *levels])


class ReadLimits(NamedTuple):
    """Limits for reading a thread.

    Attributes:
        max_tokens: Reading stops once the messages exceed it; None reads all.
        turn: The open turn, which is always read; "" if none is open.
    """

    max_tokens: int | None = None
    turn: str = ""


def read_thread(cache: ThreadCache, tip: Step, sizer: MessageSizer, limits: ReadLimits) -> list[HistoryItem]:
    """Return the messages of a thread since its latest summary.

    Without a summary, as many of the newest as the limits need.
    """
    if tip.compaction is not None:
        parts = read_thread_parts(cache, tip, sizer)
        return [*parts.summary, *parts.pinned, *parts.kept]

    projected: dict[str, list[HistoryItem]] = {}

    def is_enough(steps: Sequence[Step]) -> bool:
        if limits.max_tokens is None or (
            # From the end, where the open turn is.
            limits.turn not in ("", PREVIEW_TURN) and all(step.id != limits.turn for step in reversed(steps))
        ):
            return False
        summed = steps[-1].total - steps[0].total + steps[0].tokens
        if steps[0].counter == steps[-1].counter == sizer.name and 0 <= summed <= limits.max_tokens:
            return False  # by the running sums alone, without projecting the steps
        projected[steps[0].id] = project_steps(steps, sizer, limits.turn)
        return sum(item.tokens for item in projected[steps[0].id]) > limits.max_tokens

    steps = cache.read_newest(tip.id, is_enough)
    return projected.get(steps[0].id) or project_steps(steps, sizer, limits.turn)


class ThreadParts(NamedTuple):
    """The messages of a thread from its latest summary on.

    Attributes:
        summary: The messages that replace all before.
        pinned: The messages that were pinned when it was written.
        kept: All messages since, or the whole thread if it has no summary.
    """

    summary: list[HistoryItem]
    pinned: list[HistoryItem]
    kept: list[HistoryItem]


def read_thread_parts(cache: ThreadCache, tip: Step, sizer: MessageSizer) -> ThreadParts:
    """Read the whole thread since its latest summary, split into its parts."""
    if tip.compaction is None:
        return ThreadParts([], [], read_thread(cache, tip, sizer, ReadLimits()))
    compaction = cache.get_step(tip.compaction)
    kept = project_steps(find_kept_steps(cache, compaction, tip.id), sizer)
    return ThreadParts(project_summary(compaction, sizer), project_pinned_steps(cache, compaction, sizer), kept)


def read_truncated_thread(
    cache: ThreadCache, tip: Step, sizer: MessageSizer, cut: TruncationPoint, turn: str
) -> list[HistoryItem]:
    """Return the messages that a truncation keeps, and some next to them.

    Raises:
        LedgerError: The truncation point names a step that the ledger lacks.
    """
    steps = {
        step.id: step for span in cut.spans for step in cache.read_range(span.first.step, span.until or span.last.step)
    }
    newest = cache.read_since(cut.since.step, tip.id)
    if turn not in ("", PREVIEW_TURN):  # the input of the open turn stays, even if the thread is cut inside of it
        steps |= {step.id: step for step in cache.read_turn(tip.id) if holds_turn_input(step)}
    steps |= {step.id: step for step in newest}
    items = project_steps(sorted(steps.values(), key=lambda step: step.position), sizer, turn)
    if cut.compaction is None:
        return items
    compaction = cache.get_step(cut.compaction)
    return [*project_summary(compaction, sizer), *project_pinned_steps(cache, compaction, sizer), *items]


def find_kept_steps(cache: ThreadCache, compaction: Step, tip: str) -> list[Step]:
    """Return the steps that a compaction keeps, and all after it.

    The input of the turn in which they start comes first.

    Raises:
        LedgerError: The first kept step is not an ancestor of the compaction.
    """
    payload = compaction.payload
    if not isinstance(payload, CompactionPayload) or not payload.names_kept:
        raise LedgerError(f"compaction {compaction.id} does not say what it keeps")
    if payload.first_kept is None:
        return cache.read_since(compaction.id, tip)[1:]
    kept = cache.read_since(payload.first_kept, tip)
    if kept[0].kind == "input" or kept[0].id == kept[0].turn:
        return kept
    inputs = [step for step in cache.read_since(kept[0].turn, tip) if holds_turn_input(step)]
    opening = [step for step in inputs if step.turn == kept[0].turn and step.position < kept[0].position]
    return [*opening, *kept]


def project_pinned_steps(cache: ThreadCache, compaction: Step, sizer: MessageSizer) -> list[HistoryItem]:
    """Return the messages that were pinned at a compaction.

    They follow its summary and are never left out.
    """
    pinned = compaction.payload.pinned if isinstance(compaction.payload, CompactionPayload) else ()
    steps = [each for name in pinned for each in cache.read_range(name, name)]
    return [each._replace(turn="", is_input=False) for each in project_steps(steps, sizer)]


def project_summary(compaction: Step, sizer: MessageSizer) -> list[HistoryItem]:
    """Return the messages that replace all before a compaction.

    These are its summary, or the messages that an import stored in its place.
    """
    step_id, payload = compaction.id, compaction.payload
    trust: TrustLevel = payload.trust if isinstance(payload, CompactionPayload) else "foreign"
    if compaction.messages:
        counted = zip(get_sent_messages(compaction), sizer.count_step_tokens(compaction), strict=True)
        return [
            HistoryItem(
                message, tokens, step=step_id, place=place, summary_trust=trust, size=sizer.count_bytes(message)
            )
            for place, (message, tokens) in enumerate(counted)
        ]
    message = restore_summary_message(payload, step_id) if isinstance(payload, CompactionPayload) else None
    if message is None:
        return []
    return [
        HistoryItem(
            message, sizer.count_tokens(message), step=step_id, summary_trust=trust, size=sizer.count_bytes(message)
        )
    ]


# ---- steps to messages ----------------------------------------------------------------------------------------------


def project_steps(steps: Iterable[Step], sizer: MessageSizer, turn: str = "") -> list[HistoryItem]:
    """Return the messages of steps in the order in which they are sent.

    A rendered input replaces the raw one. Tool results follow in the order of their calls, in whatever order they were
    recorded. Compactions contribute no message. A step with `popped` removes the newest messages.

    Args:
        steps: The steps, oldest first.
        sizer: Counts tokens and bytes of messages.
        turn: The open turn, whose input is not counted until it is rendered.
    """
    steps = list(steps)
    done, projection = _continue_projection(steps, sizer)
    newest_turn = _find_newest_turn(steps, done)
    results: list[tuple[int, HistoryItem]] = []
    # The raw input at the end of `projection`. It is not counted at once: its rendered form usually replaces it.
    uncounted: Step | None = None
    for index, step in enumerate(steps[done:], done):
        if step.kind in MARKER_KINDS:
            if _remove_reverted(step, results, projection):
                uncounted = None
            continue
        if uncounted is not None and not (step.kind == "sealed" and step.messages):
            _count_last(projection, uncounted, sizer)
        uncounted = step if _opens_turn(step) else None
        if index == newest_turn and not results:
            sizer.projected = ProjectionPrefix([each.id for each in steps[:index]], projection.copy())
        items = _build_uncounted_items(step) if uncounted else _get_items(step, sizer)
        if not items:
            continue
        if step.kind in ("result", "interrupted"):
            results += zip(_find_call_indexes(step), items, strict=True)
            continue
        _flush_results(results, projection)
        if step.kind == "sealed":
            _replace_input(projection, items, step.turn)
        else:
            projection += items
    if uncounted is not None and uncounted.turn != turn:
        _count_last(projection, uncounted, sizer)
    _flush_results(results, projection)
    return projection


def _continue_projection(steps: Sequence[Step], sizer: MessageSizer) -> tuple[int, list[HistoryItem]]:
    """Return how many steps were projected before, and their messages.

    A long conversation has hundreds of steps, and each call adds two or three.
    """
    known = sizer.projected
    if known is None or [step.id for step in steps[: len(known.steps)]] != known.steps:
        return 0, []
    return len(known.steps), known.items.copy()


def holds_turn_input(step: Step) -> bool:
    """True if a step holds the input of its turn, raw or rendered."""
    return step.kind == "sealed" or (step.kind == "input" and step.id == step.turn)


def _find_newest_turn(steps: Sequence[Step], after: int) -> int:
    """Return the index of the step that opens the newest turn; -1 if there is none after an index."""
    return next((place for place in range(len(steps) - 1, after, -1) if _opens_turn(steps[place])), -1)


def _opens_turn(step: Step) -> bool:
    return step.kind == "input" and step.id == step.turn


def _build_uncounted_items(step: Step) -> list[HistoryItem]:
    messages = enumerate(step.messages)
    return [HistoryItem(message, 0, step.turn, True, step.id, place, step.created) for place, message in messages]  # noqa: FBT003 - it is an input


def _count_last(items: list[HistoryItem], step: Step, sizer: MessageSizer) -> None:
    items[len(items) - len(step.messages) :] = _get_items(step, sizer)


def _get_items(step: Step, sizer: MessageSizer) -> Sequence[HistoryItem]:
    items = sizer.items_by_step.get(step.id)
    if items is None:
        sizer.cache_items(step.id, items := tuple(_build_items(step, sizer)))
    return items


def _build_items(step: Step, sizer: MessageSizer) -> Iterator[HistoryItem]:
    is_input, turn, step_id, created = holds_turn_input(step), step.turn, step.id, step.created
    is_shortened = bool(step.payload.clamps)
    for place, (message, tokens) in enumerate(zip(get_sent_messages(step), sizer.count_step_tokens(step), strict=True)):
        size = sizer.count_bytes(message)
        yield HistoryItem(message, tokens, turn, is_input, step_id, place, created, None, is_shortened, size=size)


def _find_call_indexes(step: Step) -> list[int]:
    """Return the index of the first call that each message of a step answers."""
    call_indexes = [key.place for key in step.payload.answers] if isinstance(step.payload, ResultPayload) else []
    first_indexes, start = [], 0
    for message in step.messages:
        end = start + max(len(message.tool_results), 1)
        first_indexes.append(min(call_indexes[start:end], default=0))
        start = end
    return first_indexes


def _flush_results(results: list[tuple[int, HistoryItem]], items: list[HistoryItem]) -> None:
    """Move collected results behind their reply, in the order of the calls."""
    if results:
        items += [result for _, result in sorted(results, key=lambda pair: pair[0])]
        results.clear()


def _replace_input(items: list[HistoryItem], rendered: Iterable[HistoryItem], turn: str) -> None:
    """Replace the raw input of a turn by its rendered form; messages may follow it."""
    first = len(items)
    while first and items[first - 1].turn == turn:
        first -= 1
    inputs = [place for place in range(first, len(items)) if items[place].is_input]
    place = inputs[0] if inputs else len(items)
    original = (items[place].original or items[place].message) if inputs else None
    for each in reversed(inputs):
        del items[each]
    items[place:place] = [each._replace(original=original) for each in rendered]


def _remove_reverted(step: Step, results: list[tuple[int, HistoryItem]], items: list[HistoryItem]) -> bool:
    """Remove the newest messages if a step says so. True if it does."""
    popped = step.payload.popped if isinstance(step.payload, RevertPayload) else None
    if popped is None or popped <= 0:
        return False
    _flush_results(results, items)
    del items[-popped:]
    return True


# ---- decisions ------------------------------------------------------------------------------------------------------


def list_dropped_steps(
    cache: ThreadCache, cut: TruncationPoint | None, tip: Step | None, counter: str
) -> Iterator[Decision]:
    """Yield a decision for each range that a truncation drops.

    `first` and `last` are positions of steps.
    """
    if cut is None or tip is None:
        return
    position, total = _find_start(cache, cut)
    for start, end in [*((span.first, span.last) for span in cut.spans), (cut.since, None)]:
        is_preview = start.step == PREVIEW_TURN  # a preview that drops the whole thread
        step = tip if is_preview else cache.get_step(start.step)
        before, tokens = (step.position, step.total) if is_preview else (step.position - 1, step.total - step.tokens)
        if before >= position:
            known = tokens - total if step.counter == counter and tokens >= total else None
            yield Decision(action="dropped", rule=cut.rule, first=position, last=before, tokens_before=known)
        if end is not None:
            last = cache.get_step(end.step)
            position, total = last.position + 1, last.total


def _find_start(cache: ThreadCache, cut: TruncationPoint) -> tuple[int, int]:
    """Return position and running total of tokens where the history starts."""
    if cut.compaction is None:
        return 0, 0
    compaction = cache.get_step(cut.compaction)
    payload = compaction.payload
    first = payload.first_kept if isinstance(payload, CompactionPayload) else None
    step = compaction if first is None else cache.get_step(first)
    return step.position, step.total - step.tokens


def list_masked_steps(cache: ThreadCache, items: Sequence[HistoryItem]) -> Iterator[Decision]:
    """Yield one decision for all messages with media placeholders.

    `first` and `last` are positions of steps.
    """
    masked = [each for each in items if each.masked_media]
    if masked:
        first, last = cache.get_step(masked[0].step).position, cache.get_step(masked[-1].step).position
        tokens = sum(each.tokens for each in masked)
        yield Decision(action="masked", rule=REQUEST_BYTES_RULE, first=first, last=last, tokens_after=tokens)
