"""Whatever a clock does, what was said keeps its order, and what was sent stays as it was."""

from __future__ import annotations

import pytest

from nexus_core.ledger.ledger import StoreLedger
from tests.session.conftest import EVERYWHERE, Clock, OpenNexus
from tests.session.support import says

pytestmark = pytest.mark.usefixtures("no_session_start")

NOW = 1_770_000_000_000
SECOND, HOUR = 1_000, 3_600_000
CLOCKS = {
    "an hour back": [NOW, NOW - HOUR, NOW - HOUR + SECOND, NOW],
    "ten years ahead and back": [NOW, NOW + 87_600 * HOUR, NOW + SECOND, NOW + 87_600 * HOUR],
    "the end of summer time": [1_792_889_940_000 + step * 30 * 60 * SECOND for step in range(4)],
    "the begin of summer time": [1_774_745_940_000 + step * 30 * 60 * SECOND for step in range(4)],
    "the same millisecond": [NOW] * 4,
    "standing, then going": [NOW, NOW, NOW + 1, NOW + 2],
    "1970": [0, 1, 0, 1],
    "2038": [(2**31 - 2) * SECOND, (2**31 - 1) * SECOND, 2**31 * SECOND, (2**31 + 1) * SECOND],
    "always earlier": [NOW - step * 24 * HOUR for step in range(4)],
}


@EVERYWHERE
@pytest.mark.acceptance("R9")
@pytest.mark.parametrize("times", CLOCKS.values(), ids=CLOCKS)
def test_a_conversation_goes_on_under_any_clock(
    open_nexus: OpenNexus, ledger: StoreLedger, clock: Clock, times: list[int]
) -> None:
    session = open_nexus().session("s", model="gpt-4o")
    sent = []
    for number, ms in enumerate(times):
        clock.ms = ms
        sent.append(session.ask(f"question {number}").messages)
        session.record(says(f"answer {number}", name=f"msg_{number}"))

    assert [message.content.splitlines()[-1] for message in session.messages] == [
        f"{what} {number}" for number in range(4) for what in ("question", "answer")
    ]
    assert sent == [sent[-1][: len(each)] for each in sent]
    assert list(ledger.verify()) == []
