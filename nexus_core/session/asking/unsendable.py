"""What nobody should send as it stands, because it is not the model's turn to speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.assembly.sent import Sent
    from nexus_core.session.steps.turns import Turn

NOTHING_SAID = "nothing-said"
CALLS_WAITING = "calls-waiting"


def find_unsendable(turn: Turn, sent: Sequence[Sent]) -> Iterator[Finding]:
    """Why an API would refuse a call, or answer something else than one thinks.

    Args:
        turn: The newest turn, open or not.
        sent: The messages of the call.
    """
    if turn.pending:
        waiting = ", ".join(map(str, turn.pending))
        yield Finding(CALLS_WAITING, f"{waiting}: the result is not recorded yet, and an API would refuse this call")
    elif not turn.is_open and sent and sent[-1].message.role == "assistant":
        what = (
            "no turn is open, and the last word is the model's: an API would refuse this call, or go on writing there"
        )
        yield Finding(NOTHING_SAID, f"{what}; a message opens a turn")
