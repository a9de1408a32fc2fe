"""Merges the settings of layers and keeps, for every value, where it comes from and what it overrode.

Objects merge key by key, lists are joined, anything else is overridden. In a file, `{"$replace": […]}` takes the place
of an inherited list and `{"$remove": […]}` takes items out of it. Some keys have a policy of their own, and the user's
`merging.lists` is the policy of all other lists.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

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
    "/permissions/tools/allow": "join",
    "/permissions/tools/deny": "join",
}
"""Policies that nothing changes: of lists whose order says something, and of those that keep a project in bounds."""

SERVERS_POLICY: Mapping[str, ListPolicy] = {"/mcp_servers": "join"}
"""What holds for servers without the plugin that merges them by name; a project can never take away the user's."""

LISTS = "merging.lists"
"""The setting with the policy of all lists that have none of their own."""

NOT_MERGED = object()
"""What a function answers that could not merge two values; they are merged as if there were no policy."""

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


class KeyMergeRule(NamedTuple):
    """How the values of one key are merged.

    Attributes:
        rule: The name of a policy, or a function of the inherited value and the new one.
        origin: Who decided it: a plugin, or a setting.
    """

    rule: ListPolicy | Callable[[Value, Value], Value]
    origin: str = ""

    def __str__(self) -> str:
        rule = "a function" if callable(self.rule) else self.rule
        return f"{rule} ({self.origin})" if self.origin else rule


_OWN_POLICIES = {key: KeyMergeRule(rule) for key, rule in OWN_POLICIES.items()}
_SERVERS_POLICY = {key: KeyMergeRule(rule) for key, rule in SERVERS_POLICY.items()}


def merge_configs(
    configs: Iterable[LayerConfig], policies: Mapping[str, ListPolicy | KeyMergeRule] | None = None
) -> Settings:
    """The settings of all files together, the later ones winning.

    Args:
        configs: In order of precedence, the most local last; what a project may not decide is taken out before.
        policies: By JSON pointer, how values under that key are merged; `OWN_POLICIES` go before them. Lists without a
            policy are merged as the last file says that has `merging.lists`.
    """
    configs = list(configs)
    known = {**_SERVERS_POLICY, **(policies or {}), **_OWN_POLICIES}
    lists = next(
        (found for config in reversed(configs) if (found := _list_policy(config)) is not None), KeyMergeRule("join")
    )
    merge = _Merge(
        {key: each if isinstance(each, KeyMergeRule) else KeyMergeRule(each) for key, each in known.items()}, lists
    )
    for config in configs:
        merge.add(config)
    return Settings(merge.value, _Origins(merge.notes), merge.used)


def _list_policy(config: LayerConfig) -> KeyMergeRule | None:
    """Return the policy that a file sets for all lists; wrong values are found when settings are checked."""
    group = config.settings.get("merging")
    name = group.get("lists") if isinstance(group, dict) else None
    return KeyMergeRule(name, LISTS) if name in ("join", "replace", "unique") else None


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
    def __init__(self, policies: Mapping[str, KeyMergeRule], lists: KeyMergeRule) -> None:
        self._policies = policies
        self._lists = lists
        self.used: dict[str, str] = {}  # by the pointer of a result, the policy that made it
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
            is_group = isinstance(value, dict)
            if is_group and is_edit(value):
                base[key] = self._edited(present, cast("dict[str, Value]", value), here, there)
            elif here in self._policies and key in base and self._apply(base, key, value, here, there):
                continue
            elif is_group and isinstance(present, dict):
                self._note(here, there)
                self._merge_objects(present, cast("dict[str, Value]", value), here, there)
            elif isinstance(present, list) and isinstance(value, list):
                base[key] = self._merged(present, value, here, there)
            else:
                self._forget(present, here)
                base[key] = self._placed(value, here, there)

    def _rule(self, target: str) -> ListPolicy | Callable[[Value, Value], Value] | None:
        policy = self._policies.get(target)
        return None if policy is None else policy.rule

    def _apply(self, base: dict[str, object], key: str, value: Value, target: str, source: str) -> bool:
        """Merge a value by a function, or an object by `replace`; False where that is not the policy, or it failed."""
        rule, present = self._rule(target), base[key]
        if callable(rule):
            merged = rule(present, _without_comments(value))
            if merged is NOT_MERGED:
                return False
            self._credit(merged, present, value, target, source)
            base[key] = merged
        elif rule == "replace" and isinstance(present, dict) and isinstance(value, dict):
            self._forget(present, target)
            base[key] = self._placed(value, target, source)
        else:
            return False
        self.used[target] = str(self._policies[target])
        return True

    def _credit(self, merged: Value, present: Value, value: Value, target: str, source: str) -> None:
        """Note where the parts of a merged value come from: the new one, the inherited one, or both."""
        inherited = self._taken(present, target)
        self.notes[target] = [(self._config, source), *inherited.get("", ())]
        children = merged.items() if isinstance(merged, dict) else enumerate(merged) if isinstance(merged, list) else ()
        for child, item in children:
            place = pointer_to(target, child)
            if (found := _find_equal(item, value, child)) is not None:
                self._placed(item, place, pointer_to(source, found), verbatim=True)
                continue
            former = _find_equal(item, present, child)
            rest = "" if former is None else pointer_to("", former)
            for each in _pointers(item, ""):
                kept = inherited.get(rest + each) if former is not None else None
                self.notes[place + each] = list(kept or self.notes[target])

    def _placed(self, value: Value, target: str, source: str, *, verbatim: bool = False) -> Value:
        """A value as it stands in the result, its origins noted.

        What has a name is data, not settings: `verbatim` keeps its keys whatever they begin with.
        """
        verbatim = verbatim or (target in self._policies and self._rule(target) == "by-name")
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
        identity = _name if self._rule(target) == "by-name" else _identity  # a name is enough
        unwanted = set(map(identity, cast("list[Value]", edit[REMOVE])))
        kept = [index for index, item in enumerate(former) if identity(item) not in unwanted]
        return self._thinned(former, kept, target, source)

    def _merged(self, present: list[Value], value: list[Value], target: str, source: str) -> list[Value]:
        chosen = self._policies.get(target, self._lists)
        if callable(chosen.rule):  # which could not merge them
            chosen = self._lists
        policy = chosen.rule
        if chosen.origin or policy != "join":
            self.used[target] = str(chosen)
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


def _without_comments(value: Value) -> Value:
    """Return a value without the keys that are there for readers only."""
    if isinstance(value, dict):
        return {key: _without_comments(item) for key, item in value.items() if not is_comment(key)}
    return [_without_comments(item) for item in value] if isinstance(value, list) else value


def _find_equal(item: Value, among: Value, key: str | int) -> str | int | None:
    """Return the key of a group, or the index of a list, where the same value is; None if it is not there."""
    if isinstance(among, dict):
        return key if key in among and among[key] == item else None
    return among.index(item) if isinstance(among, list) and item in among else None


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
