"""Who summarizes: the caller's function, those of plugins, and the one that is always there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nexus_core import Nexus, UnknownNameError, hookimpl
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers, find_summarizers
from nexus_core.plugin import LoadedLayers, Summarizer, SummaryRequest
from nexus_core.runner import run
from nexus_core.testing import check_plugin
from tests.compaction.threads import conversation, words


class Headlines:
    """A plugin that summarizes by the first words of what the user said."""

    @hookimpl
    def nexus_summarizers(self) -> list[Summarizer]:
        return [Summarizer(name="headlines", summarise=self.summarise, window=4000, asks_model=False)]

    def summarise(self, request: SummaryRequest) -> str:
        return "\n".join(message.content.split(",")[0] for message in request.messages if message.role == "user")


def chain(
    *names: str,
    plugins: tuple[object, ...] = (Headlines(),),
    given: Callable[[SummaryRequest], str | Awaitable[str]] | None = None,
) -> list[Summarizer]:
    with Nexus(layers=False, plugins=plugins, report=lambda _: None) as nexus:
        return find_summarizers(nexus.host, nexus.load(), names, given=given, count=words)


def test_the_chain_is_in_the_order_of_its_names() -> None:
    found = chain("extractive", "headlines", "extractive", "given", given=lambda _: "x")

    assert [(each.name, each.asks_model) for each in found] == [
        ("extractive", False),
        ("headlines", False),
        ("given", True),
    ]


def test_where_the_caller_gave_nothing_it_is_passed_over() -> None:
    assert [each.name for each in chain("given", "extractive")] == ["extractive"]


def test_a_name_that_nobody_answers_to_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'headlines'"):
        chain("headline")


def test_a_plugin_summarises() -> None:
    summary = run(ask_summarizers(SummaryTask(conversation(3), 400), chain("headlines", "extractive"), words))

    assert summary.summarizer == "headlines"
    assert summary.text.split("\n") == [f"Please look at src/part{number}.py" for number in range(3)]


def test_a_plugin_cannot_take_the_name_of_the_callers_own_summarizer() -> None:
    class Usurper:
        @hookimpl
        def nexus_summarizers(self, loaded: LoadedLayers) -> list[Summarizer]:  # noqa: ARG002 - it may be named
            return [Summarizer(name="given", summarise=lambda _: "mine")]

    assert chain("given", plugins=(Usurper(),)) == []


@pytest.mark.parametrize("fields", [{"name": "", "summarise": print}, {"name": "x", "summarise": "y"}])
def test_a_summarizer_must_have_a_name_and_a_function(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Summarizer\."):
        Summarizer(**fields)  # type: ignore[arg-type]


def test_such_a_plugin_keeps_the_contract() -> None:
    assert check_plugin(Headlines()) == []
