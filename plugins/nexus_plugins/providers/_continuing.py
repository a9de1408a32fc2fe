"""The conversation with one message more: what to make of it.

Its beginning stays as it is, byte for byte, so that a provider finds it in its cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core import Message
from nexus_core.plugin import estimate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import AssembledContext


def continue_with(
    context: AssembledContext, instruction: str, api: str, model: str, keep: Iterable[str]
) -> dict[str, Any]:
    """The call that goes on from a conversation.

    Args:
        context: The call that would have been made next.
        instruction: What the user says last.
        api: For which API it is written.
        model: Whom to ask.
        keep: The arguments that a call for a summary has; others could make something else of the answer than a text.
    """
    tokens = (*context.message_tokens, estimate(instruction)) if context.message_tokens else ()
    asked = replace(context, progress=(*context.progress, Message("user", instruction)), message_tokens=tokens)
    call = asked.to(api, model=model)
    return {name: call[name] for name in keep if name in call}
