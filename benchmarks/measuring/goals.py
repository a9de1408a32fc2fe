"""The goals of the whole, and why some of them are missed."""

from __future__ import annotations

import tomllib
from typing import NamedTuple

from benchmarks.measuring.venvs import ROOT

GOALS = {
    "P1": "Choosing history costs no more in a long conversation than in a short one",
    "P2": "It is faster than `trim_messages` of LangChain, while it counts exactly and keeps calls with their results",
    "P3": "Every text is given to a tokeniser once in its life, and not again after a restart",
    "P4": "A whole call is put together in little more than the time to look at its files and read its rows",
    "P5": "Commands start about as fast as a bare Typer app, and several times as fast as `llm`",
    "P6": "Importing the names that programs use costs little more than Python, and a fraction of what peers take",
    "P7": "A durable append takes little longer than the disk, and less than that of openai-agents",
    "P8": "The end of a thread of 1,000,000 turns is read as fast as by a bare index, across forks too",
    "P9": "The first exact count of a process comes without a network, and sooner than tiktoken's own",
    "P10": "An optional engine counts faster than tiktoken, with the same result",
    "P11": "No call ever loses its result, and no room is left that the next group would fit into",
    "P12": "An estimate is never more than 10 % below the exact count",
}


class Reasons(NamedTuple):
    """What is known of goals that are not reached; kept in `reasons.toml`.

    Attributes:
        missed: By the name of a row, why it misses its goal.
        unmeasured: By the id of a goal, what of it has no row, and why.
    """

    missed: dict[str, str]
    unmeasured: dict[str, str]


def read_reasons() -> Reasons:
    """The reasons that are kept."""
    kept = tomllib.loads((ROOT / "benchmarks" / "reasons.toml").read_text(encoding="utf-8"))
    return Reasons(kept["missed"], kept["unmeasured"])
