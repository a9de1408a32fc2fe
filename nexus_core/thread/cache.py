"""Cache of the newest steps of a session's thread, read on demand and dropped when unused."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError
from nexus_core.ledger.codec import StoredStep
from nexus_core.thread.sizes import TokenSizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.types.ledger import Ledger, Step

STEPS_OF_FIRST_READ = 32
"""Steps of the first read; doubled each time that they are not enough."""
MAX_CACHED_RANGES = 32
"""Ranges farther back in the thread that are cached, and as many single steps."""
STEPS_BETWEEN_TRIMS = 128
"""New steps after which unused ones are dropped: often enough to keep memory flat, seldom enough not to slow down a
call. The ledger still has them."""
MAX_SIZERS = 4
"""A session that changes its model may change its token counter; few use more than two."""


class ThreadCache:
    """The newest steps of a session's thread, without gaps.

    Holds what the last calls have asked for, however long the thread grows. Thread-safe. Callers must not change the
    lists that its methods return.

    Args:
        ledger: The ledger with the steps.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._steps: list[Step] = []
        self._positions: dict[str, int] = {}
        self._ranges: dict[tuple[str, str], list[Step]] = {}
        self._single_steps: dict[str, Step] = {}
        self._unchecked: list[Step] = []
        self._changed: dict[str, None] = {}
        self._sizers: dict[str, TokenSizer] = {}
        self._lowest_used: int | None = None  # the lowest position asked for since the last trim
        self._since_trim = 0
        self._lock = Lock()

    def add(self, step: Step) -> None:
        """Add a step that was just appended, so that it need not be read or checked."""
        with self._lock:
            if self._steps and step.parent == self._steps[-1].id:
                self._extend([step], is_recorded_here=True)

    def get_sizer(self, shared: TokenSizer) -> TokenSizer:
        """Return a sizer with the same counter that caches this thread's steps.

        Args:
            shared: The sizer of all sessions with that counter.
        """
        sizer = self._sizers.get(shared.name)
        if sizer is None or sizer.counter is not shared.counter:
            if len(self._sizers) >= MAX_SIZERS:
                self._sizers.clear()
            self._sizers[shared.name] = sizer = TokenSizer(shared.counter)
        return sizer

    def get_step(self, step_id: str) -> Step:
        """Return the step with an id, from the ledger if it is not cached.

        Raises:
            LedgerError: The ledger has no such step.
        """
        with self._lock:
            if step_id in self._positions:
                return self._get_known(step_id)
            if step_id not in self._single_steps:
                step = self._ledger.step(step_id)
                if step is None:
                    hint = "`nexus ledger verify` says what is missing"
                    raise LedgerError(f"there is no step {step_id}", where=self._ledger.url, hint=hint)
                self._single_steps = dict([(step_id, step), *self._single_steps.items()][:MAX_CACHED_RANGES])
                self._unchecked.append(step)
            return self._single_steps[step_id]

    def read_turn(self, tip: str) -> list[Step]:
        """Return the steps of a step's turn, up to that step."""
        with self._lock:
            self._read_up_to(tip)
            turn = self._get_known(tip).turn
        return self.read_since(turn, tip)

    def read_since(self, first: str, tip: str) -> list[Step]:
        """Return the steps from `first` to `tip`, both included.

        Raises:
            LedgerError: `first` is not an ancestor of `tip`.
        """
        with self._lock:
            self._read_up_to(tip)
            if first not in self._positions:
                earlier = self._ledger.step(first)
                if earlier is not None:
                    self._read_back_to(earlier.position)
            if first not in self._positions or self._positions[first] > self._positions[tip]:
                raise LedgerError(
                    f"step {first} is not among those before {tip}",
                    where=self._ledger.url,
                    hint="`nexus ledger verify` says what is wrong",
                )
            return self._slice(self._positions[first], tip)

    def read_range(self, first: str, last: str) -> list[Step]:
        """Return the steps from `first` to `last`, both included.

        The steps after them are not read.
        """
        with self._lock:
            if first in self._positions and last in self._positions:
                return self._slice(self._positions[first], last)
            if (first, last) not in self._ranges:
                self._ranges = {(first, last): self._ledger.thread(last, first=first), **self._ranges}
                self._ranges = dict(list(self._ranges.items())[:MAX_CACHED_RANGES])
                self._unchecked += self._ranges[first, last]
            return self._ranges[first, last]

    def read_newest(self, tip: str, is_enough: Callable[[Sequence[Step]], bool]) -> list[Step]:
        """Return the newest steps up to `tip`, until `is_enough` or all are read."""
        with self._lock:
            self._read_up_to(tip)
            count = STEPS_OF_FIRST_READ
            while True:
                first = max(0, self._positions[tip] - count + 1)
                self._read_back_to(first)
                steps = self._slice(first, tip)
                if first == 0 or is_enough(steps):
                    return steps
                count *= 2

    def list_changed_steps(self) -> tuple[str, ...]:
        """Return the ids of steps read so far whose content was changed."""
        with self._lock:
            self._check_new_steps()
            return tuple(self._changed)

    def _check_new_steps(self) -> None:
        new, self._unchecked = self._unchecked, []
        self._changed |= {step.id: None for step in new if isinstance(step, StoredStep) and not step.is_as_recorded}

    def _read_up_to(self, tip: str) -> None:
        """Read forward until a step is cached."""
        if tip in self._positions:
            return
        newer: list[Step] = []
        if self._steps:
            with suppress(LedgerError):  # the tip is before all cached steps, or on another branch
                newer = self._ledger.thread(tip, first=self._steps[-1].id)
        if newer and newer[0].id == self._steps[-1].id:
            self._extend(newer[1:])
            return
        self._steps.clear()
        self._positions.clear()
        self._extend(self._ledger.thread(tip, limit=STEPS_OF_FIRST_READ))

    def _read_back_to(self, position: int) -> None:
        """Read backward until a position is cached."""
        first = self._steps[0]
        if first.position > position and first.parent is not None:
            earlier = self._ledger.thread(first.parent, limit=first.position - position)
            self._steps[:0] = earlier
            self._positions.update((step.id, step.position) for step in earlier)
            self._unchecked += earlier

    def _extend(self, steps: Sequence[Step], *, is_recorded_here: bool = False) -> None:
        self._since_trim += len(steps)
        if self._since_trim >= STEPS_BETWEEN_TRIMS:
            self._trim()
        self._steps += steps
        if not is_recorded_here:
            self._unchecked += steps
        self._positions.update((step.id, step.position) for step in steps)

    def _trim(self) -> None:
        """Drop the steps before all that were used since the last trim.

        The newest step stays.
        """
        self._check_new_steps()
        if self._steps:
            newest = self._steps[-1].position
            count = (newest if self._lowest_used is None else min(self._lowest_used, newest)) - self._steps[0].position
            for step in self._steps[:count]:
                del self._positions[step.id]
            del self._steps[:count]
        self._lowest_used, self._since_trim = None, 0
        for sizer in self._sizers.values():
            sizer.retain(self._positions)

    def _get_known(self, step_id: str) -> Step:
        return self._steps[self._positions[step_id] - self._steps[0].position]

    def _slice(self, first: int, tip: str) -> list[Step]:
        start = self._steps[0].position
        self._lowest_used = first if self._lowest_used is None else min(self._lowest_used, first)
        return self._steps[first - start : self._positions[tip] - start + 1]
