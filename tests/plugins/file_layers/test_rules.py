from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexus_core import Request
from nexus_core.files.repository import Level
from nexus_core.plugin import Layer, LayerText, Skipped, levels_above, repository_of, repository_root
from nexus_core.testing import write_files
from nexus_core.values.settings import Settings
from nexus_plugins.file_layers import nexus_layer_texts, nexus_layers


@pytest.mark.acceptance("C-33")
def test_rules_and_the_layers_own_text_both_contribute(tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {".nexus3/NEXUS.md": "own", "AGENTS.md": "rules"})

    assert read(work) == [("local", "", "own"), ("local", "Workspace Rules (work)", "rules")]


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["AGENTS.md", "CLAUDE.md", "GEMINI.md"], "AGENTS.md"),
        (["CLAUDE.md", "GEMINI.md"], "CLAUDE.md"),
        (["GEMINI.md"], "GEMINI.md"),
    ],
)
def test_a_directory_contributes_the_first_of_its_rules(tmp_path: Path, files: list[str], chosen: str) -> None:
    write_files(tmp_path, {name: name for name in files})

    assert [text for _, _, text in read(tmp_path)] == [chosen]


def test_rules_that_are_passed_over_are_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"AGENTS.md": "a", "CLAUDE.md": "c"})

    found = nexus_layer_texts(Layer("local", tmp_path / ".nexus3", "local", root=tmp_path), Settings())

    assert Skipped(tmp_path / "CLAUDE.md", "AGENTS.md comes first") in found


@pytest.mark.acceptance("B-13")
def test_blank_rules_make_way_for_the_next(tmp_path: Path) -> None:
    write_files(tmp_path, {"AGENTS.md": "\n", "CLAUDE.md": "claude"})

    assert [text for _, _, text in read(tmp_path)] == ["claude"]


@pytest.mark.parametrize("marker", [".git/HEAD", ".git"])
def test_rules_are_read_from_the_repository_down_however_deep(tmp_path: Path, marker: str) -> None:
    write_files(
        tmp_path,
        {
            f"repo/{marker}": "",
            "repo/AGENTS.md": "root",
            "repo/1/2/3/AGENTS.md": "three",
            "repo/1/2/3/4/5/CLAUDE.md": "five",
            "repo/1/2/3/4/5/6/7/AGENTS.md": "seven",
        },
    )

    assert read(tmp_path / "repo/1/2/3/4/5/6/7") == [
        ("ancestor:repo", "Workspace Rules (repo)", "root"),
        ("ancestor:3", "Workspace Rules (3)", "three"),
        ("ancestor:5", "Workspace Rules (5)", "five"),
        ("local", "Workspace Rules (7)", "seven"),
    ]


def test_a_directory_beyond_the_depth_contributes_only_its_rules(tmp_path: Path) -> None:
    repo = write_files(
        tmp_path / "repo",
        {".git/HEAD": "", ".nexus3/NEXUS.md": "too far", "NEXUS.md": "too far", "AGENTS.md": "rules", "a/b/x": ""},
    )

    found = nexus_layers(Request(cwd=repo / "a/b", home=tmp_path / "none", ancestor_depth=1))

    assert found[:2] == [
        Skipped(repo / ".nexus3", "farther up than context.ancestor_depth (1)", layer="ancestor:repo"),
        Layer("ancestor:repo", repo / ".nexus3", "ancestor", distance=2, root=repo, only_rules=True),
    ]
    assert [text for _, _, text in read(repo / "a/b", depth=1)] == ["rules"]


