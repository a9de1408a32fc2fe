"""The bundled table of models."""

from __future__ import annotations

from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

import nexus_plugins.models as plugin
from nexus_core.dialects import rules
from nexus_core.testing import check_plugin
from nexus_core.tokens.models import find_model
from nexus_plugins.bedrock import nexus_dialects
from nexus_plugins.tiktoken_counter._tables import load_tables

RULES = {**rules.RULES_BY_API, **{each.name: each.rules for each in nexus_dialects()}}
MODELS = {model.name: model for model in plugin.nexus_models()}


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(plugin) == []


def test_no_model_is_listed_twice() -> None:
    assert len(plugin.nexus_models()) == len(MODELS) > 50


def test_what_tiktoken_says_of_a_model_the_table_says_too() -> None:
    ended = {f"{prefix}:x" if prefix.startswith("ft:") else f"{prefix}x": prefix for prefix in MODEL_PREFIX_TO_ENCODING}
    names = MODEL_TO_ENCODING | {name: MODEL_PREFIX_TO_ENCODING[prefix] for name, prefix in ended.items()}
    said = {name: find_model(name, MODELS).encoding for name in names}

    assert {name: encoding for name, encoding in said.items() if encoding not in {names[name], ""}} == {}
    assert {name for name, encoding in said.items() if encoding == "" and names[name] in load_tables()} == {
        "babbage-002",
        "davinci-002",
        "ft:babbage-002:x",
        "ft:davinci-002:x",
        "text-embedding-3-large",
        "text-embedding-3-small",
        "text-embedding-ada-002",
    }


def test_an_answer_is_never_longer_than_what_fits() -> None:
    assert [model.name for model in MODELS.values() if model.max_output > model.window] == []


def test_every_model_is_spoken_to_in_a_dialect_that_exists() -> None:
    assert {model.api for model in MODELS.values()} <= set(RULES)


def test_models_that_are_told_what_to_keep_are_told_no_more_often_than_their_api_takes() -> None:
    told = {model.name: model for model in MODELS.values() if model.cache_breakpoints}

    assert {model.api for model in told.values()} == {"anthropic", "openai", "bedrock"}
    assert all(model.cache_minimum > 0 for model in told.values())
    assert all(model.cache_breakpoints <= (RULES[model.api].cache_marks or 3) for model in told.values())
    assert find_model("gpt-5.6-sol-2026-07-01", MODELS).cache_breakpoints == 3
    assert find_model("gpt-5.5", MODELS).cache_breakpoints == 0
    assert find_model("us.anthropic.claude-opus-4-6-v1:0", MODELS).cache_breakpoints == 4
