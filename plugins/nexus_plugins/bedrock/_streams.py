"""The events of a stream become the message."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import MessageError
from nexus_core.plugin import parse_arguments, plain_mapping, read_each
from nexus_plugins.bedrock._fields import inside, list_in, mapping_in, number_in, text_in, unpacked, words_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_plugins.bedrock._fields import Block

EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
_EXCEPTION = "Exception"
"""How the names of events end by which the service reports that it failed."""


class Answer(NamedTuple):
    """A message, and what a stream that broke off left of it.

    Attributes:
        message: As the API would have sent it in one piece.
        rest: What else the API said: why it stopped, what it cost.
        unfinished: The arguments of calls that are no whole JSON, by the place of their block.
        error: What kind of error ended the stream.
        is_streamed: Whether it came in pieces.
        place: Where the message is, for errors.
    """

    message: Block
    rest: Block
    unfinished: Mapping[int, str] = {}
    error: str = ""
    is_streamed: bool = False
    place: str = ""


def merged(events: Sequence[object], path: str = "") -> Answer:
    """The message that events add up to."""
    merge = _Merge()
    read_each(events, lambda event: merge.add(plain_mapping(event)), path)
    return merge.answer()


class _Merge:
    def __init__(self) -> None:
        self._role = ""
        self._blocks: dict[int, _Block] = {}
        self._rest: Block = {}
        self._error = ""

    def add(self, event: Block) -> None:
        kind = next((name for name in event if name in EVENTS or name.endswith(_EXCEPTION)), "")
        if not kind:
            return  # what is new says nothing about the message
        body = mapping_in(event, kind)
        if kind.endswith(_EXCEPTION):
            self._error = kind
        elif kind == "messageStart":
            self._role = text_in(body, "role", kind)
        elif kind in ("messageStop", "metadata"):
            self._rest |= body
        elif not self._role:
            raise MessageError(f"a stream starts with 'messageStart', not {kind!r}", path=kind)
        elif kind != "contentBlockStop":
            self._add_piece(kind, body)

    def answer(self) -> Answer:
        if not self._role:
            if self._error:
                return Answer({"role": "assistant", "content": []}, self._rest, error=self._error, is_streamed=True)
            raise MessageError("there is no answer in it", hint="a stream starts with the event 'messageStart'")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = [block.whole() for block in blocks]
        unfinished = {index: block.unfinished for index, block in enumerate(blocks) if block.unfinished}
        message = {"role": self._role, "content": [block for block in content if block]}
        return Answer(message, self._rest, unfinished, self._error, is_streamed=True)

    def _add_piece(self, kind: str, body: Block) -> None:
        block = self._blocks.setdefault(number_in(body, "contentBlockIndex", kind), _Block())
        if kind == "contentBlockStart":
            block.start(mapping_in(body, "start", kind))
        else:
            block.add(mapping_in(body, "delta", kind), inside(kind, "delta"))


class _Block:
    """One block of the content. Pieces are joined once, at the end."""

    def __init__(self) -> None:
        self._start: Block = {}
        self._texts: dict[str, list[str]] = {}
        self._sealed: list[bytes] = []
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
            self._add_text("input", mapping_in(delta, "toolUse", path), inside(path, "toolUse"))
        elif delta.get("reasoningContent") is not None:
            self._add_thought(mapping_in(delta, "reasoningContent", path), inside(path, "reasoningContent"))
        elif delta.get("citation") is not None:
            self._citations.append(delta["citation"])
        elif delta.get("toolResult") is not None:
            self._results += list_in(delta, "toolResult", path)
        elif delta.get("image") is not None:
            self._add_image(mapping_in(delta, "image", path), inside(path, "image"))

    def whole(self) -> Block:
        """As it would have come at once; nothing where nothing was brought."""
        return self._tool() or self._picture() or self._thought() or self._words()

    def _tool(self) -> Block:
        if "toolUse" in self._start:
            return self._call()
        if "toolResult" in self._start:
            return {"toolResult": {"content": self._results} | mapping_in(self._start, "toolResult")}
        return {}

    def _picture(self) -> Block:
        if not ("image" in self._start or self._image or self._bytes):
            return {}
        held = {"source": {"bytes": _packed(self._bytes)}} if self._bytes else {}
        return {"image": (self._start.get("image") or {}) | self._image | held}

    def _thought(self) -> Block:
        if self._sealed:
            return {"reasoningContent": {"redactedContent": _packed(self._sealed)}}
        if not {"thought", "signature"} & self._texts.keys():
            return {}
        signed = {"signature": self._joined("signature")} if "signature" in self._texts else {}
        return {"reasoningContent": {"reasoningText": {"text": self._joined("thought")} | signed}}

    def _words(self) -> Block:
        words = [{"text": self._joined("text")}] if "text" in self._texts else []
        if self._citations:
            return {"citationsContent": {"content": words, "citations": self._citations}}
        return words[0] if words else {}

    def _add_text(self, key: str, delta: Block, path: str, name: str = "") -> None:
        self._texts.setdefault(name or key, []).append(words_in(delta, key, path))

    def _add_thought(self, delta: Block, path: str) -> None:
        if delta.get("text") is not None:
            self._add_text("text", delta, path, "thought")
        if delta.get("signature") is not None:
            self._add_text("signature", delta, path)
        if delta.get("redactedContent") is not None:
            self._sealed.append(_bytes_in(delta, "redactedContent", path))

    def _add_image(self, delta: Block, path: str) -> None:
        source = delta.get("source")
        if isinstance(source, dict) and source.get("bytes") is not None:
            self._bytes.append(_bytes_in(source, "bytes", inside(path, "source")))
        else:
            self._image |= delta

    def _call(self) -> Block:
        call = mapping_in(self._start, "toolUse")
        text = self._joined("input")
        arguments = parse_arguments(text) if text else {}
        if text and not arguments and "".join(text.split()) != "{}":
            self.unfinished = text
        return {"toolUse": {**call, "input": arguments}}

    def _joined(self, name: str) -> str:
        return "".join(self._texts.get(name, ()))


def _packed(pieces: list[bytes]) -> str:
    return b64encode(b"".join(pieces)).decode("ascii")


def _bytes_in(block: Block, key: str, path: str) -> bytes:
    held = unpacked(text_in(block, key, path))
    if isinstance(held, bytes):
        return held
    raise MessageError("expected bytes, or base64 in JSON", path=inside(path, key))
