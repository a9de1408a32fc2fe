"""What one call of a model is put together from, and the call itself."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.budget import require_within_budget
from nexus_core.history.items import PREVIEW_TURN, HistoryItem, get_bytes, get_tokens, split_history
from nexus_core.history.select import fit_items
from nexus_core.request.input import add_event
from nexus_core.request.placements import CallPieces, place_pieces, read_section_entries
from nexus_core.request.renderer import arrange_messages
from nexus_core.request.window import ContextWindow
from nexus_core.request.writer import LazyWriter
from nexus_core.text.safety import visible_line
from nexus_core.thread.totals import get_parent_turn
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.errors import BudgetError
    from nexus_core.history.items import TruncationPoint
    from nexus_core.history.select import FitLimits, KeptItems
    from nexus_core.request.input import RenderedInput, UserInput
    from nexus_core.request.placements import SectionEntry
    from nexus_core.request.prefix import PendingPrefix, Prefix
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.thread.turns import Turn
    from nexus_core.types.assembled import ContextWriter
    from nexus_core.types.budget import Decision, TokenBudget
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import NewStep
    from nexus_core.types.messages import JSON, Message, Tool
    from nexus_core.types.prompt import ArrangedMessages, Placement, Renderer, Section
    from nexus_core.types.request import Request
    from nexus_core.types.settings import Settings


class Call(NamedTuple):
    """What one call is put together from.

    Attributes:
        request: All circumstances: session, model, role, what set it off.
        epoch: System prompt and tools.
        renderer: What puts it into words.
        sent: The messages that stay of the thread, in their order; the open turn's among them.
        turn: The open turn.
        parent_turn: The turn before.
        provider: Who serves the model.
        options: Options from the settings, for whoever makes the call.
        permissions: What the agent may do.
        allowance: The model's window and what is kept free in it.
        fixed: What system prompt and tools take.
        measured: The bytes of a request besides messages.
        memory: What memories take of the current message.
        decisions: What of the history is left out, or told in words.
        findings: What a person should know.
        count_tokens: Says what a message takes.
        count_bytes: Says how many bytes it has.
        placements: Says where everything comes from.
        writer: Puts it into the shapes of APIs.
        must_fit: Whether it is an error if it does not fit; what was sent once was sent.
    """

    request: Request
    epoch: Prefix
    renderer: Renderer
    sent: list[HistoryItem]
    turn: str
    parent_turn: str | None
    provider: str
    options: JSON
    permissions: tuple[str, ...]
    allowance: TokenBudget
    fixed: dict[str, int]
    measured: dict[str, int]
    memory: int
    decisions: tuple[Decision, ...]
    findings: tuple[Finding, ...]
    count_tokens: Callable[[Message], int]
    count_bytes: Callable[[Message], int]
    placements: Callable[[], tuple[Placement, ...]]
    writer: ContextWriter
    must_fit: bool = True


def assemble(call: Call) -> AssembledContext:
    """Everything that goes into a call, within the model's window.

    Raises:
        BudgetError: What must be sent does not fit; lists what it consists of.
    """
    told = _weighed(call)
    return AssembledContext(
        system_prompt=call.epoch.system,
        history=told.past,
        current_message=told.said,
        progress=tuple(each.message for each in told.progress),
        tools=call.epoch.tools,
        model=call.request.model,
        provider=call.provider,
        model_config=call.options,
        token_budget=_spent(call, told),
        session_label=call.request.session,
        turn_id="" if call.turn == PREVIEW_TURN else call.turn,
        parent_turn_id=call.parent_turn,
        role=call.request.role,
        toolset_name=call.request.role,
        permissions_granted=call.permissions,
        source_event_id=call.request.event_id or None,
        workspace_path=call.request.cwd,
        decisions=call.decisions,
        findings=call.findings,
        renderer=call.renderer.name,
        epoch=call.epoch.digest,
        system_context=call.epoch.context,
        place=call.placements,
        message_tokens=(
            *told.tokens,
            *([] if told.said is None else [told.event]),
            *map(get_tokens, told.progress),
        ),
        writer=call.writer,
    )


def _spent(call: Call, told: _Weighed) -> TokenBudget:
    """What the call takes of its allowance."""
    memory = min(call.memory, told.event)
    history = sum(told.tokens) + sum(map(get_tokens, told.progress))
    used = call.fixed | {"history": history, "memory": memory, "event": told.event - memory}
    measured = call.measured | {"history": told.bytes, "event": told.event_bytes}
    budget = replace(call.allowance, used=used, margin=told.margin, bytes=sum(measured.values()))
    if call.must_fit:
        require_within_budget(budget, measured)
    return budget


class _Weighed(NamedTuple):
    """The messages of a call, as the renderer may rearrange them.

    Attributes:
        past, said, progress: History, current message, and what was said since.
        tokens: What each of the history takes.
        event: What the current message takes.
        margin: The part of it that is a safety margin.
        bytes: The bytes of all but the current message.
        event_bytes: Those of the current message.
    """

    past: tuple[Message, ...]
    said: Message | None
    progress: list[HistoryItem]
    tokens: list[int]
    event: int
    margin: int
    bytes: int
    event_bytes: int


def _weighed(call: Call) -> _Weighed:
    history, current, progress = split_history(call.sent, call.turn)
    since = sum(map(get_bytes, progress))
    if call.renderer.arrange is None:
        past, tokens = tuple(each.message for each in history), list(map(get_tokens, history))
        event, margin, event_bytes = (current.tokens, current.margin, current.size) if current else (0, 0, 0)
        size = sum(map(get_bytes, history)) + since
        return _Weighed(past, current.message if current else None, progress, tokens, event, margin, size, event_bytes)
    past, said = arrange_sent(call.request, call.renderer, call.sent, call.turn, call.epoch.tools)
    event, event_bytes = (call.count_tokens(said), call.count_bytes(said)) if said else (0, 0)
    size = sum(map(call.count_bytes, past)) + since
    return _Weighed(past, said, progress, list(map(call.count_tokens, past)), event, 0, size, event_bytes)


def arrange_sent(
    request: Request, renderer: Renderer, sent: Sequence[HistoryItem], turn: str, tools: tuple[Tool, ...]
) -> ArrangedMessages:
    """History and input as a renderer that rearranges them sends them; arguments as in `Call`."""
    from nexus_core.types.prompt import ArrangeRequest, PastMessage

    history, current, _ = split_history(sent, turn)
    past = tuple(PastMessage(each.message, each.created, each.is_input, each.said or each.message) for each in history)
    said = current.message if current else None
    return arrange_messages(renderer, ArrangeRequest(request=request, history=past, current=said, tools=tools))


class Ingredients(NamedTuple):
    """What one call is made of; those that are not said here as in `Call`.

    Attributes:
        entries: The sections of the current message.
        dropped: What of the history is left out.
        hidden: What of it is told in words.
        static: Says where system prompt and tools come from.
    """

    request: Request
    epoch: Prefix
    renderer: Renderer
    sent: list[HistoryItem]
    turn: str
    parent_turn: str | None
    permissions: tuple[str, ...]
    entries: Sequence[SectionEntry]
    dropped: tuple[Decision, ...]
    hidden: tuple[Decision, ...]
    static: Callable[[], tuple[Placement, ...]]


def make_call(runtime: SessionRuntime, settings: Settings, window: ContextWindow, made_of: Ingredients) -> Call:
    """A call within a model's window, as settings want it."""
    epoch, sent, turn = made_of.epoch, made_of.sent, made_of.turn
    fixed = window.prefix_sizes.count_tokens(epoch)
    pieces = CallPieces(made_of.static, sent, made_of.dropped, turn, made_of.entries, window.sizer.placed)
    return Call(
        request=made_of.request,
        epoch=epoch,
        renderer=made_of.renderer,
        sent=sent,
        turn=turn,
        parent_turn=made_of.parent_turn,
        provider=str(settings.get("provider.provider") or window.model.api),
        options=window.options,
        permissions=made_of.permissions,
        # Asked after counting: a tokenizer that is damaged shows it only when it is used.
        allowance=replace(window.allowance, estimated=not window.sizer.counter.exact),
        fixed=fixed,
        measured=window.measure_fixed(epoch),
        memory=sum(each.tokens for each in made_of.entries if each.kind == "memory" and not each.refusal),
        decisions=(*made_of.dropped, *made_of.hidden),
        findings=(),
        count_tokens=window.sizer.count_tokens,
        count_bytes=window.sizer.count_bytes,
        placements=partial(place_pieces, pieces),
        writer=LazyWriter(window.model, partial(runtime.model, settings=settings), settings, runtime.dialects),
    )


