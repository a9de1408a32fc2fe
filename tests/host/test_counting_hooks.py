"""Hooks about models, counters and truncations."""

from __future__ import annotations

from collections.abc import Sequence

from nexus_core import Nexus, hookimpl
from nexus_core.plugin import Model, Problem, Truncation
from nexus_core.values.message import Message


class Fixed:
    """A counter that always says 7."""

    name = "fixed"
    exact = True

    def count(self, text: str) -> int:  # noqa: ARG002 - it is not a good counter
        return 7

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [7 for _ in texts]

    def count_messages(self, messages: Sequence[Message]) -> int:
        return 7 * len(messages)


class Acme:
    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="acme-large", window=64_000), Model(name="gpt-4o", window=1000)]

    @hookimpl
    def nexus_token_counter(self, model: str) -> Fixed | None:
        return Fixed() if model.startswith("acme-") else None

    @hookimpl
    def nexus_truncations(self) -> list[Truncation]:
        return [
            Truncation("oldest_first", lambda _groups, _budget: []),
            Truncation("none", lambda _groups, _budget: []),
        ]


class Wrong:
    @hookimpl
    def nexus_token_counter(self) -> int:
        return 4


def test_what_a_plugin_says_of_a_model_replaces_what_ships() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        models = nexus.host.models()

    assert models["acme-large"].window == 64_000
    assert models["gpt-4o"].window == 1000


def test_a_plugin_that_answers_counts_before_the_bundled_one() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        counter = nexus.host.token_counter("acme-large", "")

    assert counter is not None
    assert (counter[0].count("hello"), counter[1]) == (7, "Acme")


def test_a_plugin_that_answers_none_leaves_it_to_the_others() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        counter = nexus.host.token_counter("gpt-4o", "o200k_base")

    assert counter is not None
    assert (counter[0].name, counter[1]) == ("tiktoken:o200k_base", "tiktoken_counter")


def test_something_that_does_not_count_is_blamed_and_the_next_is_asked() -> None:
    problems: list[Problem] = []
    with Nexus(layers=False, plugins=[Wrong()], report=problems.append, strict=False) as nexus:
        counter = nexus.host.token_counter("gpt-4o", "o200k_base")

    assert counter is not None
    assert "returned int, expected a ModelCounter or None" in problems[0].message


def test_hooks_about_what_a_plugin_is_like_are_asked_once() -> None:
    asked = []

    class Counted:
        @hookimpl
        def nexus_truncations(self) -> list[Truncation]:
            asked.append(1)
            return []

    with Nexus(layers=False, plugins=[Counted()]) as nexus:
        nexus.host.truncations()
        nexus.host.truncations()

    assert asked == [1]
