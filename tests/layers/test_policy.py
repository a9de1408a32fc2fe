from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexus_core import ConfigError
from nexus_core.config.jsonc import parse_json
from nexus_core.config.merge import merge_configs
from nexus_core.layers.policy import USER_ONLY_SETTINGS, PolicyResult, enforce_policy
from nexus_core.plugin import Layer, LayerConfig
from nexus_core.types.mcp import ActiveSetting, TrustDecision

OWN = Layer("global", Path("/home"), "global")
ANCESTOR = Layer("ancestor:company", Path("/company/.nexus3"), "ancestor", distance=1, root=Path("/company"))
LOCAL = Layer("local", Path("/company/work/.nexus3"), "local", root=Path("/company/work"))


def config(layer: Layer, text: str) -> LayerConfig:
    document = parse_json(text)
    value: Any = document.value
    return LayerConfig(layer.directory / "config.json", value, document.position, layer=layer)


def guard(
    *configs: LayerConfig,
    decision: TrustDecision = "pending",
    active: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
) -> PolicyResult:
    def decide(_part: ActiveSetting) -> TrustDecision:
        return decision

    return enforce_policy(configs, decide, active, protected)


def nested(dotted: str, value: str = '"x"') -> str:
    *path, last = dotted.split(".")
    text = f'{{"{last}": {value}}}'
    for key in reversed(path):
        text = f'{{"{key}": {text}}}'
    return text


@pytest.mark.acceptance("T3")
@pytest.mark.parametrize("layer", [ANCESTOR, LOCAL], ids=lambda layer: layer.name)
@pytest.mark.parametrize("dotted", USER_ONLY_SETTINGS)
def test_a_project_cannot_set_what_is_protected(dotted: str, layer: Layer) -> None:
    guarded = guard(config(layer, "\n" + nested(dotted)))

    (finding,) = guarded.findings
    assert merge_configs(guarded.configs).get(dotted) is None
    assert (finding.code, finding.path, finding.line) == ("protected-setting", layer.directory / "config.json", 2)
    assert dotted in finding.message


@pytest.mark.acceptance("T3")
def test_nor_what_a_plugin_declares_as_the_users_own() -> None:
    text = '{"plugins": {"git": {"remote": "https://evil.example", "color": true}}}'

    guarded = guard(config(LOCAL, text), decision="allowed", protected=("plugins.git.remote",))

    (finding,) = guarded.findings
    assert merge_configs(guarded.configs).get("plugins.git") == {"color": True}
    assert (finding.code, "plugins.git.remote" in finding.message) == ("protected-setting", True)
    assert guarded.active == []


@pytest.mark.parametrize("dotted", USER_ONLY_SETTINGS)
def test_the_user_may_set_it(dotted: str) -> None:
    guarded = guard(config(OWN, nested(dotted)))

    assert guarded.findings == []
    assert merge_configs(guarded.configs).get(dotted) == "x"


@pytest.mark.acceptance("T3")
@pytest.mark.parametrize("edit", ['{"$replace": ["x"]}', '{"$remove": ["x"]}', "[1]", "{}", "null"])
def test_no_form_of_a_protected_setting_gets_through(edit: str) -> None:
    own = config(OWN, '{"plugins": {"disabled": ["x"]}}')

    guarded = guard(own, config(LOCAL, nested("plugins.disabled", edit)))

    assert merge_configs(guarded.configs).get("plugins.disabled") == ["x"]
    assert [finding.code for finding in guarded.findings] == ["protected-setting"]


@pytest.mark.acceptance("T3")
def test_a_project_cannot_take_the_place_of_a_whole_group() -> None:
    own = config(OWN, '{"provider": {"base_url": "https://own"}}')

    guarded = guard(own, config(LOCAL, '{"provider": {"$replace": {"base_url": "https://evil"}}}'))

    assert merge_configs(guarded.configs).get("provider.base_url") == "https://own"


@pytest.mark.parametrize(
    ("own", "project", "effective"),
    [
        ("trusted", "sandboxed", "sandboxed"),
        ("trusted", "yolo", "trusted"),
        ("sandboxed", "trusted", "sandboxed"),
        ("yolo", "trusted", "trusted"),
        ("yolo", "yolo", "yolo"),
    ],
)
def test_a_project_may_only_tighten_the_permission_level(own: str, project: str, effective: str) -> None:
    guarded = guard(
        config(OWN, nested("permissions.level", f'"{own}"')), config(LOCAL, nested("permissions.level", f'"{project}"'))
    )

    assert merge_configs(guarded.configs).get("permissions.level") == effective
    assert bool(guarded.findings) is (effective != project)


def test_without_a_word_from_the_user_the_default_level_holds() -> None:
    guarded = guard(config(LOCAL, '{"permissions": {"level": "yolo"}}'))

    assert merge_configs(guarded.configs).get("permissions.level") is None
    assert guarded.findings[0].code == "looser-permission"


def test_a_nearer_project_cannot_loosen_what_a_farther_one_tightened() -> None:
    far, near = nested("permissions.level", '"sandboxed"'), nested("permissions.level", '"trusted"')

    guarded = guard(config(ANCESTOR, far), config(LOCAL, near))

    assert merge_configs(guarded.configs).get("permissions.level") == "sandboxed"


def test_a_list_of_denied_tools_may_only_grow() -> None:
    own = config(OWN, '{"permissions": {"tools": {"deny": ["rm"]}}}')

    grown = guard(own, config(LOCAL, '{"permissions": {"tools": {"deny": ["curl"]}}}'))
    shrunk = guard(own, config(LOCAL, '{"permissions": {"tools": {"deny": {"$remove": ["rm"]}}}}'))

    assert merge_configs(grown.configs).get("permissions.tools.deny") == ["rm", "curl"]
    assert merge_configs(shrunk.configs).get("permissions.tools.deny") == ["rm"]
    assert [finding.code for finding in shrunk.findings] == ["looser-permission"]


