"""Which encoding a model uses."""

from __future__ import annotations

from nexus_plugins.tiktoken_counter._tables import tables

DEFAULT = "cl100k_base"
"""Where no model is named."""
NEAREST = "o200k_base"
"""For models whose tokeniser is not public, or not bundled."""


def find_encoding(model: str, encoding: str) -> tuple[str, bool]:
    """The encoding to count with, and whether it is the model's own."""
    if not model and not encoding:
        return DEFAULT, False  # whoever reads it may count otherwise
    name = encoding or _by_tiktoken(model)
    return (name, True) if name in tables() else (NEAREST, False)


def _by_tiktoken(model: str) -> str:
    """What tiktoken's own list says; "" when the model is not in it."""
    try:
        from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 - only for models that nobody else knows

        return encoding_name_for_model(model.rpartition("/")[2])
    except Exception:  # noqa: BLE001 - it is not in the list, or tiktoken cannot be imported
        return ""
