"""What one call of a model is put together from, and the call itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.asking_renderer import arrange
from nexus_core.assembly.sent import BYTES, TOKENS, TRIED, halve
from nexus_core.history.allowance import require_within_budget
from nexus_core.types.assembled import AssembledContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.assembly.epoch import Epoch
    from nexus_core.assembly.sent import Sent
    from nexus_core.types.assembled import ContextWriter
    from nexus_core.types.budget import Decision, TokenBudget
    from nexus_core.types.messages import JSON, Message, Tool
    from nexus_core.types.plugins import Finding
    from nexus_core.types.prompt import ArrangedMessages, Placement, Renderer
    from nexus_core.types.request import Request


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
        weigh: Says what a message takes.
        measure: Says how many bytes it has.
        placements: Says where everything comes from.
        writer: Puts it into the shapes of APIs.
        must_fit: Whether it is an error if it does not fit; what was sent once was sent.
    """

    request: Request
    epoch: Epoch
    renderer: Renderer
    sent: list[Sent]
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
    weigh: Callable[[Message], int]
    measure: Callable[[Message], int]
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
        turn_id="" if call.turn == TRIED else call.turn,
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
            *map(TOKENS, told.progress),
        ),
        writer=call.writer,
    )


def _spent(call: Call, told: _Weighed) -> TokenBudget:
    """What the call takes of its allowance."""
    memory = min(call.memory, told.event)
    history = sum(told.tokens) + sum(map(TOKENS, told.progress))
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
    progress: list[Sent]
    tokens: list[int]
    event: int
    margin: int
    bytes: int
    event_bytes: int


def _weighed(call: Call) -> _Weighed:
    history, current, progress = halve(call.sent, call.turn)
    since = sum(map(BYTES, progress))
    if call.renderer.arrange is None:
        past, tokens = tuple(each.message for each in history), list(map(TOKENS, history))
        event, margin, event_bytes = (current.tokens, current.margin, current.size) if current else (0, 0, 0)
        size = sum(map(BYTES, history)) + since
        return _Weighed(past, current.message if current else None, progress, tokens, event, margin, size, event_bytes)
    past, said = arrange_sent(call.request, call.renderer, call.sent, call.turn, call.epoch.tools)
    event, event_bytes = (call.weigh(said), call.measure(said)) if said else (0, 0)
    size = sum(map(call.measure, past)) + since
    return _Weighed(past, said, progress, list(map(call.weigh, past)), event, 0, size, event_bytes)


def arrange_sent(
    request: Request, renderer: Renderer, sent: Sequence[Sent], turn: str, tools: tuple[Tool, ...]
) -> ArrangedMessages:
    """History and input as a renderer that rearranges them sends them; arguments as in `Call`."""
    from nexus_core.types.prompt import ArrangeRequest, PastMessage

    history, current, _ = halve(sent, turn)
    past = tuple(PastMessage(each.message, each.created, each.is_input, each.said or each.message) for each in history)
    said = current.message if current else None
    return arrange(renderer, ArrangeRequest(request=request, history=past, current=said, tools=tools))
