"""Context windows and encodings of models, found by any form of their names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.errors import did_you_mean
from nexus_core.types.budget import Model, ModelPrice
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from nexus_core.types.settings import Settings

DEFAULT_WINDOW_TOKENS = 128_000
"""Context window of an unknown model."""

# gpt-4o-2024-08-06, claude-sonnet-4-20250514, claude-sonnet-4@20250514, gemini-2.5-pro-preview-05-06, command-r-08-2024
_DATE_PATTERN = r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4})$"
# anthropic.claude-sonnet-4-20250514-v1:0
_VERSION_PATTERN = r"-v\d+(:\d+)?$"
# us.anthropic.claude-sonnet-4
_VENDOR_PATTERN = r"^([a-z]{2,6}\.)?[a-z0-9]+\.(?=[a-z])"
# A build, a size, a quantisation: mistral-large-2411, gpt-4-32k, llama-3.3-70b, qwen3-235b-a22b
_NUMBER_PATTERN = r"\d{3,8}|a?\d+(\.\d+)?[bekm]|v\d|q\d\w*|(fp|bf|int)\d+"
_BORDER_PATTERN = r"[-:@]"
_VARIANTS = (
    " air audio base beta chat code codex coder computer deep exp experimental extended fast flash free high image"
    " instruct it large latest lite live low maas maverick max medium micro mini minimal multimodal nano native non"
    " nothink omni online plus preview pro realtime reasoner reasoning research scout search small speech stable think"
    " thinking transcribe tts turbo ultra use versatile vision vl xhigh "
)
"""Suffixes by which providers name another form of a model."""
_SETTING_NAMES = (
    "window",
    "encoding",
    "max_output",
    "cache_minimum",
    "cache_breakpoints",
    "request_bytes",
    "token_factor",
    "tool_call_tokens",
    "count_error",
)
_COUNT_NAMES = ("token_factor", "tool_call_tokens", "count_error")


def find_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> Model:
    """Return the metadata of a model. An unknown one gets a window of 128,000 tokens.

    Args:
        name: Its name. A provider before it (`openai/`, `models/`, `us.anthropic.`), a date or version after it do not
            matter.
        models: The models of plugins by name; the longest matching name is used.
        settings: The user's settings: `models.<name>`, and `provider.context_window` for the configured model.
    """
    name = _resolve_alias(name, settings)
    match = _match_name(name, models)
    model = (
        _name_model(models[match], match, name)
        if match
        else Model(name=name or "unknown", window=DEFAULT_WINDOW_TOKENS)
    )
    return model if settings is None else _apply_settings(model, name, settings)


def _name_model(model: Model, match: str, name: str) -> Model:
    """Return a model under a full name. The price of another variant is dropped: a similar name proves nothing."""
    stem = match.rstrip("*")
    is_meant = stem in iterate_plain_names(name) or not stem[-1:].isalnum()
    return replace(model, name=name, price=model.price if is_meant or not isinstance(model.price, ModelPrice) else None)


def is_guessed_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> bool:
    """Return True if a model only shares a prefix with a known one, so that its tokenizer may differ."""
    name = _resolve_alias(name, settings)
    if settings is not None and _get_model_settings(name, settings).get("encoding"):
        return False
    match = _match_name(name, models)
    return match is not None and _is_guess(name, match)


def find_unknown_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> Finding | None:
    """Return a finding about a model that is unknown, or only matched by a similar name.

    None for one that is known, or whose window the user has set.
    """
    name = _resolve_alias(name, settings)
    match = _match_name(name, models)
    if not name or (match and not _is_guess(name, match)) or (settings is not None and _has_window(name, settings)):
        return None
    *_, bare, _ = iterate_plain_names(name)
    nearest = did_you_mean(bare, [each.rstrip("*-") for each in models])
    if match:
        guessed = f"{name!r} is not in the table of models; taken for {match}: {models[match].window:,} tokens"
        otherwise = f"{nearest} Otherwise set" if nearest else "set"
        return Finding("guessed-model", f"{guessed}; {otherwise} models.{name}.window")
    assumed = f"unknown model {name!r}, so a window of {DEFAULT_WINDOW_TOKENS:,} tokens is assumed"
    return Finding("unknown-model", f"{assumed}; {nearest or f'models.{name}.window sets another'}")


def iterate_plain_names(name: str) -> Iterator[str]:
    """Yield a model's name as given, then with more and more of its prefixes and suffixes removed."""
    yield name
    short = name.lower().rpartition("/")[2]
    yield short
    if short.startswith("ft:"):  # ft:gpt-4o-mini-2024-07-18:acme::abc
        short = short.split(":")[1]
    undated = re.sub(_DATE_PATTERN, "", re.sub(_VERSION_PATTERN, "", short))
    yield undated
    bare = re.sub(_VENDOR_PATTERN, "", undated)
    yield bare
    yield bare.replace(".", "-")  # claude-opus-4.6


