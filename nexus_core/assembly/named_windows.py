"""Windows that providers named when they refused a call, where they are smaller than we thought; carried like ratios.

What a provider says holds as long as we would think the same as then: whoever corrects the window of the model in the
settings is believed.
"""

from __future__ import annotations

from typing import NamedTuple


class NamedWindow(NamedTuple):
    """A window that a provider named.

    Attributes:
        limit: What it said.
        thought: What we thought then.
    """

    limit: int
    thought: int


Windows = dict[str, NamedWindow]
"""By model."""


def read_windows(value: object) -> Windows:
    """What a step says about models."""
    rows = value.items() if isinstance(value, dict) else ()
    return {name: NamedWindow(*row) for name, row in rows if _is_row(row)}


def name_window(known: Windows, model: str, limit: int | None, thought: int) -> Windows | None:
    """What is known after a provider refused a call; None where that is nothing new.

    Args:
        known: What was known before.
        model: Who was asked.
        limit: How many tokens it reads; None when the provider did not say.
        thought: How many it reads as far as settings and plugins know.
    """
    if limit is None or limit >= window_of(known, model, thought):
        return None
    return {**known, model: NamedWindow(limit, thought)}


def window_of(known: Windows, model: str, thought: int) -> int:
    """How many tokens a model reads, as far as anybody knows.

    Args:
        known: What providers have named.
        model: The model.
        thought: How many it reads as far as settings and plugins know.
    """
    named = known.get(model)
    return thought if named is None or named.thought != thought else named.limit


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == len(NamedWindow._fields)
        and all(type(each) is int for each in row)
    )
