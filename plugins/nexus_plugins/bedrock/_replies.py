"""Responses of Converse, and event streams merged into one response."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import MessageError, Usage
from nexus_core.plugin import ToolCall
from nexus_core.plugin.dialects import Reply, at_path, json_kind, parse_arguments, read_each, to_json_dict
from nexus_plugins.bedrock._fields import (
    API,
    decode_base64,
    drop_fields,
    get_count,
    get_text,
    join_path,
    require_list,
    require_mapping,
    require_text,
)
from nexus_plugins.bedrock._messages import parse_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.plugin import Part
    from nexus_core.plugin.dialects import Stop
    from nexus_plugins.bedrock._fields import Block

_STOP_REASONS: dict[str, Stop] = {
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
_UNKNOWN_MEMBER = "SDK_UNKNOWN_MEMBER"
"""The key that botocore uses for a block that it does not know; it refuses to send it."""
_STREAM_HINT = "make a list of its events: list(response['stream'])"


def read_reply(reply: object) -> Reply:
    """Read a response, a list of stream events, or a response that holds such a list."""
    raw = merge_events(reply) if isinstance(reply, list | tuple) else _read_raw_reply(reply)
    try:
        message = parse_message(_drop_unknown_blocks(raw.message))
    except MessageError as error:
        raise at_path(raw.path, error) from None
    if raw.unfinished:
        parts = tuple(
            _restore_partial_call(part, raw.unfinished.get(index)) for index, part in enumerate(message.parts)
        )
        message = replace(message, parts=parts)
    stop = _get_stop(raw)
    return Reply(
        messages=(message,),
        # Some models on Bedrock report `end_turn` with pending tool calls (strands-agents/harness-sdk#1827).
        stop="tools" if stop == "end" and message.tool_calls else stop,
        stop_reason=raw.error or get_text(raw.rest, "stopReason"),
        usage=_read_usage(raw.rest),
        id=_find_text(raw.rest, "ResponseMetadata", "RequestId"),
        model=_find_text(raw.rest, "trace", "promptRouter", "invokedModelId"),
        api=API,
    )


def _read_raw_reply(reply: object) -> RawReply:
    if isinstance(reply, dict) and "stream" in reply and "output" not in reply:
        stream = reply["stream"]
        if not isinstance(stream, list | tuple):
            raise MessageError(f"expected a list of events, not {json_kind(stream)}", path="stream", hint=_STREAM_HINT)
        raw = merge_events(stream, "stream")
        return raw._replace(rest=raw.rest | to_json_dict(drop_fields(reply, "stream")))
    body = to_json_dict(reply)
    if body.get("output") is None and isinstance(error := body.get("Error"), dict):
        raise MessageError(f"the server answered with an error: {json_kind(error.get('Message'))}", path="Error")
    message = require_mapping(require_mapping(body, "output"), "message", "output")
    return RawReply(message, drop_fields(body, "output"), path="output.message")


def _drop_unknown_blocks(message: Block) -> Block:
    """Return a message without the blocks that boto3 could not read."""
    require_text(message, "role")
    blocks = [
        block
        for block in require_list(message, "content")
        if not (isinstance(block, dict) and _UNKNOWN_MEMBER in block)
    ]
    return message | {"content": blocks}


def _get_stop(raw: RawReply) -> Stop:
    if raw.error:
        return "error"
    reason = get_text(raw.rest, "stopReason")
    return "broken" if raw.is_streamed and not reason else _STOP_REASONS.get(reason, "")


def _restore_partial_call(part: Part, raw: str | None) -> Part:
    """Return a tool call with its incomplete arguments as `raw`, and other parts unchanged."""
    return replace(part, raw=raw) if raw is not None and isinstance(part, ToolCall) else part


def _read_usage(body: Block) -> Usage | None:
    if body.get("usage") is None:
        return None
    usage = require_mapping(body, "usage")
    read, written = (get_count(usage, f"cache{kind}InputTokens", "usage") for kind in ("Read", "Write"))
    return Usage(
        # `inputTokens` excludes cache reads and writes.
        input_tokens=get_count(usage, "inputTokens", "usage") + read + written,
        output_tokens=get_count(usage, "outputTokens", "usage"),
        cached_input_tokens=read,
        cache_write_tokens=written,
    )


def _find_text(block: Block, *keys: str) -> str:
    """Return the text under nested keys, or "" if there is none."""
    value: Any = block
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


EVENT_NAMES = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
_EXCEPTION_SUFFIX = "Exception"
"""Suffix of the names of error events."""


class RawReply(NamedTuple):
    """A reply before it is parsed, streamed or not.

    Attributes:
        message: The message as in a response that was not streamed.
        rest: The other fields of the response, such as stop reason and usage.
        unfinished: Incomplete JSON arguments of tool calls, by the index of their block.
        error: The name of the event that ended the stream with an error; "" if none did.
        is_streamed: True if it was merged from events.
        path: Path of the message, for errors.
    """

    message: Block
    rest: Block
    unfinished: Mapping[int, str] = {}
    error: str = ""
    is_streamed: bool = False
    path: str = ""


def merge_events(events: Sequence[object], path: str = "") -> RawReply:
    """Merge the events of a stream into one reply."""
    merger = _StreamMerger()
    read_each(events, lambda event: merger.add(to_json_dict(event)), path)
    return merger.build()


class _StreamMerger:
    def __init__(self) -> None:
        self._role = ""
        self._blocks: dict[int, _BedrockStreamedBlock] = {}
        self._rest: Block = {}
        self._error = ""

    def add(self, event: Block) -> None:
        kind = next((name for name in event if name in EVENT_NAMES or name.endswith(_EXCEPTION_SUFFIX)), "")
        if not kind:
            return  # unknown events do not change the message
        body = require_mapping(event, kind)
        if kind.endswith(_EXCEPTION_SUFFIX):
            self._error = kind
        elif kind == "messageStart":
            self._role = require_text(body, "role", kind)
        elif kind in ("messageStop", "metadata"):
            self._rest |= body
        elif not self._role:
            raise MessageError(f"a stream starts with 'messageStart', not {kind!r}", path=kind)
        elif kind != "contentBlockStop":
            self._add_delta(kind, body)

    def build(self) -> RawReply:
        if not self._role:
            if self._error:
                return RawReply({"role": "assistant", "content": []}, self._rest, error=self._error, is_streamed=True)
            raise MessageError("there is no answer in it", hint="a stream starts with the event 'messageStart'")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = [block.build() for block in blocks]
        unfinished = {index: block.unfinished for index, block in enumerate(blocks) if block.unfinished}
        message = {"role": self._role, "content": [block for block in content if block]}
        return RawReply(message, self._rest, unfinished, self._error, is_streamed=True)

    def _add_delta(self, kind: str, body: Block) -> None:
        block = self._blocks.setdefault(get_count(body, "contentBlockIndex", kind), _BedrockStreamedBlock())
        if kind == "contentBlockStart":
            block.start(require_mapping(body, "start", kind))
        else:
            block.add(require_mapping(body, "delta", kind), join_path(kind, "delta"))


class _BedrockStreamedBlock:
    """One block of a streamed message. Deltas are joined once, at the end, to stay linear."""

    def __init__(self) -> None:
        self._start: Block = {}
        self._texts: dict[str, list[str]] = {}
        self._encrypted: list[bytes] = []
        self._citations: list[Any] = []
        self._results: list[Any] = []
        self._image: Block = {}
        self._bytes: list[bytes] = []
        self.unfinished = ""

    def start(self, start: Block) -> None:
        self._start |= start

    def add(self, delta: Block, path: str) -> None:
        if delta.get("text") is not None:
            self._add_text("text", delta, path)
        elif delta.get("toolUse") is not None:
            self._add_text("input", require_mapping(delta, "toolUse", path), join_path(path, "toolUse"))
        elif delta.get("reasoningContent") is not None:
            self._add_reasoning(require_mapping(delta, "reasoningContent", path), join_path(path, "reasoningContent"))
        elif delta.get("citation") is not None:
            self._citations.append(delta["citation"])
        elif delta.get("toolResult") is not None:
            self._results += require_list(delta, "toolResult", path)
        elif delta.get("image") is not None:
            self._add_image(require_mapping(delta, "image", path), join_path(path, "image"))

    def build(self) -> Block:
        """Return the complete block, or {} if no delta had content."""
        return self._build_tool() or self._build_image() or self._build_reasoning() or self._build_text()

    def _build_tool(self) -> Block:
        if "toolUse" in self._start:
            return self._build_call()
        if "toolResult" in self._start:
            return {"toolResult": {"content": self._results} | require_mapping(self._start, "toolResult")}
        return {}

    def _build_image(self) -> Block:
        if not ("image" in self._start or self._image or self._bytes):
            return {}
        source = {"source": {"bytes": _encode_base64(self._bytes)}} if self._bytes else {}
        return {"image": (self._start.get("image") or {}) | self._image | source}

    def _build_reasoning(self) -> Block:
        if self._encrypted:
            return {"reasoningContent": {"redactedContent": _encode_base64(self._encrypted)}}
        if not {"reasoning", "signature"} & self._texts.keys():
            return {}
        signature = {"signature": self._join("signature")} if "signature" in self._texts else {}
        return {"reasoningContent": {"reasoningText": {"text": self._join("reasoning")} | signature}}

    def _build_text(self) -> Block:
        texts = [{"text": self._join("text")}] if "text" in self._texts else []
        if self._citations:
            return {"citationsContent": {"content": texts, "citations": self._citations}}
        return texts[0] if texts else {}

    def _add_text(self, key: str, delta: Block, path: str, name: str = "") -> None:
        self._texts.setdefault(name or key, []).append(get_text(delta, key, path))

    def _add_reasoning(self, delta: Block, path: str) -> None:
        if delta.get("text") is not None:
            self._add_text("text", delta, path, "reasoning")
        if delta.get("signature") is not None:
            self._add_text("signature", delta, path)
        if delta.get("redactedContent") is not None:
            self._encrypted.append(_require_bytes(delta, "redactedContent", path))

    def _add_image(self, delta: Block, path: str) -> None:
        source = delta.get("source")
        if isinstance(source, dict) and source.get("bytes") is not None:
            self._bytes.append(_require_bytes(source, "bytes", join_path(path, "source")))
        else:
            self._image |= delta

    def _build_call(self) -> Block:
        call = require_mapping(self._start, "toolUse")
        text = self._join("input")
        arguments = parse_arguments(text) if text else {}
        if text and not arguments and "".join(text.split()) != "{}":
            self.unfinished = text
        return {"toolUse": {**call, "input": arguments}}

    def _join(self, name: str) -> str:
        return "".join(self._texts.get(name, ()))


def _encode_base64(chunks: list[bytes]) -> str:
    return b64encode(b"".join(chunks)).decode("ascii")


def _require_bytes(block: Block, key: str, path: str) -> bytes:
    decoded = decode_base64(require_text(block, key, path))
    if isinstance(decoded, bytes):
        return decoded
    raise MessageError("expected bytes, or base64 in JSON", path=join_path(path, key))
