"""How values of several layers become one: what plugins and the user decide, and what they cannot loosen."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core import ConfigError, Nexus, PluginError, hookimpl
from nexus_core.config.jsonc import parse_json
from nexus_core.config.merge import deep_merge, merge_configs
from nexus_core.plugin import Layer, LayerConfig, MergePolicy, PluginSettings, Problem
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.settings import LIST_POLICIES, ListPolicy
from tests.conftest import Cli, InstallPlugin
from tests.effort import sampled
from tests.timing import assert_linear

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc", max_size=3),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("abcd"), children, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def config(name: str, text: str) -> LayerConfig:
    document = parse_json(text)
    value: Any = document.value
    layer = Layer(name, Path("/") / name, "local")
    return LayerConfig(Path("/") / name / "config.json", value, document.position, layer=layer)


def merged(*texts: str, policies: dict[str, ListPolicy] | None = None) -> Any:
    return merge_configs([config(f"l{i}", text) for i, text in enumerate(texts)], policies)


@pytest.mark.acceptance("F-01", "F-04")
def test_objects_merge_key_by_key_and_absent_keys_keep_their_value() -> None:
    settings = merged('{"provider": {"model": "a", "timeout": 1}}', '{"provider": {"model": "b"}}')

    assert settings.value == {"provider": {"model": "b", "timeout": 1}}


@pytest.mark.acceptance("F-02")
def test_lists_are_joined_base_first() -> None:
    assert merged('{"a": [1, 2]}', '{"a": [2, 3]}').value == {"a": [1, 2, 2, 3]}


@pytest.mark.acceptance("F-03")
@pytest.mark.parametrize(("base", "over"), [("1", "2"), ("[1]", '"x"'), ('{"x": 1}', "[1]"), ("1", "null")])
def test_anything_else_is_overridden(base: str, over: str) -> None:
    assert merged(f'{{"a": {base}}}', f'{{"a": {over}}}').value == parse_json(f'{{"a": {over}}}').value


@pytest.mark.acceptance("F-14")
def test_comments_are_dropped_at_any_depth() -> None:
    settings = merged('{"_comment": "x", "$schema": "y", "a": {"_why": 1, "b": 2}, "l": [{"_c": 1}]}')

    assert settings.value == {"a": {"b": 2}, "l": [{}]}


def test_a_list_can_be_replaced_from_within_a_file() -> None:
    settings = merged('{"a": [1, 2]}', '{"a": {"$replace": [3]}}')

    assert settings.value == {"a": [3]}
    assert [origin.layer for origin in settings.origins["/a"]] == ["l1", "l0"]
    assert [origin.layer for origin in settings.origins["/a/0"]] == ["l1"]


def test_items_can_be_taken_out_of_an_inherited_list() -> None:
    settings = merged('{"a": ["x", "y", "z"]}', '{"a": {"$remove": ["y"]}}')

    assert settings.value == {"a": ["x", "z"]}
    assert str(settings.origins["/a/1"][0]) == "/l0/config.json:1"


def test_removing_from_nothing_leaves_an_empty_list() -> None:
    assert merged('{"a": {"$remove": ["y"]}}').value == {"a": []}


@pytest.mark.parametrize(
    ("policy", "result"),
    [("join", [1, 2, 2, 3]), ("replace", [2, 3]), ("unique", [1, 2, 3])],
)
def test_a_key_may_have_a_policy_of_its_own(policy: ListPolicy, result: list[int]) -> None:
    assert merged('{"a": [1, 2]}', '{"a": [2, 3]}', policies={"/a": policy}).value == {"a": result}


def test_of_two_items_with_one_name_the_later_wins_entirely() -> None:
    settings = merged(
        '{"s": [{"name": "a", "x": 1}, {"name": "b"}]}', '{"s": [{"name": "a", "y": 2}]}', policies={"/s": "by-name"}
    )

    assert settings.value == {"s": [{"name": "b"}, {"name": "a", "y": 2}]}
    assert settings.origins["/s/0/name"][0].layer == "l0"
    assert settings.origins["/s/1/y"][0].layer == "l1"
    assert "/s/1/x" not in settings.origins


def test_what_has_a_name_is_kept_to_the_letter() -> None:
    text = '{"s": [{"name": "a", "env": {"_TOKEN": "1", "$replace": ["x"]}}]}'

    for texts in ([text], ['{"s": []}', text]):
        settings = merged(*texts, policies={"/s": "by-name"})
        assert settings.value == parse_json(text).value


def test_every_value_knows_its_line_and_what_it_overrode() -> None:
    settings = merged('{\n  "a": {"b": 1}\n}', '{"a": {"b": 2}}', '{\n\n"a": {"b": 3}}')

    winner, *overridden = settings.origins["/a/b"]
    assert (str(winner), winner.column, winner.layer) == ("/l2/config.json:3", 7, "l2")
    assert [origin.layer for origin in overridden] == ["l1", "l0"]


def test_items_of_a_joined_list_know_their_own_files() -> None:
    settings = merged('{"a": ["x"]}', '{"a": ["y"]}')

    assert [settings.origins[f"/a/{i}"][0].layer for i in (0, 1)] == ["l0", "l1"]


def test_a_value_is_found_by_its_dotted_name() -> None:
    settings = merged('{"provider": {"model": "a"}}')

    assert settings.get("provider.model") == "a"
    assert settings.get("provider.nothing", 7) == 7
    assert settings.get("provider.model.deeper") is None


@pytest.mark.acceptance("F-05")
@given(OBJECTS, OBJECTS)
def test_merging_changes_neither_input(base: dict[str, object], override: dict[str, object]) -> None:
    before = copy.deepcopy((base, override))

    deep_merge(base, override)
    merge_configs([LayerConfig(Path("/a"), base), LayerConfig(Path("/b"), override)])

    assert (base, override) == before


@given(OBJECTS, OBJECTS, OBJECTS)
def test_both_ways_to_merge_agree(
    first: dict[str, object], second: dict[str, object], third: dict[str, object]
) -> None:
    configs = [LayerConfig(Path("/x"), each) for each in (first, second, third)]

    assert merge_configs(configs).value == deep_merge(deep_merge(first, second), third)


EDITED = st.dictionaries(
    st.sampled_from("abcd"),
    JSON
    | st.builds(lambda key, items: {key: items}, st.sampled_from(["$replace", "$remove"]), st.lists(JSON, max_size=3)),
    max_size=4,
)
POLICIES: st.SearchStrategy[dict[str, ListPolicy]] = st.dictionaries(
    st.sampled_from(["/a", "/b", "/a/b"]), st.sampled_from(LIST_POLICIES)
)


def pointers(value: object, pointer: str = "") -> list[str]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, item in members for each in (f"{pointer}/{key}", *pointers(item, f"{pointer}/{key}"))]


@settings(deadline=None)
@given(st.lists(EDITED, max_size=4), POLICIES)
@example([{"a": {"b": 1}}, {"a": {"$remove": []}}], {})
def test_every_value_of_the_result_and_nothing_else_has_an_origin(
    objects: list[dict[str, object]], policies: dict[str, ListPolicy]
) -> None:
    settings = merge_configs([LayerConfig(Path("/x"), each) for each in objects], policies)

    assert sorted(settings.origins) == sorted(pointers(settings.value))
    assert all(settings.origins.values())


def test_nobody_is_asked_for_a_place_before_somebody_wants_to_know() -> None:
    asked: list[str] = []

    def position(pointer: str) -> tuple[int, int]:
        asked.append(pointer)
        return 3, 1

    settings = merge_configs([LayerConfig(Path("/x"), {"a": {"b": 1}, "c": [2]}, position)])
    assert (settings.get("a.b"), "/c/0" in settings.origins, len(settings.origins), asked) == (1, True, 4, [])

    assert (settings.origins["/a/b"][0].line, asked) == (3, ["/a/b"])


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        ('[{"b": 1, "a": [2]}]', 3),
        ('["x"]', 3),
        ("[1]", 3),
        ("[true]", 3),
        ('["1"]', 4),
    ],
)
def test_what_is_taken_out_is_what_is_the_same_in_json(edit: str, kept: int) -> None:
    settings = merged('{"l": [{"a": [2], "b": 1}, "x", 1, true]}', f'{{"l": {{"$remove": {edit}}}}}')

    assert len(settings.value["l"]) == kept


LARGE = {
    "settings": lambda n: [{f"k{i}": 1 for i in range(n)}] * 2,
    "objects replaced": lambda n: [{f"k{i}": {"a": 1} for i in range(n)}, {f"k{i}": 1 for i in range(n)}],
    "lists edited": lambda n: [{f"k{i}": [1, 2] for i in range(n)}, {f"k{i}": {"$remove": [1]} for i in range(n)}],
    "items removed": lambda n: [{"k": list(range(n))}, {"k": {"$remove": list(range(n))}}],
    "names": lambda n: [{"s": [{"name": f"{i}"} for i in range(n)]}] * 2,
    "unique items": lambda n: [{"u": list(range(n))}] * 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("make", sampled(LARGE.values(), one_in=3), ids=LARGE)
def test_the_time_to_merge_grows_with_the_size_and_not_with_its_square(
    make: Callable[[int], list[dict[str, object]]],
) -> None:
    # The larger one does not fit into the caches of a processor, which other processes share: it may take four times
    # as long for that alone.
    few, many = ([LayerConfig(Path("/x"), each) for each in make(size)] for size in (1_000, 64_000))

    assert_linear(lambda configs: merge_configs(configs, {"/s": "by-name", "/u": "unique"}), few, many, times=64)


class Merging:
    """A plugin with policies."""

    def __init__(self, **policies: Any) -> None:
        self._policies = [MergePolicy(key.replace("__", "."), policy) for key, policy in policies.items()]

    @hookimpl
    def nexus_merge_policies(self) -> list[MergePolicy]:
        return self._policies


@pytest.fixture
def load(make_nexus: MakeNexus, nexus_home: Path) -> Callable[..., Any]:
    """Load the settings of a user and of a project, with plugins."""

    def load(own: str, project: str, *plugins: object) -> Any:
        write_files(nexus_home, {"config.json": own})
        nexus = make_nexus({".nexus3/config.json": project}, plugins=plugins)
        return nexus.load()

    return load


@pytest.mark.acceptance("A-01")
@pytest.mark.parametrize(
    ("policy", "own", "project", "merged"),
    [
        (max, "5", "2", "5"),
        (max, "2", "5", "5"),
        (lambda inherited, new: inherited + new, "[1]", "[2]", "[1, 2]"),
        (
            lambda inherited, new: {**inherited, **new},
            '{"a": {"x": 1}, "b": 2}',
            '{"a": {"y": 1}}',
            '{"a": {"y": 1}, "b": 2}',
        ),
        (lambda inherited, new: f"{inherited}, {new}", '"a"', '"b"', '"a, b"'),
        (lambda inherited, new: inherited if new is None else new, "7", "null", "7"),
        ("replace", '{"a": 1}', '{"b": 2}', '{"b": 2}'),
    ],
)
def test_a_plugin_merges_any_value(load: Any, policy: Any, own: str, project: str, merged: str) -> None:
    texts = [f'{{"plugins": {{"acme": {{"x": {value}}}}}}}' for value in (own, project)]

    loaded = load(*texts, Merging(plugins__acme__x=policy))

    assert loaded.settings.get("plugins.acme.x") == json.loads(merged)


def test_where_a_merged_value_comes_from_is_kept(load: Any) -> None:
    own, project = '{"plugins": {"acme": {"x": {"a": 1, "b": 2}}}}', '{"plugins": {"acme": {"x": {"a": 3}}}}'

    loaded = load(own, project, Merging(plugins__acme__x=lambda inherited, new: {**inherited, **new, "c": 4}))

    origins = {
        pointer.rpartition("/x")[2]: [origin.layer for origin in origins]
        for pointer, origins in loaded.settings.origins.items()
        if "/x" in pointer
    }
    assert origins == {"": ["local", "global"], "/a": ["local"], "/b": ["global"], "/c": ["local", "global"]}
    assert loaded.settings.policies == {"/plugins/acme/x": "a function (plugin Merging)"}


def test_a_merge_function_gets_copies(load: Any) -> None:
    def spoil(inherited: list[int], new: list[int]) -> list[int]:
        inherited.clear()
        new.clear()
        raise ValueError("spoilt")

    loaded = load(
        '{"plugins": {"acme": {"x": [1]}}}', '{"plugins": {"acme": {"x": [2]}}}', Merging(plugins__acme__x=spoil)
    )

    assert loaded.settings.get("plugins.acme.x") == [1, 2]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _inherited, _new: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda _inherited, _new: (1,), "returned tuple, which is not a JSON value"),
        (lambda _inherited, _new: {1: 2}, "returned dict, which is not a JSON value"),
        (lambda _inherited, _new: float("nan"), "raised ValueError"),
        (lambda _inherited, _new: object(), "raised TypeError"),
        (lambda: 1, "raised TypeError"),
    ],
)
def test_a_merge_function_that_fails_is_named_and_not_used(
    load: Any, nexus_problems: list[Problem], answer: Any, told: str
) -> None:
    loaded = load(
        '{"plugins": {"acme": {"x": 1}}}', '{"plugins": {"acme": {"x": 2}}}', Merging(plugins__acme__x=answer)
    )

    assert loaded.settings.get("plugins.acme.x") == 2
    assert (
        f"plugin Merging, nexus_merge_policies: its policy for 'plugins.acme.x' is not used, because it {told}"
        in str(nexus_problems[0])
    )


def test_a_merge_function_may_refuse_a_value(load: Any) -> None:
    def refuse(_inherited: object, _new: object) -> object:
        raise ConfigError("only once")

    with pytest.raises(ConfigError, match="only once"):
        load('{"plugins": {"acme": {"x": 1}}}', '{"plugins": {"acme": {"x": 2}}}', Merging(plugins__acme__x=refuse))


@pytest.mark.parametrize(
    "key",
    [
        "permissions",
        "permissions.tools.deny",
        "permissions.level",
        "mcp_servers",
        "ledger.url",
        "provider",
        "plugins",
        "compaction.command",
    ],
)
def test_no_third_party_policy_touches_what_guards_the_user(load: Any, nexus_problems: list[Problem], key: str) -> None:
    loosen = Merging(**{key.replace(".", "__"): lambda _inherited, new: new})

    loaded = load(
        '{"permissions": {"tools": {"deny": ["rm"]}}, "provider": {"base_url": "https://own"}}',
        '{"permissions": {"tools": {"deny": ["curl"]}}, "provider": {"model": "m"}}',
        loosen,
    )

    assert loaded.settings.get("permissions.tools.deny") == ["rm", "curl"]
    assert loaded.settings.get("provider.base_url") == "https://own"
    assert f"its policy for {key!r} is left out: no plugin decides how that is merged" in str(nexus_problems[0])


def test_a_plugin_has_policies_for_its_own_active_settings_and_none_for_those_of_others(
    load: Any, nexus_problems: list[Problem]
) -> None:
    class Own(Merging):
        @hookimpl
        def nexus_settings(self) -> list[PluginSettings]:
            return [PluginSettings("nexus_core.config.schema:CacheConfig", active=("enabled",))]

    load("{}", "{}", Own(plugins__Own__enabled=max))
    assert nexus_problems == []

    load("{}", "{}", Own(), Merging(plugins__Own__enabled=max))
    assert len(nexus_problems) == 1


def test_a_strict_run_stops_at_a_policy_that_is_left_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()

    with Nexus(nexus.cwd, plugins=[Merging(permissions=max)], strict=True) as strict, pytest.raises(PluginError):
        strict.load()


@pytest.mark.acceptance("C-01")
@pytest.mark.parametrize(
    ("policy", "merged"), [("join", ["a", "b", "b", "c"]), ("replace", ["b", "c"]), ("unique", ["a", "b", "c"])]
)
def test_the_user_decides_how_lists_are_merged(load: Any, policy: str, merged: list[str]) -> None:
    own = f'{{"merging": {{"lists": "{policy}"}}, "skills": {{"disabled": ["a", "b"]}}}}'

    loaded = load(own, '{"skills": {"disabled": ["b", "c"]}}')

    assert loaded.settings.get("skills.disabled") == merged
    assert loaded.settings.policies == {"/skills/disabled": f"{policy} (merging.lists)"}


@pytest.mark.acceptance("C-01")
def test_a_project_cannot_decide_how_lists_are_merged(load: Any) -> None:
    loaded = load('{"skills": {"disabled": ["a"]}}', '{"merging": {"lists": "replace"}, "skills": {"disabled": ["b"]}}')

    assert loaded.settings.get("skills.disabled") == ["a", "b"]
    assert [finding.code for finding in loaded.findings] == ["protected-setting"]


@pytest.mark.acceptance("C-01")
def test_lists_that_guard_the_user_grow_whatever_the_policy(load: Any) -> None:
    own = """{
      "merging": {"lists": "replace"},
      "permissions": {"tools": {"deny": ["rm"], "allow": ["read", "write"]}},
      "mcp_servers": [{"name": "mine", "type": "stdio", "command": ["x"]}]
    }"""
    project = """{
      "permissions": {"tools": {"deny": ["curl"], "allow": ["read", "all"]}},
      "mcp_servers": [{"name": "theirs", "type": "stdio", "command": ["y"]}]
    }"""

    settings = load(own, project).settings

    assert settings.get("permissions.tools") == {"deny": ["rm", "curl"], "allow": ["read"]}
    assert [server["name"] for server in settings.get("mcp_servers")] == ["mine", "theirs"]


def test_a_policy_of_a_plugin_goes_before_that_of_the_user(load: Any) -> None:
    own = '{"merging": {"lists": "replace"}, "skills": {"disabled": ["a"]}}'

    loaded = load(own, '{"skills": {"disabled": ["a", "b"]}}', Merging(skills__disabled="unique"))

    assert loaded.settings.get("skills.disabled") == ["a", "b"]
    assert loaded.settings.policies == {"/skills/disabled": "unique (plugin Merging)"}


def test_the_policy_is_explained(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"merging": {"lists": "unique"}, "skills": {"disabled": ["a"]}}'})
    write_files(work, {".nexus3/config.json": '{"skills": {"disabled": ["a", "b"]}}'})

    assert "(local, merged by unique (merging.lists))" in cli("explain", "skills.disabled").out


def test_an_installed_plugin_merges(cli: Cli, work: Path, nexus_home: Path, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "acme",
        "from nexus_core import hookimpl\n"
        "from nexus_core.plugin import MergePolicy\n\n"
        "@hookimpl\n"
        "def nexus_merge_policies():\n"
        "    return [MergePolicy('compaction.keep_turns', max)]\n",
    )
    write_files(nexus_home, {"config.json": '{"compaction": {"keep_turns": 7}}'})
    write_files(work, {".nexus3/config.json": '{"compaction": {"keep_turns": 2}}'})

    assert cli("config", "get", "compaction.keep_turns").out.split()[0] == "7"
