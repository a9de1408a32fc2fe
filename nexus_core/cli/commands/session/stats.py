"""`nexus session stats`: turns, messages, tool calls, tokens and cost."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.commands.session.overview import (
    DamagedSession,
    collect_damage,
    note_damage,
    open_price_list,
    print_price_date,
    report_damage,
)
from nexus_core.cli.context import load_readable_layers
from nexus_core.cli.options import JsonOption
from nexus_core.cli.output import compute_hit_rate, format_rate
from nexus_core.cli.session_lookup import (
    EMPTY_LEDGER_HINT,
    LedgerOption,
    OptionalSessionArgument,
    count_steps_to,
    find_session,
    open_ledger_nexus,
)
from nexus_core.errors import LedgerError
from nexus_core.ledger.ledger import count_import_reverted, find_reverted, walk_back
from nexus_core.ledger.outline import outline_step
from nexus_core.ledger.queries import count_sessions, count_steps
from nexus_core.ledger.url import without_secret
from nexus_core.request.cache_report import list_cache_reports
from nexus_core.request.prefix import PrefixStore
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.thread.state import add_usages, opens_turn
from nexus_core.tokens.counters import get_model
from nexus_core.tokens.prices import Cost, add_costs
from nexus_core.types.messages import Usage
from nexus_core.types.payloads import ReplyPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.ledger.outline import MessageOutline
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import ProgressBar
    from nexus_core.tokens.prices import PriceList
    from nexus_core.types.assembled import CacheReport
    from nexus_core.types.ledger import Ledger, Step

app = typer.Typer()

_USAGE_FIELDS = tuple(field.name for field in fields(Usage))
_get_usage_numbers = attrgetter(*_USAGE_FIELDS)


@app.command(epilog="\b\nExamples:\n  nexus session stats auth-bug\n  nexus session stats --json")
def stats(
    ctx: typer.Context, label: OptionalSessionArgument = None, *, ledger: LedgerOption = "", json: JsonOption = False
) -> None:
    """Add up turns, messages, tokens and cost of sessions.

    Calls are counted by tool, cost by model. A session has also what was said before it was forked, and what became of
    the provider's cache; in the whole ledger, every step counts once. What is damaged is named on standard error and
    left out, and the exit code is 3.
    """
    cli: CliContext = ctx.obj
    damaged = list[DamagedSession]()
    with open_ledger_nexus(ctx, ledger) as nexus:
        sums = StepSums(open_price_list(nexus))
        url = without_secret(nexus.ledger.url)
        record = None if label is None else find_session(nexus.ledger, label)
        sessions = count_sessions(nexus.ledger) if record is None else 1
        known = count_steps(nexus.ledger) if record is None else count_steps_to(nexus.ledger, record.tip)
        with cli.console.progress(known, "Counting", unit="steps") as progress:
            steps = nexus.ledger.steps() if record is None else walk_back(nexus.ledger, record.tip)
            counting = _count_steps(
                sums, steps, nexus.ledger, progress, damaged=damaged, label=record.label if record else ""
            )
            if record is not None:
                sums.cache = _sum_cache(nexus, counting, damaged, record.label)
            deque(counting, maxlen=0)
    about: dict[str, object] = {"sessions": sessions} if record is None else {"session": record.label}
    if json:
        document = {**about, **sums.to_json(), "damaged": [each._asdict() for each in damaged]}
        cli.console.json({"schema": 1, "ledger": url, **document})
    elif not sessions:
        cli.console.message(f"No sessions in {url}. {EMPTY_LEDGER_HINT}")
    else:
        print_sums(cli, about, sums)
    report_damage(cli, damaged)


def _count_steps(
    sums: StepSums,
    steps: Iterable[Step],
    ledger: Ledger,
    progress: ProgressBar,
    *,
    damaged: list[DamagedSession],
    label: str,
) -> Iterator[Step]:
    """Yield the steps that can be read, and count them. Stops at the first damaged one.

    What an import took back is out of the sums when all steps are counted, whichever way they come.
    """
    awaited: set[str] = set()  # reverted steps of a session, which come behind the step that says so
    with collect_damage(damaged, label):
        for step in steps:
            known = sums.steps
            try:
                sums.add(step)
                if step.id in awaited:
                    sums.take_back(step)
                reverted = find_reverted(ledger, step) if count_import_reverted(step) else []
                if label:
                    awaited.update(each.id for each in reverted)
                else:
                    for each in reverted:
                        if each.branch == step.branch:  # else another session has it, too
                            sums.take_back(each)
            except LedgerError as error:
                note_damage(damaged, label, error)
            progress.advance(1)
            if sums.steps != known and step.id not in awaited:
                yield step


def _sum_cache(nexus: Nexus, steps: Iterable[Step], damaged: list[DamagedSession], label: str) -> CacheSums:
    """Return the cache sums of the calls that can be read."""
    settings, sums = load_readable_layers(nexus)[0].settings, CacheSums()
    minimum = cache(lambda model: get_model(model, host=nexus.host, settings=settings).cache_minimum)
    with collect_damage(damaged, label):
        for step, report in list_cache_reports(steps, PrefixStore(lambda: nexus.ledger), minimum):
            sums.add(step, report)
    return sums


class StepSums:
    """Sums that grow with every step.

    Attributes:
        turns, steps, messages, compactions: How many there are.
        tools: How often each tool was called.
        tokens: What messages take, by who counted.
        calls: How often each model answered.
        costs: The cost of each model's calls.
        cache: Sums of the prompt cache; None if they were not computed.
    """

    def __init__(self, prices: PriceList) -> None:
        self._prices = prices
        self.costs: dict[str, Cost] = {}
        self.turns = self.steps = self.messages = self.compactions = 0
        self.tools: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._usage: dict[str, dict[str, int]] = {}
        self.cache: CacheSums | None = None

    def add(self, step: Step) -> None:
        """Count a step, in any order.

        Raises:
            LedgerError: It is damaged; nothing of it is counted.
        """
        self._count(step, 1)
        self.steps += 1

    def take_back(self, step: Step) -> None:
        """Subtract a step that an import reverted. The step itself stays in the ledger."""
        self._count(step, -1)
        model = step.payload.model or ""
        if self.calls.get(model) == 0 and not any(self._usage.get(model, {}).values()):
            del self.calls[model]
            self._usage.pop(model, None)
            self.costs.pop(model, None)
        self.tools, self.tokens = +self.tools, +self.tokens  # without those of which nothing is left

    def _count(self, step: Step, sign: int) -> None:
        # Once for every step of a ledger: what a step does not need is not looked at.
        outlines, payload, kind, tokens = outline_step(step), step.payload, step.kind, step.tokens
        model, usage, replies = payload.model or "", None, 0
        if isinstance(payload, ReplyPayload):
            usage, replies = payload.usage, 1 if kind == "reply" else _count_replies(outlines)
        if step.id == step.turn and opens_turn(step):
            self.turns += sign
        if kind == "compaction":
            self.compactions += sign
        if kind != "sealed":  # the same as the input's, as it was sent
            self.messages += sign * len(outlines)
        if tokens:
            self.tokens[step.counter] += sign * tokens
        for message in outlines:
            for name in message.tools:
                self.tools[name] += sign
        if replies or usage is not None:
            self.calls[model] += sign * replies
        if usage is not None:
            self._count_usage(model, usage, sign)
            self._count_cost(model, usage, sign, calls=max(replies, 1))

    def _count_usage(self, model: str, usage: Usage, sign: int) -> None:
        sums = self._usage.get(model)
        if sums is None:
            sums = self._usage[model] = dict.fromkeys(_USAGE_FIELDS, 0)
        for name, number in zip(_USAGE_FIELDS, _get_usage_numbers(usage), strict=True):
            sums[name] += sign * number
            if sign < 0 and sums[name] < 0:
                sums[name] = 0

    def _count_cost(self, model: str, usage: Usage, sign: int, *, calls: int) -> None:
        if usage.total_tokens:
            cost = self._prices.compute(model, usage, calls=calls)
            self.costs[model] = add_costs((self.costs.get(model, Cost()), cost if sign > 0 else cost.negate()))

    @property
    def usage(self) -> dict[str, Usage]:
        """The usage of each model."""
        return {model: Usage(**sums) for model, sums in self._usage.items()}

    @property
    def all_usage(self) -> Usage:
        """The usage of all models."""
        return add_usages(self.usage.values())

    def to_json(self) -> dict[str, object]:
        """Return all of it, for JSON."""
        return {
            "turns": self.turns,
            "steps": self.steps,
            "messages": self.messages,
            "compactions": self.compactions,
            "tokens": dict(sorted(self.tokens.items())),
            "tools": [{"name": name, "calls": calls} for name, calls in rank_counts(self.tools)],
            "usage": _usage_to_json(self.all_usage),
            "cost": add_costs(self.costs.values()).to_json() if self.costs else None,
            "models": [self._model_facts(name, replies) for name, replies in rank_counts(self.calls)],
            **({} if self.cache is None else {"cache": self.cache.to_json()}),
        }

    def _model_facts(self, name: str, replies: int) -> dict[str, object]:
        usage = self.usage.get(name)
        facts = {"model": name, "replies": replies}
        cost = self.costs.get(name)
        return facts | (_usage_to_json(usage) | {"cost": cost.to_json() if cost else None} if usage else {})


class CacheSums:
    """Sums of the prompt cache over the calls of a session.

    Attributes:
        expected: Tokens that calls began with as the ones before them did, as we count.
        got: How many of these came from the cache, as the providers say.
        verdicts: How many calls found what they could expect (`hit`), how many did not (`miss`) or could not, because
            they began with too little (`short`), and of how many nothing is known (`unknown`).
        first_miss: The step of the first call that did not, and what is to blame.
    """

    def __init__(self) -> None:
        self.expected = self.got = 0
        self.verdicts: Counter[str] = Counter()
        self.first_miss: tuple[str, CacheReport] | None = None

    def add(self, step: Step, report: CacheReport) -> None:
        """Count what became of it in a call, the newest first."""
        cause = report.blame.cause if report.blame else ""
        if cause == "first":  # there was nothing to be found
            return
        self.verdicts["short" if cause == "short" else report.verdict] += 1
        if cause == "short" or report.expected is None or report.got is None:
            return
        self.expected += report.expected
        self.got += min(report.got, report.expected)
        if report.verdict == "miss":
            self.first_miss = step.id, report

    @property
    def rate(self) -> float | None:
        """The share of the expected prefix that came from the cache."""
        return round(self.got / self.expected, 4) if self.expected else None

    def to_json(self) -> dict[str, object]:
        """Return all of it, for JSON."""
        first = self.first_miss
        return {
            **{name: self.verdicts[name] for name in ("hit", "miss", "short", "unknown")},
            "expected": self.expected,
            "got": self.got,
            "rate": self.rate,
            "first_miss": None if first is None else {"step": first[0], **asdict(first[1])},
        }


def _usage_to_json(usage: Usage) -> dict[str, object]:
    """Return a usage as JSON. Reasoning tokens are None if no provider reported any."""
    return {
        **asdict(usage),
        "reasoning_tokens": usage.reasoning_tokens or None,
        "cache_hit_rate": compute_hit_rate(usage),
    }


def _count_replies(outlines: Sequence[MessageOutline]) -> int:
    """Return the replies in a turn. Consecutive assistant messages count as one."""
    found, before = 0, ""
    for role, _ in outlines:
        found += role == "assistant" != before
        before = role
    return found


def rank_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return names and counts, the most frequent first, equal counts by name."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


_MODEL_HEADING = ("MODEL", "REPLIES", "INPUT", "CACHED", "RATE", "PUT INTO CACHE", "OUTPUT", "REASONING", "COST")


def print_sums(cli: CliContext, about: Mapping[str, object], sums: StepSums) -> None:
    """Print sums as tables.

    Args:
        cli: Where to print.
        about: What they are about.
        sums: The sums.
    """
    facts = [(name, str(value)) for name, value in about.items()]
    facts += [(name, f"{getattr(sums, name):,}") for name in ("turns", "steps", "messages", "compactions")]
    facts += [
        ("tokens", f"{tokens:,} ({counter or 'unknown counter'})") for counter, tokens in rank_counts(sums.tokens)
    ]
    facts += [] if sums.cache is None else _list_cache_rows(sums.cache)
    cli.console.table(facts)
    if sums.tools:
        cli.console.text("")
        tools = [("TOOL", "CALLS"), *((name, f"{calls:,}") for name, calls in rank_counts(sums.tools))]
        cli.console.table(tools, styles=["bold"], right={1})
    if sums.calls:
        models = [
            _build_model_row(name or "(unknown)", replies, sums.usage.get(name), sums.costs.get(name))
            for name, replies in rank_counts(sums.calls)
        ]
        total = _build_model_row("all", sum(sums.calls.values()), sums.all_usage, add_costs(sums.costs.values()))
        cli.console.text("")
        rows = [_MODEL_HEADING, *models, *([total] if len(models) > 1 else [])]
        cli.console.table(rows, styles=["bold"], right=range(1, len(_MODEL_HEADING)))
        print_price_date(cli, sums.costs.values())


def _list_cache_rows(sums: CacheSums) -> list[tuple[str, str]]:
    if not sums.verdicts:
        return []
    words = {"hit": "found", "miss": "missed", "short": "too short to be cached", "unknown": "cannot be judged"}
    parts = [f"{format_count(number, 'call')} {words[name]}" for name, number in sorted(sums.verdicts.items())]
    share = f"; {sums.got:,} of {sums.expected:,} expected tokens ({format_rate(sums.rate)})" if sums.expected else ""
    rows = [("cache", ", ".join(parts) + share)]
    if sums.first_miss is not None:
        step, report = sums.first_miss
        rows.append(("first miss", visible_line(f"{report.blame} (step {step})")))
    return rows


def _build_model_row(model: str, replies: int, usage: Usage | None, cost: Cost | None) -> tuple[str, ...]:
    if usage is None:
        return (model, f"{replies:,}", *("-" for _ in _MODEL_HEADING[2:]))
    numbers = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens)
    read, cached, written = (f"{number:,}" for number in numbers)
    rate = format_rate(compute_hit_rate(usage))
    return (
        model,
        f"{replies:,}",
        read,
        cached,
        rate,
        written,
        f"{usage.output_tokens:,}",
        f"{usage.reasoning_tokens:,}" if usage.reasoning_tokens else "-",  # 0 is also what is not reported
        "-" if cost is None else str(cost),
    )
