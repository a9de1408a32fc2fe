from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexus_core import FileError, Request
from nexus_core.plugin import Layer, LayerText, Skipped
from nexus_core.testing import write_files
from nexus_core.values.settings import Settings
from nexus_plugins.file_layers import nexus_layer_config, nexus_layer_texts, nexus_layers

STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")


@pytest.mark.acceptance("L-02", "L-11")
def test_a_text_in_the_layers_directory_speaks_for_the_layer(tmp_path: Path) -> None:
    layer = local(write_files(tmp_path, {".nexus3/NEXUS.md": "inner"}))

    assert texts(layer) == [LayerText(tmp_path / ".nexus3/NEXUS.md", "inner")]


@pytest.mark.acceptance("B-12", "C-20")
def test_a_text_beside_the_layers_directory_speaks_for_it_too(tmp_path: Path) -> None:
    layer = local(write_files(tmp_path, {"NEXUS.md": "outer"}))

    assert texts(layer) == [LayerText(tmp_path / "NEXUS.md", "outer")]


@pytest.mark.acceptance("C-20")
def test_the_text_in_the_layers_directory_comes_first(tmp_path: Path) -> None:
    layer = local(write_files(tmp_path, {".nexus3/NEXUS.md": "inner", "NEXUS.md": "outer"}))

    assert [text.text for text in texts(layer)] == ["inner"]
    assert reasons(layer)["NEXUS.md"] == ".nexus3/NEXUS.md comes first"


@pytest.mark.acceptance("B-13")
@pytest.mark.parametrize("blank", ["", "\n", " \t\n\n", "\ufeff"])
def test_a_blank_text_counts_as_absent(tmp_path: Path, blank: str) -> None:
    layer = local(write_files(tmp_path, {".nexus3/NEXUS.md": blank, "NEXUS.md": "outer"}))

    assert [text.text for text in texts(layer)] == ["outer"]
    assert reasons(layer)[".nexus3/NEXUS.md"] == "blank"


@pytest.mark.acceptance("L-10")
def test_every_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    assert reasons(local(tmp_path)) == dict.fromkeys(
        [
            ".nexus3/NEXUS.md",
            "NEXUS.md",
            ".nexus3/SOUL.md",
            ".nexus3/IDENTITY.md",
            "AGENTS.md",
            "CLAUDE.md",
            "GEMINI.md",
        ],
        "not there",
    )


def test_the_users_own_layer_has_only_its_text(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "own", "AGENTS.md": "not read"})

    assert [text.text for text in texts(Layer("global", tmp_path, "global"))] == ["own"]


def test_the_users_own_text_may_be_a_link_to_anywhere(tmp_path: Path) -> None:
    write_files(tmp_path, {"dotfiles/NEXUS.md": "own", "home/x": ""})
    (tmp_path / "home/NEXUS.md").symlink_to(tmp_path / "dotfiles/NEXUS.md")

    assert [text.text for text in texts(Layer("global", tmp_path / "home", "global"))] == ["own"]


@pytest.mark.acceptance("B-11")
@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_text_in_another_encoding_is_an_error_with_file_and_offset(tmp_path: Path, encoding: str) -> None:
    path = write_files(tmp_path, {"NEXUS.md": ""}) / "NEXUS.md"
    path.write_bytes("Größe".encode(encoding))

    with pytest.raises(FileError, match=r"not UTF-8: byte 0x\w\w at offset \d") as caught:
        texts(local(tmp_path))

    assert caught.value.where == str(path)


@pytest.mark.acceptance("T16")
@pytest.mark.parametrize("name", [".nexus3/NEXUS.md", "NEXUS.md", "AGENTS.md"])
def test_a_text_above_the_limit_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {name: "x" * (1024 * 1024 + 1)})

    with pytest.raises(FileError, match="larger than 1 MiB") as caught:
        texts(local(tmp_path))

    assert caught.value.where == str(tmp_path / name)


@pytest.mark.acceptance("T6")
@pytest.mark.parametrize("name", [".nexus3/NEXUS.md", "NEXUS.md", "AGENTS.md"])
def test_a_text_that_anybody_may_write_to_is_left_out(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {name: "planted"})
    (tmp_path / name).chmod(0o666)

    assert texts(local(tmp_path)) == []
    assert reasons(local(tmp_path))[name] == "anybody may write to it"


def test_the_users_own_text_is_left_out_too_when_anybody_may_write_to_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "planted"}).joinpath("NEXUS.md").chmod(0o606)

    assert texts(Layer("global", tmp_path, "global")) == []


