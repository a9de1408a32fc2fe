"""A call whose arguments arrive one by one, each with its path: `$.rooms[0].light`. Only Vertex AI streams so."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from nexus_core.dialects.fields import at, list_in, mapping_of, shown, text_in
from nexus_core.dialects.gemini.spelling import camel
from nexus_core.dialects.plain import DEEPEST
from nexus_core.errors import MessageError

Block = dict[str, Any]

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue")


class PartialCall:
    """A call that is not complete yet."""

    def __init__(self, call: Block) -> None:
        self._call = {key: value for key, value in call.items() if key not in ("willContinue", "partialArgs")}
        self._values: dict[str, list[Any]] = {}
        self.add(call)

    @staticmethod
    def starts(call: Block) -> bool:
        """Whether more of a call will come, or its arguments are in pieces."""
        return call.get("willContinue") is True or bool(call.get("partialArgs"))

    def add(self, call: Block) -> None:
        """The next arguments, or pieces of them."""
        if call.get("partialArgs") is None:
            return
        for index, item in enumerate(list_in(call, "partialArgs")):
            with at(f"partialArgs[{index}]"):
                argument = {camel(key): value for key, value in mapping_of(item).items()}
                value = next((argument[name] for name in _VALUES if argument.get(name) is not None), None)
                self._values.setdefault(text_in(argument, "jsonPath"), []).append(value)

    def whole(self) -> Block:
        """The call as it would have come at once."""
        given = self._call.get("args")
        arguments = dict(given) if isinstance(given, dict) else {}
        for path, pieces in self._values.items():
            texts = all(isinstance(piece, str) for piece in pieces)
            _put(arguments, path, "".join(pieces) if texts else pieces[-1])
        return self._call | {"args": arguments}


def _put(arguments: Block, path: str, value: object) -> None:
    matches = list(_STEP.finditer(path))
    if not matches or len(matches) > DEEPEST or "$" + "".join(match.group() for match in matches) != path:
        raise MessageError(f"not a path into the arguments: {shown(path)}", path="partialArgs")
    steps = [_step(match) for match in matches]
    holder: list[Any] | Block = arguments
    for step, following in pairwise(steps):
        held = _held(holder, step, path)
        holder = _set(holder, step, held or ([] if isinstance(following, int) else {}))
    _held(holder, steps[-1], path)
    _set(holder, steps[-1], value)


def _held(holder: object, step: str | int, path: str) -> Any:  # noqa: ANN401 - JSON has many types
    """What stands there already; room is made for what does not."""
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int):
        holder.extend([None] * (step + 1 - len(holder)))
        return holder[step]
    raise MessageError(f"the arguments do not have the shape of {shown(path)}", path="partialArgs")


def _set(holder: Any, step: str | int, value: Any) -> Any:  # noqa: ANN401 - as above
    holder[step] = value
    return value


def _step(match: re.Match[str]) -> str | int:
    name, index, quoted, twice = match.groups()
    return int(index) if index is not None else next(each for each in (name, quoted, twice) if each is not None)
