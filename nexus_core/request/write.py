"""A call in the format of an API: options, cache breakpoints, and repairs that the API requires."""

from __future__ import annotations

import json
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.cache_markers import (
    LONG_LIFETIME,
    SHORT_LIFETIME,
    find_part_lifetimes,
    find_tool_lifetimes,
    get_lifetime,
    limit_tool_markers,
)
from nexus_core.dialects.gemini import override_options
from nexus_core.dialects.registry import BUILT_IN_DIALECTS, BUILT_IN_NAMES
from nexus_core.dialects.tools import complete_schemas
from nexus_core.errors import BudgetError
from nexus_core.history.repair.content import needs_cleaning
from nexus_core.history.repair.rules import apply_repair_rules
from nexus_core.history.repair.validity import looks_valid_alone, looks_valid_together
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.api import BEFORE_MESSAGES
from nexus_core.types.assembled import Breakpoint
from nexus_core.types.base import blake2b
from nexus_core.types.messages import Conversation, Message, Opaque, Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.api import ApiRules, Dialect
    from nexus_core.types.assembled import AssembledContext, BreakpointPlace
    from nexus_core.types.budget import Model
    from nexus_core.types.messages import Part
    from nexus_core.types.settings import Settings

    CallerMarkers = Sequence[tuple[int, str]]

CONTENT_FIELDS = frozenset(
    {
        *("model", "messages", "system", "tools", "functions"),
        *("input", "instructions", "conversation", "previous_response_id", "prompt"),
        *("contents", "system_instruction", "cached_content"),
    }
)
"""Content of a call. The caller may override it; settings may not."""
_CLIENT_OPTIONS = {"extra_body", "extra_headers", "extra_query", "timeout", "stream"}
_OPENAI_OPTIONS = {"metadata", "moderation", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options"} | {
    *("prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream_options", "temperature"),
    *("tool_choice", "top_logprobs", "top_p", "user"),
}
OPTION_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "openai": frozenset(_CLIENT_OPTIONS | _OPENAI_OPTIONS)
        | {
            *("audio", "frequency_penalty", "function_call", "logit_bias", "logprobs", "max_completion_tokens"),
            *("max_tokens", "modalities", "n", "prediction", "presence_penalty", "reasoning_effort"),
            *("response_format", "seed", "stop", "verbosity", "web_search_options"),
        },
        "responses": frozenset(_CLIENT_OPTIONS | _OPENAI_OPTIONS)
        | {
            *("background", "context_management", "include", "max_output_tokens", "max_tool_calls", "reasoning"),
            *("text", "truncation"),
        },
        "anthropic": frozenset(_CLIENT_OPTIONS)
        | {
            *("betas", "cache_control", "container", "context_management", "inference_geo", "max_tokens"),
            *("mcp_servers", "metadata", "output_config", "service_tier", "speed", "stop_sequences"),
            *("temperature", "thinking", "tool_choice", "top_k", "top_p"),
        },
        "gemini": frozenset(
            {
                *("audio_timestamp", "automatic_function_calling", "candidate_count", "config", "frequency_penalty"),
                *("http_options", "image_config", "labels", "logprobs", "max_output_tokens", "media_resolution"),
                *("model_selection_config", "presence_penalty", "response_json_schema", "response_logprobs"),
                *("response_mime_type", "response_modalities", "response_schema", "routing_config"),
                *("safety_settings", "seed", "speech_config", "stop_sequences", "temperature", "thinking_config"),
                *("tool_config", "top_k", "top_p"),
            }
        ),
    }
)
"""Options of each API. They need not be complete: an option is dropped only if another API has it and this one not."""
CACHE_KEY_FIELD = "prompt_cache_key"
_CACHE_KEY_APIS = ("openai", "responses")
_AUTOMATIC_FIELD = "cache_control"
"""The argument by which Anthropic's API marks the end of a call itself."""
BREAKPOINT_PRIORITY: tuple[BreakpointPlace, ...] = ("newest", "static", "sent", "history")
"""The order in which breakpoints get cache markers if there are not enough for all."""
PREFIX_BREAKPOINT = -1
"""In place of the index of a message: the breakpoint after system prompt and tools."""
_FULL_MARKER_API = "anthropic"
"""The only API with markers on tools and replies, and with lifetimes. Others accept markers on system prompt and user
messages."""


