"""Which parts of content may be marked for OpenAI's cache, in both of its APIs."""

from __future__ import annotations

from typing import Any

MARK = "prompt_cache_breakpoint"
MARKABLE = frozenset({"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"})
"""Parts that take a mark, of chat completions and of Responses. What the model itself has written takes none."""


def marked(content: Any, kind: str) -> Any:  # noqa: ANN401 - a text or a list of parts, as it stands in a body
    """The content with a mark on the last part that may have one; one that is marked already stays as it is.

    Args:
        content: A text or a list of parts, which is changed.
        kind: What a text is called that must become a part.
    """
    parts = [{"type": kind, "text": content}] if isinstance(content, str) and content else content
    if not isinstance(parts, list):
        return content
    last = next((part for part in reversed(parts) if part.get("type") in MARKABLE), None)
    if last is None:
        return content
    if last.get(MARK) is None:
        last[MARK] = {"mode": "explicit"}
    return parts
