"""An SDK as a program would set it up, whose spans and metrics stay in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nexus_core import Nexus
from nexus_plugins.telemetry import _tracing

OpenNexus = Callable[..., Nexus]


class Seen(NamedTuple):
    """What has arrived."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended, in the order in which they did."""
        return self.exporter.get_finished_spans()

    @property
    def counted(self) -> Counter[tuple[str, object]]:
        """By metric and type of token, the sum."""
        sums: Counter[tuple[str, object]] = Counter()
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.data.data_points:
                    assert isinstance(point, HistogramDataPoint)
                    sums[metric.name, (point.attributes or {})["gen_ai.token.type"]] += int(point.sum)
        return sums


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """What arrives in an SDK that is set up for this test alone; a process can do so only once."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    spans, meters = TracerProvider(shutdown_on_exit=False), MeterProvider([reader], shutdown_on_exit=False)
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", spans.get_tracer)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meters)
    monkeypatch.setattr(_tracing, "CALL_TRACER", _tracing.CallTracer())
    yield Seen(exporter, reader)
    spans.shutdown()
    meters.shutdown()


@pytest.fixture
def open_nexus(tmp_path: Path, nexus_home: Path) -> Iterator[OpenNexus]:
    """A Nexus with the bundled plugins only."""
    opened: list[Nexus] = []
    work = tmp_path / "work"
    work.mkdir()

    def make(**arguments: Any) -> Nexus:
        given: dict[str, Any] = {"home": nexus_home, "ledger": "memory:", "defaults": False, **arguments}
        opened.append(Nexus(work, **given))
        return opened[-1]

    yield make
    for nexus in opened:
        nexus.close()
