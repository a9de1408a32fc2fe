"""The events of a streamed message become the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.arguments import parsed
from nexus_core.dialects.fields import at, mapping_in, number_in, optional_text_in, shown, text_in
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
"""The deltas that bring a piece of a text, and the field that holds it."""


class Answer(NamedTuple):
    """A message, and what a stream that broke off left of it.

    Attributes:
        message: As the API would have sent it in one piece.
        unfinished: The arguments of calls that are no whole JSON, by the place of their block.
        error: What kind of error ended the stream.
        is_streamed: Whether it came in pieces.
    """

    message: dict[str, Any]
    unfinished: Mapping[int, str] = {}
    error: str = ""
    is_streamed: bool = False


def merged(events: Sequence[object]) -> Answer:
    """The message that events add up to. Events that the SDK's own stream adds to them are passed over."""
    merge = _Merge()
    for index, event in enumerate(events):
        with at(f"[{index}]"):
            merge.add(plain_mapping(event))
    return merge.answer()


class _Merge:
    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, _Block] = {}
        self._error = ""

    def add(self, event: dict[str, Any]) -> None:
        kind = text_in(event, "type")
        if kind == "error":
            self._error = _kind_of(event)
        elif kind == "message_start":
            self._message = mapping_in(event, "message")
        elif self._message is None:
            if kind != "ping":
                raise MessageError(f"a stream starts with 'message_start', not {shown(kind)}", path="type")
        elif kind == "content_block_start":
            self._blocks[number_in(event, "index")] = _Block(mapping_in(event, "content_block"))
        elif kind == "content_block_delta":
            self._add_delta(event)
        elif kind == "message_delta":
            self._finish(event)

    def answer(self) -> Answer:
        if self._message is None:
            if self._error:
                return Answer({"content": []}, error=self._error)
            raise MessageError("there is no answer in it", hint="a stream starts with the event 'message_start'")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = [block.whole() for block in blocks]
        unfinished = {index: block.unfinished for index, block in enumerate(blocks) if block.unfinished}
        return Answer(self._message | {"content": content}, unfinished, self._error, is_streamed=True)

    def _add_delta(self, event: dict[str, Any]) -> None:
        block = self._blocks.get(number_in(event, "index"))
        if block is None:
            raise MessageError(f"no block has started at {shown(event.get('index'))}", path="index")
        delta = mapping_in(event, "delta")
        with at("delta"):
            block.add(delta)

    def _finish(self, event: dict[str, Any]) -> None:
        """How it ended, and what it cost: sums so far, which replace those from the start; null says nothing."""
        message = self._message or {}
        message |= {key: value for key, value in mapping_in(event, "delta").items() if value is not None}
        if event.get("usage") is not None:
            before = {} if message.get("usage") is None else mapping_in(message, "usage")
            now = {key: value for key, value in mapping_in(event, "usage").items() if value is not None}
            message["usage"] = before | now


class _Block:
    """One block of the content. Pieces are joined once, at the end."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._block = start
        self._pieces: dict[str, list[str]] = {}
        self.unfinished = ""

    def add(self, delta: dict[str, Any]) -> None:
        kind = text_in(delta, "type")
        if kind in _PIECES:
            self._pieces.setdefault(_PIECES[kind], []).append(optional_text_in(delta, _PIECES[kind]))
        if kind == "citations_delta":
            self._block["citations"] = [*(self._block.get("citations") or []), delta.get("citation")]
        elif kind == "signature_delta":
            self._block["signature"] = text_in(delta, "signature")
        elif kind == "compaction_delta" and delta.get("encrypted_content") is not None:
            self._block["encrypted_content"] = delta["encrypted_content"]

    def whole(self) -> dict[str, Any]:
        for key, pieces in self._pieces.items():
            text = "".join(pieces)
            if key == "partial_json":
                self._read_input(text)
            else:
                self._block[key] = optional_text_in(self._block, key) + text
        return self._block

    def _read_input(self, text: str) -> None:
        if not text:
            return  # a call without arguments
        self._block["input"] = parsed(text)
        if not self._block["input"] and "".join(text.split()) != "{}":
            self.unfinished = text


def _kind_of(event: dict[str, Any]) -> str:
    error = event.get("error")
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) and kind else "error"
