"""Merge of the settings of all layers, with the origins of every value.

Objects merge key by key, lists are joined, other values are overridden. In a file, `{"$replace": […]}` replaces an
inherited list and `{"$remove": […]}` removes items from it. Some keys have a policy of their own, and the user's
`merging.lists` is the policy of all other lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from nexus_core.config.pointers import pointer_to
from nexus_core.types.settings import SettingOrigin, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.layers import LayerConfig
    from nexus_core.types.settings import ListPolicy

REPLACE_KEY = "$replace"
REMOVE_KEY = "$remove"

FIXED_POLICIES: Mapping[str, ListPolicy] = {
    "/compaction/command": "replace",
    "/compaction/summarizers": "replace",
    "/context/instruction_files": "replace",
    "/permissions/tools/allow": "join",
    "/permissions/tools/deny": "join",
}
"""Policies that cannot be changed: for lists whose order matters, and for lists that restrict a project."""

SERVERS_POLICY: Mapping[str, ListPolicy] = {"/mcp_servers": "join"}
"""Policy for servers without the plugin that merges them by name; a project can never remove the user's."""

LIST_POLICY_SETTING = "merging.lists"
"""The setting with the policy of all lists without a policy of their own."""

NOT_MERGED = object()
"""Returned by a merge function that could not merge two values; they are merged as if there were no policy."""

SettingValue = object


def deep_merge(base: Mapping[str, object], override: Mapping[str, object]) -> dict[str, object]:
    """Return a new dict: objects merge key by key, lists are joined, other values are overridden."""
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
    """The rule for merging the values of one key.

    Attributes:
        rule: The name of a policy, or a function of the inherited value and the new one.
        origin: The plugin or setting that defines it; "" for a rule of Nexus.
    """

    rule: ListPolicy | Callable[[SettingValue, SettingValue], SettingValue]
    origin: str = ""

    def __str__(self) -> str:
        rule = "a function" if callable(self.rule) else self.rule
        return f"{rule} ({self.origin})" if self.origin else rule


_FIXED_RULES = {key: KeyMergeRule(rule) for key, rule in FIXED_POLICIES.items()}
_SERVERS_RULES = {key: KeyMergeRule(rule) for key, rule in SERVERS_POLICY.items()}


def merge_configs(
    configs: Iterable[LayerConfig], policies: Mapping[str, ListPolicy | KeyMergeRule] | None = None
) -> Settings:
    """Return the merged settings of all files. Later ones win.

    Args:
        configs: In order of precedence, the most local last; `enforce_policy` has removed what projects may not set.
        policies: Merge policies by JSON pointer; `FIXED_POLICIES` override them. Lists without a policy are merged as
            the last file with `merging.lists` defines.
    """
    configs = list(configs)
    known = {**_SERVERS_RULES, **(policies or {}), **_FIXED_RULES}
    lists = next(
        (found for config in reversed(configs) if (found := _get_list_policy(config)) is not None), KeyMergeRule("join")
    )
    merge = _SettingsMerge(
        {key: each if isinstance(each, KeyMergeRule) else KeyMergeRule(each) for key, each in known.items()}, lists
    )
    for config in configs:
        merge.add(config)
    return Settings(merge.value, _LazyOrigins(merge.notes), merge.used)


def _get_list_policy(config: LayerConfig) -> KeyMergeRule | None:
    """Return the policy that a file sets for all lists. Validation reports wrong values."""
    group = config.settings.get("merging")
    name = group.get("lists") if isinstance(group, dict) else None
    return KeyMergeRule(name, LIST_POLICY_SETTING) if name in ("join", "replace", "unique") else None


def is_comment(key: str) -> bool:
    """Return True if a key is for readers and editors only: `_comment`, `$schema`."""
    return key.startswith("_") or key == "$schema"


_OriginNote = tuple["LayerConfig", str]  # the file that sets a value, and the JSON pointer in it


class _LazyOrigins(Mapping[str, tuple[SettingOrigin, ...]]):
    """Origins by JSON pointer. Lines and columns are computed on access, because few are needed."""

    def __init__(self, notes: dict[str, list[_OriginNote]]) -> None:
        self._notes = notes

    def __getitem__(self, pointer: str) -> tuple[SettingOrigin, ...]:
        return tuple(
            SettingOrigin(config.path, *config.position(source), config.layer.name if config.layer else "")
            for config, source in self._notes[pointer]
        )

    def __contains__(self, pointer: object) -> bool:
        return pointer in self._notes

    def __iter__(self) -> Iterator[str]:
        return iter(self._notes)

    def __len__(self) -> int:
        return len(self._notes)


