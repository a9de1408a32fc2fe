from pathlib import Path

import pytest

from nexus_core import ConfigError, Nexus
from nexus_core.config.early import EarlySettings, read_early_settings
from nexus_core.testing import write_files


def read(root: Path, own: str | None = None, project: str | None = None) -> EarlySettings:
    files = {"home/config.json": own, "work/config.json": project}
    write_files(root, {name: text for name, text in files.items() if text is not None})
    return read_early_settings(root / "home", root / "work")


def test_without_files_the_defaults_hold(tmp_path: Path) -> None:
    assert read(tmp_path) == EarlySettings(ancestor_depth=2, disabled_plugins=())


@pytest.mark.parametrize("text", ["", " \n", "{}"])
def test_an_empty_file_is_an_empty_configuration(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, own=text, project=text) == EarlySettings()


def test_the_depth_of_the_project_beats_the_users_own(tmp_path: Path) -> None:
    own, project = '{"context": {"ancestor_depth": 5}}', '{"context": {"ancestor_depth": 0}}'

    assert read(tmp_path, own=own, project=project).ancestor_depth == 0


def test_the_users_own_depth_holds_where_the_project_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, own='{"context": {"ancestor_depth": 5}}', project="{}").ancestor_depth == 5


def test_a_project_cannot_disable_plugins(tmp_path: Path) -> None:
    project = '{"plugins": {"disabled": ["environment"]}}'

    assert read(tmp_path, project=project).disabled_plugins == ()


def test_the_user_can_disable_plugins(tmp_path: Path) -> None:
    assert read(tmp_path, own='{"plugins": {"disabled": ["git"]}}').disabled_plugins == ("git",)


@pytest.mark.parametrize("depth", ["-1", "11", "true", '"2"', "2.5"])
def test_a_depth_that_is_not_allowed_is_left_to_those_who_check_all_settings(tmp_path: Path, depth: str) -> None:
    own = f'{{"context": {{"ancestor_depth": {depth}}}}}'

    assert read(tmp_path, own=own) == EarlySettings()
    with pytest.raises(ConfigError, match=r"context\.ancestor_depth: should be") as caught:
        Nexus(tmp_path, home=tmp_path / "home").load()
    assert caught.value.where == f"{tmp_path}/home/config.json:1:14"


def test_broken_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Invalid JSON") as caught:
        read(tmp_path, project='{\n  "context": {},\n}')

    assert str(caught.value.where) == f"{tmp_path / 'work/config.json'}:2:16"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"plugins": {"disabled": "git"}}', "must be a list of plugin names"),
        ('{"plugins": {"disabled": [1]}}', "must be a list of plugin names"),
        ("[" * 100_000, "Nested deeper than 64 levels"),
    ],
)
def test_what_is_wrong_is_explained(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, own=text)
