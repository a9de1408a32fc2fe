"""Each text is counted once in its life."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from nexus_core import PluginError
from nexus_core.context import SimpleTokenCounter
from nexus_core.plugin import TextCounter
from nexus_core.tokens.count_cache import CountCache
from nexus_core.tokens.counters import CachingCounter
from nexus_core.types.budget import ModelCounter, TokenCount
from nexus_core.types.messages import Message, Text, ToolCall


class Words(TextCounter):
    """Counts words, and remembers what it was asked; the word "hard" is too much for it."""

    def __init__(self, *, exact: bool = True) -> None:
        self.name = "words"
        self.exact = exact
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        tokens = self.try_count(text)
        return 99 if tokens is None else tokens

    def try_count(self, text: str) -> int | None:
        self.asked.append(text)
        return None if "hard" in text else len(text.split())


@pytest.fixture
def cache(tmp_path: Path) -> CountCache:
    return CountCache(tmp_path / "counts")


def test_a_text_is_counted_once() -> None:
    words = Words()
    counter = CachingCounter(words)

    counts = [counter.count("two words"), counter.count("two words"), *counter.count_many(["two words"] * 3)]

    assert counts == [2] * 5
    assert words.asked == ["two words"]


def test_texts_that_python_has_encoded_meanwhile_are_dropped_at_the_same_limit() -> None:
    words = Words()
    counter = CachingCounter(words, memory=100_000)
    texts = [f"{'ä' * 1000}{number}" for number in range(200)]

    with closing(sqlite3.connect(":memory:")) as database:
        for text in texts:
            counter.count(text)
            database.execute("select ?", (text,))  # the object keeps its UTF-8 form from now on
    asked = len(words.asked)
    kept = list(takewhile(lambda text: counter.count(text) and len(words.asked) == asked, reversed(texts)))

    assert 20 <= len(kept) <= 100


def test_a_text_of_a_message_is_counted_once_and_so_is_all_of_a_conversation() -> None:
    words = Words()
    counter = CachingCounter(words)
    messages = [Message("user", "hello you"), Message("assistant", (Text("well"), ToolCall("1", "run", {"x": 1})))]

    sizes = [counter.count_messages(messages) for _ in range(10)]

    assert set(sizes) == {2 + 4 + 1 + 1 + 1 + 4}
    assert words.asked == ["hello you", "well", "run", '{"x":1}']


def test_another_process_does_not_count_it_again(cache: CountCache) -> None:
    first, second = Words(), Words()

    assert CachingCounter(first, cache).measure("two words") == (2, "exact")
    assert CachingCounter(second, cache).measure("two words") == (2, "cached")
    assert second.asked == []


def test_the_second_time_a_count_is_cached() -> None:
    counter = CachingCounter(Words())

    assert [counter.measure("a b"), counter.measure("a b")] == [(2, "exact"), (2, "cached")]


def test_a_counter_that_is_not_the_models_own_gives_estimates_that_are_kept_too(cache: CountCache) -> None:
    first, second = Words(exact=False), Words(exact=False)

    assert [CachingCounter(first, cache).measure("a b") for _ in range(2)] == [(2, "estimated")] * 2
    assert CachingCounter(second, cache).measure("a b") == (2, "estimated")
    assert second.asked == []


def test_what_the_tokeniser_could_not_count_is_not_kept_for_others(cache: CountCache) -> None:
    counter = CachingCounter(Words(), cache)

    assert [counter.measure("hard text"), counter.measure("hard text")] == [(99, "estimated")] * 2
    words = Words()
    assert CachingCounter(words, cache).measure("hard text") == TokenCount(99, "estimated")
    assert words.asked


def test_a_counter_with_a_way_of_its_own_with_messages_is_asked() -> None:
    class Chat(Words):
        def count_messages(self, messages: object) -> int:
            return 1000 + len(list(messages))  # type: ignore[call-overload]

    assert CachingCounter(Chat()).count_messages([Message("user", "hi")]) == 1001


def test_a_counter_of_a_stranger_needs_no_base_class(cache: CountCache) -> None:
    class Plain:
        name, exact = "plain", True

        def count(self, text: str) -> int:
            return len(text)

        def count_many(self, texts: list[str]) -> list[int]:
            return [len(text) for text in texts]

        def count_messages(self, messages: list[Message]) -> int:
            return 7 * len(messages)

    plain: ModelCounter = Plain()  # type: ignore[assignment]
    counter = CachingCounter(plain, cache)

    assert counter.measure("four") == (4, "exact")
    assert counter.count_messages([Message("user", "hi")]) == 7
    assert isinstance(counter, ModelCounter)


def test_memory_is_bounded_and_forgets_the_oldest_first() -> None:
    words = Words()
    counter = CachingCounter(words, memory=10_000)
    texts = [f"text {number}" for number in range(500)]
    counter.count_many(texts)

    words.asked.clear()
    counter.count_many(reversed(texts))

    forgotten = len(words.asked)
    assert 400 < forgotten < 500
    assert words.asked == texts[forgotten - 1 :: -1]


def test_a_huge_text_does_not_push_out_all_others() -> None:
    words = Words()
    counter = CachingCounter(words, memory=10_000)
    counter.count("small")
    counter.count("word " * 10_000)

    words.asked.clear()
    counter.count("small")

    assert words.asked == []


def test_estimates_are_remembered_as_estimates() -> None:
    counter = CachingCounter(SimpleTokenCounter())

    assert [counter.measure("word"), counter.measure("word")] == [(1, "estimated")] * 2
    assert not counter.exact


class Strange:
    """A counter of somebody else, which derives from nothing of ours and answers whatever it is told to."""

    name = "strange"
    exact = True

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def count(self, text: str) -> Any:  # noqa: ARG002 - part of the contract
        return self._answer()

    def count_many(self, texts: Iterable[str]) -> Any:
        return [self._answer() for _ in texts]

    def count_messages(self, messages: Sequence[Message]) -> Any:  # noqa: ARG002 - as above
        return self._answer()


class StrangeText(Strange, TextCounter):
    """The same, derived from ours."""


@pytest.mark.parametrize("kind", [Strange, StrangeText])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda: 1 // 0, "raised ZeroDivisionError"),
        (lambda: -1, "answered -1, expected a number of tokens"),
        (lambda: 1.5, "answered 1.5, expected a number of tokens"),
        (lambda: None, "answered None, expected a number of tokens"),
    ],
)
def test_a_counter_that_cannot_count_is_named(kind: type[Strange], answer: Callable[[], Any], words: str) -> None:
    counter = CachingCounter(kind(answer))

    asks: list[Callable[[], int]] = [lambda: counter.count("x"), lambda: counter.count_messages([Message("user", "x")])]
    for ask in asks:
        with pytest.raises(PluginError, match=f"nexus_token_counter: its counter 'strange' {words}"):
            ask()