def is_list_edit(value: SettingValue) -> bool:
    """Return True if a value edits an inherited list: `{"$replace": […]}`, `{"$remove": […]}`."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    return isinstance(value.get(REPLACE_KEY, value.get(REMOVE_KEY)), list)


class _SettingsMerge:
    def __init__(self, policies: Mapping[str, KeyMergeRule], lists: KeyMergeRule) -> None:
        self._policies = policies
        self._lists = lists
        self.used: dict[str, str] = {}  # by the pointer of a result, the policy that produced it
        self.value: dict[str, object] = {}
        self.notes: dict[str, list[_OriginNote]] = {}  # by the pointer of a result, the nearest first

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
            if is_group and is_list_edit(value):
                base[key] = self._apply_list_edit(present, cast("dict[str, SettingValue]", value), here, there)
            elif here in self._policies and key in base and self._apply_policy(base, key, value, here, there):
                continue
            elif is_group and isinstance(present, dict):
                self._add_note(here, there)
                self._merge_objects(present, cast("dict[str, SettingValue]", value), here, there)
            elif isinstance(present, list) and isinstance(value, list):
                base[key] = self._merge_lists(present, value, here, there)
            else:
                self._drop_inner_notes(present, here)
                base[key] = self._add_value(value, here, there)

    def _get_rule(self, target: str) -> ListPolicy | Callable[[SettingValue, SettingValue], SettingValue] | None:
        policy = self._policies.get(target)
        return None if policy is None else policy.rule

    def _apply_policy(self, base: dict[str, object], key: str, value: SettingValue, target: str, source: str) -> bool:
        """Merge a value by a function, or an object by `replace`. Return False if neither applies, or it failed."""
        rule, present = self._get_rule(target), base[key]
        if callable(rule):
            merged = rule(present, _strip_comments(value))
            if merged is NOT_MERGED:
                return False
            self._note_origins(merged, present, value, target, source)
            base[key] = merged
        elif rule == "replace" and isinstance(present, dict) and isinstance(value, dict):
            self._drop_inner_notes(present, target)
            base[key] = self._add_value(value, target, source)
        else:
            return False
        self.used[target] = str(self._policies[target])
        return True

    def _note_origins(
        self, merged: SettingValue, present: SettingValue, value: SettingValue, target: str, source: str
    ) -> None:
        """Record where the parts of a merged value come from: the new one, the inherited one, or both."""
        inherited = self._pop_notes(present, target)
        self.notes[target] = [(self._config, source), *inherited.get("", ())]
        children = merged.items() if isinstance(merged, dict) else enumerate(merged) if isinstance(merged, list) else ()
        for child, item in children:
            place = pointer_to(target, child)
            if (found := _find_equal_item(item, value, child)) is not None:
                self._add_value(item, place, pointer_to(source, found), verbatim=True)
                continue
            former = _find_equal_item(item, present, child)
            rest = "" if former is None else pointer_to("", former)
            for each in _iter_pointers(item, ""):
                kept = inherited.get(rest + each) if former is not None else None
                self.notes[place + each] = list(kept or self.notes[target])

    def _add_value(self, value: SettingValue, target: str, source: str, *, verbatim: bool = False) -> SettingValue:
        """Return a value for the result, recording its origins.

        An item with a name is data, not settings: `verbatim` keeps its keys even if they look like comments.
        """
        verbatim = verbatim or (target in self._policies and self._get_rule(target) == "by-name")
        self._add_note(target, source)
        if not verbatim and is_list_edit(value):
            return self._apply_list_edit(None, cast("dict[str, SettingValue]", value), target, source)
        if isinstance(value, dict):
            return {
                key: self._add_value(item, pointer_to(target, key), pointer_to(source, key), verbatim=verbatim)
                for key, item in value.items()
                if verbatim or not is_comment(key)
            }
        if isinstance(value, list):
            return [
                self._add_value(item, pointer_to(target, index), pointer_to(source, index), verbatim=verbatim)
                for index, item in enumerate(value)
            ]
        return value

    def _apply_list_edit(
        self, present: SettingValue, edit: dict[str, SettingValue], target: str, source: str
    ) -> SettingValue:
        if REPLACE_KEY in edit:
            self._drop_inner_notes(present, target)
            return self._add_value(edit[REPLACE_KEY], target, pointer_to(source, REPLACE_KEY))
        if not isinstance(present, list):
            self._drop_inner_notes(present, target)
        former = present if isinstance(present, list) else []
        identity = _get_name_key if self._get_rule(target) == "by-name" else _get_identity  # a name is enough
        unwanted = set(map(identity, cast("list[SettingValue]", edit[REMOVE_KEY])))
        kept = [index for index, item in enumerate(former) if identity(item) not in unwanted]
        return self._keep_items(former, kept, target, source)

    def _merge_lists(
        self, present: list[SettingValue], value: list[SettingValue], target: str, source: str
    ) -> list[SettingValue]:
        chosen = self._policies.get(target, self._lists)
        if callable(chosen.rule):  # the function could not merge them
            chosen = self._lists
        policy = chosen.rule
        if chosen.origin or policy != "join":
            self.used[target] = str(chosen)
        if policy == "replace":
            self._drop_inner_notes(present, target)
            return cast("list[SettingValue]", self._add_value(value, target, source))
        kept = list(range(len(present)))
        if policy == "by-name":
            names = set(map(_get_name_key, value))
            kept = [index for index, item in enumerate(present) if _get_name_key(item) not in names]
        result = self._keep_items(present, kept, target, source)
        known = set(map(_get_identity, result)) if policy == "unique" else set()
        for index, item in enumerate(value):
            if policy == "unique":
                if _get_identity(item) in known:
                    continue
                known.add(_get_identity(item))
            place = pointer_to(target, len(result))
            result.append(self._add_value(item, place, pointer_to(source, index), verbatim=policy == "by-name"))
        return result

    def _keep_items(self, former: list[SettingValue], kept: list[int], target: str, source: str) -> list[SettingValue]:
        """Return the items of a list that stay, each with the origins it had at its former index."""
        if len(kept) < len(former):
            notes = [self._pop_notes(item, pointer_to(target, index)) for index, item in enumerate(former)]
            for after, before in enumerate(kept):
                place = pointer_to(target, after)
                self.notes |= {place + rest: found for rest, found in notes[before].items()}
        self._add_note(target, source)
        return [former[index] for index in kept]

    def _pop_notes(self, value: SettingValue, pointer: str) -> dict[str, list[_OriginNote]]:
        """Remove and return the notes about a value and everything in it, by the rest of their pointers."""
        return {
            each[len(pointer) :]: self.notes.pop(each) for each in _iter_pointers(value, pointer) if each in self.notes
        }

    def _drop_inner_notes(self, value: SettingValue, pointer: str) -> None:
        """Drop the notes about the items of a value. Those about itself record what was overridden."""
        if isinstance(value, dict | list):
            kept = self.notes.get(pointer)
            self._pop_notes(value, pointer)
            if kept:
                self.notes[pointer] = kept

    def _add_note(self, target: str, source: str) -> None:
        self.notes[target] = [(self._config, source), *self.notes.get(target, ())]


def _strip_comments(value: SettingValue) -> SettingValue:
    """Return a value without the keys that are for readers only."""
    if isinstance(value, dict):
        return {key: _strip_comments(item) for key, item in value.items() if not is_comment(key)}
    return [_strip_comments(item) for item in value] if isinstance(value, list) else value


def _find_equal_item(item: SettingValue, among: SettingValue, key: str | int) -> str | int | None:
    """Return the key of a group, or the index of a list, where the same value is, or None if it is not there."""
    if isinstance(among, dict):
        return key if key in among and among[key] == item else None
    return among.index(item) if isinstance(among, list) and item in among else None


def _iter_pointers(value: SettingValue, pointer: str) -> Iterator[str]:
    """Yield the JSON pointers of a value and of everything in it, without scanning all notes."""
    yield pointer
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iter_pointers(item, pointer_to(pointer, key))


def _get_name_key(item: SettingValue) -> Hashable:
    return _get_identity(item.get("name") if isinstance(item, dict) else item)


def _get_identity(item: SettingValue) -> Hashable:
    """Return the same value for equal JSON, so that no item is compared with every other."""
    if isinstance(item, str):
        return item
    return (json.dumps(item, sort_keys=True),)
