"""What models thought, as servers add it to chat messages; OpenAI itself keeps it to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from nexus_core.dialects.fields import take_words
from nexus_core.dialects.notes import filled, noted
from nexus_core.values.parts import Reasoning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.parts import Part

_TEXTS = ("reasoning_content", "reasoning")
"""DeepSeek, Qwen, vLLM say the first; OpenRouter, Groq and newer vLLM the second; some both, with one text."""

_DETAILS = "reasoning_details"
"""OpenRouter's: a list of texts, summaries and sealed thoughts."""


def read_reasoning(block: dict[str, Any]) -> list[Reasoning]:
    """The thoughts of an assistant's message, taken out of it."""
    texts = {key: block.pop(key) for key in _TEXTS if isinstance(block.get(key), str) and block[key]}
    details = block.get(_DETAILS)
    if details and isinstance(details, list) and all(isinstance(detail, dict) for detail in details):
        del block[_DETAILS]
        first, *others = details
        # The same once more as one text: kept with the first, so that it is neither counted nor lost.
        return [_read_detail(first, texts), *(_read_detail(detail, {}) for detail in others)]
    if not texts:
        return []
    field, text = texts.popitem() if len(texts) == 1 else (_TEXTS[0], texts.pop(_TEXTS[0]))
    return [Reasoning(text=text, api="openai", extra=noted({}, field=field, also=texts))]


def write_reasoning(parts: Sequence[Part]) -> dict[str, Any]:
    """The fields of a message that hold its thoughts."""
    thoughts: dict[str, list[Any]] = {}
    also: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Reasoning) and part.api == "openai":
            field: Any = part.extra.get("_field", _TEXTS[0])
            thoughts.setdefault(field, []).append(_write_detail(part) if field == _DETAILS else part.text)
            also |= cast("dict[str, Any]", part.extra.get("_also", {}))
    return {field: said if field == _DETAILS else "\n".join(said) for field, said in thoughts.items()} | also


def _read_detail(detail: dict[str, Any], also: dict[str, str]) -> Reasoning:
    where = next((key for key in ("text", "summary") if isinstance(detail.get(key), str) and detail[key]), "")
    text = detail.pop(where) if where else ""
    signature, sealed = (
        take_words(detail, key) if isinstance(detail.get(key), str) else "" for key in ("signature", "data")
    )
    extra = noted(detail, field=_DETAILS, text=where, also=also)
    return Reasoning(text=text, signature=signature, encrypted=sealed, api="openai", extra=extra)


def _write_detail(part: Reasoning) -> dict[str, Any]:
    where: Any = part.extra.get("_text", "text")
    body = {where: part.text, "signature": part.signature, "data": part.encrypted}
    return filled({key: value for key, value in body.items() if value}, part.extra)