MIN_NAMED_FRACTION = 10
"""What takes less than this fraction of all is not worth naming."""
MAX_NAMED_PIECES = 3
"""So many are named."""


def name_largest_pieces(error: BudgetError, placements: Iterable[Placement]) -> BudgetError:
    """An error that also says which pieces of the call are large; as it was where they are counted otherwise.

    Args:
        error: What does not fit.
        placements: All pieces.
    """
    if error.unit != "tokens":
        return error
    large = [each for each in placements if each.tokens * MIN_NAMED_FRACTION >= error.needed]
    large.sort(key=lambda each: (-each.tokens, each.name))
    return error.naming((_name(each), each.tokens) for each in large[:MAX_NAMED_PIECES])


def _name(placement: Placement) -> str:
    if placement.kind == "session":
        return f"step {placement.name}"
    if placement.zone == "current" and placement.source.uri.startswith(("step:", "caller:")):
        return "the message itself"
    what = "tool" if placement.kind == "tool" else "section"
    return visible_line(f"{what} {placement.title or placement.name!r} of {format_source(placement.source.uri)}")


NOTHING_TO_SEND = "nothing-said"
CALLS_PENDING = "calls-waiting"


def find_unsendable(turn: Turn, sent: Sequence[HistoryItem]) -> Iterator[Finding]:
    """Why an API would refuse a call, or answer something else than one thinks.

    Args:
        turn: The newest turn, open or not.
        sent: The messages of the call.
    """
    if turn.pending:
        waiting = ", ".join(map(str, turn.pending))
        yield Finding(CALLS_PENDING, f"{waiting}: the result is not recorded yet, and an API would refuse this call")
    elif not turn.is_open and sent and sent[-1].message.role == "assistant":
        what = (
            "no turn is open, and the last word is the model's: an API would refuse this call, or go on writing there"
        )
        yield Finding(NOTHING_TO_SEND, f"{what}; a message opens a turn")


