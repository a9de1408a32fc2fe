"""What somebody should know before the body of an API's call is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.tokens.counters import open_model
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.nexus import Nexus
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.settings import Settings

_NAMING = ("openai", "responses", "anthropic")
"""Whose calls say in their bodies whom they ask."""
_MAKERS = {"responses": "openai", "anthropic": "anthropic", "gemini": "gemini"}
"""Whose models alone are asked in some words; in others those of many makers are."""


def remarks_on(
    nexus: Nexus, settings: Settings, context: AssembledContext, api: str, option: str = "--dialect"
) -> Iterator[Finding]:
    """What an API may refuse in a call although it is in its words.

    Args:
        nexus: Who knows models.
        settings: The user's own words about models.
        context: The call.
        api: The dialect.
        option: The option that names it.
    """
    if not context.model and api in _NAMING and all(each.code != "no-model" for each in context.findings):
        yield Finding(
            "no-model", "the call names no model; --model names one, or `nexus config set provider.model NAME`"
        )
    model = open_model(context.model, host=nexus.host, settings=settings)
    if api in _MAKERS and model.api and _MAKERS.get(model.api, model.api) != _MAKERS[api]:
        what = f"{context.model} is asked in the words of {model.api}; this is a call of {api}"
        yield Finding("foreign-model", f"{what}: --model names another, {option} {model.api} fits this one")
    calls = any(message.tool_calls or message.tool_results for message in context.messages)
    if api == "anthropic" and calls and not context.tools:
        what = "tools were called in this conversation, and none is offered: Anthropic may refuse that"
        yield Finding("calls-without-tools", f"{what}; --tools FILE offers them")
