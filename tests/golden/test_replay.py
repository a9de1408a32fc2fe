"""`nexus session replay` over a ledger that was recorded long ago: what was sent, byte for byte."""

from __future__ import annotations

import pytest

from tests.golden.cases import Case
from tests.golden.conftest import GoldenCase
from tests.golden.test_assemble import DIALECTS

AREA = "replay"
REPLIES = {
    "tools": 5,
    "tools-fork": 3,
    "chat": 2,
    "responses": 3,
    "gemini": 2,
    "bedrock": 2,
    "tagged": 3,
    "manager": 1,
    "reader": 0,
    "media": 2,
    "compacted": 8,
    "undone": 5,
    "automatic": 10,
    "refused": 7,
    "interrupted": 3,
    "agent": 1,
    "changed": 3,
    "cut": 8,
    "odd-texts": 1,
    "renamed": 1,
    "archived": 1,
}
"""The sessions that Nexus recorded, with the number of their replies."""
EVERYWHERE = (
    "tools",
    "chat",
    "responses",
    "gemini",
    "bedrock",
    "tagged",
    "media",
    "compacted",
    "interrupted",
    "odd-texts",
)
"""Those that are replayed in every dialect; the others in one that models often speak."""
TEXTS = ("tools", "tagged", "compacted", "automatic", "refused", "interrupted", "changed", "cut", "gemini")

CASES = {
    **{
        f"{label}-{dialect}": Case(f"session replay @{label}:reply:-1 --api {dialect}", ledger="stored")
        for label, number in REPLIES.items()
        if number
        for dialect in (DIALECTS if label in EVERYWHERE else ("anthropic",))
    },
    **{
        f"{label}-json": Case(f"session replay @{label}:reply:-1 --json", ledger="stored")
        for label, number in REPLIES.items()
        if number
    },
    **{
        f"{label}-reply-{place}": Case(f"session replay @{label}:reply:{place}", ledger="stored")
        for label in TEXTS
        for place in range(REPLIES[label])
    },
    "worker": Case("session replay manager/ --api anthropic", ledger="stored"),
    "by-session": Case("session replay tools --api openai", ledger="stored"),
    "by-turn": Case("session replay @tools:input:1 --api openai", ledger="stored"),
    "not-sent-by-nexus": Case("session replay claude-bakery-1", ledger="stored", fails=True),
    "no-reply": Case("session replay reader", ledger="stored", fails=True),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_sent_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case(AREA, name, CASES[name])
