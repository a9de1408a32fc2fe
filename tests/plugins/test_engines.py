"""Counting with splintr, which is optional: the same numbers as with tiktoken, or tiktoken's."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from binascii import crc32
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import splintr
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.context import TiktokenCounter
from nexus_plugins.tiktoken_counter import _counter
from nexus_plugins.tiktoken_counter._counter import PROBE_CHECKSUMS, PROBE_TEXT, load_engine, load_splintr
from nexus_plugins.tiktoken_counter._tables import load_encoder
from tests.conftest import ROOT
from tests.effort import examples
from tests.tables import count

TABLES = pytest.mark.parametrize("table", PROBE_CHECKSUMS)
SAMPLES = sorted((ROOT / "tests/tokens/samples").glob("*.txt"))
ODD = (
    "aA1 \n\r\t.,'sStd\u2019éßñ你好日本語한국어🙂👩\u200d\u0301\x00\x85\u2028\xa0\u3000\u202e"
    '<|>_-/{}"\u017f\u212a\u0130\u0131\u0663\u096bⅷ½\U0001d7ce\ufffdअनुमกำ'
)
"""What the patterns of tokenisers tell apart: kinds of letters, digits, blanks, ends of lines and marks."""


@pytest.fixture
def anew() -> Iterator[None]:
    """Encoders are made anew, before and after."""
    load_engine.cache_clear()
    yield
    load_engine.cache_clear()


def own(table: str, text: str) -> list[int]:
    return load_encoder(table).encode_ordinary(text)


def fast(table: str, text: str) -> list[int]:
    encode = once(table)
    assert encode is not None
    return encode(text)


once = cache(load_splintr)
"""As a process does it: an encoder is made once."""


# ---- the same tokens ------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("K-02")
@TABLES
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_texts_of_all_kinds_have_the_tokens_that_tiktoken_gives_them(table: str, sample: Path) -> None:
    text = sample.read_text(encoding="utf-8")

    assert fast(table, text) == own(table, text)


@pytest.mark.acceptance("K-02")
@TABLES
@settings(max_examples=examples(300))
@given(text=st.text(st.sampled_from(ODD), max_size=40) | st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_has_the_tokens_that_tiktoken_gives_it(table: str, text: str) -> None:
    assert fast(table, text) == own(table, text)


@pytest.mark.slow
@TABLES
def test_many_short_texts_have_the_tokens_that_tiktoken_gives_them(table: str) -> None:
    chance = random.Random(3)  # noqa: S311 - the same texts every time
    encode, tiktoken = once(table), load_encoder(table).encode_ordinary
    assert encode is not None

    texts = ("".join(chance.choices(ODD, k=chance.randrange(1, 40))) for _ in range(30_000))
    differing = [text for text in texts if encode(text) != tiktoken(text)]

    count(30_000)
    assert differing == []


@TABLES
@pytest.mark.parametrize("text", ["half \ud800 a character", "\ud83d\ude42", "\ude42\ud83d" * 20_000])
def test_halves_of_characters_count_as_with_tiktoken(table: str, text: str) -> None:
    assert TiktokenCounter(table).try_count(text) == len(own(table, text))


@TABLES
def test_the_text_that_is_tried_first_has_the_tokens_of_tiktoken(table: str) -> None:
    assert crc32(repr(own(table, PROBE_TEXT)).encode()) == PROBE_CHECKSUMS[table]


# ---- who counts -----------------------------------------------------------------------------------------------------


class Tokenizer:
    """One of another release, whose tables differ for some texts."""

    spoilt = ""

    def __init__(self, table: str) -> None:
        self._encode = load_encoder(table).encode_ordinary

    @classmethod
    def from_pretrained(cls, table: str) -> Tokenizer:
        return cls(table)

    def encode_ordinary(self, text: str) -> list[int]:
        return self._encode(text)[self.spoilt in text :]


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize(("spoilt", "text", "tokens"), [("2024", "Hello, wörld!", 6), ("мир", "Привет, мир!", 5)])
def test_one_that_gives_other_tokens_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, spoilt: str, text: str, tokens: int
) -> None:
    monkeypatch.setattr(Tokenizer, "spoilt", spoilt)
    monkeypatch.setattr(splintr, "Tokenizer", Tokenizer)

    assert TiktokenCounter("o200k_base").count(text) == len(own("o200k_base", text)) == tokens
    assert "it does not count as o200k_base says; upgrade or uninstall splintr-rs" in caplog.text


@pytest.mark.usefixtures("anew")
def test_one_that_cannot_be_used_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(splintr, "Tokenizer")

    assert TiktokenCounter("o200k_base").measure("Hello, world!") == (4, "exact")


@pytest.mark.usefixtures("anew")
def test_without_it_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_counter, "has_splintr", lambda: False)

    assert load_engine("o200k_base") == load_encoder("o200k_base").encode_ordinary
    assert TiktokenCounter("o200k_base").name == "tiktoken:o200k_base"


def test_with_it_tiktoken_is_not_even_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from nexus_core.context import get_token_counter\n"
        "print(get_token_counter('gpt-4o').count('Hello, world!'), 'tiktoken' in sys.modules)\n"
    )
    environment = {**os.environ, "NEXUS_HOME": str(tmp_path)}

    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=environment) == "4 False\n"
