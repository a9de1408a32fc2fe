"""What items take, estimated once each; and how many branches are worth a session of their own.

A session can only be forked where a turn ended. A branch that leaves inside of one has all that was said in that turn
before, once more; a file made for it could become a thousand times as large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.session.importing.paths import Summed, backwards
from nexus_core.session.importing.runs import is_prompt
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.messages import count_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.session.importing.paths import Key, Path

MOST_BRANCHES = 1000
"""So many branches become sessions; of more, which nobody ever made by hand, the file alone tells."""
LEAST_ROOM = 100_000
"""Tokens that may be there twice in any case; else as many as the transcript has."""
ESTIMATE = SimpleTokenCounter()
"""Counting as a model does takes longer, and most of a long session is never sent again; what is, is counted then."""


class Weights:
    """What the items of a transcript take.

    Args:
        paths: The transcript.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._known: dict[Key, int] = {}

    def of(self, key: Key) -> int:
        """What an item takes; nothing for a compaction."""
        if key not in self._known:
            item = self._paths[key[0]].items[key[1]]
            self._known[key] = 0 if isinstance(item, Summed) else count_messages(ESTIMATE, (item.message,))
        return self._known[key]

    def worthy(self, order: Sequence[int]) -> set[int]:
        """The paths that become sessions: the main one, and as many branches as there is room for.

        The same for the same transcript, whatever of it is in the ledger already.

        Args:
            order: The paths, each behind the one it leaves.
        """
        if len(order) == 1:
            return {0}
        every = ((path, place) for path in order for place in range(len(self._paths[path].items)))
        room = max(LEAST_ROOM, sum(map(self.of, every)))
        found = {0}
        for number in order:
            again = self._again(number, room) if number else 0
            if again <= room and len(found) <= MOST_BRANCHES:
                found.add(number)
                room -= again
        return found

    def _again(self, number: int, most: int) -> int:
        """What of the turn in which a branch leaves is there twice; more than `most` is not told apart."""
        path = self._paths[number]
        found = 0
        for key in backwards(self._paths, path.leaves, path.at) if path.leaves is not None else ():
            item = self._paths[key[0]].items[key[1]]
            found += self.of(key)
            if is_prompt(item) or found > most:
                break
        return found
