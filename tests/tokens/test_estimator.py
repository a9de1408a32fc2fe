"""Tokens from characters, held against the exact counts of the bundled tables."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.context import SimpleTokenCounter, TiktokenCounter
from nexus_core.tokens.estimator import _CLASSES, _LONE_SIGN, _PAIRS, _TO_CLASS, _beginnings, estimate
from nexus_core.values.counting import ModelCounter
from nexus_core.values.message import Message

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"), key=lambda path: path.stem)
ENCODINGS = ("cl100k_base", "o200k_base")
ANY_TEXT = st.text(st.characters(), max_size=3000)  # surrogates too


def test_an_estimate_is_at_most_10_percent_low_on_every_class_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for sample in SAMPLES:
        text = sample.read_text(encoding="utf-8")
        exact = [TiktokenCounter(encoding).count(text) for encoding in ENCODINGS]
        rows.append((sample.stem, exact, estimate(text)))

    lines = [f"\n{'text':<10}" + "".join(f"{name:>24}" for name in ENCODINGS) + f"{'estimate':>10}"]
    for name, exact, guess in rows:
        columns = "".join(f"{count:>14,} ({guess / count - 1:+7.1%})" for count in exact)
        lines.append(f"{name:<10}{columns}{guess:>10,}")
    with capsys.disabled():
        sys.stdout.write("\n".join([*lines, ""]))
    assert {"english", "code", "chinese", "japanese", "korean", "russian", "arabic", "json", "base64"} <= {
        name for name, _, _ in rows
    }
    assert [name for name, exact, guess in rows if guess < 0.9 * max(exact)] == []


@pytest.mark.acceptance("K-03")
@pytest.mark.parametrize("name", ["english", "code"])
def test_prose_and_code_have_4_characters_to_a_token(name: str) -> None:
    text = (Path(__file__).parent / "samples" / f"{name}.txt").read_text(encoding="utf-8")

    assert estimate(text) == -(-len(text) // 4)


@pytest.mark.acceptance("B-18")
@pytest.mark.parametrize("text", ["a" * 400, "word " * 80, "The quick brown fox jumps over the lazy dog. " * 20])
def test_ascii_is_estimated_by_its_length(text: str) -> None:
    assert estimate(text) == len(text) // 4


@pytest.mark.acceptance("B-18")
def test_100_chinese_characters_are_not_25_tokens() -> None:
    assert estimate("港务处早上七点开门" * 100) >= 0.9 * TiktokenCounter().count("港务处早上七点开门" * 100)


def test_a_blob_in_a_long_text_counts_as_a_blob() -> None:
    prose = (Path(__file__).parent / "samples/english.txt").read_text(encoding="utf-8")
    blob = (Path(__file__).parent / "samples/base64.txt").read_text(encoding="utf-8")
    text = prose * 5 + blob + prose * 5

    assert estimate(text) >= 10 * estimate(prose) + 0.7 * estimate(blob)


def test_only_no_text_has_no_tokens() -> None:
    assert estimate("") == 0
    assert all(estimate(text) >= 1 for text in (" ", "a", "\n", "\ud800"))


@given(ANY_TEXT)
def test_every_text_has_an_estimate_between_nothing_and_three_tokens_a_character(text: str) -> None:
    assert bool(text) <= estimate(text) <= 3 * len(text) + 1


@given(st.text(st.sampled_from("aB7 \n.(é"), max_size=60))
def test_tokens_begin_where_the_tables_say(text: str) -> None:
    data = text.encode()
    classes = "n" + "".join(_CLASSES[_TO_CLASS[byte]] for byte in data)
    pairs = ["".join(pair) for pair in pairwise(classes)]
    weights = {pair: weight for weight, group in _PAIRS for pair in group.split()}
    lone = [(first, second) for firsts, seconds in _LONE_SIGN for first in firsts.split() for second in seconds.split()]

    expected = sum(weights.get(pair, 0) for pair in pairs) + sum(pair in lone for pair in pairwise(pairs))
    assert _beginnings(data) == pytest.approx(expected)


@pytest.mark.acceptance("K-05")
def test_a_message_costs_4_tokens_more_than_its_words() -> None:
    counter = SimpleTokenCounter()

    assert counter.count_messages([Message("user", "word " * 80)] * 2) == 2 * (100 + 4)


@pytest.mark.acceptance("K-01", "C-29")
def test_it_is_a_counter_that_never_claims_to_be_exact() -> None:
    counter = SimpleTokenCounter()

    assert isinstance(counter, ModelCounter)
    assert counter.measure("word") == (1, "estimated")
    assert counter.count_many(["word", "two words"]) == [1, 3]
