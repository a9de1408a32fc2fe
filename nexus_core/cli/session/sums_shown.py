"""What `nexus session stats` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.cli.session.overview import hit_rate, percent
from nexus_core.cli.session.sums import ranked
from nexus_core.cli.tables import right_aligned
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.cli.session.sums import CacheSums, Sums
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.conversation import Usage

_MODELS = ("MODEL", "REPLIES", "INPUT", "CACHED", "RATE", "PUT INTO CACHE", "OUTPUT", "REASONING")


def print_sums(shell: CommandShell, about: Mapping[str, object], sums: Sums) -> None:
    """Print sums as tables.

    Args:
        shell: Where to print.
        about: What they are about.
        sums: The sums.
    """
    facts = [(name, str(value)) for name, value in about.items()]
    facts += [(name, f"{getattr(sums, name):,}") for name in ("turns", "steps", "messages", "compactions")]
    facts += [
        ("tokens", f"{tokens:,} ({counter or 'nobody knows who counted'})") for counter, tokens in ranked(sums.tokens)
    ]
    facts += [] if sums.cache is None else _cache(sums.cache)
    shell.console.table(facts)
    if sums.tools:
        shell.console.text("")
        tools = [("TOOL", "CALLS"), *((name, f"{calls:,}") for name, calls in ranked(sums.tools))]
        shell.console.table(right_aligned(tools, {1}), styles=["bold"])
    if sums.calls:
        models = [_cells(name or "(unknown)", replies, sums.usage.get(name)) for name, replies in ranked(sums.calls)]
        total = _cells("all", sum(sums.calls.values()), sums.all_usage)
        shell.console.text("")
        rows = [_MODELS, *models, *([total] if len(models) > 1 else [])]
        shell.console.table(right_aligned(rows, range(1, len(_MODELS))), styles=["bold"])


def _cache(sums: CacheSums) -> list[tuple[str, str]]:
    if not sums.verdicts:
        return []
    words = {"hit": "found", "miss": "missed", "short": "too short to be cached", "unknown": "unknown"}
    told = [f"{counted(number, 'call')} {words[name]}" for name, number in sorted(sums.verdicts.items())]
    share = f"; {sums.got:,} of {sums.expected:,} expected tokens ({percent(sums.rate)})" if sums.expected else ""
    rows = [("cache", ", ".join(told) + share)]
    if sums.first_miss is not None:
        step, report = sums.first_miss
        rows.append(("first miss", visible_line(f"{report.blame} (step {step})")))
    return rows


def _cells(model: str, replies: int, usage: Usage | None) -> tuple[str, ...]:
    if usage is None:
        return (model, f"{replies:,}", *("-" for _ in _MODELS[2:]))
    numbers = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens)
    read, cached, written = (f"{number:,}" for number in numbers)
    rate = percent(hit_rate(usage))
    return (
        model,
        f"{replies:,}",
        read,
        cached,
        rate,
        written,
        f"{usage.output_tokens:,}",
        f"{usage.reasoning_tokens:,}" if usage.reasoning_tokens else "-",  # 0 is also what is not reported
    )
