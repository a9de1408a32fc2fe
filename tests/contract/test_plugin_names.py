"""What plugin authors import: named modules, and for one release every name that was in `nexus_core.plugin` before."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import nexus_core.plugin
from nexus_core import Nexus
from nexus_core.plugin._renamed import RENAMED
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT, Cli, InstallPlugin

ROOMS = ["dialects", "files", "ledgers", "settings", "text"]

VETERAN = """
from nexus_core import Finding, Section, hookimpl
from nexus_core.plugin import (
    Admission,
    Command,
    InitScope,
    Layer,
    LayerText,
    Loaded,
    Shell,
    Skipped,
    Strict,
    Summariser,
    Truncation,
    file_in,
    neutralise,
    one_line,
    read_text,
    visible_line,
    with_ids,
)


class Settings(Strict):
    word: str = "veteran"


def show(shell: Shell) -> None:
    shell.console.data("served")


@hookimpl
def nexus_layer_texts(layer):
    text = Admission(layer).read_text(file_in(layer.directory, "VETERAN.md"))
    return [text] if isinstance(text, Skipped) else [LayerText(layer.directory / "VETERAN.md", text)]


@hookimpl
def nexus_static_sections(loaded):
    assert isinstance(loaded, Loaded)
    text = neutralise(visible_line(one_line("served before")))
    return [Section("veteran", title="Veteran", text=text)]


@hookimpl
def nexus_truncations():
    return [Truncation(name="veteran", choose=lambda groups, budget: [])]


@hookimpl
def nexus_summarisers():
    return [Summariser(name="veteran", summarise=lambda request: "short")]
"""
"""A plugin for the release before, with names that have moved, have new names, or have stayed."""

STAYED = {"Command", "InitScope", "Layer", "LayerText", "read_text"}


def old_names(source: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "nexus_core.plugin"
        for alias in node.names
    }


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_old_name_is_the_new_object_and_the_warning_says_where_it_is(name: str) -> None:
    module, _, new = RENAMED[name].partition(":")

    with pytest.warns(DeprecationWarning, match="deprecated") as warned:
        value = getattr(nexus_core.plugin, name)

    assert value is getattr(import_module(module), new)
    assert f"nexus_core.plugin.{name} " in str(warned[0].message)
    assert f"`from {module} import {new}`" in str(warned[0].message)


def test_every_use_of_an_old_name_is_reported_not_only_the_first() -> None:
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="import visible_line"):
            _ = nexus_core.plugin.visible_line  # type: ignore[attr-defined]


def test_old_names_are_not_listed() -> None:
    listed = {*nexus_core.plugin.__all__, *dir(nexus_core.plugin)}

    assert listed & set(RENAMED) == set()


def test_unknown_name_is_the_usual_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'nexus_core\.plugin' has no attribute 'Nothing'"):
        _ = nexus_core.plugin.Nothing  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("always::DeprecationWarning")
def test_plugin_written_for_the_old_names_is_installed_and_works(
    install_plugin: InstallPlugin, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    install_plugin("veteran", VETERAN)
    work = write_files(tmp_path / "work", {".nexus3/NEXUS.md": "Be brief.\n", ".nexus3/VETERAN.md": "Stand at ease.\n"})

    with Nexus(work, strict=True, defaults=False) as nexus:
        prompt = nexus.system_prompt()
        offered = "veteran" in nexus.host.truncations(), "veteran" in nexus.host.summarizers(nexus.load())

    assert "## Veteran\nserved before" in prompt
    assert "Stand at ease." in prompt
    assert offered == (True, True)
    told = {
        str(each.message).split()[0].rpartition(".")[2]: each
        for each in recwarn
        if "nexus_core.plugin." in str(each.message)
    }
    assert set(told) == old_names(VETERAN) - STAYED
    assert {Path(each.filename).name for each in told.values()} == {"nexus_veteran_veteran.py"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_command_line_says_nothing_to_a_user_of_an_old_plugin(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("veteran", VETERAN)

    shown, checked = cli("show"), cli("plugin", "test", "veteran")

    assert (shown.code, shown.err) == (0, "")
    assert checked.code == 0, checked.out


def test_plugin_that_mixes_old_and_new_names_gets_the_same_classes(make_nexus: MakeNexus) -> None:
    from nexus_core.plugin import SkippedFile

    with pytest.warns(DeprecationWarning, match="import SkippedFile"):
        assert nexus_core.plugin.Skipped is SkippedFile  # type: ignore[attr-defined]
    assert make_nexus().problems == ()


@pytest.mark.parametrize(
    "path",
    sorted(
        {*ROOT.glob("plugins/nexus_plugins/**/*.py"), *ROOT.glob("examples/**/*.py"), *ROOT.glob("nexus_core/**/*.py")}
    ),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nothing_of_ours_uses_an_old_name(path: Path) -> None:
    assert old_names(path.read_text(encoding="utf-8")) & set(RENAMED) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_room_lists_its_names_and_each_can_be_imported(room: str) -> None:
    module = import_module(f"nexus_core.plugin.{room}")

    assert module.__all__ == sorted(module.__all__)
    assert all(getattr(module, name).__doc__ for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))


def test_no_name_is_in_two_rooms() -> None:
    rooms = [nexus_core.plugin, *(import_module(f"nexus_core.plugin.{room}") for room in ROOMS)]
    names = [name for room in rooms for name in room.__all__]

    assert len(names) == len(set(names))


def test_importing_the_package_loads_nothing_but_itself() -> None:
    code = (
        "import sys, nexus_core; before = set(sys.modules)\n"
        f"import nexus_core.plugin, {', '.join(f'nexus_core.plugin.{room}' for room in ROOMS)}\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('nexus_core')))"
    )

    loaded = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout.split()

    assert loaded == ["nexus_core.lazy_names", "nexus_core.plugin", *(f"nexus_core.plugin.{room}" for room in ROOMS)]
