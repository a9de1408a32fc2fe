"""Numbers of seconds, wherever they come from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, UsageError
from nexus_core.agents.tools import tool
from nexus_core.config.durations import MAX_SECONDS, require_seconds
from nexus_core.rpc import AgentPool, AsyncClient, Client, SharedComponents

IMPOSSIBLE = [math.nan, math.inf, -math.inf, -1, MAX_SECONDS + 1, True, "5"]


@pytest.mark.parametrize("value", [0.001, 1, MAX_SECONDS])
def test_a_number_of_seconds_is_returned_as_a_float(value: float) -> None:
    assert (require_seconds(value, "timeout"), type(require_seconds(value, "timeout"))) == (value, float)


@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_what_is_not_a_number_of_seconds_is_refused_with_its_name(value: object) -> None:
    with pytest.raises(UsageError, match="--timeout must be a number of seconds, not") as refused:
        require_seconds(value, "--timeout", allows_zero=True)

    assert refused.value.hint == "at least 0, and 604,800 seconds at most"


def test_zero_is_refused_where_it_means_nothing() -> None:
    assert require_seconds(0, "timeout", allows_zero=True) == 0
    with pytest.raises(UsageError, match="not 0"):
        require_seconds(0, "timeout")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1])
def test_clients_pools_and_tools_refuse_such_a_time(nexus_home: Path, work: Path, value: Any) -> None:
    assert nexus_home.is_dir()
    for client in (Client, AsyncClient):
        with pytest.raises(UsageError, match="timeout must be a number of seconds"):
            client("http://127.0.0.1:1", "token", timeout=value)
    with Nexus(work) as nexus, pytest.raises(UsageError, match="question_seconds must be a number of seconds"):
        AgentPool(SharedComponents(nexus=nexus, question_seconds=value))
    with pytest.raises(UsageError, match="the time-out of len must be a number of seconds"):
        tool(len, timeout=value)
