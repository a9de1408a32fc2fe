from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from nexus_core import ConfigError
from nexus_core.config.load import read_json
from nexus_core.config.merge import merge_configs
from nexus_core.config.schema import StrictModel
from nexus_core.config.validate import build_config, find_config_errors
from nexus_core.plugin import Layer, LayerConfig
from nexus_core.types.settings import Settings


class GitSettings(StrictModel):
    depth: int = Field(default=1, ge=0)


def settings(root: Path, *texts: str) -> Settings:
    configs = []
    for number, text in enumerate(texts):
        path = root / str(number) / "config.json"
        path.parent.mkdir()
        path.write_text(text)
        document: Any = read_json(path, empty={})
        layer = Layer(f"l{number}", path.parent, "local")
        configs.append(LayerConfig(path, document.value, document.position, layer=layer))
    return merge_configs(configs)


@pytest.mark.acceptance("F-11", "F-13")
def test_without_settings_everything_has_its_default(tmp_path: Path) -> None:
    config = build_config(settings(tmp_path))

    assert (config.context.ancestor_depth, config.context.include_readme, config.context.readme_as_fallback) == (
        2,
        False,
        True,
    )
    assert config.permissions.level == "trusted"


def test_settings_take_the_place_of_defaults(tmp_path: Path) -> None:
    config = build_config(settings(tmp_path, '{"provider": {"model": "gpt-4o"}, "compaction": {"target_ratio": 1}}'))

    assert (config.provider.model, config.compaction.target_ratio) == ("gpt-4o", 1.0)


@pytest.mark.acceptance("F-06", "F-07", "L-07")
@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"provder": {}}', "1:2", "unknown setting 'provder'; did you mean 'provider'?"),
        ('{"provider": {\n"modle": 1}}', "2:1", "unknown setting 'provider.modle'; did you mean 'model'?"),
        ('{"models": {"acme": {"windw": 1}}}', "1:22", "unknown setting 'models.acme.windw'; did you mean 'window'?"),
        ('{"provider": {"zzz": 1}}', "1:15", "known here: api_key_env, base_url, context_window"),
        ('{"permissions": {"level": "yollo"}}', "1:18", "'sandboxed'; did you mean 'yolo'?"),
        ('{"permissions": {"level": "wild"}}', "1:18", "must be one of 'yolo', 'trusted', 'sandboxed'\n"),
        ('{"context": {"ancestor_depth": 11}}', "1:14", "less than or equal to 10"),
        ('{"context": {"ancestor_depth": -1}}', "1:14", "greater than or equal to 0"),
        ('{"context": {"ancestor_depth": true}}', "1:14", "valid integer"),
        ('{"context": {"include_readme": "yes"}}', "1:14", "valid boolean"),
        ('{"provider": null}', "1:2", "provider: should be an object, { … }\n"),
        ('{"plugins": 3}', "1:2", "plugins: should be an object, { … }\n"),
        ('{"models": {"acme": 3}}', "1:13", "models.acme: should be an object, { … }\n"),
        (
            '{"permissions": {"tools": {"deny": ["a", 2]}}}',
            "1:42",
            "permissions.tools.deny.1: should be a valid string",
        ),
        ('{"plugins": {"disabled": "git"}}', "1:14", "must be a list of plugin names"),
        ('{"plugins": {"git": {"depht": 1}}}', "1:22", "unknown setting 'plugins.git.depht'; did you mean 'depth'?"),
        ('{"plugins": {"git": {"depth": -1}}}', "1:22", "plugins.git.depth: should be greater than or equal to 0"),
        ('{"plugins": {"gitt": {}}}', "1:14", "unknown plugin 'gitt'; did you mean 'git'?"),
    ],
)
def test_a_fault_is_shown_in_its_file_at_its_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config(settings(tmp_path, text), {"git": GitSettings})

    error = caught.value
    assert error.where == f"{tmp_path}/0/config.json:{place}"
    assert str(error).startswith(f"Configuration Error: Invalid setting in {tmp_path}/0/config.json\n\n  Line ")
    assert words in str(error)
    assert str(error).endswith("\n\nCorrect the setting and try again.")


def test_the_fault_is_shown_in_the_layer_that_made_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config(settings(tmp_path, '{"provider": {"context_window": 1}}', '{"provider": {"context_window": 0}}'))

    assert str(caught.value.where).startswith(str(tmp_path / "1"))


def test_of_several_faults_the_first_in_the_file_is_shown_and_the_others_are_counted(tmp_path: Path) -> None:
    text = '{\n"plugins": {"disabled": 3},\n"context": {"ancestor_depth": 99},\n"a": 1}'

    with pytest.raises(ConfigError) as caught:
        build_config(settings(tmp_path, text))

    error = caught.value
    assert "Line 2, Column 13: plugins.disabled must be a list" in str(error)
    assert str(error).endswith("Correct the setting and try again. 2 more: `nexus config validate` lists all.")


def test_every_fault_is_found(tmp_path: Path) -> None:
    faults = list(find_config_errors(settings(tmp_path, '{"a": 1, "context": {"b": 2}, "plugins": {"disabled": 3}}')))

    assert len(faults) == 3


def test_the_settings_of_a_plugin_that_is_not_installed_are_left_alone(tmp_path: Path) -> None:
    assert (
        list(find_config_errors(settings(tmp_path, '{"plugins": {"elsewhere": {"x": 1}}}'), {"git": GitSettings})) == []
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{\n"mcp_servers": [{"env": {"T": "sk-secret"}}],\n"contxt": {}\n}',
            ['  3 | "contxt": {}', "      ^", "  4 | }"],
        ),
        (
            '{\n"contxt": {},\n"mcp_servers": [{"env": {"T": "sk-secret"}}]\n}',
            ["  1 | {", '  2 | "contxt": {},', "      ^"],
        ),
        ('{"contxt": {}, "mcp_servers": [{"env": {"T": "sk-secret"}}]}', []),
        ('{\n"mcp_servers": [\n{"name": "a", "env": {"T": "sk-secret"}, "enabled": "sk-secret"}]}', []),
    ],
)
def test_no_line_about_servers_is_shown_beside_a_fault_or_with_one(tmp_path: Path, text: str, shown: list[str]) -> None:
    reports = [str(fault) for fault in find_config_errors(settings(tmp_path, text))]

    assert reports[-1].split("\n")[4:-2] == shown
    assert not any("sk-secret" in report for report in reports)


def test_values_never_appear_in_a_message(tmp_path: Path) -> None:
    text = '{"provider": {"context_window": "sk-secret-value"}}'

    (fault,) = find_config_errors(settings(tmp_path, text))

    assert "sk-secret-value" not in fault.what
