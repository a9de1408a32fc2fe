"""The bytes of imported steps: ids and digests are new each time, and everything else stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

import pytest

from benchmarks.measuring.sessions import claude, codex, pi
from nexus_core.ledger.in_memory import MemoryLedger
from tests.transfer.support import Line, format_lines, import_lines

_NEW = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
"""The ids that the ledger gives to steps and sessions."""


def digest_rows(ledger: MemoryLedger) -> str:
    """A digest of all steps without their own digests, in which ids are numbers in the order of their occurrence."""
    names: dict[str, str] = {}
    text = repr([row[:-2] for row in ledger.store.step_rows()])
    text = _NEW.sub(lambda found: names.setdefault(found[0], f"id {len(names)}"), text)
    return blake2b(text.encode(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (claude("def login(user):\n    …\n"), "2f6069dc821811e11d35f22f14879d01"),
        (codex("ünïcode \U0001f600 \ud83d"), "5055a063667a50ab8b33815396f29d6b"),
        (pi("{'expires': 3600}" * 300), "8029b7d446afe20cbd5247946cfbc141"),
    ],
    ids=["claude", "codex", "pi"],
)
def test_imported_steps_are_byte_for_byte_what_they_were(
    ledger: MemoryLedger, lines: Iterator[Line], expected: str
) -> None:
    import_lines(ledger, format_lines(*islice(lines, 200)))

    assert digest_rows(ledger) == expected
