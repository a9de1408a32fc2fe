"""The dialect and the provider `bedrock`: arguments and replies of Amazon Bedrock's Converse.

_messages.py    messages and their blocks, read and written
_requests.py    arguments of a call, tool definitions, and the rules of the API
_replies.py     responses and event streams
_fields.py      typed fields of a block, with errors that name their path
_provider.py    the provider, which calls Converse through boto3

The dialect needs no boto3: it takes and gives dicts. Only the provider imports it, when an agent calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.plugin import Dialect, LoadedLayers, Provider

_BLOCK_FIELDS = frozenset(
    {
        *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint"),
        *("guardContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval"),
    }
)
_EVENT_NAMES = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})


@hookimpl
def nexus_dialects() -> list[Dialect]:
    """Return the dialect `bedrock`."""
    return [_build_dialect()]


@hookimpl
def nexus_providers(loaded: LoadedLayers) -> list[Provider]:
    """Return the provider `bedrock`. Connects to nothing yet."""
    from nexus_plugins.bedrock._provider import build_provider

    return [build_provider(loaded)]


def is_converse_item(item: Mapping[str, Any]) -> bool:
    """Return True if an item is surely a message, response, stream event or stream of Converse."""
    output = item.get("output")
    if isinstance(output, dict) and "message" in output:
        return True
    stream = item.get("stream")
    if _is_event(item) or (isinstance(stream, list) and any(map(_is_event, stream))):
        return True
    content = item.get("content")
    if not isinstance(content, list) or item.get("role") not in ("user", "assistant", "system"):
        return False
    blocks = [block for block in content if isinstance(block, dict) and "type" not in block]
    return len(blocks) == len(content) and any(_BLOCK_FIELDS & block.keys() for block in blocks)


def _is_event(item: object) -> bool:
    return isinstance(item, dict) and len(item) == 1 and bool(_EVENT_NAMES & item.keys())


def _build_dialect() -> Dialect:
    # Imported only when the dialect is used.
    from nexus_core.plugin.dialects import ApiDialect
    from nexus_plugins.bedrock._messages import (
        outline_message,
        read_message,
        write_messages,
    )
    from nexus_plugins.bedrock._replies import read_reply
    from nexus_plugins.bedrock._requests import (
        RULES,
        read_request,
        read_tools,
        write_request,
        write_tools,
    )

    return ApiDialect(
        rules=RULES,
        recognises=is_converse_item,
        read=read_message,
        write=write_messages,
        read_request=read_request,
        write_request=write_request,
        read_reply=read_reply,
        read_tools=read_tools,
        write_tools=write_tools,
        outline=outline_message,
    )
