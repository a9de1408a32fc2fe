"""Report on an assembled request: text, request body of an API, or JSON."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.neutral import encode_value
from nexus_core.text.safety import visible_line
from nexus_core.tokens.counters import get_model
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.context import CliContext
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.nexus import Nexus
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.mcp import ActiveSetting
    from nexus_core.types.messages import Message, Tool
    from nexus_core.types.prompt import Placement
    from nexus_core.types.settings import Settings


def require_known_dialect(cli: CliContext, name: str) -> None:
    """Raise if an API is unknown.

    Raises:
        UnknownNameError: No dialect has that name.
    """
    if name:
        cli.dialects().get(name)


def print_request(
    cli: CliContext,
    nexus: Nexus,
    settings: Settings,
    context: AssembledContext,
    dialect: str,
    *,
    json: bool,
    active: Iterable[ActiveSetting] | None = None,
) -> None:
    """Print a request, with its findings and sizes on standard error.

    Args:
        cli: Where to print.
        nexus: The Nexus that assembled it.
        settings: The settings, for models.
        context: The request.
        dialect: The API whose request body is printed; "" for text.
        json: True to print everything as JSON.
        active: The active settings of projects; `--json` lists those that are off.
    """
    context = replace(context, findings=(*context.findings, *_list_request_warnings(nexus, settings, context, dialect)))
    for finding in context.findings:
        cli.console.warning(visible_line(str(finding)))
    if json:
        cli.console.json(request_to_json(context, nexus.dialects, dialect) | _describe_skipped(active))
        return
    if dialect:
        cli.console.json(context.to(dialect))
    else:
        _print_request_text(cli, context)
    _print_budget(cli, nexus, settings, context)


def _list_request_warnings(
    nexus: Nexus, settings: Settings, context: AssembledContext, dialect: str
) -> tuple[Finding, ...]:
    if not dialect:
        return ()

    return tuple(find_api_warnings(nexus, settings, context, dialect))


def _describe_skipped(active: Iterable[ActiveSetting] | None) -> dict[str, object]:
    if active is None:
        return {}
    from nexus_core.trust.report import list_inactive

    return {"skipped": list_inactive(active)}


def _print_request_text(cli: CliContext, context: AssembledContext) -> None:
    used, first = context.token_budget.used, True
    for heading, lines in _list_blocks(context, used.get("system", 0), used.get("tools", 0)):
        if not first:
            cli.console.text("")
        first = False
        cli.console.table([(heading,)], styles=["bold"])
        if isinstance(lines, list):
            cli.console.text("\n".join(f"  {line}".rstrip() for line in lines))
        else:
            from nexus_core.cli.step_view import format_message, print_step_lines

            print_step_lines(cli.console, format_message(lines, full=True, secrets=True))


def _list_blocks(context: AssembledContext, system: int, tools: int) -> Iterator[tuple[str, list[str] | Message]]:
    if context.system_prompt:
        yield f"system · {system:,} tokens", context.system_prompt.rstrip("\n").split("\n")
    if context.tools:
        yield f"tools · {tools:,} tokens", [_format_tool_signature(tool) for tool in context.tools]
    sizes = context.message_tokens or (0,) * len(context.messages)
    for message, tokens in zip(context.messages, sizes, strict=True):
        yield f"{message.role} · {tokens:,} tokens", message


def _format_tool_signature(tool: Tool) -> str:
    properties = tool.parameters.get("properties")
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    about = " ".join(tool.description.split())
    return visible_line(f"{tool.name}({names})" + (f": {about}" if about else ""))


def _print_budget(cli: CliContext, nexus: Nexus, settings: Settings, context: AssembledContext) -> None:
    from nexus_core.cli.model_window import contains_only_text, describe_bytes, open_model_window

    budget = context.token_budget
    measure = open_model_window(nexus, settings, context.model)
    used = {**budget.used, "event": budget.used.get("event", 0) - budget.margin, "margin": budget.margin}
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in used.items() if tokens)
    sentence = measure.describe(budget.total, exact=contains_only_text(context.messages))
    cli.console.message(f"{sentence}{f': {parts}' if parts else ''}")
    if (budget.low, budget.high) != (budget.total, budget.total):
        cli.console.message(_describe_provider_count(budget))
    kept_free = f"{budget.reserve_response:,} tokens are kept free for the answer"
    kept_free += f" and {budget.reserve_tools:,} for tool results" if budget.reserve_tools else ""
    cli.console.message(f"{kept_free}, {budget.remaining:,} are left.")
    if large := describe_bytes(budget):
        cli.console.message(f"{large}.")
    for each in list_left_out(context):
        cli.console.message(visible_line(f"left out: {each}"))


def _describe_provider_count(budget: TokenBudget) -> str:
    """Return a sentence about the provider's count, with the difference of its upper bound from ours."""
    return (
        f"The provider's own count would be {budget.low:,} to {budget.high:,}; "
        f"the upper one ({budget.correction:+,}) decides what fits."
    )


REQUEST_SCHEMA_VERSION = 1


