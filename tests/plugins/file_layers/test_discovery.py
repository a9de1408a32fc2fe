from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexus_core import FileError, Request
from nexus_core.plugin import Layer, SkippedFile
from nexus_core.testing import check_plugin, write_files
from nexus_core.types.settings import Settings
from nexus_plugins import file_layers
from nexus_plugins.file_layers import nexus_layer_config, nexus_layer_texts, nexus_layers

if TYPE_CHECKING:
    from nexus_core.testing.fixtures import MakeNexus

TREE = {
    ".nexus3/NEXUS.md": "root",
    "a/.nexus3/NEXUS.md": "a",
    "a/b/.nexus3/NEXUS.md": "b",
    "a/b/c/.nexus3/NEXUS.md": "c",
}


@pytest.mark.acceptance("L-01", "L-06", "L-12")
def test_layers_are_global_then_ancestors_farthest_first_then_local(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "own"})

    loaded = make_nexus(files=TREE, cwd="a/b/c").load()

    assert [(layer.name, text.text) for layer in loaded.layers for text in loaded.texts_of(layer)] == [
        ("global", "own"),
        ("ancestor:a", "a"),
        ("ancestor:b", "b"),
        ("local", "c"),
    ]


@pytest.mark.acceptance("L-03")
@pytest.mark.parametrize(
    ("depth", "found"),
    [
        (0, []),
        (1, ["ancestor:b"]),
        (2, ["ancestor:a", "ancestor:b"]),
        (3, ["ancestor:work", "ancestor:a", "ancestor:b"]),
    ],
)
def test_the_search_goes_up_as_many_levels_as_configured(
    make_nexus: MakeNexus, nexus_home: Path, depth: int, found: list[str]
) -> None:
    write_files(nexus_home, {"config.json": f'{{"context": {{"ancestor_depth": {depth}}}}}'})

    loaded = make_nexus(files=TREE, cwd="a/b/c").load()

    assert [layer.name for layer in loaded.layers if layer.scope == "ancestor"] == found


@pytest.mark.acceptance("L-04")
def test_a_level_without_a_layer_still_counts(make_nexus: MakeNexus) -> None:
    files = {"a/.nexus3/NEXUS.md": "a", "a/b/c/d/.nexus3/NEXUS.md": "d"}

    loaded = make_nexus(files=files, cwd="a/b/c/d").load()

    assert [layer.name for layer in loaded.layers] == ["global", "local"]


@pytest.mark.acceptance("L-04", "L-10")
def test_a_level_without_a_layer_is_reported(tmp_path: Path) -> None:
    place = write_files(tmp_path, {"a/.nexus3/NEXUS.md": "a", "a/b/c/x": ""}) / "a/b/c"

    found = nexus_layers(Request(cwd=place, home=tmp_path / "none"))

    assert found == [
        Layer("ancestor:a", tmp_path / "a/.nexus3", "ancestor", distance=2, root=tmp_path / "a"),
        SkippedFile(tmp_path / "a/b/.nexus3", "not there", layer="ancestor:b"),
        Layer("local", place / ".nexus3", "local", root=place),
    ]


@pytest.mark.acceptance("B-12")
def test_a_level_with_only_a_text_in_it_is_a_layer(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/NEXUS.md": "a", "a/b/x": ""})

    layers, _ = find(tmp_path / "a/b", tmp_path / "none")

    assert [(layer.name, layer.project) for layer in layers] == [
        ("ancestor:a", tmp_path / "a"),
        ("local", tmp_path / "a/b"),
    ]


@pytest.mark.acceptance("B-14")
def test_two_ancestors_of_one_name_are_told_apart_by_their_place(tmp_path: Path) -> None:
    write_files(tmp_path, {"src/.nexus3/x": "", "src/src/.nexus3/x": "", "src/src/cwd/x": ""})

    layers, _ = find(tmp_path / "src/src/cwd", tmp_path / "none")

    assert [(layer.name, layer.directory) for layer in layers[:-1]] == [
        ("ancestor:src", tmp_path / "src/.nexus3"),
        ("ancestor:src", tmp_path / "src/src/.nexus3"),
    ]


@pytest.mark.acceptance("L-05")
def test_the_root_of_the_file_system_is_never_a_layer(tmp_path: Path) -> None:
    layers, skipped = find(Path("/srv/app"), tmp_path, depth=10)

    looked_at = {layer.directory for layer in layers} | {item.path for item in skipped}
    assert looked_at == {Path("/srv/app/.nexus3"), Path("/srv/.nexus3"), tmp_path}


@pytest.mark.acceptance("L-10", "L-11")
def test_the_working_directory_is_a_layer_even_with_nothing_in_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    loaded = make_nexus().load()

    assert [layer.name for layer in loaded.layers] == ["global", "local"]
    assert loaded.layers[-1].directory == tmp_path / "work/.nexus3"
    assert loaded.texts == ()


@pytest.mark.acceptance("B-07")
def test_the_users_own_directory_counts_once_when_working_in_home(
    nexus_home: Path, make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(nexus_home.parent))
    write_files(nexus_home, {"NEXUS.md": "own"})

    loaded = make_nexus(cwd=str(nexus_home.parent)).load()

    assert [(text.source.layer, text.text) for text in loaded.texts if text.source] == [("global", "own")]


@pytest.mark.acceptance("B-07")
@pytest.mark.parametrize("place", ["home", "home/.nexus3", "home/work", "home/.nexus3/skills/x"])
def test_the_users_own_directory_counts_once_from_wherever_it_is_seen(tmp_path: Path, place: str) -> None:
    home = write_files(tmp_path / "home/.nexus3", {"NEXUS.md": "own", "skills/x/y": ""})
    (tmp_path / place).mkdir(exist_ok=True)

    layers, skipped = find(tmp_path / place, home)

    assert [layer.name for layer in layers if not layer.only_rules and layer.scope != "local"] == ["global"]
    assert "your own directory, read as global" in {item.reason for item in skipped}


@pytest.mark.acceptance("B-07", "B-16")
def test_the_users_own_directory_reached_through_a_link_counts_once(tmp_path: Path) -> None:
    home = write_files(tmp_path / "home", {"NEXUS.md": "own", "config.json": "{}"})
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.nexus3").symlink_to(home)

    layers, _ = find(tmp_path / "work", home)

    read = [item for layer in layers for item in [*nexus_layer_texts(layer, Settings()), *nexus_layer_config(layer)]]
    assert [item.path for item in read if not isinstance(item, SkippedFile)] == [
        home / "NEXUS.md",
        home / "config.json",
    ]


def test_rules_of_the_home_directory_are_read_when_working_there(
    nexus_home: Path, make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(nexus_home.parent))
    write_files(nexus_home.parent, {"AGENTS.md": "Everywhere."})

    loaded = make_nexus(cwd=str(nexus_home.parent)).load()

    assert [(text.title, text.text) for text in loaded.texts] == [("Workspace Rules (home)", "Everywhere.")]


@pytest.mark.acceptance("L-09", "B-06")
def test_the_defaults_stand_in_for_a_missing_text_of_the_users_own(make_nexus: MakeNexus) -> None:
    loaded = make_nexus(defaults=True).load()

    assert [text.source.layer for text in loaded.texts if text.source] == ["defaults"]


def test_the_defaults_are_never_mixed_with_the_users_own_text(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "own"})

    loaded = make_nexus(defaults=True).load()

    assert [text.text for text in loaded.texts] == ["own"]
    assert "your own NEXUS.md takes its place" in [item.reason for item in loaded.skipped]


