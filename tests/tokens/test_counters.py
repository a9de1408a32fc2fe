"""The counter for a model, from the plugins of a host."""

from __future__ import annotations

import gc
import logging
from typing import Any
from weakref import ref

import pytest

from nexus_core import Nexus, hookimpl
from nexus_core.context import SimpleTokenCounter, TiktokenCounter, TokenCounter, get_token_counter
from nexus_core.plugin import Model, TextCounter
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter, warn_about_estimates
from nexus_core.types.messages import Message, ToolCall
from nexus_core.types.settings import Settings

pytestmark = pytest.mark.usefixtures("nexus_home")


class Words(TextCounter):
    name, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())


class Acme:
    """A plugin that counts for models of its own, and knows one that the bundled table knows too."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="acme-*", window=1000, encoding="words"), Model(name="gpt-4o*", window=5, encoding="words")]

    @hookimpl
    def nexus_token_counter(self, model: str, encoding: str) -> TextCounter | None:
        self.asked.append((model, encoding))
        return Words() if encoding == "words" else None


def test_a_counter_that_does_not_count_says_what_to_define() -> None:
    class Silent(TextCounter):
        name, exact = "silent", False

    with pytest.raises(NotImplementedError, match=r"Silent does not count .*; define count\(text\)"):
        Silent().count("hello")


@pytest.mark.acceptance("K-04")
def test_tiktoken_is_preferred() -> None:
    counter = get_token_counter()

    assert isinstance(counter, TiktokenCounter)
    assert isinstance(counter, TokenCounter)
    assert counter.count("Hello, world!") == 4


@pytest.mark.acceptance("K-04")
def test_an_estimate_can_be_asked_for() -> None:
    assert isinstance(get_token_counter(use_tiktoken=False), SimpleTokenCounter)
    assert isinstance(get_token_counter("gpt-4o", use_tiktoken=False), SimpleTokenCounter)


@pytest.mark.acceptance("K-04")
def test_where_nobody_counts_tokens_are_estimated_with_one_warning(
    make_nexus: MakeNexus, caplog: pytest.LogCaptureFixture
) -> None:
    warn_about_estimates.cache_clear()
    host = make_nexus(disable=["tiktoken_counter"]).host

    with caplog.at_level(logging.WARNING, "nexus_core"):
        found = [open_counter(model, host=host) for model in ("", "gpt-4o", "gpt-4o")]

    assert all(isinstance(counter.counter, SimpleTokenCounter) for counter in found)
    assert found[0].measure("word " * 80) == (100, "estimated")
    assert [record.message for record in caplog.records] == [
        "no plugin counts tokens, so they are estimated; `nexus doctor` may say why"
    ]


@pytest.mark.acceptance("K-01")
def test_an_installed_plugin_counts_before_the_bundled_one(make_nexus: MakeNexus) -> None:
    acme = Acme()
    host = make_nexus(plugins=[acme]).host

    assert open_counter("acme-large", host=host).measure("two words") == (2, "exact")
    assert open_counter("o3", host=host).name == "tiktoken:o200k_base"
    assert acme.asked == [("acme-large", "words"), ("o3", "o200k_base")]


def test_what_an_installed_plugin_says_of_a_model_replaces_what_the_bundled_one_says(make_nexus: MakeNexus) -> None:
    host = make_nexus(plugins=[Acme()]).host

    assert get_model("gpt-4o-mini", host=host).window == 5
    assert get_model("gpt-4o-mini").window == 128_000


def test_plugins_are_asked_once_for_each_model(make_nexus: MakeNexus) -> None:
    acme = Acme()
    host = make_nexus(plugins=[acme]).host

    assert open_counter("acme-large", host=host) is open_counter("acme-large", host=host)
    assert acme.asked == [("acme-large", "words")]


def test_the_users_settings_say_which_tokeniser_a_model_has(make_nexus: MakeNexus) -> None:
    host = make_nexus().host
    settings = Settings({"models": {"acme-*": {"encoding": "cl100k_base", "window": 7}}})

    counter = open_counter("acme-large", host=host, settings=settings)

    assert (counter.name, counter.exact) == ("tiktoken:cl100k_base", True)
    assert (open_counter("acme-large", host=host).name, open_counter("acme-large", host=host).exact) == (
        "tiktoken:o200k_base",
        False,
    )
    assert get_model("acme-large", host=host, settings=settings).window == 7


def test_settings_of_models_are_checked(make_nexus: MakeNexus) -> None:
    good = make_nexus(files={".nexus3/config.json": '{"models": {"acme": {"window": 9, "encoding": "x"}}}'})
    assert get_model("acme", host=good.host, settings=good.load().settings).window == 9

    bad = make_nexus(files={".nexus3/config.json": '{"models": {"acme": {"windw": 9}}}'})
    with pytest.raises(Exception, match="windw"):
        bad.load()


@pytest.mark.slow
def test_a_host_that_is_gone_is_forgotten(make_nexus: MakeNexus) -> None:
    nexus: Nexus = make_nexus()
    open_counter("o3", host=nexus.host)
    host = ref(nexus.host)

    nexus.close()
    gc.collect()

    assert host() is None


@pytest.mark.parametrize("name", ["gpt-4oo", "gpt-5.55", "o33"])
def test_the_count_of_a_model_that_is_only_guessed_is_an_estimate(name: str, make_nexus: MakeNexus) -> None:
    host = make_nexus().host
    guessed, known = open_counter(name, host=host), open_counter("gpt-4o", host=host)

    assert known.exact
    assert (guessed.name, guessed.exact, guessed.measure("a few words").basis) == (known.name, False, "estimated")
    assert not get_token_counter(name).exact


def test_what_is_to_know_of_a_model_is_looked_up_once(make_nexus: MakeNexus) -> None:
    host, settings = make_nexus().host, Settings()

    found = find_model_finding("gpt-4oo", host=host, settings=settings)

    assert found is not None
    assert find_model_finding("gpt-4oo", host=host, settings=settings) is found


# ---- models without a public tokenizer ------------------------------------------------------------------------------


CALL = Message("assistant", [ToolCall("c1", "read", {"path": "README.md"})])


class Estimates(TextCounter):
    """A counter that does not know the model's tokenizer."""

    name, exact = "letters", False

    def count(self, text: str) -> int:
        return len(text)


