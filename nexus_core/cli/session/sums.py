"""What steps add up to: turns, messages, calls of tools, tokens, and what was paid."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from nexus_core.cli.session.overview import hit_rate
from nexus_core.session.steps.numbering import opens_turn
from nexus_core.session.steps.spending import added, subtract_usage
from nexus_core.session.steps.turns import usage_of
from nexus_core.values.conversation import Usage

if TYPE_CHECKING:
    from nexus_core.values.cache import CacheReport
    from nexus_core.values.ledger import Step


class Sums:
    """Sums that grow with every step.

    Attributes:
        turns, steps, messages, compactions: How many there are.
        tools: How often each tool was called.
        tokens: What messages take, by who counted.
        calls: How often each model answered; usage: what that cost.
        cache: What became of the provider's cache; None where nobody looked.
    """

    def __init__(self) -> None:
        self.turns = self.steps = self.messages = self.compactions = 0
        self.tools: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.usage: dict[str, Usage] = {}
        self.cache: CacheSums | None = None

    def add(self, step: Step) -> None:
        """Count a step, in any order.

        Raises:
            LedgerError: It is damaged; nothing of it is counted.
        """
        self._count(step, 1)
        self.steps += 1

    def take_back(self, step: Step) -> None:
        """Take what a step holds out of the sums, as an import took it back; the step itself stays in the ledger."""
        self._count(step, -1)
        model = str(step.data.get("model") or "")
        if self.calls.get(model) == 0 and self.usage.get(model, Usage()) == Usage():
            del self.calls[model]
            self.usage.pop(model, None)
        self.tools, self.tokens = +self.tools, +self.tokens  # without those of which nothing is left

    def _count(self, step: Step, sign: int) -> None:
        said, model = step.messages, str(step.data.get("model") or "")
        usage = usage_of(step) if step.kind in ("reply", "turn") else None
        self.turns += sign * opens_turn(step)
        self.compactions += sign * (step.kind == "compaction")
        self.messages += sign * len(said) if step.kind != "sealed" else 0  # the same as the input's, as it was sent
        if step.tokens:
            self.tokens[step.counter] += sign * step.tokens
        for message in said:
            for call in message.tool_calls:
                self.tools[call.name] += sign
        replies = _replies(step)
        if replies or usage is not None:
            self.calls[model] += sign * replies
        if usage is not None:
            before = self.usage.get(model, Usage())
            self.usage[model] = added([before, usage]) if sign > 0 else subtract_usage(before, usage)

    @property
    def all_usage(self) -> Usage:
        """What all models cost together."""
        return added(self.usage.values())

    def facts(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {
            "turns": self.turns,
            "steps": self.steps,
            "messages": self.messages,
            "compactions": self.compactions,
            "tokens": dict(sorted(self.tokens.items())),
            "tools": [{"name": name, "calls": calls} for name, calls in ranked(self.tools)],
            "usage": _usage_facts(self.all_usage),
            "models": [self._model_facts(name, replies) for name, replies in ranked(self.calls)],
            **({} if self.cache is None else {"cache": self.cache.facts()}),
        }

    def _model_facts(self, name: str, replies: int) -> dict[str, object]:
        usage = self.usage.get(name)
        facts = {"model": name, "replies": replies}
        return facts | (_usage_facts(usage) if usage else {})


class CacheSums:
    """What became of the provider's cache in the calls of a session.

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
        """What share of what could be expected came from the cache."""
        return round(self.got / self.expected, 4) if self.expected else None

    def facts(self) -> dict[str, object]:
        """All of it, for JSON."""
        first = self.first_miss
        return {
            **{name: self.verdicts[name] for name in ("hit", "miss", "short", "unknown")},
            "expected": self.expected,
            "got": self.got,
            "rate": self.rate,
            "first_miss": None if first is None else {"step": first[0], **asdict(first[1])},
        }


def _usage_facts(usage: Usage) -> dict[str, object]:
    """Return a sum for JSON; None for reasoning tokens where no provider reported any."""
    return {
        **asdict(usage),
        "reasoning_tokens": usage.reasoning_tokens or None,
        "cache_hit_rate": hit_rate(usage),
    }


def _replies(step: Step) -> int:
    """How often a model answered in a step; one after the other, messages of an assistant are one answer."""
    if step.kind != "turn":
        return step.kind == "reply"
    return sum(role == "assistant" for role, _ in groupby(message.role for message in step.messages))


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first; those alike by name."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
