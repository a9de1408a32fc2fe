"""What is in the wheel of nexusctx."""

from __future__ import annotations

import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def _file_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_core_and_the_plugins_and_nothing_else(core_wheel: Path) -> None:
    names = _file_names(core_wheel)

    packages = {PurePosixPath(name).parts[0] for name in names if ".dist-info/" not in name}

    assert packages == {"nexus_core", "nexus_plugins"}


def test_the_wheel_leaves_the_namespace_of_plugins_open(core_wheel: Path) -> None:
    names = _file_names(core_wheel)

    assert "nexus_plugins/file_layers/__init__.py" in names
    assert "nexus_plugins/__init__.py" not in names


def test_the_wheel_holds_the_defaults(core_wheel: Path) -> None:
    assert "nexus_core/defaults/NEXUS.md" in _file_names(core_wheel)


def test_the_wheel_holds_the_tables_of_tokens_and_models_and_says_where_they_come_from(core_wheel: Path) -> None:
    names = _file_names(core_wheel)

    tables = {"cl100k_base.ranks", "o200k_base.ranks", "tables.json"}
    assert {f"nexus_plugins/tiktoken_counter/ranks/{name}" for name in tables} <= names
    assert "nexus_plugins/models/prices.toml" in names
    assert any(name.endswith(".dist-info/licenses/NOTICE") for name in names)


def test_the_wheel_marks_the_core_and_each_plugin_as_typed(core_wheel: Path, bundled_names: set[str]) -> None:
    names = _file_names(core_wheel)

    typed = {name.removesuffix("/py.typed") for name in names if name.endswith("/py.typed")}

    assert typed == {"nexus_core", *(f"nexus_plugins/{name}" for name in bundled_names)}


def test_the_wheel_holds_the_licence(core_wheel: Path) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in _file_names(core_wheel))


def test_the_wheel_holds_no_tests(core_wheel: Path) -> None:
    names = _file_names(core_wheel)

    tests = [name for name in names if "tests" in PurePosixPath(name).parts or "/test_" in name]

    assert tests == []


def test_the_sdist_builds_the_same_files_as_the_checkout(core_wheel: Path, sdist_wheel: Path) -> None:
    assert _file_names(sdist_wheel) == _file_names(core_wheel)
