"""What a tool brought, as Nexus keeps it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import mcp_types

from nexus_core.plugin import File, Image, Text

if TYPE_CHECKING:
    from collections.abc import Iterable


class Outcome(NamedTuple):
    """What running a tool brought: text or parts, and whether it failed."""

    content: str | tuple[Text | Image | File, ...]
    is_error: bool = False


def outcome_of(result: mcp_types.CallToolResult) -> Outcome:
    """The result of a call; what is nothing but text is one text."""
    parts = tuple(_part(block) for block in result.content)
    if not parts and result.structured_content is not None:
        return Outcome(json.dumps(result.structured_content, ensure_ascii=False), result.is_error)
    if all(isinstance(part, Text) for part in parts):
        return Outcome("\n".join(_texts(parts)), result.is_error)
    return Outcome(parts, result.is_error)


def _texts(parts: Iterable[Text | Image | File]) -> Iterable[str]:
    return (part.text for part in parts if isinstance(part, Text))


def _part(block: mcp_types.ContentBlock) -> Text | Image | File:
    if isinstance(block, mcp_types.TextContent):
        return Text(block.text)
    if isinstance(block, mcp_types.ImageContent):
        return Image(mime=block.mime_type, data=block.data)
    if isinstance(block, mcp_types.AudioContent):
        return File(mime=block.mime_type, data=block.data)
    if isinstance(block, mcp_types.EmbeddedResource):
        resource = block.resource
        if isinstance(resource, mcp_types.TextResourceContents):
            return Text(resource.text)
        return File(mime=resource.mime_type or "application/octet-stream", data=resource.blob)
    return Text(f"{block.name}: {block.uri}")
