"""Merges the settings of layers and keeps, for every value, where it comes from and what it overrode.

Objects merge key by key, lists are joined, anything else is overridden. In a file, `{"$replace": […]}` takes the place
of an inherited list and `{"$remove": […]}` takes items out of it. Some keys have a policy of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from nexus_core.config.pointers import pointer_to
from nexus_core.values.settings import Origin, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.declarations import ListPolicy
    from nexus_core.values.layer import LayerConfig

REPLACE = "$replace"
REMOVE = "$remove"

OWN_POLICIES: Mapping[str, ListPolicy] = {
    "/compaction/command": "replace",
    "/compaction/summarisers": "replace",
    "/context/instruction_files": "replace",
}
"""Lists whose order says something, so that those of two layers do not make one."""

Value = object


def deep_merge(base: Mapping[str, object], override: Mapping[str, object]) -> dict[str, object]:
    """A new dict: objects merge key by key, lists are joined, anything else is overridden."""
    result = dict(base)
    for key, value in override.items():
        present = result.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            result[key] = deep_merge(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            result[key] = present + value
        else:
            result[key] = value
    return result


def merge_configs(configs: Iterable[LayerConfig], policies: Mapping[str, ListPolicy] | None = None) -> Settings:
    """The settings of all files together, the later ones winning.

    Args:
        configs: In order of precedence, the most local last.
        policies: By JSON pointer, how lists under that key are merged; others are joined, but for `OWN_POLICIES`.
    """
    merge = _Merge({**(policies or {}), **OWN_POLICIES})
    for config in configs:
        merge.add(config)
    return Settings(merge.value, _Origins(merge.notes))


def is_comment(key: str) -> bool:
    """Whether a key is there for readers and editors only: `_comment`, `$schema`."""
    return key.startswith("_") or key == "$schema"


_Note = tuple["LayerConfig", str]  # who said something, and at which JSON pointer


class _Origins(Mapping[str, tuple[Origin, ...]]):
    """Where each value comes from; lines and columns are found out for those who ask, because few do."""

    def __init__(self, notes: dict[str, list[_Note]]) -> None:
        self._notes = notes

    def __getitem__(self, pointer: str) -> tuple[Origin, ...]:
        return tuple(
            Origin(config.path, *config.position(source), config.layer.name if config.layer else "")
            for config, source in self._notes[pointer]
        )

    def __contains__(self, pointer: object) -> bool:
        return pointer in self._notes

    def __iter__(self) -> Iterator[str]:
        return iter(self._notes)

    def __len__(self) -> int:
        return len(self._notes)


def is_edit(value: Value) -> bool:
    """Whether a value changes an inherited list instead of being one: `{"$replace": […]}`, `{"$remove": […]}`."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    return isinstance(value.get(REPLACE, value.get(REMOVE)), list)


