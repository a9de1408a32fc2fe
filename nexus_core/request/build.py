"""Build one model call: plan its prefix, history and input within the context window, then assemble it.

`plan_call` decides what is sent and which step must be stored first; `build_request` makes the `AssembledContext`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.tools import complete_schemas, find_invalid_tools
from nexus_core.history.budget import require_within_budget
from nexus_core.history.truncation import PREVIEW_TURN, HistoryItem, fit_items, get_bytes, get_tokens, split_history
from nexus_core.ledger.codec import compute_blob_digest
from nexus_core.request.input import InputRenderer, add_event, build_session_start_message_at, read_section_entries
from nexus_core.request.placements import place_memories, place_pieces
from nexus_core.request.prefix import build_change_notice, write_sections
from nexus_core.request.runtime import ContextWindow
from nexus_core.request.static_context import arrange_messages
from nexus_core.text.safety import visible_line
from nexus_core.thread.projection import (
    ReadLimits,
    list_dropped_steps,
    list_masked_steps,
    read_thread,
    read_truncated_thread,
)
from nexus_core.thread.state import get_parent_turn
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.layers import LoadedLayers
from nexus_core.types.ledger import NewStep
from nexus_core.types.payloads import RenderedPayload
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import ArrangeRequest, PastMessage, format_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.errors import BudgetError
    from nexus_core.history.truncation import FitLimits, KeptItems, TruncationPoint
    from nexus_core.request.input import RenderedInput, SectionEntry, UserInput
    from nexus_core.request.prefix import PendingPrefix, Prefix
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState, Turn
    from nexus_core.types.budget import Decision
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Tool
    from nexus_core.types.prompt import ArrangedMessages, Placement, Renderer, Section
    from nexus_core.types.request import Request

MIN_NAMED_FRACTION = 10
"""A piece below this fraction of a call that is too long is not named in the error."""
MAX_NAMED_PIECES = 3
"""Pieces that the error names."""
NOTHING_TO_SEND = "nothing-said"
CALLS_PENDING = "calls-waiting"
START_TURN = "?start"
"""The turn of the message that says when a session started, while it is not stored."""
NEWEST_FIRST = "oldest_first"
"""The strategy that never needs the beginning of a thread, so that it is not read."""


class PendingRender(NamedTuple):
    """The step with the rendered input that must be stored before the call is sent, and the blobs it refers to."""

    step: NewStep
    blobs: tuple[bytes, ...]


class CallPlan(NamedTuple):
    """One model call, before it is assembled.

    Attributes:
        request: Session, model, role and the event that caused the call.
        prefix: System prompt and tools.
        renderer: The renderer of the input.
        items: The messages that are sent, including those of the open turn.
        turn: The open turn; `PREVIEW_TURN` for one that is not stored.
        window: The model's context window and what fits into it.
        permissions: What the agent may do.
        entries: The sections of the input.
        decisions: What was left out of the history, or replaced by placeholders.
        place_prefix: Returns the placements of system prompt and tools.
        parent_turn: The turn before.
        findings: What the caller should know.
        must_fit: Whether it is an error if the call does not fit. A call of the past has been sent anyway.
        loaded: The layers that the static context was built from; empty for a call of the past.
        pending: What must be stored first; None if everything is stored.
        trigger: Why earlier turns should be summarized first; None if nothing requires it.
        input: The open turn's input as it is sent, without memories.
        overflows: True if the call does not fit even without everything that may be left out.
        lead: The memories in the first of the messages; empty if it has none.
    """

    request: Request
    prefix: Prefix
    renderer: Renderer
    items: list[HistoryItem]
    turn: str
    window: ContextWindow
    permissions: tuple[str, ...]
    entries: Sequence[SectionEntry]
    decisions: tuple[Decision, ...]
    place_prefix: Callable[[], tuple[Placement, ...]]
    parent_turn: str | None = None
    findings: tuple[Finding, ...] = ()
    must_fit: bool = True
    loaded: LoadedLayers = LoadedLayers()
    pending: PendingRender | None = None
    trigger: CompactionTrigger | None = None
    input: HistoryItem | None = None
    overflows: bool = False
    lead: tuple[Section, ...] = ()

    @property
    def prefix_tokens(self) -> dict[str, int]:
        """Tokens of system prompt and tools."""
        return self.window.prefix_sizer.count_tokens(self.prefix)

    def with_stored_step(self, step: Step) -> CallPlan:
        """Return the plan after its pending step was stored: the input is the stored one, and nothing is pending."""
        payload = step.payload
        if not step.messages or not isinstance(payload, RenderedPayload):
            return self._replace(pending=None)
        items = [
            each._replace(step=step.id, created=step.created) if each.is_input and each.turn == self.turn else each
            for each in self.items
        ]
        return self._replace(items=items, entries=read_section_entries(payload.section_entries), pending=None)

    def place(self) -> tuple[Placement, ...]:
        """Return source, tokens and decision of every piece of the call."""
        return place_pieces(
            (*self.place_prefix(), *place_memories(self.lead, self.window.sizer.counter)),
            self.items[1:] if self.lead else self.items,
            self.turn,
            dropped=[each for each in self.decisions if each.action == "dropped"],
            entries=self.entries,
            known=self.window.sizer.placements,
        )


def build_request(plan: CallPlan) -> AssembledContext:
    """Assemble a planned call.

    Raises:
        BudgetError: What must be sent does not fit; lists the size of each part.
    """
    request, window, sizer = plan.request, plan.window, plan.window.sizer
    history, current, progress = split_history(plan.items, plan.turn)
    past: tuple[Message, ...]
    if plan.renderer.arrange is None:
        past, past_tokens = tuple(each.message for each in history), list(map(get_tokens, history))
        past_bytes, message = sum(map(get_bytes, history)), current.message if current else None
        input_tokens, margin, input_bytes = (current.tokens, current.margin, current.size) if current else (0, 0, 0)
    else:
        past, message = arrange_items(request, plan.renderer, plan.items, plan.turn, plan.prefix.tools)
        past_tokens, past_bytes = list(map(sizer.count_tokens, past)), sum(map(sizer.count_bytes, past))
        input_tokens, input_bytes = (sizer.count_tokens(message), sizer.count_bytes(message)) if message else (0, 0)
        margin = 0
    memory = sum(each.tokens for each in plan.entries if each.kind == "memory" and not each.refusal)
    memory = min(memory, input_tokens)
    progress_tokens = list(map(get_tokens, progress))
    lead_tokens = past_tokens[0] if plan.lead else 0
    used = plan.prefix_tokens | {
        "history": sum(past_tokens) - lead_tokens + sum(progress_tokens),
        "memory": memory + lead_tokens,
        "event": input_tokens - memory,
    }
    measured = window.count_fixed_bytes(plan.prefix) | {
        "history": past_bytes + sum(map(get_bytes, progress)),
        "event": input_bytes,
    }
    # Whether counts are exact is asked after counting: a damaged tokenizer shows it only when it is used.
    is_estimated = not sizer.counter.exact
    budget = replace(window.budget, estimated=is_estimated, used=used, margin=margin, bytes=sum(measured.values()))
    if plan.must_fit:
        require_within_budget(budget, measured)
    return AssembledContext(
        system_prompt=plan.prefix.system,
        history=past,
        current_message=message,
        progress=tuple(each.message for each in progress),
        tools=plan.prefix.tools,
        model=request.model,
        provider=window.provider,
        model_config=window.options,
        token_budget=budget,
        session_label=request.session,
        turn_id="" if plan.turn == PREVIEW_TURN else plan.turn,
        parent_turn_id=plan.parent_turn,
        role=request.role,
        toolset_name=request.role,
        permissions_granted=plan.permissions,
        source_event_id=request.event_id or None,
        workspace_path=request.cwd,
        decisions=plan.decisions,
        findings=plan.findings,
        renderer=plan.renderer.name,
        epoch=plan.prefix.digest,
        system_context=plan.prefix.context,
        place=plan.place,
        message_tokens=(*past_tokens, *([] if message is None else [input_tokens]), *progress_tokens),
        writer=window.writer,
    )


def arrange_items(
    request: Request, renderer: Renderer, items: Sequence[HistoryItem], turn: str, tools: tuple[Tool, ...]
) -> ArrangedMessages:
    """Return history and input as a renderer that rearranges them sends them; arguments as in `CallPlan`."""
    history, current, _ = split_history(items, turn)
    past = tuple(
        PastMessage(each.message, each.created, each.is_input, each.original or each.message) for each in history
    )
    message = current.message if current else None
    return arrange_messages(renderer, ArrangeRequest(request=request, history=past, current=message, tools=tools))


def name_largest_pieces(error: BudgetError, plan: CallPlan) -> BudgetError:
    """Return the error with the names of the largest pieces of a call; unchanged if it counts bytes."""
    if error.unit != "tokens":
        return error
    large = [each for each in plan.place() if each.tokens * MIN_NAMED_FRACTION >= error.needed]
    large.sort(key=lambda each: (-each.tokens, each.name))
    return error.naming((_name_piece(each), each.tokens) for each in large[:MAX_NAMED_PIECES])


def _name_piece(placement: Placement) -> str:
    if placement.kind == "session":
        return f"step {placement.name}"
    if placement.zone == "current" and placement.source.uri.startswith(("step:", "caller:")):
        return "the message itself"
    what = "tool" if placement.kind == "tool" else "section"
    return visible_line(f"{what} {placement.title or placement.name!r} of {format_source(placement.source.uri)}")


def find_unsendable(turn: Turn, items: Sequence[HistoryItem]) -> Iterator[Finding]:
    """Yield why an API would refuse a call: the newest turn has pending tool calls, or nothing was asked."""
    if turn.pending:
        waiting = ", ".join(map(str, turn.pending))
        yield Finding(CALLS_PENDING, f"{waiting}: the result is not recorded yet, and an API would refuse this call")
    elif not turn.is_open and items and items[-1].message.role == "assistant":
        what = (
            "no turn is open, and the last word is the model's: an API would refuse this call, or go on writing there"
        )
        yield Finding(NOTHING_TO_SEND, f"{what}; a message opens a turn")


def plan_call(
    runtime: SessionRuntime,
    cache: ThreadCache | None,
    state: SessionState,
    static: StaticContext,
    model: str,
    *,
    user_input: UserInput | None = None,
    starts_session: bool = False,
    find_trigger: Callable[[int, int], CompactionTrigger | None] | None = None,
) -> CallPlan:
    """Plan the next call of a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: The session's thread; None for a conversation that is not stored.
        state: Its state.
        static: Its static context.
        model: The model to call.
        user_input: The input of a preview; None for the open turn.
        starts_session: Whether the session begins with this call, and says when.
        find_trigger: Returns why earlier turns should be summarized first, from the tokens of the call and their limit.
    """
    planner = _Planner(runtime, cache, state, static, model, user_input=user_input, starts_session=starts_session)
    return planner.plan(find_trigger)


class _Planner:
    """The planning of one call; arguments as for `plan_call`."""

    def __init__(
        self,
        runtime: SessionRuntime,
        cache: ThreadCache | None,
        state: SessionState,
        static: StaticContext,
        model: str,
        *,
        user_input: UserInput | None,
        starts_session: bool,
    ) -> None:
        self._runtime = runtime
        self._cache = cache
        self._state = state
        self._static = static
        self._model = model
        self._user_input = user_input
        self._starts_session = starts_session
        self._now = runtime.now()
        self._window = window = ContextWindow(runtime, static.settings, model, state, cache)
        self._opened = opened = state.open_turn
        self._turn = PREVIEW_TURN if user_input is not None else opened.steps[0].id if opened else ""
        if user_input is None:
            self._request = add_event(static.request, opened.input_message if opened else None, state.event, model)
        else:
            self._request = add_event(static.request, user_input.message, user_input.event, model)
        self._cut = state.cut if window.limits(self._turn, state.tip).still_holds(state.cut) else None
        is_new = user_input is not None or (opened is not None and not opened.is_rendered)
        self._memory_findings: tuple[Finding, ...] = ()
        self._unsent = set(state.newest.unsent_memories)
        self._lead_role = state.newest.memory_role
        self._lead = runtime.prefixes.read_sections(state.newest.memories)
        self._new_lead: tuple[Section, ...] = ()
        self._sent_lead: tuple[Section, ...] = ()
        self._history = self._read_history()
        # None if the input was rendered before.
        self._sections = self._build_current_sections() if is_new else None

    def plan(self, find_trigger: Callable[[int, int], CompactionTrigger | None] | None) -> CallPlan:
        """Choose prefix, history, input, tools and budget, in this order."""
        opened, turn, static, window = self._opened, self._turn, self._static, self._window
        pending, kept, rendered = self._choose_prefix()
        if self._drop_memories(pending, kept):
            pending, kept, rendered = self._choose_prefix()
        entries = rendered.entries if rendered else self._read_input_entries()
        stores = opened is not None and self._user_input is None
        plan = CallPlan(
            request=self._request,
            prefix=pending.prefix,
            renderer=static.renderer,
            items=kept.sent,
            turn=turn,
            window=window,
            permissions=static.permissions,
            entries=entries,
            decisions=(*self._list_dropped(kept.cut), *self._list_masked(kept)),
            place_prefix=partial(self._place_prefix, pending),
            parent_turn=self._find_parent_turn(),
            findings=(*window.findings, *self._memory_findings, *self._find_invalid_tools(pending.prefix.tools)),
            loaded=static.loaded,
            pending=self._build_rendered_step(opened, pending, kept.cut, rendered) if opened and stores else None,
            input=rendered.plain if rendered else self._find_input(kept.sent),
            lead=self._sent_lead,
        )
        if find_trigger is None:
            return plan
        trigger = find_trigger(kept.taken + sum(plan.prefix_tokens.values()), window.available_tokens)
        overflows = trigger is not None and self._count_excess(pending, kept) > 0
        return plan._replace(trigger=trigger, overflows=overflows)

    # ---- prefix and history that fit --------------------------------------------------------------------------

    def _choose_prefix(self) -> tuple[PendingPrefix, KeptItems, RenderedInput | None]:
        """Return the prefix and what stays beside it; a new prefix if change notices are dropped, or do not fit."""
        prefixes, state, static, now = self._runtime.prefixes, self._state, self._static, self._now
        before = prefixes.find(state.newest.epoch, state.newest.sections_digest)
        pending = prefixes.continue_or_begin(before, static, state.stored_options.reloads, now)
        kept, rendered = self._fit_beside(pending)
        if not pending.blobs and self._needs_new_prefix(pending, kept, rendered):
            pending = prefixes.begin(before, static, state.stored_options.reloads, now)
            kept, rendered = self._fit_beside(pending)
        return pending, kept, rendered

    def _needs_new_prefix(self, pending: PendingPrefix, kept: KeptItems, rendered: RenderedInput | None) -> bool:
        """Return True if a prompt with all changes must replace one beside notices of them."""
        is_cut_anew = kept.cut is not None and kept.cut != self._state.cut
        if is_cut_anew and self._state.newest.sections_digest not in ("", pending.prefix.sections_digest):
            return True  # the notice may have been dropped; everything after the prompt is read anew in any case
        has_notice = rendered is not None and bool(self._build_notices(pending))
        return has_notice and self._count_excess(pending, kept) > 0

    def _fit_beside(self, pending: PendingPrefix) -> tuple[KeptItems, RenderedInput | None]:
        """Return the messages that fit beside a prefix, as the renderer may rearrange them."""
        limits = self._window.limits(self._turn, self._state.tip, pending.prefix)
        kept, rendered = self._select(pending, limits)
        while self._static.renderer.arrange is not None:
            tokens, size = self._measure_arranged(pending, kept)
            if tokens <= limits.room and size <= limits.bytes:
                break
            room, most = limits.room - tokens + kept.tokens, limits.bytes - size + kept.bytes
            limits = limits._replace(room=min(room, limits.room), bytes=min(most, limits.bytes))
            fewer, again = self._select(pending, limits)
            if fewer.tokens >= kept.tokens and fewer.bytes >= kept.bytes:  # there is nothing more to leave out
                break
            kept, rendered = fewer, again
        return kept, rendered

    def _select(self, pending: PendingPrefix, limits: FitLimits) -> tuple[KeptItems, RenderedInput | None]:
        """Return the messages that fit with the memories before them, and the input if it is rendered now."""
        kept, rendered = self._select_messages(pending, limits)
        self._sent_lead = ()
        if self._lead or self._new_lead:
            from nexus_core.request.memories import prepend_memories

            role, sizer = self._lead_role, self._window.sizer
            kept, self._sent_lead = prepend_memories(
                kept, self._lead, self._new_lead, role=role, limits=limits, sizer=sizer
            )
        return kept, rendered

    def _select_messages(self, pending: PendingPrefix, limits: FitLimits) -> tuple[KeptItems, RenderedInput | None]:
        """Return the messages that fit, and the input rendered now if it was not rendered before."""
        window, turn, history, cut = self._window, self._turn, self._history, self._cut
        if self._sections is None:
            return fit_items(window.add_input_margin(history, turn), cut, limits), None
        sections = [*self._build_notices(pending), *self._sections]
        renderer = InputRenderer(self._request, self._static, sections, window, self._now)
        before = [each for each in history if not (each.is_input and each.turn == turn)]
        return renderer.fit(self._get_raw_input(), before, cut, limits)

    def _drop_memories(self, pending: PendingPrefix, kept: KeptItems) -> bool:
        """Take all memories out of earlier messages if not everything fits: they give way before the history."""
        used = kept.taken + sum(self._window.prefix_sizer.count_tokens(pending.prefix).values())
        if self._cache is None or used <= self._window.available_tokens:
            return False
        from nexus_core.request.memories import build_unsent_key, find_injected_memories, strip_unsent_memories

        injected = {
            build_unsent_key(item.turn, entry.id)
            for item, entry in find_injected_memories(self._cache, self._history)
            if item.turn != self._turn
        }
        if injected <= self._unsent:
            return False
        self._unsent |= injected
        self._history = strip_unsent_memories(self._cache, self._history, self._unsent, self._window.sizer)
        return True

    def _count_excess(self, pending: PendingPrefix, kept: KeptItems) -> int:
        """Return how many tokens do not fit; negative if some are left."""
        tokens, _ = self._measure_arranged(pending, kept)
        return tokens - self._window.limits(self._turn, self._state.tip, pending.prefix).room

    def _measure_arranged(self, pending: PendingPrefix, kept: KeptItems) -> tuple[int, int]:
        """Return tokens and bytes of the messages, as the renderer may rearrange them."""
        renderer, turn, sizer = self._static.renderer, self._turn, self._window.sizer
        if renderer.arrange is None:
            return kept.tokens, kept.bytes
        past, message = arrange_items(self._request, renderer, kept.sent, turn, pending.prefix.tools)
        arranged, (_, _, progress) = [*past, *([message] if message else [])], split_history(kept.sent, turn)
        tokens = sum(map(sizer.count_tokens, arranged)) + sum(map(get_tokens, progress))
        return tokens, sum(map(sizer.count_bytes, arranged)) + sum(map(get_bytes, progress))

    # ---- history and input ------------------------------------------------------------------------------------

    def _read_history(self) -> list[HistoryItem]:
        tip, turn, sizer = self._state.tip, self._turn, self._window.sizer
        if tip is None or self._cache is None:
            return [self._build_start_item()] if self._starts_session else []
        if self._cut is not None:
            items = read_truncated_thread(self._cache, tip, sizer, self._cut, turn)
        else:
            is_bounded = self._window.strategy.name == NEWEST_FIRST and not self._state.newest.pins
            limits = ReadLimits(self._window.available_tokens if is_bounded else None, turn)
            items = read_thread(self._cache, tip, sizer, limits)
        if not self._unsent:
            return items
        from nexus_core.request.memories import strip_unsent_memories

        return strip_unsent_memories(self._cache, items, self._unsent, sizer)

    def _build_start_item(self) -> HistoryItem:
        """Return the first message of a session that is not stored yet."""
        message, sizer = build_session_start_message_at(self._now), self._window.sizer
        tokens, size = sizer.count_tokens(message), sizer.count_bytes(message)
        return HistoryItem(message, tokens, START_TURN, is_input=True, size=size)

    def _get_raw_input(self) -> HistoryItem:
        """Return the input of the open turn or of the preview, before it is rendered."""
        if self._user_input is not None:
            return HistoryItem(self._user_input.message, 0, self._turn, is_input=True)
        return next(each for each in self._history if each.is_input and each.turn == self._turn)

    def _find_input(self, items: Sequence[HistoryItem]) -> HistoryItem | None:
        return next((each for each in items if each.is_input and each.turn == self._turn), None)

    def _read_input_entries(self) -> Sequence[SectionEntry]:
        """Return the sections of the input that was rendered before, without memories that are not sent any more."""
        entries = read_section_entries(self._opened.rendered.section_entries) if self._opened else []
        if not self._unsent:
            return entries
        from nexus_core.request.memories import list_sent_entries

        return list_sent_entries(entries, self._turn, self._unsent)

    def _build_current_sections(self) -> list[Section]:
        """Return the sections of plugins for a new input, and the memories that it recalls."""
        sections = list(self._runtime.host.current_sections(self._request, self._static.loaded))
        if self._static.settings.get("memory.enabled") is not True:
            return sections
        from nexus_core.request.memories import EarlierMemories, recall_sections

        recalled = recall_sections(
            self._runtime,
            self._cache,
            self._request,
            self._static,
            self._history,
            known=EarlierMemories(self._lead, self._unsent),
            count=self._window.sizer.counter.count,
        )
        self._memory_findings = recalled.findings
        position = self._static.settings.get("memory.position", "after_history")
        # A renderer that rearranges messages knows no message before the history.
        if position == "after_history" or self._static.renderer.arrange is not None:
            return [*sections, *recalled.sections]
        self._new_lead = tuple(recalled.sections)
        if self._new_lead:
            self._lead_role = "system" if position == "system" else "user"
        return sections

    def _build_notices(self, pending: PendingPrefix) -> list[Section]:
        """Return what has changed since the model read its sections; nothing for a new prefix."""
        sent = self._state.newest.sections_digest or pending.prefix.sections_digest
        if pending.blobs or not sent or sent == self._static.sections_digest:
            return []
        notice = build_change_notice(self._runtime.prefixes.read_sections(sent), self._static.sections)
        return [] if notice is None else [notice]

    # ---- the plan's facts -------------------------------------------------------------------------------------

    def _find_invalid_tools(self, tools: Sequence[Tool]) -> tuple[Finding, ...]:
        """Return findings about tools that the model's API would refuse even after they are completed."""
        rules = self._runtime.dialects.rules(self._window.model.api) if tools else None
        if rules is None:
            return ()
        return tuple(find_invalid_tools(complete_schemas(tools, rules), rules))

    def _list_dropped(self, cut: TruncationPoint | None) -> tuple[Decision, ...]:
        if cut is None or self._cache is None:
            return ()
        return tuple(list_dropped_steps(self._cache, cut, self._state.tip, self._window.sizer.name))

    def _list_masked(self, kept: KeptItems) -> tuple[Decision, ...]:
        if kept.cut is None or kept.cut.hidden is None or self._cache is None:
            return ()
        return tuple(list_masked_steps(self._cache, kept.sent))

    def _place_prefix(self, pending: PendingPrefix) -> tuple[Placement, ...]:
        sections = (
            self._static.sections
            if pending.blobs
            else self._runtime.prefixes.read_sections(pending.prefix.sections_digest)
        )
        return self._window.prefix_sizer.place(pending.prefix.digest, sections, self._static.tool_offers)

    def _find_parent_turn(self) -> str | None:
        opened, tip = self._opened, self._state.tip
        before = opened.steps[0].parent if opened else tip.id if tip else None
        return None if self._cache is None else get_parent_turn(self._cache, before)

    def _build_rendered_step(
        self, turn: Turn, pending: PendingPrefix, cut: TruncationPoint | None, rendered: RenderedInput | None
    ) -> PendingRender | None:
        """Return the step that records what is sent from now on; None if the stored steps say it already."""
        state, static = self._state, self._static
        stored_cut = None if cut is None else cut.to_json()
        is_stored = state.newest.epoch == pending.prefix.digest and turn.rendered.model == self._model
        is_stored = is_stored and state.newest.settings_digest in ("", static.settings_digest)
        changed, lead_blobs = self._find_memory_changes()
        blobs = (*pending.blobs, *lead_blobs)
        is_stored = is_stored and not changed
        if rendered is None and is_stored and (state.tip is None or state.newest.cut == stored_cut):
            return None
        payload = RenderedPayload(
            epoch=pending.prefix.digest,
            cut=stored_cut,
            model=self._model,
            settings_digest=static.settings_digest,
            session=static.request.session,
            **changed,
        )
        if pending.blobs or not state.newest.sections_digest:
            payload = payload.replace(sections_digest=pending.prefix.sections_digest)
        if rendered is None:
            return PendingRender(NewStep(kind="sealed", data=payload.to_json()), (*blobs, static.settings_blob))
        if not pending.blobs:
            payload, blobs = payload.replace(sections_digest=static.sections_digest), (static.sections_blob, *blobs)
        payload = payload.replace(
            renderer=static.renderer.name,
            context=[dict(rendered.context)],
            section_entries=[each.to_json() for each in rendered.entries],
        )
        return PendingRender(
            NewStep(kind="sealed", messages=(rendered.message,), data=payload.to_json()),
            (*blobs, static.settings_blob),
        )

    def _find_memory_changes(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """Return the fields about memories that differ from the stored ones, and the blobs that they name."""
        newest, changes = self._state.newest, dict[str, Any]()
        blobs: tuple[bytes, ...] = ()
        if self._sent_lead != self._lead:
            blobs = (write_sections(self._sent_lead),) if self._sent_lead else ()
            changes = {"memories": compute_blob_digest(blobs[0]) if blobs else "", "memory_role": self._lead_role}
        if self._unsent != set(newest.unsent_memories):
            changes["unsent_memories"] = tuple(sorted(self._unsent))
        return changes, blobs
