"""The chunks of a streamed completion become the completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, mapping_of, named, text_in
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECEWISE = ("content", "refusal", "reasoning_content", "reasoning")
_CALL_PIECES = ("arguments", "input")
_VOICE_PIECES = ("data", "transcript")
_THOUGHT_PIECES = ("text", "summary")


def merged(chunks: Sequence[object]) -> dict[str, Any]:
    """The completion that chunks add up to. Only the first choice is put together."""
    merge = _Merge()
    for index, item in enumerate(chunks):
        with at(f"[{index}]"):
            chunk = plain_mapping(item)
            # The SDK's own stream wraps each chunk in an event, and tells what is in it by further events.
            if isinstance(chunk.get("type"), str) and "choices" not in chunk:
                if chunk["type"] != "chunk":
                    continue
                chunk = mapping_of(chunk.get("chunk"))
            merge.add(chunk)
    return merge.completion()


class _Pieces:
    """Fields that arrive in pieces, beside fields that arrive whole. Joined once, at the end."""

    def __init__(self, *piecewise: str) -> None:
        self._piecewise = piecewise
        self._pieces: dict[str, list[str]] = {}
        self.whole: dict[str, Any] = {}

    def add(self, block: dict[str, Any]) -> None:
        for key, value in block.items():
            if value is None:
                self.whole.setdefault(key, None)
            elif key in self._piecewise and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            elif value != "" or key not in self.whole:
                self.whole[key] = value

    def joined(self) -> dict[str, Any]:
        return self.whole | {key: "".join(pieces) for key, pieces in self._pieces.items()}


class _Call:
    """One call of a tool."""

    def __init__(self) -> None:
        self.id = ""
        self._outer = _Pieces()
        self._inner = {"function": _Pieces(*_CALL_PIECES), "custom": _Pieces(*_CALL_PIECES)}

    def add(self, delta: dict[str, Any]) -> None:
        self.id = self.id or delta.get("id") or ""
        for kind, pieces in self._inner.items():
            if isinstance(delta.get(kind), dict):
                pieces.add(delta[kind])
        self._outer.add({key: value for key, value in delta.items() if key not in ("index", *self._inner)})

    def whole(self) -> dict[str, Any]:
        inner = {kind: joined for kind, pieces in self._inner.items() if (joined := pieces.joined())}
        return self._outer.joined() | inner


class _Merge:
    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._message = _Pieces(*_PIECEWISE)
        self._voice = _Pieces(*_VOICE_PIECES)
        self._former = _Pieces(*_CALL_PIECES)
        self._calls: list[_Call] = []
        self._by_index: dict[object, _Call] = {}
        self._thoughts: list[tuple[object, _Pieces]] = []
        self._annotations: list[object] = []
        self._choice: dict[str, Any] | None = None

    def add(self, chunk: dict[str, Any]) -> None:
        for key in ("id", "model", "usage", "error"):
            if chunk.get(key):
                self._body[key] = chunk[key]
        choices = chunk.get("choices")
        for index, item in enumerate(choices if isinstance(choices, list) else ()):
            with at(f"choices[{index}]"):
                choice = mapping_of(item)
                if choice.get("index", 0) == 0:
                    self._add_choice(choice)

    def completion(self) -> dict[str, Any]:
        if self._choice is None:
            return self._body | {"choices": []}
        message = self._message.joined()
        found: dict[str, Any] = {
            "tool_calls": [call.whole() for call in self._calls],
            "reasoning_details": [pieces.joined() for _, pieces in self._thoughts],
            "annotations": self._annotations,
            "audio": self._voice.joined(),
            "function_call": self._former.joined(),
        }
        message |= {key: value for key, value in found.items() if value}
        return self._body | {"choices": [self._choice | {"message": message}]}

    def _add_choice(self, choice: dict[str, Any]) -> None:
        self._choice = self._choice or {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        if isinstance(choice.get("usage"), dict):
            self._body.setdefault("usage", choice["usage"])
        if choice.get("delta") is None:
            return
        with at("delta"):
            delta = mapping_of(choice["delta"])
            self._add_lists(delta)
            for key, pieces in (("audio", self._voice), ("function_call", self._former)):
                if isinstance(delta.get(key), dict):
                    pieces.add(delta.pop(key))
            self._message.add(delta)

    def _add_lists(self, delta: dict[str, Any]) -> None:
        for key, add in (
            ("tool_calls", self._add_call),
            ("reasoning_details", self._add_thought),
            ("annotations", self._annotations.append),
        ):
            if delta.get(key) is None:
                continue
            items = delta.pop(key)
            if not isinstance(items, list):
                raise MessageError(f"expected a list, not {named(items)}", path=key)
            for index, item in enumerate(items):
                with at(f"{key}[{index}]"):
                    add(mapping_of(item))

    def _add_call(self, delta: dict[str, Any]) -> None:
        if delta.get("id") is not None:
            text_in(delta, "id")
        call = self._by_index.get(_key(delta, "index")) if "index" in delta else next(iter(self._calls[-1:]), None)
        # Some servers count every call as the first one, or do not count at all; each has an id of its own.
        if call is None or (call.id and delta.get("id") and delta["id"] != call.id):
            call = _Call()
            self._calls.append(call)
        self._by_index[_key(delta, "index")] = call
        call.add(delta)

    def _add_thought(self, detail: dict[str, Any]) -> None:
        key = (_key(detail, "type"), _key(detail, "index"))
        if not self._thoughts or self._thoughts[-1][0] != key:
            self._thoughts.append((key, _Pieces(*_THOUGHT_PIECES)))
        self._thoughts[-1][1].add(detail)


def _key(block: dict[str, Any], name: str) -> str:
    return repr(block.get(name))