def _match_name(name: str, known: Collection[str]) -> str | None:
    """Return the longest known name that matches. A full name precedes a prefix of the same length."""
    longest = max(map(len, known), default=0)  # no longer prefix needs to be looked up
    fitting = [
        each for plain in set(iterate_plain_names(name)) for each in _iterate_patterns(plain, longest) if each in known
    ]
    return max(fitting, key=lambda each: (len(each.rstrip("*")), not each.endswith("*"), each), default=None)


def _iterate_patterns(name: str, longest: int) -> Iterator[str]:
    """Yield the names that would match: the name itself, and each of its prefixes with a star."""
    yield name
    yield from (f"{name[:end]}*" for end in range(min(len(name) + 1, longest)))


def _is_guess(name: str, match: str) -> bool:
    """Return True if a name has more after the prefix than a variant of that model: gpt-4oo, gpt-5.55, claude-sonet.

    A prefix like `acme-*` allows any suffix.
    """
    stem = match.rstrip("*")
    if stem == match or not stem[-1:].isalnum():
        return False
    endings = [plain[len(stem) :] for plain in iterate_plain_names(name) if plain.startswith(stem)]
    return not any(_is_variant(ending) for ending in endings)


def _is_variant(ending: str) -> bool:
    first, *words = re.split(_BORDER_PATTERN, ending)
    return not first and all(f" {word} " in _VARIANTS or re.fullmatch(_NUMBER_PATTERN, word) for word in words)


def _resolve_alias(name: str, settings: Settings | None) -> str:
    """Return the model that an alias refers to, or any other name unchanged."""
    return name if settings is None or not name else settings.model_id(name)


def _has_window(name: str, settings: Settings) -> bool:
    """Return True if the user has settings of a model, or set the window of the configured one."""
    is_meant = settings.model_id() in ("", name)
    return bool(_get_model_settings(name, settings) or (is_meant and settings.get("provider.context_window")))


def _get_model_settings(name: str, settings: Settings) -> Mapping[str, Any]:
    """Return the user's settings of a model: under its name, else under its aliases, of which the first wins."""
    table = settings.get("models")
    if not isinstance(table, dict):
        return {}
    match = _match_name(name, table)
    if match is not None:
        values: Mapping[str, Any] = table[match]
        return values
    aliases = [each for alias, each in table.items() if isinstance(each, dict) and settings.model_id(alias) == name]
    return {key: value for each in reversed(aliases) for key, value in each.items() if value is not None}


def _apply_settings(model: Model, name: str, settings: Settings) -> Model:
    values = {
        key: value
        for key, value in _get_model_settings(name, settings).items()
        if key in _SETTING_NAMES and value is not None
    }
    if any(name in values for name in _COUNT_NAMES):
        values["count_source"] = "settings"
    model = replace(model, **values) if values else model
    if isinstance(price := _get_model_settings(name, settings).get("price"), dict):
        model = replace(model, price=_read_price(price))
    window, configured = settings.get("provider.context_window"), settings.model_id()
    if isinstance(window, int) and (not configured or name in {"", configured}):
        model = replace(model, window=window)
    return model


def _read_price(given: Mapping[str, Any]) -> ModelPrice:
    """Return the price in the user's settings, where numbers are numbers."""
    values = {key: value for key, value in given.items() if value is not None}
    texts: dict[str, Any] = {
        key: value if key in _PRICE_WORDS else _format_price(value) for key, value in values.items()
    }
    return ModelPrice(**texts)


_PRICE_WORDS = ("date", "source")


def _format_price(value: float | str) -> str:
    """Return a number without an exponent, exactly as it was written."""
    if isinstance(value, int | str):
        return str(value)
    from decimal import Decimal  # takes longer to import than most commands need for all the rest

    return f"{Decimal(repr(value)):f}"