class Unknown:
    """A plugin with a model whose tokenizer is not public."""

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [
            Model(name="acme", window=1000, token_factor=1.5, tool_call_tokens=10, count_error=0.2),
            Model(name="plain", window=1000),
        ]

    @hookimpl
    def nexus_token_counter(self) -> TextCounter:
        return Estimates()


def test_an_estimate_for_claude_is_higher_than_the_tokenizer_counts() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 100
    tokens = TiktokenCounter("o200k_base").count(text)

    assert open_counter("claude-sonnet-4-5").count(text) == round(tokens * 1.17)
    assert open_counter("claude-opus-4-7").count(text) == round(tokens * 1.55)
    assert open_counter("gpt-4o").count(text) == tokens


def test_a_tool_call_of_claude_has_an_overhead() -> None:
    plain, claude = open_counter("gpt-4o"), open_counter("claude-sonnet-4-5")

    assert claude.count_messages([CALL]) - plain.count_messages([CALL]) in range(60, 65)


def test_a_factor_corrects_counts_that_are_not_exact(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(plugins=[Unknown()])
    acme, plain = (open_counter(name, host=nexus.host) for name in ("acme", "plain"))

    assert (acme.count("abcdefghij"), plain.count("abcdefghij")) == (15, 10)
    assert acme.count_messages([CALL]) == 4 + 10 + round(1.5 * 4) + round(1.5 * len('{"path":"README.md"}'))
    assert (acme.name, acme.error, acme.describe_basis()) == ("letters*1.5+10", 0.2, "estimated ±20 %")
    assert (plain.name, plain.error, plain.describe_basis()) == ("letters", 0, "estimated")


def test_settings_override_the_factor_of_a_model(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(plugins=[Unknown()])
    settings = Settings({"models": {"acme": {"token_factor": 2, "tool_call_tokens": 0, "count_error": 0.05}}})
    counter = open_counter("acme", host=nexus.host, settings=settings)

    assert (counter.count("abcd"), counter.name) == (8, "letters*2")
    assert counter.describe_basis() == "estimated ±5 %"
    assert get_model("acme", host=nexus.host, settings=settings).count_source == "settings"


def test_an_exact_counter_ignores_the_factor(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(plugins=[Acme()])
    settings = Settings({"models": {"acme-large": {"token_factor": 2.0, "tool_call_tokens": 9}}})
    counter = open_counter("acme-large", host=nexus.host, settings=settings)

    assert (counter.count("one two"), counter.name, counter.tool_call_tokens) == (2, "words", 0)


@pytest.mark.parametrize(
    "wrong", [{"token_factor": 0.0}, {"token_factor": 11}, {"tool_call_tokens": -1}, {"count_error": 1.0}]
)
def test_a_model_with_an_impossible_correction_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"Model.{next(iter(wrong))} must"):
        Model(name="acme", window=1000, **wrong)
