from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexus_core.plugin import Layer, LayerText, SkippedFile
from nexus_core.testing import check_plugin, write_files
from nexus_core.types.layers import LayerScope
from nexus_core.types.settings import Settings
from nexus_plugins import readme_fallback
from nexus_plugins.readme_fallback import nexus_layer_texts


@pytest.mark.acceptance("B-17", "C-19")
def test_a_readme_is_documentation(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "# Project\n"})

    assert texts(local(tmp_path)) == [LayerText(tmp_path / "README.md", "# Project\n", "documentation")]


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["README.md", "README.rst", "README.txt", "README"], "README.md"),
        (["README.rst", "README.txt", "README", "readme.md"], "README.rst"),
        (["README.txt", "README"], "README.txt"),
        (["README"], "README"),
        (["readme.md"], "readme.md"),
        (["Readme.MD", "readme.md"], "Readme.MD"),
    ],
)
def test_the_first_of_the_usual_names_is_taken(tmp_path: Path, files: list[str], chosen: str) -> None:
    write_files(tmp_path, {name: name for name in files})

    assert [text.path for text in texts(local(tmp_path))] == [tmp_path / chosen]


@pytest.mark.acceptance("B-13")
def test_a_blank_readme_is_reported_and_makes_way_for_the_next(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": " \n", "README.txt": "text"})

    blank, text = read(local(tmp_path))

    assert blank == SkippedFile(tmp_path / "README.md", "blank")
    assert text.path == tmp_path / "README.txt"


def test_a_missing_readme_is_reported(tmp_path: Path) -> None:
    assert read(local(tmp_path)) == [SkippedFile(tmp_path / "README.md", "not there")]


def test_a_missing_directory_has_no_readme(tmp_path: Path) -> None:
    assert read(local(tmp_path / "gone")) == [SkippedFile(tmp_path / "gone/README.md", "not there")]


def test_a_directory_called_readme_is_no_readme(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md/x": "", "README.txt": "text"})

    assert [text.path.name for text in texts(local(tmp_path))] == ["README.txt"]


@pytest.mark.acceptance("B-17")
def test_the_working_directory_needs_no_layer_directory(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "text"})

    assert len(texts(local(tmp_path))) == 1


def test_an_ancestor_contributes_its_readme_only_if_it_has_a_layer_directory(tmp_path: Path) -> None:
    write_files(tmp_path, {"with/.nexus3/x": "", "with/README.md": "text", "without/README.md": "text"})

    assert len(texts(ancestor(tmp_path / "with"))) == 1
    assert read(ancestor(tmp_path / "without")) == []


@pytest.mark.parametrize("scope", ["defaults", "global"])
def test_the_users_own_layers_have_no_readme(tmp_path: Path, scope: LayerScope) -> None:
    write_files(tmp_path, {"README.md": "text"})

    assert read(Layer(scope, tmp_path, scope)) == []


def test_a_layer_of_rules_has_no_readme(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "text", ".nexus3/x": ""})
    layer = Layer("ancestor:x", tmp_path / ".nexus3", "ancestor", root=tmp_path, only_rules=True)

    assert read(layer) == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1024 * 1024 + 1)])
def test_a_readme_that_cannot_be_read_does_not_stop_the_work(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "README.md").write_bytes(content)

    [item] = read(local(tmp_path))

    assert isinstance(item, SkippedFile)
    assert item.reason.startswith(("not UTF-8", "larger than"))


def test_imports_in_a_readme_are_left_as_they_are(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "@other.md", "other.md": "content"})

    assert texts(local(tmp_path))[0].text == "@other.md"


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize(
    "target", ["../secret.md", "{outside}/secret.md", "link", "/proc/self/environ", "/dev/zero", "README.md", "pipe"]
)
def test_a_readme_that_leads_outside_is_not_read(tmp_path: Path, target: str) -> None:
    write_files(tmp_path, {"secret.md": "CANARY", "work/x": ""})
    (tmp_path / "work/link").symlink_to("../secret.md")
    os.mkfifo(tmp_path / "work/pipe")
    (tmp_path / "work/README.md").symlink_to(target.format(outside=tmp_path))

    assert texts(local(tmp_path / "work")) == []


@pytest.mark.acceptance("T11")
def test_a_readme_may_be_a_link_inside_the_repository(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/HEAD": "", "docs/index.md": "text", "package/x": ""})
    (tmp_path / "package/README.md").symlink_to("../docs/index.md")

    assert len(texts(local(tmp_path / "package"))) == 1


@pytest.mark.acceptance("T6")
def test_a_readme_that_anybody_may_write_to_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "planted"}).joinpath("README.md").chmod(0o666)

    assert read(local(tmp_path)) == [SkippedFile(tmp_path / "README.md", "every user may write to it")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
@pytest.mark.acceptance("T6")
def test_a_readme_of_somebody_else_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "planted"})
    os.chown(tmp_path / "README.md", 54321, 54321)

    assert read(local(tmp_path)) == [SkippedFile(tmp_path / "README.md", "belongs to another user")]


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(readme_fallback) == []


def read(layer: Layer) -> list[LayerText | SkippedFile]:
    return nexus_layer_texts(layer, Settings())


def local(root: Path) -> Layer:
    return Layer("local", root / ".nexus3", "local", root=root)


def ancestor(root: Path) -> Layer:
    return Layer(f"ancestor:{root.name}", root / ".nexus3", "ancestor", distance=1, root=root)


def texts(layer: Layer) -> list[LayerText]:
    return [item for item in read(layer) if isinstance(item, LayerText)]
