"""OpenTelemetry: a span for each call of a model and for each tool it asks for, and what they cost as a metric.

It follows the conventions for generative AI. Without an SDK that somebody has set up in this program, nothing is made.
What was said is never part of it.
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
_PROVIDERS = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""By these variables a program is given an SDK without setting one up itself."""


@hookimpl
def nexus_assembled(context: AssembledContext) -> None:
    """Begins the span of a call; one that is still open in the same turn has not been answered."""
    if _may_be_watched():
        from nexus_plugins.telemetry._watching import WATCH  # noqa: PLC0415 - it imports OpenTelemetry

        WATCH.begin(context)


@hookimpl
def nexus_recorded(step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
    """Ends the span of the call that a reply answers, and makes those of the tools that results come from."""
    if _may_be_watched():
        from nexus_plugins.telemetry._watching import WATCH  # noqa: PLC0415 - as above

        WATCH.follow(step, session, usage, cache)


def _may_be_watched() -> bool:
    """Whether an SDK may be set up: nobody can do that without importing the API, except by the environment."""
    return "opentelemetry.trace" in sys.modules or any(name in os.environ for name in _PROVIDERS)
