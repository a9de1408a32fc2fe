"""What a program has last put together to be sent, so that the answer is known to be one to that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import ConflictError
from nexus_core.session.steps.numbering import SILENT

if TYPE_CHECKING:
    from nexus_core.session.steps.state import State
    from nexus_core.session.thread.thread import SessionThread
    from nexus_core.types.budget import TokenBudget


class LastCall:
    """The newest step when something was last put together to be sent, and what that took.

    Args:
        thread: The session.
    """

    def __init__(self, thread: SessionThread) -> None:
        self._thread = thread
        self._tip: str | None = None
        self._taken: TokenBudget | None = None

    def remember(self, tip: str, taken: TokenBudget) -> None:
        """Something is about to be sent."""
        self._tip, self._taken = tip, taken

    def forget(self) -> None:
        """It was answered."""
        self._tip = None

    def taken(self, state: State) -> TokenBudget | None:
        """What was taken by what was sent from where a session stands; None where nobody can know."""
        if self._tip is not None and self.is_unmoved(state):
            return self._taken
        return None if state.tip is None else self._thread.sent_at(state.tip)

    def sent_from(self, state: State) -> str | None:
        """The step from which it was sent, where that is not the newest any more."""
        return None if state.tip is None or self._tip == state.tip.id else self._tip

    def is_unmoved(self, state: State) -> bool:
        """Whether nothing was said since; a summary may have been made, or something pinned."""
        tip = None if state.tip is None else state.tip.id
        if self._tip is None or self._tip == tip:
            return True
        since = [] if tip is None else self._thread.tail.since(self._tip, tip)[1:]
        return tip is not None and all(step.kind in SILENT and "popped" not in step.data for step in since)

    def ensure_unmoved(self, state: State) -> None:
        """A reply to something older than what is recorded is no reply to that.

        Raises:
            ConflictError: Something was said since.
        """
        if not self.is_unmoved(state):
            raise ConflictError(
                f"somebody else has gone on with session {self._thread.label!r} since this call was made",
                hint="this reply is not recorded: call next() to go on from where the session is, or fork it",
                command="this reply is not recorded: `nexus session record NAME` says where the session stands now",
            )
