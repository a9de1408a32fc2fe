"""The bundled table of models."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import date
from decimal import Decimal

from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

import nexus_plugins.models as plugin
from nexus_core.dialects import rules
from nexus_core.testing import check_plugin
from nexus_core.tokens.models import DEFAULT_WINDOW_TOKENS, find_model
from nexus_plugins.bedrock import nexus_dialects
from nexus_plugins.tiktoken_counter._tables import load_tables

RULES = {**rules.RULES_BY_API, **{each.name: each.rules for each in nexus_dialects()}}
MODELS = {model.name: model for model in plugin.nexus_models()}
PRICES = {
    name: price
    for group in tomllib.loads(plugin.PRICES_FILE.read_text(encoding="utf-8")).values()
    for name in group["models"]
    if (price := plugin.find_price(name))
}


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


def test_every_correction_of_counts_has_a_source_and_a_known_error() -> None:
    corrected = [model for model in MODELS.values() if model.token_factor != 1 or model.tool_call_tokens]

    assert {model.api for model in corrected} == {"anthropic"}
    assert all(model.count_error and model.count_source for model in corrected)


def test_a_model_with_a_public_tokenizer_has_no_correction() -> None:
    public = [model for model in MODELS.values() if model.encoding in load_tables()]

    assert {(model.token_factor, model.tool_call_tokens) for model in public} == {(1.0, 0)}


def test_every_price_has_a_source_a_date_and_a_model() -> None:
    for name, price in PRICES.items():
        assert price.source.startswith("https://"), name
        assert date.fromisoformat(price.date) <= date(2026, 11, 17), name
        assert find_model(name, MODELS).window != DEFAULT_WINDOW_TOKENS or find_model(name, MODELS).encoding, name


def test_cached_input_is_never_dearer_than_fresh_input_and_an_hour_never_cheaper() -> None:
    for name, price in PRICES.items():
        for each in filter(None, (price, price.long)):
            assert Decimal(each.cache_read or "0") < Decimal(each.input) < Decimal(each.output), name
            assert Decimal(each.cache_write or each.input) <= Decimal(each.cache_write_1h or "1000"), name


def test_models_are_read_without_their_prices() -> None:
    code = "import sys, nexus_plugins.models as m; m.nexus_models(); print('decimal' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert all(callable(model.price) for model in plugin.nexus_models())