def build_writer(
    model: Model, find_model: Callable[[str], Model], settings: Settings, dialects: DialectRegistry
) -> CallWriter:
    """Return a writer with the cache options of the settings."""
    enabled, ttl = settings.get("cache.enabled", True), settings.get("cache.ttl", SHORT_LIFETIME)
    return CallWriter(model, find_model, enabled=enabled is True, ttl=str(ttl), dialects=dialects)


class CallWriter(NamedTuple):
    """Writes calls in the format of an API.

    Attributes:
        model: The model that the calls were assembled for.
        find_model: Returns another model by its name.
        enabled: False to set no cache markers.
        ttl: Lifetime of system prompt and tools in Anthropic's cache: `5m` or `1h`.
        dialects: The API dialects.
    """

    model: Model
    find_model: Callable[[str], Model]
    enabled: bool = True
    ttl: str = SHORT_LIFETIME
    dialects: DialectRegistry = BUILT_IN_DIALECTS

    def write(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool = True
    ) -> dict[str, Any]:
        """Return the arguments of the SDK's call, repaired so that the API accepts them.

        Raises:
            UnknownNameError: There is no such API.
            BudgetError: The API accepts smaller requests than the one that the call was fitted for, and than this.
        """
        dialect = self.dialects.get(api)
        arguments = self._build_arguments(context, dialect, options, cache=cache)
        breakpoints = self.plan(context, api, options, cache=cache)
        body = _override_content(_write_call(context, dialect, arguments, breakpoints), api, options)
        limit, budget = self.dialects.request_limit(self._find_model(context, arguments), api), context.token_budget
        # `budget.bytes` is an upper bound, so that most calls need not be measured.
        if limit < budget.byte_limit and limit < budget.bytes:
            _require_size(body, limit)
        return body

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool = True
    ) -> tuple[Breakpoint, ...]:
        """Return the breakpoints as in `plan_breakpoints`; arguments as above."""
        dialect, arguments = self.dialects.get(api), select_options(api, context.model_config) | dict(options)
        automatic = arguments.get(_AUTOMATIC_FIELD) if api == "anthropic" else None
        replaced = next((name for name in options if name in CONTENT_FIELDS and name != "model"), "")
        cache_options = CacheOptions(self.enabled and cache, self.ttl, automatic, replaced)
        return plan_breakpoints(context, dialect.rules, self._find_model(context, arguments), cache_options)

    def _find_model(self, context: AssembledContext, options: Mapping[str, Any]) -> Model:
        name = str(options.get("model") or context.model)
        return self.model if name == context.model else self.find_model(name)

    def _build_arguments(
        self, context: AssembledContext, dialect: Dialect, options: Mapping[str, Any], *, cache: bool
    ) -> dict[str, Any]:
        """Return the arguments of a call besides its content.

        Settings override defaults, and the caller overrides settings.
        """
        model = self._find_model(context, options)
        defaults: dict[str, Any] = {"model": context.model} if context.model or "model" in options else {}
        chosen = select_options(dialect.name, context.model_config) | dict(options)
        if dialect.name == "anthropic" and (limit := _compute_max_tokens(context, model, chosen.get("thinking"))):
            defaults["max_tokens"] = limit
        if dialect.name in _CACHE_KEY_APIS and self.enabled and cache and supports_caching(dialect.rules, model):
            defaults |= _build_cache_key(context)
        return defaults | chosen


