"""Embedders: vectors that order the memories which words have found, after the first ten."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nexus_core import Nexus, Source, hookimpl
from nexus_core.memory.recall import UNREORDERED_MEMORIES
from nexus_core.plugin import Embedder, Memory, MemoryQuery, MemorySource
from nexus_core.testing import check_plugin, write_files

TEXTS = [f"Fact {number:02d} about the middleware." for number in range(30)]


class Wiki:
    """A source with thirty memories, and an embedder that is near to the last of them."""

    def __init__(self, embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] | None = None) -> None:
        self.embed = embed or self.prefer_last
        self.limits: list[int] = []
        self.embedded: list[Sequence[str]] = []

    def prefer_last(self, texts: Sequence[str]) -> list[list[float]]:
        self.embedded.append(texts)
        return [[1.0, 0.0], *([1.0, float(30 - int(text.split()[1]))] for text in texts[1:])]

    def search(self, query: MemoryQuery) -> list[Memory]:
        self.limits.append(query.limit)
        return [
            Memory(text=text, kind="note", source=Source(uri=f"/wiki/{text}"), score=0.9)
            for text in TEXTS[: query.limit]
        ]

    @hookimpl
    def nexus_memory_sources(self) -> list[MemorySource]:
        return [MemorySource(name="wiki", search=self.search)]

    @hookimpl
    def nexus_embedders(self) -> list[Embedder]:
        return [Embedder(name="last", embed=self.embed)]


def recall(work: Path, home: Path, wiki: Wiki, embedder: str | None = "last") -> tuple[list[str], list[str]]:
    """The texts of twelve memories, and the findings."""
    write_files(home, {"config.json": json.dumps({"memory": {"sources": ["wiki"], "embedder": embedder}})})
    with Nexus(work, plugins=[wiki], defaults=False) as nexus:
        found = nexus.recall("What about the middleware?", limit=12)
    return [each.text for each in found.memories], [each.message for each in found.findings]


def test_without_an_embedder_words_decide(work: Path, nexus_home: Path) -> None:
    wiki = Wiki()

    texts, findings = recall(work, nexus_home, wiki, embedder=None)

    assert (texts, findings) == (TEXTS[:12], [])
    assert wiki.embedded == []


def test_an_embedder_orders_what_follows_the_first_memories(work: Path, nexus_home: Path) -> None:
    texts, findings = recall(work, nexus_home, Wiki())

    assert findings == []
    assert texts[:UNREORDERED_MEMORIES] == TEXTS[:UNREORDERED_MEMORIES]
    assert set(texts[UNREORDERED_MEMORIES:]) == {TEXTS[10], TEXTS[29]}


def test_an_embedder_gets_no_secrets(work: Path, nexus_home: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    wiki = Wiki()

    with Nexus(work, plugins=[wiki], defaults=False) as nexus:
        write_files(nexus_home, {"config.json": '{"memory": {"sources": ["wiki"], "embedder": "last"}}'})
        nexus.recall(f"What is {secret}?", limit=12)

    assert wiki.embedded
    assert secret not in str(wiki.embedded)


def fail(texts: Sequence[str]) -> list[list[float]]:
    raise KeyError(texts[0])


@pytest.mark.parametrize(
    ("embed", "reason"),
    [
        (fail, "KeyError"),
        (lambda texts: [[1.0]] * (len(texts) - 1), "vectors for"),
        (lambda texts: [[1.0] * number for number in range(1, len(texts) + 1)], "no common length"),
        (lambda texts: [[] for _ in texts], "no common length"),
        (lambda texts: [[float("nan")] for _ in texts], "not finite"),
        (lambda _: 7, "TypeError"),
        (lambda texts: [["x"] for _ in texts], "ValueError"),
    ],
)
def test_an_embedder_that_fails_is_a_finding_and_words_decide(
    work: Path, nexus_home: Path, embed: Callable[[Sequence[str]], list[list[float]]], reason: str
) -> None:
    texts, [finding] = recall(work, nexus_home, Wiki(embed))

    assert texts == TEXTS[:12]
    assert "the embedder 'last'" in finding
    assert reason in finding


def test_an_unknown_embedder_is_a_finding_with_the_nearest_name(work: Path, nexus_home: Path) -> None:
    texts, [finding] = recall(work, nexus_home, Wiki(), embedder="lost")

    assert texts == TEXTS[:12]
    assert "no plugin offers the embedder 'lost' of memory.embedder; did you mean 'last'?" in finding


def test_a_vector_of_zeros_is_near_to_nothing(work: Path, nexus_home: Path) -> None:
    texts, findings = recall(work, nexus_home, Wiki(lambda given: [[0.0, 0.0] for _ in given]))

    assert (texts, findings) == (TEXTS[:12], [])


class Lengths:
    """A second embedder: the lengths of words."""

    @hookimpl
    def nexus_embedders(self) -> list[Embedder]:
        return [Embedder(name="lengths", embed=lambda texts: [[len(text), text.count(" ")] for text in texts])]


def test_the_check_of_plugins_calls_embedders() -> None:
    class Broken:
        @hookimpl
        def nexus_embedders(self) -> list[Embedder]:
            return [Embedder(name="broken", embed=lambda _: [])]

    assert check_plugin(Lengths()) == []
    assert "0 vectors for 3 texts" in str(check_plugin(Broken()))