def test_a_list_of_allowed_tools_may_only_shrink() -> None:
    own = config(OWN, '{"permissions": {"tools": {"allow": ["read", "write"]}}}')

    guarded = guard(own, config(LOCAL, '{"permissions": {"tools": {"allow": ["read", "shell"]}}}'))

    assert merge_configs(guarded.configs).get("permissions.tools.allow") == ["read"]
    (finding,) = guarded.findings
    assert finding.code == "looser-permission"
    assert "'shell' is new" in finding.message


@pytest.mark.acceptance("T3")
@pytest.mark.parametrize("own", ['["read"]', '{"$replace": ["read"]}'])
@pytest.mark.parametrize("wider", ["null", '["shell"]', '{"$replace": ["shell"]}', '{"$replace": ["read", "shell"]}'])
def test_no_form_of_the_allowed_tools_makes_them_more(own: str, wider: str) -> None:
    guarded = guard(
        config(OWN, nested("permissions.tools.allow", own)), config(LOCAL, nested("permissions.tools.allow", wider))
    )

    allowed = merge_configs(guarded.configs).get("permissions.tools.allow")
    assert isinstance(allowed, list)
    assert set(allowed) <= {"read"}
    assert [finding.code for finding in guarded.findings] == ["looser-permission"]


def test_a_project_may_take_tools_out_of_those_that_are_allowed() -> None:
    own = config(OWN, '{"permissions": {"tools": {"allow": ["read", "write"]}}}')
    far = config(ANCESTOR, '{"permissions": {"tools": {"allow": {"$remove": ["write"]}}}}')

    guarded = guard(own, far, config(LOCAL, '{"permissions": {"tools": {"allow": ["write", "read"]}}}'))

    assert merge_configs(guarded.configs).get("permissions.tools.allow") == ["read"]
    assert "'write' is new" in guarded.findings[0].message


def test_without_a_list_to_widen_null_is_what_holds_anyway() -> None:
    guarded = guard(config(LOCAL, '{"permissions": {"tools": {"allow": null}}}'))

    assert guarded.findings == []
    assert merge_configs(guarded.configs).get("permissions.tools.allow") is None


@pytest.mark.parametrize("decision", ["pending", "denied", "changed"])
def test_an_active_setting_waits_for_approval(decision: TrustDecision) -> None:
    guarded = guard(config(LOCAL, '{"compaction": {"command": ["llm"], "model": "x"}}'), decision=decision)

    settings = merge_configs(guarded.configs)
    assert settings.get("compaction.command") is None
    assert settings.get("compaction.model") == "x"
    assert [(part.pointer, part.decision) for part in guarded.active] == [("/compaction/command", decision)]


def test_an_approved_setting_takes_effect() -> None:
    guarded = guard(config(LOCAL, '{"compaction": {"command": ["llm"]}}'), decision="allowed")

    assert merge_configs(guarded.configs).get("compaction.command") == ["llm"]


def test_the_users_own_active_settings_need_no_approval() -> None:
    guarded = guard(config(OWN, '{"compaction": {"command": ["llm"]}}'))

    assert guarded.active == []
    assert merge_configs(guarded.configs).get("compaction.command") == ["llm"]


def test_a_plugin_says_which_of_its_settings_are_active() -> None:
    text = '{"plugins": {"git": {"command": "evil", "depth": 1}}}'

    guarded = guard(config(LOCAL, text), active=("plugins.git.command",))

    assert merge_configs(guarded.configs).get("plugins.git") == {"depth": 1}


def test_servers_are_kept_to_be_shown_and_recorded_to_be_approved() -> None:
    guarded = guard(config(LOCAL, '{"mcp_servers": [\n{"name": "a/b", "command": ["npx", "x"]}]}'))

    (part,) = guarded.active
    assert (part.pointer, part.line, part.summary) == ("/mcp_servers/a~1b", 2, "npx x")
    assert len(merge_configs(guarded.configs).value["mcp_servers"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("edit", ["$replace", "$remove"])
def test_a_project_cannot_replace_or_remove_the_servers_of_others(edit: str) -> None:
    own = config(OWN, '{"mcp_servers": [{"name": "mine", "command": ["x"]}]}')
    project = config(LOCAL, f'{{"mcp_servers": {{"{edit}": [{{"name": "evil", "command": ["rm"]}}]}}}}')

    guarded = guard(own, project)

    assert merge_configs(guarded.configs).get("mcp_servers") == [{"name": "mine", "command": ["x"]}]
    assert [finding.code for finding in guarded.findings] == ["protected-setting"]


def test_two_servers_with_one_name_in_one_file_are_refused() -> None:
    text = '{"mcp_servers": [{"name": "a", "command": ["x"]},\n{"name": "a", "command": ["y"]}]}'

    with pytest.raises(ConfigError, match="two servers are called 'a'") as caught:
        guard(config(LOCAL, text))

    assert str(caught.value.where).endswith("config.json:2")


def test_the_value_of_an_active_setting_that_may_be_a_secret_is_not_shown() -> None:
    guarded = guard(config(LOCAL, '{"plugins": {"git": {"token": "sk-1"}}}'), active=("plugins.git.token",))

    assert "sk-1" not in guarded.active[0].summary + guarded.active[0].content


def test_what_the_files_say_is_not_changed() -> None:
    original = config(LOCAL, nested("provider.base_url"))

    guard(original)

    assert original.settings == {"provider": {"base_url": "x"}}