def select_options(api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for an API: those it has, and those that no listed API has."""
    if api not in OPTION_FIELDS:
        return {name: value for name, value in options.items() if name not in CONTENT_FIELDS}
    others = frozenset().union(*(names for name, names in OPTION_FIELDS.items() if name != api)) - OPTION_FIELDS[api]
    return {name: value for name, value in options.items() if name not in CONTENT_FIELDS and name not in others}


def _compute_max_tokens(context: AssembledContext, model: Model, thinking: object) -> int:
    """Return `max_tokens` for Anthropic: the reserve for the reply.

    It must exceed the thinking budget, and not the model's maximum.
    """
    budget, reserve = context.token_budget, context.token_budget.reserve_response
    thinking_tokens = thinking.get("budget_tokens") if isinstance(thinking, dict) else 0
    wanted = reserve + thinking_tokens if type(thinking_tokens) is int and thinking_tokens >= reserve else reserve
    return min(wanted, model.max_output or budget.limit)


def _build_cache_key(context: AssembledContext) -> dict[str, str]:
    """Return the key that routes calls with one prefix to one cache.

    It is a hash, so that it reveals no session name.
    """
    identity = [context.session_label, context.epoch]
    if not any(identity):
        return {}
    return {CACHE_KEY_FIELD: f"nexus-{blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()}"}


def supports_caching(rules: ApiRules, model: Model) -> bool:
    """True if a model belongs to an API and is known to cache."""
    return model.cache_minimum > 0 and model.api in ("", rules.name, *rules.serves)


def _write_call(
    context: AssembledContext, dialect: Dialect, arguments: Mapping[str, Any], breakpoints: Iterable[Breakpoint]
) -> dict[str, Any]:
    """Return the call with the caller's markers and the planned ones."""
    rules = dialect.rules
    automatic = [LONG_LIFETIME] if dialect.name == "anthropic" and arguments.get(_AUTOMATIC_FIELD) is not None else []
    tools = limit_tool_markers(complete_schemas(context.tools, rules), rules, rules.cache_marks - len(automatic))
    system = (Message("system", context.system_prompt),) if context.system_prompt else ()
    messages: tuple[Message, ...] = (*system, *context.messages)
    old_indexes: Sequence[int] = range(len(messages))
    if not _looks_valid(context, rules):
        # The marker that the API sets itself counts against the limit too.
        repaired = apply_repair_rules(messages, rules, marked=[*find_tool_lifetimes(tools, rules), *automatic])
        messages, old_indexes = tuple(message for _, message in repaired.messages), repaired.places
    conversation = Conversation(messages=messages, tools=tools, api="", extra=arguments)
    return dialect.write_request(conversation, _place_markers(breakpoints, old_indexes, len(system)))


def _looks_valid(context: AssembledContext, rules: ApiRules) -> bool:
    """True if nothing needs repair, found at a fraction of a repair's cost."""
    messages, prompt = context.messages, context.system_prompt
    is_clean = not prompt or (bool(prompt.strip()) and not needs_cleaning(prompt, 0))
    is_plain = is_clean and all(looks_valid_alone(message, rules) for message in messages)
    return is_plain and looks_valid_together(messages, rules)


def _place_markers(breakpoints: Iterable[Breakpoint], old_indexes: Sequence[int], first: int) -> dict[int, str]:
    """Return the lifetimes of markers by index of the repaired message.

    Args:
        breakpoints: The breakpoints, by indexes of the context's messages.
        old_indexes: For each repaired message, its index before the repair.
        first: The index of the context's first message before the repair.
    """
    lifetimes = {}
    for each in breakpoints:
        if not each.skipped:
            before = (index for index, old_index in enumerate(old_indexes) if old_index <= each.after + first)
            lifetimes[max(before, default=BEFORE_MESSAGES)] = each.lifetime
    return lifetimes


def _override_content(body: dict[str, Any], api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call with the caller's arguments in place of its content."""
    if api == "gemini":
        return override_options(body, options)
    if api in BUILT_IN_NAMES:
        return body if api == "neutral" else body | dict(options)
    # The dialect of a plugin has already placed the options; only replaced content is left.
    return body | {name: value for name, value in options.items() if name in CONTENT_FIELDS and name in body}


def _require_size(body: Mapping[str, Any], limit: int) -> None:
    """Raise a BudgetError for a request body larger than its API accepts."""
    # The SDKs send compact JSON.
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_stand_in_for_json).encode
    sizes = {name: len(compact(value).encode("utf-8", "surrogatepass")) for name, value in body.items()}
    if (size := sum(sizes.values())) > limit:
        raise BudgetError(size, limit, sizes, unit="bytes")


def _stand_in_for_json(value: object) -> str:
    """Return a text as long as the JSON form of bytes or another value."""
    return "=" * (len(value) * 4 // 3 + 4) if isinstance(value, bytes) else str(value)


# ---- cache breakpoints ----------------------------------------------------------------------------------------------


class CacheOptions(NamedTuple):
    """Cache options of the settings and the caller.

    Attributes:
        enabled: False to set no markers.
        ttl: Lifetime of the prefix, if the API has lifetimes.
        automatic: The caller's argument by which the API marks the end of the call itself; None without it.
        replaced: The caller's argument that replaces content of the call; "" without one.
    """

    enabled: bool = True
    ttl: str = SHORT_LIFETIME
    automatic: object = None
    replaced: str = ""


_DEFAULT_CACHE_OPTIONS = CacheOptions()


def plan_breakpoints(
    context: AssembledContext, rules: ApiRules, model: Model, cache_options: CacheOptions = _DEFAULT_CACHE_OPTIONS
) -> tuple[Breakpoint, ...]:
    """Return every cache breakpoint of a call, with the reason if unmarked.

    Args:
        context: The call.
        rules: The rules of the API, which limit the number of markers.
        model: The model, which limits the number of markers and the smallest prefix.
        cache_options: Cache options of the settings and the caller.
    """
    spots = _find_spots(context, rules)
    if refusal := _find_refusal(rules, model, cache_options):
        return tuple(spot._replace(skipped=refusal) for spot in spots)
    caller_markers = _find_caller_markers(context, rules, cache_options.automatic)
    free = min(model.cache_breakpoints, rules.cache_marks or model.cache_breakpoints) - len(caller_markers)
    marked: dict[int, BreakpointPlace] = {}
    skipped: dict[BreakpointPlace, str] = {}
    for spot in sorted(spots, key=lambda each: BREAKPOINT_PRIORITY.index(each.place)):
        skipped[spot.place] = spot.skipped or _find_skip_reason(spot, model, caller_markers, marked, free)
        if not skipped[spot.place]:
            marked[spot.after] = spot.place
    has_lifetimes = rules.name == _FULL_MARKER_API
    return tuple(
        spot._replace(skipped=skipped[spot.place])
        if skipped[spot.place] or not has_lifetimes
        else spot._replace(skipped="", lifetime=_choose_lifetime(spot, caller_markers, cache_options.ttl))
        for spot in spots
    )


def _find_spots(context: AssembledContext, rules: ApiRules) -> list[Breakpoint]:
    messages = context.messages
    wanted: list[tuple[BreakpointPlace, int]] = [
        ("history", len(context.history) - 1),
        ("sent", _find_last_call_end(messages)),
        ("newest", len(messages) - 1),
    ]
    sums = _sum_tokens(context)
    spots = []
    if context.system_prompt.strip() or context.tools:
        spots.append(Breakpoint("static", PREFIX_BREAKPOINT, sums[0], skipped=_find_static_skip_reason(context, rules)))
    for place, end in sorted((each for each in wanted if each[1] >= 0), key=lambda each: each[1]):
        after = next((index for index in range(end, -1, -1) if _accepts_marker(messages[index], rules)), None)
        reason = "nothing up to there takes a mark" if after is None else ""
        after = end if after is None else after
        spots.append(Breakpoint(place, after, sums[after + 1], skipped=reason))
    return spots


def _sum_tokens(context: AssembledContext) -> list[int]:
    """Return the running sums of tokens: of the prefix, then up to each message."""
    budget, sizes = context.token_budget, context.message_tokens
    static = budget.used.get("system", 0) + budget.used.get("tools", 0)
    if len(sizes) != len(context.messages):  # the context was not assembled here
        counter = SimpleTokenCounter()
        sizes = tuple(counter.count_messages([message]) for message in context.messages)
    scale = 1.0 if budget.calibration is None else budget.calibration.estimate
    return [round(tokens * scale) for tokens in accumulate(sizes, initial=static)]


def _find_last_call_end(messages: Sequence[Message]) -> int:
    """Return the index of the last message before the newest reply, or -1."""
    index = len(messages) - 1
    while index >= 0 and messages[index].role != "assistant":
        index -= 1
    while index >= 0 and messages[index].role == "assistant":
        index -= 1
    return index


def _find_static_skip_reason(context: AssembledContext, rules: ApiRules) -> str:
    if context.system_prompt.strip() or rules.name == _FULL_MARKER_API:
        return ""
    return f"{rules.name} takes no marks on tools"


def _accepts_marker(message: Message, rules: ApiRules) -> bool:
    if message.role == "assistant" and rules.name != _FULL_MARKER_API:
        return False
    return any(_is_block(part, rules) for part in message.parts)


def _is_block(part: Part, rules: ApiRules) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip())
    return part.api == rules.name if isinstance(part, Opaque) else not isinstance(part, Reasoning)


def _find_refusal(rules: ApiRules, model: Model, cache_options: CacheOptions) -> str:
    """Return why no breakpoint gets a marker; "" if some may."""
    if not cache_options.enabled:
        return "it is switched off"
    if cache_options.replaced:
        return f"the caller gives `{cache_options.replaced}`"
    if not rules.cache_mark:
        return f"{rules.name} takes no marks"
    if not supports_caching(rules, model):
        return f"{model.name} is not known to keep anything for {rules.name}"
    return "" if model.cache_breakpoints else f"{model.name} finds out by itself what to keep"


def _find_caller_markers(context: AssembledContext, rules: ApiRules, automatic: object) -> CallerMarkers:
    """Return the caller's own markers: index of the message, and lifetime."""
    before = PREFIX_BREAKPOINT - 1 if context.system_prompt.strip() else PREFIX_BREAKPOINT
    markers = [(before, each) for each in find_tool_lifetimes(context.tools, rules)]
    for index, message in enumerate(context.messages):
        markers += [(index, each) for each in find_part_lifetimes(message.parts, message.api, rules)]
    return markers if automatic is None else [*markers, (len(context.messages) - 1, get_lifetime(automatic))]


def _find_skip_reason(
    spot: Breakpoint, model: Model, caller_markers: CallerMarkers, marked: Mapping[int, BreakpointPlace], free: int
) -> str:
    if spot.tokens < model.cache_minimum:
        return f"{model.name} keeps nothing shorter than {model.cache_minimum} tokens"
    if any(place == spot.after for place, _ in caller_markers):
        return "the caller has marked it"
    if spot.after in marked:
        return f"it is the same place as `{marked[spot.after]}`"
    return "" if len(marked) < free else f"no mark is left: the caller has placed {len(caller_markers)}"


def _choose_lifetime(spot: Breakpoint, caller_markers: CallerMarkers, ttl: str) -> str:
    """Return the lifetime of a marker.

    Longer lifetimes must come first, so the caller's markers may change it.
    """
    if any(index <= spot.after and lifetime == SHORT_LIFETIME for index, lifetime in caller_markers):
        return SHORT_LIFETIME
    is_outlived = any(index > spot.after and lifetime == LONG_LIFETIME for index, lifetime in caller_markers)
    return LONG_LIFETIME if is_outlived or (spot.place == "static" and ttl == LONG_LIFETIME) else SHORT_LIFETIME
