"""Numbers of a session from its newest step, and damage found while reading."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.context import EXIT_CONFIGURATION, load_readable_layers
from nexus_core.cli.output import compute_hit_rate
from nexus_core.errors import ConfigError, FileError, LedgerError, LedgerUnreachableError
from nexus_core.rendering import LABELLED_RENDERER
from nexus_core.request.prefix import read_prefix
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.state import count_tokens, count_turns, sum_costs, sum_usage
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.prices import Cost, PriceList, add_costs
from nexus_core.types.messages import Usage
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

_MAX_LISTED_DAMAGE = 20
"""Damaged records to name one by one; `nexus ledger verify` has all of them."""


class DamagedSession(NamedTuple):
    """A session that cannot be read completely, and why. Without a label, it is about the ledger."""

    label: str
    what: str


@contextmanager
def collect_damage(damaged: list[DamagedSession], label: str) -> Iterator[None]:
    """Note what is damaged, and go on behind it.

    Raises:
        LedgerUnreachableError: The ledger does not answer any more.
    """
    try:
        yield
    except LedgerError as error:
        note_damage(damaged, label, error)


def note_damage(damaged: list[DamagedSession], label: str, error: LedgerError) -> None:
    """Add the damage that an error reports. Cheaper than `collect_damage` for each of many steps.

    Raises:
        LedgerUnreachableError: The ledger does not answer any more.
    """
    if isinstance(error, LedgerUnreachableError):
        raise error
    damaged.append(DamagedSession(label, error.what))


def report_damage(cli: CliContext, damaged: Sequence[DamagedSession]) -> None:
    """Say on standard error what could not be read, if anything, and exit with 3 then."""
    if not damaged:
        return
    for each in damaged[:_MAX_LISTED_DAMAGE]:
        whose = f"session {each.label!r}" if each.label else "the ledger"
        cli.console.error(visible_line(f"{whose} is damaged: {each.what}"))
    if len(damaged) > _MAX_LISTED_DAMAGE:
        cli.console.message(f"  ({format_count(len(damaged) - _MAX_LISTED_DAMAGE, 'more fault')})")
    hint = "`nexus ledger verify` says what is wrong, `nexus ledger repair NEW` saves what is whole"
    cli.console.message(visible_line(f"  {cli.complete_commands(hint)}"))
    raise typer.Exit(EXIT_CONFIGURATION)


TOKEN_MARKS = {
    "~": "estimated, because it was imported, or recorded without a tokenizer; `nexus context --session NAME` counts",
    "^": "as recorded; the renderer can arrange messages anew; `nexus context --session NAME` shows what is sent now",
    "*": "with the messages that a summary stands for; `nexus context --session NAME` shows what is sent now",
}
"""The signs at a number of tokens, and why another command shows another number."""


class SessionOverview(NamedTuple):
    """A session in numbers.

    Attributes:
        record: The session.
        turns, steps: How many its thread has, those before a fork included.
        tokens: What all its messages take, compacted or not.
        counter: Who counted the newest of them.
        is_compacted: True if a summary replaces some of them, so that fewer are sent.
        usage: What all calls of the thread cost.
        maker: The session whose worker it is; "" for none.
        is_arranged: True if its renderer is not the default one, so that messages may be sent in another form.
        cost: The cost of all calls of the thread; None if it was not computed.
        called_model: The model of its newest step, which settings may have chosen; "" if that step has none.
        first_call: The first step of the thread with a cost; "" for none. Forks have it in common.
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
    cost: Cost | None = None
    called_model: str = ""
    first_call: str = ""

    @property
    def shown_cost(self) -> str:
        """The cost for a table: `-` without usage, or if it could not be computed."""
        return "-" if self.cost is None or not self.usage.total_tokens else str(self.cost)

    @property
    def is_estimated(self) -> bool:
        """True if tokens were estimated without a tokenizer, as an import does."""
        return self.counter == SimpleTokenCounter.name or self.record.payload.transcript is not None

    @property
    def marked_tokens(self) -> str:
        """The tokens for a table, with signs that `TOKEN_MARKS` explains."""
        return f"{'~' * self.is_estimated}{self.tokens:,}{'^' * self.is_arranged}{'*' * self.is_compacted}"

    @property
    def model(self) -> str:
        """The model that it was given, else the one that its newest step called."""
        return self.record.payload.model or self.called_model

    @property
    def directory(self) -> str:
        """The directory that its agent works in."""
        return self.record.payload.cwd or ""

    @property
    def state(self) -> str:
        """`archived`, `open`, both, or `closed`."""
        words = ("archived" if self.record.status == "archived" else "", "open" if self.record.open_turn else "")
        return ", ".join(filter(None, words)) or "closed"

    def to_json(self) -> dict[str, object]:
        """Return all of it, for JSON."""
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
            "cache_hit_rate": compute_hit_rate(self.usage),
            **({} if self.cost is None else {"cost": self.cost.to_json() if self.usage.total_tokens else None}),
            "model": self.model,
            "directory": self.directory,
            "origin": record.origin,
            "worker_of": self.maker,
            "head": record.head,
            "tip": record.tip,
            "created": record.created,
            "updated": record.updated,
        }


