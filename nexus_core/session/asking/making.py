"""The call of a session, whether it is about to be made or was made before."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.call import Call
from nexus_core.assembly.placements import Pieces, place_all
from nexus_core.assembly.writing_later import LaterWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.assembly.epoch import Epoch
    from nexus_core.assembly.placements import Mention
    from nexus_core.assembly.sent import Sent
    from nexus_core.session.asking.window import Window
    from nexus_core.session.place import SessionRuntime
    from nexus_core.types.budget import Decision
    from nexus_core.types.prompt import Placement, Renderer
    from nexus_core.types.request import Request
    from nexus_core.types.settings import Settings


class Ingredients(NamedTuple):
    """What one call is made of; those that are not said here as in `Call`.

    Attributes:
        mentions: The sections of the current message.
        dropped: What of the history is left out.
        hidden: What of it is told in words.
        static: Says where system prompt and tools come from.
    """

    request: Request
    epoch: Epoch
    renderer: Renderer
    sent: list[Sent]
    turn: str
    parent_turn: str | None
    permissions: tuple[str, ...]
    mentions: Sequence[Mention]
    dropped: tuple[Decision, ...]
    hidden: tuple[Decision, ...]
    static: Callable[[], tuple[Placement, ...]]


def make_call(place: SessionRuntime, settings: Settings, window: Window, made_of: Ingredients) -> Call:
    """A call within a model's window, as settings want it."""
    epoch, sent, turn = made_of.epoch, made_of.sent, made_of.turn
    fixed = window.prefix_sizes.count_tokens(epoch)
    pieces = Pieces(made_of.static, sent, made_of.dropped, turn, made_of.mentions, window.scales.placed)
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
        allowance=replace(window.allowance, estimated=not window.scales.counter.exact),
        fixed=fixed,
        measured=window.measure_fixed(epoch),
        memory=sum(each.tokens for each in made_of.mentions if each.kind == "memory" and not each.refusal),
        decisions=(*made_of.dropped, *made_of.hidden),
        findings=(),
        weigh=window.scales.weigh,
        measure=window.scales.measure,
        placements=partial(place_all, pieces),
        writer=LaterWriter(window.model, partial(place.model, settings=settings), settings, place.dialects),
    )
