"""Finding a model by whatever name a provider gives it."""

from __future__ import annotations

import pytest

from nexus_core.plugin import Model
from nexus_core.tokens.models import find_model, find_unknown_model, is_guessed_model
from nexus_core.types.settings import Settings
from nexus_plugins.models import nexus_models

BUNDLED = {model.name: model for model in nexus_models()}


@pytest.mark.acceptance("D-08")
@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("claude-sonnet-4", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-opus-4-20250514", 200_000),
        ("gpt-4o", 128_000),
        ("gpt-4o-20240806", 128_000),
        ("gpt-4o-2024-08-06", 128_000),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o3-20250416", 200_000),
        ("us.amazon.nova-pro-v1:0", 300_000),
        ("nobody-knows-me", 128_000),
        ("", 128_000),
    ],
)
def test_the_window_of_a_model(name: str, window: int) -> None:
    assert find_model(name, BUNDLED).window == window


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-opus-4.6",
        "us.anthropic.claude-opus-4-6-v1:0",
        "anthropic.claude-opus-4-6-20260205-v1:0",
        "claude-opus-4-6@20260205",
        "openrouter/anthropic/claude-opus-4.6:beta",
        "Claude-Opus-4-6",
        "arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.claude-opus-4-6-v1",
    ],
)
def test_what_providers_put_around_a_name_does_not_matter(name: str) -> None:
    model = find_model(name, BUNDLED)

    assert (model.name, model.window, model.api) == (name, 1_000_000, "anthropic")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("models/gemini-2.5-pro", "gemini"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "o200k_base"),
        ("ft:gpt-4:acme", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-4.1-mini", "o200k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("azure/gpt-35-turbo", "cl100k_base"),
        ("groq/openai/gpt-oss-20b", "o200k_harmony"),
        ("o4-mini-2025-04-16", "o200k_base"),
    ],
)
def test_the_encoding_of_a_model(name: str, encoding: str) -> None:
    assert find_model(name, BUNDLED).encoding == encoding


def test_the_longest_name_that_fits_is_used_and_a_whole_one_before_a_beginning() -> None:
    models = {
        name: Model(name=name, window=size) for size, name in enumerate(["a*", "ab*", "ab", "abc*", "abcd-x"], start=1)
    }

    assert [find_model(name, models).window for name in ("a", "ab", "abx", "abcd", "abcd-x", "abcd-x-20250101")] == [
        1,
        3,
        2,
        4,
        5,
        5,
    ]


def test_the_users_window_goes_before_the_table() -> None:
    settings = Settings({"provider": {"model": "gpt-4o", "context_window": 5000}})

    assert find_model("gpt-4o", BUNDLED, settings).window == 5000
    assert find_model("", BUNDLED, settings).window == 5000
    assert find_model("o3", BUNDLED, settings).window == 200_000  # it was said of another model


def test_a_window_without_a_model_is_said_of_all() -> None:
    assert find_model("o3", BUNDLED, Settings({"provider": {"context_window": 5000}})).window == 5000


def test_the_users_models_go_before_the_table() -> None:
    settings = Settings({"models": {"acme-*": {"window": 32_000, "encoding": "cl100k_base"}, "o3": {"max_output": 10}}})

    acme, o3 = (find_model(name, BUNDLED, settings) for name in ("openai/acme-large-20250101", "o3"))

    assert (acme.window, acme.encoding) == (32_000, "cl100k_base")
    assert (o3.window, o3.max_output, o3.encoding) == (200_000, 10, "o200k_base")


def test_the_order_of_the_table_does_not_matter() -> None:
    backwards = dict(reversed(BUNDLED.items()))

    for name in ("gpt-4o-mini", "claude-opus-4-5", "gpt-5.4-mini", "gemini-2.5-pro", "qwen3-max"):
        assert find_model(name, BUNDLED) == find_model(name, backwards)


MISSPELT = [
    ("claude-sonet-5", "taken for claude*: 200,000 tokens; did you mean 'claude-sonnet-5'?"),
    ("gpt-4oo", "taken for gpt-4o*: 128,000 tokens; did you mean 'gpt-4o'?"),
    ("openai/gpt-5.55", "taken for gpt-5.5*: 922,000 tokens; did you mean 'gpt-5.5'?"),
    ("gpt-5.4-mni", "taken for gpt-5.4*: 922,000 tokens; did you mean 'gpt-5.4-mini'?"),
    ("gemini-9", "taken for gemini*: 1,048,576 tokens"),
]


@pytest.mark.parametrize(("name", "said"), MISSPELT)
def test_a_model_that_only_begins_as_a_known_one_is_told_to_be_a_guess(name: str, said: str) -> None:
    finding = find_unknown_model(name, BUNDLED)

    assert finding is not None
    assert finding.code == "guessed-model"
    assert finding.message.startswith(f"{name!r} is not in the table of models; {said}")
    assert is_guessed_model(name, BUNDLED)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o-mini", "gpt-4o-2024-08-06", "gpt-4o-audio-preview-2024-12-17", "chatgpt-4o-latest", "gpt-4-0613"),
        *("gpt-3.5-turbo-16k", "gpt-5.1-codex-max", "ft:gpt-4o-mini-2024-07-18:acme::abc", "o3-deep-research", "gpt-4"),
        *(
            "claude-3-5-sonnet-latest",
            "anthropic.claude-3-5-sonnet-20241022-v2:0",
            "claude-opus-4.6:beta",
            "claude-2.1",
        ),
        *("gemini-2.5-flash-lite-preview-06-17", "gemini-2.0-flash-001", "gemini-3.1-pro-preview", "deepseek-chat"),
        *("qwen3-235b-a22b-instruct-2507", "command-r-plus-08-2024", "llama-4-maverick-17b-128e-instruct"),
    ],
)
def test_a_date_a_size_and_the_usual_words_behind_a_name_are_no_guess(name: str) -> None:
    assert find_unknown_model(name, BUNDLED) is None
    assert not is_guessed_model(name, BUNDLED)


def test_whoever_says_a_whole_word_and_a_star_means_whatever_follows() -> None:
    models = {"acme-*": Model(name="acme-*", window=5000)}

    assert find_unknown_model("acme-anvil", models) is None


def test_what_the_user_says_of_a_model_is_no_guess() -> None:
    window = Settings({"models": {"gpt-5.55": {"window": 5000}}})
    encoding = Settings({"models": {"gpt-5.55": {"encoding": "o200k_base"}}})

    assert find_unknown_model("gpt-5.55", BUNDLED, window) is None
    assert is_guessed_model("gpt-5.55", BUNDLED, window)  # nobody has said how it counts
    assert not is_guessed_model("gpt-5.55", BUNDLED, encoding)
