"""Everything that is known of a request, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral.json_form import encode

if TYPE_CHECKING:
    from nexus_core.dialects.finding import Dialects
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import TokenBudget
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message

SCHEMA = 1


def facts_of(context: AssembledContext, dialects: Dialects, dialect: str = "") -> dict[str, Any]:
    """A request with all that is known of it, messages and tools in Nexus's own form.

    Args:
        context: The request.
        dialects: The shapes that there are.
        dialect: The API whose call stands in it too; "" for none.
    """
    api = dialect or (context.provider if dialects.rules(context.provider) else "")
    facts = {
        "schema": SCHEMA,
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
        "tools": [encode(tool) for tool in context.tools],
        "history": [encode(message) for message in context.history],
        "current_message": _message(context.current_message),
        "progress": [encode(message) for message in context.progress],
        "message_tokens": list(context.message_tokens),
        "budget": _budget(context.token_budget),
        "placements": [asdict(placement) for placement in context.placements],
        "decisions": [asdict(decision) for decision in context.decisions],
        "findings": [_finding(finding) for finding in context.findings],
        "cache": {"api": api, "breakpoints": [each._asdict() for each in context.breakpoints(api)] if api else []},
    }
    return facts | ({"request": context.to(dialect)} if dialect else {})


def _message(message: Message | None) -> dict[str, Any] | None:
    return None if message is None else encode(message)


def _budget(budget: TokenBudget) -> dict[str, Any]:
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


def _finding(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "message": finding.message}
