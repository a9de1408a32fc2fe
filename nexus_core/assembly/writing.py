"""From an assembled context to the arguments of an SDK's call."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.breakpoints import Wish, caches, plan_breakpoints
from nexus_core.assembly.options import CONTENT, options_for
from nexus_core.dialects.cache_markers import LONG_LIFETIME, SHORT_LIFETIME, find_tool_lifetimes, limit_tool_markers
from nexus_core.dialects.gemini import override_options
from nexus_core.dialects.registry import BUILT_IN_DIALECTS, BUILT_IN_NAMES
from nexus_core.dialects.tools import complete_schemas
from nexus_core.errors import BudgetError
from nexus_core.history.repair.content import needs_cleaning
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import looks_valid_alone, looks_valid_together
from nexus_core.types.api import BEFORE_MESSAGES
from nexus_core.types.messages import Conversation, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.api import ApiRules, Dialect
    from nexus_core.types.assembled import AssembledContext, Breakpoint
    from nexus_core.types.budget import Model
    from nexus_core.types.settings import Settings

CACHE_KEY = "prompt_cache_key"
_AUTOMATIC = "cache_control"
"""The argument by which Anthropic marks the end of a call by itself."""
_KEYED = ("openai", "responses")


class CallWriter(NamedTuple):
    """Puts contexts into the shapes of APIs.

    Attributes:
        model: What is known of the model that the contexts are for.
        find_model: What is known of another one, by its name.
        enabled: Whether providers are told what to keep in their caches.
        ttl: How long Anthropic keeps system prompt and tools: `5m` or `1h`.
        dialects: The shapes that there are.
    """

    model: Model
    find_model: Callable[[str], Model]
    enabled: bool = True
    ttl: str = SHORT_LIFETIME
    dialects: DialectRegistry = BUILT_IN_DIALECTS

    def write(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool = True
    ) -> dict[str, Any]:
        """The arguments of a call, with nothing in them that the API would refuse.

        Raises:
            UnknownNameError: There is no such API.
            BudgetError: The API takes less than the model's own, for which the call was fitted, and less than this.
        """
        speaking = self.dialects.get(api)
        arguments = self._arguments(context, speaking, options, cache=cache)
        planned = self.plan(context, api, options, cache=cache)
        body = _overridden(_written(context, speaking, arguments, planned), api, options)
        limit = self.dialects.request_limit(self._model(context, arguments), api)
        if (
            limit < context.token_budget.byte_limit and limit < context.token_budget.bytes
        ):  # which is the most it may be
            _require_size(body, limit)
        return body

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool = True
    ) -> tuple[Breakpoint, ...]:
        """Which places of a call are marked for the provider's cache, which are not, and why; arguments as above."""
        speaking, given = self.dialects.get(api), options_for(api, context.model_config) | dict(options)
        automatic = given.get(_AUTOMATIC) if api == "anthropic" else None
        replaced = next((name for name in options if name in CONTENT and name != "model"), "")
        wish = Wish(self.enabled and cache, self.ttl, automatic, replaced)
        return plan_breakpoints(context, speaking.rules, self._model(context, given), wish)

    def _model(self, context: AssembledContext, options: Mapping[str, Any]) -> Model:
        name = str(options.get("model") or context.model)
        return self.model if name == context.model else self.find_model(name)

    def _arguments(
        self, context: AssembledContext, speaking: Dialect, options: Mapping[str, Any], *, cache: bool
    ) -> dict[str, Any]:
        """What a call is given besides what is said: what is added here, the settings, the caller; the last wins."""
        model = self._model(context, options)
        added: dict[str, Any] = {"model": context.model} if context.model or "model" in options else {}
        given = options_for(speaking.name, context.model_config) | dict(options)
        if speaking.name == "anthropic" and (room := _room(context, model, given.get("thinking"))):
            added["max_tokens"] = room
        if speaking.name in _KEYED and self.enabled and cache and caches(speaking.rules, model):
            added |= _cache_key(context)
        return added | given


def writer_for(
    model: Model, find_model: Callable[[str], Model], settings: Settings, dialects: DialectRegistry
) -> CallWriter:
    """A writer that goes by the settings."""
    enabled, ttl = settings.get("cache.enabled", True), settings.get("cache.ttl", SHORT_LIFETIME)
    return CallWriter(model, find_model, enabled=enabled is True, ttl=str(ttl), dialects=dialects)


