"""Up to where a provider is told to keep a call in its cache.

The next call begins as this one does. So there are four places worth a mark: the end of what never changes in a session
(`static`), of the turns before (`history`), of the call before (`sent`) and of this one (`newest`). What one call puts
into the cache at `newest` the next one asks for at `sent`: however much a turn has added since, it is found, where a
provider that looks back from the end gives up (Anthropic after 20 blocks). `static` outlives a cut of the history,
`history` a turn that a fork asks in another way.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.cache_markers import (
    LONG_LIFETIME,
    SHORT_LIFETIME,
    find_part_lifetimes,
    find_tool_lifetimes,
    get_lifetime,
)
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.assembled import Breakpoint
from nexus_core.types.messages import Opaque, Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.types.api import ApiRules
    from nexus_core.types.assembled import AssembledContext, BreakpointPlace
    from nexus_core.types.budget import Model
    from nexus_core.types.messages import Message, Part

    Own = Sequence[tuple[int, str]]

WORTH: tuple[BreakpointPlace, ...] = ("newest", "static", "sent", "history")
"""In this order marks are given, where there are not enough for all."""

STATIC = -1
"""Behind system prompt and tools, where places of messages are told."""

_ANYWHERE = "anthropic"
"""Takes marks on tools and on what the model has said, and is told how long to keep what they end. Others take them on
what goes in."""


class Wish(NamedTuple):
    """What is wanted of a provider's cache.

    Attributes:
        enabled: Whether anything is marked at all.
        ttl: How long the static part is kept, where the API lets one choose.
        automatic: The argument by which the caller lets the API itself mark the end of the call; None without it.
        replaced: The argument by which the caller puts something else into the call; "" without any.
    """

    enabled: bool = True
    ttl: str = SHORT_LIFETIME
    automatic: object = None
    replaced: str = ""


_USUAL = Wish()


def plan_breakpoints(
    context: AssembledContext, rules: ApiRules, model: Model, wish: Wish = _USUAL
) -> tuple[Breakpoint, ...]:
    """Every place of a call that could be marked, in its order; no more are marked than model and API allow.

    Args:
        context: The call.
        rules: The API it goes to.
        model: Who is asked. Nothing shorter is marked than what it caches.
        wish: What the settings and the caller want.
    """
    spots = _spots(context, rules)
    if refusal := _refusal(rules, model, wish):
        return tuple(spot._replace(skipped=refusal) for spot in spots)
    own = _own_marks(context, rules, wish.automatic)
    free = min(model.cache_breakpoints, rules.cache_marks or model.cache_breakpoints) - len(own)
    taken: dict[int, BreakpointPlace] = {}
    skipped: dict[BreakpointPlace, str] = {}
    for spot in sorted(spots, key=lambda each: WORTH.index(each.place)):
        skipped[spot.place] = spot.skipped or _why_skipped(spot, model, own, taken, free)
        if not skipped[spot.place]:
            taken[spot.after] = spot.place
    return tuple(
        spot._replace(
            skipped=skipped[spot.place],
            lifetime="" if skipped[spot.place] or rules.name != _ANYWHERE else _lifetime(spot, own, wish.ttl),
        )
        for spot in spots
    )


def caches(rules: ApiRules, model: Model) -> bool:
    """Whether a model is known to be of this API, and to keep what it has read."""
    return model.cache_minimum > 0 and model.api in ("", rules.name, *rules.serves)


def _refusal(rules: ApiRules, model: Model, wish: Wish) -> str:
    """Why nothing at all is marked."""
    if not wish.enabled:
        return "it is switched off"
    if wish.replaced:
        return f"the caller gives `{wish.replaced}`"
    if not rules.cache_mark:
        return f"{rules.name} takes no marks"
    if not caches(rules, model):
        return f"{model.name} is not known to keep anything for {rules.name}"
    return "" if model.cache_breakpoints else f"{model.name} finds out by itself what to keep"


def _why_skipped(spot: Breakpoint, model: Model, own: Own, taken: Mapping[int, BreakpointPlace], free: int) -> str:
    if spot.tokens < model.cache_minimum:
        return f"{model.name} keeps nothing shorter than {model.cache_minimum} tokens"
    if any(place == spot.after for place, _ in own):
        return "the caller has marked it"
    if spot.after in taken:
        return f"it is the same place as `{taken[spot.after]}`"
    return "" if len(taken) < free else f"no mark is left: the caller has placed {len(own)}"


def _lifetime(spot: Breakpoint, own: Own, ttl: str) -> str:
    """As wanted, unless the caller's own marks forbid it: the longer must come first."""
    if any(place <= spot.after and each == SHORT_LIFETIME for place, each in own):
        return SHORT_LIFETIME
    is_outlived = any(place > spot.after and each == LONG_LIFETIME for place, each in own)
    return LONG_LIFETIME if is_outlived or (spot.place == "static" and ttl == LONG_LIFETIME) else SHORT_LIFETIME


