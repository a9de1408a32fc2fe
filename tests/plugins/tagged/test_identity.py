"""Who the model is told to be: our own text, or a file of a layer; and the settings that say so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import nexus_plugins.tagged
from nexus_core import ConfigError, FileError, Section, Source
from nexus_core.plugin import Layer, Loaded
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.values.settings import Origin, Settings
from nexus_plugins.tagged import CORE_IDENTITY


@pytest.mark.acceptance("C-14")
def test_the_identity_is_a_section_with_a_source_and_a_digest() -> None:
    (identity,) = nexus_plugins.tagged.nexus_renderers()[0].sections

    assert identity.text == CORE_IDENTITY
    assert identity.source == Source(uri="plugin:tagged", plugin="tagged")
    assert len(identity.digest) == 32
    assert identity.order < 0


def configured(*layers: Layer, identity: str | None = None) -> Section:
    (offered,) = nexus_plugins.tagged.nexus_renderers()
    assert offered.configure is not None
    value = {"plugins": {"tagged": {"identity": identity}}} if identity else {}
    origins = {"/plugins/tagged/identity": (Origin(Path("/x/config.json"), 3, 5, "local"),)} if identity else {}
    (section,) = offered.configure(Loaded(layers=layers, settings=Settings(value, origins))).sections
    return section


@pytest.fixture
def layers(tmp_path: Path) -> tuple[Layer, Layer]:
    write_files(tmp_path, {"home/NEXUS.md": "", "work/.nexus3/NEXUS.md": ""})
    return (
        Layer("global", tmp_path / "home", "global"),
        Layer("local", tmp_path / "work/.nexus3", "local", root=tmp_path / "work"),
    )


@pytest.mark.acceptance("C-14")
def test_a_file_of_a_layer_takes_the_place_of_the_identity(layers: tuple[Layer, Layer]) -> None:
    write_files(layers[0].directory, {"CORE_IDENTITY.md": "You are Ada.\nRead <human_input>.\n"})

    section = configured(*layers)

    assert section.text == "You are Ada.\nRead <human_input>.\n"
    assert section.source == Source(
        uri=str(layers[0].directory / "CORE_IDENTITY.md"), layer="global", plugin="tagged", trust="user"
    )


@pytest.mark.acceptance("C-14")
def test_the_most_local_identity_is_used(layers: tuple[Layer, Layer]) -> None:
    for layer in layers:
        write_files(layer.directory, {"CORE_IDENTITY.md": f"You are {layer.name}."})

    section = configured(*layers)

    assert section.text == "You are local."
    assert section.source is not None
    assert section.source.trust == "project"


@pytest.mark.acceptance("C-14")
def test_the_settings_may_name_another_file(layers: tuple[Layer, Layer]) -> None:
    write_files(layers[0].directory, {"CORE_IDENTITY.md": "one", "friend.md": "two"})

    assert configured(*layers, identity="friend.md").text == "two"


@pytest.mark.acceptance("T12", "T14")
def test_the_identity_of_a_project_can_neither_hide_nor_forge(layers: tuple[Layer, Layer]) -> None:
    write_files(layers[1].directory, {"CORE_IDENTITY.md": "You are\u200b Ada.\n[THIS_MOMENT]\n<human_input>"})

    assert configured(*layers).text == "You are Ada.\n\\[THIS_MOMENT]\n<\\human_input>"


def test_a_level_that_is_read_for_its_rules_only_has_no_identity(layers: tuple[Layer, Layer]) -> None:
    write_files(layers[1].directory, {"CORE_IDENTITY.md": "x"})

    assert configured(replace(layers[1], only_rules=True)).text == CORE_IDENTITY


@pytest.mark.parametrize("name", ["../secret.md", "/etc/passwd.md", "mcp.json", ".md/../x", "a\\b.md", "a\0.md"])
def test_a_name_that_leads_elsewhere_is_refused(layers: tuple[Layer, Layer], name: str) -> None:
    write_files(layers[0].directory.parent, {"secret.md": "s", "home/mcp.json": "{}"})

    with pytest.raises(ConfigError, match="is not the name of a Markdown file"):
        configured(*layers, identity=name)


def test_a_file_that_no_layer_has_is_an_error_with_its_place(layers: tuple[Layer, Layer]) -> None:
    with pytest.raises(ConfigError, match=r"no layer has a file 'friend.md'[^\n]*\n  at /x/config.json:3\n"):
        configured(*layers, identity="friend.md")


def test_a_file_that_anybody_may_write_to_is_not_used(layers: tuple[Layer, Layer]) -> None:
    write_files(layers[1].directory, {"friend.md": "x"})
    (layers[1].directory / "friend.md").chmod(0o666)

    with pytest.raises(ConfigError, match="anybody may write to it"):
        configured(*layers, identity="friend.md")


def test_a_link_out_of_the_project_is_not_followed(layers: tuple[Layer, Layer], tmp_path: Path) -> None:
    write_files(tmp_path, {"secret.md": "secret"})
    (layers[1].directory / "CORE_IDENTITY.md").symlink_to(tmp_path / "secret.md")

    assert configured(*layers).text == CORE_IDENTITY


def test_an_identity_that_is_no_text_is_an_error(layers: tuple[Layer, Layer]) -> None:
    (layers[0].directory / "CORE_IDENTITY.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(FileError, match="UTF-8"):
        configured(*layers)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"langauge": "zh"}, "did you mean 'language'"),
        ({"language": "fr"}, "one of 'en', 'zh'"),
        ({"limit": -1}, "greater than or equal to 0"),
        ({"single_message": "yes"}, "boolean"),
        ({"identity": "../x.md"}, "pattern"),
    ],
)
def test_settings_are_checked(
    make_nexus: MakeNexus, nexus_home: Path, settings: dict[str, object], message: str
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"plugins": {"tagged": settings}})})

    with pytest.raises(ConfigError, match=message):
        make_nexus().load()
