"""OpenTelemetry spans and token metrics of model calls and tool runs.

_tracing.py    spans, attributes and metrics

It follows the conventions for generative AI. Without an SDK that the program has set up, nothing is recorded. Message
text never is.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import Extra

if TYPE_CHECKING:
    from nexus_core import AssembledContext, CacheReport, Usage
    from nexus_core.plugin import Step

NEEDS = Extra("telemetry", modules=("opentelemetry",))
_PROVIDER_VARIABLES = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""Environment variables that configure an SDK without code in the program."""


@hookimpl
def nexus_call_assembled(context: AssembledContext) -> None:
    """Start the span of a call, and end one of the same turn that got no reply."""
    if _may_have_sdk():
        from nexus_plugins.telemetry._tracing import CALL_TRACER

        CALL_TRACER.start_call(context)


@hookimpl
def nexus_step_recorded(step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
    """End the span of the call that got a reply, and record spans of tools that returned results."""
    if _may_have_sdk():
        from nexus_plugins.telemetry._tracing import CALL_TRACER

        CALL_TRACER.record_step(step, session, usage, cache)


def _may_have_sdk() -> bool:
    """Return True if an SDK may be configured, which needs an import of the API or a variable."""
    return "opentelemetry.trace" in sys.modules or any(name in os.environ for name in _PROVIDER_VARIABLES)