def read_overview(ledger: Ledger, record: SessionRecord) -> SessionOverview:
    """Return the numbers of a session. Reads a long thread only if its newest step lacks them."""
    maker = find_maker(ledger, record)
    if record.tip is None:
        return SessionOverview(record, maker=maker)
    tail = ThreadCache(ledger)
    tip = tail.get_step(record.tip)
    turns, tokens, usage = count_turns(tail, tip), count_tokens(tail, tip), sum_usage(tail, tip)
    is_compacted, is_arranged = tip.compaction is not None, _has_other_renderer(ledger, tip)
    return SessionOverview(
        record,
        turns,
        tip.position + 1,
        tokens,
        tip.counter,
        usage,
        maker,
        is_compacted,
        is_arranged,
        called_model=tip.payload.model or "",
    )


def _has_other_renderer(ledger: Ledger, tip: Step) -> bool:
    """True if the last call of a session was written by another renderer than the default one."""
    address = tip.payload.epoch
    renderer = None
    with suppress(ValueError, TypeError, KeyError, AttributeError):  # `verify` is for blobs that are damaged
        content = ledger.blob(address) if address else None
        renderer = None if content is None else read_prefix(content).key.get("renderer")
    return renderer not in (None, "", LABELLED_RENDERER.name)


def read_all_overviews(
    ledger: Ledger, records: Iterable[SessionRecord], *, advance: Callable[[float], None] = lambda _: None
) -> tuple[list[SessionOverview], list[DamagedSession]]:
    """Return the numbers of all sessions, and the damaged sessions separately. `advance` is called for each.

    Raises:
        LedgerUnreachableError: The ledger does not answer any more.
    """
    whole: list[SessionOverview] = []
    damaged: list[DamagedSession] = []
    for record in records:
        with collect_damage(damaged, record.label):
            whole.append(read_overview(ledger, record))
        advance(1)
    return whole, damaged


def add_session_costs(
    nexus: Nexus,
    sessions: Iterable[SessionOverview],
    damaged: list[DamagedSession],
    *,
    advance: Callable[[float], None] = lambda _: None,
) -> list[SessionOverview]:
    """Return sessions with their costs. `advance` is called for each.

    Reads every thread with usage: each reply has its own model, so that no total will do.
    """
    prices, priced = open_price_list(nexus), list[SessionOverview]()
    for session in sessions:
        cost: Cost | None = Cost()
        first_call = ""
        if session.usage.total_tokens:
            cost = None
            with collect_damage(damaged, session.record.label):
                cost, first_call = sum_costs(nexus.ledger, session.record.tip, prices)
        priced.append(session._replace(cost=cost, first_call=first_call))
        advance(1)
    return priced


def open_price_list(nexus: Nexus) -> PriceList:
    """Return the prices of models under the settings of a directory; without the settings if they are invalid."""
    try:
        settings = load_readable_layers(nexus)[0].settings
    except (ConfigError, FileError):
        settings = Settings()
    return PriceList(nexus.host, settings)


def print_price_date(cli: CliContext, costs: Iterable[Cost | None]) -> None:
    """Say of which date the prices are, if any cost is known, and how to set missing ones."""
    total = add_costs(filter(None, costs))
    if total.date:
        cli.console.message(f"COST at published prices of {total.date} or later, in US dollars", style="dim")
    if total.unpriced_calls:
        cli.console.message("unknown: set the prices of such a model in models.NAME.price", style="dim")


def find_maker(ledger: Ledger, record: SessionRecord) -> str:
    """Return the current name of the session that created a worker; "" for other sessions."""
    parent = record.payload.parent
    if parent is None:
        return ""
    maker = ledger.session(parent)
    return parent if maker is None else maker.label
