from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexus_core import FileError, Request
from nexus_core.testing import write_files
from nexus_plugins.file_layers import nexus_layers

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


@pytest.mark.acceptance("L-05")
def test_the_root_of_the_file_system_is_never_a_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Path] = []

    def is_dir(path: Path) -> bool:
        looked_at.append(path)
        return True

    monkeypatch.setattr(Path, "is_dir", is_dir)
    monkeypatch.setattr(Path, "samefile", lambda *_: False)

    found = nexus_layers(Request(cwd=Path("/srv/app"), home=tmp_path, ancestor_depth=10))

    assert [layer.directory for layer in found if layer.scope == "ancestor"] == [Path("/srv/.nexus3")]
    assert Path("/.nexus3") not in looked_at


def test_a_directory_without_layers_has_only_the_users_own(make_nexus: MakeNexus) -> None:
    assert [layer.name for layer in make_nexus().load().layers] == ["global"]


def test_the_users_own_directory_counts_once_when_working_in_home(nexus_home: Path, make_nexus: MakeNexus) -> None:
    write_files(nexus_home, {"NEXUS.md": "own"})

    loaded = make_nexus(cwd=str(nexus_home.parent)).load()

    assert [(layer.name, layer.directory) for layer in loaded.layers] == [("global", nexus_home)]


def test_the_users_own_directory_reached_through_a_link_counts_once(
    nexus_home: Path, make_nexus: MakeNexus, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.nexus3").symlink_to(nexus_home)

    assert [layer.name for layer in make_nexus().load().layers] == ["global"]


def test_the_defaults_stand_in_for_a_missing_text_of_the_users_own(make_nexus: MakeNexus) -> None:
    loaded = make_nexus(defaults=True).load()

    assert [text.source.layer for text in loaded.texts if text.source] == ["defaults"]


def test_the_defaults_are_never_mixed_with_the_users_own_text(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "own"})

    loaded = make_nexus(defaults=True).load()

    assert [text.text for text in loaded.texts] == ["own"]


def test_a_missing_home_is_no_layer(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus_home.rmdir()

    assert make_nexus().load().layers == ()


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