def test_a_text_that_a_group_may_write_to_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "ours"}).joinpath("NEXUS.md").chmod(0o664)

    assert [text.text for text in texts(local(tmp_path))] == ["ours"]


@needs_root
@pytest.mark.acceptance("T6")
@pytest.mark.parametrize("given", ["NEXUS.md", ".nexus3/NEXUS.md", ".nexus3", "AGENTS.md", "link.md -> NEXUS.md"])
def test_a_text_that_belongs_to_somebody_else_is_left_out(tmp_path: Path, given: str) -> None:
    name, _, link = given.partition(" -> ")
    write_files(
        tmp_path, {"target": "planted"} if link else {name if "." in name[1:] else f"{name}/NEXUS.md": "planted"}
    )
    if link:
        (tmp_path / link).symlink_to("target")
    os.chown(tmp_path / (link or name), STRANGER, STRANGER, follow_symlinks=False)

    assert texts(local(tmp_path)) == []
    assert "belongs to somebody else" in reasons(local(tmp_path)).values()


@needs_root
def test_a_text_of_the_projects_owner_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "theirs, and so is the project"})
    for path in (tmp_path, tmp_path / "NEXUS.md"):
        os.chown(path, STRANGER, STRANGER)

    assert len(texts(local(tmp_path))) == 1


@needs_root
def test_a_text_of_the_superuser_is_read_by_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"NEXUS.md": "managed"})
    os.chown(tmp_path, STRANGER, STRANGER)
    monkeypatch.setattr("os.geteuid", lambda: STRANGER)

    assert len(texts(local(tmp_path))) == 1


@needs_root
@pytest.mark.acceptance("T6")
@pytest.mark.parametrize(
    "planted",
    [
        {".nexus3/NEXUS.md": "planted"},
        {".nexus3/config.json": "{}"},
        {"NEXUS.md": "planted"},
        {".git/HEAD": "", "AGENTS.md": "planted"},
        {".git": "gitdir: /home/me/trusted/.git", "CLAUDE.md": "planted"},
        {".nexus3/NEXUS.md": "planted", "NEXUS.md": "planted", "AGENTS.md": "planted", ".git/HEAD": ""},
    ],
)
def test_what_a_stranger_puts_into_a_shared_directory_above_is_never_read(
    tmp_path: Path, planted: dict[str, str]
) -> None:
    work = write_files(tmp_path / "shared", {**planted, "work/x": ""}) / "work"
    for path in (tmp_path / "shared").rglob("*"):
        if work not in (path, *path.parents):
            os.chown(path, STRANGER, STRANGER)

    found = nexus_layers(Request(cwd=work, home=tmp_path / "none"))

    layers = [item for item in found if isinstance(item, Layer)]
    read = [item for layer in layers for item in [*nexus_layer_texts(layer, Settings()), *nexus_layer_config(layer)]]
    assert [item for item in read if not isinstance(item, Skipped)] == []


@needs_root
def test_a_directory_above_that_nobody_may_look_into_does_not_stop_the_work(tmp_path: Path) -> None:
    work = write_files(tmp_path / "shared", {".nexus3/NEXUS.md": "planted", "work/x": ""}) / "work"
    os.chown(tmp_path / "shared/.nexus3", STRANGER, STRANGER)
    (tmp_path / "shared/.nexus3").chmod(0)

    found = nexus_layers(Request(cwd=work, home=tmp_path / "none", ancestor_depth=1))

    assert Skipped(tmp_path / "shared/.nexus3", "belongs to somebody else", layer="ancestor:shared") in found


def test_where_files_have_no_owners_none_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = local(write_files(tmp_path, {"NEXUS.md": "text"}))
    (tmp_path / "NEXUS.md").chmod(0o666)

    with monkeypatch.context() as elsewhere:
        elsewhere.delattr("os.geteuid")
        found = texts(layer)

    assert len(found) == 1


def local(root: Path) -> Layer:
    return Layer("local", root / ".nexus3", "local", root=root)


def texts(layer: Layer) -> list[LayerText]:
    return [item for item in nexus_layer_texts(layer, Settings()) if isinstance(item, LayerText)]


def reasons(layer: Layer) -> dict[str, str]:
    return {
        item.path.relative_to(layer.project).as_posix(): item.reason
        for item in nexus_layer_texts(layer, Settings())
        if isinstance(item, Skipped)
    }
