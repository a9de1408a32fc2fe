"""Calls of the past, rebuilt from steps and blobs alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError, TurnError, UsageError
from nexus_core.history.truncation import apply_truncation
from nexus_core.ledger.ledger import deleted_step_error
from nexus_core.rendering import LABELLED_RENDERER, find_epoch_renderer
from nexus_core.request.build import CallPlan
from nexus_core.request.input import add_event, read_section_entries
from nexus_core.request.prefix import CALLER_SOURCE, OLD_MODE, PrefixStore, ToolOffer
from nexus_core.request.runtime import ContextWindow
from nexus_core.session.options import get_mode
from nexus_core.thread.lookup import find_step as find_named
from nexus_core.thread.lookup import find_turn_steps
from nexus_core.thread.projection import (
    ReadLimits,
    list_dropped_steps,
    list_masked_steps,
    read_thread,
    read_truncated_thread,
)
from nexus_core.thread.state import MARKER_KINDS, SessionState, Turn, get_parent_turn
from nexus_core.types.payloads import InputPayload, ReplyPayload
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nexus_core.history.truncation import HistoryItem
    from nexus_core.request.input import SectionEntry
    from nexus_core.request.prefix import Prefix
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import Tool
    from nexus_core.types.prompt import Placement
    from nexus_core.types.settings import Settings

_ANSWERS = ("reply", "interrupted")
_SENT_FROM = ("sealed", "result", "reply", *MARKER_KINDS)


def find_reply_step(ledger: Ledger, name: str) -> Step:
    """Return the step with an id, or the only one whose id begins or ends with a text.

    Raises:
        UsageError: There is no such step, or there are several.
        LedgerError: Its content was deleted.
    """
    step = find_named(ledger, name)
    if step is None:
        hint = "`nexus session show NAME` names the steps of a session"
        raise UsageError(f"there is no step {name!r}", hint=hint)
    if getattr(step, "is_erased", False):
        raise deleted_step_error(step.id)
    return step


def find_sent_step(ledger: Ledger, name: str) -> Step:
    """Return the newest step when a call was made: the one before a reply, or else the step itself.

    The id of a turn is that of its first step, before any call: then its last reply counts, or its newest step if it
    has none.

    Raises:
        UsageError: There is no such step.
        TurnError: Nexus assembled no call there, as in an imported session.
    """
    step = find_reply_step(ledger, name)
    if step.kind == "input":
        steps = find_turn_steps(ledger, step)
        step = next((each for each in reversed(steps) if each.kind == "reply"), steps[-1])
    # A summary may have been made while the model was thinking.
    asked = (step.payload.asked if isinstance(step.payload, ReplyPayload) else None) or step.parent
    tip = ledger.step(asked) if step.kind in _ANSWERS and asked else step
    if tip is None or tip.turn != step.turn or tip.kind not in _SENT_FROM:
        raise _unsent(f"nothing was sent by Nexus for step {name}")
    return tip


def restore_tool_offers(ledger: Ledger, name: str) -> tuple[Tool, ...]:
    """Return the tools that were offered to the model when it gave a reply.

    Args:
        ledger: The ledger of the session.
        name: The id of the reply's step; that of a tool call is `call.key.step`.

    Raises:
        UsageError: There is no such step.
        TurnError: Nexus assembled no call before it.
        LedgerError: A blob of the call is gone.
    """
    epoch = find_sent_step(ledger, name).payload.epoch
    if not epoch:
        raise _unsent(f"nothing was sent by Nexus for step {name}")
    return PrefixStore(lambda: ledger).read(epoch).tools


def replay_call(runtime: SessionRuntime, cache: ThreadCache, tip: Step, settings: Settings, label: str) -> CallPlan:
    """Return the call that was sent when a step was the newest.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: The session's thread.
        tip: The step.
        settings: Settings for models and counters, if none were stored with the call.
        label: The name of the session, if it was not stored with the call.

    Raises:
        LedgerError: A step or blob of the call is gone.
        TurnError: No call was sent.
    """
    turn = Turn(cache.read_turn(tip.id))
    state = SessionState(None, tip, turn)
    if not state.newest.epoch or not turn.is_rendered:
        raise _unsent(f"nothing was sent by Nexus in turn {tip.turn}")
    epoch = runtime.prefixes.read(state.newest.epoch)
    settings = (
        runtime.prefixes.read_settings(state.newest.settings_digest) if state.newest.settings_digest else settings
    )
    model = turn.rendered.model or ""
    window = ContextWindow(runtime, settings, model, state, cache)
    sent = window.add_input_margin(_sent(cache, state, window), tip.turn)
    lead = runtime.prefixes.read_sections(state.newest.memories)
    if lead:
        from nexus_core.request.memories import build_memory_item

        sent = [build_memory_item(lead, state.newest.memory_role, window.sizer), *sent]
    permissions, before = epoch.key.get("permissions"), turn.steps[0].parent
    return CallPlan(
        request=_request(runtime, state, epoch, model, turn.rendered.session or label),
        prefix=epoch,
        renderer=find_epoch_renderer(
            runtime.host,
            str(epoch.key.get("renderer") or LABELLED_RENDERER.name),
            str(epoch.key.get("renderer_plugin") or ""),
        ),
        items=sent,
        turn=tip.turn,
        window=window,
        permissions=tuple(map(str, permissions)) if isinstance(permissions, list) else (),
        entries=_read_input_entries(turn, tip.turn, state.newest.unsent_memories),
        decisions=(
            *list_dropped_steps(cache, state.cut, tip, window.sizer.name),
            *list_masked_steps(cache, sent),
        ),
        place_prefix=partial(_static, runtime, window, epoch),
        parent_turn=get_parent_turn(cache, before),
        must_fit=False,
        lead=lead,
    )


def _unsent(what: str) -> TurnError:
    return TurnError(
        what,
        hint="it was made elsewhere, or nobody called next(); replies to what ask() and next() returned have it",
        command="it was made elsewhere; `nexus session show NAME` shows what was said, "
        "`nexus assemble --session NAME` what would be sent now",
    )


def _sent(cache: ThreadCache, state: SessionState, window: ContextWindow) -> list[HistoryItem]:
    items = _read_sent(cache, state, window)
    if not state.newest.unsent_memories:
        return items
    from nexus_core.request.memories import strip_unsent_memories

    return strip_unsent_memories(cache, items, state.newest.unsent_memories, window.sizer)


def _read_input_entries(turn: Turn, name: str, unsent: Collection[str]) -> Sequence[SectionEntry]:
    entries = read_section_entries(turn.rendered.section_entries)
    if not unsent:
        return entries
    from nexus_core.request.memories import list_sent_entries

    return list_sent_entries(entries, name, unsent)


def _read_sent(cache: ThreadCache, state: SessionState, window: ContextWindow) -> list[HistoryItem]:
    tip, cut = state.tip, state.cut
    assert tip is not None  # noqa: S101 - something was sent
    if cut is None or cut.compaction != tip.compaction:
        return read_thread(cache, tip, window.sizer, ReadLimits())
    limits = window.limits(tip.turn, tip)
    kept = apply_truncation(read_truncated_thread(cache, tip, window.sizer, cut, tip.turn), cut, limits)
    if kept is None:
        raise LedgerError(
            f"step {tip.id} leaves out what is not there", hint="`nexus ledger verify` says what is wrong"
        )
    return kept


def _request(runtime: SessionRuntime, state: SessionState, epoch: Prefix, model: str, label: str) -> Request:
    basis, turn = epoch.key, state.turn
    skills = basis.get("skills")
    request = Request(
        cwd=runtime.cwd,
        home=runtime.home,
        mode=get_mode(basis.get("mode"), OLD_MODE),
        role=str(basis.get("role") or "unified"),
        task=str(basis.get("task") or ""),
        skills=tuple(map(str, skills)) if isinstance(skills, list) else None,
        model=model,
        session=label,
        tools=epoch.caller_tools or (),
    )
    opening = turn.steps[0].payload if turn else None
    event = opening.event if isinstance(opening, InputPayload) else None
    return add_event(request, turn.input_message if turn else None, event or {})


def _static(runtime: SessionRuntime, window: ContextWindow, epoch: Prefix) -> tuple[Placement, ...]:
    offered = tuple(ToolOffer(tool, CALLER_SOURCE) for tool in epoch.tools)
    return window.prefix_sizer.place(epoch.digest, runtime.prefixes.read_sections(epoch.sections_digest), offered)
