from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.plugin import Layer, LayerConfig, Skipped
from nexus_core.testing import write_files
from nexus_plugins.file_layers import nexus_layer_config


@pytest.mark.acceptance("L-02")
def test_the_settings_of_a_layer_are_those_of_its_file(tmp_path: Path) -> None:
    layer = local(tmp_path, '{"context": {"ancestor_depth": 3}}')

    assert nexus_layer_config(layer) == [
        LayerConfig(tmp_path / ".nexus3/config.json", {"context": {"ancestor_depth": 3}})
    ]


def test_every_setting_knows_its_line_and_column(tmp_path: Path) -> None:
    [config] = nexus_layer_config(local(tmp_path, '{\n  "a": 1,\n  "b": {"c": 2}\n}'))

    assert isinstance(config, LayerConfig)
    assert (config.position("/a"), config.position("/b/c")) == ((2, 3), (3, 9))


@pytest.mark.acceptance("F-10")
@pytest.mark.parametrize("blank", ["", " \n\t\n", "\ufeff"])
def test_a_blank_file_sets_nothing(tmp_path: Path, blank: str) -> None:
    [config] = nexus_layer_config(local(tmp_path, blank))

    assert isinstance(config, LayerConfig)
    assert config.settings == {}


@pytest.mark.acceptance("L-10")
def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    assert nexus_layer_config(local(tmp_path, None)) == [Skipped(tmp_path / ".nexus3/config.json", "not there")]


def test_settings_are_read_from_the_layers_directory_only(tmp_path: Path) -> None:
    write_files(tmp_path, {"config.json": '{"of": "the project"}'})

    [item] = nexus_layer_config(local(tmp_path, None))

    assert isinstance(item, Skipped)


@pytest.mark.parametrize("text", ["[]", '"x"', "1", "null", "\n\n  [1]"])
def test_a_file_without_an_object_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="must be a JSON object") as caught:
        nexus_layer_config(local(tmp_path, text))

    assert str(caught.value.where).startswith(str(tmp_path / ".nexus3/config.json"))


@pytest.mark.parametrize("text", ["{", "{'a': 1}", '{"a": 1,}', '{"a": 1} // note', "NaN"])
def test_anything_but_strict_json_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        nexus_layer_config(local(tmp_path, text))

    assert str(caught.value.where).startswith(str(tmp_path / ".nexus3/config.json"))


@pytest.mark.acceptance("B-11")
def test_a_file_in_another_encoding_is_an_error_that_names_it(tmp_path: Path) -> None:
    layer = local(tmp_path, "")
    (layer.directory / "config.json").write_bytes('{"a": 1}'.encode("utf-16"))

    with pytest.raises(ConfigError, match="offset 0"):
        nexus_layer_config(layer)


@pytest.mark.acceptance("T16")
def test_a_file_above_the_limit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        nexus_layer_config(local(tmp_path, " " * (1024 * 1024 + 1)))


def test_a_layer_of_rules_has_no_settings(tmp_path: Path) -> None:
    layer = Layer("ancestor:x", local(tmp_path, "{}").directory, "ancestor", root=tmp_path, only_rules=True)

    assert nexus_layer_config(layer) == []


@pytest.mark.acceptance("T6")
def test_settings_that_anybody_may_write_are_left_out(tmp_path: Path) -> None:
    layer = local(tmp_path, "{}")
    (layer.directory / "config.json").chmod(0o666)

    assert nexus_layer_config(layer) == [Skipped(tmp_path / ".nexus3/config.json", "anybody may write to it")]


@pytest.mark.acceptance("T11")
def test_settings_outside_the_project_are_neither_read_nor_shown(tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"secret": "password = CANARY"}) / "secret"
    layer = local(tmp_path / "project", None)
    layer.directory.mkdir(parents=True)
    (layer.directory / "config.json").symlink_to(outside)

    [item] = nexus_layer_config(layer)

    assert item == Skipped(layer.directory / "config.json", f"leads outside {tmp_path / 'project'}")


def local(root: Path, settings: str | None) -> Layer:
    if settings is not None:
        write_files(root, {".nexus3/config.json": settings})
    return Layer("local", root / ".nexus3", "local", root=root)
