"""Whether there is use in asking again, and when."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

from nexus_plugins.providers._retry_after import read_retry_after
from nexus_plugins.providers._sending import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_plugins.providers._sending import Silence

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds between two attempts where the provider does not say: twice as many each time."""
MOST_PATIENCE = 60.0
"""A provider that wants to be left alone for longer is not asked again."""
_PASSING = frozenset({408, 409, 429})
_TROUBLE = 500


class Pace(NamedTuple):
    """How it is waited, and what chance adds; tests have their own."""

    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


PACE = Pace()


def wait_after(answer: Reply | Silence, attempt: int, pace: Pace) -> float | None:
    """How many seconds to wait after an answer before the next attempt; None where there is no use in one."""
    if not isinstance(answer, Reply):
        return _usual(attempt, pace) if answer.again else None
    if answer.status not in _PASSING and answer.status < _TROUBLE:
        return None
    wanted = wanted_wait(answer)
    if wanted is None:
        return _usual(attempt, pace)
    return wanted if wanted <= MOST_PATIENCE else None


def wanted_wait(reply: Reply) -> float | None:
    """In how many seconds the provider wants to be asked again; None where it does not say."""
    return read_retry_after(reply.headers, time.time())


def allowed(seconds: float) -> float:
    """How long somebody may take who has so many seconds: a little less, to be able to say what went wrong."""
    return seconds - min(1.0, seconds / 20)


def _usual(attempt: int, pace: Pace) -> float:
    # Who is turned away together does not come back together.
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * (0.5 + pace.chance() / 2)
