"""Words of texts and questions."""

from __future__ import annotations

import sqlite3
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.memory.words import (
    MAX_QUERY_WORDS,
    compute_porter_stem,
    find_query_entities,
    find_query_words,
    find_shared_stems,
    find_stems,
    split_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Where did HTTPServer go?", ["where", "did", "http", "server", "httpserver", "go"]),
        ("snake_case and camelCase", ["snake", "case", "and", "camel", "case", "camelcase"]),
        ("src/auth/v2.py", ["src", "auth", "v2", "py"]),
        ("naïve Größe", ["naive", "grosse"]),
        ("東京に", ["東京", "京に"]),
        ("x" * 100, ["x" * 40]),
        ("\x00\ud800 😀", []),
    ],
)
def test_text_is_split_into_words(text: str, words: list[str]) -> None:
    assert list(split_words(text)) == words


def test_stop_words_have_no_stem_and_forms_share_one() -> None:
    assert list(find_stems(["the", "changes", "changed", "changing", "was"])) == ["chang"]


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=15), min_size=1, max_size=50))
def test_stems_are_those_of_sqlite(words: list[str]) -> None:
    file = sqlite3.connect(":memory:")
    file.execute("create virtual table words using fts5 (word, tokenize = 'porter ascii')")
    file.execute("create virtual table stems using fts5vocab (words, 'instance')")
    file.executemany("insert into words (rowid, word) values (?, ?)", list(enumerate(words)))

    found = dict(file.execute("select doc, term from stems").fetchall())

    assert [compute_porter_stem(word) for word in words] == [found[number] for number in range(len(words))]
    file.close()


@given(st.text(st.sampled_from("abeginrsyABY éx1 "), max_size=60), st.text(st.sampled_from("abeginrsy ")))
def test_common_stems_of_a_text_are_those_among_all_its_stems(text: str, question: str) -> None:
    stems = {word.stem for word in find_query_words(f"{question} {text[:10]}")}

    assert find_shared_stems(text, stems) == stems & find_stems(split_words(text)).keys()


_SUFFIXES = ("", "s", "es", "ed", "ing", "ies", "y", "ational", "ization", "ibility", "iveness", "enci", "logi", "ll")


@given(st.text(string.ascii_lowercase, min_size=1, max_size=8), st.sampled_from(_SUFFIXES), st.sampled_from(_SUFFIXES))
def test_stem_is_the_beginning_of_its_word_but_for_one_character(word: str, suffix: str, other: str) -> None:
    stem = compute_porter_stem(word + suffix + other)

    assert (word + suffix + other).startswith(stem[:-1] or stem)


def test_long_question_is_looked_up_by_its_first_words() -> None:
    assert len(find_query_words(" ".join(f"word{number}" for number in range(10_000)))) == MAX_QUERY_WORDS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("When did Caroline and Bob meet in May?", ["Caroline", "Bob"]),
        ("Summarize it. Then call Alice.", ["Alice"]),
        ("Why does src/auth/login.py fail with ERR-4711?", ["src/auth/login.py", "ERR-4711"]),
        ("what port does quux-7 use?", ["quux-7"]),
        ("What is getUserName or max_size in main.rs?", ["getUserName", "max_size", "main.rs"]),
        ("which commit, 3f2a9bc?", ["3f2a9bc"]),
        ("where did we change the middleware?", []),
    ],
)
def test_names_of_a_question_are_found(text: str, names: list[str]) -> None:
    assert sorted(find_query_entities(text)) == sorted(names)