def test_a_directory_of_the_repository_without_rules_is_reported(tmp_path: Path) -> None:
    place = write_files(tmp_path, {"repo/.git/HEAD": "", "repo/AGENTS.md": "r", "repo/a/b/x": ""}) / "repo/a/b"

    found = nexus_layers(Request(cwd=place, home=tmp_path / "none", ancestor_depth=0))

    looked_at = [item.path for item in found if isinstance(item, Skipped) and item.layer == "ancestor:a"]
    assert looked_at == [tmp_path / "repo/a" / name for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md")]


def test_a_directory_with_rules_and_a_layer_is_found_once(tmp_path: Path) -> None:
    repo = write_files(tmp_path / "repo", {".git/HEAD": "", ".nexus3/x": "", "AGENTS.md": "rules", "a/x": ""})

    assert read(repo / "a") == [("ancestor:repo", "Workspace Rules (repo)", "rules")]
    assert len([item for item in nexus_layers(Request(cwd=repo / "a", home=repo)) if isinstance(item, Layer)]) == 3


def test_rules_above_the_repository_are_not_read(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"AGENTS.md": "above", ".nexus3/NEXUS.md": "layer", "repo/.git/HEAD": "", "repo/AGENTS.md": "in"}
    )

    assert [text for _, _, text in read(tmp_path / "repo")] == ["layer", "in"]


def test_without_a_repository_only_the_working_directorys_rules_are_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/AGENTS.md": "above", "a/.nexus3/NEXUS.md": "layer", "a/b/AGENTS.md": "here"})

    assert [text for _, _, text in read(tmp_path / "a/b")] == ["layer", "here"]


def test_the_nearest_repository_counts(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".git/HEAD": "",
            "AGENTS.md": "outer",
            "sub/.git": "gitdir: …",
            "sub/AGENTS.md": "inner",
            "sub/a/AGENTS.md": "a",
        },
    )

    assert [text for _, _, text in read(tmp_path / "sub/a")] == ["inner", "a"]


def test_a_repository_in_the_home_directory_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path, {".git/HEAD": "", "AGENTS.md": "dotfiles", "work/AGENTS.md": "work"})

    assert [text for _, _, text in read(tmp_path / "work")] == ["work"]


def test_a_repository_above_the_home_directory_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    write_files(tmp_path, {".git/HEAD": "", "AGENTS.md": "everybody", "me/work/AGENTS.md": "work"})

    assert [text for _, _, text in read(tmp_path / "me/work")] == ["work"]


def test_the_search_ends_where_another_file_system_begins() -> None:
    repository = Level(Path("/repo"), identity=(1, 7), marker_owner=os.geteuid())
    mounted = Level(Path("/repo/mounted"), identity=(2, 7))

    assert repository_of([mounted, repository]) is None
    assert repository_of([repository]) == Path("/repo")


def test_the_root_of_the_file_system_is_no_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: path == "/.git")

    assert repository_root(Path("/usr/lib")) is None
    assert levels_above(Path("/usr/lib"))[-1].is_limit


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
@pytest.mark.acceptance("T6")
def test_a_repository_that_a_stranger_pretends_to_have_does_not_count(tmp_path: Path) -> None:
    write_files(tmp_path, {".git": "gitdir: /home/me/trusted/.git", "work/x": ""})
    os.chown(tmp_path / ".git", 54321, 54321)

    assert repository_root(tmp_path / "work") is None


def test_a_directory_that_does_not_exist_is_in_no_repository(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/HEAD": ""})

    assert repository_root(tmp_path / "gone") is None


def test_rules_that_are_a_link_to_other_rules_are_read(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/HEAD": "", "AGENTS.md": "shared", "sub/x": ""})
    (tmp_path / "sub/CLAUDE.md").symlink_to("../AGENTS.md")

    assert [text for _, _, text in read(tmp_path / "sub")] == ["shared", "shared"]


def read(cwd: Path, *, depth: int = 2) -> list[tuple[str, str, str]]:
    """The layer, title and text of everything that is read for a directory."""
    found = nexus_layers(Request(cwd=cwd, home=cwd / "no-such-home", ancestor_depth=depth))
    return [
        (layer.name, item.title, item.text)
        for layer in found
        if isinstance(layer, Layer)
        for item in nexus_layer_texts(layer, Settings())
        if isinstance(item, LayerText)
    ]
