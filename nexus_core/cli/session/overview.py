"""A session in numbers, told from its newest step alone."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.epoch import read_epoch
from nexus_core.cli.session.damage import Damaged, noting
from nexus_core.rendering.core import LABELLED
from nexus_core.session.steps.numbering import tokens_until, turns_until
from nexus_core.session.steps.spending import spent_until
from nexus_core.session.steps.tail import Tail
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.values.conversation import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.ledger import Ledger, SessionRecord, Step


TOKEN_MARKS = {
    "~": "estimated, because it was imported, or recorded without a tokenizer; `nexus context --session NAME` counts",
    "^": "as recorded; the renderer can arrange messages anew; `nexus context --session NAME` shows what is sent now",
    "*": "with the messages that a summary stands for; `nexus context --session NAME` shows what is sent now",
}
"""The signs at a number of tokens, and why another command shows another number."""


class Overview(NamedTuple):
    """A session in numbers.

    Attributes:
        record: The session.
        turns, steps: How many its thread has, those before a fork included.
        tokens: What all its messages take, compacted or not.
        counter: Who counted the newest of them.
        is_compacted: True if a summary stands for some of them, so that fewer are sent.
        usage: What all calls of the thread cost.
        maker: The session whose worker it is; "" for none.
        is_arranged: True if its renderer is not the default one, so that messages may be sent in another form.
    """

    record: SessionRecord
    turns: int = 0
    steps: int = 0
    tokens: int = 0
    counter: str = ""
    usage: Usage = Usage()
    maker: str = ""
    is_compacted: bool = False
    is_arranged: bool = False

    @property
    def is_estimated(self) -> bool:
        """True if tokens were estimated without a tokenizer, as an import does."""
        return self.counter == SimpleTokenCounter.name or "transcript" in self.record.data

    @property
    def marked_tokens(self) -> str:
        """The tokens for a table; `TOKEN_MARKS` says what the signs mean."""
        return f"{'~' * self.is_estimated}{self.tokens:,}{'^' * self.is_arranged}{'*' * self.is_compacted}"

    @property
    def model(self) -> str:
        """Whom it asks."""
        return str(self.record.data.get("model") or "")

    @property
    def directory(self) -> str:
        """Where its agent works."""
        return str(self.record.data.get("cwd") or "")

    @property
    def state(self) -> str:
        """Whether it is archived, and whether a turn is open."""
        words = ("archived" if self.record.status == "archived" else "", "open" if self.record.open_turn else "")
        return ", ".join(filter(None, words)) or "closed"

    def facts(self) -> dict[str, object]:
        """All of it, for JSON."""
        record = self.record
        return {
            "label": record.label,
            "status": record.status,
            "open_turn": record.open_turn,
            "turns": self.turns,
            "steps": self.steps,
            "tokens": self.tokens,
            "counter": self.counter,
            "estimated": self.is_estimated,
            "compacted": self.is_compacted,
            "arranged": self.is_arranged,
            "usage": asdict(self.usage),
            "cache_hit_rate": hit_rate(self.usage),
            "model": self.model,
            "directory": self.directory,
            "origin": record.origin,
            "worker_of": self.maker,
            "head": record.head,
            "tip": record.tip,
            "created": record.created,
            "updated": record.updated,
        }


def look_over(ledger: Ledger, record: SessionRecord) -> Overview:
    """A session in numbers; a long thread is read only where its steps do not tell."""
    maker = maker_of(ledger, record)
    if record.tip is None:
        return Overview(record, maker=maker)
    tail = Tail(ledger)
    tip = tail.step(record.tip)
    turns, tokens, usage = turns_until(tail, tip), tokens_until(tail, tip), spent_until(tail, tip)
    is_compacted, is_arranged = tip.compaction is not None, _is_arranged(ledger, tip)
    return Overview(record, turns, tip.position + 1, tokens, tip.counter, usage, maker, is_compacted, is_arranged)


def _is_arranged(ledger: Ledger, tip: Step) -> bool:
    """True if the last call of a session was written by another renderer than the default one."""
    address = tip.data.get("epoch")
    renderer = None
    with suppress(ValueError, TypeError, KeyError, AttributeError):  # `verify` is for blobs that are damaged
        content = ledger.blob(address) if isinstance(address, str) else None
        renderer = None if content is None else read_epoch(content).basis.get("renderer")
    return renderer not in (None, "", LABELLED.name)


def look_over_all(ledger: Ledger, records: Iterable[SessionRecord]) -> tuple[list[Overview], list[Damaged]]:
    """Sessions in numbers; those that are damaged apart from the others.

    Raises:
        UnreachableError: The ledger does not answer any more.
    """
    whole: list[Overview] = []
    damaged: list[Damaged] = []
    for record in records:
        with noting(damaged, record.label):
            whole.append(look_over(ledger, record))
    return whole, damaged


def maker_of(ledger: Ledger, record: SessionRecord) -> str:
    """The session that made a worker, by the name it has now; "" for a session that is none."""
    parent = record.data.get("parent")
    if not isinstance(parent, str):
        return ""
    maker = ledger.session(parent)
    return parent if maker is None else maker.label


def hit_rate(usage: Usage) -> float | None:
    """What share of the input came from the provider's cache; None where nothing is known to have been sent."""
    return round(usage.cached_input_tokens / usage.input_tokens, 4) if usage.input_tokens else None


def percent(rate: float | None) -> str:
    """A share for a table."""
    return "-" if rate is None else f"{rate:.0%}"


def moment(milliseconds: int) -> str:
    """A point in time as the clock on the wall shows it."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))
    except (ValueError, OverflowError, OSError):  # no clock ever showed that
        return "-"
