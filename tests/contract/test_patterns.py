"""No regular expression takes more than linear time, whatever the text, and its name tells whether it is compiled."""

from __future__ import annotations

import re
from time import thread_time

import pytest

from tests.effort import sampled
from tests.hostile_patterns import ROOT, find_passed_names, find_patterns, list_modules, write_hostile_texts
from tests.tables import count
from tests.timing import assert_linear

LENGTHS = tuple(25 * 2**step for step in range(10))
"""The longest is enough for a square to be seen; what grows faster is seen long before, while it still ends."""
MEASURABLE_SECONDS = 0.01
BOUNDED = {"nexus_core.memory.words._SENTENCE_START": "reads the 50 characters before a word"}
"""Expressions that are given short texts only, and why."""


def apply_pattern(pattern: re.Pattern[str], text: str, *, searches: bool) -> None:
    if searches:
        for _ in pattern.finditer(text):
            pass
    else:
        pattern.match(text)
        pattern.fullmatch(text)


def assert_pattern_linear(pattern: re.Pattern[str], text: str, *, searches: bool) -> None:
    """Find the length from which the time can be measured, and compare it with the time of a quarter of it."""

    def apply(length: int) -> None:
        apply_pattern(pattern, text[:length] + text[-1], searches=searches)

    for length in LENGTHS:
        start = thread_time()
        apply(length)
        if thread_time() - start > MEASURABLE_SECONDS:
            assert_linear(apply, length // 4, length)


def assert_texts_linear(pattern: re.Pattern[str], *, searches: bool) -> int:
    """Try every hostile text of an expression, and return how many there are."""
    texts = list(write_hostile_texts(pattern, LENGTHS[-1]))
    for text in texts:
        assert_pattern_linear(pattern, text, searches=searches)
    return len(texts)


@pytest.mark.acceptance("T18")
@pytest.mark.parametrize("module", sampled(list_modules(), one_in=8))
def test_every_pattern_takes_time_in_proportion_to_the_length_of_a_text(module: str) -> None:
    for used in find_patterns(module):
        if used.name not in BOUNDED:
            count(assert_texts_linear(used.pattern, searches=used.searches))


@pytest.mark.acceptance("T18")
@pytest.mark.parametrize(
    ("pattern", "searches"),
    [(r"a*b", True), (r"\s*(?:x\s+)?\s*!", False), (r"\w*LIB\w*PATH", False)],
)
def test_slow_pattern_is_recognized(pattern: str, searches: bool) -> None:
    with pytest.raises(AssertionError, match="times as long"):
        assert_texts_linear(re.compile(pattern), searches=searches)


def test_a_string_that_a_function_of_re_compiles_is_found() -> None:
    found = {used.name: used.searches for used in find_patterns("nexus_core.text.safety")}

    assert found["nexus_core.text.safety._HIDDEN_RUN_PATTERN"]
    assert not found["nexus_core.text.safety._JOINING_SCRIPT_PATTERN"]


def test_a_constant_is_called_pattern_if_it_is_a_text_that_re_compiles() -> None:
    wrong = []
    for path in [*(ROOT / "nexus_core").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        source = path.read_text(encoding="utf-8")
        compiled = set(re.findall(r"^(\w+)(?:: .+)? = re\.compile\(", source, re.MULTILINE))
        texts = {name for name in find_passed_names(source) if name.isupper()}
        wrong += [f"{path.name}: {name}" for name in compiled if name.endswith("_PATTERN")]
        wrong += [f"{path.name}: {name}" for name in texts if not name.endswith("_PATTERN")]

    assert wrong == []
