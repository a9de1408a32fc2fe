"""Amazon Bedrock's Converse: the arguments of `client.converse`, and what it answers.

_messages.py     messages both ways; _outline.py: their plain shape, to see quickly that nothing is wrong
_reading.py      from their blocks to parts; _writing.py: the way back; _media.py: pictures and documents
_requests.py     the arguments of a call; _tools.py: definitions of tools
_replies.py      what comes back; _streams.py: what comes back in pieces
_rules.py        what is refused; _fields.py: the fields of a block, or an error that says where

boto3 is not needed: it takes and gives dicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.plugin import Dialect

_BLOCKS = frozenset(
    {
        *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint"),
        *("guardContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval"),
    }
)
_EVENTS = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})


@hookimpl
def nexus_dialects() -> list[Dialect]:
    """The dialect `bedrock`."""
    return [_dialect()]


def recognises(item: Mapping[str, Any]) -> bool:
    """Whether it is surely one of Converse's messages, a response, an event of a stream, or what holds those."""
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
    return len(blocks) == len(content) and any(_BLOCKS & block.keys() for block in blocks)


def _is_event(item: object) -> bool:
    return isinstance(item, dict) and len(item) == 1 and bool(_EVENTS & item.keys())


def _dialect() -> Dialect:
    # Whoever speaks of no dialect of plugins needs none of this.
    from nexus_core.plugin import ApiDialect  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._messages import read_message, write_messages  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._outline import outline_message  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._replies import read_reply  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._requests import read_request, write_request  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._rules import RULES  # noqa: PLC0415 - as above
    from nexus_plugins.bedrock._tools import read_tools, write_tools  # noqa: PLC0415 - as above

    return ApiDialect(
        rules=RULES,
        recognises=recognises,
        read=read_message,
        write=write_messages,
        read_request=read_request,
        write_request=write_request,
        read_reply=read_reply,
        read_tools=read_tools,
        write_tools=write_tools,
        outline=outline_message,
    )