class _Merge:
    def __init__(self, policies: Mapping[str, ListPolicy]) -> None:
        self._policies = policies
        self.value: dict[str, object] = {}
        self.notes: dict[str, list[_Note]] = {}  # by the pointer of a result, the nearest first

    def add(self, config: LayerConfig) -> None:
        self._config = config
        self._merge_objects(self.value, config.settings, "", "")

    def _merge_objects(self, base: dict[str, object], override: Mapping[str, object], target: str, source: str) -> None:
        for key, value in override.items():
            if is_comment(key):
                continue
            here = pointer_to(target, key)
            there = here if source == target else pointer_to(source, key)
            present = base.get(key)
            if is_edit(value):
                base[key] = self._edited(present, cast("dict[str, Value]", value), here, there)
            elif isinstance(present, dict) and isinstance(value, dict):
                self._note(here, there)
                self._merge_objects(present, value, here, there)
            elif isinstance(present, list) and isinstance(value, list):
                base[key] = self._merged(present, value, here, there)
            else:
                self._forget(present, here)
                base[key] = self._placed(value, here, there)

    def _placed(self, value: Value, target: str, source: str, *, verbatim: bool = False) -> Value:
        """A value as it stands in the result, its origins noted.

        What has a name is data, not settings: `verbatim` keeps its keys whatever they begin with.
        """
        verbatim = verbatim or self._policies.get(target) == "by-name"
        self._note(target, source)
        if not verbatim and is_edit(value):
            return self._edited(None, cast("dict[str, Value]", value), target, source)
        if isinstance(value, dict):
            return {
                key: self._placed(item, pointer_to(target, key), pointer_to(source, key), verbatim=verbatim)
                for key, item in value.items()
                if verbatim or not is_comment(key)
            }
        if isinstance(value, list):
            return [
                self._placed(item, pointer_to(target, index), pointer_to(source, index), verbatim=verbatim)
                for index, item in enumerate(value)
            ]
        return value

    def _edited(self, present: Value, edit: dict[str, Value], target: str, source: str) -> Value:
        if REPLACE in edit:
            self._forget(present, target)
            return self._placed(edit[REPLACE], target, pointer_to(source, REPLACE))
        if not isinstance(present, list):
            self._forget(present, target)
        former = present if isinstance(present, list) else []
        identity = _name if self._policies.get(target) == "by-name" else _identity  # a name is enough
        unwanted = set(map(identity, cast("list[Value]", edit[REMOVE])))
        kept = [index for index, item in enumerate(former) if identity(item) not in unwanted]
        return self._thinned(former, kept, target, source)

    def _merged(self, present: list[Value], value: list[Value], target: str, source: str) -> list[Value]:
        policy = self._policies.get(target, "join")
        if policy == "replace":
            self._forget(present, target)
            return cast("list[Value]", self._placed(value, target, source))
        kept = list(range(len(present)))
        if policy == "by-name":
            names = set(map(_name, value))
            kept = [index for index, item in enumerate(present) if _name(item) not in names]
        result = self._thinned(present, kept, target, source)
        known = set(map(_identity, result)) if policy == "unique" else set()
        for index, item in enumerate(value):
            if policy == "unique":
                if _identity(item) in known:
                    continue
                known.add(_identity(item))
            place = pointer_to(target, len(result))
            result.append(self._placed(item, place, pointer_to(source, index), verbatim=policy == "by-name"))
        return result

    def _thinned(self, former: list[Value], kept: list[int], target: str, source: str) -> list[Value]:
        """The items of a list that stay, each with the origins it had at its former place."""
        if len(kept) < len(former):
            notes = [self._taken(item, pointer_to(target, index)) for index, item in enumerate(former)]
            for after, before in enumerate(kept):
                place = pointer_to(target, after)
                self.notes |= {place + rest: found for rest, found in notes[before].items()}
        self._note(target, source)
        return [former[index] for index in kept]

    def _taken(self, value: Value, pointer: str) -> dict[str, list[_Note]]:
        """The notes about a value and all that is in it, by the rest of their pointers; they are there no longer."""
        return {each[len(pointer) :]: self.notes.pop(each) for each in _pointers(value, pointer) if each in self.notes}

    def _forget(self, value: Value, pointer: str) -> None:
        """Drop the notes about what is in a value; those about itself tell what was overridden."""
        if isinstance(value, dict | list):
            kept = self.notes.get(pointer)
            self._taken(value, pointer)
            if kept:
                self.notes[pointer] = kept

    def _note(self, target: str, source: str) -> None:
        self.notes[target] = [(self._config, source), *self.notes.get(target, ())]


def _pointers(value: Value, pointer: str) -> Iterator[str]:
    """The JSON pointers of a value and of everything in it; going through them all would take long where many are."""
    yield pointer
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _pointers(item, pointer_to(pointer, key))


def _name(item: Value) -> Hashable:
    return _identity(item.get("name") if isinstance(item, dict) else item)


def _identity(item: Value) -> Hashable:
    """The same for what is the same in JSON; comparing each with each would take long where many are."""
    if isinstance(item, str):
        return item
    import json  # noqa: PLC0415 - most lists are of words

    return (json.dumps(item, sort_keys=True),)