@pytest.mark.parametrize(
    ("own", "standing_in"),
    [
        ([], ["NEXUS.md", "config.json"]),
        (["NEXUS.md"], ["config.json"]),
        (["config.json"], ["NEXUS.md"]),
        (["NEXUS.md", "config.json"], []),
    ],
)
def test_the_defaults_stand_in_file_by_file(tmp_path: Path, own: list[str], standing_in: list[str]) -> None:
    defaults = write_files(tmp_path / "defaults", {"NEXUS.md": "{}", "config.json": "{}"})
    home = write_files(tmp_path / "home", dict.fromkeys(own, "{}"))
    found = nexus_layers(Request(cwd=tmp_path, home=home, defaults=defaults))

    read = [
        item.path
        for layer in found
        if isinstance(layer, Layer) and layer.scope == "defaults"
        for item in [*nexus_layer_texts(layer, Settings()), *nexus_layer_config(layer)]
        if not isinstance(item, SkippedFile)
    ]

    assert read == [defaults / name for name in standing_in]


def test_the_defaults_are_no_layer_when_the_user_has_every_file(tmp_path: Path) -> None:
    home = write_files(tmp_path / "home", {"NEXUS.md": "own", "config.json": "{}"})

    found = nexus_layers(Request(cwd=tmp_path, home=home, defaults=tmp_path))

    assert [layer.name for layer in found if isinstance(layer, Layer)] == ["global", "local"]


def test_a_blank_text_of_the_users_own_keeps_the_defaults_away(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "\n"})

    assert make_nexus(defaults=True).load().texts == ()


@pytest.mark.acceptance("L-09")
def test_a_missing_home_is_no_layer(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus_home.rmdir()

    assert [layer.name for layer in make_nexus().load().layers] == ["local"]


def test_a_level_that_cannot_be_looked_at_is_no_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a/b/x": ""})
    monkeypatch.setattr("os.stat", _refuse)

    found = nexus_layers(Request(cwd=tmp_path / "a/b", home=tmp_path / "none", ancestor_depth=1))

    assert [item.reason for item in found if isinstance(item, SkippedFile)] == ["not there"]


def test_a_second_load_sees_a_changed_file(make_nexus: MakeNexus, tmp_path: Path) -> None:
    nexus = make_nexus(files={".nexus3/NEXUS.md": "before"})
    before = nexus.system_prompt()

    write_files(tmp_path / "work", {".nexus3/NEXUS.md": "after"})

    assert ("before" in before, "after" in nexus.system_prompt()) == (True, True)


def test_a_text_that_cannot_be_read_is_an_error_that_names_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/.nexus3/NEXUS.md").mkdir(parents=True)

    with pytest.raises(FileError) as caught:
        make_nexus().load()

    assert caught.value.where == str(tmp_path / "work/.nexus3/NEXUS.md")


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(file_layers) == []


def find(cwd: Path, home: Path, *, depth: int = 2) -> tuple[list[Layer], list[SkippedFile]]:
    found = nexus_layers(Request(cwd=cwd, home=home, ancestor_depth=depth))
    layers = [item for item in found if isinstance(item, Layer)]
    return layers, [item for item in found if isinstance(item, SkippedFile)]


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError
