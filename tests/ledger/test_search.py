"""What was found is told in as many words as there is room for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexus_core.ledger.search import excerpt


@given(
    st.text("ab ", max_size=60), st.text("xy", min_size=1, max_size=5), st.text("ab ", max_size=60), st.integers(5, 50)
)
def test_what_was_sought_is_in_what_is_left_of_a_text(before: str, sought: str, after: str, most: int) -> None:
    text = before + sought + after

    cut = excerpt(text, sought, most)

    assert sought in cut
    assert cut.strip("…") in text
    assert len(cut.strip("…")) == min(most, len(text))


@given(st.text(max_size=60), st.integers(1, 50))
def test_of_a_text_without_it_the_beginning_is_left(text: str, most: int) -> None:
    assert excerpt(text, "\0" * 70, most).removesuffix("…") == text[:most].removesuffix("…")