# ---- where ----------------------------------------------------------------------------------------------------------


def _spots(context: AssembledContext, rules: ApiRules) -> list[Breakpoint]:
    messages = context.messages
    wanted: list[tuple[BreakpointPlace, int]] = [
        ("history", len(context.history) - 1),
        ("sent", _end_of_call_before(messages)),
        ("newest", len(messages) - 1),
    ]
    sums = _sums(context)
    spots = []
    if context.system_prompt.strip() or context.tools:
        spots.append(Breakpoint("static", STATIC, sums[0], skipped=_why_not_static(context, rules)))
    for place, end in sorted((each for each in wanted if each[1] >= 0), key=lambda each: each[1]):
        after = next((index for index in range(end, -1, -1) if _takes_mark(messages[index], rules)), None)
        reason = "nothing up to there takes a mark" if after is None else ""
        after = end if after is None else after
        spots.append(Breakpoint(place, after, sums[after + 1], skipped=reason))
    return spots


def _end_of_call_before(messages: Sequence[Message]) -> int:
    """The last message that was sent when the model last answered; -1 if it never did."""
    place = len(messages) - 1
    while place >= 0 and messages[place].role != "assistant":
        place -= 1
    while place >= 0 and messages[place].role == "assistant":
        place -= 1
    return place


def _why_not_static(context: AssembledContext, rules: ApiRules) -> str:
    return "" if context.system_prompt.strip() or rules.name == _ANYWHERE else f"{rules.name} takes no marks on tools"


def _takes_mark(message: Message, rules: ApiRules) -> bool:
    if message.role == "assistant" and rules.name != _ANYWHERE:
        return False
    return any(_is_block(part, rules) for part in message.parts)


def _is_block(part: Part, rules: ApiRules) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip())
    return part.api == rules.name if isinstance(part, Opaque) else not isinstance(part, Reasoning)


def _own_marks(context: AssembledContext, rules: ApiRules, automatic: object) -> Own:
    """The caller's own marks: the message each stands in, and how long it lives."""
    before = STATIC - 1 if context.system_prompt.strip() else STATIC
    own = [(before, each) for each in find_tool_lifetimes(context.tools, rules)]
    for place, message in enumerate(context.messages):
        own += [(place, each) for each in find_part_lifetimes(message.parts, message.api, rules)]
    return own if automatic is None else [*own, (len(context.messages) - 1, get_lifetime(automatic))]


def _sums(context: AssembledContext) -> list[int]:
    """What stands before the first message, and before and with each of them."""
    budget, sizes = context.token_budget, context.message_tokens
    static = budget.used.get("system", 0) + budget.used.get("tools", 0)
    if len(sizes) != len(context.messages):  # made by somebody who did not count
        counter = SimpleTokenCounter()
        sizes = tuple(counter.count_messages([message]) for message in context.messages)
    scale = 1.0 if budget.calibration is None else budget.calibration.estimate
    return [round(tokens * scale) for tokens in accumulate(sizes, initial=static)]
