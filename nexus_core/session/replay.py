"""What was sent before a reply, put together again from steps and blobs alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError, TurnError, UsageError
from nexus_core.history.truncation import apply_truncation
from nexus_core.ledger.threads import deleted_step_error
from nexus_core.rendering import LABELLED_RENDERER, find_epoch_renderer
from nexus_core.request.build import CallPlan
from nexus_core.request.input import add_event
from nexus_core.request.placements import read_section_entries
from nexus_core.request.prefix import OLD_MODE, PrefixStore
from nexus_core.request.tools import CALLER_SOURCE, ToolOffer
from nexus_core.request.window import ContextWindow
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
from nexus_core.thread.state import SessionState
from nexus_core.thread.totals import MARKER_KINDS, get_parent_turn
from nexus_core.thread.turns import Turn
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from nexus_core.history.items import HistoryItem
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
    """The step of that name, or of which that is the beginning or the end.

    Raises:
        UsageError: There is none, or several.
        LedgerError: Its content was deleted.
    """
    step = find_named(ledger, name)
    if step is None:
        hint = "`nexus session show LABEL` names the steps of a session"
        raise UsageError(f"there is no step {name!r}", hint=hint)
    if getattr(step, "is_erased", False):
        raise deleted_step_error(step.id)
    return step


def find_sent_step(ledger: Ledger, name: str) -> Step:
    """The newest step when a call was made: the one before a reply; for any other step of a turn, that step.

    A turn is named by its first step, with which nothing was sent yet: its last reply is meant, or its newest step
    where there is none.

    Raises:
        UsageError: There is no such step.
        TurnError: It was made elsewhere, or nothing was sent yet.
    """
    step = find_reply_step(ledger, name)
    if step.kind == "input":
        steps = find_turn_steps(ledger, step)
        step = next((each for each in reversed(steps) if each.kind == "reply"), steps[-1])
    asked = step.data.get("asked") or step.parent  # a summary may have been made while the model was thinking
    tip = ledger.step(str(asked)) if step.kind in _ANSWERS and asked else step
    if tip is None or tip.turn != step.turn or tip.kind not in _SENT_FROM:
        raise _unsent(f"nothing was sent by Nexus for step {name}")
    return tip


def restore_tool_offers(ledger: Ledger, name: str) -> tuple[Tool, ...]:
    """The tools that a model was offered when it gave a reply.

    Args:
        ledger: Where it is kept.
        name: The step of the reply: that of a call is `call.key.step`.

    Raises:
        UsageError: There is no such step.
        TurnError: Nothing was sent by Nexus before it.
        LedgerError: What was sent is not there any more.
    """
    epoch = SessionState(None, find_sent_step(ledger, name), None).epoch
    if not epoch:
        raise _unsent(f"nothing was sent by Nexus for step {name}")
    return PrefixStore(lambda: ledger).read(epoch).tools


def replay_call(runtime: SessionRuntime, cache: ThreadCache, tip: Step, settings: Settings, label: str) -> CallPlan:
    """What was sent when a step was the newest.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: Its thread.
        tip: The step.
        settings: What counts, knows models and has options, where nothing of that was kept then.
        label: The session, where it was not kept in which one it was.

    Raises:
        LedgerError: Something that was sent is not there any more.
        TurnError: Nothing was sent.
    """
    turn = Turn(cache.turn(tip.id))
    state = SessionState(None, tip, turn)
    if not state.epoch or not turn.is_sealed:
        raise _unsent(f"nothing was sent by Nexus in turn {tip.turn}")
    epoch = runtime.prefixes.read(state.epoch)
    settings = runtime.prefixes.setup(state.setup) if state.setup else settings
    model = str(turn.sealed("model") or "")
    window = ContextWindow(runtime, settings, model, state, cache)
    sent = window.with_margin(_sent(cache, state, window), tip.turn)
    permissions, before = epoch.basis.get("permissions"), turn.steps[0].parent
    return CallPlan(
        request=_request(runtime, state, epoch, model, str(turn.sealed("session") or label)),
        prefix=epoch,
        renderer=find_epoch_renderer(
            runtime.host,
            str(epoch.basis.get("renderer") or LABELLED_RENDERER.name),
            str(epoch.basis.get("renderer_plugin") or ""),
        ),
        items=sent,
        turn=tip.turn,
        window=window,
        permissions=tuple(map(str, permissions)) if isinstance(permissions, list) else (),
        entries=read_section_entries(turn.sealed("told")),
        decisions=(
            *list_dropped_steps(cache, state.cut, tip, window.sizer.name),
            *list_masked_steps(cache, sent),
        ),
        place_prefix=partial(_static, runtime, window, epoch),
        parent_turn=get_parent_turn(cache, before),
        must_fit=False,
    )


def _unsent(what: str) -> TurnError:
    return TurnError(
        what,
        hint="it was made elsewhere, or nobody called next(); replies to what ask() and next() returned have it",
        command="it was made elsewhere; `nexus session show LABEL` shows what was said, "
        "`nexus assemble --session LABEL` what would be sent now",
    )


def _sent(cache: ThreadCache, state: SessionState, window: ContextWindow) -> list[HistoryItem]:
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
    basis, turn = epoch.basis, state.turn
    skills = basis.get("skills")
    request = Request(
        cwd=runtime.cwd,
        home=runtime.home,
        mode=get_mode(basis, OLD_MODE),
        role=str(basis.get("role") or "unified"),
        task=str(basis.get("task") or ""),
        skills=tuple(map(str, skills)) if isinstance(skills, list) else None,
        model=model,
        session=label,
        tools=epoch.given or (),
    )
    event = turn.steps[0].data.get("event") if turn else None
    return add_event(request, turn.said if turn else None, event if isinstance(event, dict) else {})


def _static(runtime: SessionRuntime, window: ContextWindow, epoch: Prefix) -> tuple[Placement, ...]:
    offered = tuple(ToolOffer(tool, CALLER_SOURCE) for tool in epoch.tools)
    return window.prefix_sizer.place(epoch.digest, runtime.prefixes.view(epoch.view), offered)
