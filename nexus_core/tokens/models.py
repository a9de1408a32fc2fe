"""What is known of a model, whatever a provider puts around its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.errors import did_you_mean
from nexus_core.values.counting import Model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings

DEFAULT_WINDOW = 128_000
"""For a model that nobody knows."""

# gpt-4o-2024-08-06, claude-sonnet-4-20250514, claude-sonnet-4@20250514, gemini-2.5-pro-preview-05-06, command-r-08-2024
_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4})$")
# anthropic.claude-sonnet-4-20250514-v1:0
_VERSION = re.compile(r"-v\d+(:\d+)?$")
# us.anthropic.claude-sonnet-4
_VENDOR = re.compile(r"^([a-z]{2,6}\.)?[a-z0-9]+\.(?=[a-z])")
# A build, a size, a quantisation: mistral-large-2411, gpt-4-32k, llama-3.3-70b, qwen3-235b-a22b
_NUMBER = re.compile(r"\d{3,8}|a?\d+(\.\d+)?[bekm]|v\d|q\d\w*|(fp|bf|int)\d+")
_BORDERS = re.compile(r"[-:@]")
_VARIANTS = (
    " air audio base beta chat code codex coder computer deep exp experimental extended fast flash free high image"
    " instruct it large latest lite live low maas maverick max medium micro mini minimal multimodal nano native non"
    " nothink omni online plus preview pro realtime reasoner reasoning research scout search small speech stable think"
    " thinking transcribe tts turbo ultra use versatile vision vl xhigh "
)
"""What providers put behind the name of a model to name another form of it."""
_SETTINGS = ("window", "encoding", "max_output", "cache_minimum", "cache_breakpoints", "request_bytes")


def find_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> Model:
    """What is known of a model; where nobody knows it, a window of 128,000 tokens.

    Args:
        name: Its name. A provider before it (`openai/`, `models/`, `us.anthropic.`), a date or version after it do not
            matter.
        models: What plugins say, by name; the longest name that fits is used.
        settings: What the user says: `models.<name>`, and `provider.context_window` for the configured model.
    """
    name = _resolved(name, settings)
    match = _match(name, models)
    model = replace(models[match], name=name) if match else Model(name=name or "unknown", window=DEFAULT_WINDOW)
    return model if settings is None else _configured(model, name, settings)


def is_guessed(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> bool:
    """Whether a model only begins as one that is known, so that its tokeniser may be another."""
    name = _resolved(name, settings)
    if settings is not None and _said_of(name, settings).get("encoding"):
        return False
    match = _match(name, models)
    return match is not None and _is_guess(name, match)


def find_unknown_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> Finding | None:
    """What to know about a model that nobody knows, or that is only taken for another.

    None for one that is known, or whose window the user has set.
    """
    name = _resolved(name, settings)
    match = _match(name, models)
    if not name or (match and not _is_guess(name, match)) or (settings is not None and _has_window(name, settings)):
        return None
    from nexus_core.values.finding import Finding  # noqa: PLC0415 - most models are known

    *_, bare, _ = plain_names(name)
    nearest = did_you_mean(bare, [each.rstrip("*-") for each in models])
    if match:
        taken = f"{name!r} is not in the table of models; taken for {match}: {models[match].window:,} tokens"
        otherwise = f"{nearest} Otherwise set" if nearest else "set"
        return Finding("guessed-model", f"{taken}; {otherwise} models.{name}.window")
    assumed = f"unknown model {name!r}, so a window of {DEFAULT_WINDOW:,} tokens is assumed"
    return Finding("unknown-model", f"{assumed}; {nearest or f'models.{name}.window sets another'}")


def plain_names(name: str) -> Iterator[str]:
    """A model's name as it is given, then with less and less around it."""
    yield name
    short = name.lower().rpartition("/")[2]
    yield short
    if short.startswith("ft:"):  # ft:gpt-4o-mini-2024-07-18:acme::abc
        short = short.split(":")[1]
    undated = _DATE.sub("", _VERSION.sub("", short))
    yield undated
    bare = _VENDOR.sub("", undated)
    yield bare
    yield bare.replace(".", "-")  # claude-opus-4.6


def _match(name: str, known: Collection[str]) -> str | None:
    """The longest of the known names that fits; a whole name goes before a beginning of the same length."""
    longest = max(map(len, known), default=0)  # no longer beginning needs to be looked up
    fitting = [each for plain in set(plain_names(name)) for each in _fitting(plain, longest) if each in known]
    return max(fitting, key=lambda each: (len(each.rstrip("*")), not each.endswith("*"), each), default=None)


def _fitting(name: str, longest: int) -> Iterator[str]:
    """What may be known that fits a name: itself, and each of its beginnings with a star."""
    yield name
    yield from (f"{name[:end]}*" for end in range(min(len(name) + 1, longest)))


def _is_guess(name: str, match: str) -> bool:
    """Whether a name has more behind a beginning than what names a form of that model: gpt-4oo, gpt-5.55, claude-sonet.

    Whoever says `acme-*` means whatever follows.
    """
    stem = match.rstrip("*")
    if stem == match or not stem[-1:].isalnum():
        return False
    endings = [plain[len(stem) :] for plain in plain_names(name) if plain.startswith(stem)]
    return not any(_is_variant(ending) for ending in endings)


def _is_variant(ending: str) -> bool:
    first, *words = _BORDERS.split(ending)
    return not first and all(f" {word} " in _VARIANTS or _NUMBER.fullmatch(word) for word in words)


def _resolved(name: str, settings: Settings | None) -> str:
    """Return the model that an alias stands for; any other name as it is."""
    return name if settings is None or not name else settings.model_id(name)


def _has_window(name: str, settings: Settings) -> bool:
    """Whether the user says something of a model, or how large the window of the configured one is."""
    is_meant = settings.model_id() in ("", name)
    return bool(_said_of(name, settings) or (is_meant and settings.get("provider.context_window")))


def _said_of(name: str, settings: Settings) -> Mapping[str, Any]:
    """What the user says of a model: under its name, else under its aliases, of which the first counts most."""
    table = settings.get("models")
    if not isinstance(table, dict):
        return {}
    match = _match(name, table)
    if match is not None:
        said: Mapping[str, Any] = table[match]
        return said
    aliases = [each for alias, each in table.items() if isinstance(each, dict) and settings.model_id(alias) == name]
    return {key: value for each in reversed(aliases) for key, value in each.items() if value is not None}


def _configured(model: Model, name: str, settings: Settings) -> Model:
    said = {key: value for key, value in _said_of(name, settings).items() if key in _SETTINGS and value is not None}
    model = replace(model, **said) if said else model
    window, configured = settings.get("provider.context_window"), settings.model_id()
    if isinstance(window, int) and (not configured or name in {"", configured}):
        model = replace(model, window=window)
    return model