START_TURN = "?start"
"""The turn of the line that says when a session started, as long as that is not stored."""
NEWEST_FIRST = "oldest_first"
"""The strategy that never looks at the beginning of a thread, so that it need not be read."""


class PendingRender(NamedTuple):
    """What has to be written down before something is sent: a step, and what it names."""

    step: NewStep
    blobs: tuple[bytes, ...]


class CallPlan(NamedTuple):
    """What is to be sent.

    Attributes:
        call: What it is put together from.
        seal: What has to be written down before; None where all of it is.
        due: Why earlier turns should be summarised first; None where nothing calls for it.
        event: What the open turn is about, as it is sent at least.
        window: What fits into the call.
        static: What stands around the session.
        overflows: Whether it does not fit although everything is left out that may be.
    """

    call: Call
    seal: PendingRender | None
    due: CompactionTrigger | None
    event: HistoryItem | None
    window: ContextWindow
    static: StaticContext
    overflows: bool


class _Pieces(NamedTuple):
    """What a call is made of besides its epoch.

    Attributes:
        request: All circumstances.
        history: What was said.
        sections: What plugins tell now; None where what the turn is about was put into words before.
        said: What is only tried out.
        cut: Where the history began so far.
        turn: The open turn.
        now: The time, in milliseconds since 1970.
    """

    request: Request
    history: list[HistoryItem]
    sections: Sequence[Section] | None
    said: UserInput | None
    cut: TruncationPoint | None
    turn: str
    now: int


