from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.context import TiktokenCounter
from nexus_core.tokens.tokenizers import MAX_PIECE_BYTES, cut_pieces
from nexus_plugins.tiktoken_counter._tables import load_encoder

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"))


@given(st.text(max_size=500), st.integers(12, 200))
def test_the_pieces_are_the_text_and_none_is_too_large(text: str, limit: int) -> None:
    pieces = list(cut_pieces(text, limit))

    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= limit for piece in pieces)


@pytest.mark.parametrize("limit", [0, 1, 2, 11])
@pytest.mark.parametrize("text", ["aaaa", "中中中", "a 中"])
def test_however_small_the_limit_a_piece_has_a_character(text: str, limit: int) -> None:
    pieces = list(islice(cut_pieces(text, limit), 10))

    assert "".join(pieces) == text
    assert all(pieces)


def test_a_short_text_is_one_piece() -> None:
    assert list(cut_pieces("word " * 100)) == ["word " * 100]
    assert list(cut_pieces("")) == [""]


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_cutting_a_real_text_does_not_change_its_count(sample: Path, encoding: str) -> None:
    text = sample.read_text(encoding="utf-8")
    encode = load_encoder(encoding).encode_ordinary

    for limit in (300, 1000, 3000):
        assert sum(len(encode(piece)) for piece in cut_pieces(text, limit)) == len(encode(text))


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("text", ["1" * 200_000, "line\r\n" * 30_000, "don't " * 30_000, "a1" * 80_000, "é " * 50_000])
def test_cutting_a_monotonous_text_does_not_change_its_count(text: str, encoding: str) -> None:
    assert len(list(cut_pieces(text))) > 1
    assert TiktokenCounter(encoding).count(text) == len(load_encoder(encoding).encode_ordinary(text))


def test_a_run_without_any_border_is_cut_anyway() -> None:
    text = "a" * (2 * MAX_PIECE_BYTES)

    pieces = list(cut_pieces(text))

    assert len(pieces) == 3
    whole = len(load_encoder("o200k_base").encode_ordinary(text))
    assert abs(TiktokenCounter("o200k_base").count(text) - whole) <= 2 * len(pieces)
