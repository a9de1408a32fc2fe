"""The blobs that steps, sessions and other blobs refer to, and what each of them is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from nexus_core.history.ledger.media import references, refers_to_media

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.history.ledger.rows import SessionRow, StepRow

PROMPT, SECTIONS, SETTINGS = "system prompt and tools", "sections", "settings"
MEDIA, SOURCE, PIECE = "picture or document", "imported file", "piece of an imported file"

_OF_STEPS = {"epoch": PROMPT, "view": SECTIONS, "setup": SETTINGS}
"""Keys in the data of a step that name blobs, and the kind of each blob."""
_ADDRESS = re.compile(r"[0-9a-f]{64}")


def step_blobs(row: StepRow) -> Iterator[tuple[str, str]]:
    """The blobs that a step refers to, by their addresses, each with what it is."""
    if refers_to_media(row.messages):
        for digest in references(json.loads(row.messages)):
            yield digest, MEDIA
    if any(f'"{name}":' in row.data for name in _OF_STEPS):
        data = json.loads(row.data)
        for name, kind in _OF_STEPS.items():
            if _is_address(data.get(name)):
                yield data[name], kind


def session_blobs(row: SessionRow) -> Iterator[tuple[str, str]]:
    """The blobs that the record of a session refers to: the file it was imported from."""
    about = json.loads(row.data).get("transcript")
    source = about.get("source") if isinstance(about, dict) else None
    if _is_address(source):
        yield str(source), SOURCE


def nested_blobs(kind: str, content: bytes) -> Iterator[tuple[str, str]]:
    """The blobs that a blob refers to; content that cannot be read refers to none.

    Args:
        kind: What the blob is.
        content: Its bytes.
    """
    if kind not in (PROMPT, SOURCE):
        return
    try:
        body: Any = json.loads(content)
        found = [(body.get("view"), SECTIONS)] if kind == PROMPT else [(each, PIECE) for each in body["zlib"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    yield from ((digest, what) for digest, what in found if _is_address(digest))


def _is_address(value: object) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None
