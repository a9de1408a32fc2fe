"""Merges the settings of layers and keeps, for every value, where it comes from and what it overrode.

Objects merge key by key, lists are joined, anything else is overridden. In a file, `{"$replace": […]}` takes the place
of an inherited list and `{"$remove": […]}` takes items out of it. Some keys have a policy of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nexus_core.config.json_parser import pointer_to
from nexus_core.values.settings import Origin, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.values.declarations import ListPolicy
    from nexus_core.values.layer import LayerConfig

REPLACE = "$replace"
REMOVE = "$remove"

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
        policies: By JSON pointer, how lists under that key are merged; they are joined otherwise.
    """
    merge = _Merge(policies or {})
    for config in configs:
        merge.add(config)
    return Settings(merge.value, {pointer: tuple(found) for pointer, found in merge.origins.items()})


def is_comment(key: str) -> bool:
    """Whether a key is there for readers and editors only: `_comment`, `$schema`."""
    return key.startswith("_") or key == "$schema"


class _Merge:
    def __init__(self, policies: Mapping[str, ListPolicy]) -> None:
        self._policies = policies
        self.value: dict[str, object] = {}
        self.origins: dict[str, list[Origin]] = {}

    def add(self, config: LayerConfig) -> None:
        self._config = config
        self._merge_objects(self.value, config.settings, "", "")

    def _merge_objects(self, base: dict[str, object], override: Mapping[str, object], target: str, source: str) -> None:
        for key, value in override.items():
            if is_comment(key):
                continue
            here, there = pointer_to(target, key), pointer_to(source, key)
            present = base.get(key)
            if _is_edit(value):
                base[key] = self._edited(present, cast("dict[str, Value]", value), here, there)
            elif isinstance(present, dict) and isinstance(value, dict):
                self._note(here, there)
                self._merge_objects(present, value, here, there)
            elif isinstance(present, list) and isinstance(value, list):
                base[key] = self._merged(present, value, here, there)
            else:
                base[key] = self._placed(value, here, there)

    def _placed(self, value: Value, target: str, source: str, *, verbatim: bool = False) -> Value:
        """A value as it stands in the result, its origins noted, and those of what it replaces forgotten.

        What has a name is data, not settings: `verbatim` keeps its keys whatever they begin with.
        """
        verbatim = verbatim or self._policies.get(target) == "by-name"
        if target in self.origins:  # only then can there be some below it
            for pointer in [each for each in self.origins if each.startswith(target + "/")]:
                del self.origins[pointer]
        self._note(target, source)
        if not verbatim and _is_edit(value):
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
            return self._placed(edit[REPLACE], target, pointer_to(source, REPLACE))
        former = present if isinstance(present, list) else []
        unwanted = cast("list[Value]", edit[REMOVE])
        kept = [index for index, item in enumerate(former) if item not in unwanted]
        return self._thinned(former, kept, target, source)

    def _merged(self, present: list[Value], value: list[Value], target: str, source: str) -> list[Value]:
        policy = self._policies.get(target, "join")
        if policy == "replace":
            return cast("list[Value]", self._placed(value, target, source))
        kept = list(range(len(present)))
        if policy == "by-name":
            names = [_name(item) for item in value]
            kept = [index for index, item in enumerate(present) if _name(item) not in names]
        result = self._thinned(present, kept, target, source)
        for index, item in enumerate(value):
            if policy != "unique" or item not in result:
                place = pointer_to(target, len(result))
                result.append(self._placed(item, place, pointer_to(source, index), verbatim=policy == "by-name"))
        return result

    def _thinned(self, former: list[Value], kept: list[int], target: str, source: str) -> list[Value]:
        """The items of a list that stay, each with the origins it had at its former place."""
        if len(kept) < len(former):
            places = {str(before): after for after, before in enumerate(kept)}
            below = [pointer for pointer in self.origins if pointer.startswith(target + "/")]
            moved = [(pointer[len(target) + 1 :].partition("/"), self.origins.pop(pointer)) for pointer in below]
            for (index, slash, rest), origins in moved:
                if index in places:
                    self.origins[f"{pointer_to(target, places[index])}{slash}{rest}"] = origins
        self._note(target, source)
        return [former[index] for index in kept]

    def _note(self, target: str, source: str) -> None:
        config = self._config
        line, column = config.position(source)
        origin = Origin(config.path, line, column, config.layer.name if config.layer else "")
        self.origins[target] = [origin, *self.origins.get(target, [])]


def _is_edit(value: Value) -> bool:
    """Whether a value changes an inherited list instead of being one: `{"$replace": […]}`, `{"$remove": […]}`."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    return isinstance(value.get(REPLACE, value.get(REMOVE)), list)


def _name(item: Value) -> Value:
    return item.get("name") if isinstance(item, dict) else item