def _written(
    context: AssembledContext, speaking: Dialect, arguments: Mapping[str, Any], planned: Iterable[Breakpoint]
) -> dict[str, Any]:
    """The call with the caller's own marks, as many as the API takes, and those that are planned."""
    rules = speaking.rules
    automatic = [LONG_LIFETIME] if speaking.name == "anthropic" and arguments.get(_AUTOMATIC) is not None else []
    tools = limit_tool_markers(complete_schemas(context.tools, rules), rules, rules.cache_marks - len(automatic))
    system = (Message("system", context.system_prompt),) if context.system_prompt else ()
    messages: tuple[Message, ...] = (*system, *context.messages)
    places: Sequence[int] = range(len(messages))
    if not _is_sound(context, rules):
        # What the API marks at the end takes up one of the marks as well, and shortens none.
        mended = apply_repair_rules(messages, rules, marked=[*find_tool_lifetimes(tools, rules), *automatic])
        messages, places = tuple(message for _, message in mended.messages), mended.places
    conversation = Conversation(messages=messages, tools=tools, api="", extra=arguments)
    return speaking.write_request(conversation, _marks(planned, places, len(system)))


def _is_sound(context: AssembledContext, rules: ApiRules) -> bool:
    """Whether there is surely nothing to mend, as nearly always; to look costs a fraction of mending."""
    messages, prompt = context.messages, context.system_prompt
    is_clean = not prompt or (bool(prompt.strip()) and not needs_cleaning(prompt, 0))
    is_plain = is_clean and all(looks_valid_alone(message, rules) for message in messages)
    return is_plain and looks_valid_together(messages, rules)


def _marks(planned: Iterable[Breakpoint], places: Sequence[int], first: int) -> dict[int, str]:
    """Where the marks stand among messages that were mended: behind all that was made of those before.

    Args:
        planned: Where they stand among the messages of the context.
        places: Of each mended message, the place it had.
        first: The place that the first message of the context had.
    """
    marks = {}
    for each in planned:
        if not each.skipped:
            before = (now for now, place in enumerate(places) if place <= each.after + first)
            marks[max(before, default=BEFORE_MESSAGES)] = each.lifetime
    return marks


def _overridden(body: dict[str, Any], api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The call with the caller's own arguments in place of what was written."""
    if api == "gemini":
        return override_options(body, options)
    if api in BUILT_IN_NAMES:
        return body if api == "neutral" else body | dict(options)
    # The dialect of a plugin has put them where they belong, unless something else was said in their place.
    return body | {name: value for name, value in options.items() if name in CONTENT and name in body}


def _require_size(body: Mapping[str, Any], limit: int) -> None:
    """Refuse a call of more bytes than its API takes."""
    # As the SDKs send it.
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_sent).encode
    sizes = {name: len(compact(value).encode("utf-8", "surrogatepass")) for name, value in body.items()}
    if (size := sum(sizes.values())) > limit:
        raise BudgetError(size, limit, sizes, unit="bytes")


def _sent(value: object) -> str:
    """What has no form of its own in JSON; bytes become base64, of which only the length matters here."""
    return "=" * (len(value) * 4 // 3 + 4) if isinstance(value, bytes) else str(value)


def _room(context: AssembledContext, model: Model, thinking: object) -> int:
    """What is kept free for the answer, no more than the model can say; Anthropic wants more than is for thoughts."""
    budget, room = context.token_budget, context.token_budget.reserve_response
    thoughts = thinking.get("budget_tokens") if isinstance(thinking, dict) else 0
    wanted = room + thoughts if type(thoughts) is int and thoughts >= room else room
    return min(wanted, model.max_output or budget.limit)


def _cache_key(context: AssembledContext) -> dict[str, str]:
    """What sends the calls of an epoch to where the last one was read; says nothing about the session."""
    named = [context.session_label, context.epoch]
    if not any(named):
        return {}
    return {CACHE_KEY: f"nexus-{blake2b(json.dumps(named).encode(), digest_size=16).hexdigest()}"}
