"""What became of facts is told by class: still read, recoverable, lost."""

from __future__ import annotations

import pytest

from nexus_core.compaction.compose import fidelity_to_json, measure_fidelity, occurs_in
from nexus_core.types.compaction import Fact


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("12 ms", "It takes 12 ms."),
        ("src/a.py", "- [s1] src/a.py, src/b.py"),
        ("src/a.py", "I changed src/a.py."),
        ("ABC-1", "see ABC-1: done"),
        ("make", "`make`"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("src/a.py", "\u4fee\u6539src/a.py\u6587\u4ef6"),
    ],
)
def test_a_fact_stands_in_a_text(fact: str, text: str) -> None:
    assert occurs_in(fact, text)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("12 ms", "It takes 112 ms."),
        ("12 ms", "It takes 12 msec."),
        ("src/a.py", "lib/src/a.py"),
        ("src/a.py", "src/a.pyi"),
        ("ABC-1", "ABC-17 and XABC-1"),
        ("1.2.3", "11.2.3 and 1.2.3.4"),
        ("x", ""),
        ("\u6587", "\u6587\u4ef6"),
    ],
)
def test_a_part_of_something_longer_is_another_fact(fact: str, text: str) -> None:
    assert not occurs_in(fact, text)


def test_each_class_says_what_became_of_its_facts() -> None:
    facts = [
        Fact("path", "src/a.py", step="s1"),
        Fact("path", "src/b.py", step="s2"),
        Fact("path", "src/c.py", step="s3"),
        Fact("number", "12 ms"),
    ]

    fidelity = measure_fidelity(facts, "We changed src/a.py.", {("path", "src/b.py")})

    assert set(fidelity) == {"path", "number"}
    assert fidelity["path"].retained == ("src/a.py", "src/b.py")
    assert fidelity["path"].recoverable == {"src/c.py": "s3"}
    assert fidelity["number"].lost == ("12 ms",)
    assert fidelity["path"].total == 3
    assert fidelity_to_json(fidelity) == {
        "path": {"retained": 2, "recoverable": 1, "lost": 0},
        "number": {"retained": 0, "recoverable": 0, "lost": 1},
    }


def test_a_word_that_is_everywhere_inside_others_is_looked_for_only_so_often() -> None:
    assert not occurs_in("a", "ba" * 100_000 + " a")
