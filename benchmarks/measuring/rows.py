"""A measured number, what it should be, and whether it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SLACK = 10.0
"""A quick run fails only when a ratio is this many times off its goal: an order of magnitude."""

Unit = Literal["ratio", "share", "count"]
"""How many times something else, a part of the whole, or how many."""


class Goal(NamedTuple):
    """A bound that a number must keep.

    Attributes:
        sense: Which way.
        bound: The bound; a number that is equal to it keeps it.
        id: Which of the goals P1 to P12 it belongs to; "" for none of them.
        quick: The bound of a quick run, where the goal is missed today; 0 where it follows from the bound.
    """

    sense: Literal["<=", ">="]
    bound: float
    id: str = ""
    quick: float = 0

    def is_met(self, value: float) -> bool:
        """Whether the number keeps the bound."""
        return value <= self.bound if self.sense == "<=" else value >= self.bound

    def loosened(self) -> Goal:
        """The goal of a quick run, which only a number that is an order of magnitude worse misses."""
        loose = self.bound * SLACK if self.sense == "<=" else self.bound / SLACK
        return self._replace(bound=self.quick or loose)


class Row(NamedTuple):
    """A measured number.

    Attributes:
        name: What it is; of a ratio, the dividend and the divisor.
        value: The number.
        goals: What it should be; none for information only.
        unit: What kind of number.
        detail: What it is made of, such as the two times.
    """

    name: str
    value: float
    goals: tuple[Goal, ...] = ()
    unit: Unit = "ratio"
    detail: str = ""

    @property
    def missed(self) -> tuple[Goal, ...]:
        """The goals that it does not meet."""
        return tuple(goal for goal in self.goals if not goal.is_met(self.value))

    @property
    def verdict(self) -> str:
        """`ok` or `MISSED` for each goal; `-` where there is none."""
        return ", ".join("ok" if goal.is_met(self.value) else "MISSED" for goal in self.goals) or "-"

    @property
    def shown(self) -> str:
        """The number as it is printed."""
        return show(self.value, self.unit)

    @property
    def wanted(self) -> str:
        """The goals as they are printed."""
        told = (
            f"{goal.sense} {show(goal.bound, self.unit, bound=True)}" + f" ({goal.id})" * bool(goal.id)
            for goal in self.goals
        )
        return ", ".join(told) or "-"

    def loosened(self) -> Row:
        """The row with the goals of a quick run.

        What was counted is as sure in a quick run as in a long one: only a goal with a bound of its own for quick runs
        is another one there.
        """
        loose = (goal.loosened() if self.unit == "ratio" or goal.quick else goal for goal in self.goals)
        return self._replace(goals=tuple(loose))


class Comparison(NamedTuple):
    """Two works whose times are divided, and what the quotient should be."""

    dividend: str
    divisor: str
    goals: tuple[Goal, ...] = ()


def compare(medians: Mapping[str, float], comparisons: Iterable[Comparison]) -> list[Row]:
    """A row for each comparison of which both works were measured; times are in milliseconds."""
    return [
        Row(
            f"{dividend} / {divisor}",
            medians[dividend] / medians[divisor],
            goals,
            detail=f"{medians[dividend]:.4g} ms / {medians[divisor]:.4g} ms",
        )
        for dividend, divisor, goals in comparisons
        if dividend in medians and divisor in medians
    ]


def show(value: float, unit: Unit, *, bound: bool = False) -> str:
    """A number in the way of its unit; a bound without digits that say nothing."""
    if unit == "share":
        return f"{100 * value:g} %" if bound else f"{value:.1%}".replace("%", " %")
    if unit == "count" or value >= 100:  # noqa: PLR2004 - of a hundredfold, nobody asks for the hundredths
        return f"{value:,.0f}"
    return f"{value:g}" if bound else f"{value:.2f}"
