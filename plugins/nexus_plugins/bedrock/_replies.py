"""What Converse answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError, Usage
from nexus_core.plugin import Reply, ToolCall, error_inside, json_kind, plain_mapping
from nexus_plugins.bedrock._fields import API, list_in, mapping_in, number_in, text_in, without, words_in
from nexus_plugins.bedrock._messages import read_plain
from nexus_plugins.bedrock._streams import Answer, merged

if TYPE_CHECKING:
    from nexus_core.plugin import Part, Stop
    from nexus_plugins.bedrock._fields import Block

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_UNKNOWN = "SDK_UNKNOWN_MEMBER"
"""What botocore puts in place of a block that it does not know; it refuses to send that."""
_ONCE = "make a list of what it brings: list(response['stream'])"


def read_reply(reply: object) -> Reply:
    """A response, the list of a stream's events, or the response that holds such a list."""
    answer = merged(reply) if isinstance(reply, list | tuple) else _answer_of(reply)
    try:
        message = read_plain(_sendable(answer.message))
    except MessageError as error:
        raise error_inside(answer.place, error) from None
    if answer.unfinished:
        parts = tuple(_cut_off(part, answer.unfinished.get(index)) for index, part in enumerate(message.parts))
        message = replace(message, parts=parts)
    stop = _stop(answer)
    return Reply(
        messages=(message,),
        # Models behind Bedrock say `end_turn` with calls that wait (strands-agents/harness-sdk#1827).
        stop="tools" if stop == "end" and message.tool_calls else stop,
        stop_reason=answer.error or words_in(answer.rest, "stopReason"),
        usage=_usage(answer.rest),
        id=_within(answer.rest, "ResponseMetadata", "RequestId"),
        model=_within(answer.rest, "trace", "promptRouter", "invokedModelId"),
        api=API,
    )


def _answer_of(reply: object) -> Answer:
    if isinstance(reply, dict) and "stream" in reply and "output" not in reply:
        stream = reply["stream"]
        if not isinstance(stream, list | tuple):
            raise MessageError(f"expected a list of events, not {json_kind(stream)}", path="stream", hint=_ONCE)
        answer = merged(stream, "stream")
        return answer._replace(rest=answer.rest | plain_mapping(without(reply, "stream")))
    body = plain_mapping(reply)
    if body.get("output") is None and isinstance(error := body.get("Error"), dict):
        raise MessageError(f"the server answered with an error: {json_kind(error.get('Message'))}", path="Error")
    message = mapping_in(mapping_in(body, "output"), "message", "output")
    return Answer(message, without(body, "output"), place="output.message")


def _sendable(message: Block) -> Block:
    """The message without what boto3 itself could not read."""
    text_in(message, "role")
    blocks = [block for block in list_in(message, "content") if not (isinstance(block, dict) and _UNKNOWN in block)]
    return message | {"content": blocks}


def _stop(answer: Answer) -> Stop:
    if answer.error:
        return "error"
    reason = words_in(answer.rest, "stopReason")
    return "broken" if answer.is_streamed and not reason else _STOPS.get(reason, "")


def _cut_off(part: Part, raw: str | None) -> Part:
    """A call whose arguments ended before they were complete keeps what there is of them."""
    return replace(part, raw=raw) if raw is not None and isinstance(part, ToolCall) else part


def _usage(body: Block) -> Usage | None:
    if body.get("usage") is None:
        return None
    usage = mapping_in(body, "usage")
    read, written = (number_in(usage, f"cache{kind}InputTokens", "usage") for kind in ("Read", "Write"))
    return Usage(
        # What touches the cache is counted apart.
        input_tokens=number_in(usage, "inputTokens", "usage") + read + written,
        output_tokens=number_in(usage, "outputTokens", "usage"),
        cached_input_tokens=read,
        cache_write_tokens=written,
    )


def _within(block: Block, *keys: str) -> str:
    """A text deep inside; "" where anything on the way is missing or something else."""
    value: Any = block
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