class CallPlanner:
    """Plans one call of a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: Its thread; None for a conversation that is not kept.
        state: Where it stands.
        static: What stands around it.
        model: Whom to ask.
        start: Whether the session begins with this call, and says when.

    Attributes:
        find_trigger: Returns why earlier turns should be summarized first, from the tokens of the call and their limit;
            a session that is stored sets it.
    """

    def __init__(
        self,
        runtime: SessionRuntime,
        cache: ThreadCache | None,
        state: SessionState,
        static: StaticContext,
        model: str,
        *,
        start: bool = False,
    ) -> None:
        self._runtime = runtime
        self._tail = cache
        self._state = state
        self._static_context = static
        self._model = model
        self._start = start
        self.find_trigger: Callable[[int, int], CompactionTrigger | None] = lambda _used, _limit: None
        self._window = ContextWindow(runtime, static.settings, model, state, cache)

    def plan(self, said: UserInput | None = None) -> CallPlan:
        """Routing, system prompt, history, event, tools, budget: in this order.

        Args:
            said: What is only tried out; None for the turn that is open.
        """
        state, window, now = self._state, self._window, self._runtime.now()
        opened = state.open_turn
        turn = PREVIEW_TURN if said is not None else opened.steps[0].id if opened else ""
        request = self._request(said)
        cut = state.cut if window.limits(turn, state.tip).still_holds(state.cut) else None
        is_new = said is not None or (opened is not None and not opened.is_sealed)
        sections = self._runtime.host.current_sections(request, self._static_context.loaded) if is_new else None
        pieces = _Pieces(request, self._read(cut, turn), sections, said, cut, turn, now)
        pending, kept, rendered = self._fit(pieces)
        entries = rendered.entries if rendered else read_section_entries(opened.sealed("told")) if opened else []
        call = self._call(request, pending, kept, turn, entries)
        seal = None if opened is None or said is not None else self._seal(opened, pending, kept.cut, rendered)
        due = self.find_trigger(kept.taken + sum(call.fixed.values()), window.most)
        about = (each for each in kept.sent if each.is_input and each.turn == turn)
        event = rendered.plain if rendered else next(about, None)
        overflows = due is not None and self._over(pieces, pending, kept) > 0
        return CallPlan(call, seal, due, event, window, self._static_context, overflows)

    def _fit(self, pieces: _Pieces) -> tuple[PendingPrefix, KeptItems, RenderedInput | None]:
        """The epoch and what stays beside it; a new one where announcements are left out, or do not fit."""
        prefixes, state, static, now = self._runtime.prefixes, self._state, self._static_context, pieces.now
        before = prefixes.find(state.epoch, state.view)
        pending = prefixes.current(before, static, state.reloads, now)
        kept, rendered = self._kept(pieces, pending)
        if not pending.blobs and self._needs_all_anew(pieces, pending, kept, rendered):
            pending = prefixes.begin(before, static, state.reloads, now)
            kept, rendered = self._kept(pieces, pending)
        return pending, kept, rendered

    def _needs_all_anew(
        self, pieces: _Pieces, pending: PendingPrefix, kept: KeptItems, rendered: RenderedInput | None
    ) -> bool:
        """Whether a prompt with all changes in it must take the place of one beside announcements of them."""
        if kept.cut is not None and kept.cut != self._state.cut and self._state.view not in ("", pending.epoch.view):
            return True  # what was announced may be left out; all after the prompt is read anew in any case
        return rendered is not None and bool(self._notices(pending)) and self._over(pieces, pending, kept) > 0

    def _kept(self, pieces: _Pieces, pending: PendingPrefix) -> tuple[KeptItems, RenderedInput | None]:
        limits = self._window.limits(pieces.turn, self._state.tip, pending.epoch)
        kept, rendered = self._chosen(pieces, pending, limits)
        while self._static_context.renderer.arrange is not None:
            tokens, size = self._taken(pieces, pending, kept)
            if tokens <= limits.room and size <= limits.bytes:
                break
            room, most = limits.room - tokens + kept.tokens, limits.bytes - size + kept.bytes
            limits = limits._replace(room=min(room, limits.room), bytes=min(most, limits.bytes))
            fewer, again = self._chosen(pieces, pending, limits)
            if fewer.tokens >= kept.tokens and fewer.bytes >= kept.bytes:  # there is nothing more to leave out
                break
            kept, rendered = fewer, again
        return kept, rendered

    def _chosen(
        self, pieces: _Pieces, pending: PendingPrefix, limits: FitLimits
    ) -> tuple[KeptItems, RenderedInput | None]:
        """What stays as it is written down, and what was said in words; a renderer may make more or less of it."""
        window, turn, history, cut = self._window, pieces.turn, pieces.history, pieces.cut
        if pieces.sections is None:
            return fit_items(window.with_margin(history, turn), cut, limits), None
        from nexus_core.request.input import InputRenderer

        told = [*self._notices(pending), *pieces.sections]
        wording = InputRenderer(pieces.request, self._static_context, told, window, pieces.now)
        return wording.fit(self._said(pieces.said, history, turn), self._before(history, turn), cut, limits)

    def _over(self, pieces: _Pieces, pending: PendingPrefix, kept: KeptItems) -> int:
        """How many tokens do not fit; below 0, how many there are left."""
        tokens, _ = self._taken(pieces, pending, kept)
        return tokens - self._window.limits(pieces.turn, self._state.tip, pending.epoch).room

    def _taken(self, pieces: _Pieces, pending: PendingPrefix, kept: KeptItems) -> tuple[int, int]:
        """The tokens and the bytes of the messages, as the renderer may rearrange them."""
        renderer, turn, sizer = self._static_context.renderer, pieces.turn, self._window.sizer
        if renderer.arrange is None:
            return kept.tokens, kept.bytes
        past, said = arrange_sent(pieces.request, renderer, kept.sent, turn, pending.epoch.tools)
        arranged, (_, _, progress) = [*past, *([said] if said else [])], split_history(kept.sent, turn)
        tokens = sum(map(sizer.count_tokens, arranged)) + sum(map(get_tokens, progress))
        return tokens, sum(map(sizer.count_bytes, arranged)) + sum(map(get_bytes, progress))

    # ---- what was said ----------------------------------------------------------------------------------------

    def _request(self, said: UserInput | None) -> Request:
        opened = self._state.open_turn
        message, event = (said.message, said.event) if said else (opened.said if opened else None, self._state.event)
        return replace(add_event(self._static_context.request, message, event), model=self._model)

    def _read(self, cut: TruncationPoint | None, turn: str) -> list[HistoryItem]:
        tip = self._state.tip
        if tip is None or self._tail is None:
            return [self._started()] if self._start else []
        from nexus_core.thread.projection import ReadLimits, read_thread, read_truncated_thread

        sizer = self._window.sizer
        if cut is not None:
            return read_truncated_thread(self._tail, tip, sizer, cut, turn)
        is_bounded = self._window.truncation.name == NEWEST_FIRST and not self._state.pins
        return read_thread(self._tail, tip, sizer, ReadLimits(self._window.most if is_bounded else None, turn))

    def _started(self) -> HistoryItem:
        """Return the first message of a session that is not stored yet."""
        from nexus_core.request.input import build_session_start_message_at

        message, sizer = build_session_start_message_at(self._runtime.now()), self._window.sizer
        return HistoryItem(
            message, sizer.count_tokens(message), START_TURN, is_input=True, size=sizer.count_bytes(message)
        )

    def _said(self, said: UserInput | None, history: Sequence[HistoryItem], turn: str) -> HistoryItem:
        if said is not None:
            return HistoryItem(said.message, 0, turn, is_input=True)
        return next(each for each in history if each.is_input and each.turn == turn)

    def _before(self, history: Sequence[HistoryItem], turn: str) -> list[HistoryItem]:
        return [each for each in history if not (each.is_input and each.turn == turn)]

    def _notices(self, pending: PendingPrefix) -> list[Section]:
        """What is to be announced, because it has changed since the model was told; nothing in a new epoch."""
        told = self._state.view or pending.epoch.view
        if pending.blobs or not told or told == self._static_context.view_digest:
            return []
        from nexus_core.request.prefix import build_change_notice

        notice = build_change_notice(self._runtime.prefixes.view(told), self._static_context.sections)
        return [] if notice is None else [notice]

    # ---- what comes of it -------------------------------------------------------------------------------------

    def _call(
        self, request: Request, pending: PendingPrefix, kept: KeptItems, turn: str, entries: Sequence[SectionEntry]
    ) -> Call:
        static = self._static_context
        made_of = Ingredients(
            request=request,
            epoch=pending.epoch,
            renderer=static.renderer,
            sent=kept.sent,
            turn=turn,
            parent_turn=self._parent_turn(),
            permissions=static.permissions,
            entries=entries,
            dropped=self._left_out(kept.cut),
            hidden=self._told_in_words(kept),
            static=partial(self._static, pending),
        )
        call = make_call(self._runtime, static.settings, self._window, made_of)
        return call._replace(findings=(*self._window.findings, *self._find_invalid_tools(pending.epoch.tools)))

    def _find_invalid_tools(self, tools: Sequence[Tool]) -> tuple[Finding, ...]:
        """Report tools that the model's API would refuse, apart from what is completed when they are written."""
        rules = self._runtime.dialects.rules(self._window.model.api) if tools else None
        if rules is None:
            return ()
        from nexus_core.dialects.tools import complete_schemas, find_invalid_tools

        return tuple(find_invalid_tools(complete_schemas(tools, rules), rules))

    def _left_out(self, cut: TruncationPoint | None) -> tuple[Decision, ...]:
        if cut is None or self._tail is None:
            return ()
        from nexus_core.thread.projection import list_dropped_steps

        return tuple(list_dropped_steps(self._tail, cut, self._state.tip, self._window.sizer.name))

    def _told_in_words(self, kept: KeptItems) -> tuple[Decision, ...]:
        if kept.cut is None or kept.cut.hidden is None or self._tail is None:
            return ()
        from nexus_core.thread.projection import list_masked_steps

        return tuple(list_masked_steps(self._tail, kept.sent))

    def _static(self, pending: PendingPrefix) -> tuple[Placement, ...]:
        sections = self._static_context.sections if pending.blobs else self._runtime.prefixes.view(pending.epoch.view)
        return self._window.prefix_sizes.place(pending.epoch.digest, sections, self._static_context.offered)

    def _parent_turn(self) -> str | None:
        opened, tip = self._state.open_turn, self._state.tip
        before = opened.steps[0].parent if opened else tip.id if tip else None
        return None if self._tail is None else get_parent_turn(self._tail, before)

    def _seal(
        self, turn: Turn, pending: PendingPrefix, cut: TruncationPoint | None, rendered: RenderedInput | None
    ) -> PendingRender | None:
        """The step that says what is sent from now on; None where the steps there are say it already."""
        from nexus_core.types.ledger import NewStep

        state, written = self._state, None if cut is None else cut.to_json()
        is_told = state.epoch == pending.epoch.digest and turn.sealed("model") == self._model
        is_told = is_told and state.setup in ("", self._static_context.setup_digest)
        if rendered is None and is_told and (state.tip is None or state.tip.data.get("cut") == written):
            return None
        static, blobs = self._static_context, pending.blobs
        data: dict[str, Any] = {"epoch": pending.epoch.digest, "cut": written, "model": self._model}
        data |= {"setup": static.setup_digest, "session": static.request.session}
        if pending.blobs or not state.view:
            data["view"] = pending.epoch.view
        if rendered is None:
            return PendingRender(NewStep(kind="sealed", data=data), (*blobs, static.setup))
        if not blobs:
            data["view"], blobs = static.view_digest, (static.view,)
        data |= {
            "renderer": static.renderer.name,
            "context": [dict(rendered.context)],
            "told": [each.to_json() for each in rendered.entries],
        }
        return PendingRender(NewStep(kind="sealed", messages=(rendered.message,), data=data), (*blobs, static.setup))
