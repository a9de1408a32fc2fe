"""What is known of a model, whatever a provider puts around its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.errors import did_you_mean
from nexus_core.values.counting import Model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings

DEFAULT_WINDOW = 128_000
"""For a model that nobody knows."""

# gpt-4o-2024-08-06, claude-sonnet-4-20250514, claude-sonnet-4@20250514
_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
# anthropic.claude-sonnet-4-20250514-v1:0
_VERSION = re.compile(r"-v\d+(:\d+)?$")
# us.anthropic.claude-sonnet-4
_VENDOR = re.compile(r"^([a-z]{2,6}\.)?[a-z0-9]+\.(?=[a-z])")
_SETTINGS = ("window", "encoding", "max_output", "cache_minimum", "cache_breakpoints", "request_bytes")


def find_model(name: str, models: Mapping[str, Model], settings: Settings | None = None) -> Model:
    """What is known of a model; where nobody knows it, a window of 128,000 tokens.

    Args:
        name: Its name. A provider before it (`openai/`, `models/`, `us.anthropic.`), a date or version after it do not
            matter.
        models: What plugins say, by name; the longest name that fits is used.
        settings: What the user says: `models.<name>`, and `provider.context_window` for the configured model.
    """
    match = _match(name, models)
    model = replace(models[match], name=name) if match else Model(name=name or "unknown", window=DEFAULT_WINDOW)
    return model if settings is None else _configured(model, name, settings)


def find_unknown_model(name: str, models: Mapping[str, Model], settings: Settings) -> Finding | None:
    """What to know about a model that nobody knows; None for one that is known, or whose window the user has set."""
    if not name or _match(name, models):
        return None
    table = settings.get("models")
    if isinstance(table, dict) and _match(name, table):
        return None
    if settings.get("provider.context_window") and settings.get("provider.model") in (None, name):
        return None
    from nexus_core.values.finding import Finding  # noqa: PLC0415 - most models are known

    nearest = did_you_mean(name, [each.rstrip("*") for each in models])
    assumed = f"nobody knows the model {name!r}, so a window of {DEFAULT_WINDOW:,} tokens is assumed"
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
    plain = set(plain_names(name))
    fitting = [each for each in known if each in plain or any(_begins(name, each) for name in plain)]
    return max(fitting, key=lambda each: (len(each.rstrip("*")), not each.endswith("*"), each), default=None)


def _begins(name: str, pattern: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def _configured(model: Model, name: str, settings: Settings) -> Model:
    table = settings.get("models")
    if isinstance(table, dict) and (match := _match(name, table)):
        said = {key: value for key, value in table[match].items() if key in _SETTINGS and value is not None}
        model = replace(model, **said)
    window, configured = settings.get("provider.context_window"), settings.get("provider.model")
    if isinstance(window, int) and (configured is None or name in {"", configured}):
        model = replace(model, window=window)
    return model