def request_to_json(context: AssembledContext, dialects: DialectRegistry, dialect: str = "") -> dict[str, Any]:
    """Return a request with all that is known of it, messages and tools in Nexus's own form.

    Args:
        context: The request.
        dialects: The dialects.
        dialect: The API whose request body is included; "" for none.
    """
    api = dialect or (context.provider if dialects.rules(context.provider) else "")
    facts = {
        "schema": REQUEST_SCHEMA_VERSION,
        "directory": str(context.workspace_path),
        "session": context.session_label,
        "parent_turn": context.parent_turn_id,
        "role": context.role,
        "renderer": context.renderer,
        "model": context.model,
        "provider": context.provider,
        "options": dict(context.model_config),
        "toolset": context.toolset_name,
        "permissions": list(context.permissions_granted),
        "source_event": context.source_event_id,
        "epoch": context.epoch,
        "context": dict(context.system_context),
        "system_prompt": context.system_prompt,
        "tools": [encode_value(tool) for tool in context.tools],
        "history": [encode_value(message) for message in context.history],
        "current_message": _message_to_json(context.current_message),
        "progress": [encode_value(message) for message in context.progress],
        "message_tokens": list(context.message_tokens),
        "budget": _budget_to_json(context.token_budget),
        "placements": [_placement_to_json(placement) for placement in context.placements],
        "decisions": [asdict(decision) for decision in context.decisions],
        "findings": [_finding_to_json(finding) for finding in context.findings],
        "cache": {"api": api, "breakpoints": [each._asdict() for each in context.breakpoints(api)] if api else []},
    }
    return facts | ({"request": context.to(dialect)} if dialect else {})


def _placement_to_json(placement: Placement) -> dict[str, Any]:
    facts = asdict(placement)
    if not placement.reason:  # only memories have one
        del facts["reason"]
    return facts


def _message_to_json(message: Message | None) -> dict[str, Any] | None:
    return None if message is None else encode_value(message)


def _budget_to_json(budget: TokenBudget) -> dict[str, Any]:
    names = ("limit", "reserve_response", "reserve_tools", "available", "total", "low", "estimate", "high", "remaining")
    calibration = None if budget.calibration is None else budget.calibration._asdict()
    return {
        **{name: getattr(budget, name) for name in names},
        "used": dict(budget.used),
        "margin": budget.margin,
        "correction": budget.correction,
        "bytes": budget.bytes,
        "byte_limit": budget.byte_limit,
        "estimated": budget.estimated,
        "calibration": calibration,
    }


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "message": finding.message}


class LeftOutPiece(NamedTuple):
    """Something that a model does not read, or not all of it.

    Attributes:
        what: What it is.
        tokens: Its tokens; None if they were not counted.
        rule: What decided it.
    """

    what: str
    tokens: int | None
    rule: str

    def __str__(self) -> str:
        size = "" if self.tokens is None else f" ({self.tokens:,} tokens)"
        return f"{self.what}{size}, by {self.rule}"


def list_left_out(context: AssembledContext) -> Iterator[LeftOutPiece]:
    """Everything that is left out of a request, in its order."""
    for placement in context.placements:
        if placement.decision.action != "kept":
            yield LeftOutPiece(_describe_left_out(placement), placement.decision.tokens_before, placement.decision.rule)


def _describe_left_out(placement: Placement) -> str:
    decision = placement.decision
    if placement.kind == "tool":
        return f"tool {placement.name}"
    if placement.zone != "history":
        return f"{placement.kind} {placement.title!r}"
    if decision.action == "masked":
        return f"pictures or documents in step {placement.name}"
    if decision.action == "shortened":
        return f"most of a result in step {placement.name}"
    return (
        f"steps {decision.first:,} to {decision.last:,}"
        if decision.last > decision.first
        else f"step {decision.first:,}"
    )


_APIS_WITH_MODEL_FIELD = ("openai", "responses", "anthropic")
"""APIs whose request body names the model."""
_API_PROVIDERS = {"responses": "openai", "anthropic": "anthropic", "gemini": "gemini"}
"""Whose models alone are asked in some words; in others those of many makers are."""


def find_api_warnings(nexus: Nexus, settings: Settings, context: AssembledContext, api: str) -> Iterator[Finding]:
    """Yield warnings about a request that the API may reject.

    Args:
        nexus: Who knows models.
        settings: The user's own words about models.
        context: The call.
        api: The dialect.
    """
    if (
        not context.model
        and api in _APIS_WITH_MODEL_FIELD
        and all(each.code != "no-model" for each in context.findings)
    ):
        from nexus_core.session.session_thread import build_no_model_finding

        yield build_no_model_finding()
    model = get_model(context.model, host=nexus.host, settings=settings)
    if api in _API_PROVIDERS and model.api and _API_PROVIDERS.get(model.api, model.api) != _API_PROVIDERS[api]:
        what = f"{context.model} is asked in the words of {model.api}; this is a call of {api}"
        yield Finding("foreign-model", f"{what}: --model names another, --api {model.api} fits this one")
    calls = any(message.tool_calls or message.tool_results for message in context.messages)
    if api == "anthropic" and calls and not context.tools:
        what = "tools were called in this conversation, and none is offered: Anthropic may refuse that"
        yield Finding("calls-without-tools", f"{what}; --tools FILE offers them")
