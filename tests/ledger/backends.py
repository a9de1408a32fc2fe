"""The ledgers that the shared tests run against, each made of nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep, Step, StepKind
from nexus_core.types.messages import Message

BACKENDS = ("memory", "sqlite", "postgres")


@dataclass(frozen=True)
class Backend:
    """A kind of ledger.

    Attributes:
        name: Which.
        url: Where a new one is.
        open: Opens that one; what another has written is seen, unless it is in memory.
    """

    name: str
    url: str
    open: Callable[[], StoreLedger]


def said(text: str, *, kind: StepKind = "turn", closes: bool = True, tokens: int = 1, **data: object) -> NewStep:
    """A step in which one thing is said."""
    message = Message("assistant" if kind == "reply" else "user", text)
    return NewStep(kind=kind, closes=closes, messages=(message,), tokens=tokens, counter="c", data=data)


def add(ledger: StoreLedger, label: str, step: NewStep) -> Step:
    """Append behind whatever is there."""
    session = ledger.session(label)
    assert session is not None
    return ledger.append(label, step, after=session.tip)


def tell(ledger: StoreLedger, label: str, *texts: str) -> list[Step]:
    """A closed turn for each text."""
    return [add(ledger, label, said(text)) for text in texts]


def texts(steps: list[Step]) -> list[str]:
    """What is said in steps."""
    return [message.content for step in steps for message in step.messages]


def names() -> Callable[[int], str]:
    """Makes the same names whenever it is begun anew."""
    numbers = count(1)
    return lambda _now: f"{next(numbers):026d}"


def clock() -> Callable[[], int]:
    """A clock that ticks when it is looked at."""
    ticks = count(1_700_000_000_000)
    return lambda: next(ticks)


def figure(text: str) -> None:
    """Print what a test has measured; `pytest -rP` shows it."""
    print(text)  # noqa: T201 - the figure is part of the result
