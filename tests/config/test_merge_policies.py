"""How values of several layers become one: what plugins and the user decide, and what they cannot loosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core import ConfigError, Nexus, PluginError, hookimpl
from nexus_core.plugin import MergePolicy, PluginSettings, Problem
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import Cli, InstallPlugin


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
