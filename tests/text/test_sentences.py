from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.text.sentences import SentenceMatcher

TEXT = """# Rules

- **Silently ignore** files that
  are `generated`,
  even if they exist.
> 1. Use [the guide](docs/x.md) first \u2014 don\u2019t guess.

| a | b c |
snake_case_name stays
* [ ] one
* [x] two
Wait\u2026 what?
"""


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("- Silently ignore files that are generated", 3),
        ("silently ignore FILES that are generated, even", 3),
        ("- **Silently ignore** files \u2026", 3),
        ("Use the guide first - don't guess.", 6),
        ("use [the guide](docs/x.md) first", 6),
        ("a b c", 8),
        ("snake_case_name", 9),
        ("one two", 10),
        ("- one\n- two", 10),
        ("Rules\n\nSilently", 1),
        ("wait... what?", 12),
        ("log", None),
        ("filesthat", None),
        ("***", None),
        ("**", 3),
    ],
)
def test_sentence_is_found_in_its_line(sentence: str, line: int | None) -> None:
    assert SentenceMatcher(sentence).find_line(TEXT) == line


@pytest.mark.parametrize(
    ("sentence", "text", "is_found"),
    [
        ("Scoped rule", "**Unscoped** rule.", False),
        ("scoped rule", "Scoped rules", False),
        ("rule 1", "rule 12", False),
        ("scoped rule", "(un)scoped `rule`s and a scoped rule", True),
        ("scoped", "unscoped, Scoped", True),
        ("scoped ru\u2026", "scoped rules", True),
        ("case", "snake_case", True),
        ("\u4f7f\u7528", "\u8bf7\u4f7f\u7528\u5236\u8868\u7b26", True),
        ("tabs", "\u8bf7\u4f7f\u7528tabs\u7f29\u8fdb", True),
        ("\u0e43\u0e0a\u0e49", "\u0e42\u0e1b\u0e23\u0e14\u0e43\u0e0a\u0e49\u0e41\u0e17\u0e47\u0e1a", True),
    ],
)
def test_sentence_begins_and_ends_where_a_word_does(sentence: str, text: str, is_found: bool) -> None:
    assert (SentenceMatcher(sentence).find(text) is not None) == is_found


@given(st.text(alphabet="ab*_`~[]()>#-+1. \n\u2026", max_size=60), st.text(alphabet="ab*_`[]()>#- \n", max_size=20))
def test_sentence_is_found_wherever_it_is_as_it_is(text: str, sentence: str) -> None:
    if sentence.strip():
        assert SentenceMatcher(sentence).find(f"{text} {sentence.strip()} {text}") is not None


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("word c a zzz", "word " * 100_000 + "[a](b) **c** \n- " * 20_000 + "zzz"),
        ("b x", "b" + "[*" * 200_000 + " y"),
        ("- b x", "-" * 200_000 + " b"),
        ("a x", "a" + "\n> - " * 100_000 + "y x"),
        ("x " * 20_000, "x " * 100_000 + "y"),
    ],
)
def test_no_text_takes_long(sentence: str, text: str) -> None:
    SentenceMatcher(sentence).find(text)
