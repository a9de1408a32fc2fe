"""What is frozen so that every call begins with the same bytes, and what the model has been told since."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.ledger.codec import compute_blob_digest
from nexus_core.ledger.json_text import write_json
from nexus_core.types.messages import Tool
from nexus_core.types.prompt import Section, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.messages import JSON
    from nexus_core.types.request import AgentMode

FIRST_VERSION = 1
OLD_MODE: AgentMode = "repl"
"""The mode of epochs that do not name any: sessions without a mode once worked in this one."""


class Epoch(NamedTuple):
    """System prompt and tools.

    Attributes:
        digest: Its address in the ledger.
        system: The system prompt.
        tools: What the model may ask for.
        basis: What ends it at once when it changes: mode, role, renderer, permissions, trust, the caller's tools.
        view: The address of the sections it was made of.
        context: What it was put together from, as it is written down.
    """

    digest: str
    system: str
    tools: tuple[Tool, ...]
    basis: JSON
    view: str
    context: JSON

    @property
    def given(self) -> tuple[Tool, ...] | None:
        """The caller's tools; None where nothing is known about them."""
        given = self.basis.get("tools")
        return tuple(decode_value(Tool, tool) for tool in given) if isinstance(given, list) else None

    @property
    def version(self) -> int:
        """How many epochs there were, with this one."""
        workspace = self.context.get("workspace")
        version = workspace.get("version") if isinstance(workspace, dict) else None
        return version if isinstance(version, int) else FIRST_VERSION


def write_epoch(system: str, tools: Iterable[Tool], basis: JSON, view: str, context: JSON) -> bytes:
    """An epoch as it is stored."""
    body = {
        "system": system,
        "tools": [encode_value(tool) for tool in tools],
        "basis": basis,
        "view": view,
        "context": context,
    }
    return write_json(body, "an epoch").encode()


def read_epoch(content: bytes) -> Epoch:
    """An epoch as it was stored."""
    body = json.loads(content)
    return Epoch(
        compute_blob_digest(content),
        body["system"],
        tuple(decode_value(Tool, tool) for tool in body["tools"]),
        body.get("basis", {}),
        body.get("view", ""),
        body.get("context", {}),
    )


def write_view(sections: Iterable[Section]) -> bytes:
    """Sections as they are stored."""
    return write_json([_written(section) for section in sections], "a section").encode()


def read_view(content: bytes) -> tuple[Section, ...]:
    """Sections as they were stored."""
    return tuple(_read(section) for section in json.loads(content))


def _written(section: Section) -> dict[str, object]:
    written: dict[str, object] = {name: getattr(section, name) for name in ("id", "title", "kind", "order", "text")}
    return written if section.source is None else {**written, "source": asdict(section.source)}


def _read(body: dict[str, object]) -> Section:
    source = body.pop("source", None)
    if isinstance(source, dict):
        lines = source.pop("lines", None)
        source = Source(**source, lines=tuple(lines) if lines else None)
    return Section(**body, source=source)  # type: ignore[arg-type] # as it was written
