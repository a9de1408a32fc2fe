"""What the events of a stream had brought when it broke off."""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.fields import optional_text_in

Block = dict[str, Any]

_PIECES = {
    "response.output_text.delta": "content",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
"""The events that bring a piece of an item, and the field it belongs to."""


class Begun:
    """Items that have begun; pieces are joined once, at the end."""

    def __init__(self) -> None:
        self._items: dict[str, Block] = {}
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, kind: str, event: Block) -> None:
        """The next event."""
        place = repr(event.get("output_index"))
        if kind == "response.output_item.added" and isinstance(event.get("item"), dict):
            self._items[place] = event["item"]
        elif kind == "response.output_item.done":
            self._items.pop(place, None)
        elif kind in _PIECES:
            self._pieces.setdefault(place, {}).setdefault(_PIECES[kind], []).append(optional_text_in(event, "delta"))

    def items(self) -> list[Block]:
        """Those that are not done, as far as they came; without those of which nothing came but their beginning."""
        return [self._whole(place, item) for place, item in self._items.items() if place in self._pieces]

    def _whole(self, place: str, item: Block) -> Block:
        texts = {field: "".join(pieces) for field, pieces in self._pieces[place].items()}
        if "content" in texts:
            return item | {"content": [{"type": "output_text", "text": texts["content"], "annotations": []}]}
        return item | texts
