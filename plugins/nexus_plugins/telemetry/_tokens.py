"""What calls cost, as the metric `gen_ai.client.token.usage`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from opentelemetry import metrics

from nexus_core import __version__
from nexus_plugins.telemetry import _attributes as told

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider

    from nexus_core import Usage
    from nexus_plugins.telemetry._attributes import Attributes

_NAMES = (told.OPERATION, told.PROVIDER, told.MODEL, told.RESPONSE_MODEL)
"""Few values each: a metric is kept for every combination, so that conversations are not among them."""
_BOUNDARIES = [4**power for power in range(14)]


def count_tokens(call: Attributes, usage: Usage) -> None:
    """Tell what a call cost.

    Args:
        call: What is known of it and its reply.
        usage: What it cost.
    """
    histogram = _histogram(metrics.get_meter_provider())
    common = {name: call[name] for name in _NAMES if name in call}
    for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        histogram.record(tokens, {**common, "gen_ai.token.type": kind})


@lru_cache(maxsize=1)
def _histogram(provider: MeterProvider) -> Histogram:
    return provider.get_meter("nexus_core", __version__).create_histogram(
        "gen_ai.client.token.usage",
        unit="{token}",
        description="Tokens that calls of models used.",
        explicit_bucket_boundaries_advisory=_BOUNDARIES,
    )
